"""Reading the texts of records: from JSON Lines, from tables and, with pyarrow, from Parquet and Arrow.

Every error names the file and the line or row. A record whose text is null becomes None.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO

from cpbpe.corpus.files import PART_BYTES, became_shorter, whole_lines
from cpbpe.errors import CorpusError, missing
from cpbpe.lazy import importing
from cpbpe.spelling import advised, given

Records = tuple[list[bytes | None], list[int]]
"""The texts of consecutive records, None for a null or an empty line, and the indices of the empty lines."""
Column = Any
"""A pyarrow array of large_binary rather than of str, so that it can hold invalid UTF-8, as files can."""
Columns = Iterator[tuple[Column, int]]
"""Batches of texts, each with how much of the file has been read by then, in thousandths."""

_COUNT = re.compile(rb"[ \t\r\v\f]*\+?0*([0-9]{1,19})[ \t\r\v\f]*")
"""A count, which may have whitespace around it, a plus sign and leading zeros."""


def parse_tsv(lines: Sequence[bytes], where: Callable[[int], str]) -> tuple[list[bytes], list[int]]:
    """The texts of tsv lines and their counts; `where` names the place of a line, given its index."""
    sentences: list[bytes] = []
    counts: list[int] = []
    for index, line in enumerate(lines):
        columns = line.split(b"\t")
        if len(columns) != 2:
            raise CorpusError(
                f"{where(index)}: a line of tsv is text, one tab and a count, and this has "
                f"{len(columns) - 1} tabs; give {given('format', 'text')} if the file is something else"
            )
        count = _COUNT.fullmatch(columns[1])
        if count is None or not 1 <= int(count[1]) < 1 << 63:
            shown = columns[1][:40].decode(errors="backslashreplace")
            raise CorpusError(
                f"{where(index)}: the count must be an integer from 1 to 2**63 - 1, not {shown!r}"
            )
        sentences.append(columns[0])
        counts.append(int(count[1]))
    return sentences, counts


def read_json(name: str, file_parts: Iterable[bytes], field: str) -> Iterator[Records]:
    r"""The texts of a file in which each line holds a JSON object, with the text in one field.

    >>> list(read_json("a.jsonl", [b'{"text": "a"}\n\n{"text": null}'], "text"))
    [([b'a', None], [1]), ([None], [])]
    """
    first = 1
    for part in whole_lines(file_parts):
        lines = part.removesuffix(b"\n").split(b"\n")
        blank = [index for index, line in enumerate(lines) if not line or line.isspace()]
        texts = [_text_of(line, field, f"{name}:{number}") for number, line in enumerate(lines, first)]
        yield texts, blank
        first += len(lines)


def _text_of(line: bytes, field: str, where: str) -> bytes | None:
    if not line or line.isspace():
        return None
    try:
        try:
            record = json.loads(line)
        except ValueError:  # it may be an integer of thousands of digits, which Python refuses
            record = json.loads(line, parse_int=len)
    except ValueError as error:
        hint = "; each line holds one JSON object" if isinstance(error, json.JSONDecodeError) else ""
        raise CorpusError(f"{where}: not valid JSON: {error}{hint}") from None
    except RecursionError:
        raise CorpusError(f"{where}: the JSON is nested too deeply") from None
    if not isinstance(record, dict) or field not in record:
        fields = ", ".join(map(repr, list(record)[:10])) if isinstance(record, dict) else "no object"
        raise CorpusError(
            f"{where}: there is no field {field!r} (there is {fields or 'none'}); "
            f"name it with {given('field', ...)}"
        )
    text = record[field]
    if text is not None and not isinstance(text, str):
        raise CorpusError(f"{where}: the field {field!r} is {type(text).__name__}, not text")
    return None if text is None else encoded(text, lambda: f"{where}: the field {field!r}")


def encoded(text: str, where: Callable[[], str]) -> bytes:
    """Text in UTF-8. Half of a surrogate pair is not a character: it is refused, whatever the source."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where()} is not valid Unicode: {error}; "
            + advised("correct it, or give the texts as bytes: text.encode(errors='replace')", "correct it")
        ) from None


def checked(texts: Iterable[str | bytes]) -> Iterator[str | bytes]:
    """The same texts. One that holds half of a surrogate pair is refused, with its number."""
    for number, text in enumerate(texts, 1):
        if isinstance(text, str) and not text.isascii():
            encoded(text, partial("text {}".format, number))
        yield text


# --- Tables as text ----------------------------------------------------------------------------------

_BOM = "\ufeff"
_QUOTES = "quotes inside of a quoted text must be doubled"
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 14
"""A batch of texts ends when it has about this many bytes, or this many rows."""


