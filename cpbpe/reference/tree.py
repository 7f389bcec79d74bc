"""The merges of a text as a tree: which two symbols every symbol was made of.

>>> from cpbpe.model.spec import ModelSpec, Piece, Pieces
>>> from cpbpe.reference.replay import steps
>>> texts = ["ab", "ra", "abra", "▁", "a", "b", "r"]
>>> toy = ModelSpec(Pieces.of([Piece(text.encode(), -rank) for rank, text in enumerate(texts)]))
>>> print(steps(toy, "abra").tree())
▁        3
abra     2
├─ ab    merge 1
│  ├─ a
│  └─ b
└─ ra    merge 2
   ├─ r
   └─ a
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cpbpe.text.drawn import isolated, spelled, width


class AnyStep(Protocol):
    """What is drawn of a `Step`. (It draws itself, so nothing here may import it.)"""

    @property
    def kind(self) -> str:
        """What it does."""

    @property
    def symbols(self) -> tuple[bytes, ...]:
        """The symbols before it."""

    @property
    def begin(self) -> int:
        """The place of the first symbol that it changes."""

    @property
    def end(self) -> int:
        """The place after the last one."""

    @property
    def made(self) -> tuple[bytes, ...]:
        """The symbols that replace them."""

    def between(self, place: int) -> str:
        """What is drawn before the symbol at a place."""

    def explained(self) -> str:
        """Why it was taken."""


@dataclass(frozen=True)
class Node:
    """A symbol, and what it was made of."""

    symbol: bytes
    """The symbol."""
    parts: tuple[Node, ...] = ()
    """The symbols that merged into it; none for those that the text began as."""
    number: int = 0
    """The number of the step that made it; 0 for those that the text began as."""
    why: str = ""
    """Why that step was taken."""


def roots_of(steps: Iterable[AnyStep]) -> list[Node]:
    """A node for each symbol that is left at the end, in their order."""
    nodes: list[Node] = []
    for number, step in enumerate(steps):
        if step.kind == "begin":
            nodes = [Node(symbol) for symbol in step.symbols]
        elif step.kind == "split":
            nodes[step.begin : step.end] = _taken_apart(nodes[step.begin], step.made)
        elif step.made:  # a merge; or a chunk that is taken whole, or the bytes of what is no piece
            old = tuple(nodes[step.begin : step.end]) if step.kind == "merge" else ()
            nodes[step.begin : step.end] = [
                Node(symbol, old, number, step.explained()) for symbol in step.made
            ]
    return nodes


def _taken_apart(node: Node, made: Sequence[bytes]) -> list[Node]:
    """The nodes of the symbols that an UNUSED piece is taken apart into, with what these were made of."""
    found: list[Node] = []
    waiting = [node]
    for symbol in made:
        while waiting and len(waiting[0].symbol) > len(symbol) and waiting[0].parts:
            waiting[:1] = waiting[0].parts
        if waiting and waiting[0].symbol == symbol:
            found.append(waiting.pop(0))
        else:  # it was split where another text had merged it
            return [Node(symbol) for symbol in made]
    return found


def tree_lines(roots: Sequence[Node], ids: Sequence[int]) -> list[str]:
    """The trees as lines, each node below what it became, with the ids of the last ones."""
    rows: list[tuple[str, str]] = []
    for root, id in zip(roots, ids, strict=True):
        rows.append((_shown(root), str(id)))
        waiting = [(part, "", part is root.parts[-1]) for part in reversed(root.parts)]
        while waiting:
            node, indent, is_last = waiting.pop()
            remark = f"merge {node.number}" if node.parts else ""
            rows.append((f"{indent}{'└' if is_last else '├'}─ {_shown(node)}", remark))
            below = f"{indent}{' ' if is_last else '│'}  "
            waiting += [(part, below, part is node.parts[-1]) for part in reversed(node.parts)]
    column = max((width(line) for line, _ in rows), default=0)
    return [f"{line}{' ' * (column - width(line))}  {remark}".rstrip() for line, remark in rows]


def _shown(node: Node) -> str:
    return isolated(spelled(node.symbol))
