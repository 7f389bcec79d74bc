"""Documents in an order that looks random, with little memory: an exact permutation of all of them.

The order is that of the documents' keys (see `cpbpe.packing.keys`), so it is a matter of sorting. While the
corpus is read, each document goes to one of many files, its bucket, by the first bits of its key. Afterwards
each bucket fits into memory and is sorted there. How many buckets there are changes nothing in the result.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cpbpe.lazy import numpy
from cpbpe.packing.checksum import of_file
from cpbpe.packing.keys import ORDER, keys
from cpbpe.packing.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BUCKET_BYTES = 64 << 20
"""How much text goes into a bucket, if the size of the corpus is known."""
_MOST_BITS = 12
_USUAL_BITS = 8
_PENDING_TOKENS = 1 << 22
_STEP_TOKENS = 1 << 20
_COLUMNS = 4
"""What is kept of a document besides its ids: number, length, file, record."""


class Buckets:
    """The files that documents are distributed to."""

    def __init__(self, folder: str, dtype: str, seed: int, total: int | None, state: dict[str, Any] | None):
        """`total`: the size of the corpus, if it is known. `state`: to be continued from."""
        self._folder = folder
        self._dtype: Any = numpy().dtype(dtype)
        self._seed = seed
        self._pending: list[Rows] = []
        self._pending_tokens = 0
        if state is None:
            bits = (
                _USUAL_BITS if total is None else min(max(total // _BUCKET_BYTES, 1).bit_length(), _MOST_BITS)
            )
            state = {"bits": bits, "buckets": [[0, 0, 0, 0]] * (1 << bits)}
        self._bits: int = state["bits"]
        self._buckets: list[list[int]] = [list(bucket) for bucket in state["buckets"]]
        """The documents, the ids, and the CRCs of both files of each."""
        os.makedirs(folder, exist_ok=True)
        for number, (documents, tokens, _, _) in enumerate(self._buckets):
            for name, size in self._sizes(documents, tokens).items():
                path = self._path(number, name)
                if size:
                    os.truncate(path, size)
                else:
                    with suppress(FileNotFoundError):
                        os.unlink(path)

    @staticmethod
    def are_there(folder: str, dtype: str, state: dict[str, Any]) -> bool:
        """Whether the files are those of a state, or longer, and undamaged."""
        item = numpy().dtype(dtype).itemsize
        for number, (documents, tokens, crc, crc_documents) in enumerate(state["buckets"]):
            base = os.path.join(folder, f"{number:04}")
            if documents and (
                of_file(f"{base}.tokens", item * tokens) != crc
                or of_file(f"{base}.documents", 8 * _COLUMNS * documents) != crc_documents
            ):
                return False
        return True

    def _sizes(self, documents: int, tokens: int) -> dict[str, int]:
        return {"tokens": self._dtype.itemsize * tokens, "documents": 8 * _COLUMNS * documents}

    def _path(self, number: int, name: str) -> str:
        return os.path.join(self._folder, f"{number:04}.{name}")

    def __len__(self) -> int:
        return len(self._buckets)

    def add(self, rows: Rows) -> None:
        """Take documents."""
        self._pending.append(rows)
        self._pending_tokens += len(rows.ids)
        if self._pending_tokens >= _PENDING_TOKENS:
            self._distribute()

    def state(self) -> dict[str, Any]:
        """How far it is; everything that was taken is in files then."""
        self._distribute()
        return {"bits": self._bits, "buckets": self._buckets}

    def _distribute(self) -> None:
        np = numpy()
        pending, self._pending, self._pending_tokens = self._pending, [], 0
        for rows in pending:
            first_bits = keys(rows.numbers, self._seed, ORDER) >> np.uint64(64 - self._bits)
            order = np.argsort(first_bits, kind="stable")
            sorted_rows = rows.pick(order, rows.begins(), rows.sequence)
            ends = np.concatenate(([0], np.cumsum(sorted_rows.lengths)))
            bounds = np.searchsorted(first_bits[order], np.arange(len(self) + 1, dtype=np.uint64))
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                begin, end = int(bounds[number]), int(bounds[number + 1])
                self._append(number, sorted_rows, slice(begin, end), slice(int(ends[begin]), int(ends[end])))

    def _append(self, number: int, rows: Rows, documents: slice, ids: slice) -> None:
        np = numpy()
        bucket = self._buckets[number]
        columns = (rows.numbers, rows.lengths, rows.files, rows.records)
        table = np.stack([column[documents] for column in columns], 1)
        bucket[0] += documents.stop - documents.start
        bucket[1] += ids.stop - ids.start
        for place, (name, values) in enumerate({"tokens": rows.ids[ids], "documents": table}.items(), 2):
            data = memoryview(np.ascontiguousarray(values)).cast("B")
            with open(self._path(number, name), "ab") as file:
                file.write(data)
            bucket[place] = zlib.crc32(data, bucket[place])

    def ordered(self, number: int, sequence: int) -> Iterator[Rows]:
        """The documents of one bucket in order; the first is at this place of the sequence."""
        np = numpy()
        rows = self._load(number)
        order = np.argsort(keys(rows.numbers, self._seed, ORDER), kind="stable")
        begins = rows.begins()
        ends = np.cumsum(rows.lengths[order])
        at = 0
        while at < len(order):
            before = int(ends[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(ends, before + _STEP_TOKENS, "right")))
            yield rows.pick(order[at:stop], begins, np.arange(sequence + at, sequence + stop))
            at = stop

    def documents(self, number: int) -> int:
        """How many documents a bucket has."""
        return self._buckets[number][0]

    def _load(self, number: int) -> Rows:
        np = numpy()
        none = np.zeros(0, np.int64)
        if not self._buckets[number][0]:
            return Rows(np.zeros(0, self._dtype), none, none, none, none, none)
        ids: NDArray[Any] = np.fromfile(self._path(number, "tokens"), self._dtype)
        table = np.fromfile(self._path(number, "documents"), np.int64).reshape(-1, _COLUMNS)
        numbers, lengths, files, records = (np.ascontiguousarray(column) for column in table.T)
        return Rows(ids, lengths, numbers, np.zeros(len(numbers), np.int64), files, records)
