"""Which pieces text can yield, in byte-level models.

A piece comes about in some text only if its bytes merge into it by themselves, or if a chunk of exactly its
text is taken whole. What stands around it is tried out, because a pattern may cut for any reason: where
nothing is found, that is not decided, unless UTF-8 or the Unicode normal form has no such bytes at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.characters import blocked
from cpbpe.lint.halves import completions, goes_on, is_open
from cpbpe.lint.merging import Merging
from cpbpe.lint.probing import becomes_itself, remaining, yields
from cpbpe.lint.values import Reach, Reason
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.unicode_forms import normal_form
from cpbpe.text.utf8 import is_valid_utf8

LEFT = ("", " ", "a", ".", "\n", "1", "中", "'", "A", "  ", "\t", "é", "\u0301", "((", "aa", "x\n")
"""What is tried in front of a piece."""
RIGHT = ("", " ", "a", ".", "\n", "1", "中", "'", "A", "  ", "x", "\r\n", "é", "\u0301", "))", "aa", " x")
"""What is tried after it."""
_SIDES = sorted(((left, right) for left in LEFT for right in RIGHT), key=lambda pair: len("".join(pair)))
_STEPS = (8, 120, 5000)
"""So many completions of a piece that is no whole characters are tried: first of all pieces, then of those
that are left."""


class Bytes:
    """Decides for one model. `make` builds an engine of a spec."""

    def __init__(self, spec: ModelSpec, engine: Engine, make: Callable[[ModelSpec], Engine]):
        self._spec = spec
        self._engine = engine
        self._make = make
        self._texts = spec.pieces.texts
        self._types = spec.pieces.types
        self.merging = Merging(spec)
        """How pieces merge."""

    def reach(self) -> Reach:
        """Which pieces text can yield."""
        pieces = self._texts
        normal = [id for id, kind in enumerate(self._types) if kind == PieceType.NORMAL]
        whole_ids = [id for id in normal if is_valid_utf8(pieces[id])]
        merged = self._merged(normal, whole_ids)
        # 1. As they are, then with something around them.
        texts: dict[int, str] = {}
        self._surround([id for id in whole_ids if id in merged or self._spec.whole], texts)
        # 2. Those that end inside a character.
        self._complete([id for id in normal if id in merged and not is_valid_utf8(pieces[id])], texts)
        # 3. The reasons of the others.
        reasons = {id: self._why(id, merged) for id in remaining(normal, texts)}
        whole = frozenset(id for id in texts if id not in merged) if self._spec.whole else frozenset()
        return Reach(texts, reasons, frozenset(), whole)

    def shortest(self, id: int) -> str | None:
        """A text that yields a piece, as short as was found; None if none was."""
        texts: dict[int, str] = {}
        if self._types[id] == PieceType.NORMAL:
            (self._surround if is_valid_utf8(self._texts[id]) else self._complete)([id], texts)
        return texts.get(id)

    def _surround(self, ids: list[int], texts: dict[int, str]) -> None:
        """Find texts for pieces that are whole characters, the shortest first."""
        left = ids
        for front, after in _SIDES:
            if not left:
                break
            tries = [front + self._texts[id].decode() + after for id in left]
            for place in yields(self._engine, left, tries):
                texts[left[place]] = tries[place]
            left = remaining(left, texts)

    def _complete(self, ids: list[int], texts: dict[int, str]) -> None:
        """Find texts for pieces that are not whole characters."""
        before = 0
        for step in _STEPS:
            owners: list[int] = []
            tries: list[str] = []
            for id in remaining(ids, texts):
                for text in islice(completions(self._texts[id]), before, step):
                    for side in ("", " ", "a")[: 1 if step == _STEPS[0] else 3]:
                        owners.append(id)
                        tries.append(side + text)
                if len(tries) >= 1 << 16:
                    self._note(owners, tries, texts)
                    owners, tries = [], []
            self._note(owners, tries, texts)
            before = step
        # What follows may also be a piece that begins inside the character.
        for id in remaining(ids, texts):
            data = self._texts[id]
            tries = [c for after in self._followers(data) for c in islice(completions(data + after), 3)]
            self._note([id] * len(tries), tries, texts)

    def _followers(self, text: bytes) -> list[bytes]:
        """Pieces that may follow one that ends inside a character, and do not merge with it."""
        if not is_open(text):
            return []
        ids, found = self._spec.ids, []
        for byte in range(0x80, 0xC0):
            if goes_on(text, byte):
                found += [after for after in self._by_first.get(byte, ()) if text + after not in ids]
        return found

    def _note(self, owners: list[int], tries: list[str], texts: dict[int, str]) -> None:
        for place in yields(self._engine, owners, tries):
            texts.setdefault(owners[place], tries[place])

    def _merged(self, normal: list[int], whole_ids: list[int]) -> frozenset[int]:
        """The pieces that their own bytes merge into, without any pattern."""
        bare = self._make(replace(self._spec, splitter=None, whole=False, file=None, added=()))
        raw = bare.variant(raw=True) if self._spec.normalizer.unicode_form else bare
        answers = becomes_itself(raw, whole_ids, [self._texts[id] for id in whole_ids])
        merged = {id for id, answer in zip(whole_ids, answers, strict=True) if answer}
        told = set(whole_ids)
        for id in normal:
            if id not in told and len(self.merging.run(self._texts[id])[1]) == 1:
                merged.add(id)
        return frozenset(merged)

    def _why(self, id: int, merged: frozenset[int]) -> Reason:
        text = self._texts[id]
        is_text = is_valid_utf8(text)
        if not is_text and next(completions(text), None) is None:
            return Reason("not-utf8", "no UTF-8 has these bytes")
        if id not in merged and not (self._spec.whole and is_text):
            return blocked(self.merging, self._spec, merged, text)
        if not is_text and self._is_always_completed(text):
            return Reason("completed", "whatever follows it in the same character merges with it")
        form = self._spec.normalizer.unicode_form
        if is_text and form:
            for character in text.decode():
                made = "".join(placed.character for placed in normal_form(form, character))
                if made != character:
                    return Reason(
                        "normalized-away", f"the normal form {form} has no {character!r}: it is {made!r}"
                    )
        if id not in merged:
            return Reason(
                "no-witness", "no merges make it, and no text was found with a chunk that is it", False
            )
        return Reason("no-witness", "no text was found: the pattern cuts it, or it merges with more", False)

    @kept
    def _by_first(self) -> dict[int, list[bytes]]:
        """The pieces that begin inside a character, by their first byte."""
        found: dict[int, list[bytes]] = {}
        for text, kind in zip(self._texts, self._types, strict=True):
            if kind == PieceType.NORMAL and text[0] & 0xC0 == 0x80:
                found.setdefault(text[0], []).append(text)
        return found

    def _is_always_completed(self, text: bytes) -> bool:
        """Whether every piece that can follow merges with this one, which ends inside a character.

        What follows is in the same chunk, because a pattern cuts between characters. And no two symbols are
        left side by side that could merge.
        """
        return is_open(text) and not self._followers(text)
