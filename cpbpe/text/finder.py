"""Finds words in text, the longest at each place, from left to right: for special tokens.

(What finds USER_DEFINED pieces is in `cpbpe.reference.encoding`: sentencepiece has a limit there that special tokens
should not have.)
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from cpbpe.engine.protocol import Engine


class Finder(Protocol):
    """Finds some words."""

    def split(self, text: Any, /) -> list[Any] | None:
        """The text before a word, the word's number, the text behind it, and so on; None without words."""


class PythonFinder:
    r"""A finder in plain Python.

    >>> finder = PythonFinder([b"<s>", b"<s><s>", b"[X]"])
    >>> finder.split("a<s><s><s>b"), finder.split(b"[X]\xff"), finder.split("none")
    (['a', 1, '', 0, 'b'], [b'', 2, b'\xff'], None)
    """

    def __init__(self, words: list[bytes]):
        self._numbers = {word: number for number, word in enumerate(words)}
        self._lengths = sorted({len(word) for word in words}, reverse=True)
        firsts = sorted({word[:1] for word in words})
        self._first = re.compile(b"[" + b"".join(map(re.escape, firsts)) + b"]") if words else None

    def split(self, text: str | bytes, /) -> list[Any] | None:
        """See `Finder`."""
        data = text.encode() if isinstance(text, str) else text
        parts: list[Any] = []
        done = at = 0
        while self._first and (place := self._first.search(data, at)):
            at = place.start()
            found = (data[at : at + length] for length in self._lengths)
            word = next((word for word in found if word in self._numbers), None)
            if word is None:
                at += 1
                continue
            parts += [data[done:at], self._numbers[word]]
            done = at = at + len(word)
        if not parts:
            return None
        parts.append(data[done:])
        if isinstance(text, str):
            parts[::2] = [part.decode() for part in parts[::2]]
        return parts


def make_finder(engine: Engine, words: list[str]) -> Finder:
    """A finder of the same kind as the engine."""
    encoded = [word.encode() for word in words]
    if engine.name == "reference":
        return PythonFinder(encoded)
    from cpbpe import _core

    finder: Finder = _core.Matcher(encoded)
    return finder
