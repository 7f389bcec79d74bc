"""What a text merges into by itself, step by step: for the few pieces of which more is to be said.

(The core answers whether a piece merges into itself for all pieces at once; it does not say how.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from cpbpe.lazy import kept
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.byte_level.encoding import merge
from cpbpe.reference.encoding import MAX_USER_DEFINED_MATCHES, MERGEABLE, score_key
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length

MOST_CHARACTERS = 1000
"""A longer text is not merged here."""


class Step(NamedTuple):
    """One merge."""

    begin: int
    """Where the merged symbol begins in the text, in bytes."""
    border: int
    """Where its left part ends."""
    end: int
    """Where it ends."""


class _Symbol(NamedTuple):
    begin: int
    end: int
    frozen: bool


class Merging:
    """Merges texts as they are, without normalizing or cutting them."""

    def __init__(self, spec: ModelSpec):
        self._spec = spec
        texts, types = spec.pieces.texts, spec.pieces.types
        self.user_defined = Finder(
            (text for text, type in zip(texts, types, strict=True) if type == PieceType.USER_DEFINED),
            MAX_USER_DEFINED_MATCHES,
        )
        """Finds user-defined pieces."""

    @kept
    def ranks(self) -> dict[bytes, int]:
        """The pieces that merging can make; the one with the lowest rank merges first."""
        spec = self._spec
        scores, types = spec.pieces.numbers(), spec.pieces.types
        ranks: dict[bytes, int] = {}
        keys: dict[float, int] = {}
        for text, id in spec.ids.items():
            if types[id] in MERGEABLE:
                score = scores[id]
                key = keys.get(score) if score else None  # (0.0 and -0.0 are equal, but not alike)
                if key is None:
                    key = keys[score] = -score_key(score)
                ranks[text] = key
        return ranks

    def symbols(self, text: bytes) -> list[tuple[int, int, bool]]:
        """Where the first symbols of a text begin and end, and whether each is a user-defined piece."""
        if self._spec.alphabet == "bytes":
            return [(at, at + 1, False) for at in range(len(text))]
        found = []
        at = 0
        while at < len(text):
            length = self.user_defined.longest(text, at)
            end = min(at + (length or character_length(text, at)), len(text))
            found.append((at, end, bool(length)))
            at = end
        return found

    def run(self, text: bytes) -> tuple[list[Step], list[bytes]]:
        """The merges of a text in their order, and the symbols that are left."""
        ranks = self.ranks
        begin = [_Symbol(*symbol) for symbol in self.symbols(text)]

        def joined(left: _Symbol, right: _Symbol) -> tuple[int, _Symbol] | None:
            if left.frozen or right.frozen or left.end != right.begin:
                return None
            rank = ranks.get(text[left.begin : right.end])
            return None if rank is None else (rank, _Symbol(left.begin, right.end, False))

        left = merge(begin, joined)
        return self._steps(text, begin, left), [text[symbol.begin : symbol.end] for symbol in left]

    def _steps(self, text: bytes, begin: Sequence[_Symbol], left: Sequence[_Symbol]) -> list[Step]:
        """The merges, by doing them once more, one after the other."""
        if len(text) > MOST_CHARACTERS:
            return []
        ranks = self.ranks
        now = list(begin)
        steps: list[Step] = []
        while len(now) > len(left):
            pairs = (
                (ranks[text[one.begin : other.end]], place)
                for place, (one, other) in enumerate(pairwise(now))
                if not one.frozen and not other.frozen and text[one.begin : other.end] in ranks
            )
            _, place = min(pairs)
            one, other = now[place : place + 2]
            steps.append(Step(one.begin, one.end, other.end))
            now[place : place + 2] = [_Symbol(one.begin, other.end, False)]
        return steps
