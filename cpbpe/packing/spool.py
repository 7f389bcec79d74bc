"""A shard that is still being written: plain files that only grow, so that they can be cut off and continued.

The ids of all documents, where each document ends and, for formats that say so, where each came from. When
the shard is whole, its format makes the final files of them. Whatever a format puts in front (counts,
offsets) is known only then, and in the meantime a killed process leaves nothing that the next one cannot use.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.lazy import numpy
from cpbpe.packing.checksum import Checked, combined, of_file
from cpbpe.packing.rows import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK_DOCUMENTS = 1 << 16
_CHUNK_TOKENS = 1 << 20
_SEND_BYTES = 16 << 20
"""How much is written before the system is told to begin with sending it to the disk."""


@dataclass
class SpoolState:
    """How far a spool was at a certain time."""

    documents: int = 0
    tokens: int = 0
    crc: int = 0
    """The CRC of the ids."""
    crc_ends: int = 0
    crc_places: int = 0
    first: tuple[int, int] | None = None
    """The file and the record of the first document."""
    last: tuple[int, int] | None = None
    """The file and the record of the last document."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> SpoolState:
        """From JSON."""
        state = cls(**values)
        state.first = None if state.first is None else (state.first[0], state.first[1])
        state.last = None if state.last is None else (state.last[0], state.last[1])
        return state


class Chunk(NamedTuple):
    """Some documents of a shard, in order."""

    ids: NDArray[Any]
    lengths: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Where each ends, counted from the beginning of the shard."""
    files: NDArray[np.int64]
    records: NDArray[np.int64]
    """Where each comes from, if the format needs it; else empty."""


class Spool:
    """The files of one shard that is being written."""

    def __init__(self, path: str, dtype: str, *, header: int, places: bool, state: SpoolState | None):
        """`header`: how many bytes are left free before the ids. `state`: to be continued from."""
        self.path = path
        self.dtype = dtype
        self.header = header
        self.has_places = places
        self.state = state or SpoolState()
        self._unsent = 0
        self._files = {name: _opened(path + name, size) for name, size in self._sizes().items()}

    def _sizes(self) -> dict[str, int]:
        """How long each file is, as the state says."""
        item = numpy().dtype(self.dtype).itemsize
        sizes = {".tokens": self.header + item * self.state.tokens, ".ends": 8 * self.state.documents}
        return sizes | ({".places": 16 * self.state.documents} if self.has_places else {})

    @classmethod
    def is_there(cls, path: str, dtype: str, *, header: int, places: bool, state: SpoolState) -> bool:
        """Whether the files at a path are those of this state, or longer, and undamaged."""
        if not state.documents:
            return True
        item = numpy().dtype(dtype).itemsize
        expected = [(".tokens", item * state.tokens, header, state.crc)]
        expected += [(".ends", 8 * state.documents, 0, state.crc_ends)]
        expected += [(".places", 16 * state.documents, 0, state.crc_places)] if places else []
        return all(of_file(path + name, size, begin) == crc for name, size, begin, crc in expected)

    def append(self, rows: Rows) -> None:
        """Write documents."""
        np, state = numpy(), self.state
        if not len(rows):
            return
        state.crc = self._write(".tokens", rows.ids, state.crc)
        ends = np.cumsum(rows.lengths) + state.tokens
        state.crc_ends = self._write(".ends", ends, state.crc_ends)
        if self.has_places:
            places = np.stack((rows.files, rows.records), 1)
            state.crc_places = self._write(".places", places, state.crc_places)
        state.documents += len(rows)
        state.tokens += len(rows.ids)
        state.first = state.first or (int(rows.files[0]), int(rows.records[0]))
        state.last = (int(rows.files[-1]), int(rows.records[-1]))
        if self._unsent >= _SEND_BYTES:
            self._send()

    def _write(self, name: str, values: NDArray[Any], crc: int) -> int:
        data = memoryview(numpy().ascontiguousarray(values)).cast("B")
        self._files[name].write(data)
        self._unsent += len(data)
        return zlib.crc32(data, crc)

    def _send(self) -> None:
        """Have the system begin to send what is new to the disk, so that `fsync` finds little left to do.

        Without it, the end of a large shard took a tenth of all the time; and to wait for `fsync` every now
        and then takes as long. (What is already on the disk leaves memory, which is no loss: it is read again
        by few formats, and only at the end.)
        """
        self.flush()
        self._unsent = 0
        if hasattr(os, "posix_fadvise"):
            for file in self._files.values():
                with suppress(OSError):
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def flush(self) -> dict[str, Any]:
        """Hand everything to the system, which keeps it if this process is killed. The state then."""
        for file in self._files.values():
            file.flush()
        return asdict(self.state)

    def close(self) -> None:
        """Close the files; on a full disk, what is buffered is lost, and no state mentions it."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()

    def remove(self) -> None:
        """Delete the files that are left."""
        self.close()
        for name in self._files:
            with suppress(FileNotFoundError):
                os.unlink(self.path + name)


