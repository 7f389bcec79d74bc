"""The documents to pack, from files or from any iterable, in batches that record where they come from."""

from __future__ import annotations

import hashlib
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import is_missing, listed_column, table_way_out
from cpbpe.corpus.documents import Documents
from cpbpe.corpus.files import split_lines
from cpbpe.corpus.records import encoded
from cpbpe.errors import CorpusError

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

    after: Read
    """How far the source has been read after this batch; `located` completes it."""
    texts: list[bytes] = field(default_factory=list)
    """The documents, none of them empty."""
    lines: bytes | None = None
    """The documents as lines; empty lines are not documents. `texts` is empty then, and `located` must be
    called once the number of documents is known."""
    file: int = 0
    """The file of the lines."""
    encoded: Encoded | None = None
    """The ids of the documents, if they have been encoded already. `texts` is empty then."""
    text_bytes: int = 0
    """How many bytes of text the documents of `encoded` have."""
    empty: int = 0
    """How many empty documents are not in `texts`."""
    absent: int = 0
    """How many records hold no document."""
    places: list[tuple[int, NDArray[np.int64]]] = field(default_factory=list)
    """For each file its index, and the numbers of the records or lines."""
    done: int = 0
    """How many bytes of the source have been read, for a display of the progress."""

    def located(
        self, before: Read, documents: int, empty_lines: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Complete `after`, given how many documents there are. Return the file and record of each document.

        `before`: how far the source was read before this batch. `empty_lines`: which lines are empty.
        """
        after, skipped, places = self.after, self.empty, self.places
        if self.lines is not None and empty_lines is not None:
            count, skipped = documents + len(empty_lines), len(empty_lines)
            first = before.record if before.file == self.file else 0
            places = [(self.file, np.delete(np.arange(first + 1, first + 1 + count), empty_lines))]
            after.file, after.record = self.file, first + count
            after.absent = before.absent
            after.text_bytes = before.text_bytes + len(self.lines) - count + (not self.lines.endswith(b"\n"))
        else:
            after.absent = before.absent + self.absent
            after.text_bytes = before.text_bytes + self.text_bytes + sum(map(len, self.texts))
            if not places:
                after.file, after.record = before.file, before.record
        after.number = before.number + documents
        after.empty = before.empty + skipped
        none = np.zeros(0, np.int64)
        files = [np.full(len(records), file) for file, records in places]
        return np.concatenate([none, *files]), np.concatenate([none, *(records for _, records in places)])


class _Collector:
    """Collects what is read into batches."""

    def __init__(self, read: Read):
        self._read = replace(read)
        self._batch = Batch(self._read)
        self._size = 0
        self._missing = read.record
        """How many records of the last file of an earlier run this run has still to skip."""

    def add(self, file: int, first: int, texts: list[bytes], absent: Sequence[int]) -> None:
        """Take the documents of one block; `first` is the number of its first record."""
        read = self._read
        seen = self._seen(file, first, len(texts))
        if seen:
            if not absent:  # (a null differs from an empty text)
                self._check_last(texts[:seen])
            absent = [index - seen for index in absent if index >= seen]
            texts, first = texts[seen:], first + seen
        if not texts:
            return
        count = len(texts)
        records = np.arange(first, first + count, dtype=np.int64)
        kept = texts if all(texts) else list(filter(None, texts))
        if len(kept) < count:
            records = records[np.fromiter(map(bool, texts), np.bool_, count)]
            self._batch.empty += count - len(kept) - len(absent)
            self._batch.absent += len(absent)
        read.file, read.record = file, first - 1 + count
        if kept:
            read.last_crc = zlib.crc32(kept[-1])
        self._size += sum(map(len, kept))
        self._batch.texts += kept
        self._batch.places.append((file, records))

    def add_lines(self, file: int, lines: bytes) -> None:
        """Take the next lines of a file as they are. What is in them is counted later."""
        read = self._read
        if self._missing:  # not yet past what an earlier run has taken
            count = lines.count(b"\n") + (not lines.endswith(b"\n"))
            seen = self._seen(file, read.record - self._missing + 1, count)
            if self._missing:
                return
            if seen == count:  # (the last line of a file may have no newline to be cut at)
                self._check_last(lines.split(b"\n"))
                return
            *taken, lines = lines.split(b"\n", seen)
            self._check_last(taken)
        if not lines:
            return
        kept = lines.rstrip(b"\n")
        if kept:
            read.last_crc = zlib.crc32(kept[kept.rfind(b"\n") + 1 :])
        self._batch.lines = lines
        self._batch.file = file
        self._size += len(lines)

    def _seen(self, file: int, first: int, count: int) -> int:
        """How many records of a block an earlier run has taken."""
        read = self._read
        if file != read.file:
            self._missing = 0
            return 0
        self._missing = max(0, min(self._missing, read.record - (first - 1 + count)))
        return max(0, min(count, read.record - (first - 1)))

    def check_complete(self) -> None:
        """Raise an error if the source ended before the place where an earlier run was interrupted."""
        if self._missing:
            raise CorpusError(
                f"the source ends {self._missing:,} records before the place where the run was interrupted; "
                f"give the same one, or begin again in another folder"
            )

    def _check_last(self, taken: list[bytes]) -> None:
        """Raise an error if the last document that an earlier run took is among these, and has changed."""
        last = None if self._missing else next((text for text in reversed(taken) if text), None)
        if last is not None and zlib.crc32(last) != self._read.last_crc:
            raise CorpusError(
                "the texts are not those of the run that was interrupted; give the same ones in the same "
                "order, or begin again in another folder"
            )

    @property
    def has_list(self) -> bool:
        """Whether the batch has a list of documents, even if all of them are empty."""
        return bool(self._batch.places)

    def is_full(self) -> bool:
        """Whether the batch is large enough. Lines always make a batch of their own."""
        return self._size >= (BATCH_BYTES if self.has_list else 1)

    def take(self, done: int) -> Batch:
        """Return the batch, and begin another one."""
        batch, batch.done = self._batch, done
        self._read = replace(self._read)
        self._batch, self._size = Batch(self._read), 0
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
            parts = documents.lines_of(file) if as_lines else None
            if parts is None:
                for block in documents.blocks_of(file):
                    collector.add(block.file, block.first, block.texts, block.absent)
                    if collector.is_full():
                        yield collector.take(documents.read)
            else:
                for number, part in enumerate(parts):
                    if not number and len(part) < _FEW_BYTES:  # one of many small files, perhaps
                        collector.add(file, 1, split_lines(part, keep_newlines=False), ())
                    else:
                        if collector.has_list:
                            yield collector.take(documents.read)
                        collector.add_lines(file, part)
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
                collector.add(0, first, texts, absent)
                first, texts, absent, size = number + 1, [], [], 0
                if collector.is_full():
                    yield collector.take(number)
        collector.add(0, first, texts, absent)
        collector.check_complete()
        yield collector.take(first - 1)


def source_of(given: Any, *, format: str | None, field: str, column: str | int | None, whole: bool) -> Source:
    """The source that a user gives: a path, a list of paths, or an iterable of texts."""
    paths = None
    if isinstance(given, (str, os.PathLike)):
        paths = [given]
    elif isinstance(given, (list, tuple)) and given and all(isinstance(item, os.PathLike) for item in given):
        paths = list(given)
    if paths is not None:
        return FileSource(Documents(paths, format=format, field=field, column=column, whole=whole))
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
    if path == "-":
        return {"path": path}
    status = os.stat(path)
    facts: dict[str, Any] = {"path": path, "size": status.st_size}
    if not os.path.isfile(path):  # a pipe can be read only once
        return {"path": path}
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_SAMPLE_BYTES))
        file.seek(max(status.st_size - _SAMPLE_BYTES, 0))
        digest.update(file.read(_SAMPLE_BYTES))
    return facts | {"modified": status.st_mtime_ns, "sample": digest.hexdigest()[:32]}
