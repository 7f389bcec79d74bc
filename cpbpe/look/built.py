"""How a piece is built from single characters: which two parts merge, and in which order.

A piece comes about in a text only if its characters merge among themselves, in the order in which they do in
a text that is nothing but the piece. (A merge across its border would take away a part of it.) So it is
enough to encode the piece itself, without normalizing it. If that ends with several symbols, no text yields
the piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

from cpbpe.lazy import numpy
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import MAX_USER_DEFINED_MATCHES, MERGEABLE, score_key
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length, text_of

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
    """Its place among all merges, the one with the highest score being 1; equal scores have one rank."""
    score: float
    """Its score."""

    def to_dict(self) -> dict[str, Any]:
        """The step as values that JSON has."""
        return {**self._asdict(), "score": str(self.score) if _is_odd(self.score) else self.score}


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
    """What else is to be said, in a sentence; or nothing."""

    @property
    def reachable(self) -> bool:
        """Whether a text can yield the piece."""
        return self.type in ("NORMAL", "USER_DEFINED") and self.ends_as == (self.piece,)

    def to_dict(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {
            "piece": self.piece,
            "id": self.id,
            "type": self.type,
            "score": str(self.score) if _is_odd(self.score) else self.score,
            "reachable": self.reachable,
            "symbols": list(self.symbols),
            "merges": [merge.to_dict() for merge in self.merges],
            "ends_as": list(self.ends_as),
            "note": self.note,
        }


def _is_odd(score: float) -> bool:
    """Whether JSON has no such number."""
    return score != score or abs(score) == float("inf")


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
    return Builder(spec).built(id)


class Builder:
    """The tables of one model, for looking at many of its pieces."""

    def __init__(self, spec: ModelSpec):
        pieces = spec.pieces
        self.scores = pieces.numbers()
        """The scores of all pieces."""
        self._spec = spec
        self._rank_of = _ranks(spec)
        self._user_defined = [
            piece
            for piece, type in zip(pieces.texts, pieces.types, strict=True)
            if type == PieceType.USER_DEFINED and piece != b"\0"
        ]

    def built(self, id: int) -> Built:
        """How the piece with an id is built."""
        spec = self._spec
        text = spec.pieces.texts[id]
        type = PieceType(spec.pieces.types[id])
        score = self.scores[id]
        note = _NOTES.get(type, "")
        symbols: list[bytes] = []
        merges: list[Merge] = []
        ends_as: list[bytes] = [text]
        if type in MERGEABLE:
            if len(text_of(text)) > MAX_CHARACTERS and type != PieceType.USER_DEFINED:
                note = f"It has more than {MAX_CHARACTERS:,} characters, and is not taken apart here."
                return Built(text_of(text), id, type.name, score, (), (), (), note)
            symbols, frozen = self.symbols(text)
            merges, ends_as = self._merged(symbols, frozen)
            if spec.ids.get(text) != id:
                note = "No text yields it: another piece has the same text, or none is ever found."
                ends_as = []
            elif type == PieceType.USER_DEFINED and len(symbols) > 1:
                note = (
                    "No text yields it: too many user-defined pieces begin like it, and one of them is found."
                )
            elif len(ends_as) > 1:
                note = "No text yields it: its characters merge into other pieces, and these do not merge."
                if spec.alphabet == "bytes":
                    note = note.replace("characters", "bytes")
                if spec.whole:
                    note = "No merges make it: only a chunk of exactly this text is it, which is taken whole."
        return Built(
            text_of(text),
            id,
            type.name,
            score,
            tuple(map(text_of, symbols)),
            tuple(merges),
            tuple(map(text_of, ends_as)),
            note,
        )

    def symbols(self, text: bytes) -> tuple[list[bytes], list[bool]]:
        """The symbols that a text begins as, and whether each is a user-defined piece, which never merges."""
        symbols: list[bytes] = []
        frozen: list[bool] = []
        if self._spec.alphabet == "bytes":
            return [bytes([byte]) for byte in text], [False] * len(text)
        finder = Finder((piece for piece in self._user_defined if piece in text), MAX_USER_DEFINED_MATCHES)
        at = 0
        while at < len(text):
            length = finder.longest(text, at)
            frozen.append(bool(length))
            symbols.append(text[at : at + (length or character_length(text, at))])
            at += len(symbols[-1])
        return symbols, frozen

    def _merged(self, begin: list[bytes], frozen: list[bool]) -> tuple[list[Merge], list[bytes]]:
        """The merges, and the symbols that are left. The best pair merges first, the leftmost of equals."""
        spec, scores, rank_of = self._spec, self.scores, self._rank_of
        ids, types = spec.ids, spec.pieces.types
        symbols: list[bytes | None] = list(begin)
        before = list(range(-1, len(begin) - 1))
        after = [*range(1, len(begin)), -1]
        queue: list[tuple[int, int, int, bytes]] = []

        def look_at(left: int) -> None:
            right = after[left] if left >= 0 else -1
            if right < 0 or frozen[left] or frozen[right]:
                return
            joined = (symbols[left] or b"") + (symbols[right] or b"")
            id = ids.get(joined)
            if id is not None and types[id] in MERGEABLE:
                heappush(queue, (-score_key(scores[id]), left, right, joined))

        for left in range(len(begin)):
            look_at(left)
        merges = []
        while queue:
            _, left, right, joined = heappop(queue)
            one, other = symbols[left], symbols[right]
            if one is None or other is None or after[left] != right or one + other != joined:
                continue  # one of them has merged with another symbol since
            id = ids[joined]
            merges.append(
                Merge(text_of(one), text_of(other), text_of(joined), id, rank_of(scores[id]), scores[id])
            )
            symbols[left], symbols[right] = joined, None
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            look_at(before[left])
            look_at(left)
        return merges, [symbol for symbol in symbols if symbol is not None]


def _ranks(spec: ModelSpec) -> Any:
    """A function from a score to its rank among the scores of pieces that merging can make."""
    np = numpy()
    pieces = spec.pieces
    ends = np.frombuffer(pieces.ends, np.uint32).astype(np.int64)
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    types = np.frombuffer(pieces.types, np.uint8)
    blob = np.frombuffer(pieces.blob + b"\0", np.uint8)
    first = blob[np.minimum(begins, len(blob) - 1)]
    # Pieces of one character are not made by merging.
    single = ends - begins <= np.select([first < 0xC0, first < 0xE0, first < 0xF0], [1, 2, 3], 4)
    if spec.alphabet == "bytes":
        single = ends - begins == 1
    made = np.isin(types, [int(type) for type in MERGEABLE]) & ~single
    scores = np.sort(np.frombuffer(pieces.scores, np.float32)[made])

    def rank(score: float) -> int:
        return int(len(scores) - np.searchsorted(scores, np.float32(score), "right")) + 1

    return rank
