r"""The regular expressions that may cut texts of a byte-level model: those that mean the same in all engines.

The core uses the crate `fancy-regex`, the reference engine the package `regex`. Each has syntax that the
other does not know, or reads differently (`[a-z&&[^b]]`, `\X`, `(?R)`), and nested repeats can make both use
any amount of memory. So a pattern may have only what is listed here. Everything else is refused, with the
same words in both engines.
"""

from __future__ import annotations

import re
from typing import NoReturn

from cpbpe.errors import ModelError
from cpbpe.text.split_patterns import name_of

MOST_NESTED = 32
"""How deep groups may be nested."""
MOST_REPEATED = 1000
"""How often something may be repeated, nested repeats multiplied."""
MOST_EXPANDED = 20_000
"""How many parts a pattern may have when its repeats are written out."""

_GROUP = re.compile(
    r"\((?:\?(?::|=|!|>|<=|<!|P?<[A-Za-z_][A-Za-z0-9_]*>|[imsx]+(?:-[imsx]+)?:|-[imsx]+:)|(?!\?))"
)
_LOOK = re.compile(r"\(\?<?[=!]")
_PLACE = re.compile(r"[$^]|\\[bBAzZ]")
_FLAGS = re.compile(r"\(\?[imsx]+\)")
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{\^?[A-Za-z_=&.: -]+\}|[A-Z])|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}"
    r"|[bB](?!\{)|[sSdDwWAzZrntfv1-9]|[^A-Za-z0-9<>])",
    re.DOTALL,
)
_OTHER = re.compile(r"\\[pP]\{\^?(?:print|graph)\}", re.IGNORECASE)
_RANGE = re.compile(r"\\[pPsSdDwW](?:\{[^}]*\}|(?<=[pP])[A-Z])?-[^\]]|(?:\\.|[^\\])-\\[pPsSdDwW]", re.DOTALL)
_REPEAT = re.compile(r"(?:[*+?]|\{(?=,?[0-9])([0-9]{0,6})(,([0-9]{0,6}))?\})[+?]?")
_SETS = ("&&", "--", "~~", "||")
_IN_LINES = re.compile(r"\(\?[isx]*m")
"""A flag that makes `$` the end of a line."""
_PART = re.compile(r"\\(?:x\{([0-9A-Fa-f]{1,6})\}|.)|[]$[]", re.DOTALL)
"""An escape, which may be that of a code point; the end of a text; where a class begins or ends."""


def check_syntax(pattern: str) -> None:
    r"""Raise a ModelError if a pattern has something that not every engine reads alike.

    >>> check_syntax(r" ?\p{L}+|\p{N}{1,3}|\s+(?!\S)")
    >>> check_syntax(r"a)")
    Traceback (most recent call last):
    ...
    cpbpe.errors.ModelError: the pattern 'a)': at position 1, a group is closed that was not opened
    """
    if not name_of(pattern):
        _Reader(pattern).read()


