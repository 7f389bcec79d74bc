"""What a difference consists of."""

from __future__ import annotations

from dataclasses import dataclass

from cpbpe.differing.values import CorpusDifference, PieceChange, SettingChange, TextDifference


@dataclass(frozen=True)
class Parts:
    """Everything that is different between two models."""

    pieces: tuple[PieceChange, ...]
    settings: tuple[SettingChange, ...]
    text: TextDifference | None
    """A text whose tokens differ; None if there is none, or none was found."""
    same_tokens: bool | None
    """Whether every text has the same tokens: True and False are sure; None: no difference was found."""
    same_ids: bool | None
    """The same for ids: tokens may be the same, and have other ids."""
    tried: int
    """How many texts were tried."""
    corpus: CorpusDifference | None
    """What is different on texts that were given."""

    def of_kind(self, kind: str) -> list[PieceChange]:
        """The pieces that were "added", "removed", "moved", "rescored" or "retyped"."""
        return [change for change in self.pieces if kind in change.kinds]
