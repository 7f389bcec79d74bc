"""Where a pattern cuts a text, by itself: for what has to know chunks, or what a pattern leaves out."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Protocol

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import imported
from cpbpe.text.split_patterns import PATTERNS


class Cutter(Protocol):
    """Cuts texts by a pattern: finds its matches, those that are not empty."""

    is_complete: bool
    """Whether it is known that the pattern leaves nothing of any text out."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the matches in a text begin and end, counted in bytes of UTF-8."""

    def chunks(self, text: str) -> list[bytes]:
        """The matches in a text, as UTF-8."""

    def finds(self, text: str) -> bool:
        """Whether a text has a match."""

    def parts(self, text: str) -> list[bytes] | None:
        """The same; None if they are all of the text, which is then not taken apart."""


def make_cutter(pattern: str) -> Cutter:
    r"""What cuts by a pattern.

    >>> cutter = make_cutter(r"[a-z]+|\d")
    >>> cutter.chunks("ab, 1"), cutter.parts("ab, 1"), cutter.parts("ab1"), cutter.is_complete
    ([b'ab', b'1'], [b'ab', b'1'], None, False)
    """
    return ReferenceCutter(pattern) if engine_name() == "reference" else CoreCutter(pattern)


def make_cutters(pattern: str) -> list[Cutter]:
    """What cuts by a pattern in the reference, and in the core if it is used.

    >>> {cutter.finds("12") for cutter in make_cutters("[a-z]+")}
    {False}
    """
    reference = ReferenceCutter(pattern)
    return [reference] if engine_name() == "reference" else [reference, CoreCutter(pattern)]


class CoreCutter:
    """The core's: with scanners for the published patterns."""

    def __init__(self, pattern: str):
        from cpbpe import _core

        self._splitter = _core.Splitter(pattern)
        self.is_complete = self._splitter.has_scanner

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the matches in a text begin and end, counted in bytes of UTF-8."""
        spans: list[tuple[int, int]] = self._splitter.spans(text).tolist()
        return spans

    def chunks(self, text: str) -> list[bytes]:
        """The matches in a text, as UTF-8."""
        data = text.encode()
        return [data[begin:end] for begin, end in self.spans(text)]

    def finds(self, text: str) -> bool:
        """Whether a text has a match."""
        return len(self._splitter.spans(text)) > 0

    def parts(self, text: str) -> list[bytes] | None:
        """The same; None if they are all of the text, which is then not taken apart."""
        data = text.encode()
        spans = self._splitter.spans(text)
        if len(spans) > _MANY and int((spans[:, 1] - spans[:, 0]).sum()) == len(data):
            return None
        places = spans.tolist()
        if sum([end - begin for begin, end in places]) == len(data):
            return None
        return [data[begin:end] for begin, end in places]


_MANY = 50
"""For more matches than these, arrays are faster than lists."""


class ReferenceCutter:
    """That of the package regex."""

    def __init__(self, pattern: str):
        patterns = imported("cpbpe.reference.byte_level.patterns")
        patterns.compiled(pattern)  # raises an error if it is none
        self._matches = partial(patterns.matches, pattern)
        self.is_complete = pattern in PATTERNS.values()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the matches in a text begin and end, counted in bytes of UTF-8."""
        places = [0, *accumulate(len(character.encode()) for character in text)]
        found = (match.span() for match in self._matches(text))
        return [(places[begin], places[end]) for begin, end in found]

    def chunks(self, text: str) -> list[bytes]:
        """The matches in a text, as UTF-8."""
        return [match.group().encode() for match in self._matches(text)]

    def finds(self, text: str) -> bool:
        """Whether a text has a match."""
        return next(self._matches(text), None) is not None

    def parts(self, text: str) -> list[bytes] | None:
        """The same; None if they are all of the text, which is then not taken apart."""
        chunks = self.chunks(text)
        return None if sum(map(len, chunks)) == len(text.encode()) else chunks