def read_table(name: str, file_parts: Iterable[bytes], format: str, column: str | int) -> Iterator[Records]:
    r"""The texts of a table, in batches: csv, whose cells can be in quotes, or tsv, whose cells cannot.

    The column is given by its name in the first line or, if there is no line of names, by its number, from 1.

    >>> list(read_table("a.csv", [b'id,text\n1,"a, ', b'b"\n2,c\n'], "csv", "text"))
    [([b'a, b', b'c'], [])]
    >>> list(read_table("a.tsv", [b'1\t"a\n\n2\tb\n'], "tsv", 2))
    [([b'"a', None, b'b'], [1])]
    """
    place, width = _number(column), sys.maxsize
    texts: list[bytes | None] = []
    blank: list[int] = []
    size = 0
    for line, row in (_quoted if format == "csv" else _plain)(name, _lines(file_parts)):
        if not row:
            if place is not None:
                blank.append(len(texts))
                texts.append(None)
            continue
        if place is None:
            place, width = _place(name, row, str(column)), len(row)
            continue
        if any(row[width:]):
            way_out = "put texts with commas into quotes" if format == "csv" else "take tabs out of texts"
            raise CorpusError(
                f"{name}:{line}: this row has {len(row)} columns, and the first line {width}, so a text may "
                f"be cut; {way_out}"
            )
        if place >= len(row):
            raise CorpusError(
                f"{name}:{line}: there is no column {place + 1} in this row, which has {len(row)}; complete "
                f"it, or correct the quotes before it"
            )
        texts.append(row[place].encode("utf-8", "surrogateescape"))
        size += len(row[place])
        if size >= _BATCH_BYTES or len(texts) >= _BATCH_ROWS:
            yield texts, blank
            texts, blank, size = [], [], 0
    if texts:
        yield texts, blank


def _number(column: str | int) -> int | None:
    """The place of a column that is given by its number."""
    if isinstance(column, str) and not (column.isascii() and column.isdecimal()):
        return None
    if int(column) < 1:
        raise CorpusError(f"columns are numbered from 1, so there is no column {column}")
    return int(column) - 1


def _place(name: str, names: list[str], column: str) -> int:
    """The place of a column in the line of names."""
    if column not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        other = "; its columns seem to be separated by something other than its name says"
        raise CorpusError(
            f"{name}: there is no column {column!r} in its first line (there is {shown})"
            f"{other if len(names) == 1 and any(sign in names[0] for sign in ';,|') else ''}; name it with "
            f"{given('column', ...)}, or give its number, from 1, if the first line holds no names"
        )
    if names.count(column) > 1:
        raise CorpusError(f"{name}: there are {names.count(column)} columns {column!r}; rename one of them")
    return names.index(column)


def _lines(file_parts: Iterable[bytes]) -> Iterator[str]:
    """The lines of a file with their ends. Bytes that are not UTF-8 become lone surrogates."""
    first = True
    for lines in whole_lines(file_parts):
        text = lines.decode("utf-8", "surrogateescape")
        yield from io.StringIO(text.removeprefix(_BOM) if first else text, newline="\n")
        first = False


