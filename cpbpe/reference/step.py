"""One step from a text to its ids, as a value that can be printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cpbpe.lazy import imported
from cpbpe.text.drawn import isolated, spelled

_COLUMN = 28
"""Where the remarks of printed steps begin, if there is room."""
MAX_SHOWN = 3
"""How many of the pairs that were not chosen are printed."""


class Pair(NamedTuple):
    """Two neighbouring symbols whose joined text is a piece."""

    left: int
    """The place of the left symbol."""
    piece: bytes
    """The piece that they would become."""
    score: float
    """Its score."""


@dataclass(frozen=True)
class Step:
    """One step from a text to its ids."""

    kind: str
    """"begin", "merge", "split", "unknown" or "end"."""
    symbols: tuple[bytes, ...]
    """The symbols before this step."""
    begin: int
    """The place of the first symbol that it changes."""
    end: int
    """The place after the last one."""
    made: tuple[bytes, ...]
    """The symbols that replace them."""
    score: float | None = None
    """The score of the piece that a merge forms."""
    others: tuple[Pair, ...] = ()
    """The pairs that a merge was preferred to, the best first."""
    ids: tuple[int, ...] = ()
    """The ids of the symbols, at the end."""

    @property
    def after(self) -> tuple[bytes, ...]:
        """The symbols after this step."""
        return (*self.symbols[: self.begin], *self.made, *self.symbols[self.end :])

    def __str__(self) -> str:
        line = ""
        for place, symbol in enumerate(self.symbols):
            opened = "[" if place == self.begin < self.end else ""
            closed = "]" if self.begin < self.end == place + 1 else ""
            line += f"{self.between(place)}{opened}{self.show(symbol)}{closed}"
        line = f"{self.kind:<8}{line}"
        remark = self.explained()
        return f"{line:<{_COLUMN - 1}} {remark}" if remark else line

    def _repr_html_(self) -> str:
        """The step, for notebooks."""
        html: str = imported("cpbpe.reference.drawing").step_html(self)
        return html

    @staticmethod
    def show(symbol: bytes) -> str:
        """A symbol, as it is printed: what cannot be seen has an escape."""
        return isolated(spelled(symbol))

    def between(self, place: int) -> str:
        """What is printed before the symbol at a place."""
        return " "

    def explained(self) -> str:
        """The remark after the symbols."""
        made = " ".join(map(self.show, self.made))
        old = "".join(map(self.show, self.symbols[self.begin : self.end]))
        if self.kind == "merge":
            return f"{made} has the score {self.score}, {self._compared()}"
        if self.kind == "split":
            return f"{old} is UNUSED, and taken apart again: {made}"
        if self.kind == "unknown":
            return f"{old} is not a piece; it becomes {made}"
        if self.kind == "end":
            return f"the ids are {', '.join(map(str, self.ids))}"
        return ""

    def _compared(self) -> str:
        if not self.others:
            return "and there is no other pair"
        listed = [f"{self.show(pair.piece)} {pair.score}" for pair in self.others[:MAX_SHOWN]]
        more = len(self.others) - len(listed)
        rest = f" and {more} more" if more else ""
        tie = self.others[0].score == self.score
        reason = "the highest, and is the leftmost" if tie else "the highest"
        return f"{reason}; {'then' if tie else 'below it'} {', '.join(listed)}{rest}"
