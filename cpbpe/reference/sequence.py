"""`Steps`, all steps from a text to its ids, which can be printed and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cpbpe.lazy import imported
from cpbpe.reference.step import Step
from cpbpe.reference.tree import roots_of, tree_lines

MAX_BYTES = 400
"""A longer text is not drawn step by step: every step shows the whole text."""
MAX_STEPS = 100
"""This many steps are drawn, of a text that has more."""


class Steps:
    """The steps from a text to its ids. They are made again each time they are iterated over.

    (They are not kept: each step has all symbols, so together they would take quadratic memory.)
    """

    def __init__(self, make: Callable[[], Iterator[Step]], size: int):
        self._make = make
        self._size = size

    def __iter__(self) -> Iterator[Step]:
        return self._make()

    def __str__(self) -> str:
        steps, more = self.drawn()
        if not steps:
            return more
        lines = [str(step) for step in steps]
        return "\n".join([*lines[:-1], *([more] if more else []), lines[-1]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The steps and the tree, for notebooks."""
        steps, more = self.drawn()
        roots = roots_of(self) if steps else []
        ids = steps[-1].ids if steps else ()
        html: str = imported("cpbpe.reference.drawing").steps_html(steps, more, roots, ids)
        return html

    def tree(self) -> str:
        """Which two symbols every symbol was made of, as lines: the last symbols with their ids."""
        if self._size > MAX_BYTES:
            return self._too_long()
        steps = list(self)
        return "\n".join(tree_lines(roots_of(steps), steps[-1].ids))

    def drawn(self) -> tuple[list[Step], str]:
        """The steps that are drawn, and what is to be said about the others, which come before the last."""
        if self._size > MAX_BYTES:
            return [], self._too_long()
        steps = list(self)
        if len(steps) <= MAX_STEPS:
            return steps, ""
        more = len(steps) - MAX_STEPS
        return (
            [*steps[: MAX_STEPS - 1], steps[-1]],
            f"... {more:,} more steps; `for step in steps: print(step)` prints all",
        )

    def _too_long(self) -> str:
        return (
            f"(a text of {self._size:,} bytes; those of up to {MAX_BYTES} are drawn, and "
            f"`for step in steps: print(step)` prints the steps of any)"
        )
