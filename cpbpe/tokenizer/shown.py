"""`Shown`, which `Tokenizer.show` returns: the tokens of a text, drawn for a terminal and for a notebook.

There is a cell for each token, and for each part of the text that has no token; tokens that share a character
are drawn together. The rules of drawing are those of `cpbpe/text/drawn.py`.

In a terminal the cells stand in lines, with the ids below them. The HTML is a fragment without scripts, style
sheets or requests. In it, every token is isolated, in the sense of the rules of bidirectional text, and
neighbours that are read from right to left are put in one element with that direction. Everything about a
token is in its `title`, which the mouse shows, and in a table, for keyboards, screen readers and touch.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from shutil import get_terminal_size
from typing import Literal, NamedTuple, Protocol, SupportsIndex, runtime_checkable

from cpbpe.checks import checked_limit
from cpbpe.lazy import kept
from cpbpe.model.spec import PieceType
from cpbpe.spelling import advised, counted
from cpbpe.text.drawn import (
    FONT,
    HTML_COLOURS,
    MAX_SPELLED,
    TERMINAL_COLOURS,
    Direction,
    Part,
    byte_parts,
    chip,
    direction,
    html_table,
    in_html,
    in_one,
    in_terminal,
    isolated,
    parts_of,
    share_a_character,
    slices,
    spelled,
    width,
)
from cpbpe.text.utf8 import is_valid_utf8, text_of
from cpbpe.tokenizer.facts import ModelFacts

LIMIT = 300
"""This many tokens are drawn, unless asked otherwise."""
COLUMNS = 100
"""The width of a drawing that is not for a terminal."""
_LEAST_COLUMNS = 20
_BYTE = re.compile("<0x([0-9A-F]{2})>")

Kind = Literal["text", "byte", "special", "unknown", "removed"]
_KINDS: dict[int, Kind] = {
    PieceType.CONTROL: "special",
    PieceType.UNKNOWN: "unknown",
    PieceType.BYTE: "byte",
}


@runtime_checkable
class Drawable(Protocol):
    """What can be drawn: an `Encoding`. (Its module imports this one, so it cannot be imported here.)"""

    @property
    def ids(self) -> list[int]:
        """The ids."""

    @property
    def pieces(self) -> list[str]:
        """Their pieces."""

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The span of the text that each came from."""

    @property
    def text(self) -> str | bytes:
        """The text."""

    @property
    def unit(self) -> Literal["char", "byte"]:
        """What the offsets count."""

    @property
    def special(self) -> frozenset[int]:
        """The ids that are special tokens."""

    @property
    def facts(self) -> ModelFacts | None:
        """The model, if it is known."""


class Cell(NamedTuple):
    """One token; or a part of the text from which no token came."""

    kind: Kind
    """"text"; "byte", a byte that stands for itself because its character has no piece; "special"; "unknown";
    "removed", which is no token."""
    number: int
    """The place of the token in the encoding; -1 if there is none."""
    id: int
    """The id of the token; -1 if there is none."""
    data: bytes
    """What is drawn: the bytes of the piece, the name of a special token, or unknown or removed text."""
    span: tuple[int, int]
    """The part of the text that it came from, in the units of the encoding."""
    surface: bytes
    """That part."""
    score: float | None = None
    """The score of the piece, if it is known and means something."""

    @property
    def parts(self) -> list[Part]:
        """What is drawn."""
        return byte_parts(self.data) if self.kind == "byte" else parts_of(self.data)


class Group(NamedTuple):
    """Cells that are drawn together."""

    cells: tuple[Cell, ...]
    """One token; or all tokens that share characters."""
    together: bytes
    """What all cells spell together, in the order of the text, if there are several, or if the only one is a
    byte that is a whole character. Otherwise empty."""


