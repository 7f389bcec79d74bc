"""What an `Encoding` consists of: runs of tokens, whose columns are made when somebody looks at them.

Most programs want ids, and some a mask. Tokens as text, offsets and words take many times as long to make, so
they are made only when they are asked for, for the text at hand. A run never changes: to cut, pad or merge an
encoding is to make another list of runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cpbpe.lazy import kept
from cpbpe.tokenizer.special_tokens import SPACES

_SPACES = {*SPACES, "Ġ"}
Span = tuple[int, int]
Trim = tuple[bool, int]
"""Whether the first space of a text stays, and the place in the source at which the encoding begins."""
Details = tuple[list[str], list[Span], list[int | None]]
"""Tokens, offsets and words."""


class Source:
    """The tokens of one text, or of something that is put around texts."""

    def __init__(self, ids: list[int], make: Callable[[], Details]):
        self.ids = ids
        """The ids."""
        self._make = make

    @kept
    def details(self) -> Details:
        """Their tokens, offsets and words."""
        return self._make()

    @classmethod
    def of(cls, ids: list[int], details: Details) -> Source:
        """A source whose details are known."""
        return cls(ids, lambda: details)

    @classmethod
    def blank(cls, ids: list[int], token: str = "") -> Source:
        """A source without offsets and words."""
        return cls(ids, lambda: ([token] * len(ids), [(0, 0)] * len(ids), [None] * len(ids)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Source.of, (self.ids, self.details)


class Run(NamedTuple):
    """A part of a source, with what is the same for all of its tokens."""

    source: Source
    start: int
    stop: int
    type_id: int = 0
    special: int = 0
    """1 for what is not from a text."""
    attention: int = 1
    """0 for padding."""
    shift: int = 0
    """What is added to offsets."""
    trims: tuple[Trim, ...] = ()
    """How spaces are taken out of offsets, in this order."""

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Run:
        """The tokens between two places, counted from the beginning of the run."""
        if start <= 0 and stop >= self.length:
            return self
        return self._replace(start=self.start + max(start, 0), stop=min(self.start + stop, self.stop))

    def moved(self, by: int) -> Run:
        """The same with other offsets."""
        return self._replace(shift=self.shift + by) if by else self

    def typed(self, type_id: int) -> Run:
        """The same with another type."""
        return self if self.type_id == type_id else self._replace(type_id=type_id)

    def column(self, name: str) -> list[Any]:
        """One of the lists of an encoding."""
        if name == "ids":
            ids = self.source.ids
            return ids if self.stop - self.start == len(ids) else ids[self.start : self.stop]
        if name in ("type_id", "special", "attention"):
            return [getattr(self, name)] * self.length
        tokens, offsets, words = self.source.details
        if name == "tokens":
            return tokens[self.start : self.stop]
        if name == "words":
            return words[self.start : self.stop]
        spans = offsets[self.start : self.stop]
        for keeps_prefix, first in self.trims:
            spans = _trimmed(tokens[self.start : self.stop], spans, keeps_prefix, first - self.start)
        by = self.shift
        return [(begin + by, end + by) for begin, end in spans] if by else spans


def _trimmed(tokens: list[str], spans: list[Span], keeps_prefix: bool, first: int) -> list[Span]:
    """The spans of tokens without the spaces at their ends.

    >>> _trimmed(["Ġa", "ĠĠ"], [(0, 2), (2, 4)], False, 0), _trimmed(["Ġa"], [(0, 1)], True, 0)
    ([(1, 2), (4, 4)], [(0, 1)])
    """
    found = []
    for at, (token, (begin, end)) in enumerate(zip(tokens, spans, strict=True)):
        leading, trailing = _spaces(token), _spaces(token[::-1])
        if leading == 1 and keeps_prefix and (at == first or begin == 0):
            leading = 0  # (of several, none was put in front)
        begin = min(begin + leading, end)
        found.append((begin, max(end - trailing, begin) if end >= trailing else end))
    return found


def _spaces(token: str) -> int:
    """How many spaces a token of letters begins with."""
    return next((at for at, letter in enumerate(token) if letter not in _SPACES), len(token))


def run(source: Source, **fields: Any) -> Run:
    """A whole source as a run."""
    return Run(source, 0, len(source.ids), **fields)


def cut(runs: list[Run], start: int, stop: int) -> list[Run]:
    """The tokens between two places."""
    found = []
    for part in runs:
        if start < part.length and stop > 0:
            found.append(part.part(start, stop))
        start -= part.length
        stop -= part.length
    return [part for part in found if part.length]


def windows(length: int, most: int, stride: int, direction: str) -> list[Span]:
    """Where the parts of an encoding begin and end that has too many tokens.

    `stride` is how many tokens two of them share. The first one is what stays of the encoding.

    >>> windows(5, 3, 1, "right"), windows(4, 3, 1, "left")
    ([(0, 3), (2, 5)], [(1, 4), (0, 2)])
    """
    step = most - stride
    count = 1 + -(-max(length - most, 0) // step)
    if direction == "right":
        return [(at * step, min(at * step + most, length)) for at in range(count)]
    return [(max(length - at * step - most, 0), length - at * step) for at in range(count)]
