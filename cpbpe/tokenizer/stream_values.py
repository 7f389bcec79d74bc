"""What is known of a model for texts that arrive in parts. (Loading a model does not import this.)"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cpbpe.tokenizer.stream_normalizer import Shape


class StreamTexts(NamedTuple):
    """What every id adds to a text that arrives id by id."""

    plain: list[str | None]
    """In the middle; None for an id in `raw`, for an added token, and for an id that is not in use."""
    raw: dict[int, int | bytes]
    """A BYTE piece's byte; the bytes of a piece that is not UTF-8."""


class StreamPlan(NamedTuple):
    """How a model's text is encoded when it arrives in parts."""

    shape: Shape | None
    """How it is normalized; None if the whole text is needed."""
    unk: int
    """The id that a run of unknown characters gets once, -1 if there is none."""