@dataclass(frozen=True)
class Shown:
    r"""The tokens of a text, drawn: as text for a terminal, as HTML for a notebook or a page.

    >>> import cpbpe
    >>> print(cpbpe.load("tokenizer.model").show("Hello world 🦙"))
    ▁Hello│▁world│▁    │🦙 ‹F0›┊‹9F›┊‹A6›┊‹99›
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
        """A fragment of HTML for any page: it has no scripts or requests, nor styles for other elements."""
        encoding = self.encoding
        text = _given_text(encoding)
        summary = f"{counted(len(encoding.ids), 'token')}, {counted(len(text), _UNITS[encoding.unit][0])}"
        if not self.groups:
            rest = escape(self.rest or "no tokens")
            return f'<div role="group" aria-label="{summary}">{rest}</div>'
        given = encoding.text if isinstance(encoding.text, str) else text_of(encoding.text[:1000])
        base = direction(given[:1000]) or "ltr"
        rest = f"<div>{escape(self.rest)}</div>" if self.rest else ""
        return (
            f'<div role="group" aria-label="{summary}">'
            f'<div dir="{base}" style="{_WHOLE}">{_drawn(self)}</div>{rest}'
            f"<details><summary>{summary}</summary>{_table(self)}</details></div>"
        )

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
        """What is drawn: a cell for each token, and for each part of the text without one. Tokens that share
        a character are in one group.
        """
        # 1. The first `limit` ids, brought into the order of the text if `reverse` has reversed them.
        ends = [end for _, end in self.encoding.offsets]
        turned = any(following < end for end, following in pairwise(ends))
        numbers: Sequence[int] = range(len(ends) if self.limit is None else min(self.limit, len(ends)))
        all_there = len(numbers) == len(ends)
        if turned:
            numbers = numbers[::-1]
        # 2. Their cells, and those of the text between them. (Text before the first token or after the last
        #    one was removed only if all tokens on that side are drawn.)
        from_first, to_end = turned and not all_there, all_there or turned
        cells = list(_cells(self.encoding, numbers, from_first=from_first, to_end=to_end))
        # 3. Tokens that share a character.
        groups = list(_grouped(cells))
        return [Group(group.cells[::-1], group.together) for group in groups[::-1]] if turned else groups

    @kept
    def rest(self) -> str:
        """What is left out, and how to see it; nothing if all is drawn."""
        more = 0 if self.limit is None else len(self) - self.limit
        if more <= 0:
            return ""
        way = advised("show(text, limit=None)", "cpbpe show")
        return f"… and {counted(more, 'more token')}; {way} draws all {len(self):,}"


# --- Cells ----------------------------------------------------------------------------------------


def _cells(encoding: Drawable, numbers: Sequence[int], *, from_first: bool, to_end: bool) -> Iterator[Cell]:
    """The cells of tokens, in the order of the text, and of removed text.

    Text before the first of these tokens is not removed if `from_first`; text after the last one only is if
    `to_end`. (Tokens that are not drawn may have come from it.)
    """
    text = _given_text(encoding)
    offsets, ids = encoding.offsets, encoding.ids
    # Special tokens around the text have no part of it, so removed text is not counted from them.
    inner = [n for n in numbers if ids[n] not in encoding.special or offsets[n][0] < offsets[n][1]]
    last = inner[-1] if inner else -1
    at = offsets[inner[0]][0] if from_first and inner else 0
    if not inner and to_end and not from_first:
        yield from _removed(text, at, len(text))
        at = len(text)
    is_inner = set(inner)
    for number in numbers:
        begin, end = offsets[number]
        if number in is_inner:
            yield from _removed(text, at, begin)
            at = max(at, end)
        yield _cell(encoding, number, text)
        if number == last and to_end:
            yield from _removed(text, at, len(text))


def _given_text(encoding: Drawable) -> str | bytes:
    """The text as what the offsets count: characters or bytes."""
    text = encoding.text
    if encoding.unit == "char":
        return text if isinstance(text, str) else text_of(text)
    return text if isinstance(text, bytes) else text.encode()


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _removed(text: str | bytes, begin: int, end: int) -> Iterator[Cell]:
    if begin < end:
        data = _bytes(text[begin:end])
        yield Cell("removed", -1, -1, data, (begin, end), data)


def _cell(encoding: Drawable, number: int, text: str | bytes) -> Cell:
    """The cell of a token."""
    id, span, name = encoding.ids[number], encoding.offsets[number], encoding.pieces[number]
    surface = _bytes(text[span[0] : span[1]])
    facts, data, score = encoding.facts, name.encode(), None
    kind: Kind = "text"
    if facts is not None and facts.special.plain.get(name) == id:  # an added token that is not special
        return Cell("text", number, id, data, span, surface)
    if id in encoding.special or (facts is not None and id >= facts.engine.size):
        kind = "special"
    elif facts is not None:
        kind = _KINDS.get(facts.engine.kind(id), "text")
        if kind == "byte":
            data = facts.bytes_of(id)
        elif kind == "text":
            data, score = facts.engine.piece(id), facts.engine.score(id)
    elif byte := _BYTE.fullmatch(name):  # an encoding that was pickled, or made by hand
        kind, data = "byte", bytes((int(byte[1], 16),))
    return Cell(kind, number, id, data, span, surface, score)


def _grouped(cells: list[Cell]) -> Iterator[Group]:
    """Cells in groups: tokens that share a character come together."""
    shared = share_a_character([b"" if _stands_alone(cell) else cell.data for cell in cells])
    begin = 0
    for at in range(1, len(cells) + 1):
        if at < len(cells) and shared[at] and not _stands_alone(cells[at - 1]):
            continue
        members = tuple(cells[begin:at])
        together = b"".join(cell.data for cell in members)
        says_it_all = len(members) == 1 and (members[0].kind != "byte" or not is_valid_utf8(together))
        yield Group(members, b"" if says_it_all else together)
        begin = at


def _stands_alone(cell: Cell) -> bool:
    return cell.kind not in ("text", "byte")


# --- Lines ----------------------------------------------------------------------------------------

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


def _columns(groups: list[Group], ids: bool, colours: bool, most: int) -> Iterator[_Column]:
    """A column for each cell; several, one below the other, for one that is wider than a line."""
    for index, group in enumerate(groups):
        for place, cell in enumerate(group.cells):
            head = (
                f"{isolated(spelled(group.together, MAX_SPELLED))} " if place == 0 and group.together else ""
            )
            colour = _colour(cell, index) if colours else ""
            below = _below(cell) if ids else ""
            parts = cell.parts
            text = "".join(map(in_one, parts))
            size = width(head) + width(text)
            ends_line = cell.data.endswith(b"\n")
            if size <= most:
                above = head + in_terminal(parts, colour)
                yield _Column(above, below, max(size, width(below)), place > 0, ends_line)
            else:
                pieces = list(slices(head + text, most))
                for number, piece in enumerate(pieces):
                    above = f"\x1b[{colour}m{piece}\x1b[0m" if colour else isolated(piece)
                    is_last = number + 1 == len(pieces)
                    yield _Column(above, "" if number else below, most, False, is_last and ends_line)


def _colour(cell: Cell, index: int) -> str:
    if cell.kind == "removed":
        return _REMOVED
    return _SPECIAL if cell.kind == "special" else TERMINAL_COLOURS[index % len(TERMINAL_COLOURS)]


def _below(cell: Cell) -> str:
    """The id, and whether the token is unknown, which is not visible otherwise."""
    if cell.kind == "removed":
        return "-"
    return f"{cell.id} unknown" if cell.kind == "unknown" else str(cell.id)


def _rows(columns: list[_Column], most: int) -> Iterator[list[_Column]]:
    """Columns in rows that fit. A row also ends where the text has a line break."""
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


# --- HTML -----------------------------------------------------------------------------------------

_WHOLE = f"line-height:1.8;{FONT};overflow-wrap:anywhere"
_TOKEN = "display:inline-block;max-width:100%;line-height:1.4;border-radius:3px;padding:0 2px;margin:1px"
_STYLES = {
    "text": "",
    "byte": "",
    "special": ";outline:1px solid currentColor;outline-offset:-1px;font-weight:bold",
    "unknown": ";outline:1px dashed currentColor;outline-offset:-1px",
    "removed": ";opacity:.6;text-decoration:line-through",
}
_NOTES = {
    "text": "",
    "byte": "a byte of a character that has no piece",
    "special": "special token",
    "unknown": "unknown: no piece has this text",
    "removed": "no token came from this text",
}
_UNITS = {"char": ("character", "characters"), "byte": ("byte", "bytes")}
_MOST_IN_TITLE = 60


# --- Tokens ---------------------------------------------------------------------------------------


def _drawn(shown: Shown) -> str:
    """All tokens. Neighbours of one direction are in an element of that direction."""
    groups = shown.groups
    directions = _directions([_direction(group) for group in groups])
    rows = zip(groups, directions, range(len(groups)), strict=True)
    several = len(set(directions)) > 1
    made = ""
    for reading, members in groupby(rows, key=lambda row: row[1]):
        line = "".join(_group(shown, group, index) for group, _, index in members)
        made += f'<bdi dir="{reading}">{line}</bdi>' if several else line
    return made


def _direction(group: Group) -> Direction:
    """The direction of a group. A special token, whatever it is called, has none."""
    if group.cells[0].kind == "special":
        return ""
    text = text_of(b"".join(cell.data for cell in group.cells))
    return direction(text) or ("ltr" if any(map(str.isdigit, text)) else "")


def _directions(found: list[Direction]) -> list[Direction]:
    """The direction that each token is read in. (Digits run from left to right in nearly every script.)

    A token without a letter takes the direction of its neighbours if they agree, otherwise that of the text.
    """
    left: Direction = "ltr"
    base = next((one for one in found if one), left)
    before, after = _last_known(found, base), _last_known(found[::-1], base)[::-1]
    return [one if one == other else base for one, other in zip(before, after, strict=True)]


def _last_known(found: list[Direction], last: Direction) -> list[Direction]:
    """Each direction; for one that is unknown, the last known one before it, or at first `last`."""
    return [last := one or last for one in found]


def _group(shown: Shown, group: Group, index: int) -> str:
    """One token, or several that share characters, in a frame with what they spell together."""
    colour = HTML_COLOURS[index % len(HTML_COLOURS)]
    breaks = "<br>" if group.cells[-1].data.endswith(b"\n") else ""
    if not group.together:
        return _token(shown, group.cells[0], colour, "") + breaks
    label = spelled(group.together, MAX_SPELLED) if len(group.cells) > 1 else ""
    inner = "".join(_token(shown, cell, colour, label) for cell in group.cells)
    together = in_html(parts_of(group.together, MAX_SPELLED))
    head = f'<bdi style="padding:0 2px">{together}</bdi>'
    outline = f"{_TOKEN};outline:1px solid {colour}"
    return f'<span style="{outline}">{head}{inner}</span>{breaks}'


def _token(shown: Shown, cell: Cell, colour: str, label: str) -> str:
    background = "" if cell.kind == "removed" else f";background-color:{colour}"
    style = f"{_TOKEN}{background}{_STYLES[cell.kind]}"
    tag = "del" if cell.kind == "removed" else "bdi"
    return chip(cell.parts, style, " · ".join(_facts(shown, cell, label)), tag)


def _facts(shown: Shown, cell: Cell, label: str) -> list[str]:
    """What is known about a token, for its title."""
    facts = [] if cell.number < 0 else [f"id {cell.id}", f"piece {_name(shown, cell)}"]
    if cell.number >= 0:
        facts.append(f"text {isolated(spelled(cell.surface, _MOST_IN_TITLE)) or '(none)'}")
    begin, end = cell.span
    facts.append(f"{_UNITS[shown.encoding.unit][1]} {begin}–{end}")
    facts += [_score(shown, cell)] if cell.score is not None else []
    facts += [_NOTES[cell.kind]] if _NOTES[cell.kind] else []
    return [*facts, f"a part of {isolated(label)}"] if label else facts


def _name(shown: Shown, cell: Cell) -> str:
    """The piece as the vocabulary spells it, with escapes for bytes that are not text."""
    if cell.kind == "byte":
        return shown.encoding.pieces[cell.number]
    return isolated(spelled(cell.data, _MOST_IN_TITLE))


def _score(shown: Shown, cell: Cell) -> str:
    """The score; in a byte-level model, where it is a rank with a minus sign, the rank."""
    facts, score = shown.encoding.facts, cell.score or 0.0
    return f"rank {0 - score:.0f}" if facts is not None and facts.is_byte_level else f"score {score}"


# --- The table ------------------------------------------------------------------------------------


def _table(shown: Shown) -> str:
    """The tokens with everything about them, a row each."""
    unit = _UNITS[shown.encoding.unit][1]
    facts = shown.encoding.facts
    score = "rank" if facts is not None and facts.is_byte_level else "score"
    rows = (_row(shown, cell) for group in shown.groups for cell in group.cells)
    style = ' style="border-spacing:.7em 0;text-align:left"'
    return html_table(("", "id", "piece", "text", unit, score, ""), rows, "", style)


def _row(shown: Shown, cell: Cell) -> list[str]:
    begin, end = cell.span
    score = "" if cell.score is None else _score(shown, cell).partition(" ")[2]
    is_token = cell.number >= 0
    columns = (
        str(cell.number) if is_token else "",
        str(cell.id) if is_token else "",
        escape(_name(shown, cell)) if is_token else "",
        in_html(parts_of(cell.surface, _MOST_IN_TITLE)),
        f"{begin}–{end}",
        score,
        escape(_NOTES[cell.kind]),
    )
    return [f"<bdi>{column}</bdi>" for column in columns]
