"""Files that pyarrow reads, with a text in one column: Parquet, and Arrow's own files and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cpbpe.errors import CorpusError
from cpbpe.spelling import given

_ROWS = 1024
"""How many rows are made bytes at a time."""
_FILE = b"ARROW1\0\0"
"""How an Arrow file begins. What begins otherwise is a stream, if it is anything."""

Batches = Iterator[tuple[list[bytes | None], int]]
"""Texts, and how much of the file has been read: in thousandths."""


def read_parquet(path: str, column: str | int) -> Batches:
    """The texts of a Parquet file in batches."""
    parquet = _imported(path, "pyarrow.parquet")
    row = 0
    with _errors_named(path, "Parquet file", lambda: row), parquet.ParquetFile(path) as file:
        place = checked_column(path, file.schema_arrow, column)
        rows = file.metadata.num_rows
        for batch in file.iter_batches(columns=[file.schema_arrow.names[place]], batch_size=_ROWS):
            row += batch.num_rows
            yield _bytes_of(batch.column(0)), 1000 * row // max(rows, 1)
        if row != rows:
            raise CorpusError(f"{path}: has {row:,} rows, but its header says {rows:,}; copy it again")


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
                for begin in range(0, len(texts), _ROWS):
                    part = texts.slice(begin, _ROWS)
                    row += len(part)
                    yield _bytes_of(part), done


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


def _bytes_of(column: Any) -> list[bytes | None]:
    """A column as bytes: invalid UTF-8 is treated as in any other file."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: list[bytes | None] = column.cast(pyarrow.large_binary()).to_pylist()
    return values
