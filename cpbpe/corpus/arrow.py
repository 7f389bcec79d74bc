"""Files that pyarrow reads, with a text in one column: Parquet, and Arrow's own files and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cpbpe.corpus.files import PART_BYTES
from cpbpe.errors import CorpusError
from cpbpe.spelling import given

_ROWS = 4096
"""At most so many rows are read at a time: what they take is known only afterwards."""
_FILE = b"ARROW1\0\0"
"""How an Arrow file begins. What begins otherwise is a stream, if it is anything."""

Column = Any
"""An array of pyarrow, of large_binary: invalid UTF-8 is treated as in any other file."""
Batches = Iterator[tuple[Column, int]]
"""Texts, and how much of the file has been read: in thousandths."""


def read_parquet(path: str, column: str | int) -> Batches:
    """The texts of a Parquet file in batches."""
    parquet = _imported(path, "pyarrow.parquet")
    row = 0
    with _errors_named(path, "Parquet file", lambda: row), parquet.ParquetFile(path) as file:
        place = checked_column(path, file.schema_arrow, column)
        rows = file.metadata.num_rows
        name = file.schema_arrow.names[place]
        for batch in file.iter_batches(columns=[name], batch_size=_rows_at_once(file.metadata, name)):
            row += batch.num_rows
            yield _as_bytes(batch.column(0)), 1000 * row // max(rows, 1)
        if row != rows:
            raise CorpusError(f"{path}: has {row:,} rows, but its header says {rows:,}; copy it again")


def _rows_at_once(metadata: Any, name: str) -> int:
    """How many rows have about `PART_BYTES`, as far as the file says how large its texts are."""
    size = rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = map(group.column, range(group.num_columns))
        size += sum(column.total_uncompressed_size for column in columns if column.path_in_schema == name)
        rows += group.num_rows
    return min(max(PART_BYTES * rows // max(size, 1), 1), _ROWS)


def read_arrow(path: str, column: str | int) -> Batches:
    """The texts of an Arrow file or stream in batches. (What datasets calls .arrow is a stream.)"""
    ipc = _imported(path, "pyarrow.ipc")
    import pyarrow

    row = 0
    with _errors_named(path, "Arrow file", lambda: row):
        with open(path, "rb") as opened:
            is_file = opened.read(len(_FILE)) == _FILE
            size = opened.seek(0, 2)
        # Mapped, not read: a batch can be as large as the file, and is taken in slices.
        with pyarrow.memory_map(path) as mapped:
            reader = (ipc.open_file if is_file else ipc.open_stream)(mapped)
            place = checked_column(path, reader.schema, column)
            count = reader.num_record_batches if is_file else 0
            number = 0
            while not is_file or number < count:
                try:
                    batch = reader.get_batch(number) if is_file else reader.read_next_batch()
                except StopIteration:
                    return
                number += 1
                done = 1000 * number // count if is_file else 1000 * mapped.tell() // max(size, 1)
                texts = batch.column(place)
                rows = min(max(PART_BYTES * len(texts) // max(texts.nbytes, 1), 1), _ROWS)
                for begin in range(0, len(texts), rows):
                    part = texts.slice(begin, rows)
                    row += len(part)
                    yield _as_bytes(part), done


def _imported(path: str, name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"reading {path!r} needs pyarrow: pip install 'cpbpe[parquet]'") from None


@contextmanager
def _errors_named(path: str, kind: str, row: Callable[[], int]) -> Iterator[None]:
    """Errors of pyarrow, of which a damaged file raises many kinds, as one kind that names the file."""
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


def checked_column(path: str, schema: Any, column: str | int) -> int:
    """The place of a column that holds texts."""
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
    if kind not in _text_types():
        raise CorpusError(f"{path}: the column {names[place]!r} is {kind}, not text")
    return place


def _text_types() -> list[Any]:
    import pyarrow

    names = ("string", "large_string", "binary", "large_binary", "string_view", "binary_view")
    return [getattr(pyarrow, name)() for name in names if hasattr(pyarrow, name)]


def _as_bytes(column: Any) -> Column:
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pyarrow.large_binary())


# --- Texts as lines -------------------------------------------------------------------------------


def gathered(batches: Batches) -> Batches:
    """The same texts in larger arrays, of about `PART_BYTES`."""
    import pyarrow

    columns: list[Column] = []
    size = 0
    for column, done in batches:
        columns.append(column)
        size += column.nbytes
        if size >= PART_BYTES:
            yield pyarrow.concat_arrays(columns), done
            columns, size = [], 0
    if columns:
        yield pyarrow.concat_arrays(columns), 1000


def as_lines(column: Column) -> tuple[bytes, list[int] | None]:
    r"""The lines of all texts, and how many each text has; None if that is one. Nulls have none.

    This makes no object of a text, which takes as long as to count its words if it is short.

    >>> import pyarrow
    >>> as_lines(pyarrow.array([b"a", b"b\n"], pyarrow.large_binary()))
    (b'a\nb\n', None)
    >>> as_lines(pyarrow.array([b"a\nb\n\n", None, b"", b"c"], pyarrow.large_binary()))
    (b'a\nb\n\nc\n', [3, 0, 0, 1])
    """
    from pyarrow import compute

    lengths = compute.fill_null(compute.binary_length(column), 0)
    texts = column.filter(compute.greater(lengths, 0))  # an empty text has no line
    lines = _joined(texts)
    if len(texts) == len(column) == lines.count(b"\n"):
        return lines, None
    newlines = iter(_in_lines(texts).to_pylist())
    return lines, [next(newlines) if length else 0 for length in lengths.to_pylist()]


def as_a_line_each(column: Column) -> bytes | None:
    r"""Texts, none of them null, as lines, without the line breaks at their ends; None if one has others.

    >>> import pyarrow
    >>> as_a_line_each(pyarrow.array([b"a", b"", b"\rb\r\n\n"], pyarrow.large_binary()))
    b'a\n\n\rb\n'
    >>> as_a_line_each(pyarrow.array([b"a\nb"], pyarrow.large_binary()))
    """
    import pyarrow
    from pyarrow import compute

    lines = _joined(column)
    if lines.count(b"\n") != len(column) or b"\r\n" in lines:
        strings = column.view(
            pyarrow.large_string()
        )  # they need not be UTF-8, and nothing looks whether they are
        stripped = compute.ascii_rtrim(strings, characters="\r\n").view(pyarrow.large_binary())
        lines = _joined(stripped)
    return lines if lines.count(b"\n") == len(column) else None


def _joined(texts: Column) -> bytes:
    """Texts with a newline after each that has none at its end."""
    import pyarrow
    from pyarrow import compute

    if not len(texts):
        return b""
    ended = compute.ends_with(texts, b"\n")
    texts = compute.if_else(ended, compute.binary_slice(texts, 0, -1), texts)
    one = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(texts)], pyarrow.int32()), texts)
    newline = pyarrow.scalar(b"\n", pyarrow.large_binary())
    return b"".join([compute.binary_join(one, newline)[0].as_buffer(), b"\n"])


def _in_lines(texts: Column) -> Column:
    """How many lines each text has, none of which is empty."""
    from pyarrow import compute

    unended = compute.cast(compute.invert(compute.ends_with(texts, b"\n")), "int32")
    return compute.add(compute.count_substring(texts, b"\n"), unended)
