"""From documents to shards: where a shard ends, and how its files are made and put into place."""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cpbpe.packing.manifest import Manifest, Place
from cpbpe.packing.read import Source
from cpbpe.packing.spool import Chunk, Rows, Spool, SpoolState, crc_of

TRAIN, VALIDATION = "train", "val"
"""The names of the splits, also in names of files. Without a validation part there is only the first."""


MOST_UINT16 = 1 << 16
"""How many different ids a uint16 can hold."""


class Format(ABC):
    """A format of token files: how ids are stored, and how the files of a full shard are made."""

    name: ClassVar[str]
    """Its name in options."""
    files: ClassVar[tuple[str, ...]]
    """The names of a shard's files, that of the ids first. `{name}` is "train", or "train-00000"."""
    dtypes: ClassVar[tuple[str, ...]] = ("uint16", "uint32", "int32")
    """The types of ids that its readers accept."""
    header: ClassVar[int] = 0
    """The size in bytes of the header of its file of ids. The header is written last."""
    needs_places: ClassVar[bool] = False
    """Whether its files record where documents come from."""
    usual_size: ClassVar[str | None] = None
    """The size of shards if none is given; None: all documents in one shard."""

    def names(self, split: str, number: int | None) -> list[str]:
        """The names of a shard's files; `number` is None if the split has only one."""
        name = split if number is None else f"{split}-{number:05}"
        return [file.format(name=name, split=split, number=number or 0) for file in self.files]

    def dtype(self, vocab_size: int) -> str:
        """The type of ids that its own tools choose for a vocabulary of this size."""
        return "uint16" if vocab_size <= MOST_UINT16 else "uint32"

    def check(self, shard_bytes: int | None) -> None:  # noqa: B027  # most have nothing to check
        """Raise an error if a package is missing, or if shards cannot have this size."""

    @abstractmethod
    def write(self, shard: Shard) -> None:
        """Make the files of a shard."""

    def index(self, shards: Sequence[dict[str, Any]], dtype: str) -> dict[str, bytes]:
        """Files that list all shards of one split, given their entries in the manifest."""
        return {}


@dataclass
class Job:
    """What the parts of a run share."""

    place: Place
    manifest: Manifest
    source: Source
    format: Format
    most_tokens: int | None
    """The most tokens of a shard; None if there is only one."""
    show: Callable[[str, int, int | None], None]
    """Shows the progress of the work."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run, as the manifest has them."""
        return self.manifest.options

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits of this run."""
        return (TRAIN, VALIDATION) if self.options["validation"] else (TRAIN,)


class Checked:
    """A file that is written from its beginning to its end, with the CRC and the size of what was written.

    It has the methods that gzip and pyarrow need of a file.
    """

    def __init__(self, path: str):
        self.crc = 0
        self.size = 0
        self.closed = False
        """Whether it is closed. (Not a property: pyarrow would drop Ctrl-C while that is worked out.)"""
        self._file = open(path, "wb")  # noqa: SIM115

    def write(self, data: Any) -> int:
        """Write bytes, or an array in one piece."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        return len(view)

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """Make sure that everything is on the disk, and close the file."""
        if not self.closed:
            self.closed = True
            with self._file:
                self._file.flush()
                os.fsync(self._file.fileno())


class Shard:
    """A full shard, of which a format makes files. They stay in the scratch folder until all are complete."""

    def __init__(self, job: Job, spool: Spool, split: str, number: int | None):
        """`number` is None if the split has only one."""
        self.documents = spool.state.documents
        self.tokens = spool.state.tokens
        self.dtype: Any = spool.dtype
        self.sources = job.source.names
        """The names of the files that documents come from."""
        self.names = job.format.names(split, number)
        """The names of its files."""
        self._job = job
        self._spool = spool
        self._created: dict[str, Checked] = {}
        self._files = ExitStack()
        self._taken: dict[str, tuple[int, int]] = {}  # the sizes and CRCs of the files of ids

    def chunks(self) -> Iterator[Chunk]:
        """Yield all documents, in chunks."""
        return self._spool.chunks()

    def create(self, name: str) -> Checked:
        """Create a file. It is closed together with the others."""
        file = self._created[name] = self._files.enter_context(closing(Checked(whole_path(self._job, name))))
        return file

    def take_tokens(self, name: str, header: bytes = b"") -> None:
        """Make a file of the ids, without copying them. After that, nothing can be read from the shard."""
        self._taken[name] = self._spool.take_tokens(whole_path(self._job, name), header)

    def made(self) -> list[dict[str, Any]]:
        """Have the format make the files. Return their entries for the manifest, that of the ids first."""
        with self._files:
            self._job.format.write(self)
        created = {name: (file.size, file.crc) for name, file in self._created.items()}
        return [file_entry(name, *facts) for name, facts in {**self._taken, **created}.items()]


