"""A corpus: any source of text, as a stream of blocks of sentences.

Files are split at newlines and nothing else (a carriage return stays). Texts from an iterable are sentences,
without the newlines at their ends. sentencepiece does both. Documents in JSON Lines and Parquet are treated
like files: each line is a sentence. The room `cpbpe.corpus` finds and reads the files themselves.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from cpbpe.checks import is_missing, listed_column, table_way_out
from cpbpe.corpus.arrow import as_lines, gathered, read_arrow, read_parquet
from cpbpe.corpus.files import PART_BYTES, parts, shortened
from cpbpe.corpus.find import Found, check_standard_input, checked_path, expand, size_of
from cpbpe.corpus.kinds import FOR_PYARROW, FORMATS, format_of
from cpbpe.corpus.lines import SENTENCES, shown_path, split_lines, whole_lines
from cpbpe.corpus.records import encoded, parse_json, parse_tsv
from cpbpe.corpus.tables import read_table
from cpbpe.errors import TrainingError
from cpbpe.spelling import given, named

Source = Any
"""A path, a glob or a directory; a list of those; an open file; an iterable of str or bytes; or a mapping
from texts to their counts."""

_ITEMS = 1 << 14
_BOM = b"\xef\xbb\xbf"
_PATHLIKE = re.compile(
    r"\S+\.(txt|text|tsv|jsonl|ndjson|csv|parquet|arrow|feather|gz|xz|bz2|zst)", re.IGNORECASE
)


@dataclass
class Block:
    """Consecutive sentences: `lines` of a file, or `sentences`, perhaps with counts."""

    name: str
    """What they come from: a file's name, or "item" for the texts of an iterable."""
    first: int
    """The number of the first line, record or item, from 1."""
    lines: bytes | None = None
    """Lines that end with \\n only; the last may lack its newline."""
    sentences: list[bytes] = field(default_factory=list)
    """Sentences, where `lines` is None."""
    counts: list[int] | None = None
    """How many times each of `sentences` counts; None for once."""
    sizes: list[int] | None = None
    """How many sentences each record of a file has; None if each record is one sentence."""
    left_away: int = 0
    """How many bytes of the first line were dropped, because it is too long to be counted anyway."""
    newlines: int | None = None
    """How many newlines `lines` has. Who has counted them sets it, so that they are not counted twice."""
    part: bytes | None = None
    """Instead of sentences: the next part of a file that is one text."""
    ends: bool = False
    """Whether `part` is the last one."""

    def as_sentences(self, keep_newlines: bool) -> list[bytes]:
        """The sentences, from `lines` or `sentences`."""
        return self.sentences if self.lines is None else split_lines(self.lines, keep_newlines)

    def where(self, index: int, keep_newlines: bool = False) -> str:
        """Where one of the sentences is, for people."""
        if self.lines is not None and keep_newlines:
            before = SENTENCES.findall(self.lines)[:index]
            index = sum(sentence.count(b"\n") for sentence in before)
        elif self.sizes is not None:
            index = bisect_right(list(accumulate(self.sizes)), index)
        return (
            f"{self.name} {self.first + index}"
            if self.name == "item"
            else f"{self.name}:{self.first + index}"
        )


