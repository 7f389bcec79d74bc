"""Counting, training, encoding and packing of Spark's data frames.

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
from functools import partial
from typing import Any

from cpbpe.arrow import pyarrow
from cpbpe.errors import missing
from cpbpe.lazy import importing
from cpbpe.scale.cluster import Cluster
from cpbpe.scale.counting import BUCKET, BUCKETS, FAN_IN, PART, Counting, Row
from cpbpe.scale.encoding import Encoding, encoded_parts

_ROWS = f"{BUCKET} int, {PART} binary"
"""The schema of rows with counted words."""


class _Spark(Cluster):
    _kind = "a data frame of Spark"
    _way_out = "spark.createDataFrame(...) and spark.read.parquet(path) make one"
    _signed = True

    def _columns(self, dataset: Any, column: str, call: str) -> list[str] | None:
        try:
            with importing:
                import pyspark.sql  # noqa: F401
        except ImportError:
            raise missing("this needs Spark", "pyspark", "pyarrow") from None
        if not hasattr(dataset, "mapInArrow"):
            return None
        columns = list(dataset.columns)
        if column in columns:
            kind = dataset.schema[column].dataType.typeName()
            if kind not in ("string", "varchar", "char", "binary"):
                raise TypeError(f"the column {column!r} holds no strings or bytes, but {kind}")
        return columns

    def _counted(self, dataset: Any, work: Counting) -> Iterator[bytes]:
        # 1. Each partition becomes rows, one for each bucket of words; or a single row, if there are few
        #    partitions.
        few = _partitions(dataset) <= FAN_IN
        task = partial(_count_partition, work, 1 if few else BUCKETS)
        rows = _only(dataset, work.column).mapInArrow(task, _ROWS)
        if not few:
            # 2. The rows of a bucket are brought together in a partition, and merged.
            rows = rows.repartition(BUCKETS, BUCKET).mapInArrow(partial(_merge_rows, work), _ROWS)
        # 3. The caller joins the rows in this process. Buckets have no words in common.
        return (bytes(row[PART]) for row in _computed(rows))

    def _encoded(self, dataset: Any, work: Encoding) -> Any:
        with importing:
            from pyspark.sql import types
        numbers = types.ArrayType(types.IntegerType())
        fields = [*dataset.schema.fields, types.StructField(work.output, numbers)]
        if work.spans is not None:
            fields.append(types.StructField(work.spans, types.ArrayType(numbers)))
        return dataset.mapInArrow(partial(_encode_partition, work), types.StructType(fields))

    def _packed(self, dataset: Any, column: str, order: list[str], model: bytes) -> Iterator[Any]:
        ordered = dataset.orderBy(*(dataset[f"`{name}`"] for name in order)) if order else dataset
        parts = _only(ordered, column).mapInArrow(partial(_pack_partition, model), f"{PART} binary")
        return (bytes(row[PART]) for row in _computed(parts))


_SPARK = _Spark()
count, train, encode, pack = _SPARK.count, _SPARK.train, _SPARK.encode, _SPARK.pack


def _only(frame: Any, column: str) -> Any:
    """The frame with only one of its columns."""
    return frame.select(frame[f"`{column}`"].alias(column))


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


def _pack_partition(model: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Encode one batch after another. The process that writes shards reads the results."""
    arrow = pyarrow()
    for batch in batches:
        parts = arrow.array(encoded_parts(model, batch.column(0)), arrow.binary())
        yield arrow.RecordBatch.from_arrays([parts], [PART])


def _batches(rows: list[Row]) -> Iterator[Any]:
    """Yield each row as a batch of its own, because rows may be large."""
    arrow = pyarrow()
    for bucket, part in rows:
        columns = [arrow.array([bucket], arrow.int32()), arrow.array([part], arrow.binary())]
        yield arrow.RecordBatch.from_arrays(columns, [BUCKET, PART])


def _computed(frame: Any) -> Iterator[Any]:
    """Yield the rows of a frame in order, once all of its partitions have been computed in parallel.

    `toLocalIterator` alone would compute a partition only after the one before it has been read. What was
    computed is kept on the disks of the workers until then.
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
    """How many partitions a frame has. Spark Connect does not say it, so many are assumed there."""
    try:
        number: int = frame.rdd.getNumPartitions()
    except Exception as error:
        if "CONNECT" not in str(error).upper() and not isinstance(
            error, (AttributeError, NotImplementedError)
        ):
            raise
        return FAN_IN + 1
    return number
