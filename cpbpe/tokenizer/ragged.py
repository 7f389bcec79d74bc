"""What `Tokenizer.encode_arrays` returns: the ids of many texts in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, SupportsIndex, overload

from cpbpe.checks import checked_limit
from cpbpe.lazy import importing

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
    >>> ids, mask = rows.padded(pad_id=2, attention_mask=True)
    >>> ids
    array([[15359,     2],
           [22557,  1526],
           [    2,     2]], dtype=uint32)
    >>> mask
    array([[1, 0],
           [1, 1],
           [0, 0]])
    """

    __slots__ = ("ids", "offsets", "pad_id", "spans")

    ids: NDArray[np.uint32]
    """The ids of all sequences."""
    offsets: NDArray[np.int64]
    """Where each sequence begins in `ids`, and where the last one ends: one more than there are sequences."""
    spans: NDArray[np.int64] | None
    """For each id a row with the begin and end of its span in the text, if spans were asked for."""
    pad_id: int | None
    """The id that `padded` fills rows with: that of the model's pad piece, None if it has none."""

    def __init__(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        spans: NDArray[np.int64] | None = None,
        pad_id: int | None = None,
    ):
        self.ids = ids
        self.offsets = offsets
        self.spans = spans
        self.pad_id = pad_id

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
                return Ragged(self.ids[inside], offsets - offsets[0], spans, self.pad_id)
            return self._pick(range(begin, end, step))
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"sequence {index} is out of range: there are {count}")
        at = index % count
        return self.ids[self.offsets[at] : self.offsets[at + 1]]

    def _pick(self, rows: range) -> Ragged:
        with importing:
            import numpy as np
        places = [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows]
        inside = np.concatenate([np.zeros(0, np.int64), *places])
        offsets = np.cumsum([0, *map(len, places)], dtype=np.int64)
        spans = None if self.spans is None else self.spans[inside]
        return Ragged(self.ids[inside], offsets, spans, self.pad_id)

    @overload
    def padded(
        self,
        pad_id: SupportsIndex | None = None,
        max_length: SupportsIndex | None = None,
        side: Literal["left", "right"] = "right",
        *,
        multiple_of: SupportsIndex = 1,
        attention_mask: Literal[False] = False,
    ) -> NDArray[np.uint32]: ...
    @overload
    def padded(
        self,
        pad_id: SupportsIndex | None = None,
        max_length: SupportsIndex | None = None,
        side: Literal["left", "right"] = "right",
        *,
        multiple_of: SupportsIndex = 1,
        attention_mask: Literal[True],
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def padded(
        self,
        pad_id: SupportsIndex | None = None,
        max_length: SupportsIndex | None = None,
        side: Literal["left", "right"] = "right",
        *,
        multiple_of: SupportsIndex = 1,
        attention_mask: bool = False,
    ) -> NDArray[np.uint32] | tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """All sequences as the rows of one array, filled up with `pad_id` on one side.

        `pad_id` is the model's own if it is not given; a model without a pad piece needs one. Rows are as
        long as the longest sequence. With `max_length` they are that long, and longer sequences lose ids on
        the side that would be filled. `multiple_of` makes rows longer until their length is a multiple of it.

        With `attention_mask` there is a second array of the same shape: 1 where a row has an id of its
        sequence, 0 where it was filled up.
        """
        with importing:
            import numpy as lib
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right', not {side!r}")
        fill = self._fill_id(pad_id)
        lengths = lib.diff(self.offsets)
        limit = None if max_length is None else checked_limit(max_length, "max_length")
        width = int(lengths.max(initial=0)) if limit is None else limit
        width += -width % checked_limit(multiple_of, "multiple_of", 1)
        rows: NDArray[np.uint32] = lib.full((len(self), width), fill, lib.uint32)
        for row, ids in zip(rows, self, strict=True):
            kept = len(ids) if limit is None else min(len(ids), limit)
            if side == "right":
                row[:kept] = ids[:kept]
            elif kept:
                row[-kept:] = ids[-kept:]
        if not attention_mask:
            return rows
        own = lib.minimum(lengths, width if limit is None else limit)[:, None]
        places = lib.arange(width)
        mask = places < own if side == "right" else places >= width - own
        return rows, mask.astype(lib.int64)

    def _fill_id(self, given: SupportsIndex | None) -> int:
        """The id to fill rows with."""
        id = self.pad_id if given is None else checked_limit(given, "pad_id")
        if id is None:
            raise ValueError(
                "padded() needs a pad_id: this model has no pad piece. Any id will do if what reads the rows "
                "gets the attention mask, too: padded(pad_id=tok.eos_id, attention_mask=True). Or add a "
                'token: tok = tok.with_special_tokens(["<pad>"]), and pad_id=tok.vocab["<pad>"]'
            )
        if id >> 32:
            raise ValueError(f"pad_id must be less than 2**32, not {id}")
        return id

    def tolist(self) -> list[list[int]]:
        """All sequences as lists of int."""
        return [ids.tolist() for ids in self]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return NotImplemented
        with importing:
            import numpy as np
        if self.spans is None or other.spans is None:
            spans = self.spans is other.spans
        else:
            spans = np.array_equal(self.spans, other.spans)
        return bool(
            spans and np.array_equal(self.offsets, other.offsets) and np.array_equal(self.ids, other.ids)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<cpbpe.Ragged: {len(self)} sequences, {len(self.ids)} ids>"
