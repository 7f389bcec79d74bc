"""`Shown`, which `Tokenizer.show` returns: the tokens of a text, drawn for a terminal and for a notebook."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import NamedTuple, SupportsIndex

from cpbpe.checks import checked_limit
from cpbpe.lazy import imported, kept
from cpbpe.spelling import counted
from cpbpe.text.drawn import (
    MAX_SPELLED,
    TERMINAL_COLOURS,
    in_one,
    in_terminal,
    isolated,
    parts_of,
    spelled,
    width,
)
from cpbpe.tokenizer.cells import Cell, Drawable, Drawing, Group, groups_of

LIMIT = 300
"""This many tokens are drawn, unless asked otherwise."""
COLUMNS = 100
"""The width of a drawing that is not for a terminal."""
_LEAST_COLUMNS = 20

_BORDER = "│"
_INNER = "┊"
"""The border between tokens that share a character."""
_REMOVED = "2;9"
"""Faint and crossed out."""
_SPECIAL = "7"
"""With the colours of the terminal exchanged."""


class _Column(NamedTuple):
    """A cell in a line: what is above, what is below, and how wide both are."""

    above: str
    below: str
    size: int
    joined: bool
    """Whether it shares a character with the column before it."""
    ends_line: bool
    """Whether it is a line break."""


@dataclass(frozen=True)
class Shown:
    r"""The tokens of a text, drawn: as text for a terminal, as HTML for a notebook or a page.

    >>> import cpbpe
    >>> print(cpbpe.load("tokenizer.model").show("Hello world 🦙"))
    ▁Hello│▁world│▁    │🦙 \xf0┊\x9f┊\xa6┊\x99
    22557 │1526  │28705│243    ┊162 ┊169 ┊156
    """

    encoding: Drawable
    """The `Encoding` that `Tokenizer.align` returns."""
    limit: int | None = LIMIT
    """At most this many tokens are drawn; None: all."""

    def __post_init__(self) -> None:
        if not isinstance(self.encoding, Drawable):
            raise TypeError(
                f"Shown() takes an Encoding, which align() returns, not {type(self.encoding).__name__}; "
                f"for a text use tok.show(text)"
            )
        if self.limit is not None:
            object.__setattr__(self, "limit", checked_limit(self.limit, "limit"))

    def __len__(self) -> int:
        return len(self.encoding.ids)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """A fragment of HTML that can be put in any page: without scripts, styles for others, or requests."""
        made: str = imported("cpbpe.tokenizer.shown_html").html_of(
            Drawing(self.encoding, self.groups, self.rest)
        )
        return made

    def text(
        self, *, colours: bool | None = None, columns: SupportsIndex | None = None, ids: bool = True
    ) -> str:
        """Lines of tokens, with their ids below them.

        `colours`: None means that the standard output decides: colours on a terminal, unless the environment
        variable NO_COLOR is set. `columns` is how wide lines may be: by default as the terminal, or 100.

        >>> import cpbpe
        >>> print(cpbpe.load("tokenizer.model").show("Hello world").text(ids=False))
        ▁Hello│▁world
        """
        terminal = bool(getattr(sys.stdout, "isatty", bool)())
        if colours is None:
            colours = terminal and "NO_COLOR" not in os.environ
        most = get_terminal_size((COLUMNS, 24)).columns if terminal else COLUMNS
        if columns is not None:
            most = checked_limit(columns, "columns", _LEAST_COLUMNS)
        if not self.groups:
            return self.rest or "(no tokens)"
        lines = []
        for row in _rows(list(_columns(self.groups, ids, colours, most)), most):
            lines += _lines(row, colours)
        return "\n".join([*lines, self.rest] if self.rest else lines)

    # --- What is drawn ----------------------------------------------------------------------------

    @kept
    def groups(self) -> list[Group]:
        """The cells that are drawn: one for each token, and for each part of the text that has no token."""
        return groups_of(self.encoding, self.limit)

    @kept
    def rest(self) -> str:
        """What is left out, and how to see it; nothing if all is drawn."""
        more = 0 if self.limit is None else len(self) - self.limit
        if more <= 0:
            return ""
        return f"… and {counted(more, 'more token')}; show(text, limit=None) draws all {len(self):,}"


# --- Lines ----------------------------------------------------------------------------------------


def _columns(groups: list[Group], ids: bool, colours: bool, most: int) -> Iterator[_Column]:
    """A column for each cell; several, one below the other, for one that is wider than a line."""
    for index, group in enumerate(groups):
        for place, cell in enumerate(group.cells):
            head = (
                f"{isolated(spelled(group.together, MAX_SPELLED))} " if place == 0 and group.together else ""
            )
            colour = _colour(cell, index) if colours else ""
            below = _below(cell) if ids else ""
            parts = parts_of(cell.data)
            text = "".join(map(in_one, parts))
            size = width(head) + width(text)
            ends_line = cell.data.endswith(b"\n")
            if size <= most:
                above = head + in_terminal(parts, colour)
                yield _Column(above, below, max(size, width(below)), place > 0, ends_line)
            else:
                pieces = list(_slices(head + text, most))
                for number, piece in enumerate(pieces):
                    above = f"\x1b[{colour}m{piece}\x1b[0m" if colour else isolated(piece)
                    is_last = number + 1 == len(pieces)
                    yield _Column(above, "" if number else below, most, False, is_last and ends_line)


def _slices(text: str, most: int) -> Iterator[str]:
    """A text in parts that fit a line."""
    part, used = "", 0
    for character in text:
        size = width(character)
        if used + size > most:
            yield part
            part, used = "", 0
        part += character
        used += size
    yield part


def _colour(cell: Cell, index: int) -> str:
    if cell.kind == "removed":
        return _REMOVED
    return _SPECIAL if cell.kind == "special" else TERMINAL_COLOURS[index % len(TERMINAL_COLOURS)]


def _below(cell: Cell) -> str:
    """The id; what else a plain drawing cannot show is said beside it."""
    if cell.kind == "removed":
        return "-"
    return f"{cell.id} unknown" if cell.kind == "unknown" else str(cell.id)


def _rows(columns: list[_Column], most: int) -> Iterator[list[_Column]]:
    """Columns in rows that fit, each of which ends where the text has a line break."""
    row: list[_Column] = []
    used = 0
    for column in columns:
        if row and used + 1 + column.size > most:
            yield row
            row, used = [], 0
        used += column.size + bool(row)
        row.append(column)
        if column.ends_line:
            yield row
            row, used = [], 0
    if row:
        yield row


def _lines(row: list[_Column], colours: bool) -> list[str]:
    """The lines of one row. Colours need no borders."""
    above = below = ""
    for place, column in enumerate(row):
        border = ""
        if place:
            border = _INNER if column.joined else " " if colours else _BORDER
        last = place + 1 == len(row)
        above += border + column.above + ("" if last else " " * (column.size - _drawn_width(column.above)))
        below += border + column.below + ("" if last else " " * (column.size - len(column.below)))
    if not any(column.below for column in row):  # without ids; or the rest of a long token
        return [above]
    return [above, f"\x1b[2m{below}\x1b[0m" if colours else below]


def _drawn_width(line: str) -> int:
    """How wide a line is, without the codes of its colours."""
    if "\x1b" in line:
        parts = line.split("\x1b[")
        line = parts[0] + "".join(part.partition("m")[2] for part in parts[1:])
    return width(line)
