"""Padding and truncation: their parameters, as calls and as files have them, and what they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.encoding import Encoding
from cpbpe.errors import ModelError

_DIRECTIONS = ("left", "right")
_STRATEGIES = {"longest_first": "LongestFirst", "only_first": "OnlyFirst", "only_second": "OnlySecond"}
"""What files call them."""


@dataclass(frozen=True)
class Padding:
    """How encodings are filled up."""

    length: int | None = None
    """The length; None: that of the longest one of a batch."""
    pad_to_multiple_of: int | None = None
    pad_id: int = 0
    pad_token: str = "[PAD]"
    pad_type_id: int = 0
    direction: str = "right"

    def __post_init__(self) -> None:
        for name in ("length", "pad_to_multiple_of"):
            if getattr(self, name) is not None:
                arguments.unsigned(getattr(self, name), name)
        arguments.unsigned(self.pad_id, "pad_id", arguments.ID_MOST)
        arguments.unsigned(self.pad_type_id, "pad_type_id", arguments.ID_MOST)
        arguments.text(self.pad_token, "pad_token")
        arguments.choice(self.direction, "direction", _DIRECTIONS)

    def apply(self, encodings: list[Encoding]) -> None:
        """Fill up the encodings of a batch."""
        length = self.length
        if length is None:
            length = max(map(len, encodings), default=0)
        if self.pad_to_multiple_of:
            length += -length % self.pad_to_multiple_of
        for encoding in encodings:
            encoding.fill(length, self.direction == "left", self.pad_id, self.pad_type_id, self.pad_token)

    def in_file(self) -> dict[str, Any]:
        """As a file has it."""
        return {
            "strategy": "BatchLongest" if self.length is None else {"Fixed": self.length},
            "direction": self.direction.capitalize(),
            "pad_to_multiple_of": self.pad_to_multiple_of,
            "pad_id": self.pad_id,
            "pad_type_id": self.pad_type_id,
            "pad_token": self.pad_token,
        }


def padding_of(said: Any) -> Padding | None:
    """The padding of a file."""
    if said is None:
        return None
    try:
        fields = {
            name: said[name]
            for name in ("pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token")
            if name in said
        }
        strategy = said["strategy"]
        length = None if strategy == "BatchLongest" else strategy["Fixed"]
        return Padding(length=length, direction=said["direction"].lower(), **fields)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ModelError(f"padding in the file is not as tokenizers writes it: {error}") from None


@dataclass(frozen=True)
class Truncation:
    """How encodings are cut."""

    max_length: int
    stride: int = 0
    strategy: str = "longest_first"
    direction: str = "right"

    def __post_init__(self) -> None:
        arguments.unsigned(self.max_length, "max_length")
        arguments.unsigned(self.stride, "stride")
        arguments.choice(self.strategy, "strategy", _STRATEGIES)
        arguments.choice(self.direction, "direction", _DIRECTIONS)

    def check(self, added: int) -> None:
        """ValueError if the tokens that are put around a single text leave no room for the stride."""
        room = self.max_length - added
        if room >= 0 and self.stride > room:
            raise ValueError(
                f"stride is {self.stride}, and must not be more than the tokens that "
                f"max_length={self.max_length} leaves for a text: {room} besides the {added} put around it"
            )

    def apply(self, encodings: list[Encoding], added: int) -> None:
        """Cut one or two encodings, to which this many tokens are added later."""
        # If there is no room for these tokens, the other library cuts nothing.
        if added > self.max_length:
            return
        most = self.max_length - added
        lengths = [len(encoding) for encoding in encodings]
        if most and sum(lengths) <= most:
            return
        wanted = self._lengths(lengths, most)
        for encoding, length in zip(encodings, wanted, strict=True):
            encoding.shorten(length, self.stride, self.direction)

    def _lengths(self, lengths: list[int], most: int) -> list[int]:
        """How many tokens each text keeps."""
        if most == 0:
            return [0] * len(lengths)
        if self.strategy == "longest_first":
            if len(lengths) == 1:
                return [most]
            # The shorter one keeps all tokens if they are at most half of them; otherwise both have half.
            shorter = min(lengths)
            room = max(shorter, most - shorter)
            if shorter > most or shorter + room > most:
                shorter, room = most // 2, most - most // 2
            return [shorter, room] if lengths[0] <= lengths[1] else [room, shorter]
        place = 0 if self.strategy == "only_first" else 1
        if place >= len(lengths):
            raise ValueError("strategy is 'only_second', and there is no second text to truncate")
        left = lengths[place] - (sum(lengths) - most)
        if left <= 0:
            raise ValueError(
                f"the {'second' if place else 'first'} text is too short: it has {lengths[place]} of "
                f"{sum(lengths)} tokens, {most} may stay, and strategy {self.strategy!r} cuts nothing else"
            )
        return [left if at == place else length for at, length in enumerate(lengths)]

    def in_file(self) -> dict[str, Any]:
        """As a file has it."""
        return {
            "direction": self.direction.capitalize(),
            "max_length": self.max_length,
            "strategy": _STRATEGIES[self.strategy],
            "stride": self.stride,
        }


def truncation_of(said: Any) -> Truncation | None:
    """The truncation of a file."""
    if said is None:
        return None
    try:
        names = {name: ours for ours, name in _STRATEGIES.items()}
        direction = said.get("direction", "Right").lower()
        return Truncation(said["max_length"], said["stride"], names[said["strategy"]], direction)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ModelError(f"truncation in the file is not as tokenizers writes it: {error}") from None
