"""How pieces are built, as trees: which two parts merge into which. `cpbpe.look.built` finds the merges."""

from __future__ import annotations

from typing import Any

from cpbpe.look.built import Builder
from cpbpe.model.spec import ModelSpec
from cpbpe.text.utf8 import text_of

MAX_SYMBOLS = 200
"""A piece of more symbols is not drawn: nobody could look at the tree."""


class Trees:
    """The trees of one model's pieces."""

    def __init__(self, spec: ModelSpec):
        self._spec = spec
        self._builder = Builder(spec)

    def tree(self, id: int) -> dict[str, Any]:
        """The tree of a piece. A node is `[text, id, score, children, number of the merge]`."""
        found = self._builder.built(id)
        roots: list[list[Any]] = []
        note = found.note
        if len(found.symbols) > MAX_SYMBOLS:
            note = f"It begins as {len(found.symbols):,} symbols, too many to be drawn."
        elif found.merges or len(found.symbols) == 1:
            roots = self._drawn(id, [merge.id for merge in found.merges])
        return {"roots": roots, "note": note, "reachable": found.reachable}

    def _drawn(self, id: int, made: list[int]) -> list[list[Any]]:
        """The trees that are left when all merges are done: one, or several that do not merge.

        Of the pairs with the same text, which have the same score, the leftmost merges first.
        """
        texts = self._spec.pieces.texts
        symbols, frozen = self._builder.symbols(texts[id])
        nodes: list[list[Any]] = [self._leaf(symbol) for symbol in symbols]
        for order, piece in enumerate(made, 1):
            text = texts[piece]
            at = next(
                place
                for place in range(len(symbols) - 1)
                if not frozen[place] and not frozen[place + 1] and symbols[place] + symbols[place + 1] == text
            )
            nodes[at : at + 2] = [[text_of(text), piece, self._score(piece), nodes[at : at + 2], order]]
            symbols[at : at + 2] = [text]
            del frozen[at + 1]
        return nodes

    def _leaf(self, symbol: bytes) -> list[Any]:
        """A symbol that no merge has made."""
        id = self._spec.ids.get(symbol)
        if id is None:
            return [text_of(symbol), None, None, [], 0]
        return [text_of(symbol), id, self._score(id), [], 0]

    def _score(self, id: int) -> float | str:
        score = self._builder.scores[id]
        return score if abs(score) < float("inf") else str(score)
