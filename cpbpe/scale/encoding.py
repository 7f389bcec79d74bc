"""Encoding the batches of a dataset, with a tokenizer that each worker loads once; and packing them.

To pack, workers encode parts of a dataset, and the process that calls writes the shards. A worker returns the
ids of the documents of a part, with what the manifest of a run records about them. The parts come in the
order of the dataset, so every document has the same number as on one machine, and the shards are the same
files.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbpe import arrow as columns
from cpbpe.arrow import Column, chunks_of, pyarrow, texts_of
from cpbpe.errors import CorpusError
from cpbpe.packing.pack import PACK, PackOptions, PackReport, pack_source
from cpbpe.packing.read import Batch, Encoded, Read, Source
from cpbpe.tokenizer.options import ENCODE, EncodeOptions, check_names
from cpbpe.tokenizer.tokenizer import Tokenizer

OPTIONS = {name: option for name, option in {**PACK, **ENCODE}.items() if name != "threads"}
"""The options of packing here, without `threads`: a cluster has its own number of tasks."""


@dataclass(frozen=True)
class Encoding:
    """Adds a column of ids, and perhaps one of spans. It is sent to every worker."""

    column: str
    """The name of the column with the texts."""
    output: str
    """The name of the new column."""
    spans: str | None
    """The name of the column of spans; None for no such column."""
    signed: bool
    """Whether ids are int32, and spans lists, for engines without unsigned numbers and pairs."""
    model: bytes
    """The tokenizer, with the options that are bound to it."""

    def add(self, table: Any) -> Any:
        """A table with the new columns."""
        texts, spans = table.column(self.column), self.spans is not None
        made = columns.encode(loaded(self.model), texts, threads=1, spans=spans)
        # (Flattening a struct into its fields passes its nulls on to them.)
        fields = made.flatten() if spans else [made]
        arrow = pyarrow()
        plain = (arrow.list_(arrow.int32()), arrow.list_(arrow.list_(arrow.int32())))
        for name, column, kind in zip((self.output, self.spans), fields, plain, strict=False):
            table = table.append_column(name, column.cast(kind) if self.signed else column)
        return table


def encoding(
    tokenizer: Tokenizer, column: Any, output: Any, spans: Any, signed: bool, options: EncodeOptions
) -> Encoding:
    """An `Encoding` of these arguments, which are checked before any work starts."""
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
    """A tokenizer with options, checked and pickled for workers. `call`: the function to name in errors."""
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
    columns.encode(bound, pyarrow().array([""]))  # raises errors about the options
    return pickle.dumps(bound)


@lru_cache(maxsize=4)
def loaded(model: bytes) -> Tokenizer:
    """The tokenizer. A process that encodes one batch after another makes it only once."""
    tokenizer: Tokenizer = pickle.loads(model)
    return tokenizer


# --- Packing -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The documents of consecutive rows of a dataset. Empty texts and nulls are not documents."""

    rows: int
    """How many rows there are."""
    absent: NDArray[np.int64]
    """Which of them have no text."""
    documents: NDArray[np.int64]
    """Which of them are documents."""
    sizes: NDArray[np.int64]
    """How many bytes each document has."""
    lengths: NDArray[np.int64]
    """How many ids each document has."""
    ids: NDArray[np.unsignedinteger]
    """The ids of all documents."""

    def crc_before(self, document: int) -> int | None:
        """The CRC of the ids of the document before this one; None for the first."""
        if not document:
            return None
        end = int(self.lengths[:document].sum())
        begin = end - int(self.lengths[document - 1])
        return zlib.crc32(self.ids[begin:end].astype("<u4").tobytes())

    def after(self, row: int) -> Part:
        """The part from this row on."""
        first = int(np.searchsorted(self.documents, row))
        taken = int(self.lengths[:first].sum())
        return Part(
            self.rows - row,
            self.absent[self.absent >= row] - row,
            self.documents[first:] - row,
            self.sizes[first:],
            self.lengths[first:],
            self.ids[taken:],
        )


