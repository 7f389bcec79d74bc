"""Documents in files that only grow: they can be cut back to an earlier state, and continued from there.

Whatever a killed process leaves in them, the next one can use. CRCs detect damage, though not forgery. They
are used because a process can continue the CRC of an earlier one, which Python's hashes do not allow.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0xEDB88320
"""The polynomial of CRC-32, with its highest power in the lowest bit, as in zlib."""
_READ_BYTES = 1 << 22
_SEND_BYTES = 16 << 20
"""After this many bytes, the system is told to start sending them to the disk."""
_CHUNK_DOCUMENTS = 1 << 16
_CHUNK_TOKENS = 1 << 20


@dataclass
class Rows:
    """Encoded documents, one after another, each with at least one token."""

    ids: NDArray[Any]
    """The ids of all."""
    lengths: NDArray[np.int64]
    """How many ids each document has."""
    numbers: NDArray[np.int64]
    """The number of each document of the corpus, from 0; empty ones are not numbered."""
    sequence: NDArray[np.int64]
    """The place of each in the sequence of all documents as they are written; it ascends."""
    files: NDArray[np.int64]
    """The index of the file that each is from."""
    records: NDArray[np.int64]
    """The number of its line or record in that file, from 1."""

    def __len__(self) -> int:
        return len(self.lengths)

    def where(self, mask: NDArray[np.bool_]) -> Rows:
        """The documents for which the mask is True."""
        return self if mask.all() else self._chosen(mask, self.ids[np.repeat(mask, self.lengths)])

    def part(self, begin: int, end: int, ends: NDArray[np.int64]) -> Rows:
        """The documents from index `begin` up to `end`; `ends`: where the ids of each document end."""
        return self._chosen(slice(begin, end), self.ids[ends[begin - 1] if begin else 0 : ends[end - 1]])

    def pick(self, order: NDArray[np.int64], sequence: NDArray[np.int64]) -> Rows:
        """Some documents in another order, with their places in the sequence of all."""
        begins = np.cumsum(self.lengths) - self.lengths
        lengths = self.lengths[order]
        ends = np.cumsum(lengths)
        # Each id keeps its distance from the beginning of its document.
        places = np.arange(ends[-1] if len(ends) else 0)
        places += np.repeat(begins[order] - (ends - lengths), lengths)
        return replace(self._chosen(order, self.ids[places]), sequence=sequence)

    def _chosen(self, which: Any, ids: NDArray[Any]) -> Rows:
        columns = (self.lengths, self.numbers, self.sequence, self.files, self.records)
        return Rows(ids, *(column[which] for column in columns))


class SpoolState(NamedTuple):
    """How much a spool held at a certain time."""

    documents: int = 0
    tokens: int = 0
    crc: int = 0
    """The CRC of the ids."""
    crc_documents: int = 0
    """The CRC of the numbers that are kept of each document."""
    first: tuple[int, int] | None = None
    """The file and the record of the first document."""
    last: tuple[int, int] | None = None
    """The file and the record of the last document."""


class Chunk(NamedTuple):
    """Some documents of a spool, in order."""

    ids: NDArray[Any]
    lengths: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Where each ends, counted from the beginning of the spool."""
    files: NDArray[np.int64]
    records: NDArray[np.int64]
    """Where each comes from, if that is recorded; otherwise empty."""


