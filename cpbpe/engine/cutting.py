"""Where a pattern cuts a text, without a model: for code that needs chunks, or what a pattern leaves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import importing
from cpbpe.text.split_patterns import PATTERNS

_MANY = 50
"""For more matches than this, arrays are faster than lists."""


class Cutter:
    r"""Cuts texts by a pattern. The chunks are its non-empty matches. `engine`: "core" or "reference".

    >>> cutter = Cutter(r"[a-z]+|\d", "reference")
    >>> cutter.chunks("ab, 1"), cutter.parts("ab, 1"), cutter.parts("ab1"), cutter.is_complete
    ([b'ab', b'1'], [b'ab', b'1'], None, False)
    """

    is_complete: bool
    """Whether the pattern is known to leave out nothing of any text."""

    def __init__(self, pattern: str, engine: str):
        self._find: Callable[[str], Any]
        """Returns the spans of the matches in a text: an array from the core, a list from the reference."""
        self._matches: Callable[[str], Any] | None = None
        if engine == "core":
            from cpbpe import _core

            splitter = _core.Splitter(pattern)
            self._find, self.is_complete = splitter.spans, splitter.has_scanner
            return
        with importing:
            from cpbpe.reference.byte_level.patterns import compiled, matches
        self._matches = partial(matches, pattern)
        compiled(pattern)  # raises an error if it is not a regular expression
        self._find, self.is_complete = partial(_spans, pattern), pattern in PATTERNS.values()

    def spans(self, text: str) -> list[list[int]]:
        """Where the matches in a text begin and end, counted in bytes of UTF-8."""
        found = self._find(text)
        spans: list[list[int]] = found if isinstance(found, list) else found.tolist()
        return spans

    def chunks(self, text: str) -> list[bytes]:
        """The matches in a text, as UTF-8."""
        data = text.encode()
        return [data[begin:end] for begin, end in self.spans(text)]

    def finds(self, text: str) -> bool:
        """Whether a text has a match. (The reference does not look for the others.)"""
        found = self._matches(text) if self._matches else self._find(text)
        return next(iter(found), None) is not None

    def parts(self, text: str) -> list[bytes] | None:
        """The matches in a text; None if together they are the whole text, which then need not be copied."""
        data = text.encode()
        found = self._find(text)
        is_array = not isinstance(found, list)
        if is_array and len(found) > _MANY and int((found[:, 1] - found[:, 0]).sum()) == len(data):
            return None
        spans = found.tolist() if is_array else found
        if sum([end - begin for begin, end in spans]) == len(data):
            return None
        return [data[begin:end] for begin, end in spans]


def make_cutter(pattern: str) -> Cutter:
    """A `Cutter` of the best available engine."""
    return Cutter(pattern, engine_name())


def make_chunk_finder(pattern: str | None) -> Callable[[bytes, int], tuple[int, int]]:
    """A function of a text and a place that returns the span of the chunk with the byte before the place.

    Text that the pattern leaves out between two matches is a chunk, too. Without a pattern, a text is one
    chunk.

    >>> find = make_chunk_finder("[a-z]+")
    >>> find(b"ab12cd", 2), find(b"ab12cd", 3), make_chunk_finder(None)(b"ab", 1)
    ((0, 2), (2, 4), (0, 2))
    """
    if pattern is None:
        return lambda text, place: (0, len(text))
    spans = make_cutter(pattern).spans

    def find(text: bytes, place: int) -> tuple[int, int]:
        done = 0
        for begin, end in spans(text.decode()):
            if place <= begin:
                return done, begin
            if place <= end:
                return begin, end
            done = end
        return done, len(text)

    return find


def _spans(pattern: str, text: str) -> list[list[int]]:
    """The spans that the package regex finds."""
    with importing:
        from cpbpe.reference.byte_level.patterns import matches
    places = [0, *accumulate(len(character.encode()) for character in text)]
    found = (match.span() for match in matches(pattern, text))
    return [[places[begin], places[end]] for begin, end in found]
