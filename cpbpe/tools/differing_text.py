"""The search for a short text whose tokens differ between two models.

Texts are tried from short to long: all of one character, then all of two or more, as long as these are few
enough. If the models have no rules, normal form or pattern, all characters that are in no piece are alike, so
two of them stand for all; otherwise all of Unicode is tried as texts of one character. Then come longer texts
in which a difference is likely: those that `orders.py` derives from the orders of the scores, the pieces that
changed, alone and with neighbours, and random pieces side by side. A text with a difference is then made as
short as it can be without losing it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from cpbpe.text.utf8 import is_valid_utf8
from cpbpe.tokenizer.tokenizer import Tokenizer

_BATCH = 50_000
MOST_TEXTS = 3_000_000
"""All texts of a length are tried if there are no more of them than this."""
GLUED = 100_000
"""This many texts of random pieces are tried."""
_CHANGED = 20_000
"""This many of the pieces that changed are tried."""
_LIKELY = 20_000
"""This many of the texts that `orders.py` derives are tried, the shortest first."""
_NEIGHBOURS = ("", " ", "a", "1", ".", "\n", "é")


@dataclass(frozen=True)
class TextDifference:
    """A text with the tokens that both models give it."""

    text: str
    old_ids: tuple[int, ...]
    new_ids: tuple[int, ...]
    old_tokens: tuple[str, ...]
    new_tokens: tuple[str, ...]
    proved: bool
    """Whether every shorter text has the same tokens; otherwise no character of it can be left out."""


class TwoModels:
    """Two models, and a common numbering of their tokens by which these can be compared."""

    def __init__(self, old: Tokenizer, new: Tokenizer):
        self.old, self.new = old, new
        # Two tokens are the same if they have the same bytes, or both are the unknown one.
        numbers: dict[bytes | str | None, int] = {}
        self._old, self._new = (
            np.array([numbers.setdefault(meaning, len(numbers)) for meaning in _meanings(tok)], np.int64)
            for tok in (old, new)
        )

    def other_meanings(self) -> list[int]:
        """The ids of the first model that are another token in the second, or none."""
        new = np.full(len(self._old), -1)
        new[: len(self._new)] = self._new[: len(self._old)]
        changed = np.flatnonzero(self._old != new).tolist()
        return [id for id in changed if self.old.vocab.get(id) is not None]

    def compared(self, texts: list[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which texts have different tokens, and which have different ids."""
        one, other = self.old.encode_arrays(texts, threads=1), self.new.encode_arrays(texts, threads=1)
        first, second = np.diff(one.offsets), np.diff(other.offsets)
        tokens: NDArray[np.bool_] = first != second
        alike = ~tokens
        old, new = one.ids[np.repeat(alike, first)], other.ids[np.repeat(alike, second)]
        owners = np.repeat(np.flatnonzero(alike), first[alike])
        ids = tokens.copy()
        tokens[owners[self._old[old] != self._new[new]]] = True
        ids[owners[old != new]] = True
        return tokens, ids | tokens

    def differing(self, texts: list[str]) -> NDArray[np.bool_]:
        """Which texts have different tokens."""
        return self.compared(texts)[0]

    def differ(self, text: str) -> bool:
        """Whether a text has different tokens."""
        return bool(self.differing([text])[0])

    def difference(self, text: str, proved: bool) -> TextDifference:
        """A text with the tokens of both models."""
        ids: list[tuple[int, ...]] = []
        tokens: list[tuple[str, ...]] = []
        for tok in (self.old, self.new):
            ids.append(tuple(tok.encode(text)))
            if tok.spec.alphabet == "bytes":
                data = map(tok.vocab.id_to_bytes, ids[-1])
                tokens.append(tuple(token.decode("utf-8", "backslashreplace") for token in data))
            else:
                tokens.append(tuple(tok.vocab[id] for id in ids[-1]))
        return TextDifference(text, ids[0], ids[1], tokens[0], tokens[1], proved)


def _meanings(tok: Tokenizer) -> Iterator[bytes | str | None]:
    """What each id stands for: bytes, or the name of a token that has none. None: unknown, or not in use."""
    for id, token in enumerate(tok.vocab.token_bytes()):
        yield None if id == tok.unk_id else token or tok.vocab.get(id)


