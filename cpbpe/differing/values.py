"""The parts of a difference between two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class PieceEntry(NamedTuple):
    """A piece where it stands in one model."""

    id: int
    score: float | None
    """None in byte-level models, whose ids are their ranks."""
    type: str


@dataclass(frozen=True)
class PieceChange:
    """A piece that is not the same in both models."""

    piece: str
    """Bytes that are not UTF-8 are written as \\xFF."""
    old: PieceEntry | None
    """In the first model; None if it is not there."""
    new: PieceEntry | None
    """In the second."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """What happened: "added", "removed", or some of "moved", "rescored" and "retyped"."""
        if self.old is None:
            return ("added",)
        if self.new is None:
            return ("removed",)
        names = ("moved", "rescored", "retyped")
        pairs = zip(names, self.old, self.new, strict=True)
        return tuple(name for name, a, b in pairs if a != b and a is not None and b is not None)

    def to_dict(self) -> dict[str, Any]:
        """The change as values that JSON has."""
        sides = {"old": self.old, "new": self.new}
        return {
            "piece": self.piece,
            **{side: None if e is None else e._asdict() for side, e in sides.items()},
        }


@dataclass(frozen=True)
class SettingChange:
    """A setting that is not the same."""

    name: str
    old: str
    new: str
    encodes: bool
    """Whether it can change the ids of a text."""


@dataclass(frozen=True)
class TextDifference:
    """A text with the tokens that both models give it."""

    text: str
    old_ids: tuple[int, ...]
    new_ids: tuple[int, ...]
    old_tokens: tuple[str, ...]
    new_tokens: tuple[str, ...]
    proved: bool
    """Whether every shorter text has the same tokens; otherwise no character of it can be left out."""


@dataclass(frozen=True)
class CorpusDifference:
    """What is different on documents of the user's."""

    documents: int
    different: int
    """Documents whose tokens are not the same."""
    old_tokens: int
    new_tokens: int
    examples: tuple[str, ...]
    """Where the first of them begin to differ."""

    @property
    def share(self) -> float:
        """The share of documents that differ."""
        return self.different / self.documents if self.documents else 0.0
