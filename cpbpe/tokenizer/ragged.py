"""What `Tokenizer.encode_arrays` returns: the ids of many texts in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, overload

from cpbpe.lazy import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Ragged:
    """Many sequences of ids, one after the other in one array.

    >>> import cpbpe
    >>> rows = cpbpe.load("tokenizer.model").encode_arrays(["Hi", "Hello world", ""])
    >>> rows
    <cpbpe.Ragged: 3 sequences, 3 ids>
    >>> rows.ids, rows.offsets
    (array([15359, 22557,  1526], dtype=uint32), array([0, 1, 3, 3]))
    >>> [ids.tolist() for ids in rows]
    [[15359], [22557, 1526], []]
    >>> rows.padded(pad_id=0)
    array([[15359,     0],
           [22557,  1526],
           [    0,     0]], dtype=uint32)
    """

    __slots__ = ("ids", "offsets", "spans")

    ids: NDArray[np.uint32]
    """The ids of all sequences."""
    offsets: NDArray[np.int64]
    """Where each sequence begins in `ids`, and the end; one more than there are sequences."""
    spans: NDArray[np.int64] | None
    """For each id a row with begin and end of what it came from in its text, if they were asked for."""

    def __init__(
        self, ids: NDArray[np.uint32], offsets: NDArray[np.int64], spans: NDArray[np.int64] | None = None
    ):
        self.ids = ids
        self.offsets = offsets
        self.spans = spans

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        return (self.ids[begin:end] for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    @overload
    def __getitem__(self, index: int) -> NDArray[np.uint32]: ...
    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    def __getitem__(self, index: int | slice) -> NDArray[np.uint32] | Ragged:
        """One sequence, or some of them. A slice with a step copies; without one it is a view."""
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step == 1:
                offsets = self.offsets[begin : max(begin, end) + 1]
                inside = slice(offsets[0], offsets[-1])
                spans = None if self.spans is None else self.spans[inside]
                return Ragged(self.ids[inside], offsets - offsets[0], spans)
            return self._pick(range(begin, end, step))
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"sequence {index} is outside of {count}")
        at = index % count
        return self.ids[self.offsets[at] : self.offsets[at + 1]]

    def _pick(self, rows: range) -> Ragged:
        np = numpy()
        places = [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows]
        inside = np.concatenate([np.zeros(0, np.int64), *places])
        offsets = np.cumsum([0, *map(len, places)], dtype=np.int64)
        return Ragged(self.ids[inside], offsets, None if self.spans is None else self.spans[inside])

    def padded(
        self, pad_id: int, max_length: int | None = None, side: Literal["left", "right"] = "right"
    ) -> NDArray[np.uint32]:
        """All sequences as the rows of one array, filled up with `pad_id` on one side.

        Rows are as long as the longest sequence. With `max_length` they are that long, and longer
        sequences lose ids on the side that would be filled.
        """
        lib = numpy()
        if side not in ("left", "right"):
            raise ValueError(f"side is 'left' or 'right', not {side!r}")
        lengths = lib.diff(self.offsets)
        width = int(lengths.max(initial=0)) if max_length is None else max_length
        if width < 0:
            raise ValueError(f"max_length is at least 0, not {max_length}")
        rows: NDArray[np.uint32] = lib.full((len(self), width), pad_id, lib.uint32)
        for row, ids in zip(rows, self, strict=True):
            if side == "right":
                row[: len(ids)] = ids[:width]
            elif len(ids) and width:
                row[-min(len(ids), width) :] = ids[-width:]
        return rows

    def tolist(self) -> list[list[int]]:
        """All sequences as lists of int."""
        return [ids.tolist() for ids in self]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return NotImplemented
        np = numpy()
        if (self.spans is None) != (other.spans is None):
            return False
        spans = self.spans is None or np.array_equal(self.spans, other.spans)
        return bool(
            spans and np.array_equal(self.offsets, other.offsets) and np.array_equal(self.ids, other.ids)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<cpbpe.Ragged: {len(self)} sequences, {len(self.ids)} ids>"
