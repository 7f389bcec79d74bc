"""Encoded documents, with what is known about each: what goes from the encoder to the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cpbpe.lazy import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Encoded(NamedTuple):
    """The ids of a batch."""

    ids: NDArray[np.uint32]
    """The ids of all documents."""
    offsets: NDArray[np.int64]
    """Where each begins, and the end."""
    empty: NDArray[np.int64] | None
    """Which lines are empty, and no documents, if the batch has lines."""


@dataclass
class Rows:
    """Documents, one after the other, none of them without tokens."""

    ids: NDArray[np.unsignedinteger]
    """The ids of all."""
    lengths: NDArray[np.int64]
    """How many ids each document has."""
    numbers: NDArray[np.int64]
    """The number of each document of the corpus, from 0; empty ones are not numbered."""
    sequence: NDArray[np.int64]
    """Where each comes in the order in which documents are written. It only grows."""
    files: NDArray[np.int64]
    """The index of the file that each is from."""
    records: NDArray[np.int64]
    """The number of its line or record in that file, from 1."""

    def __len__(self) -> int:
        return len(self.lengths)

    def where(self, mask: NDArray[np.bool_]) -> Rows:
        """Those documents for which the mask is True."""
        np = numpy()
        if mask.all():
            return self
        documents = (self.lengths, self.numbers, self.sequence, self.files, self.records)
        ids = self.ids[np.repeat(mask, self.lengths)]
        return Rows(ids, *(column[mask] for column in documents))

    def without_empty(self) -> Rows:
        """Those documents that have tokens."""
        return self.where(self.lengths > 0)

    def begins(self) -> NDArray[np.int64]:
        """Where each document begins in `ids`."""
        begins: NDArray[np.int64] = numpy().cumsum(self.lengths) - self.lengths
        return begins

    def pick(self, order: NDArray[np.int64], begins: NDArray[np.int64], sequence: NDArray[np.int64]) -> Rows:
        """Some documents in another order, with their places in the sequence of all."""
        np = numpy()
        lengths = self.lengths[order]
        ends = np.cumsum(lengths)
        # The place of each id is as far from the beginning of its document as it will be.
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
            begins[order] - (ends - lengths), lengths
        )
        columns = (self.numbers[order], sequence, self.files[order], self.records[order])
        return Rows(self.ids[places], lengths, *columns)
