"""How a piece is built from single characters: which two parts merge, and in which order.

A merge across the border of a piece would take away a part of it. So a text yields the piece only if its
characters merge among themselves, in the same order as in a text that is nothing but the piece. It is
therefore enough to encode the piece itself, without normalizing it. If that ends with several symbols, no
text yields the piece.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cpbpe.lint.merging import Merging, Symbol
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import MERGEABLE
from cpbpe.text.utf8 import text_of

MAX_CHARACTERS = 10_000
"""A longer piece is not taken apart: sentencepiece trains none of more than 512 characters."""


class Merge(NamedTuple):
    """One step: two neighbouring symbols become a piece."""

    left: str
    """The left part."""
    right: str
    """The right part."""
    made: str
    """The piece that they become."""
    id: int
    """Its id."""
    rank: int
    """Its place among all merges, from 1 for the highest score; equal scores have the same rank."""
    score: float
    """Its score."""


@dataclass(frozen=True)
class Built:
    """How one piece is built."""

    piece: str
    """The piece."""
    id: int
    """Its id."""
    type: str
    """Its type, as `PieceType` names it."""
    score: float
    """Its score."""
    symbols: tuple[str, ...]
    """What it begins as: characters, and user-defined pieces."""
    merges: tuple[Merge, ...]
    """The merges, in the order in which they happen."""
    ends_as: tuple[str, ...]
    """What is left when nothing can merge any more: the piece itself, or several symbols."""
    note: str
    """A remark about the piece, in a sentence, or an empty text."""

    @property
    def is_made(self) -> bool:
        """Whether merging makes it of its own text, which no rule rewrites and no pattern cuts before.

        Whether a text can yield it, `Tokenizer.witness` tells.
        """
        return self.type in ("NORMAL", "USER_DEFINED") and self.ends_as == (self.piece,)

    def to_dict(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {
            "piece": self.piece,
            "id": self.id,
            "type": self.type,
            "score": json_number(self.score),
            "is_made": self.is_made,
            "symbols": list(self.symbols),
            "merges": [{**merge._asdict(), "score": json_number(merge.score)} for merge in self.merges],
            "ends_as": list(self.ends_as),
            "note": self.note,
        }


def json_number(score: float | None) -> float | str | None:
    """A score as JSON can hold it: as text if it is infinite or not a number.

    >>> json_number(-1.5), json_number(float("inf"))
    (-1.5, 'inf')
    """
    return score if score is None or abs(score) < float("inf") else str(score)


_NOTES = {
    PieceType.UNKNOWN: "It stands for whatever has no piece, and is not built from its text.",
    PieceType.CONTROL: "A program inserts it; text that spells it out is cut into other pieces.",
    PieceType.BYTE: "It stands for a byte of a character that has no piece, and is not built from its text.",
    PieceType.USER_DEFINED: "It is found in the text, whole, before anything merges.",
    PieceType.UNUSED: "It is UNUSED: it takes part in merging, but is taken apart again in the end.",
}


def built(spec: ModelSpec, id: int) -> Built:
    """How the piece with an id is built.

    >>> from cpbpe.model.spec import Piece, Pieces
    >>> texts = ["ab", "ra", "abra", "a", "b", "r"]
    >>> toy = ModelSpec(Pieces.of([Piece(text.encode(), -rank) for rank, text in enumerate(texts)]))
    >>> [merge[:5] for merge in built(toy, 2).merges]
    [('a', 'b', 'ab', 0, 1), ('r', 'a', 'ra', 1, 2), ('ab', 'ra', 'abra', 2, 3)]
    """
    scores, merging = spec.pieces.numbers(), Merging(spec)
    text, type = spec.pieces.texts[id], PieceType(spec.pieces.types[id])
    shown, score, note = text_of(text), scores[id], _NOTES.get(type, "")
    if type in MERGEABLE and len(shown) > MAX_CHARACTERS and type != PieceType.USER_DEFINED:
        note = f"It has more than {MAX_CHARACTERS:,} characters, and is not taken apart here."
        return Built(shown, id, type.name, score, (), (), (), note)
    if type not in MERGEABLE:
        return Built(shown, id, type.name, score, (), (), (shown,), note)

    def named(symbols: Iterable[Symbol]) -> tuple[str, ...]:
        return tuple(text_of(text[symbol.begin : symbol.end]) for symbol in symbols)

    symbols = merging.symbols(text)
    left, steps = merging.run(text)
    ranks = sorted(merging.ranks.values())
    merges = []
    for begin, middle, end in steps:
        parts = text_of(text[begin:middle]), text_of(text[middle:end])
        made = spec.ids[text[begin:end]]
        rank = bisect_left(ranks, merging.ranks[text[begin:end]]) + 1
        merges.append(Merge(*parts, text_of(text[begin:end]), made, rank, scores[made]))
    ends_as = named(left)
    if spec.ids.get(text) != id:
        note = "No text yields it: another piece has the same text, or none is ever found."
        ends_as = ()
    elif type == PieceType.USER_DEFINED and len(symbols) > 1:
        note = "No text yields it: it begins with too many user-defined pieces, and one of them is found."
    elif len(left) > 1 and spec.whole:
        note = "No merges make it: only a chunk of exactly this text is it, which is taken whole."
    elif len(left) > 1:
        kind = "bytes" if spec.alphabet == "bytes" else "characters"
        note = f"No text yields it: its {kind} merge into other pieces, and these do not merge."
    return Built(shown, id, type.name, score, named(symbols), tuple(merges), ends_as, note)
