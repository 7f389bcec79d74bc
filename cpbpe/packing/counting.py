"""Counting what the ids are while they are written: all tokens, bytes of byte fallback, unknown ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cpbpe.lazy import numpy
from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEP = 1 << 16
"""This many ids stay in the processor's cache."""


@dataclass
class Counts:
    """What was written, for the report."""

    documents: int = 0
    tokens: int = 0
    byte_tokens: int = 0
    """Tokens that stand for a single byte, of characters that no piece contains."""
    unknown_tokens: int = 0
    without_tokens: int = 0
    """Documents that have text, but no tokens; they are left out."""

    def copy(self) -> Counts:
        """The same values again."""
        return Counts(**asdict(self))


class Counter:
    """Counts ids of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer):
        np = numpy()
        types = np.frombuffer(tokenizer.facts.types, np.uint8)
        bytes_of_model = np.flatnonzero(types == int(PieceType.BYTE))
        self._first = int(bytes_of_model[0]) if len(bytes_of_model) else None
        self._count = len(bytes_of_model)
        # In nearly all models they follow each other. Two comparisons are five times as fast as a table.
        follow = self._first is None or int(bytes_of_model[-1]) == self._first + self._count - 1
        self._table = None if follow else np.zeros(tokenizer.vocab_size, np.bool_)
        if self._table is not None:
            self._table[bytes_of_model] = True
        # With byte fallback nothing is unknown.
        self._unknown = None if tokenizer.facts.engine.byte_fallback else tokenizer.unk_id

    def add(self, ids: NDArray[Any], counts: Counts) -> None:
        """Count ids, which are of an unsigned type."""
        np = numpy()
        counts.tokens += len(ids)
        for begin in range(0, len(ids), _STEP):
            part = ids[begin : begin + _STEP]
            if self._table is not None:
                counts.byte_tokens += int(np.count_nonzero(self._table[part]))
            elif self._first is not None:
                inside = part - part.dtype.type(self._first) < part.dtype.type(self._count)
                counts.byte_tokens += int(np.count_nonzero(inside))
            if self._unknown is not None:
                counts.unknown_tokens += int(np.count_nonzero(part == part.dtype.type(self._unknown)))