class Shard:
    """A whole shard, to be made into the files of a format."""

    def __init__(
        self, spool: Spool, split: str, number: int | None, sources: list[str], check: Callable[[], None]
    ):
        """`number` is None if the split has only one. `check` is called often, and raises to stop."""
        self.split = split
        self.number = number
        self.documents = spool.state.documents
        self.tokens = spool.state.tokens
        self.dtype: Any = numpy().dtype(spool.dtype)
        self.sources = sources
        """The names of the files that documents come from."""
        self._spool = spool
        self._check = check

    @property
    def name(self) -> str:
        """What its files are called in most formats: "train", or "train-00000"."""
        return self.split if self.number is None else f"{self.split}-{self.number:05}"

    def chunks(self) -> Iterator[Chunk]:
        """All documents, some at a time."""
        np, path = numpy(), self._spool.path
        none = np.zeros(0, np.int64)
        begin = 0
        with open(path + ".tokens", "rb") as tokens, open(path + ".ends", "rb") as all_ends:
            places = open(path + ".places", "rb") if self._spool.has_places else None  # noqa: SIM115
            tokens.seek(self._spool.header)
            try:
                while len(ends := np.fromfile(all_ends, np.int64, _CHUNK_DOCUMENTS)):
                    from_where = None if places is None else np.fromfile(places, np.int64, 2 * len(ends))
                    at = 0
                    while at < len(ends):
                        self._check()
                        stop = max(at + 1, int(np.searchsorted(ends, begin + _CHUNK_TOKENS, "right")))
                        part = ends[at:stop]
                        ids = np.fromfile(tokens, self.dtype, int(part[-1]) - begin)
                        lengths = np.diff(part, prepend=begin)
                        where = None if from_where is None else from_where.reshape(-1, 2)[at:stop]
                        files, records = (none, none) if where is None else (where[:, 0], where[:, 1])
                        yield Chunk(ids, lengths, part, files, records)
                        begin, at = int(part[-1]), stop
            finally:
                if places is not None:
                    places.close()

    def take_tokens(self, path: str, header: bytes) -> tuple[int, int]:
        """Make the file of ids the file at a path, with a header. Its size and CRC."""
        self._spool.close()
        with open(self._spool.path + ".tokens", "r+b") as file:
            file.write(header)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._spool.path + ".tokens", path)
        data = self.tokens * self.dtype.itemsize
        return len(header) + data, combined(zlib.crc32(header), self._spool.state.crc, data)


class Output:
    """The files of a shard, in the folder where they are until all of them are whole."""

    def __init__(self, folder: str):
        self._folder = folder
        self._open: dict[str, Checked] = {}
        self._taken: dict[str, tuple[int, int]] = {}

    def create(self, name: str) -> Checked:
        """A new file. It is closed with all others."""
        self._open[name] = Checked(self._path(name))
        return self._open[name]

    def take_tokens(self, shard: Shard, name: str, header: bytes = b"") -> None:
        """Make the ids of a shard a file, without copying them. Nothing can be read from the shard then."""
        self._taken[name] = shard.take_tokens(self._path(name), header)

    def _path(self, name: str) -> str:
        path = os.path.join(self._folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def close(self) -> dict[str, tuple[int, int]]:
        """Close all files: the size and CRC of each, by its name."""
        for file in self._open.values():
            file.close()
        return {**self._taken, **{name: (file.size, file.crc) for name, file in self._open.items()}}

    def abandon(self) -> None:
        """Close all files in whatever state they are."""
        for file in self._open.values():
            with suppress(OSError):
                file.abandon()


def _opened(path: str, size: int) -> Any:
    """A file to be continued at this size."""
    file = open(path, "ab" if os.path.exists(path) else "wb")  # noqa: SIM115
    file.truncate(size)
    file.seek(size)
    return file
