"""Counting, training, encoding and packing of Ray datasets.

    import ray
    import cpbpe.scale.ray as scale
    texts = ray.data.read_parquet("s3://bucket/corpus")
    result = scale.train(texts, column="text", vocab_size=32_000)
    tokenized = scale.encode(texts, result.tokenizer, column="text", add_eos=True)
    scale.pack(texts, result.tokenizer, "tokens", column="text", add_eos=True)

A block of a dataset is counted or encoded by one task at a time, as a table of Arrow. If a worker dies, Ray
repeats its task, and only the result of the new attempt is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from cpbpe.arrow import pyarrow, texts_of
from cpbpe.errors import missing
from cpbpe.lazy import importing
from cpbpe.scale.cluster import Cluster
from cpbpe.scale.counting import BUCKET, BUCKETS, LITTLE, PART, Counting, Row
from cpbpe.scale.encoding import Encoding, encoded_parts


class _Ray(Cluster):
    _kind = "a dataset of Ray"
    _way_out = "ray.data.from_arrow(table), ray.data.read_parquet(path) and others make one"
    _signed = False

    def _columns(self, dataset: Any, column: str, call: str) -> list[str] | None:
        try:
            with importing:
                from ray.data import Dataset
        except ImportError:
            raise missing("this needs Ray", "ray[data]", "pyarrow") from None
        if not isinstance(dataset, Dataset):
            return None
        schema = dataset.schema()  # (Ray reads a row if it does not know the schema.)
        columns = [] if schema is None else list(schema.names)
        if column in columns:
            arrow, kind = pyarrow(), schema.types[columns.index(column)]
            if isinstance(kind, arrow.DataType):
                texts_of(arrow.nulls(0, kind), call)
        return columns

    def _counted(self, dataset: Any, work: Counting) -> Iterator[bytes]:
        # 1. Each block becomes rows, one for each bucket of words.
        texts = dataset.select_columns([work.column])
        rows = _on_blocks(texts, partial(_count_block, work)).materialize()
        if rows.size_bytes() > LITTLE:
            # 2. The rows of a bucket are brought together in a block, and merged. (If there is little,
            #    merging in this process takes less time than these tasks would.)
            rows = rows.sort(BUCKET, boundaries=list(range(1, BUCKETS)))
            rows = _on_blocks(rows, partial(_merge_rows, work)).materialize()
        # 3. This process joins the buckets, which have no words in common.
        return (row[PART] for row in rows.iter_rows())

    def _encoded(self, dataset: Any, work: Encoding) -> Any:
        return _on_blocks(dataset, partial(Encoding.add, work))

    def _packed(self, dataset: Any, column: str, order: list[str], model: bytes) -> Iterator[Any]:
        ordered = dataset.sort(order) if order else dataset
        made = _on_blocks(ordered.select_columns([column]), partial(_pack_block, model, column))
        made.context.execution_options.preserve_order = True
        for table in made.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from (part.as_buffer() for part in table.column(PART))


_RAY = _Ray()
count, train, encode, pack = _RAY.count, _RAY.train, _RAY.encode, _RAY.pack


def _on_blocks(dataset: Any, work: Any) -> Any:
    """Apply a function to each block, as a table of Arrow.

    Tasks are used rather than actors, because any process can repeat a task that is lost. What takes time,
    loading a tokenizer, is cached by each process.
    """
    return dataset.map_batches(work, batch_format="pyarrow", batch_size=None, zero_copy_batch=True)


def _count_block(work: Counting, table: Any) -> Any:
    """Count a block, and return its rows."""
    return _table(work.count([table.column(work.column)]))


def _merge_rows(work: Counting, table: Any) -> Any:
    """Merge the rows of a bucket into one."""
    rows = zip(table.column(BUCKET), table.column(PART), strict=True)
    return _table(work.merge((bucket.as_py(), part.as_buffer()) for bucket, part in rows))


def _pack_block(model: bytes, column: str, table: Any) -> Any:
    """Encode a block for the process that writes."""
    arrow = pyarrow()
    return arrow.table({PART: arrow.array(encoded_parts(model, table.column(column)), arrow.large_binary())})


def _table(rows: list[Row]) -> Any:
    arrow = pyarrow()
    buckets = arrow.array([bucket for bucket, _ in rows], arrow.int32())
    return arrow.table({BUCKET: buckets, PART: arrow.array([part for _, part in rows], arrow.large_binary())})
