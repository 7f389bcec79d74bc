"""How large a shard may become: a number of tokens, or of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpbpe.checks import amount
from cpbpe.spelling import named


@dataclass(frozen=True)
class ShardSize:
    """The most that a shard holds, unless a single document has more."""

    number: int
    """How many tokens or bytes."""
    in_bytes: bool
    """Whether it counts bytes of ids, and not tokens."""

    def tokens(self, item_bytes: int) -> int:
        """The most tokens, where each has this many bytes."""
        return max(1, self.number // item_bytes) if self.in_bytes else self.number

    def __str__(self) -> str:
        return f"{self.number} {'bytes' if self.in_bytes else 'tokens'}"


def shard_size(given: Any) -> ShardSize:
    """The size that a user means: with a B at its end it is in bytes, without it in tokens.

    >>> shard_size("500MB"), shard_size("100M"), shard_size(1 << 20)
    (ShardSize(number=500000000, in_bytes=True), ShardSize(number=100000000, in_bytes=False), \
ShardSize(number=1048576, in_bytes=False))
    """
    text = given.strip() if isinstance(given, str) else given
    if isinstance(text, str) and text.lower().endswith("tokens"):
        text = text[: -len("tokens")]
    number, in_bytes = amount(text) or (0, False)
    if number < 1:
        kind = ValueError if isinstance(given, (str, int, float)) else TypeError
        raise kind(
            f"{named('shard_size')} must be a number of tokens, such as 100M, or a size such as 500MB; it "
            f"cannot be {given!r}"
        )
    return ShardSize(number, in_bytes)
