"""Packing: workers encode parts of a dataset, and the process that calls writes the shards.

A part comes back as the ids of its documents, with what the manifest of a run wants to know of them. The
parts come in the order of the dataset, so every document has the number that it has on one machine, and the
shards are the same files.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpbpe import arrow as columns
from cpbpe.arrow import Column, texts_of
from cpbpe.errors import CorpusError
from cpbpe.lazy import numpy
from cpbpe.packing.pack import PackReport, pack_source
from cpbpe.packing.read import Batch, Encoded, Read, Source
from cpbpe.scale.encoding import loaded, model_of
from cpbpe.scale.rows import chunks_of
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Part:
    """The documents of consecutive rows of a dataset. Empty texts and nulls are none."""

    rows: int
    """How many rows there are."""
    empty: NDArray[np.int64]
    """Which of them have an empty text."""
    absent: NDArray[np.int64]
    """Which of them have none."""
    documents: NDArray[np.int64]
    """Which of them are documents."""
    sizes: NDArray[np.int64]
    """How many bytes each document has."""
    lengths: NDArray[np.int64]
    """How many ids each document has."""
    ids: NDArray[np.unsignedinteger]
    """The ids of all documents."""

    def crc_before(self, document: int) -> int | None:
        """The CRC of the ids of the last document before one, if there is any."""
        if not document:
            return None
        end = int(self.lengths[:document].sum())
        begin = end - int(self.lengths[document - 1])
        return zlib.crc32(self.ids[begin:end].astype("<u4").tobytes())

    def after(self, row: int) -> Part:
        """What is left without the first rows."""
        first = int(numpy().searchsorted(self.documents, row))
        taken = int(self.lengths[:first].sum())
        return Part(
            self.rows - row,
            self.empty[self.empty >= row] - row,
            self.absent[self.absent >= row] - row,
            self.documents[first:] - row,
            self.sizes[first:],
            self.lengths[first:],
            self.ids[taken:],
        )


@dataclass(frozen=True)
class Packing:
    """Encodes columns for a run. It is sent to every worker."""

    model: bytes
    """The tokenizer, with the options that are bound to it."""

    def part(self, column: Column) -> bytes:
        """The part of a dataset that has these texts."""
        made = [self._part(chunk) for chunk in chunks_of(column)]
        return pickle.dumps(_joined(made), protocol=pickle.HIGHEST_PROTOCOL)

    def _part(self, chunk: Any) -> Part:
        np = numpy()
        tokenizer = loaded(self.model)
        texts = texts_of(chunk, "pack")
        sizes = (texts.ends - texts.begins).astype(np.int64)
        present = np.arange(texts.rows) if texts.present is None else np.flatnonzero(texts.present)
        absent = np.zeros(0, np.int64) if texts.present is None else np.flatnonzero(~texts.present)
        found = columns.encode(tokenizer, chunk, threads=1)
        values = np.asarray(found.flatten())
        lengths = np.diff(np.asarray(found.offsets))[present]
        has_text = sizes > 0
        # An empty text may have ids, of add_bos, and is left out all the same.
        ids = values if has_text.all() else values[np.repeat(has_text, lengths)]
        narrow = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
        return Part(
            texts.rows,
            present[~has_text],
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

    def batches(self, read: Read, as_lines: bool = False) -> Iterator[Batch]:
        """A batch for each part, without what an earlier run has read."""
        missing, crc = read.record, None
        record = read.record
        for data in self._parts():
            part: Part = pickle.loads(data)
            if missing:
                seen = min(missing, part.rows)
                known = part.crc_before(int(numpy().searchsorted(part.documents, seen)))
                crc, missing = crc if known is None else known, missing - seen
                part = part.after(seen)
                if not missing:
                    _check_last(crc, read.last_crc if read.number else None)
            if part.rows:
                record += part.rows
                yield _batch(part, record, read.last_crc)
        if missing:
            raise CorpusError(
                f"the dataset ends {missing:,} rows before the place where the run was interrupted; give "
                "the same one, or begin again in another folder"
            )
        yield Batch(Read(record=record, last_crc=read.last_crc))


def packed(
    dataset: Dataset, tokenizer: Tokenizer, out: Any, order: list[str], options: EncodeOptions, **how: Any
) -> PackReport:
    """Write what workers encode, sorted by some columns. `how`: all other options of packing."""
    reading = {"format": None, "field": "text", "column": None, "whole": False, "order": order}
    given: Any = {**options, **how, "threads": 1}
    return pack_source(tokenizer, lambda: dataset, out, reading, given)


def packing(tokenizer: Tokenizer, options: EncodeOptions) -> Packing:
    """How to encode, checked before any work starts."""
    return Packing(model_of(tokenizer, "pack", options))


def checked_order(order: Any, columns: list[str]) -> list[str]:
    """The names of the columns by which to sort."""
    names = [order] if isinstance(order, str) else [] if order is None else order
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"order must be the name of a column, or a list of names, not {order!r}")
    for name in names:
        if name not in columns:
            raise ValueError(f"order: the dataset has no column {name!r}; it has {', '.join(columns)}")
    return list(names)


def _batch(part: Part, record: int, last_crc: int) -> Batch:
    np = numpy()
    crc = part.crc_before(len(part.documents))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(part.lengths)))
    return Batch(
        Read(record=record, last_crc=last_crc if crc is None else crc),
        encoded=Encoded(part.ids, offsets),
        text_bytes=int(part.sizes.sum()),
        empty=len(part.empty),
        absent=len(part.absent),
        places=[(0, part.documents + (record - part.rows + 1))],
        done=record,
    )


def _check_last(found: int | None, expected: int | None) -> None:
    """Compare the ids of the last document that an earlier run has written with what they are now."""
    if expected is not None and found != expected:
        raise CorpusError(
            "the texts are not those of the run that was interrupted, or their order is another; give the "
            "same dataset with an order, or begin again in another folder"
        )


def _joined(parts: list[Part]) -> Part:
    np = numpy()
    if len(parts) == 1:
        return parts[0]
    none = np.zeros(0, np.int64)
    rows, shifted = 0, []
    for part in parts:
        shifted.append((part.empty + rows, part.absent + rows, part.documents + rows))
        rows += part.rows
    empty, absent, documents = (
        np.concatenate([none, *(columns[index] for columns in shifted)]) for index in range(3)
    )
    sizes = np.concatenate([none, *(part.sizes for part in parts)])
    lengths = np.concatenate([none, *(part.lengths for part in parts)])
    ids = np.concatenate([np.zeros(0, np.uint16), *(part.ids for part in parts)])
    return Part(rows, empty, absent, documents, sizes, lengths, ids)