def encoded_parts(model: bytes, column: Column) -> list[bytes]:
    """The texts of a column as parts of a dataset, one for each array of the column."""
    parts = (_part(loaded(model), chunk) for chunk in chunks_of(column))
    return [pickle.dumps(part, protocol=pickle.HIGHEST_PROTOCOL) for part in parts]


def _part(tokenizer: Tokenizer, chunk: Any) -> Part:
    texts = texts_of(chunk, "pack")
    sizes = (texts.ends - texts.begins).astype(np.int64)
    present = np.arange(texts.rows) if texts.present is None else np.flatnonzero(texts.present)
    absent = np.zeros(0, np.int64) if texts.present is None else np.flatnonzero(~texts.present)
    made = columns.encode(tokenizer, chunk, threads=1)
    values = np.asarray(made.flatten())
    lengths = np.diff(np.asarray(made.offsets))[present]
    has_text = sizes > 0
    # An empty text may have ids, because of add_bos, but is left out all the same.
    ids = values if has_text.all() else values[np.repeat(has_text, lengths)]
    narrow = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    return Part(
        texts.rows,
        absent,
        present[has_text],
        sizes[has_text],
        lengths[has_text].astype(np.int64),
        ids.astype(narrow),
    )


class Dataset(Source):
    """A dataset as a source of documents: its parts, in order."""

    def __init__(self, parts: Callable[[], Iterable[Any]], kind: str):
        """`parts` begins the work of the cluster. `kind`: what the dataset is called in the manifest."""
        self._parts = parts
        self.facts = [{"path": f"({kind})"}]

    def check_same(self, before: Read) -> None:
        """Do nothing: the cluster would do all its work again."""

    def batches(self, read: Read, as_lines: bool = False) -> Iterator[Batch]:
        """Yield a batch for each part, without what an earlier run has read."""
        missing, crc = read.record, None
        record, last_crc = read.record, read.last_crc
        for data in self._parts():
            part: Part = pickle.loads(data)
            if missing:
                seen = min(missing, part.rows)
                known = part.crc_before(int(np.searchsorted(part.documents, seen)))
                crc, missing = crc if known is None else known, missing - seen
                part = part.after(seen)
                if not missing and read.number and crc != read.last_crc:
                    raise CorpusError(
                        "the texts are not those of the run that was interrupted, or their order is another; "
                        "give the same dataset with an order, or begin again in another folder"
                    )
            if part.rows:
                record += part.rows
                own = part.crc_before(len(part.documents))
                last_crc = last_crc if own is None else own
                yield Batch(
                    encoded=Encoded(part.ids, np.cumsum(np.append(0, part.lengths))),
                    places=[(0, part.documents + (record - part.rows + 1))],
                    text_bytes=int(part.sizes.sum()),
                    empty=part.rows - len(part.documents) - len(part.absent),
                    absent=len(part.absent),
                    record=record,
                    last_crc=last_crc,
                    done=record,
                )
        if missing:
            raise CorpusError(
                f"the dataset ends {missing:,} rows before the place where the run was interrupted; give "
                "the same one, or begin again in another folder"
            )
        yield Batch(record=record, last_crc=last_crc)


def packed(
    dataset: Dataset, tokenizer: Tokenizer, out: Any, order: list[str], options: PackOptions
) -> PackReport:
    """Write what workers encode. `order`: the columns that the dataset is sorted by."""
    reading = {"format": None, "field": "text", "column": None, "whole": False, "order": order}
    return pack_source(tokenizer, lambda hidden: dataset, out, reading, {**options, "threads": 1})


def packing(tokenizer: Tokenizer, options: PackOptions) -> bytes:
    """The pickled tokenizer of workers that pack; its options are checked before any work starts."""
    check_names(options, "pack", OPTIONS)
    encoding: Any = {name: value for name, value in options.items() if name in ENCODE}
    return model_of(tokenizer, "pack", encoding)


def checked_order(order: Any, columns: list[str]) -> list[str]:
    """The names of the columns by which to sort."""
    names = [order] if isinstance(order, str) else [] if order is None else order
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"order must be the name of a column, or a list of names, not {order!r}")
    for name in names:
        if name not in columns:
            raise ValueError(f"order: the dataset has no column {name!r}; it has {', '.join(columns)}")
    return list(names)