class Split:
    """The shards of one split, of which one is being written."""

    def __init__(self, job: Job, name: str, number: int = 0, next: int = 0, begin: int = 0, spool: Any = ()):
        """The arguments after `name` are its `state`, as it is read from JSON."""
        self.name = name
        self.number = number
        """The number of the shard that is being written."""
        self.next = next
        """The documents before this one, in the order of `Rows.sequence`, have been written."""
        self.begin = begin
        """The first document of the shard, in the same order."""
        self._job = job
        self.spool = self._spool(SpoolState(*spool))

    def _spool(self, state: SpoolState) -> Spool:
        """The spool that holds the shard until it is full."""
        columns = ("lengths", "files", "records") if self._job.format.needs_places else ("lengths",)
        path = self._job.place.scratch(self.name)
        return Spool(path, self._job.options["dtype"], columns, self._job.format.header, state)

    def state(self) -> list[Any]:
        """The state from which a run can continue. What it covers is safe, even if the process is killed."""
        return [self.number, self.next, self.begin, self.spool.state]

    def add(self, rows: Rows, is_whole: Callable[[Split], None]) -> None:
        """Write documents. `is_whole` is called whenever the shard is full."""
        most = self._job.most_tokens
        if len(rows) and rows.sequence[0] < self.next:  # some were written before the run was interrupted
            rows = rows.where(rows.sequence >= self.next)
        ends = np.cumsum(rows.lengths)
        at = 0
        while at < len(rows):
            stop = len(rows)
            if most is not None:
                before = int(ends[at - 1]) if at else 0
                room = most - self.spool.state.tokens
                stop = int(np.searchsorted(ends, before + room, "right"))
                if stop <= at and not self.spool.state.documents:
                    stop = at + 1  # a document longer than a shard gets a shard of its own
            if stop > at:
                self.spool.append(rows.part(at, stop, ends))
                self.next = int(rows.sequence[stop - 1]) + 1
                at = stop
            if at < len(rows):
                is_whole(self)

    def finish(self) -> dict[str, Any]:
        """Make the files of the shard, and put them into place. Return its entry for the manifest."""
        spool = self.spool
        shard = Shard(self._job, spool, self.name, None if self._job.most_tokens is None else self.number)
        files = shard.made()
        for file in files:
            publish(self._job, file)
        entry = {
            "split": self.name,
            "number": self.number,
            "documents": shard.documents,
            "tokens": shard.tokens,
            "sequence": [self.begin, self.next],
            "first": spool.state.first,
            "last": spool.state.last,
            "files": files,
        }
        self.number += 1
        self.begin = self.next
        self.spool = self._spool(SpoolState()).cut()
        return entry


def whole_path(job: Job, name: str) -> str:
    """The path that a file has until all files of its shard are complete."""
    path = job.place.scratch(os.path.join("whole", name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def publish(job: Job, file: dict[str, Any]) -> None:
    """Move a complete file into place, given its entry.

    A file there is this run's own, from just before it was interrupted, if it is the same.
    """
    path = job.place.path(file["name"])
    if not is_same(path, file):
        check_free(path)
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    os.replace(whole_path(job, file["name"]), path)


def check_free(path: str) -> None:
    """Raise an error if there is a file, which a run must not overwrite."""
    if os.path.lexists(path):
        raise FileExistsError(
            f"{path!r} exists already, and no run of cpbpe pack has written it; choose another folder, or "
            f"remove it"
        )


def publish_index(job: Job, name: str, content: bytes) -> dict[str, Any]:
    """Write a file that lists shards. Return its entry for the manifest."""
    with closing(Checked(whole_path(job, name))) as file:
        file.write(content)
    entry = file_entry(name, file.size, file.crc)
    publish(job, entry)
    return entry


def file_entry(name: str, size: int, crc: int) -> dict[str, Any]:
    """The entry of a file in the manifest."""
    return {"name": name, "size": size, "crc32": f"{crc:08x}"}


def is_same(path: str, file: dict[str, Any]) -> bool:
    """Whether a file has the size and the CRC of an entry."""
    crc = crc_of(path, file["size"])
    return crc is not None and f"{crc:08x}" == file["crc32"] and os.path.getsize(path) == file["size"]
