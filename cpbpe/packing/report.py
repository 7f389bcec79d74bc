"""The report of a run: what was packed, what was left out and why, and how fast it was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from cpbpe.spelling import counted


@dataclass(frozen=True)
class PackReport:
    """What `cpbpe.pack` returns."""

    out: str
    """The folder, or the prefix."""
    to: str
    """The format."""
    dtype: str
    """The type of ids."""
    documents: int
    """All documents that were written."""
    tokens: int
    """All their tokens."""
    splits: dict[str, dict[str, int]]
    """Of "train", and of "val" if there is one: documents, tokens and shards."""
    text_bytes: int
    """The text of all documents, in UTF-8."""
    byte_tokens: int
    """Tokens of byte fallback: single bytes of characters that no piece contains."""
    unknown_tokens: int
    """Tokens for what the model does not know at all."""
    skipped: dict[str, int]
    """Documents that were left out: "empty", "absent" (null, or an empty line between records) or
    "without_tokens"."""
    files: list[str]
    """The files that were written."""
    seconds: float
    """How long this call took."""
    new_tokens: int
    """How many tokens this call has encoded: all, unless it has continued another run."""
    resumed: bool = False
    """Whether it has continued another run."""
    was_complete: bool = False
    """Whether there was nothing left to do."""
    warnings: list[str] = field(default_factory=list)
    """What else there is to know about the files that were read."""

    @property
    def bytes_per_token(self) -> float:
        """How much text a token stands for."""
        return self.text_bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float:
        """How fast this call was."""
        return self.new_tokens / self.seconds if self.seconds else 0.0

    @property
    def byte_share(self) -> float:
        """The share of byte fallback among the tokens."""
        return self.byte_tokens / self.tokens if self.tokens else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All values."""
        shares = {
            name: getattr(self, name) for name in ("bytes_per_token", "tokens_per_second", "byte_share")
        }
        return {**asdict(self), **shares}

    def to_json(self, indent: int | None = None) -> str:
        """All values as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


_REASONS = {
    "empty": "empty",
    "absent": "null, or an empty line between records",
    "without_tokens": "text without tokens",
}


def _lines(report: PackReport) -> list[str]:
    lines = [f"documents     {report.documents:,}, {report.text_bytes:,} bytes of text"]
    lines += [
        f"skipped       {number:,}: {_REASONS[why]}" for why, number in report.skipped.items() if number
    ]
    lines.append(f"tokens        {report.tokens:,}, {report.bytes_per_token:.3f} bytes per token")
    if report.byte_tokens:
        lines.append(f"byte fallback {report.byte_tokens:,} tokens, {report.byte_share:.3%} of all")
    if report.unknown_tokens:
        lines.append(f"unknown       {report.unknown_tokens:,} tokens")
    for split, facts in report.splits.items():
        documents, tokens = counted(facts["documents"], "document"), counted(facts["tokens"], "token")
        lines.append(f"{split:<13} {documents}, {tokens}, {counted(facts['shards'], 'shard')}")
    speed = f"{report.seconds:.2f} s, {report.tokens_per_second:,.0f} tokens per second"
    lines.append(f"time          {speed}{', after going on with an earlier run' if report.resumed else ''}")
    lines += [f"note          {warning}" for warning in report.warnings]
    count = len(report.files)
    first = ", ".join(report.files[:2]) + (f", ... ({count:,} files)" if count > 2 else "")
    return [*lines, f"written       {first}"]