def for_regex(pattern: str) -> str:
    r"""Return a pattern as the package `regex` writes it.

    It has no escapes like ``\x{1f642}``. Its `$` may also be in front of the last line break of a text, and
    its `\Z` only at the very end; in fancy-regex it is the other way round.

    >>> for_regex(r"\x{1f642}+|\\x{2}|[$]$")
    '\\U0001f642+|\\\\x{2}|[$]\\Z'
    """
    in_lines = _IN_LINES.search(pattern) is not None
    in_class = False

    def written(part: re.Match[str]) -> str:
        nonlocal in_class
        if part[1] is not None:
            return rf"\U{part[1].zfill(8)}"
        if part[0] in "[]":
            in_class = part[0] == "["
        elif part[0] == "$" and not in_class and not in_lines:
            return r"\Z"
        return r"(?=\n*\Z)" if part[0] == r"\Z" else part[0]

    return _PART.sub(written, pattern)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str):
        self._pattern = pattern
        self._at = 0

    def _wrong(self, problem: str, at: int | None = None) -> NoReturn:
        shown = repr(self._pattern)
        shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
        raise ModelError(f"the pattern {shown}: at position {self._at if at is None else at}, {problem}")

    def read(self) -> None:
        """Read the whole pattern, without recursion, because a pattern may be nested to any depth."""
        pattern = self._pattern
        # How many parts each open group has so far when its repeats are written out, and where it begins.
        sizes, begins = [0], [0]
        last = 0  # the size of what a repeat would repeat; 0 if there is nothing
        empties = [[True]]  # for each open group, whether each alternative may match nothing so far
        while self._at < len(pattern):
            letter = pattern[self._at]
            if flags := _FLAGS.match(pattern, self._at):
                self._at, last = flags.end(), 0
                continue
            if letter == "(":
                found = _GROUP.match(pattern, self._at)
                if found is None:
                    named = pattern[self._at : self._at + 3]
                    self._wrong(f"{named!r} is a group of a kind that not every engine knows")
                if len(sizes) > MOST_NESTED:
                    self._wrong(f"groups are nested more than {MOST_NESTED} deep")
                begins.append(self._at)
                sizes.append(0)
                empties.append([True])
                self._at, last = found.end(), 0
                continue
            empty = _PLACE.match(pattern, self._at) is not None
            if letter == ")":
                if len(sizes) == 1:
                    self._wrong("a group is closed that was not opened")
                looks = _LOOK.match(pattern, begins.pop())
                last = sizes.pop() + 1
                self._at += 1
                empty = any(empties.pop()) or looks is not None
                if empty and _REPEAT.match(pattern, self._at):
                    self._wrong("what may match nothing is repeated")
            elif letter == "|":
                self._at, last = self._at + 1, 0
                empties[-1].append(True)
                continue
            elif letter == "[":
                self._read_class()
                last = 1
            elif letter == "\\":
                self._read_escape()
                last = 1
            elif letter in "*+?" or (letter == "{" and _REPEAT.match(pattern, self._at)):
                self._wrong("there is nothing to repeat")
            else:
                self._at, last = self._at + 1, 1
            least, most = self._read_repeat(last)
            sizes[-1] += last * most
            if least and not empty:
                empties[-1][-1] = False
            if sizes[-1] > MOST_EXPANDED:
                self._wrong(f"with its repeats written out, it has more than {MOST_EXPANDED:,} parts")
        if len(sizes) > 1:
            self._wrong("a group is not closed", begins[-1])

    def _read_repeat(self, size: int) -> tuple[int, int]:
        """Return how often something of this size is repeated, at least and at most.

        A repeat without an upper limit counts as its least number, or as one.
        """
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            return 1, 1
        least = int(found[1] or 0) if found[0][0] == "{" else int(found[0][0] == "+")
        most = max(least, int(found[3] or 1))
        if most > MOST_REPEATED or size * most > MOST_EXPANDED:
            self._wrong(f"it repeats too much; the most is {MOST_REPEATED:,} times")
        if found[3] and int(found[3]) < least:
            self._wrong("the least number of repeats is above the most")
        self._at = found.end()
        return least, most

    def _read_escape(self) -> None:
        found = _ESCAPE.match(self._pattern, self._at)
        if found is None:
            named = self._pattern[self._at : self._at + 2]
            self._wrong(f"{named!r} is an escape that not every engine knows")
        if _OTHER.match(found[0]):
            self._wrong(f"{found[0]!r} has other characters in other engines")
        self._at = found.end()

    def _read_class(self) -> None:
        pattern, begin = self._pattern, self._at
        self._at += 2 if pattern[begin + 1 : begin + 2] == "^" else 1
        if pattern[self._at : self._at + 1] == "]":
            self._wrong("a class of characters begins with ']', which needs a backslash")
        while self._at < len(pattern):
            letter = pattern[self._at]
            if letter == "]":
                self._at += 1
                return
            if letter == "[" or pattern[self._at : self._at + 2] in _SETS:
                self._wrong("a class of characters in another one is not the same for every engine")
            if _RANGE.match(pattern, self._at):
                self._wrong("a range has a class of characters at its end")
            if letter == "\\":
                self._read_escape()
            else:
                self._at += 1
        self._wrong("a class of characters is not closed", begin)
