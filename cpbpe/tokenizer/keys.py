"""Texts that are found in a text before anything merges, and that other symbols therefore never spell.

These are the tokens that every text is searched for, and the user-defined pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

Begun = frozenset[tuple[str, int]]
"""Beginnings of keys: of tokens (0), and of user-defined pieces (1)."""


class Keys:
    """Texts that are found in a text before anything merges, so that no other symbols can spell one."""

    def __init__(self, tokens: Collection[str], pieces: Collection[str] = ()):
        """`tokens` are found everywhere; `pieces`, the user-defined ones, not within each other."""
        self._keys = (frozenset(tokens), frozenset(pieces))
        self._begins = (_beginnings(tokens), _beginnings(pieces))
        self._token, self._any = _any_of(tokens), _any_of({*tokens, *pieces})

    def are_in(self, text: str, is_piece: bool = False) -> bool:
        """Whether a symbol has one inside."""
        return (self._token if is_piece else self._any).search(text) is not None

    def begun(self, before: Begun, text: str, is_piece: bool = False) -> Begun | None:
        """The beginnings of keys at the end of a text after one more symbol; None if it completes one.

        `before`: those at the end of the text before. The symbol itself has no key inside.
        """
        if not any(self._keys):
            return before
        found = set()
        for kind, begins in enumerate(self._begins):
            places = range(1 if kind and is_piece else len(text))
            found |= {(text[at:], kind) for at in places if text[at:] in begins}
        for begin, kind in before:
            whole = begin + text
            if any(whole[:end] in self._keys[kind] for end in range(len(begin) + 1, len(whole) + 1)):
                return None
            if whole in self._begins[kind]:
                found.add((whole, kind))
        return frozenset(found)

    def rests(self, begun: Begun) -> set[str]:
        """What would complete a key."""
        return {
            key[len(begin) :] for begin, kind in begun for key in self._keys[kind] if key.startswith(begin)
        } - {""}


def _beginnings(texts: Iterable[str]) -> set[str]:
    """What texts begin with, shorter than they are."""
    return {text[:end] for text in texts for end in range(1, len(text))}


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


class Ordered:
    """Texts in their order, to find those with some beginning. Each has a number."""

    def __init__(self, texts: Iterable[tuple[str, int]]):
        rows = sorted(texts)
        self._texts = [text for text, _ in rows]
        self._numbers = np.array([number for _, number in rows], np.int64)

    def beginning_with(self, begin: str) -> NDArray[np.int64]:
        """The numbers of those that begin like this."""
        low = bisect_left(self._texts, begin)
        return self._numbers[low : bisect_right(self._texts, begin, low, key=lambda text: text[: len(begin)])]
