"""What a text merges into by itself, and by which merges; and why it does not become a piece.

The core can tell, for all pieces at once, which of them merge into themselves, but not how. This file is
slower, and used for the few pieces where that matters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from cpbpe.lazy import kept
from cpbpe.lint.findings import Reason
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import MAX_USER_DEFINED_MATCHES, MERGEABLE
from cpbpe.reference.merging import merge
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length, text_of

MOST_BYTES = 1000
"""For a longer text, `why_not` does not say what it ends as."""


class Symbol(NamedTuple):
    """A part of a text, and what it was merged from."""

    begin: int
    """Where it begins in the text, in bytes."""
    end: int
    """Where it ends."""
    is_user_defined: bool
    """Whether it is a user-defined piece, which never merges."""
    parts: tuple[Symbol, ...] = ()
    """The two symbols that it was merged from; none if it was never merged."""


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
        """The pieces that merging can make; the one with the lowest rank merges first."""
        ranks, types = self._spec.pieces.ranks(), self._spec.pieces.types
        return {text: ranks[id] for text, id in self._spec.ids.items() if types[id] in MERGEABLE}

    def symbols(self, text: bytes) -> list[Symbol]:
        """The symbols that a text begins as: characters or bytes, and user-defined pieces."""
        if self._spec.alphabet == "bytes":
            return [Symbol(at, at + 1, False) for at in range(len(text))]
        found = []
        at = 0
        while at < len(text):
            length = self._user_defined.longest(text, at)
            end = min(at + (length or character_length(text, at)), len(text))
            found.append(Symbol(at, end, bool(length)))
            at = end
        return found

    def run(self, text: bytes) -> list[Symbol]:
        """The symbols that are left when nothing can merge any more, each with what it was merged from."""
        ranks = self.ranks

        def joined(left: Symbol, right: Symbol) -> tuple[int, Symbol] | None:
            if left.is_user_defined or right.is_user_defined:
                return None
            rank = ranks.get(text[left.begin : right.end])
            return None if rank is None else (rank, Symbol(left.begin, right.end, False, (left, right)))

        return merge(self.symbols(text), joined)

    def in_order(self, text: bytes, left: Sequence[Symbol]) -> list[Symbol]:
        """The merged symbols in the order in which `run` made them: always the lowest rank possible."""
        # 1. For each symbol, the one that it is a part of, and how many of its own parts are not made yet.
        ranks, waiting = self.ranks, list(left)
        whole: dict[tuple[int, int], Symbol] = {}
        missing: dict[tuple[int, int], int] = {}
        ready: list[tuple[int, int, Symbol]] = []

        def entry(symbol: Symbol) -> tuple[int, int, Symbol]:
            return ranks[text[symbol.begin : symbol.end]], symbol.begin, symbol

        while waiting:
            symbol = waiting.pop()
            waiting += symbol.parts
            whole.update((part[:2], symbol) for part in symbol.parts)
            missing[symbol[:2]] = sum(bool(part.parts) for part in symbol.parts)
            if symbol.parts and not missing[symbol[:2]]:
                ready.append(entry(symbol))
        # 2. Make the symbol with the lowest rank among those whose parts are made; of equals, the leftmost.
        heapify(ready)
        order = []
        while ready:
            made = heappop(ready)[2]
            order.append(made)
            if upper := whole.get(made[:2]):
                missing[upper[:2]] -= 1
                if not missing[upper[:2]]:
                    heappush(ready, entry(upper))
        return order

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
        left = self.run(text)
        ends = " ".join(repr(text_of(text[symbol.begin : symbol.end])) for symbol in left)
        # The first merge across the border is the innermost one.
        across = [symbol for symbol in left if symbol.begin < border < symbol.end]
        while inner := [part for symbol in across for part in symbol.parts if part.begin < border < part.end]:
            across = inner
        if not across:
            return Reason("blocked", f"its symbols end as {ends}")
        made = text_of(text[across[0].begin : across[0].end])
        parts = f"{text_of(text[:border])!r} and {text_of(text[border:])!r}"
        return Reason(
            "blocked", f"{parts} would make it, but {made!r} is merged first, and it ends as {ends}"
        )