class Spool:
    """Two files: `PATH.tokens` with the ids of documents, `PATH.documents` with a few numbers of each."""

    def __init__(
        self,
        path: str,
        dtype: str,
        columns: tuple[str, ...],
        header: int = 0,
        state: SpoolState | None = None,
    ):
        """The files are not touched yet. `columns`: those of `Rows` that are kept, lengths among them.

        `header`: how many bytes are left free before the ids. `state`: that to continue from.
        """
        self.path = path
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.header = header
        self.state = state or SpoolState()
        self._columns = columns
        self._unsent = 0

    def _files(self) -> list[tuple[str, int, int, int]]:
        """For each file: its path, where its checked part begins, and the size and the CRC of that part."""
        documents, tokens, crc, crc_documents, *_ = self.state
        return [
            (f"{self.path}.tokens", self.header, self.dtype.itemsize * tokens, crc),
            (f"{self.path}.documents", 0, 8 * len(self._columns) * documents, crc_documents),
        ]

    def is_there(self) -> bool:
        """Whether the files hold, undamaged, at least what the state covers."""
        files = self._files() if self.state.documents else ()
        return all(crc_of(path, size, begin) == crc for path, begin, size, crc in files)

    def cut(self) -> Spool:
        """Cut the files back to the state."""
        for path, begin, size, _ in self._files():
            if size:
                os.truncate(path, begin + size)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
        return self

    def append(self, rows: Rows) -> None:
        """Write documents. The system then has them, and keeps them even if this process is killed."""
        if not len(rows):
            return
        state = self.state
        table = np.stack([getattr(rows, column) for column in self._columns], 1)
        crc = self._append(".tokens", self.header, rows.ids, state.crc)
        crc_documents = self._append(".documents", 0, table, state.crc_documents)
        self.state = SpoolState(
            state.documents + len(rows),
            state.tokens + len(rows.ids),
            crc,
            crc_documents,
            state.first or (int(rows.files[0]), int(rows.records[0])),
            (int(rows.files[-1]), int(rows.records[-1])),
        )

    def _append(self, name: str, header: int, values: NDArray[Any], crc: int) -> int:
        data = np.ascontiguousarray(values).view(np.uint8).data
        with open(self.path + name, "ab", 0) as file:
            if not file.tell():  # it is new
                file.truncate(header)
            rest = data
            while rest:  # the system may write only a part
                rest = rest[file.write(rest) :]
            self._unsent += len(data)
            # Have the system start sending new data to the disk, so that little is left for `fsync`. Without
            # this, the end of a large shard took a tenth of the whole time, and calling `fsync` now and then
            # took as long. (The system also drops the data from memory, which does little harm: few formats
            # read it again, and only at the end.)
            if self._unsent >= _SEND_BYTES and hasattr(os, "posix_fadvise"):
                self._unsent = 0
                with suppress(OSError):
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return zlib.crc32(data, crc)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all documents, in chunks."""
        tokens_read, none = 0, np.zeros(0, np.int64)
        with open(f"{self.path}.tokens", "rb") as tokens, open(f"{self.path}.documents", "rb") as documents:
            tokens.seek(self.header)
            while len(numbers := np.fromfile(documents, np.int64, _CHUNK_DOCUMENTS * len(self._columns))):
                table = dict(zip(self._columns, numbers.reshape(-1, len(self._columns)).T, strict=True))
                ends = np.cumsum(table["lengths"]) + tokens_read
                at = 0
                while at < len(ends):
                    stop = max(at + 1, int(np.searchsorted(ends, tokens_read + _CHUNK_TOKENS, "right")))
                    ids = np.fromfile(tokens, self.dtype, int(ends[stop - 1]) - tokens_read)
                    files, records = (table.get(name, none)[at:stop] for name in ("files", "records"))
                    yield Chunk(ids, table["lengths"][at:stop], ends[at:stop], files, records)
                    tokens_read, at = int(ends[stop - 1]), stop

    def take_tokens(self, path: str, header: bytes) -> tuple[int, int]:
        """Put a header into the file of ids, and move the file to a path. Return its size and CRC."""
        with open(f"{self.path}.tokens", "r+b") as file:
            file.write(header)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{self.path}.tokens", path)
        size = self.state.tokens * self.dtype.itemsize
        return len(header) + size, combined(zlib.crc32(header), self.state.crc, size)


# --- CRC-32 ---------------------------------------------------------------------------------------


def crc_of(path: str, size: int, begin: int = 0) -> int | None:
    """The CRC of this many bytes of a file; None if there are fewer, or no file."""
    if not os.path.isfile(path):
        return None
    crc = 0
    with open(path, "rb") as file:
        file.seek(begin)
        while size:
            part = file.read(min(size, _READ_BYTES))
            if not part:
                return None
            crc = zlib.crc32(part, crc)
            size -= len(part)
    return crc


def combined(first: int, second: int, length: int) -> int:
    """The CRC of two parts, from the CRC of each and the length of the second.

    >>> combined(zlib.crc32(b"one, "), zlib.crc32(b"two"), 3) == zlib.crc32(b"one, two")
    True
    """
    # Appending bits multiplies the CRC by a power of x; the initial and final constants cancel out.
    # (The highest bit stands for 1, and the next one for x.)
    square, exponent = 1 << 30, 8 * length  # `square`: x, then x**2, x**4 ...
    while exponent:
        if exponent & 1:
            first = _times(first, square)
        square = _times(square, square)
        exponent >>= 1
    return first ^ second


def _times(first: int, second: int) -> int:
    """The product of two polynomials over the field of two elements, modulo the polynomial of CRC-32."""
    product = 0
    while first:
        if first & 1 << 31:
            product ^= second
        first = first << 1 & 0xFFFFFFFF
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product
