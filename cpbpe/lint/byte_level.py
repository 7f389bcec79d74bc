"""Which pieces text can yield, in byte-level models.

A piece comes about in some text only if its bytes merge into it by themselves, or if a chunk of exactly its
text is taken whole. What stands around it is tried out, because a pattern may cut for any reason. Where
nothing is found, it is proved that there is nothing, if it can be: by the pattern, whose chunks never have
these characters side by side (`cpbpe/lint/chunks.py`), by UTF-8, by the Unicode normal form, or by what can
follow the piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.characters import blocked
from cpbpe.lint.chunks import chunks_of
from cpbpe.lint.halves import completions, goes_on, is_open, parted
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
_RARE_LEFT = ("", "€", "ſ", "\u0489", "中", "a", " ", "٣", "\r\n", "€€", "Ƣ", "ꙮ", "🦙", "\n\n", "\x01", "-€")
"""What is tried in front of a piece that nothing yields: characters that few pieces have."""
_RARE_RIGHT = (
    *(
        "",
        "ſ",
        "€",
        "ꙮ",
        "\u0489",
        "s",
        "t",
        "ll",
        "re",
        "ve",
        "S",
        "T",
        "D",
        "M",
        "LL",
        "Re",
        "VE",
        "lL",
        "rE",
    ),
    *("vE", "Ƣ", "🦙", "٣", "\x01", "/€", "\r\r", "ſſ", "€€"),
)
"""The same after it; and the English endings, which patterns take to the word in front of them."""
_RARE_SIDES = sorted(
    ((left, right) for left in _RARE_LEFT for right in _RARE_RIGHT), key=lambda pair: len("".join(pair))
)
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
        self._chunks = chunks_of(spec.splitter)

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
        # 3. Why nothing yields the others. Of those for which there is no proof, a longer search.
        reasons = {id: self._why(id, merged) for id in remaining(normal, texts)}
        self._surround(
            [id for id, why in reasons.items() if not why.decided and is_valid_utf8(pieces[id])],
            texts,
            _RARE_SIDES,
        )
        reasons = {id: why for id, why in reasons.items() if id not in texts}
        whole = frozenset(id for id in texts if id not in merged) if self._spec.whole else frozenset()
        return Reach(texts, reasons, frozenset(), whole)

    def shortest(self, id: int) -> str | None:
        """A text that yields a piece, as short as was found; None if none was."""
        texts: dict[int, str] = {}
        if self._types[id] == PieceType.NORMAL:
            if is_valid_utf8(self._texts[id]):
                self._surround([id], texts)
                self._surround(remaining([id], texts), texts, _RARE_SIDES)
            else:
                self._complete([id], texts)
        return texts.get(id)

    def _surround(
        self, ids: list[int], texts: dict[int, str], sides: Sequence[tuple[str, str]] = _SIDES
    ) -> None:
        """Find texts for pieces that are whole characters, the shortest first."""
        left = ids
        for front, after in sides:
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
        """Pieces that may follow one that ends inside a character.

        What follows is in the same chunk, because a pattern cuts between characters. If both are left in the
        end, nothing has merged across their borders, so that the two alone end as these two as well. And the
        character that they begin and go on with must be one that the chunk may have there.
        """
        if not is_open(text):
            return []
        found = []
        for byte in range(0x80, 0xC0):
            if goes_on(text, byte) and self._may_be(text + bytes([byte])):
                found += [after for after in self._by_first.get(byte, ()) if self._stay(text, after)]
        return found

    def _stay(self, text: bytes, after: bytes) -> bool:
        """Whether two pieces may stand side by side in the end, in a text that there is."""
        both = text + after
        # (The first question only spares most of the others.)
        return (
            both not in self._spec.ids
            and [symbol.end for symbol in self.merging.run(both)] == [len(text), len(both)]
            and self._may_be(both)
        )

    def _may_be(self, text: bytes) -> bool:
        """Whether some bytes, which have the beginning of a character, may be in a chunk."""
        return parted(text) is not None and self._why_not_in_a_chunk(text) is None

    def _why_not_in_a_chunk(self, text: bytes) -> Reason | None:
        """Why no chunk has these bytes in it, whatever they are completed with; None if one may have them."""
        sides = parted(text)
        if sides is None:
            return None
        before, middle, after = sides
        form = self._spec.normalizer.unicode_form
        if form:
            kept = tuple(left_by(form, characters) for characters in (before, after))
            if (before and not kept[0]) or (after and not kept[1]):
                return Reason("normalized-away", f"the normal form {form} has no character with these bytes")
            before, after = kept
        if self._chunks is None or self._chunks.may_hold(middle, before, after):
            return None
        return Reason("cut-apart", "the pattern always cuts between its characters")

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
            if id not in told and len(self.merging.run(self._texts[id])) == 1:
                merged.add(id)
        return frozenset(merged)

    def _why(self, id: int, merged: frozenset[int]) -> Reason:
        text = self._texts[id]
        is_text = is_valid_utf8(text)
        if not is_text and next(completions(text), None) is None:
            return Reason("not-utf8", "no UTF-8 has these bytes")
        if id not in merged and not (self._spec.whole and is_text):
            return blocked(self.merging, self._spec, merged, text)
        form = self._spec.normalizer.unicode_form
        if is_text and form:
            # (A part of a text in normal form is in normal form.)
            made = "".join(placed.character for placed in normal_form(form, text.decode()))
            if made != text.decode():
                return Reason(
                    "normalized-away", f"it is not in the normal form {form}, which makes it {made!r}"
                )
        reason = self._why_not_in_a_chunk(text)
        if reason is not None:
            return reason
        if is_open(text) and not self._followers(text):
            return Reason("completed", "whatever follows it in the same character merges with it")
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


@lru_cache(maxsize=256)
def left_by(form: str, characters: str) -> str:
    """Those of some characters that a Unicode normal form leaves as they are."""
    return "".join(
        character
        for character in characters
        if [placed.character for placed in normal_form(form, character)] == [character]
    )
