"""Counting, training, encoding and packing of Ray datasets.

    with importing:
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
from typing import TYPE_CHECKING, Any

from cpbpe.arrow import pyarrow, texts_of
from cpbpe.lazy import importing
from cpbpe.packing.pack import PackOptions, PackReport
from cpbpe.scale.counting import BUCKET, BUCKETS, LITTLE, PART, Counting, Row, checked_min_count, counting
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


def count(
    dataset: Any,
    column: str = "text",
    *,
    preset: str | AnyOptions = "llama2",
    memory_limit: int | str | None = None,
    min_count: int = 1,
    **options: Any,
) -> WordCounts:
    """Count the words of a column: the same counts as `WordCounts.build` of all its texts on one machine.

    `preset` and the other options are those of `cpbpe.train`, of which only those about words matter here.
    `memory_limit` is about how much memory a worker may take for the counts of a block, as in `cpbpe.train`.
    Words that occur less than `min_count` times are left out at the end, and a warning says how many.
    """
    least = checked_min_count(min_count)
    work = counting(column, preset, memory_limit, 1, options)
    _check(dataset, "count", column)
    # 1. Each block becomes rows, one for each bucket of words.
    rows = _on_blocks(dataset.select_columns([column]), Task(_count_block, work)).materialize()
    if rows.size_bytes() > LITTLE:
        # 2. The rows of a bucket are brought together in a block, and merged. (If there is little, merging in
        #    this process takes less time than these tasks would.)
        rows = rows.sort(BUCKET, boundaries=list(range(1, BUCKETS)))
        rows = _on_blocks(rows, Task(_merge_rows, work)).materialize()
    # 3. This process joins the buckets, which have no words in common.
    counts = work.result((row[PART] for row in rows.iter_rows()), least)
    warn(counts.reading.warnings)
    return counts


def train(
    dataset: Any,
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
    counts = count(dataset, column, preset=preset, memory_limit=memory_limit, min_count=min_count, **options)
    return train_on_counts(counts, preset=preset, threads=threads, progress=progress, **options)


def encode(
    dataset: Any,
    tokenizer: Tokenizer,
    column: str = "text",
    *,
    output: str = "ids",
    spans: str | None = None,
    **options: Unpack[EncodeOptions],
) -> Any:
    """The dataset with a column of lists of uint32: the ids of its texts, null where there is no text.

    With `spans`, the name of another column, that has the begin and end of each id in its text: in characters
    for strings, in bytes for binary.

    Each process of a worker loads the tokenizer once. The options are those of `Tokenizer.encode_arrays`,
    except those of sampling. As always in Ray, nothing is done before the result is used.
    """
    work = encoding(tokenizer, column, output, spans, False, options)
    _check(dataset, "encode", column, output, spans)
    return _on_blocks(dataset, Task(Encoding.add, work))


@described(OPTIONS)
def pack(
    dataset: Any,
    tokenizer: Tokenizer,
    out: Any,
    column: str = "text",
    *,
    order: str | list[str] | None = None,
    **options: Unpack[PackOptions],
) -> PackReport:
    """Encode a column, and write the ids to the files that `cpbpe.pack` writes of its texts on one machine.

    Workers encode; this process writes, into a folder that it can reach. `order` is a column by which the
    rows are sorted first, or several; its values must all be different. Without it, the order is that in
    which the dataset gives its blocks. A run that was interrupted is continued by the same call: blocks are
    encoded again, and only what is missing is written.
    """
    work = packing(tokenizer, options)
    _check(dataset, "pack", column)
    names = checked_order(order, list(dataset.schema().names))

    def parts() -> Iterator[Any]:
        ordered = dataset.sort(names) if names else dataset
        made = _on_blocks(ordered.select_columns([column]), Task(_pack_block, work, column))
        made.context.execution_options.preserve_order = True
        for table in made.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from (part.as_buffer() for part in table.column(PART))

    return packed(
        Dataset(parts, "a dataset of Ray"),
        tokenizer,
        out,
        names,
        options,
    )


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


def _pack_block(work: Packing, column: str, table: Any) -> Any:
    """Encode a block for the process that writes."""
    arrow = pyarrow()
    return arrow.table({PART: arrow.array(work.parts(table.column(column)), arrow.large_binary())})


def _table(rows: list[Row]) -> Any:
    arrow = pyarrow()
    buckets = arrow.array([bucket for bucket, _ in rows], arrow.int32())
    return arrow.table({BUCKET: buckets, PART: arrow.array([part for _, part in rows], arrow.large_binary())})


def _check(dataset: Any, name: str, column: str, *outputs: str | None) -> None:
    """Raise an error if this is not a dataset, or if it lacks the column."""
    try:
        with importing:
            from ray.data import Dataset as RayDataset
    except ImportError:
        raise ImportError("this needs Ray: pip install 'cpbpe[ray]'") from None
    if not isinstance(dataset, RayDataset):
        raise TypeError(
            f"{name}() takes a dataset of Ray first, not {type(dataset).__name__}; "
            "ray.data.from_arrow(table), ray.data.read_parquet(path) and others make one"
        )
    schema = dataset.schema()  # (Ray reads a row if it does not know the schema.)
    columns = [] if schema is None else list(schema.names)
    check_column(column, columns)
    arrow, kind = pyarrow(), schema.types[columns.index(column)]
    if isinstance(kind, arrow.DataType):
        texts_of(arrow.nulls(0, kind), name)
    check_new(outputs, columns)
