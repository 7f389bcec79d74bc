"""Counting, training and encoding of Ray datasets.

    import ray
    import cpbpe.scale.ray as scale

    texts = ray.data.read_parquet("s3://bucket/corpus")
    result = scale.train(texts, column="text", vocab_size=32_000)
    tokenized = scale.encode(texts, result.tokenizer, column="text", add_eos=True)

A block of a dataset is counted or encoded by one task at a time, as a table of Arrow. Ray does a task again
whose worker has died; what the first attempt has made is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpbpe.arrow.texts import texts_of
from cpbpe.lazy import imported
from cpbpe.scale.counting import (
    FAN_IN,
    PART,
    Counting,
    check_column,
    checked_min_count,
    counting,
    levels,
    row_type,
)
from cpbpe.scale.encoding import Encoding, encoding
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.presets import AnyOptions
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
    # 1. A row or a few for each block.
    rows = _on_blocks(dataset.select_columns([column]), _CountBlock(work)).materialize()
    # 2. A tree: workers merge rows until a few are left.
    for _ in levels(rows.count()):
        rows = rows.map_batches(_MergeRows(work), batch_format="pyarrow", batch_size=FAN_IN).materialize()
    # 3. The rest is merged here.
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
    **options: Unpack[EncodeOptions],
) -> Any:
    """The dataset with a column of lists of uint32: the ids of its texts, null where there is no text.

    A process of a worker loads the tokenizer once. The options are those of `Tokenizer.encode_arrays`, except
    those of sampling. As always in Ray, nothing is done before the result is used.
    """
    work = encoding(tokenizer, column, output, False, options)
    _check(dataset, "encode", column, output)
    return _on_blocks(dataset, _EncodeBlock(work))


def _on_blocks(dataset: Any, work: Any) -> Any:
    """What becomes of each block, as a table of Arrow.

    These are tasks, not actors: a task that is lost is done again by any process, and what costs time,
    loading a tokenizer, is kept by the process.
    """
    return dataset.map_batches(work, batch_format="pyarrow", batch_size=None, zero_copy_batch=True)


class _CountBlock:
    """From a block to a row."""

    def __init__(self, work: Counting):
        self._work = work

    def __call__(self, table: Any) -> Any:
        return _rows(self._work.count([table.column(self._work.column)]))


class _MergeRows:
    """From several rows to one."""

    def __init__(self, work: Counting):
        self._work = work

    def __call__(self, table: Any) -> Any:
        return _rows(self._work.merge(table.column(PART).to_pylist()))


class _EncodeBlock:
    """Encodes one block after the other."""

    def __init__(self, work: Encoding):
        self._work = work

    def __call__(self, table: Any) -> Any:
        return self._work.add(table)


def _rows(parts: list[bytes]) -> Any:
    return imported("pyarrow").table({PART: parts}, schema=row_type())


def _ray() -> Any:
    try:
        return imported("ray")
    except ImportError:
        raise ImportError("this needs Ray: pip install 'cpbpe[ray]'") from None


def _check(dataset: Any, name: str, column: str, output: str | None = None) -> None:
    """Raise an error if this is no dataset, or if it lacks the column."""
    _ray()
    if not isinstance(dataset, imported("ray.data").Dataset):
        raise TypeError(
            f"{name}() takes a dataset of Ray first, not {type(dataset).__name__}; "
            "ray.data.from_arrow(table), ray.data.read_parquet(path) and others make one"
        )
    schema = dataset.schema()  # (Ray reads a row if it does not know it.)
    columns = [] if schema is None else list(schema.names)
    check_column(column, columns)
    arrow, kind = imported("pyarrow"), schema.types[columns.index(column)]
    if isinstance(kind, arrow.DataType):
        texts_of(arrow.nulls(0, kind), name)
    if output in columns:
        raise ValueError(f"the dataset has a column {output!r} already; give another name as output")
