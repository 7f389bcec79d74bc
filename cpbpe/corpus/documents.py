"""Documents from files: each a text of its own, in the order of the files, in blocks of a few megabytes.

Training reads its corpus with `cpbpe.training.corpus`, which knows sentences and their counts; everything
else reads documents. A document is a line of a text file, or the whole file; or a record: an object of JSON
Lines, or a row of a table (csv, tsv, Parquet, Arrow). Nothing is stripped from it, and its bytes need not be
UTF-8.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from cpbpe.corpus.arrow import read_arrow, read_parquet
from cpbpe.corpus.files import parts
from cpbpe.corpus.find import check_standard_input, checked_path, expand, size_of
from cpbpe.corpus.kinds import FOR_PYARROW, FORMATS, format_of
from cpbpe.corpus.lines import shown_path, whole_lines
from cpbpe.corpus.records import parse_json
from cpbpe.corpus.tables import read_table
from cpbpe.errors import CorpusError
from cpbpe.spelling import given, named

_BOM = b"\xef\xbb\xbf"
Path = str | os.PathLike[str]


@dataclass
class DocumentBlock:
    """Consecutive documents of one file."""

    file: int
    """The index of the file in `Documents.files`."""
    name: str
    """The file, for people."""
    first: int
    """The number of the first document in its file, from 1: in text and JSON Lines that of its line."""
    texts: list[bytes]
    """The documents. What is in `absent` is b"" here."""
    ended: bool = True
    """Whether the last line of the block ended with a newline, so that a file can be restored exactly."""
    absent: list[int] = field(default_factory=list)
    """The indices of `texts` that are no documents: null, or an empty line between records."""

    def where(self, index: int) -> str:
        """Where one of the documents is, for people."""
        return f"{self.name}:{self.first + index}"

    def present(self) -> list[bytes]:
        """The documents without those that are absent."""
        if not self.absent:
            return self.texts
        absent = set(self.absent)
        return [text for index, text in enumerate(self.texts) if index not in absent]


class Documents:
    """The documents of files, understood but not yet read. The constructor raises what needs no reading.

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
    ):
        """`paths`: files, directories and globs; "-" is the standard input.

        `format` is that of all files, one of `FORMATS`; None: as their names say. `field`: where the text of
        a JSON object is. `column`: the column of a table, by name or by number, from 1; None: "text". (A .csv
        file needs it, if `format` does not say csv. By number, csv and tsv have no line of names.) `whole`: a
        text file is one document, newlines included.
        """
        if format is not None and format not in FORMATS:
            raise CorpusError(f"{named('format')} must be one of {', '.join(FORMATS)}, not {format!r}")
        self._format = format
        self._field = field
        self._column = "text" if column is None else column
        self._whole = whole
        self.files: list[str] = []
        """The files to read."""
        self.left_out: dict[str, str] = {}
        """Files in a directory that are not read, and what they are, such as "is an image"."""
        self.again: list[str] = []
        """Links to files and folders that are read under another name."""
        self.marked: list[str] = []
        """Text files, as far as read, whose first document begins with a byte order mark."""
        self.total: int | None = None
        """The total size of the files on the disk; None if it is unknown."""
        self.read = 0
        """How much of `total` has been read."""
        self.nulls = 0
        """Records whose text is null, as far as read."""
        self.blank = 0
        """Empty lines between records, as far as read."""
        for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
            name = checked_path(path)
            found = expand(name, any_text=format is not None, column_named=column is not None)
            self.files += found.files
            self.left_out.update(found.left_out)
            self.again += found.again
        self._check()
        self.total = size_of(self.files)

    def _check(self) -> None:
        check_standard_input(self.files, self._format)
        if self._whole:
            for path in self.files:
                if (format := self.format_of(path)) != "text":
                    raise CorpusError(
                        f"{shown_path(path)}: {named('whole')} makes a text file one document, and this is "
                        f"{format}, with a document in each record; leave {named('whole')} out, or give "
                        f"{given('format', 'text')}"
                    )

    def format_of(self, path: str) -> str:
        """The format in which one of the files is read."""
        return self._format or ("text" if path == "-" else format_of(path))

    def blocks(self, first_file: int = 0) -> Iterator[DocumentBlock]:
        """All documents in order, or those of the files from `first_file` on. A file has at least one block.

        Only the last block of a file can have `ended` False. A file without a document has an empty block.
        """
        self.begin(first_file)
        for number in range(first_file, len(self.files)):
            yield from self.blocks_of(number)

    def begin(self, first_file: int = 0) -> None:
        """Count what is read from here on, for those who go through the files by themselves."""
        self.read = self.nulls = self.blank = 0
        self.marked = []
        for path in self.files[:first_file]:
            self.read += 0 if path == "-" else os.path.getsize(path)

    def blocks_of(self, number: int) -> Iterator[DocumentBlock]:
        """The documents of one file."""
        first, name, is_empty = 1, shown_path(self.files[number]), True
        for texts, ended, absent in self._texts_of(self.files[number]):
            yield DocumentBlock(number, name, first, texts, ended, absent)
            first += len(texts)
            is_empty = False
        if is_empty:
            yield DocumentBlock(number, name, first, [])

    def lines_of(self, number: int) -> Iterator[bytes] | None:
        """The lines of one file, if these are its documents: in parts that end where a line ends.

        It is much less work to find lines than to make an object of each.
        """
        path = self.files[number]
        if self._whole or self.format_of(path) != "text":
            return None
        return self._lines(path, parts(path, self._advance, any_text=self._format is not None))

    def _texts_of(self, path: str) -> Iterator[tuple[list[bytes], bool, list[int]]]:
        format = self.format_of(path)
        if format in FOR_PYARROW:
            yield from self._of_columns(path, format)
            return
        file_parts = parts(path, self._advance, any_text=self._format is not None)
        if format == "jsonl":
            yield from self._of_json(shown_path(path), file_parts)
        elif format != "text":
            for batch in read_table(shown_path(path), file_parts, format, self._column):
                yield self._records(batch, [index for index, text in enumerate(batch) if text is None])
        elif self._whole:
            text = b"".join(file_parts)
            self._mark(path, text)
            yield [text], True, []
        else:
            yield from self._of_lines(path, file_parts)

    def _of_lines(
        self, path: str, file_parts: Iterator[bytes]
    ) -> Iterator[tuple[list[bytes], bool, list[int]]]:
        for lines in self._lines(path, file_parts):
            texts = lines.split(b"\n")
            ended = not texts[-1]
            if ended:
                texts.pop()
            yield texts, ended, []

    def _lines(self, path: str, file_parts: Iterator[bytes]) -> Iterator[bytes]:
        for number, lines in enumerate(whole_lines(file_parts)):
            if not number:
                self._mark(path, lines)
            yield lines

    def _of_json(
        self, name: str, file_parts: Iterator[bytes]
    ) -> Iterator[tuple[list[bytes], bool, list[int]]]:
        first = 1
        for part in whole_lines(file_parts):
            lines = part.split(b"\n")
            if not lines[-1]:
                lines.pop()
            batch = list(parse_json(lines, self._field, partial(_place, name, first)))
            blank = [index for index, line in enumerate(lines) if not line or line.isspace()]
            yield self._records(batch, blank)
            first += len(lines)

    def _of_columns(self, path: str, format: str) -> Iterator[tuple[list[bytes], bool, list[int]]]:
        before, size = self.read, os.path.getsize(path)
        for batch, thousandths in (read_parquet if format == "parquet" else read_arrow)(path, self._column):
            self.read = before + size * thousandths // 1000
            yield self._records(batch.to_pylist(), [])
        self.read = before + size

    def _records(
        self, batch: Sequence[bytes | None], blank: list[int]
    ) -> tuple[list[bytes], bool, list[int]]:
        """Texts of records; `blank`: the indices of those that are empty lines."""
        nulls = [index for index, text in enumerate(batch) if text is None]
        absent = sorted({*nulls, *blank})
        self.blank += len(blank)
        self.nulls += len(absent) - len(blank)
        return [b"" if text is None else text for text in batch], True, absent

    def _mark(self, path: str, text: bytes) -> None:
        if text.startswith(_BOM):
            self.marked.append(shown_path(path))

    def _advance(self, size: int) -> None:
        self.read += size


def _place(name: str, first: int, index: int) -> str:
    return f"{name}:{first + index}"
