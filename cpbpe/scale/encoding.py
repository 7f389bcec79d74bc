"""Encoding the batches of a dataset, with a tokenizer that each worker loads once."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cpbpe import arrow as columns
from cpbpe.arrow.texts import Column, pyarrow
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Encoding:
    """Adds a column of ids. It is sent to every worker."""

    column: str
    """The name of the column with the texts."""
    output: str
    """The name of the new column."""
    signed: bool
    """Whether ids are int32, for engines without unsigned numbers."""
    model: bytes
    """The tokenizer, with the options that are bound to it."""

    def ids(self, texts: Column) -> Column:
        """The new column, from that of the texts."""
        ids = columns.encode(_loaded(self.model), texts, threads=1)
        if not self.signed:
            return ids
        arrow = pyarrow()
        return ids.cast(arrow.list_(arrow.int32()))

    def add(self, table: Any) -> Any:
        """A table with the new column."""
        return table.append_column(self.output, self.ids(table.column(self.column)))


def encoding(
    tokenizer: Tokenizer, column: Any, output: Any, signed: bool, options: EncodeOptions
) -> Encoding:
    """How to encode, checked before any work starts."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"encode() takes a Tokenizer after the dataset, not {type(tokenizer).__name__}; cpbpe.load(path) "
            "gives one"
        )
    for name, value in (("column", column), ("output", output)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be the name of a column, not {value!r}")
    if column == output:
        raise ValueError(f"column and output are both {column!r}; the ids need a column of their own")
    bound = tokenizer.using(**options)
    if bound.bound_options.get("alpha"):
        raise ValueError(
            "alpha: sampling depends on the numbers of the texts, and a dataset on many machines has none; "
            "leave it out"
        )
    columns.encode(bound, pyarrow().array([""]))  # whatever is wrong with the options
    return Encoding(column, output, signed, pickle.dumps(bound))


@lru_cache(maxsize=4)
def _loaded(model: bytes) -> Tokenizer:
    """The tokenizer. A process that does one batch after the other makes it once."""
    tokenizer: Tokenizer = pickle.loads(model)
    return tokenizer
