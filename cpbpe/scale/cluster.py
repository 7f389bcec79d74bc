"""The calls of `cpbpe.scale.ray` and `cpbpe.scale.spark`, on top of the few things that differ there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from cpbpe.packing.pack import PackOptions, PackReport
from cpbpe.scale.counting import Counting, counting
from cpbpe.scale.encoding import OPTIONS, Dataset, Encoding, checked_order, encoding, packed, packing
from cpbpe.tokenizer.options import EncodeOptions, described
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.byte_options import AnyOptions
from cpbpe.training.result import TrainingResult
from cpbpe.training.train import train
from cpbpe.training.word_counts import WordCounts, warn

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Cluster(ABC):
    """An engine for datasets on many machines. What is private here is what Ray and Spark do differently."""

    _kind: ClassVar[str]
    """What a dataset of this engine is called, such as "a dataset of Ray"."""
    _way_out: ClassVar[str]
    """How to make one."""
    _signed: ClassVar[bool]
    """Whether ids become signed numbers, because the engine has no others."""

    @abstractmethod
    def _columns(self, dataset: Any, column: str, call: str) -> list[str] | None:
        """The names of a dataset's columns, or None if it is not a dataset of this engine.

        A column with the name `column` is checked to hold texts. `call`: the function to name in errors.
        """

    @abstractmethod
    def _counted(self, dataset: Any, work: Counting) -> Iterable[bytes]:
        """Count the column on the cluster: the second halves of rows (see `cpbpe.scale.counting`)."""

    @abstractmethod
    def _encoded(self, dataset: Any, work: Encoding) -> Any:
        """The dataset with the new columns."""

    @abstractmethod
    def _packed(self, dataset: Any, column: str, order: list[str], model: bytes) -> Iterable[Any]:
        """What `encoded_parts` makes of the column, in order, with the pickled tokenizer `model`."""

    def _check(self, dataset: Any, call: str, column: str, **outputs: str | None) -> list[str]:
        """The names of a dataset's columns; an error if the column is missing, or an output is there already.

        `outputs`: the columns that are to be added, by the option that names each.
        """
        columns = self._columns(dataset, column, call)
        if columns is None:
            raise TypeError(
                f"{call}() takes {self._kind} first, not {type(dataset).__name__}; {self._way_out}"
            )
        if column not in columns:
            raise ValueError(f"the dataset has no column {column!r}; it has {', '.join(columns) or 'none'}")
        for option, name in outputs.items():
            if name in columns:
                raise ValueError(f"the dataset has a column {name!r} already; give another name as {option}")
        return columns

    def count(
        self,
        dataset: Any,
        column: str = "text",
        *,
        preset: str | AnyOptions = "llama2",
        memory_limit: int | str | None = None,
        min_count: int = 1,
        **options: Any,
    ) -> WordCounts:
        """Count the words of a column: the same counts as `WordCounts.build` of all its texts on one machine.

        `preset` and the other options are those of `cpbpe.train`, of which only those about words matter
        here. `memory_limit` is about how much memory a worker may take for the counts of a block or
        partition, as in `cpbpe.train`. Words that occur less than `min_count` times are left out at the end,
        and a warning says how many.
        """
        work = counting(column, preset, memory_limit, min_count, options)
        self._check(dataset, "count", column)
        counts = work.result(self._counted(dataset, work))
        warn(counts.reading.warnings)
        return counts

    def train(
        self,
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
        how: Any = {"preset": preset, **options}
        counts = self.count(dataset, column, memory_limit=memory_limit, min_count=min_count, **how)
        return train(counts, threads=threads, progress=progress, **how)

    def encode(
        self,
        dataset: Any,
        tokenizer: Tokenizer,
        column: str = "text",
        *,
        output: str = "ids",
        spans: str | None = None,
        **options: Unpack[EncodeOptions],
    ) -> Any:
        """The dataset with a column of lists: the ids of its texts, null where there is no text.

        With `spans`, the name of another column, that has the begin and end of each id in its text: in
        characters for strings, in bytes for binary.

        Each process of a worker loads the tokenizer once. The options are those of `Tokenizer.encode_arrays`,
        except those of sampling. As always with Ray and Spark, nothing is done before the result is used.
        """
        work = encoding(tokenizer, column, output, spans, self._signed, options)
        self._check(dataset, "encode", column, output=output, spans=spans)
        return self._encoded(dataset, work)

    @described(OPTIONS)
    def pack(
        self,
        dataset: Any,
        tokenizer: Tokenizer,
        out: Any,
        column: str = "text",
        *,
        order: str | list[str] | None = None,
        **options: Unpack[PackOptions],
    ) -> PackReport:
        """Encode a column, and write the files that `cpbpe.pack` writes of its texts on one machine.

        Workers encode; this process writes, into a folder that it can reach. `order` is a column by which the
        rows are sorted first, or several; its values must all be different. Without it, the order is that in
        which the dataset gives its blocks or partitions, which in Spark is not always that of the files it
        was read from. A run that was interrupted is continued by the same call: texts are encoded again, and
        only what is missing is written. After a complete run nothing is read, so another dataset goes
        unnoticed.
        """
        model = packing(tokenizer, options)
        names = checked_order(order, self._check(dataset, "pack", column))
        source = Dataset(lambda: self._packed(dataset, column, names, model), self._kind)
        return packed(source, tokenizer, out, names, options)
