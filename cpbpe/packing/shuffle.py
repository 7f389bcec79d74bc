"""Shuffling documents with little memory, as an exact permutation of all of them.

Each document has a key, a number that looks random. Documents are sorted by their keys. While the corpus is
read, each document goes to one of many files, its bucket, which the first bits of its key decide. Afterwards
each bucket fits into memory and is sorted there. The number of buckets does not affect the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbpe.packing.spool import Rows, Spool, SpoolState

ORDER = 0x6F72646572
VALIDATION = 0x76616C6964
"""The purposes of keys. Because these differ, order and split are independent, even with equal seeds."""

_BUCKET_BYTES = 64 << 20
"""How much text goes into a bucket, if the size of the corpus is known."""
_MOST_BITS = 12
_USUAL_BITS = 8
_PENDING_TOKENS = 1 << 22
_STEP_TOKENS = 1 << 20
_COLUMNS = ("numbers", "lengths", "files", "records")

_GOLDEN = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MASK = (1 << 64) - 1


def keys(numbers: NDArray[np.int64], seed: int, purpose: int) -> NDArray[np.uint64]:
    """The keys of documents, by SplitMix64: with one seed, different numbers have different keys.

    Keys depend only on the seed, the purpose and the number of the document, so neither threads nor the size
    of a batch nor an interruption can change them.

    >>> [hex(key) for key in keys(np.arange(2), 0, ORDER).tolist()]
    ['0xb0d4375e18a003f4', '0xbe9ac585fad994a8']
    """
    begin = (seed * _GOLDEN + purpose) & _MASK
    for shift, factor in _STEPS:
        begin = ((begin ^ begin >> shift) * factor) & _MASK
    begin ^= begin >> 31
    with np.errstate(over="ignore"):
        mixed: Any = numbers.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(begin)
        for shift, factor in _STEPS:
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    result: NDArray[Any] = mixed ^ (mixed >> np.uint64(31))
    return result


def is_validation(numbers: NDArray[np.int64], seed: int, share: float) -> NDArray[np.bool_]:
    """Which documents belong to the validation part: on average, a `share` of all."""
    return keys(numbers, seed, VALIDATION) < np.uint64(min(int(share * 2.0**64), _MASK))


class Buckets:
    """The files that documents are distributed to."""

    def __init__(self, folder: str, dtype: str, seed: int, total: int | None, states: Any):
        """`total`: the size of the corpus, if it is known. `states`: those to continue from, as in JSON."""
        self._seed = seed
        self._pending: list[Rows] = []
        self._pending_tokens = 0
        if states is None:
            bits = _USUAL_BITS
            if total is not None:
                bits = min(max(total // _BUCKET_BYTES, 1).bit_length(), _MOST_BITS)
            states = [()] * (1 << bits)
        os.makedirs(folder, exist_ok=True)
        paths = (os.path.join(folder, f"{number:04}") for number in range(len(states)))
        self.spools = [
            Spool(path, dtype, _COLUMNS, state=SpoolState(*state))
            for path, state in zip(paths, states, strict=True)
        ]
        """One for each bucket."""

    def __len__(self) -> int:
        return len(self.spools)

    def states(self) -> list[SpoolState]:
        """Write everything that was taken to files, and return the state of each bucket."""
        self._distribute()
        return [spool.state for spool in self.spools]

    def add(self, rows: Rows) -> None:
        """Take documents."""
        self._pending.append(rows)
        self._pending_tokens += len(rows.ids)
        if self._pending_tokens >= _PENDING_TOKENS:
            self._distribute()

    def _distribute(self) -> None:
        pending, self._pending, self._pending_tokens = self._pending, [], 0
        bits = len(self).bit_length() - 1
        for rows in pending:
            first_bits = keys(rows.numbers, self._seed, ORDER) >> np.uint64(64 - bits)
            order = np.argsort(first_bits, kind="stable")
            sorted_rows = rows.pick(order, rows.sequence)
            ends = np.cumsum(sorted_rows.lengths)
            bounds = np.searchsorted(first_bits[order], np.arange(len(self) + 1, dtype=np.uint64))
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                part = sorted_rows.part(int(bounds[number]), int(bounds[number + 1]), ends)
                self.spools[number].append(part)

    def ordered(self, number: int, sequence: int) -> Iterator[Rows]:
        """Yield the documents of one bucket in order; `sequence` is the place of the first among all."""
        spool = self.spools[number]
        if not spool.state.documents:
            return
        ids = np.fromfile(f"{spool.path}.tokens", spool.dtype)
        table = np.fromfile(f"{spool.path}.documents", np.int64).reshape(-1, len(_COLUMNS))
        numbers, lengths, files, records = (np.ascontiguousarray(column) for column in table.T)
        rows = Rows(ids, lengths, numbers, np.zeros(len(numbers), np.int64), files, records)
        order = np.argsort(keys(numbers, self._seed, ORDER), kind="stable")
        ends = np.cumsum(lengths[order])
        at = 0
        while at < len(order):
            before = int(ends[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(ends, before + _STEP_TOKENS, "right")))
            yield rows.pick(order[at:stop], np.arange(sequence + at, sequence + stop))
            at = stop
