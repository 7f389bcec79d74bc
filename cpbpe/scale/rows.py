"""The rows by which workers give results to each other and to the process that calls: bytes in a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cpbpe.arrow import Column, pyarrow

PART = "part"
"""The column with what a task has made of a part of the dataset, as bytes."""
BUCKET = "bucket"
"""The column with the number of the bucket that the words of a row belong to."""


def row_type() -> Any:
    """The schema of rows of words."""
    arrow = pyarrow()
    return arrow.schema([(BUCKET, arrow.int32()), (PART, arrow.large_binary())])


def chunks_of(column: Column) -> list[Column]:
    """The arrays of a column."""
    return list(column.chunks) if isinstance(column, pyarrow().ChunkedArray) else [column]


def check_column(column: str, columns: list[str]) -> None:
    """Raise an error if a dataset does not have a column."""
    if column not in columns:
        raise ValueError(f"the dataset has no column {column!r}; it has {', '.join(columns) or 'none'}")


def check_new(outputs: Sequence[str | None], columns: list[str]) -> None:
    """Raise an error if a dataset has a column already that is to be added."""
    for option, name in zip(("output", "spans"), outputs, strict=False):
        if name in columns:
            raise ValueError(f"the dataset has a column {name!r} already; give another name as {option}")
