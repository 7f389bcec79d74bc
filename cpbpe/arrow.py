"""Arrow columns, encoded in place: no text becomes a Python object.

A column is an array of strings or bytes, from pyarrow or from any library that shares its memory in Arrow's
format: polars, pandas, datasets, DuckDB. The result is a column with a list of ids for each text, and null
where there is no text.

>>> import cpbpe, cpbpe.arrow, pyarrow
>>> tok = cpbpe.load("tokenizer.model")
>>> cpbpe.arrow.encode(tok, pyarrow.array(["Hi", None, "Hello world"])).to_pylist()
[[15359], None, [22557, 1526]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from cpbpe.checks import THREAD_ITEMS, Unit, checked_threads, checked_unit, cores, table_way_out
from cpbpe.engine import reseeded
from cpbpe.engine.protocol import Slices
from cpbpe.errors import missing
from cpbpe.lazy import importing
from cpbpe.text.utf8 import character_positions
from cpbpe.tokenizer.options import ENCODE, EncodeOptions, check_names
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cpbpe.engine.protocol import AnyPlaces, Bytes, Places

Column = Any
"""An array or chunked array of pyarrow. (pyarrow has no type annotations.)"""

_PART = 1 << 18
"""Special tokens are looked for in this many bytes at once. Only parts with one become Python objects."""
_MOST_IDS = (1 << 31) - 1
"""The most ids that lists with offsets of 32 bits can hold."""


def encode(
    tokenizer: Tokenizer,
    column: Any,
    *,
    threads: SupportsIndex | None = None,
    spans: bool = False,
    unit: Unit | None = None,
    **options: Unpack[EncodeOptions],
) -> Column:
    """The ids of the texts of a column: a column of lists of uint32, null where there is no text.

    `column` is an array or a chunked array of pyarrow, or a column that pyarrow makes one of, such as a
    Series of polars or pandas. It holds strings or bytes, of any type that Arrow has for these, or
    dictionaries of them. The result has as many chunks. Its lists have offsets of 32 bits for texts whose own
    have 32 bits, and of 64 bits for all others.

    With `spans`, a column of structs: `ids`, and `spans`, the begin and end of each id in its text, in
    characters for strings, in bytes for binary, or as `unit` ("char" or "byte") says.

    `threads` is how many work; by default all cores, if it is worth it. The other options are those of
    `Tokenizer.encode_arrays`. (With `alpha`, a text is sampled by `seed` plus its number among the texts that
    are not null.)

    >>> import cpbpe, cpbpe.arrow, pyarrow
    >>> tok = cpbpe.load("tokenizer.model")
    >>> texts = pyarrow.chunked_array([["Hi"], [None, "Hello world"]])
    >>> ids = cpbpe.arrow.encode(tok, texts, add_bos=True)
    >>> ids.type, ids.num_chunks, ids.to_pylist()
    (ListType(list<item: uint32>), 2, [[1, 15359], None, [1, 22557, 1526]])
    >>> cpbpe.arrow.encode(tok, texts, spans=True)[2].as_py()
    {'ids': [22557, 1526], 'spans': [[0, 5], [5, 11]]}
    """
    checked_unit(unit, "")
    work = _Work(tokenizer, options, "encode", threads)
    if not spans:
        return work.mapped(column, work.lists)
    return work.mapped(column, lambda texts: work.structs(texts, unit))


def count(
    tokenizer: Tokenizer,
    column: Any,
    *,
    threads: SupportsIndex | None = None,
    **options: Unpack[EncodeOptions],
) -> Column:
    """How many ids each text of a column has: a column of int64, null where there is no text.

    `column`, `threads` and the options are those of `encode`.

    >>> import cpbpe, cpbpe.arrow, pyarrow
    >>> tok = cpbpe.load("tokenizer.model")
    >>> cpbpe.arrow.count(tok, pyarrow.array(["Hi", None, "Hello world"])).to_pylist()
    [1, None, 2]
    """
    work = _Work(tokenizer, options, "count", threads)
    return work.mapped(column, work.numbers)


# --- Columns of texts --------------------------------------------------------------------------------


def pyarrow() -> Any:
    """The module `pyarrow`, which cpbpe does not require."""
    try:
        with importing:
            import pyarrow
        return pyarrow
    except ImportError:
        raise missing("columns need pyarrow", "pyarrow") from None


@dataclass(frozen=True)
class Texts:
    """The texts of one chunk, without nulls."""

    data: Bytes
    begins: AnyPlaces
    ends: AnyPlaces
    present: Any
    """Which of the rows have a text; None if all have."""
    rows: int
    """How many rows there are."""
    strings: bool
    """Whether they are strings, and not bytes."""
    large: bool
    """Whether their offsets have 64 bits."""

    def parts(self) -> Iterator[tuple[AnyPlaces, AnyPlaces]]:
        """Yield the begins and ends of successive texts, about `_PART` bytes at a time."""
        marks = np.maximum.accumulate(self.ends.astype(np.int64)) // _PART
        edges = [0, *(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(self.begins)]
        for first, last in pairwise(edges):
            yield self.begins[first:last], self.ends[first:last]

    def as_bytes(self, begins: AnyPlaces, ends: AnyPlaces) -> list[bytes]:
        """Some of the texts as Python objects. They must be successive."""
        first = int(begins.min()) if len(begins) else 0
        data = self.data[first : int(ends.max())].tobytes() if len(ends) else b""
        pairs = zip((begins - first).tolist(), (ends - first).tolist(), strict=True)
        return [data[begin:end] for begin, end in pairs]

    def offsets(self, offsets: Places) -> Places:
        """Where each row begins, and the end; `offsets` says where each text does."""
        if self.present is None:
            return offsets
        before = np.zeros(self.rows + 1, np.int64)
        np.cumsum(self.present, out=before[1:])
        row_offsets: Places = offsets[before]
        return row_offsets


def as_arrow(column: Any, name: str) -> Column:
    """A column as an array or chunked array; `name` is the name of the call, for messages."""
    arrow = pyarrow()
    if isinstance(column, (arrow.Array, arrow.ChunkedArray)):
        return column
    library = type(column).__module__.partition(".")[0]
    way_out = table_way_out(column)
    if way_out is None and library == "polars" and hasattr(column, "to_arrow"):
        return column.to_arrow()
    if way_out is None and library == "pandas" and hasattr(column, "dtype"):
        return arrow.array(column, from_pandas=True)
    if way_out is None and hasattr(column, "__arrow_c_array__"):
        return arrow.array(column)
    if way_out is None and hasattr(column, "__arrow_c_stream__"):
        return arrow.chunked_array(column)
    if library == "datasets":
        way_out = "give it a column in Arrow's form, dataset.with_format('arrow')[:]['text']"
    elif isinstance(column, (list, tuple)):
        way_out = "give it pyarrow.array(texts), or use the method of Tokenizer for many texts"
    raise TypeError(
        f"{name}() takes a column, such as an array of pyarrow or a Series of polars or pandas, "
        f"not {type(column).__name__}; {way_out or 'pyarrow.array makes one of texts'}"
    )


def chunks_of(column: Column) -> list[Column]:
    """The arrays of a column."""
    return list(column.chunks) if isinstance(column, pyarrow().ChunkedArray) else [column]


def texts_of(chunk: Any, name: str) -> Texts:
    """The texts of an array."""
    arrow = pyarrow()
    chunk = plain(chunk, name)
    types = arrow.types
    strings = types.is_string(chunk.type) or types.is_large_string(chunk.type)
    large = types.is_large_string(chunk.type) or types.is_large_binary(chunk.type)
    rows = len(chunk)
    _, places, values = chunk.buffers()
    kind: Any = np.int64 if large else np.int32
    offsets = np.zeros(1, kind) if not rows else np.frombuffer(places, kind)[chunk.offset :][: rows + 1]
    data = np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    begins, ends = offsets[:-1], offsets[1:]
    present = None
    if chunk.null_count:
        # The offsets of a null may be anything.
        present = chunk.is_valid().to_numpy(zero_copy_only=False)
        begins, ends = begins[present], ends[present]
    return Texts(data, begins, ends, present, rows, strings, large)


def plain(chunk: Any, name: str) -> Any:
    """The array as one of the four types whose texts are in one buffer."""
    arrow = pyarrow()
    types = arrow.types
    if isinstance(chunk, arrow.ExtensionArray):
        chunk = chunk.storage
    if isinstance(chunk, arrow.DictionaryArray):
        chunk = chunk.dictionary_decode()
    kind = chunk.type
    if any(
        test(kind)
        for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    ):
        return chunk
    for view, target in (("string_view", arrow.large_string()), ("binary_view", arrow.large_binary())):
        if getattr(types, f"is_{view}")(kind):
            return chunk.cast(target)
    if types.is_fixed_size_binary(kind):
        return chunk.cast(arrow.binary())
    if types.is_null(kind):
        return chunk.cast(arrow.string())
    hint = (
        "; its values are texts, column.flatten()" if types.is_list(kind) or types.is_large_list(kind) else ""
    )
    raise TypeError(f"{name}() takes a column of strings or bytes, not of {kind}{hint}")


# --- Ids, spans and counts ---------------------------------------------------------------------------


class _Work:
    """Encodes, aligns or counts the texts of a column, chunk by chunk."""

    def __init__(
        self, tokenizer: Tokenizer, options: EncodeOptions, name: str, threads: SupportsIndex | None
    ):
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(
                f"{name}() takes a Tokenizer first, not {type(tokenizer).__name__}; "
                "cpbpe.load(path) gives one"
            )
        check_names(options, name, ENCODE)
        self._plan: EncodePlan = tokenizer.plans.encode(options, "encode_arrays")
        self._name = name
        self._threads = None if threads is None else checked_threads(threads)
        self._before = 0  # texts in the chunks before this one

    def mapped(self, column: Any, work: Callable[[Texts], Column]) -> Column:
        """The column that consists of the results of `work` for each chunk."""
        arrow = pyarrow()
        given = as_arrow(column, self._name)
        if isinstance(given, arrow.ChunkedArray):
            empty = work(texts_of(arrow.array([], given.type), self._name))
            made = [self._of_chunk(chunk, work) for chunk in given.chunks]
            return arrow.chunked_array(made, type=empty.type)
        return self._of_chunk(given, work)

    def _of_chunk(self, chunk: Any, work: Callable[[Texts], Column]) -> Column:
        arrow = pyarrow()
        if isinstance(chunk, arrow.DictionaryArray) and self._plan.dropout is None:
            # Encode each text of the dictionary once. If one is refused, it may be one that no row has.
            with suppress(ValueError):
                return work(texts_of(chunk.dictionary, self._name)).take(chunk.indices)
        texts = texts_of(chunk, self._name)
        made = work(texts)
        self._before += len(texts.begins)
        return made

    # --- Results --------------------------------------------------------------------------------------

    def lists(self, texts: Texts) -> Column:
        """The ids of a chunk."""
        arrow = pyarrow()
        rows = self._encoded(texts)
        return _list_array(texts, texts.offsets(rows.offsets), arrow.array(rows.ids))

    def structs(self, texts: Texts, unit: Unit | None) -> Column:
        """The ids and spans of a chunk."""
        arrow = pyarrow()
        chars = texts.strings if unit is None else unit == "char"
        rows = self._aligned(texts, chars)
        assert rows.spans is not None
        offsets = texts.offsets(rows.offsets)
        pairs = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.spans.reshape(-1)), 2)
        fields = [_list_array(texts, offsets, values) for values in (arrow.array(rows.ids), pairs)]
        kind = arrow.struct([("ids", fields[0].type), ("spans", fields[1].type)])
        return _array(texts, kind, children=fields)

    def numbers(self, texts: Texts) -> Column:
        """How many ids each text of a chunk has."""
        arrow = pyarrow()
        counts = self._counted(texts)
        if texts.present is not None:
            full = np.zeros(texts.rows, np.int64)
            full[texts.present] = counts
            counts = full
        return _array(texts, arrow.int64(), counts)

    # --- Encoding -------------------------------------------------------------------------------------

    def _encoded(self, texts: Texts) -> Ragged:
        plan = self._plan
        if plan.dropout is not None:
            rows = self._aligned(texts, chars=False)
            return Ragged(rows.ids, rows.offsets)
        made = [
            Ragged(*encoder.encode_arrays(given, threads, plan.ends))
            for encoder, given, threads, _, _ in self._parts(texts)
        ]
        return _joined(made)

    def _counted(self, texts: Texts) -> Any:
        plan = self._plan
        if plan.dropout is not None:
            return np.diff(self._encoded(texts).offsets)
        counts = [
            np.asarray(encoder.count_batch(given, threads), np.int64)
            for encoder, given, threads, _, _ in self._parts(texts)
        ]
        return np.concatenate([np.zeros(0, np.int64), *counts]) + plan.around

    def _aligned(self, texts: Texts, chars: bool) -> Ragged:
        """The ids with their spans, sampled if the plan has dropout."""
        plan = self._plan
        done = self._before
        made = []
        for encoder, given, threads, begins, ends in self._parts(texts):
            ids, offsets, spans = encoder.align_arrays(given, threads, chars, reseeded(plan.dropout, done))
            done += len(begins)
            lengths: Any = None
            if plan.back:
                lengths = ends.astype(np.int64) - begins
                if chars:
                    lengths = [character_positions(text)[-1] for text in texts.as_bytes(begins, ends)]
            made.append(plan.finish_ragged(Ragged(ids, offsets, spans), lengths))
        return _joined(made, spans=True)

    def _parts(self, texts: Texts) -> Iterator[tuple[Any, Any, int, AnyPlaces, AnyPlaces]]:
        """Yield an encoder, some texts, the number of threads, and where the texts begin and end.

        All texts come at once, or in parts if special tokens have to be found. Parts without special tokens
        are encoded in place.
        """
        encoder = self._plan.encoder
        special = encoder if isinstance(encoder, SpecialEncoder) else None
        for begins, ends in [(texts.begins, texts.ends)] if special is None else texts.parts():
            threads = self._threads
            if threads is None:
                size = int(ends.sum(dtype="int64") - begins.sum(dtype="int64"))
                threads = max(1, min(size // THREAD_ITEMS, cores()))
            if special is not None and _has_special(special, texts, begins, ends):
                given: list[Any] = texts.as_bytes(begins, ends)
                if texts.strings:  # errors name places in characters
                    with suppress(UnicodeDecodeError):
                        given = [text.decode() for text in given]
                yield special, given, threads, begins, ends
            else:
                engine = encoder.first if isinstance(encoder, SpecialEncoder) else encoder
                yield engine, Slices(texts.data, begins, ends), threads, begins, ends


def _has_special(encoder: SpecialEncoder, texts: Texts, begins: AnyPlaces, ends: AnyPlaces) -> bool:
    """Whether successive texts may hold a special token.

    A match may consist of the end of one text and the beginning of the next. So it only means that the texts
    have to be searched one by one.
    """
    if encoder.finder is None or not len(begins):
        return False
    if encoder.finder.odd is not None:
        return True
    try:
        return len(encoder.split(texts.data[begins.min() : ends.max()].tobytes())) > 1
    except ValueError:  # a token that is not allowed
        return True


def _list_array(texts: Texts, offsets: Places, values: Column) -> Column:
    """Lists of values, with offsets as wide as those of the texts."""
    arrow = pyarrow()
    if texts.large:
        kind = arrow.large_list(values.type)
    elif offsets[-1] > _MOST_IDS:
        raise ValueError(
            f"a chunk of this column has {offsets[-1]:,} ids, and a list with offsets of 32 bits holds "
            f"{_MOST_IDS:,}; give it column.cast(pyarrow.large_string()), or smaller chunks"
        )
    else:
        kind, offsets = arrow.list_(values.type), offsets.astype(np.int32)
    return _array(texts, kind, offsets, children=[values])


def _array(texts: Texts, kind: Any, *buffers: Any, **children: Any) -> Column:
    """An array with a row for each text, and null where there is none."""
    arrow = pyarrow()
    validity, nulls = None, 0
    if texts.present is not None:
        validity = arrow.py_buffer(np.packbits(texts.present, bitorder="little"))
        nulls = texts.rows - len(texts.begins)
    made = [validity, *map(arrow.py_buffer, buffers)]
    return arrow.Array.from_buffers(kind, texts.rows, made, nulls, **children)


def _joined(parts: list[Ragged], spans: bool = False) -> Ragged:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([np.zeros(0, np.uint32), *(part.ids for part in parts)])
    lengths = [np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)]
    offsets = np.cumsum(np.concatenate(lengths))
    if not spans:
        return Ragged(ids, offsets)
    return Ragged(ids, offsets, np.concatenate([np.zeros((0, 2), np.int64), *(part.spans for part in parts)]))