def shortest_difference(
    models: TwoModels, changed: Iterable[str], likely: Sequence[str] = ()
) -> tuple[TextDifference | None, int]:
    """The shortest text found whose tokens differ, or None, and how many texts were tried.

    `changed` are the pieces that changed; `likely` are normalized texts that may be merged differently.
    """
    tried = 0
    for exhausted, texts in _levels(models, changed, likely):
        every = iter(texts)
        while batch := list(islice(every, _BATCH)):
            tried += len(batch)
            candidates = [batch[place] for place in np.flatnonzero(models.differing(batch))[:200]]
            if candidates:
                shrunk = (_shrunk(models, text) for text in sorted(candidates, key=len)[:20])
                text = min(shrunk, key=lambda text: (len(text), not text.isprintable(), text))
                return models.difference(text, len(text) <= exhausted + 1), tried
    return None, tried


def _levels(
    models: TwoModels, changed: Iterable[str], likely: Sequence[str]
) -> Iterator[tuple[int, Iterable[str]]]:
    """Yield groups of texts to try, each with a length up to which all texts have been tried before."""
    # The characters of all pieces, and two that are in none.
    tokens = chain(models.old.vocab.token_bytes(), models.new.vocab.token_bytes())
    pieces = {token.decode() for token in tokens if token and is_valid_utf8(token)}
    found = set("".join(pieces).replace("\u2581", " ")) | {" ", "\u2581"}
    others = (chr(code) for code in range(0xE000, 0xF8FF))
    alphabet = [*sorted(found), *islice((c for c in others if c not in found), 2)]
    # Without rules, forms and a pattern, characters that no piece has are all alike.
    plain = all(
        not spec.normalizer.charsmap and not spec.normalizer.unicode_form and spec.splitter is None
        for spec in (models.old.spec, models.new.spec)
    )
    yield 0, alphabet if plain else map(chr, chain(range(0xD800), range(0xE000, 0x110000)))
    exhausted = 1
    size = 2
    while len(alphabet) ** size <= MOST_TEXTS and size <= 4:
        yield exhausted, map("".join, product(alphabet, repeat=size))
        exhausted, size = (size, size + 1) if plain else (exhausted, size + 1)
    shield = alphabet[-1]
    yield exhausted, (text for piece in likely[:_LIKELY] for text in _apart(piece, shield))
    few = list(islice(changed, _CHANGED))
    yield exhausted, (text for piece in few for text in _around(piece))
    yield exhausted, _glued(sorted(pieces) or ["a"], few)


def _around(piece: str) -> Iterator[str]:
    text = piece.replace("\u2581", " ")
    for left in _NEIGHBOURS:
        for right in _NEIGHBOURS:
            yield f"{left}{text}{right}"
    yield piece
    yield text.strip(" ")


def _apart(piece: str, shield: str) -> Iterator[str]:
    """Yield texts in which nothing around a piece merges with it, unless the normalizer changes them."""
    for text in (piece, piece.replace("\u2581", " ")):
        yield f"{shield}{text}{shield}"
        yield f"{text}{shield}"
        yield text
    yield text.strip(" ")


def _glued(pieces: list[str], changed: list[str]) -> Iterator[str]:
    chance = random.Random(1)
    special = [text.replace("\u2581", " ") for text in changed] or pieces
    for _ in range(GLUED):
        parts = [
            chance.choice(special if chance.random() < 0.3 else pieces) for _ in range(chance.randrange(2, 7))
        ]
        yield "".join(parts)


def _shrunk(models: TwoModels, text: str) -> str:
    """The text without any part that can be left out; halves are tried first, then ever smaller parts."""
    size = len(text) // 2
    while size:
        begin = 0
        while begin < len(text):
            shorter = text[:begin] + text[begin + size :]
            if shorter and models.differ(shorter):
                text = shorter
            else:
                begin += size
        size //= 2
    # Then replace characters by plain ones where the difference stays.
    for place in range(len(text)):
        for plain in "a1 ":
            other = text[:place] + plain + text[place + 1 :]
            if text[place] not in "a1 " and models.differ(other):
                text = other
                break
    return text
