"""The texts of files, in the order of the files. Training, packing and the command share this file.

`Files` are the files that a user names; they are read as parts of text or as records. `Documents` makes
documents of these, in blocks of a few megabytes; `cpbpe.training.corpus` makes sentences of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cpbpe.corpus.files import parts, shown_path, split_lines, whole_lines
from cpbpe.corpus.find import (
    FOR_PYARROW,
    FORMATS,
    Found,
    Hidden,
    checked_path,
    find,
    format_of,
    none_hidden,
    size_of,
)
from cpbpe.corpus.records import (
    Column,
    Records,
    need_memory,
    read_arrow,
    read_json,
    read_parquet,
    read_table,
)
from cpbpe.engine.choice import calls_of_ours
from cpbpe.errors import CorpusError
from cpbpe.lazy import kept
from cpbpe.spelling import given, named

_BOM = b"\xef\xbb\xbf"
_MOST_WARNINGS = 5
Path = str | os.PathLike[str]


class Files:
    """Files with texts, not yet read. The constructor raises all errors that can be found without reading."""

    tables: Collection[str] = ("tsv", "csv", *FOR_PYARROW)
    """The formats in which the text is in a column."""

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        raw: bool = False,
        hidden: Hidden = none_hidden,
    ):
        """`paths`: files, directories and globs; "-" is the standard input.

        `format`: that of all files, one of `FORMATS`; None: as their names say. `field`: where the text of
        a JSON object is. `column`: the column of a table, by name or by number, from 1; None: "text". (A .csv
        file needs it unless `format` says csv. If it is a number, csv and tsv have no line of names.) `raw`:
        all paths are those of files, which are read as they are, even if they look compressed. `hidden`:
        which of them are as if they were not there.
        """
        if format is not None and format not in FORMATS:
            raise CorpusError(f"{named('format')} must be one of {', '.join(FORMATS)}, not {format!r}")
        self.format = format
        """The format of all files, if it was given."""
        self._field = field
        self._column = "text" if column is None else column
        self._raw = raw
        if raw:
            found = Found([checked_path(path) for path in paths])
        else:
            found = find(paths, format is not None, column is not None, hidden)
        self.files = found.files
        """The files to read."""
        self.left_out = found.left_out
        """Files in a directory that are not read, and what they are, such as "is an image"."""
        self.again = found.again
        """Links to files and folders that are read under another name."""
        if self.files.count("-") > 1:
            raise CorpusError("the standard input ('-') can be read only once; give it once")
        if "-" in self.files and format in FOR_PYARROW:
            raise CorpusError(
                f"{format.capitalize()} cannot be read from the standard input ('-'); give a file"
            )
        if self.files:
            self.check_columns(set(map(self.format_of, self.files)))
        self.total = size_of(self.files)
        """The total size of the files on the disk; None if it is unknown."""
        self.begin()

    def begin(self, first_file: int = 0) -> None:
        """Start counting anew what is read; the files before `first_file` count as read."""
        self.marked: list[str] = []
        """Text files, as far as read, that begin with a byte order mark."""
        for path in self.files[:first_file]:
            if self.format_of(path) == "text" and os.path.isfile(path):
                self.mark(shown_path(path), next(self.parts_of(path, len(_BOM)), b""))
        self.read = sum(os.path.getsize(path) for path in self.files[:first_file] if path != "-")
        """How much of `total` has been read."""
        self.nulls = 0
        """Records whose text is null, as far as read."""
        self.blank = 0
        """Empty lines between records, as far as read."""

    def format_of(self, path: str) -> str:
        """The format in which one of the files is read."""
        return self.format or ("text" if path == "-" else format_of(path))

    def check_columns(self, formats: Collection[str]) -> None:
        """Refuse a field or a column if nothing is read in a format that has such."""
        if self._raw:  # (compat.sentencepiece reads so, and has neither)
            return
        if self._field != "text" and "jsonl" not in formats:
            raise CorpusError(
                f"{named('field')} means nothing here: no file is read as jsonl ({given('format', 'jsonl')} "
                f"says so of all files); leave it out"
            )
        if self._column != "text" and not set(self.tables) & set(formats):
            raise CorpusError(
                f"{named('column')} means nothing here: no file is read as {', '.join(self.tables)} "
                f"({named('format')} says so of all files); leave it out"
            )

    def warnings_of_left_out(self) -> list[str]:
        """The warnings about files of a directory that are not read, and may hold texts after all."""
        reasons: dict[str, list[str]] = {}
        for path, what in self.left_out.items():
            if ";" in what:  # the reason says what to do
                reasons.setdefault(what, []).append(path)
        return [
            f"{shown_path(paths[0])}: was left out"
            f"{f', and {len(paths) - 1:,} more like it' if len(paths) > 1 else ''}: it {what}"
            for what, paths in list(reasons.items())[:_MOST_WARNINGS]
        ]

    def parts_of(self, path: str, part_bytes: int | None = None) -> Iterator[bytes]:
        """The content of one of the files."""
        any_text = self.format is not None
        return parts(path, self._advance, raw=self._raw, any_text=any_text, part_bytes=part_bytes)

    def _advance(self, size: int) -> None:
        self.read += size

    def mark(self, name: str, beginning: bytes) -> None:
        """Record the name of a file if it begins with a byte order mark."""
        if beginning.startswith(_BOM):
            self.marked.append(name)

    def records_of(self, path: str) -> Iterator[Records]:
        """The records of one of the files that have records, in batches."""
        if (format := self.format_of(path)) in FOR_PYARROW:
            for column in self.columns_of(path):
                need_memory()
                yield self._counted((column.to_pylist(), []))
        else:
            yield from self.records_in(shown_path(path), self.parts_of(path), format)

    def records_in(self, name: str, file_parts: Iterable[bytes], format: str) -> Iterator[Records]:
        """The records of JSON Lines, csv or tsv."""
        if format == "jsonl":
            return map(self._counted, read_json(name, file_parts, self._field))
        return map(self._counted, read_table(name, file_parts, format, self._column))

    def columns_of(self, path: str) -> Iterator[Column]:
        """The texts of one of the files that pyarrow reads, as arrays. The caller counts the nulls."""
        before, size = self.read, os.path.getsize(path)
        read = read_parquet if self.format_of(path) == "parquet" else read_arrow
        for texts, thousandths in read(path, self._column):
            self.read = before + size * thousandths // 1000
            yield texts
        self.read = before + size

    def _counted(self, records: Records) -> Records:
        texts, blank = records
        self.blank += len(blank)
        self.nulls += texts.count(None) - len(blank)
        return records


@dataclass
class DocumentBlock:
    """Consecutive documents of one file."""

    file: int
    """The index of the file in `Documents.files`."""
    name: str
    """The file, for people."""
    first: int
    """The number of the first document in its file, from 1: in text and JSON Lines that of its line."""
    listed: Sequence[bytes] = ()
    """The documents; b"" at the indices in `absent`. Use `texts`, which are these or those of `lines`."""
    lines: bytes | None = None
    """The documents as lines, in text files. To find where lines end is much less work than to make an object
    of each, so this is left to those who need the objects."""
    absent: Sequence[int] = ()
    """The indices in `texts` of what is not a document: a null, or an empty line between records."""

    @kept
    def texts(self) -> list[bytes]:
        """The documents one by one."""
        return list(self.listed) if self.lines is None else split_lines(self.lines, keep_newlines=False)

    @kept
    def count(self) -> int:
        """How many documents there are."""
        return len(self.listed) if self.lines is None else self.lines.count(b"\n") + (not self.ended)

    @kept
    def text_bytes(self) -> int:
        """How many bytes they have together, without the newlines between them."""
        if self.lines is None:
            return sum(map(len, self.listed))
        return len(self.lines) - self.count + (not self.ended)

    @property
    def ended(self) -> bool:
        """Whether the last line ended with a newline, so that a file can be restored exactly."""
        return self.lines is None or self.lines.endswith(b"\n")

    def where(self, index: int) -> str:
        """Where one of the documents is, for people."""
        return f"{self.name}:{self.first + index}"


class Documents(Files):
    """The documents of files: the lines of text files, or whole text files, and the records of other files.

    Nothing is stripped from them, and their bytes need not be UTF-8.

    >>> documents = Documents("corpus.txt")
    >>> block = next(documents.blocks())
    >>> block.name, block.first, len(block.texts), block.ended
    ('corpus.txt', 1, 202, True)
    """

    def __init__(
        self,
        paths: Path | Iterable[Path],
        *,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        whole: bool = False,
        hidden: Hidden = none_hidden,
    ):
        """`whole`: a text file is one document, newlines included. The rest is as for `Files`."""
        several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        super().__init__(several, format=format, field=field, column=column, hidden=hidden)
        self._whole = whole
        for path in self.files if whole else ():
            if (kind := self.format_of(path)) != "text":
                raise CorpusError(
                    f"{shown_path(path)}: {named('whole')} makes a text file one document, and this is "
                    f"{kind}, with a document in each record; leave {named('whole')} out, or give "
                    f"{given('format', 'text')}"
                )

    def texts(self) -> Iterator[bytes]:
        """All documents, one by one, without the entries in `absent`."""
        for block in self.blocks():
            absent = set(block.absent)
            yield from (text for index, text in enumerate(block.texts) if index not in absent)

    def blocks(self, first_file: int = 0) -> Iterator[DocumentBlock]:
        """All documents in order, or those of the files from `first_file` on. A file has at least one block.

        Only the last block of a file can have `ended` False. A file without a document has an empty block.
        """
        self.begin(first_file)
        for number in range(first_file, len(self.files)):
            yield from self.blocks_of(number)

    def blocks_of(self, number: int) -> Iterator[DocumentBlock]:
        """The documents of one file."""
        path = self.files[number]
        name, first = shown_path(path), 1
        if self._whole:
            text = b"".join(self.parts_of(path))
            self.mark(name, text)
            yield DocumentBlock(number, name, first, [text])
            return
        if self.format_of(path) == "text":
            for lines in whole_lines(self.parts_of(path)):
                if first == 1:
                    self.mark(name, lines)
                block = DocumentBlock(number, name, first, lines=lines)
                yield block
                first += block.count
        else:
            for records, _ in self.records_of(path):
                absent = [index for index, text in enumerate(records) if text is None]
                yield DocumentBlock(number, name, first, [text or b"" for text in records], absent=absent)
                first += len(records)
        if first == 1:
            yield DocumentBlock(number, name, first)


def documents_at(paths: Path | Iterable[Path], **reading: Any) -> Documents:
    """The documents of files that a program names. Warnings name those of a folder that are left out."""
    documents = Documents(paths, **reading)
    for text in documents.warnings_of_left_out():
        warnings.warn(text, UserWarning, stacklevel=calls_of_ours())
    return documents
