"""An `Encoding` as it is drawn: a cell for each token, and for each part of the text that has no token.

The rules of drawing are those of `cpbpe/text/drawn.py`; `shown.py` puts the cells into lines, and into HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from cpbpe.model.spec import PieceType
from cpbpe.text.drawn import share_a_character
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts

Kind = Literal["text", "byte", "special", "unknown", "removed"]
_BYTE = re.compile("<0x([0-9A-F]{2})>")


@runtime_checkable
class Drawable(Protocol):
    """What can be drawn: an `Encoding`. (It draws itself, so nothing here may import it.)"""

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
    """What is drawn: the piece, or the text that was copied or removed."""
    span: tuple[int, int]
    """The part of the text that it came from, in the units of the encoding."""
    surface: bytes
    """That part."""
    score: float | None = None
    """The score of the piece, if it is known and means something."""


class Group(NamedTuple):
    """Cells that are drawn together."""

    cells: tuple[Cell, ...]
    """One token; or all tokens that share characters."""
    together: bytes
    """What several spell together, in the order of the text; nothing for one."""


class Drawing(NamedTuple):
    """All that is drawn."""

    encoding: Drawable
    """The tokens."""
    groups: list[Group]
    """The cells of those that are drawn."""
    rest: str
    """What is said about the others; nothing if there are none."""


def groups_of(encoding: Drawable, limit: int | None) -> list[Group]:
    """The cells of the first tokens of an encoding, in their order."""
    # 1. The tokens in the order of the text: `reverse` turns them round.
    ends = [end for _, end in encoding.offsets]
    turned = any(following < end for end, following in pairwise(ends))
    numbers: Sequence[int] = range(len(ends) if limit is None else min(limit, len(ends)))
    all_there = len(numbers) == len(ends)
    if turned:
        numbers = numbers[::-1]
    # 2. Their cells, and those of the text between them. What comes before or after tokens that are not drawn
    #    is not removed text.
    cells = list(_cells(encoding, numbers, turned and not all_there, all_there or turned))
    # 3. Tokens that share a character.
    groups = list(_grouped(cells))
    if turned:
        groups = [Group(group.cells[::-1], group.together) for group in groups[::-1]]
    return groups


def _cells(encoding: Drawable, numbers: Sequence[int], from_first: bool, to_end: bool) -> Iterator[Cell]:
    """The cells of tokens in the order of the text."""
    text = given_text(encoding)
    offsets, ids = encoding.offsets, encoding.ids
    # Special tokens around the text have no part of it, so removed text is not counted from them.
    inner = [n for n in numbers if ids[n] not in encoding.special or offsets[n][0] < offsets[n][1]]
    last = inner[-1] if inner else -1
    at = offsets[inner[0]][0] if from_first and inner else 0
    if not inner and to_end:
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


def given_text(encoding: Drawable) -> str | bytes:
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
    if id in encoding.special:
        return Cell("special", number, id, name.encode(), span, surface)
    facts = encoding.facts
    if facts is None:  # an encoding that was pickled, or made by hand
        byte = _BYTE.fullmatch(name)
        if byte:
            return Cell("byte", number, id, bytes((int(byte[1], 16),)), span, surface)
        return Cell("text", number, id, name.encode(), span, surface)
    kind = facts.engine.kind(id) if id < facts.engine.size else PieceType.CONTROL
    if kind == PieceType.CONTROL:
        return Cell("special", number, id, name.encode(), span, surface)
    if kind == PieceType.UNKNOWN:
        return Cell("unknown", number, id, name.encode(), span, surface)
    if kind == PieceType.BYTE:
        return Cell("byte", number, id, facts.bytes_of(id), span, surface)
    return Cell("text", number, id, facts.engine.piece(id), span, surface, facts.engine.score(id))


def _grouped(cells: list[Cell]) -> Iterator[Group]:
    """Cells in groups: tokens that share a character come together."""
    shared = share_a_character([b"" if _stands_alone(cell) else cell.data for cell in cells])
    begin = 0
    for at in range(1, len(cells) + 1):
        if at < len(cells) and shared[at] and not _stands_alone(cells[at - 1]):
            continue
        members = tuple(cells[begin:at])
        yield Group(members, b"".join(cell.data for cell in members) if len(members) > 1 else b"")
        begin = at


def _stands_alone(cell: Cell) -> bool:
    return cell.kind not in ("text", "byte")