def _plain(name: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.removesuffix("\n").removesuffix("\r")
        yield number, cells.split("\t") if cells else []


def _quoted(name: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    # The limit holds for the whole process. It stays raised, because another thread may be reading, too.
    csv.field_size_limit((1 << 31) - 1 if sys.platform == "win32" else sys.maxsize)
    reader = csv.reader(lines, strict=True)
    while True:
        begun = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "lines must end with LF or CRLF" if "new-line" in str(error) else _QUOTES
            raise CorpusError(f"{name}:{begun}: not valid CSV: {error}; {hint}") from None
        yield begun, row


# --- Parquet and Arrow -------------------------------------------------------------------------------

_ROWS = 4096
"""The most rows that are read at a time. (Their size is only known after reading them.)"""
_MAPPED = 1 << 28
"""Arrow files that are larger than this are mapped into memory."""
_SPARE = 1 << 25
"""As long as this many bytes are free, pyarrow can work; see `need_memory`."""
_FILE_MAGIC = b"ARROW1\0\0"
"""How an Arrow file begins. It is a stream between this and a table of contents; others are only a stream."""


def read_parquet(path: str, column: str | int) -> Columns:
    """The texts of a Parquet file in batches."""
    parquet = _imported(path, "pyarrow.parquet")
    row = 0
    with _errors_named(path, "Parquet file", lambda: row), parquet.ParquetFile(path) as file:
        place = _checked_column(path, file.schema_arrow, column)
        rows = file.metadata.num_rows
        name = file.schema_arrow.names[place]
        rows_at_once = _rows_at_once(file.metadata, name)
        # (Threads of pyarrow gain nothing for one column. If one finds no memory, it ends the process.)
        need_memory()
        for batch in file.iter_batches(rows_at_once, columns=[name], use_threads=False):
            need_memory()
            row += batch.num_rows
            # (To pyarrow, the name "a.b" also means the column b within a, so there may be several.)
            yield _as_bytes(batch.column(batch.schema.names.index(name))), 1000 * row // max(rows, 1)
        if row != rows:
            raise CorpusError(f"{path}: has {row:,} rows, but its footer says {rows:,}; copy it again")


def _rows_at_once(metadata: Any, name: str) -> int:
    """How many rows have about `PART_BYTES`, going by the sizes that the file records."""
    size = rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = map(group.column, range(group.num_columns))
        size += sum(column.total_uncompressed_size for column in columns if column.path_in_schema == name)
        rows += group.num_rows
    return min(max(PART_BYTES * rows // max(size, 1), 1), _ROWS)


def read_arrow(path: str, column: str | int) -> Columns:
    """The texts of an Arrow file or stream in batches. (What datasets calls .arrow is a stream.)

    Both are read as streams: pyarrow reads files by threads of its own, which end the process if one of them
    finds no memory.
    """
    ipc, pyarrow = _imported(path, "pyarrow.ipc"), _imported(path, "pyarrow")
    options = ipc.IpcReadOptions(use_threads=False)  # (as above)
    row = 0
    with _errors_named(path, "Arrow file", lambda: row):
        with open(path, "rb") as file:
            is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
            size = file.seek(0, 2)
            end = _contents_of(file, size) if is_file else size
        # A large file is mapped, and batches are sliced, because a batch can be as large as the file. Others
        # are read: if a program cuts off a file that is mapped, the system ends the process that uses it.
        with (pyarrow.memory_map if size > _MAPPED else pyarrow.OSFile)(path) as opened:
            opened.seek(len(_FILE_MAGIC) if is_file else 0)
            reader = ipc.open_stream(opened, options=options)
            place = _checked_column(path, reader.schema, column)
            while opened.tell() < end:  # (Old files do not say that their stream ends.)
                need_memory()
                try:
                    batch = reader.read_next_batch()
                except StopIteration:  # the end of a stream, or of what is left of it
                    if (left := os.path.getsize(path)) < size:
                        raise became_shorter(path, left, size) from None
                    if is_file or opened.tell() >= end:
                        return
                    reader = ipc.open_stream(opened, options=options)  # several files that were put together
                    place = _checked_column(path, reader.schema, column)
                    continue
                done = 1000 * opened.tell() // max(size, 1)
                texts = batch.column(place)
                rows = min(max(PART_BYTES * len(texts) // max(_size(texts), 1), 1), _ROWS)
                for begin in range(0, len(texts), rows):
                    need_memory()
                    part = texts.slice(begin, rows)
                    row += len(part)
                    yield _as_bytes(part), done


def need_memory() -> None:
    """Raise a MemoryError if there is hardly any memory left.

    Not all of pyarrow says so itself: converting an array and listing its values end the process then.
    """
    bytearray(_SPARE)


def _contents_of(file: BinaryIO, size: int) -> int:
    """Where the table of contents of an Arrow file begins. At the end are its length and the mark."""
    file.seek(max(size - 10, 0))
    length, mark = int.from_bytes(file.read(4), "little"), file.read()
    if mark != _FILE_MAGIC[:6] or length > size - 10 - len(_FILE_MAGIC):
        raise ValueError("the end of the file is missing")
    return size - 10 - length


def _size(texts: Any) -> int:
    """How many bytes a pyarrow array takes. (`nbytes` ends the process if it finds no memory to tell.)"""
    values = [texts, texts.dictionary] if hasattr(texts, "dictionary") else [texts]
    return sum(buffer.size for array in values for buffer in array.buffers() if buffer)


def _imported(path: str, name: str) -> Any:
    try:
        with importing:
            return import_module(name)
    except ImportError:
        raise missing(f"reading {path!r} needs pyarrow", "pyarrow") from None


@contextmanager
def _errors_named(path: str, kind: str, row: Callable[[], int]) -> Iterator[None]:
    """Turn the many kinds of errors that pyarrow raises for damaged files into one that names the file."""
    try:
        yield
    except (CorpusError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system, not of the content
        if isinstance(error, NotImplementedError):
            raise CorpusError(f"{path}: pyarrow cannot read it: {_reason(error)}") from error
        if not row():
            raise CorpusError(
                f"{path}: is not a valid {kind}: {_reason(error)}; copy or download it again"
            ) from error
        raise CorpusError(
            f"{path}: cannot be read beyond row {row():,}: {_reason(error)}; copy or download it again"
        ) from error


def _reason(error: Exception) -> str:
    text = str(error).strip().split("\n")[0][:200]
    return text if isinstance(error, (ValueError, OSError)) and text else f"{type(error).__name__} {text}"


def _checked_column(path: str, schema: Any, column: str | int) -> int:
    """The place of a column that holds texts."""
    with importing:
        import pyarrow
    names = schema.names
    if column not in names and str(column).isascii() and str(column).isdecimal():
        if not 1 <= int(column) <= len(names):
            raise CorpusError(f"{path}: there is no column {column}: it has {len(names)}, numbered from 1")
        place = int(column) - 1
    elif column not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        raise CorpusError(
            f"{path}: there is no column {column!r} (there is {shown or 'none'}); name it with "
            f"{given('column', ...)}"
        )
    else:
        place = names.index(column)
    if names.count(names[place]) > 1:
        raise CorpusError(
            f"{path}: there are {names.count(names[place])} columns {names[place]!r}; rename one of them"
        )
    kind = schema.field(place).type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    texts = ("string", "large_string", "binary", "large_binary", "string_view", "binary_view")
    if kind not in [getattr(pyarrow, name)() for name in texts if hasattr(pyarrow, name)]:
        raise CorpusError(f"{path}: the column {names[place]!r} is {kind}, not text")
    return place


def _as_bytes(column: Any) -> Column:
    with importing:
        import pyarrow
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pyarrow.large_binary())


# --- Texts as lines -------------------------------------------------------------------------------


def gathered(columns: Iterable[Column]) -> Iterator[Column]:
    """The same texts in larger arrays, of about `PART_BYTES`."""
    with importing:
        import pyarrow
    waiting: list[Column] = []
    size = 0
    for column in columns:
        waiting.append(column)
        size += column.nbytes
        if size >= PART_BYTES:
            yield pyarrow.concat_arrays(waiting)
            waiting, size = [], 0
    if waiting:
        yield pyarrow.concat_arrays(waiting)


def as_lines(column: Column) -> tuple[bytes, list[int] | None]:
    r"""The lines of all texts, and how many lines each text has; None if each has one. Nulls have none.

    No Python object is made of a text: for a short text, that takes as long as counting its words.

    >>> import pyarrow
    >>> as_lines(pyarrow.array([b"a", b"b\n"], pyarrow.large_binary()))
    (b'a\nb\n', None)
    >>> as_lines(pyarrow.array([b"a\nb\n\n", None, b"", b"c"], pyarrow.large_binary()))
    (b'a\nb\n\nc\n', [3, 0, 0, 1])
    """
    with importing:
        from pyarrow import compute
    lengths = compute.fill_null(compute.binary_length(column), 0)
    texts = column.filter(compute.greater(lengths, 0))  # an empty text has no line
    lines = _joined(texts)
    if len(texts) == len(column) == lines.count(b"\n"):
        return lines, None
    unended = compute.cast(compute.invert(compute.ends_with(texts, b"\n")), "int32")
    newlines = iter(compute.add(compute.count_substring(texts, b"\n"), unended).to_pylist())
    return lines, [next(newlines) if length else 0 for length in lengths.to_pylist()]


def as_a_line_each(column: Column) -> bytes | None:
    r"""Return texts as one line each, without line breaks at their ends; None if one has a break elsewhere.

    No text may be null.

    >>> import pyarrow
    >>> as_a_line_each(pyarrow.array([b"a", b"", b"\rb\r\n\n"], pyarrow.large_binary()))
    b'a\n\n\rb\n'
    >>> as_a_line_each(pyarrow.array([b"a\nb"], pyarrow.large_binary()))
    """
    with importing:
        import pyarrow
        from pyarrow import compute
    lines = _joined(column)
    if lines.count(b"\n") != len(column) or b"\r\n" in lines:
        # (Only strings can be trimmed. The texts need not be UTF-8, and nothing here checks that they are.)
        strings = column.view(pyarrow.large_string())
        stripped = compute.ascii_rtrim(strings, characters="\r\n").view(pyarrow.large_binary())
        lines = _joined(stripped)
    return lines if lines.count(b"\n") == len(column) else None


def _joined(texts: Column) -> bytes:
    """Texts with a newline after each that has none at its end."""
    with importing:
        import pyarrow
        from pyarrow import compute
    if not len(texts):
        return b""
    ended = compute.ends_with(texts, b"\n")
    texts = compute.if_else(ended, compute.binary_slice(texts, 0, -1), texts)
    # (What is joined are the texts of a list, so all of them are put into one list.)
    one = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(texts)], pyarrow.int32()), texts)
    newline = pyarrow.scalar(b"\n", pyarrow.large_binary())
    return b"".join([compute.binary_join(one, newline)[0].as_buffer(), b"\n"])
