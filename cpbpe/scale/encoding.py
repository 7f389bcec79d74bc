"""Encoding the batches of a dataset, with a tokenizer that each worker loads once."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cpbpe import arrow as columns
from cpbpe.arrow import Column, pyarrow
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Encoding:
    """Adds a column of ids, and perhaps one of spans. It is sent to every worker."""

    column: str
    """The name of the column with the texts."""
    output: str
    """The name of the new column."""
    spans: str | None
    """The name of the column of spans, if there shall be one."""
    signed: bool
    """Whether ids are int32, and spans lists, for engines without unsigned numbers and pairs."""
    model: bytes
    """The tokenizer, with the options that are bound to it."""

    def new_columns(self, texts: Column) -> dict[str, Column]:
        """The new columns, from that of the texts."""
        tokenizer = loaded(self.model)
        if self.spans is None:
            made = {self.output: columns.encode(tokenizer, texts, threads=1)}
        else:
            ids, spans = _fields(columns.encode(tokenizer, texts, threads=1, spans=True))
            made = {self.output: ids, self.spans: spans}
        if not self.signed:
            return made
        arrow = pyarrow()
        plain = [arrow.list_(arrow.int32()), arrow.list_(arrow.list_(arrow.int32()))]
        return {name: column.cast(kind) for (name, column), kind in zip(made.items(), plain, strict=False)}

    def add(self, table: Any) -> Any:
        """A table with the new columns."""
        for name, column in self.new_columns(table.column(self.column)).items():
            table = table.append_column(name, column)
        return table


def encoding(
    tokenizer: Tokenizer, column: Any, output: Any, spans: Any, signed: bool, options: EncodeOptions
) -> Encoding:
    """How to encode, checked before any work starts."""
    model = model_of(tokenizer, "encode", options)
    names = {"column": column, "output": output} | ({} if spans is None else {"spans": spans})
    for name, value in names.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be the name of a column, not {value!r}")
    for name, other in (("column", "output"), ("column", "spans"), ("output", "spans")):
        if name in names and other in names and names[name] == names[other]:
            raise ValueError(
                f"{name} and {other} are both {names[name]!r}; {other} needs a column of its own"
            )
    return Encoding(column, output, spans, signed, model)


def model_of(tokenizer: Tokenizer, call: str, options: EncodeOptions) -> bytes:
    """A tokenizer with its options as workers get it, checked; `call` is what it was given to."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"{call}() takes a Tokenizer after the dataset, not {type(tokenizer).__name__}; cpbpe.load(path) "
            "gives one"
        )
    bound = tokenizer.using(**options)
    if bound.bound_options.get("alpha"):
        raise ValueError(
            "alpha: sampling depends on the numbers of the texts, and a dataset on many machines has none; "
            "leave it out"
        )
    columns.encode(bound, pyarrow().array([""]))  # whatever is wrong with the options
    return pickle.dumps(bound)


@lru_cache(maxsize=4)
def loaded(model: bytes) -> Tokenizer:
    """The tokenizer. A process that does one batch after the other makes it once."""
    tokenizer: Tokenizer = pickle.loads(model)
    return tokenizer


def _fields(made: Column) -> tuple[Column, Column]:
    """The ids and the spans of a column of both; null where it is."""
    arrow = pyarrow()
    if isinstance(made, arrow.ChunkedArray):
        pairs = [_fields(chunk) for chunk in made.chunks]
        kinds = [made.type.field(name).type for name in ("ids", "spans")]
        ids, spans = (
            arrow.chunked_array([pair[index] for pair in pairs], type=kind)
            for index, kind in enumerate(kinds)
        )
        return ids, spans
    # (Flattening a struct makes its nulls those of the fields.)
    ids, spans = made.flatten()
    return ids, spans
