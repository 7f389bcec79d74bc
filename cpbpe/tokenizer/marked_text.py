"""Texts that remember where each of their characters came from: `Marked`.

A chat template is a program that makes one text of many. To tell apart afterwards what the template has
written and what somebody has said, it is given strings of this class. They are equal to ordinary ones, and
what templates do with strings (cutting, joining, trimming, replacing) works as before; but the result knows
the origin of every character. Marks inside the text would not do: a template may ask for the first characters
of a message, trim it, or split it, and would meet the marks.

A method of `str` that is not overridden here loses the origins: its result is an ordinary `str`, all of
whose characters are `UNKNOWN`. A missing method does no harm beyond that. Only a mistake in a method that is
here could turn what somebody has said into something that the template has written. So the tests compare
`Marked` with lists of characters, and run random expressions in which every character shows who said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, Literal, NamedTuple, SupportsIndex

Kind = Literal["written", "said", "unknown"]


class Origin(NamedTuple):
    """Where characters came from."""

    kind: Kind
    """Whether the template wrote them, the caller gave them, or nobody knows."""
    message: int | None = None
    """The number of the message that said them; None if none did, or nobody knows."""
    field: str = ""
    """The field of that message, such as "content"."""
    generated: bool | None = False
    """Whether they are inside of {% generation %}; None if nobody knows."""


class Run(NamedTuple):
    """Some characters with one origin."""

    size: int
    origin: Origin


WRITTEN = Origin("written")
UNKNOWN = Origin("unknown", generated=None)


class Marked(str):
    """A text whose characters have origins. (What is not said about a method is as in `str`.)

    >>> said = Marked("  Hi  ", [Run(6, Origin("said", 0))])
    >>> text = Marked("<user>", [Run(6, WRITTEN)]) + said.strip()
    >>> text, [(run.size, run.origin.kind) for run in text.runs]
    ('<user>Hi', [(6, 'written'), (2, 'said')])
    """

    __slots__ = ("runs",)
    runs: tuple[Run, ...]

    def __new__(cls, text: str, runs: Iterable[Run] | None = None) -> Marked:
        """`runs` are in the order of the text; None: nobody knows."""
        made = super().__new__(cls, text)
        made.runs = runs_of(text) if runs is None else tuple(runs)
        return made

    def cuts(self, spans: Iterable[tuple[int, int]]) -> Iterator[Marked]:
        """The parts of the text at these spans. The spans must be in the order of the text, and not overlap.

        This goes through the runs once for all spans, since there can be as many runs as spans.
        """
        number, at = 0, 0  # the first run that goes beyond `begin`, and where it begins
        for begin, end in spans:
            while number < len(self.runs) and at + self.runs[number].size <= begin:
                at += self.runs[number].size
                number += 1
            runs, place, later = [], at, number
            while place < end:
                size, origin = self.runs[later]
                runs.append(Run(min(end, place + size) - max(begin, place), origin))
                place += size
                later += 1
            yield Marked(str.__getitem__(self, slice(begin, end)), runs)

    def cut(self, begin: int, end: int) -> Marked:
        """The characters from `begin` to `end`, which must be in order and inside of the text."""
        return next(self.cuts([(begin, end)]))

    def parts(self, found: Iterable[str], gap: int | None) -> list[Marked]:
        """The parts that a method of `str` has found, in the order of the text, with their origins.

        `gap`: how many characters are between two parts; None: whitespace of any width.
        """
        spans, at = [], 0
        for part in found:
            begin = self.find(part, at) if gap is None else at
            spans.append((begin, begin + len(part)))
            at = begin + len(part) + (gap or 0)
        return [*self.cuts(spans)]

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        if not isinstance(other, str) or hasattr(other, "__html__"):
            return NotImplemented
        return joined((self, other))

    def __radd__(self, other: str) -> str:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return joined([self] * index(times)) if hasattr(times, "__index__") else NotImplemented

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> str:
        if not isinstance(key, slice):
            at: int = range(len(self))[key]
            return self.cut(at, at + 1)
        begin, end, step = key.indices(len(self))
        return self.cut(begin, max(begin, end)) if step == 1 else joined([*self][key])

    def __iter__(self) -> Iterator[str]:
        return self.cuts((at, at + 1) for at in range(len(self)))

    def lstrip(self, chars: str | None = None) -> str:
        """The text without characters at its beginning."""
        return self.cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None) -> str:
        """The text without characters at its end."""
        return self.cut(0, len(str.rstrip(self, chars)))

    def strip(self, chars: str | None = None) -> str:
        """The text without characters at both ends."""
        begin = len(self) - len(str.lstrip(self, chars))
        return self.cut(begin, max(begin, len(str.rstrip(self, chars))))

    def removeprefix(self, prefix: str, /) -> str:
        """The text without a beginning."""
        return self.cut(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> str:
        """The text without an end."""
        return self.cut(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Any]:
        """The parts between separators."""
        return self.parts(str.split(self, sep, maxsplit), None if sep is None else len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Any]:
        """The parts between separators, of which the last ones count."""
        return self.parts(str.rsplit(self, sep, maxsplit), None if sep is None else len(sep))

    def splitlines(self, keepends: bool = False) -> list[Any]:
        """The lines."""
        ends = [0]
        for line in str.splitlines(self, True):
            ends.append(ends[-1] + len(line))
        lines = str.splitlines(self, keepends)
        return [*self.cuts((begin, begin + len(line)) for begin, line in zip(ends, lines, strict=False))]

    def partition(self, sep: str, /) -> tuple[Any, Any, Any]:
        """What is before, at and after the first separator."""
        before, found, after = self.parts(str.partition(self, sep), 0)
        return before, found, after

    def rpartition(self, sep: str, /) -> tuple[Any, Any, Any]:
        """What is before, at and after the last separator."""
        before, found, after = self.parts(str.rpartition(self, sep), 0)
        return before, found, after

    def replace(self, old: str, new: str, /, count: SupportsIndex = -1) -> str:
        """The text with `new` in place of `old`. (`count` has a name from Python 3.13 on.)"""
        if not old or not isinstance(new, str):
            return str.replace(self, old, new, count)
        return spread(new, self.split(old, count))

    def join(self, parts: Iterable[str], /) -> str:
        """The parts with this text between them."""
        return spread(self, parts)

    # (In these, characters may become more or fewer, so that only a text with one origin keeps it.)

    def lower(self) -> str:
        """The text in small letters."""
        return derived(str.lower(self), [self])

    def upper(self) -> str:
        """The text in capitals."""
        return derived(str.upper(self), [self])

    def capitalize(self) -> str:
        """The text with a capital at its beginning."""
        return derived(str.capitalize(self), [self])

    def title(self) -> str:
        """The text with a capital at the beginning of each word."""
        return derived(str.title(self), [self])


def runs_of(text: str) -> tuple[Run, ...]:
    """The origins of any text."""
    return text.runs if isinstance(text, Marked) else (Run(len(text), UNKNOWN),)


def joined(parts: Iterable[str]) -> Marked:
    """Texts one after the other."""
    listed = list(parts)
    runs: list[Run] = []
    for part in filter(None, listed):
        own = runs_of(part)
        if runs and runs[-1].origin == own[0].origin:
            runs[-1] = Run(runs[-1].size + own[0].size, own[0].origin)
            own = own[1:]
        runs += own
    return Marked("".join(listed), runs)


def spread(separator: str, parts: Iterable[str]) -> Marked:
    """Texts with a separator between them."""
    listed: list[str] = []
    for part in parts:
        listed += (separator, part)
    return joined(listed[1:])


def derived(text: str, sources: Iterable[str]) -> Marked:
    """A text that was made from others, of which each character may have become anything.

    If all sources have one origin, so has the result; if they are all empty, it is the template's. Otherwise
    its origin is unknown, except that the message and `generated` are kept where they are clear.
    """
    origins = {run.origin for source in sources for run in runs_of(source) if run.size}
    if len(origins) > 1:
        flags = {origin.generated for origin in origins}
        said_by = {(origin.message, origin.field) for origin in origins if origin.kind != "written"}
        message, field = said_by.pop() if len(said_by) == 1 else (None, "")
        origins = {Origin("unknown", message, field, flags.pop() if len(flags) == 1 else None)}
    return Marked(text, [Run(len(text), origins.pop() if origins else WRITTEN)])


def written(text: str) -> Marked:
    """A text that the template has written."""
    return Marked(text, [Run(len(text), WRITTEN)])


def marked_json(text: str, value: Any, sort_keys: bool) -> Marked:
    """`text`, which is `value` as JSON; each string in it has the origin of the string that it stands for.

    There must be no quotation marks in it but those of strings, and those that they escape.
    """
    parts, at = [], 0
    for literal, string in zip(_LITERAL.finditer(text), _strings(value, sort_keys), strict=True):
        parts += [written(text[at : literal.start()]), derived(literal[0], [string])]
        at = literal.end()
    return joined([*parts, written(text[at:])])


_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def _strings(value: Any, sort_keys: bool) -> Iterator[str]:
    """The strings of a value in the order in which JSON has them. There, numbers as keys are strings, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, own in sorted(value.items()) if sort_keys else value.items():
            yield key if isinstance(key, str) else written(str(key))
            yield from _strings(own, sort_keys)
    elif isinstance(value, (list, tuple)):
        for own in value:
            yield from _strings(own, sort_keys)


def generated(text: str) -> Marked:
    """The same text, as one that is inside of {% generation %}."""
    return Marked(text, [Run(size, origin._replace(generated=True)) for size, origin in runs_of(text)])


def marked(value: Any, origin: Origin) -> Any:
    """The same value, all of whose texts have this origin: a text, a number, or lists and dicts of these."""
    if isinstance(value, str):
        return Marked(value, [Run(len(value), origin)])
    if isinstance(value, dict):
        return {marked(key, origin): marked(own, origin) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(marked(own, origin) for own in value)
    return value
