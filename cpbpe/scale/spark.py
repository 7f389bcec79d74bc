"""Counting, training, encoding and packing of Spark's data frames.

    with importing:
        import cpbpe.scale.spark as scale
    texts = spark.read.parquet("hdfs://corpus")
    result = scale.train(texts, column="text", vocab_size=32_000)
    tokenized = scale.encode(texts, result.tokenizer, column="text", add_eos=True)
    scale.pack(texts, result.tokenizer, "tokens", column="text", order="id", add_eos=True)

A partition is counted or encoded by one task, as batches of Arrow (`mapInArrow`). Spark repeats tasks that
failed or are slow, and uses the result of only one attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cpbpe.arrow import pyarrow
from cpbpe.lazy import importing
from cpbpe.packing.pack import PackOptions, PackReport
from cpbpe.scale.counting import BUCKET, BUCKETS, FAN_IN, PART, Counting, Row, checked_min_count, counting
from cpbpe.scale.encoding import (
    OPTIONS,
    Dataset,
    Encoding,
    Packing,
    Task,
    check_column,
    check_new,
    checked_order,
    encoding,
    packed,
    packing,
)
from cpbpe.tokenizer.options import EncodeOptions, described
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.options import AnyOptions
from cpbpe.training.result import TrainingResult
from cpbpe.training.train import train as train_on_counts
from cpbpe.training.word_counts import WordCounts, warn

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ROWS = f"{BUCKET} int, {PART} binary"


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
    # 1. Each partition becomes rows, one for each bucket of words; or one row, if there are few.
    texts = frame.select(frame[f"`{column}`"].alias(column))
    few = _partitions(frame) <= FAN_IN
    rows = texts.mapInArrow(Task(_count_partition, work, 1 if few else BUCKETS), _ROWS)
    if not few:
        # 2. The rows of a bucket are brought together in a partition, and merged.
        rows = rows.repartition(BUCKETS, BUCKET).mapInArrow(Task(_merge_rows, work), _ROWS)
    # 3. This process joins the buckets, which have no words in common.
    counts = work.result((bytes(row[PART]) for row in _computed(rows)), least)
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
    spans: str | None = None,
    **options: Unpack[EncodeOptions],
) -> Any:
    """The frame with a column of arrays of int: the ids of its texts, null where there is no text.

    With `spans`, the name of another column, that has an array of the begin and end of each id in its text:
    in characters for strings, in bytes for binary.

    Each Python process of a worker loads the tokenizer once. The options are those of
    `Tokenizer.encode_arrays`, except those of sampling. As always in Spark, nothing is done
    before the result is used.
    """
    work = encoding(tokenizer, column, output, spans, True, options)
    _check(frame, "encode", column, output, spans)
    with importing:
        from pyspark.sql import types
    numbers = types.ArrayType(types.IntegerType())
    fields = [*frame.schema.fields, types.StructField(output, numbers)]
    if spans is not None:
        fields.append(types.StructField(spans, types.ArrayType(numbers)))
    return frame.mapInArrow(Task(_encode_partition, work), types.StructType(fields))


@described(OPTIONS)
def pack(
    frame: Any,
    tokenizer: Tokenizer,
    out: Any,
    column: str = "text",
    *,
    order: str | list[str] | None = None,
    **options: Unpack[PackOptions],
) -> PackReport:
    """Encode a column, and write the ids to the files that `cpbpe.pack` writes of its texts on one machine.

    Workers encode; this process writes, into a folder that it can reach. `order` is a column by which the
    rows are sorted first, or several; its values must all be different. Without it, the order is that of the
    frame's partitions, which is not always that of the files it was read from. What is encoded is kept on the
    disks of the workers until it is written. A run that was interrupted is continued by the same call: texts
    are encoded again, and only what is missing is written.
    """
    work = packing(tokenizer, options)
    _check(frame, "pack", column)
    names = checked_order(order, list(frame.columns))

    def parts() -> Iterator[Any]:
        ordered = frame.orderBy(*(frame[f"`{name}`"] for name in names)) if names else frame
        texts = ordered.select(ordered[f"`{column}`"].alias(column))
        for row in _computed(texts.mapInArrow(Task(_pack_partition, work), f"{PART} binary")):
            yield bytes(row[PART])

    return packed(
        Dataset(parts, "a data frame of Spark"),
        tokenizer,
        out,
        names,
        options,
    )


def _count_partition(work: Counting, buckets: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the batches of a partition, and return its rows."""
    return _batches(work.count((batch.column(0) for batch in batches), buckets))


def _merge_rows(work: Counting, batches: Iterator[Any]) -> Iterator[Any]:
    """Merge the rows of a bucket into one."""
    rows = (
        (bucket.as_py(), part.as_buffer())
        for batch in batches
        for bucket, part in zip(batch.column(0), batch.column(1), strict=True)
    )
    return _batches(work.merge(rows))


def _encode_partition(work: Encoding, batches: Iterator[Any]) -> Iterator[Any]:
    """Encode one batch after another."""
    return map(work.add, batches)


def _pack_partition(work: Packing, batches: Iterator[Any]) -> Iterator[Any]:
    """Encode one batch after another, for the process that writes."""
    arrow = pyarrow()
    for batch in batches:
        parts = arrow.array(work.parts(batch.column(0)), arrow.binary())
        yield arrow.RecordBatch.from_arrays([parts], [PART])


def _batches(rows: list[Row]) -> Iterator[Any]:
    """Yield each row as a batch of its own, because rows may be large."""
    arrow = pyarrow()
    for bucket, part in rows:
        columns = [arrow.array([bucket], arrow.int32()), arrow.array([part], arrow.binary())]
        yield arrow.RecordBatch.from_arrays(columns, [BUCKET, PART])


def _computed(frame: Any) -> Iterator[Any]:
    """Yield the rows of a frame in order, once all of its partitions have been computed in parallel.

    `toLocalIterator` alone would compute a partition only after the one before it has been read.
    """
    with importing:
        from pyspark import StorageLevel
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        kept.write.format("noop").mode("overwrite").save()
        yield from kept.toLocalIterator(prefetchPartitions=True)
    finally:
        kept.unpersist()


def _partitions(frame: Any) -> int:
    """How many partitions a frame has. Spark Connect does not say; then many are assumed."""
    try:
        number: int = frame.rdd.getNumPartitions()
    except Exception as error:
        if "CONNECT" not in str(error).upper() and not isinstance(
            error, (AttributeError, NotImplementedError)
        ):
            raise
        return FAN_IN + 1
    return number


def _check(frame: Any, name: str, column: str, *outputs: str | None) -> None:
    """Raise an error if this is not a data frame, or if it lacks the column."""
    try:
        with importing:
            import pyspark.sql  # noqa: F401
    except ImportError:
        raise ImportError("this needs Spark: pip install 'cpbpe[spark]'") from None
    if not hasattr(frame, "mapInArrow"):
        way_out = "spark.createDataFrame(...) and spark.read.parquet(path) make one"
        raise TypeError(f"{name}() takes a data frame of Spark first, not {type(frame).__name__}; {way_out}")
    check_column(column, frame.columns)
    kind = frame.schema[column].dataType.typeName()
    if kind not in ("string", "varchar", "char", "binary"):
        raise TypeError(f"the column {column!r} holds no strings or bytes, but {kind}")
    check_new(outputs, list(frame.columns))
