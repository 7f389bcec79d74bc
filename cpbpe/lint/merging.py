"""What a text merges into by itself, and by which merges; and why it does not become a piece.

The core can tell, for all pieces at once, which of them merge into themselves, but not how. This file is
slower, and used for the few pieces where that matters.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from cpbpe.lazy import kept
from cpbpe.lint.findings import Reason
from cpbpe.model.spec import MAX_USER_DEFINED_MATCHES, ModelSpec, PieceType
from cpbpe.reference.encoding import MERGEABLE
from cpbpe.reference.merging import merge
from cpbpe.text.drawn import quoted
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length, text_of

MOST_BYTES = 1000
"""For a longer text, `why_not` does not say what it ends as."""


class Symbol(NamedTuple):
    """A part of a text."""

    begin: int
    """Where it begins in the text, in bytes."""
    end: int
    """Where it ends."""
    is_user_defined: bool = False
    """Whether it is a user-defined piece, which never merges."""


class Step(NamedTuple):
    """A merge: the symbols from `begin` to `middle` and from there to `end` become one."""

    begin: int
    middle: int
    end: int


class Merging:
    """Merges texts as they are, without normalizing or cutting them."""

    def __init__(self, spec: ModelSpec):
        self._spec = spec
        texts, types = spec.pieces.texts, spec.pieces.types
        # (A piece that is one NUL character is never found.)
        self._user_defined = Finder(
            (
                text
                for text, type in zip(texts, types, strict=True)
                if type == PieceType.USER_DEFINED and text != b"\0"
            ),
            MAX_USER_DEFINED_MATCHES,
        )

    @kept
    def ranks(self) -> dict[bytes, int]:
        """The pieces of several symbols that merging can make; the one with the lowest rank merges first."""
        spec, characters = self._spec, self._spec.alphabet != "bytes"
        ranks, types = spec.pieces.ranks(), spec.pieces.types
        return {
            text: ranks[id]
            for text, id in spec.ids.items()
            if types[id] in MERGEABLE and len(text) > (character_length(text, 0) if characters else 1)
        }

    def symbols(self, text: bytes) -> list[Symbol]:
        """The symbols that a text begins as: characters or bytes, and user-defined pieces."""
        if self._spec.alphabet == "bytes":
            return [Symbol(at, at + 1) for at in range(len(text))]
        found = []
        at = 0
        while at < len(text):
            length = self._user_defined.longest(text, at)
            end = min(at + (length or character_length(text, at)), len(text))
            found.append(Symbol(at, end, bool(length)))
            at = end
        return found

    def run(self, text: bytes) -> tuple[list[Symbol], list[Step]]:
        """The symbols that are left when nothing can merge any more, and the merges in their order."""
        ranks, symbols = self.ranks, self.symbols(text)
        steps: list[Step] = []

        def joined(left: Symbol, right: Symbol) -> tuple[int, Symbol] | None:
            if left.is_user_defined or right.is_user_defined:
                return None
            rank = ranks.get(text[left.begin : right.end])
            return None if rank is None else (rank, Symbol(left.begin, right.end))

        def record(left: int, right: int, end: int) -> bool:
            """Called before each merge, which could be skipped: none is."""
            after = symbols[end].begin if end < len(symbols) else len(text)
            steps.append(Step(symbols[left].begin, symbols[right].begin, after))
            return False

        return merge(symbols, joined, record), steps

    def why_not(self, text: bytes, merged: Collection[int]) -> Reason:
        """Why the symbols of a text do not merge into it. `merged`: the ids of pieces that merging makes."""
        symbols, ids = self.symbols(text), self._spec.ids
        spans = {symbol[:2] for symbol in symbols}

        def is_made(begin: int, end: int) -> bool:
            return (begin, end) in spans or ids.get(text[begin:end]) in merged

        borders = (symbol.begin for symbol in symbols[1:])
        border = next((at for at in borders if is_made(0, at) and is_made(at, len(text))), None)
        if border is None:
            return Reason("orphan", "no two symbols make it: no pair of its parts ever comes about")
        if len(text) > MOST_BYTES:
            return Reason("blocked", "its symbols merge into others first")
        left, steps = self.run(text)
        ends = " ".join(quoted(text_of(text[symbol.begin : symbol.end])) for symbol in left)
        across = next((step for step in steps if step.begin < border < step.end), None)
        if across is None:
            return Reason("blocked", f"its symbols end as {ends}")
        made = text_of(text[across.begin : across.end])
        parts = f"{quoted(text_of(text[:border]))} and {quoted(text_of(text[border:]))}"
        return Reason(
            "blocked", f"{parts} would make it, but {quoted(made)} is merged first, and it ends as {ends}"
        )
