"""The documents to pack, from files or from any iterable, in batches that record where they come from."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import is_missing, listed_column, table_way_out
from cpbpe.corpus.documents import DocumentBlock, Documents
from cpbpe.corpus.records import encoded
from cpbpe.errors import CorpusError
from cpbpe.spelling import named

BATCH_BYTES = 4 << 20
"""A batch has about this much text: enough to keep all threads busy, and little next to memory."""
_FEW_BYTES = 1 << 18
"""Files with less text than this share a batch with others."""
_SAMPLE_BYTES = 1 << 16
_ITEMS = 1 << 10


@dataclass
class Read:
    """How far a source has been read, and what has been in it so far."""

    file: int = 0
    """The index of the current file."""
    record: int = 0
    """How many of its records have been taken."""
    number: int = 0
    """How many documents there have been, without those that are empty or absent."""
    text_bytes: int = 0
    empty: int = 0
    """Documents without a byte, such as empty lines of a text."""
    absent: int = 0
    """Records that hold no document: null, or an empty line between records."""
    last_crc: int = 0
    """The CRC of the last document, by which a source that cannot be checked otherwise is recognized."""


class Encoded(NamedTuple):
    """The ids of a batch."""

    ids: NDArray[Any]
    """The ids of all documents."""
    offsets: NDArray[np.int64]
    """Where each document begins, and where the last one ends."""
    empty: NDArray[np.int64] | None = None
    """Which lines are empty and so not documents, if the batch has lines."""


@dataclass
class Batch:
    """Consecutive documents, in one of three forms: a list, the lines of a text, or encoded already."""

    texts: list[bytes] = field(default_factory=list)
    """The documents, none of them empty."""
    lines: bytes | None = None
    """The documents as lines; empty lines are not documents. `texts` is empty then."""
    encoded: Encoded | None = None
    """The ids of the documents, if they have been encoded already. `texts` is empty then."""
    places: list[tuple[int, NDArray[np.int64]]] = field(default_factory=list)
    """For each file its index, and the numbers of the records, or of all lines."""
    text_bytes: int = 0
    """How many bytes of text the documents have."""
    empty: int = 0
    """How many empty documents there were besides; if there are lines, this is not known yet."""
    absent: int = 0
    """How many records held no document."""
    file: int = 0
    record: int = 0
    last_crc: int = 0
    """Where the source has been read to with this batch, as in `Read`."""
    done: int = 0
    """How many bytes of the source have been read, for a display of the progress."""

    def located(
        self, before: Read, documents: int, empty_lines: NDArray[np.int64] | None
    ) -> tuple[Read, NDArray[np.int64], NDArray[np.int64]]:
        """How far the source has been read after this batch, and the file and record of each document.

        `before`: how far it was read before. `documents`: how many there are. `empty_lines`: which lines are
        empty.
        """
        places, empty = self.places, self.empty
        if empty_lines is not None and len(empty_lines):
            ((file, numbers),) = places
            places, empty = [(file, np.delete(numbers, empty_lines))], len(empty_lines)
        after = Read(
            self.file,
            self.record,
            before.number + documents,
            before.text_bytes + self.text_bytes,
            before.empty + empty,
            before.absent + self.absent,
            self.last_crc,
        )
        none = np.zeros(0, np.int64)
        files = [np.full(len(numbers), file) for file, numbers in places]
        records = [numbers for _, numbers in places]
        return after, np.concatenate([none, *files]), np.concatenate([none, *records])


class _Collector:
    """Collects what is read into batches."""

    def __init__(self, read: Read):
        self._file, self._record, self._last_crc = read.file, read.record, read.last_crc
        self._missing = read.record
        """How many records of the last file of an earlier run this run has still to skip."""
        self.batch = Batch()
        """What has been collected."""

    def add(self, block: DocumentBlock, as_lines: bool = False) -> None:
        """Take the documents of a block; with `as_lines` as they are: what is in them is counted later."""
        # 1. What an earlier run has taken. Its last document must not have changed.
        seen, end = 0, block.first - 1 + block.count
        if block.file == self._file:
            seen = min(block.count, self._record - (block.first - 1))
            self._missing = min(self._missing, max(0, self._record - end))
        else:
            self.check_complete()
        if seen and not self._missing:
            last = next(filter(None, reversed(block.texts[:seen])), None)
            if last is not None and zlib.crc32(last) != self._last_crc:
                raise CorpusError(
                    "the texts are not those of the run that was interrupted; give the same ones in the same "
                    "order, or begin again in another folder"
                )
        if seen == block.count:
            return
        # 2. The others.
        batch = self.batch
        self._file, self._record = block.file, end
        records = np.arange(block.first + seen, end + 1)
        if as_lines and block.lines is not None and not seen:
            batch.lines = block.lines
            batch.text_bytes = block.text_bytes
            last = block.lines.rstrip(b"\n").rpartition(b"\n")[2]
        else:
            texts = block.texts[seen:]
            kept = texts if all(texts) else list(filter(None, texts))
            if len(kept) < len(texts):
                records = records[np.fromiter(map(bool, texts), np.bool_, len(texts))]
                absent = sum(index >= seen for index in block.absent)
                batch.absent += absent
                batch.empty += len(texts) - len(kept) - absent
            batch.texts += kept
            batch.text_bytes += sum(map(len, kept))
            last = kept[-1] if kept else b""
        batch.places.append((block.file, records))
        if last:
            self._last_crc = zlib.crc32(last)

    def check_complete(self) -> None:
        """Raise an error if the source ended before the place where an earlier run was interrupted."""
        if self._missing:
            raise CorpusError(
                f"the source ends {self._missing:,} records before the place where the run was interrupted; "
                f"give the same one, or begin again in another folder"
            )

    def is_full(self) -> bool:
        """Whether the batch is large enough. Lines always make a batch of their own."""
        return self.batch.lines is not None or self.batch.text_bytes >= BATCH_BYTES

    def take(self, done: int) -> Batch:
        """Return the batch, and begin another one."""
        batch, self.batch = self.batch, Batch()
        batch.file, batch.record, batch.last_crc, batch.done = self._file, self._record, self._last_crc, done
        return batch


class Source(ABC):
    """Where documents come from: anything that gives the same ones again if a run is resumed."""

    names: Sequence[str] = ("item",)
    """The names of the files; a single name if the source is not files."""
    total: int | None = None
    """How many bytes there are to read, if that is known."""
    facts: list[dict[str, Any]]
    """What is known about each file, to notice if a run is continued with other files."""

    @abstractmethod
    def batches(self, read: Read, as_lines: bool = False) -> Iterator[Batch]:
        """Yield all batches after `read`. The last may be empty. `as_lines`: batches may have lines."""

    def check_same(self, before: Read) -> None:
        """Raise an error unless this is what a complete run has read. What has no `facts` is read again."""
        if all("size" in facts for facts in self.facts):
            return
        read = Read()
        for batch in self.batches(read):
            read, *_ = batch.located(read, len(batch.texts), None)
        if read != before:
            raise CorpusError(
                "the texts are not those of the run that is complete there; give the same ones, or choose "
                "another folder"
            )

    def warnings(self) -> list[str]:
        """Warnings about the source, once everything has been read."""
        return []


class FileSource(Source):
    """Documents of files."""

    def __init__(self, documents: Documents):
        self._documents = documents
        self.names = documents.files
        self.total = documents.total
        self.facts = [_facts(path) for path in documents.files]

    def batches(self, read: Read, as_lines: bool = False) -> Iterator[Batch]:
        documents, collector = self._documents, _Collector(read)
        documents.begin(read.file)
        for file in range(read.file, len(self.names)):
            for block in documents.blocks_of(file):
                # (A little text at the beginning of a file may be one of many small files.)
                lines = block.lines if block.first > 1 or block.text_bytes >= _FEW_BYTES else None
                if as_lines and lines is not None and collector.batch.places:
                    yield collector.take(documents.read)
                collector.add(block, as_lines and lines is not None)
                if collector.is_full():
                    yield collector.take(documents.read)
            if _facts(self.names[file]) != self.facts[file]:
                raise CorpusError(
                    f"{self.names[file]}: was changed while it was read; begin again in another folder when "
                    f"it is complete"
                )
        collector.check_complete()
        yield collector.take(documents.read)

    def warnings(self) -> list[str]:
        said = [
            f"{name} begins with a byte order mark, which is part of its first document"
            for name in self._documents.marked[:3]
        ]
        if out := self._documents.left_out:
            name, what = next(iter(out.items()))
            said.append(f"{len(out):,} files in the folders were left out; the first, {name!r}, {what}")
        if again := self._documents.again:
            said.append(
                f"{len(again):,} links lead to files that are read under another name, such as {again[0]!r}"
            )
        return said


class TextSource(Source):
    """Documents from an iterable."""

    def __init__(self, texts: Any):
        self._texts = listed_column(texts)
        self.facts = [{"path": None}]

    def batches(self, read: Read, as_lines: bool = False) -> Iterator[Batch]:
        collector, first = _Collector(read), 1
        texts: list[bytes] = []
        absent: list[int] = []
        size = 0
        for number, text in enumerate(self._texts, 1):
            if is_missing(text):
                absent.append(len(texts))
            texts.append(_as_bytes(text, number))
            size += len(texts[-1])
            if size >= BATCH_BYTES // 4 or len(texts) >= _ITEMS:
                collector.add(DocumentBlock(0, "item", first, texts, absent=absent))
                first, texts, absent, size = number + 1, [], [], 0
                if collector.is_full():
                    yield collector.take(number)
        collector.add(DocumentBlock(0, "item", first, texts, absent=absent))
        collector.check_complete()
        yield collector.take(first - 1)


def source_of(given: Any, **reading: Any) -> Source:
    """The source that a user gives: a path, a list of paths, or an iterable of texts.

    `reading`: the arguments of `Documents`.
    """
    paths = None
    if isinstance(given, (str, os.PathLike)):
        paths = [given]
    elif isinstance(given, (list, tuple)) and given and all(isinstance(item, os.PathLike) for item in given):
        paths = list(given)
    if paths is not None:
        return FileSource(Documents(paths, **reading))
    if isinstance(given, (bytes, bytearray, memoryview)):
        raise TypeError("source is bytes; for one document give a list with it: [data]")
    if (way_out := table_way_out(given)) is not None:
        raise TypeError(f"source is a whole table, {type(given).__name__}; {way_out}")
    if hasattr(given, "read") or not isinstance(given, Iterable):
        raise TypeError(
            "source must be a path, a list of Path objects or an iterable of texts, not "
            f"{type(given).__name__}"
        )
    if isinstance(given, (set, frozenset)):
        raise TypeError("source is a set, which has no order; give sorted(texts)")
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], str) and os.path.isfile(given[0]):
        raise ValueError(
            f"source is a list of str, and {given[0]!r} is a file; give Path objects for paths, or "
            f"iter(texts) for texts"
        )
    for name in ("format", "field", "column", "whole"):
        if reading.get(name) not in (None, "text", False):
            raise CorpusError(
                f"{named(name)} means nothing here: it is about files, and source is not a path; leave it out"
            )
    return TextSource(given)


def _as_bytes(text: Any, number: int) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return encoded(text, lambda: f"item {number}")
    if isinstance(text, (bytearray, memoryview)):
        return bytes(text)
    if is_missing(text):
        return b""
    hint = "; give one of its values, such as row['text']" if isinstance(text, dict) else ""
    raise TypeError(f"source: item {number} is {type(text).__name__}, and documents are str or bytes{hint}")


def _facts(path: str) -> dict[str, Any]:
    """What shows whether a file was changed: its size, its time, and a hash of its beginning and its end."""
    if path == "-" or not stat.S_ISREG((status := os.stat(path)).st_mode):  # a pipe can be read only once
        return {"path": path}
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_SAMPLE_BYTES))
        file.seek(max(status.st_size - _SAMPLE_BYTES, 0))
        digest.update(file.read(_SAMPLE_BYTES))
    facts = {"size": status.st_size, "modified": status.st_mtime_ns, "sample": digest.hexdigest()[:32]}
    return {"path": path, **facts}