class Corpus:
    """A source, understood but not yet read. The constructor raises all errors that need no reading.

    >>> corpus = Corpus(["One text.", "Another."])
    >>> [block.sentences for block in corpus.blocks()]
    [[b'One text.', b'Another.']]
    """

    def __init__(
        self,
        source: Source,
        *,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        keep_newlines: bool = False,
        longest: int = 0,
        raw: bool = False,
        documents: bool = False,
        split_lines: bool = False,
    ):
        """`longest`: lines of more bytes are not counted, so they need not be read whole; 0 for no limit.

        With `documents`, texts are not cut at newlines, and nothing is taken off their ends: a file of text
        is one, unless `split_lines` asks for its lines, and so are the records of other files.
        """
        if format is not None and format not in FORMATS:
            raise TrainingError(f"{named('format')} must be one of {', '.join(FORMATS)}, not {format!r}")
        self._format = format
        self._field = field
        self._column = "text" if column is None else column
        self._column_named = column is not None
        self._keep = keep_newlines or documents
        self._documents = documents
        self._whole_files = documents and not split_lines
        self._longest = longest
        self._raw = raw
        self._items: Any = None
        self.files: list[str] = []
        """The files to read."""
        self.left_out: dict[str, str] = {}
        """Files in a directory that are not read, and what they are, such as "is an image"."""
        self.again: list[str] = []
        """Links to files and folders that are read under another name."""
        self.marked: list[str] = []
        """Files that begin with a byte order mark, as far as they have been read."""
        self.total: int | None = None
        """The total size of the files on the disk, if it is known."""
        self.read = 0
        """How much of `total` has been read."""
        self.nulls = 0
        """Records of JSON Lines and Parquet whose text is null."""
        self._used = False
        self._resolve(source)

    def format_of(self, path: str) -> str:
        """The format in which one of the files is read."""
        return self._format or ("text" if path == "-" else format_of(path))

    @property
    def file_count(self) -> int:
        """How many files there are to read; an open file is one."""
        return len(self.files) + hasattr(self._items, "read")

    def blocks(self) -> Iterator[Block]:
        """Read all of it, in order. An iterator as the source can be read once."""
        if self._used and isinstance(self._items, Iterator):
            raise TrainingError("the iterator has been read before; give a list, or make a new one")
        self._used = True
        self.read = self.nulls = 0
        self.marked = []
        if self._items is not None:
            yield from self._blocks_of_items()
        for path in self.files:
            format = self.format_of(path)
            if format in FOR_PYARROW:
                yield from self._blocks_of_columns(path, format)
                continue
            any_text = self._format is not None
            parts_of_file = parts(path, self._advance, raw=self._raw, any_text=any_text)
            if format == "csv":
                yield from self._blocks_of_table(shown_path(path), parts_of_file)
                continue
            yield from self._blocks_of_file(shown_path(path), parts_of_file, format)

    # --- What the source is -------------------------------------------------------------------------

    def _resolve(self, source: Source) -> None:
        if isinstance(source, (str, os.PathLike)):
            self._take_paths([source])
        elif isinstance(source, (bytes, bytearray, memoryview)):
            raise TypeError("source is bytes; for one text, give a list with it: [data]")
        elif isinstance(source, (list, tuple)) and source and self._are_paths(source):
            self._take_paths(source)
        elif not isinstance(source, Mapping) and (way_out := table_way_out(source)) is not None:
            raise TypeError(f"source is a whole table, {type(source).__name__}; {way_out}")
        elif hasattr(source, "read") or isinstance(source, Iterable):
            for_paths = FOR_PYARROW if hasattr(source, "read") else ("csv", "jsonl", *FOR_PYARROW)
            if self._format in for_paths:
                raise TrainingError(f"{given('format', self._format)} is for files, and source is not a path")
            self._items = listed_column(source)
        else:
            raise TypeError(
                "source must be a path, several of them, an open file or an iterable of texts, "
                f"not {type(source).__name__}"
            )

    def _take_paths(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        for path in paths:
            name = checked_path(path)
            if self._raw:
                os.stat(name)
                found = Found([name])
            else:
                found = expand(name, any_text=self._format is not None, column_named=self._column_named)
            self.files += found.files
            self.left_out.update(found.left_out)
            self.again += found.again
        check_standard_input(self.files, self._format)
        self.total = size_of(self.files)

    def _are_paths(self, items: list[Any] | tuple[Any, ...]) -> bool:
        """Whether a list names files rather than holding texts; refuse one that could be either."""
        if any(isinstance(item, os.PathLike) for item in items):
            for index, item in enumerate(items):
                if not isinstance(item, (str, os.PathLike)):
                    raise TypeError(f"source is a list of paths, and item {index} is {type(item).__name__}")
            return True
        if self._raw and all(isinstance(item, str) for item in items):
            return True
        if len(items) > 100_000 or not all(isinstance(item, str) for item in items):
            return False
        exist = [
            len(item) < 4096 and "\0" not in item and item != "" and os.path.exists(item) for item in items
        ]
        if all(exist):
            return True
        existing = [item for item, exists in zip(items, exist, strict=True) if exists]
        if all(_PATHLIKE.fullmatch(item) is not None for item in items):
            missing = next(item for item, exists in zip(items, exist, strict=True) if not exists)
            if "*" not in missing and "?" not in missing:
                raise FileNotFoundError(
                    f"no such file: {missing!r}; if these are texts and not paths, give iter(texts)"
                )
            return True
        if len(existing) * 2 > len(items):
            raise TrainingError(
                f"source is a list of str that could be paths or texts: {existing[0]!r} is a file, others "
                f"are not; give Path objects for paths, or iter(texts) for texts"
            )
        return False

    def _advance(self, size: int) -> None:
        self.read += size

    # --- Files --------------------------------------------------------------------------------------

    def _blocks_of_file(self, name: str, parts_of_file: Iterator[bytes], format: str) -> Iterator[Block]:
        first = 1
        left_away = 0

        def leave_away(size: int) -> None:
            nonlocal left_away
            left_away += size

        if format == "text" and self._whole_files:
            yield from self._parts_of_text(name, parts_of_file)
            return
        if format == "text" and self._longest:
            parts_of_file = shortened(parts_of_file, self._longest, leave_away)
        for lines in whole_lines(parts_of_file, self._keep and format == "text" and not self._documents):
            number = first
            if first == 1 and format != "jsonl" and lines.startswith(_BOM):
                self.marked.append(name)
            if format == "text":
                block = Block(name, number, lines, left_away=left_away)
                left_away = 0
                yield block
                first += lines.count(b"\n") if block.newlines is None else block.newlines
                continue
            split = split_lines(lines, False)
            first += len(split)
            where = partial(_place, name, number)
            if format == "tsv":
                sentences, counts = parse_tsv(split, where)
                yield Block(name, number, None, sentences, counts)
            else:
                yield self._document_block(name, number, parse_json(split, self._field, where))

    def _parts_of_text(self, name: str, parts_of_file: Iterator[bytes]) -> Iterator[Block]:
        first = True
        for part in parts_of_file:
            if first and part.startswith(_BOM):
                self.marked.append(name)
            first = False
            yield Block(name, 1, part=part)
        if not first:
            yield Block(name, 1, part=b"", ends=True)

    def _blocks_of_columns(self, path: str, format: str) -> Iterator[Block]:
        first, before = 1, self.read
        size = os.path.getsize(path)
        name = shown_path(path)
        batches = (read_parquet if format == "parquet" else read_arrow)(path, self._column)
        for texts, thousandths in batches if self._keep else gathered(batches):
            if self._keep:
                yield self._document_block(name, first, texts.to_pylist())
            else:
                self.nulls += texts.null_count
                lines, sizes = as_lines(texts)
                yield Block(name, first, lines, sizes=sizes)
            first += len(texts)
            self.read = before + size * thousandths // 1000
        self.read = before + size

    def _blocks_of_table(self, name: str, parts_of_file: Iterator[bytes]) -> Iterator[Block]:
        first = 1
        for texts in read_table(name, parts_of_file, "csv", self._column):
            yield self._document_block(name, first, (b"" if text is None else text for text in texts))
            first += len(texts)

    def _document_block(self, name: str, first: int, documents: Iterable[bytes | None]) -> Block:
        """Documents, or their lines. The end of a document also ends its last line."""
        sentences: list[bytes] = []
        sizes: list[int] = []
        for document in documents:
            if document is None:
                self.nulls += 1
                sizes.append(0)
                continue
            lines = [document] if self._documents else split_lines(document, self._keep)
            sentences += lines
            sizes.append(len(lines))
        return Block(name, first, None, sentences, sizes=sizes)

    # --- Texts --------------------------------------------------------------------------------------

    def _blocks_of_items(self) -> Iterator[Block]:
        if hasattr(self._items, "read"):
            name = shown_path(str(getattr(self._items, "name", "file")))
            parts_of_file = _read_all(self._items, name)
            if self._format == "csv":
                yield from self._blocks_of_table(name, parts_of_file)
            else:
                yield from self._blocks_of_file(name, parts_of_file, self._format or "text")
            return
        counted = isinstance(self._items, Mapping)
        sentences: list[bytes] = []
        counts: list[int] = []
        size, first, number = 0, 1, 0
        for number, item in enumerate(self._items.items() if counted else self._items, 1):
            text = item
            if counted:
                text, count = item
                counts.append(_checked_count(count, f"item {number}"))
            sentences.append(self._checked_text(text, number))
            size += len(sentences[-1])
            if size >= PART_BYTES or len(sentences) >= _ITEMS:
                yield self._item_block(first, sentences, counts if counted else None)
                sentences, counts, size, first = [], [], 0, number + 1
        if sentences:
            yield self._item_block(first, sentences, counts if counted else None)

    def _item_block(self, first: int, sentences: list[bytes], counts: list[int] | None) -> Block:
        if self._format == "tsv":
            sentences, counts = parse_tsv(sentences, lambda index: f"item {first + index}")
        return Block("item", first, None, sentences, counts)

    def _checked_text(self, item: object, number: int) -> bytes:
        if isinstance(item, str):
            data = encoded(item, lambda: f"item {number}")
        elif isinstance(item, (bytes, bytearray, memoryview)):
            data = bytes(item)
        else:
            hint = "; is a value missing?" if is_missing(item) else ""
            if isinstance(item, (list, tuple)):
                hint = "; join its words: ' '.join(words)"
            elif isinstance(item, Mapping):
                hint = "; give what is in it, as in (row['text'] for row in rows)"
            elif isinstance(item, os.PathLike):
                hint = "; for files give a list of their paths: list(paths)"
            raise TypeError(
                f"source yields texts (str or bytes), but item {number} is {type(item).__name__}{hint}"
            )
        return data if self._keep else data.rstrip(b"\r\n")


def _checked_count(count: object, where: str) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        hint = ""
        if not isinstance(count, (bool, float, str)):
            hint = "; a mapping is from texts to counts, so give the texts in it, such as source['text']"
        raise TypeError(f"{where}: the count must be an integer, not {type(count).__name__}{hint}")
    if not 1 <= count < 1 << 63:
        what = str(count) if count.bit_length() < 100 else f"a number of {count.bit_length():,} bits"
        raise TrainingError(f"{where}: the count must be 1 to 2**63 - 1, not {what}")
    return count


def _read_all(file: Any, name: str) -> Iterator[bytes]:
    """An open file, binary or text, in parts."""
    lines = 0
    while True:
        try:
            part = file.read(PART_BYTES)
        except UnicodeDecodeError as error:
            raise TrainingError(
                f"{name}: is not {error.encoding} ({error.reason} in line {lines + 1} or later); open it "
                f"with another encoding=, or as bytes, with 'rb'"
            ) from None
        except (EOFError, OSError) as error:  # such as those of an open gzip file, which do not name it
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise TrainingError(f"{name}: cannot be read to its end: {error}") from error
        if isinstance(part, str):
            at = lines
            lines += part.count("\n")
            part = encoded(part, partial(_after_line, name, at))
        if not isinstance(part, bytes):
            raise TypeError(f"the source's read() gives {type(part).__name__}, not bytes or str")
        if not part:
            return
        yield part


def _after_line(name: str, line: int) -> str:
    return f"{name}: the text after line {line}"


def _place(name: str, first: int, index: int) -> str:
    """Where a line of a file is."""
    return f"{name}:{first + index}"
