"""A corpus: any source of text, as a stream of blocks of sentences.

Files are split at newlines only, so a carriage return stays in its sentence. Each text of an iterable is one
sentence, without the newlines at its end. sentencepiece does both. Documents in JSON Lines and Parquet are
treated like files: each line is a sentence. The room `cpbpe.corpus` finds and reads the files themselves.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from numbers import Integral
from typing import Any

from cpbpe.checks import is_missing, listed_column, table_way_out
from cpbpe.corpus.documents import Files
from cpbpe.corpus.files import PART_BYTES, SENTENCES, shortened, shown_path, split_lines, whole_lines
from cpbpe.corpus.find import FOR_PYARROW
from cpbpe.corpus.records import Records, as_lines, encoded, gathered, parse_tsv
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import ByteCountSpec, CountSpec
from cpbpe.spelling import advised, given
from cpbpe.text.utf8 import is_valid_utf8

Source = Any
"""A path, a glob or a directory; a list of those; an open file; an iterable of str or bytes; or a mapping
from texts to their counts."""

_ITEMS = 1 << 14
_EVERY_LINE = CountSpec(max_sentence_length=0)
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
    dropped_bytes: int = 0
    """The number of bytes dropped from the first line, which is too long to be counted anyway."""
    newlines: int | None = None
    """The number of newlines in `lines`, set when the block is counted so that they are not counted twice."""
    part: bytes | None = None
    """The next part of a file that is a single text, b"" after its last. Then there are no sentences."""
    keep_newlines: bool = False
    """Whether each of `lines` is a sentence with the newlines that follow it."""

    def as_sentences(self) -> list[bytes]:
        """The sentences, from `lines` or `sentences`."""
        return self.sentences if self.lines is None else split_lines(self.lines, self.keep_newlines)

    def where(self, index: int) -> str:
        """Where one of the sentences is, for people."""
        if self.lines is not None and self.keep_newlines:
            before = SENTENCES.findall(self.lines)[:index]
            index = sum(sentence.count(b"\n") for sentence in before)
        elif self.sizes is not None:
            index = bisect_right(list(accumulate(self.sizes)), index)
        return (
            f"{self.name} {self.first + index}"
            if self.name == "item"
            else f"{self.name}:{self.first + index}"
        )


class Corpus(Files):
    """A source that has not been read yet. The constructor raises all errors that need no reading.

    >>> corpus = Corpus(["One text.", "Another."])
    >>> [block.sentences for block in corpus.blocks()]
    [[b'One text.', b'Another.']]
    """

    tables = ("csv", *FOR_PYARROW)  # (a .tsv file holds texts and counts here)

    def __init__(
        self,
        source: Source,
        spec: CountSpec | ByteCountSpec = _EVERY_LINE,
        *,
        split_lines: bool = False,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        raw: bool = False,
    ):
        """`spec`: what is counted. Lines that are too long to be counted are not read whole.

        For byte-level models, texts are not cut at newlines, and nothing is removed from their ends. A text
        file is then one text, or, with `split_lines`, one for each line; in other files each record is one.
        """
        paths = _paths_in(source, raw)
        super().__init__(paths or (), format=format, field=field, column=column, raw=raw)
        self._spec = spec
        self._keep = isinstance(spec, ByteCountSpec) or spec.keep_newlines
        self._whole_files = spec.byte_level and not split_lines
        self._items: Any = None
        self._used = False
        if paths is None:
            self.total = None
            if format in (FOR_PYARROW if hasattr(source, "read") else ("csv", "jsonl", *FOR_PYARROW)):
                raise TrainingError(f"{given('format', format)} is for files, and source is not a path")
            self.check_columns({format or "text"})
            self._items = listed_column(source)

    @property
    def file_count(self) -> int:
        """How many files there are to read; an open file is one."""
        return len(self.files) + hasattr(self._items, "read")

    def blocks(self) -> Iterator[Block]:
        """Yield all of the corpus in order. A source that is an iterator can be read only once."""
        if self._used and isinstance(self._items, Iterator):
            raise TrainingError("the iterator has been read before; give a list, or make a new one")
        self._used = True
        self.begin()
        if self._items is not None:
            yield from self._blocks_of_items()
        for path in self.files:
            format = self.format_of(path)
            if format in FOR_PYARROW and not self._keep:
                yield from self._blocks_of_columns(path)
            elif format in ("text", "tsv"):
                yield from self._blocks_of_text(shown_path(path), self.parts_of(path), format)
            else:
                yield from self._blocks_of_records(shown_path(path), self.records_of(path))

    # --- Files --------------------------------------------------------------------------------------

    def _blocks_of_text(self, name: str, parts_of_file: Iterator[bytes], format: str) -> Iterator[Block]:
        if format == "text" and self._whole_files:
            yield from self._parts_of_text(name, parts_of_file)
            return
        first = 1
        dropped_bytes = 0

        def drop(size: int) -> None:
            nonlocal dropped_bytes
            dropped_bytes += size

        keep = False
        if format == "text" and isinstance(self._spec, CountSpec):
            keep, longest = self._spec.keep_newlines, self._spec.max_sentence_length
            parts_of_file = shortened(parts_of_file, longest, drop) if longest else parts_of_file
        for lines in whole_lines(parts_of_file, keep):
            if first == 1:
                self.mark(name, lines)
            if format == "text":
                block = Block(name, first, lines, dropped_bytes=dropped_bytes, keep_newlines=keep)
                dropped_bytes = 0
                yield block
                first += lines.count(b"\n") if block.newlines is None else block.newlines
                continue
            split = split_lines(lines, False)
            block = Block(name, first)
            block.sentences, block.counts = parse_tsv(split, block.where)
            yield block
            first += len(split)

    def _parts_of_text(self, name: str, parts_of_file: Iterator[bytes]) -> Iterator[Block]:
        last = Block(name, 1)
        for part in parts_of_file:
            if last.part is None:
                self.mark(name, part)
            last = Block(name, 1, part=part)
            yield last
        if last.part is not None:
            yield Block(name, 1, part=b"")

    def _blocks_of_columns(self, path: str) -> Iterator[Block]:
        first, name = 1, shown_path(path)
        for texts in gathered(self.columns_of(path)):
            self.nulls += texts.null_count
            lines, sizes = as_lines(texts)
            yield Block(name, first, lines, sizes=sizes)
            first += len(texts)

    def _blocks_of_records(self, name: str, records: Iterator[Records]) -> Iterator[Block]:
        """Yield the texts of records, or their lines. The end of a text also ends its last line."""
        first = 1
        for texts, blank in records:
            for index in blank:  # a blank line counts as an empty text, not as null
                texts[index] = b""
            sentences: list[bytes] = []
            sizes: list[int] = []
            for text in texts:
                lines = [] if text is None else [text]
                if text is not None and not self._spec.byte_level:
                    lines = split_lines(text, self._keep)
                sentences += lines
                sizes.append(len(lines))
            yield Block(name, first, None, sentences, sizes=sizes)
            first += len(texts)

    # --- Texts --------------------------------------------------------------------------------------

    def _blocks_of_items(self) -> Iterator[Block]:
        if hasattr(self._items, "read"):
            name = shown_path(str(getattr(self._items, "name", "file")))
            parts_of_file = _read_all(self._items, name)
            if self.format in ("csv", "jsonl"):
                yield from self._blocks_of_records(name, self.records_in(name, parts_of_file, self.format))
            else:
                yield from self._blocks_of_text(name, parts_of_file, self.format or "text")
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
        block = Block("item", first, None, sentences, counts)
        if self.format == "tsv":
            block.sentences, block.counts = parse_tsv(sentences, block.where)
        return block

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
                f"source must yield texts (str or bytes), but item {number} is {type(item).__name__}{hint}"
            )
        return data if self._keep else data.rstrip(b"\r\n")


def _checked_count(count: object, where: str) -> int:
    if isinstance(count, bool) or not isinstance(count, Integral):
        hint = ""
        if not isinstance(count, (bool, float, str)):
            hint = "; a mapping is from texts to counts, so give the texts in it, such as source['text']"
        raise TypeError(f"{where}: the count must be an integer, not {type(count).__name__}{hint}")
    count = int(count)
    if not 1 <= count < 1 << 63:
        what = str(count) if count.bit_length() < 100 else f"a number of {count.bit_length():,} bits"
        raise TrainingError(f"{where}: the count must be 1 to 2**63 - 1, not {what}")
    return count


def _read_all(file: Any, name: str) -> Iterator[bytes]:
    """Yield the content of an open file, binary or text, in parts."""
    lines = 0
    while True:
        try:
            part = file.read(PART_BYTES)
        except UnicodeDecodeError as error:
            raise TrainingError(
                f"{name}: is not {error.encoding} ({error.reason} in line {lines + 1} or later); open it "
                f"with another encoding=, or as bytes, with 'rb'"
            ) from None
        except (EOFError, OSError) as error:  # an error of an open gzip file does not name it
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise TrainingError(f"{name}: cannot be read to its end: {error}") from error
        if isinstance(part, str):
            where = partial("{}: the text after line {}".format, name, lines)
            lines += part.count("\n")
            part = encoded(part, where)
        if not isinstance(part, bytes):
            raise TypeError(f"the source's read() gives {type(part).__name__}, not bytes or str")
        if not part:
            return
        yield part


# --- What the source is ---------------------------------------------------------------------------


def _paths_in(source: Source, raw: bool) -> list[str | os.PathLike[str]] | None:
    """The paths that a source names; None if it holds the texts themselves."""
    if isinstance(source, (str, os.PathLike)):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError("source is bytes; for one text, give a list with it: [data]")
    if isinstance(source, (list, tuple)) and source and _are_paths(source, raw):
        return list(source)
    if not isinstance(source, Mapping) and (way_out := table_way_out(source)) is not None:
        raise TypeError(f"source is a whole table, {type(source).__name__}; {way_out}")
    if not (hasattr(source, "read") or isinstance(source, Iterable)):
        raise TypeError(
            "source must be a path, several of them, an open file or an iterable of texts, "
            f"not {type(source).__name__}"
        )
    return None


def _are_paths(items: list[Any] | tuple[Any, ...], raw: bool) -> bool:
    """Whether a list names files rather than holding texts; refuse one that could be either."""
    if any(isinstance(item, os.PathLike) for item in items):
        for index, item in enumerate(items):
            if not isinstance(item, (str, os.PathLike)):
                raise TypeError(f"source is a list of paths, and item {index} is {type(item).__name__}")
        return True
    if raw and all(isinstance(item, str) for item in items):
        return True
    if len(items) > 100_000 or not all(isinstance(item, str) for item in items):
        return False
    exist = [len(item) < 4096 and "\0" not in item and item != "" and os.path.exists(item) for item in items]
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


# --- What may be wrong with a usable corpus -------------------------------------------------------

_MOST = 5
"""At most this many files are named for one reason."""


@dataclass
class _BrokenFile:
    sentences: int
    where: str
    text: bytes


class Broken:
    """The sentences that are not valid UTF-8. They are trained on, with U+FFFD in place of invalid bytes."""

    def __init__(self, unit: str, byte_level: bool):
        """`unit` is what a sentence of a file is called: "line" or "text"."""
        self._unit = unit
        self._byte_level = byte_level
        self._files: dict[str, _BrokenFile] = {}

    @property
    def sentences(self) -> int:
        """How many there are."""
        return sum(file.sentences for file in self._files.values())

    def add(self, block: Block, number: int, skipped: Callable[[bytes], object]) -> None:
        """Record that this many sentences of a block are broken, without those that are `skipped`."""
        known = self._files.get(block.name)
        if known is not None:
            known.sentences += number
            return
        used = ((index, text) for index, text in enumerate(block.as_sentences()) if not skipped(text))
        index, text = next(((index, text) for index, text in used if not is_valid_utf8(text)), (0, b""))
        where = block.name if block.part is not None else block.where(index)
        self._files[block.name] = _BrokenFile(number, where, text)

    def warnings(self) -> list[str]:
        """The warnings about these sentences."""
        texts = [self._about(name, file) for name, file in list(self._files.items())[:_MOST]]
        more = len(self._files) - _MOST
        if more > 0:
            texts.append(
                f"{more:,} more file{'s hold' if more > 1 else ' holds'} text that is not valid UTF-8"
            )
        return texts

    def _about(self, name: str, file: _BrokenFile) -> str:
        one = file.sentences == 1
        convert = "convert it (iconv -f latin1 -t utf-8)"
        convert = advised(f"{convert}, or give open(path, encoding='latin-1')", convert)
        remedy = f"if the file is in another encoding, such as Latin-1, {convert}"
        what = f"{self._unit if one else f'{self._unit}s'} of {name} {'is' if one else 'are'}"
        if name == "item":
            what = "text is" if one else "texts are"
            remedy = "if text is in another encoding, such as Latin-1, give text.decode('latin-1')"
        where, bad = f"at {file.where}", "every byte that is no character"
        if self._byte_level:
            what = what.replace(f" of {name}", "")
            where, bad = f"in {file.where}", "what is no character"
        elif file.text:
            begin = max(0, _first_bad(file.text) - 20)
            where += f" ({file.text[begin : begin + 40]!r})"
        return (
            f"{file.sentences:,} {what} not valid UTF-8, the first {where}; {bad} is trained on as U+FFFD; "
            f"{remedy}"
        )


def warnings_of_files(corpus: Corpus) -> list[str]:
    """The warnings about the files of a corpus that has been read."""
    without = advised(
        "save it without one, or give open(path, encoding='utf-8-sig')",
        "save it without one, for example with 'tail -c +4'",
    )
    texts = [
        f"{name}: begins with a byte order mark (U+FEFF), which is trained on like any character, as in "
        f"sentencepiece; {without}"
        for name in corpus.marked[:_MOST]
    ]
    if len(corpus.marked) > _MOST:
        texts.append(f"{len(corpus.marked) - _MOST:,} more files begin with a byte order mark (U+FEFF)")
    return texts + corpus.warnings_of_left_out()


def _first_bad(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0
