"""Counting, training and encoding of Spark's data frames.

    import cpbpe.scale.spark as scale

    texts = spark.read.parquet("hdfs://corpus")
    result = scale.train(texts, column="text", vocab_size=32_000)
    tokenized = scale.encode(texts, result.tokenizer, column="text", add_eos=True)

A partition is counted or encoded by one task, as batches of Arrow (`mapInArrow`). Spark does a task again
that failed or is slow; only one attempt's result is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cpbpe.lazy import imported
from cpbpe.scale.counting import FAN_IN, PART, Counting, check_column, checked_min_count, counting, levels
from cpbpe.scale.encoding import Encoding, encoding
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.presets import AnyOptions
from cpbpe.training.result import TrainingResult
from cpbpe.training.train import train as train_on_counts
from cpbpe.training.word_counts import WordCounts, warn

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NUMBER = "number"
"""The column of rows that decides which are merged: the number of the partition that made them."""
_ROWS = f"{_NUMBER} long, {PART} binary"


def count(
    frame: Any,
    column: str = "text",
    *,
    preset: str | AnyOptions = "llama2",
    memory_limit: int | str | None = None,
    min_count: int = 1,
    **options: Any,
) -> WordCounts:
    """Count the words of a column: the same counts as `WordCounts.build` of all its texts on one machine.

    `preset` and the other options are those of `cpbpe.train`, of which only those about words matter here.
    `memory_limit` is about how much memory a worker may take for the counts of a partition, as in
    `cpbpe.train`. Words that occur less than `min_count` times are left out at the end, and a warning says
    how many.
    """
    least = checked_min_count(min_count)
    work = counting(column, preset, memory_limit, 1, options)
    _check(frame, "count", column)
    # 1. A row or a few for each partition.
    texts = frame.select(frame[f"`{column}`"].alias(column))
    rows = texts.mapInArrow(_CountPartition(work), _ROWS)
    # 2. A tree: tasks merge rows until a few are left. (Which rows meet depends on nothing but the
    #    partitions, so a task that is done again gets the same ones.)
    for left in levels(_partitions(frame)):
        rows = rows.repartition(left, _NUMBER).mapInArrow(_MergeRows(work), _ROWS)
    # 3. The rest is merged here, row by row.
    counts = work.result((bytes(row[PART]) for row in rows.toLocalIterator()), least)
    warn(counts.reading.warnings)
    return counts


def train(
    frame: Any,
    column: str = "text",
    *,
    preset: str | AnyOptions = "llama2",
    memory_limit: int | str | None = None,
    min_count: int = 1,
    threads: int | None = None,
    progress: Any = None,
    **options: Any,
) -> TrainingResult:
    """Train on a column: the model that `cpbpe.train` makes of its texts on one machine, byte for byte.

    The cluster counts words, as `count` does; this process learns from them, with `threads`.
    """
    counts = count(frame, column, preset=preset, memory_limit=memory_limit, min_count=min_count, **options)
    return train_on_counts(counts, preset=preset, threads=threads, progress=progress, **options)


def encode(
    frame: Any,
    tokenizer: Tokenizer,
    column: str = "text",
    *,
    output: str = "ids",
    **options: Unpack[EncodeOptions],
) -> Any:
    """The frame with a column of arrays of int: the ids of its texts, null where there is no text.

    A Python process of a worker loads the tokenizer once. The options are those of `Tokenizer.encode_arrays`,
    except those of sampling. As always in Spark, nothing is done before the result is used.
    """
    work = encoding(tokenizer, column, output, True, options)
    _check(frame, "encode", column, output)
    types = imported("pyspark.sql.types")
    ids = types.StructField(output, types.ArrayType(types.IntegerType()))
    return frame.mapInArrow(_EncodePartition(work), types.StructType([*frame.schema.fields, ids]))


class _CountPartition:
    """From the batches of a partition to its rows."""

    def __init__(self, work: Counting):
        self._work = work

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        parts = self._work.count(batch.column(0) for batch in batches)
        return _batches(imported("pyspark").TaskContext.get().partitionId(), parts)


class _MergeRows:
    """From the rows of a partition to one, or as few as there can be."""

    def __init__(self, work: Counting):
        self._work = work

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        rows = (row.as_py() for batch in batches for row in batch.column(1))
        parts = self._work.merge(rows)
        return _batches(imported("pyspark").TaskContext.get().partitionId(), parts)


class _EncodePartition:
    """Encodes one batch after the other."""

    def __init__(self, work: Encoding):
        self._work = work

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield self._work.add(batch)


def _batches(number: int, parts: list[bytes]) -> Iterator[Any]:
    """Rows, each in a batch of its own, because they may be large."""
    arrow = imported("pyarrow")
    for part in parts:
        columns = [arrow.array([number], arrow.int64()), arrow.array([part], arrow.binary())]
        yield arrow.RecordBatch.from_arrays(columns, [_NUMBER, PART])


def _partitions(frame: Any) -> int:
    """How many partitions a frame has. Spark Connect does not say; then there are two levels of merging."""
    try:
        number: int = frame.rdd.getNumPartitions()
    except Exception as error:
        if "CONNECT" not in str(error).upper() and not isinstance(
            error, (AttributeError, NotImplementedError)
        ):
            raise
        return FAN_IN**3
    return number


def _check(frame: Any, name: str, column: str, output: str | None = None) -> None:
    """Raise an error if this is no data frame, or if it lacks the column."""
    try:
        imported("pyspark.sql")
    except ImportError:
        raise ImportError("this needs Spark: pip install 'cpbpe[spark]'") from None
    if not hasattr(frame, "mapInArrow"):
        way_out = "spark.createDataFrame(...) and spark.read.parquet(path) make one"
        raise TypeError(f"{name}() takes a data frame of Spark first, not {type(frame).__name__}; {way_out}")
    check_column(column, frame.columns)
    kind = frame.schema[column].dataType.typeName()
    if kind not in ("string", "varchar", "char", "binary"):
        raise TypeError(f"the column {column!r} holds no strings or bytes, but {kind}")
    if output in frame.columns:
        raise ValueError(f"the frame has a column {output!r} already; give another name as output")
