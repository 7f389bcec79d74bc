"""What a column is given as, and its texts as slices of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cpbpe.checks import table_way_out
from cpbpe.lazy import imported, numpy

if TYPE_CHECKING:
    from cpbpe.engine.protocol import AnyPlaces, Bytes, Places

Column = Any
"""An array or chunked array of pyarrow. (pyarrow has no types that mypy could read.)"""

_PART = 1 << 18
"""Special tokens are looked for in this many bytes at once. Only a part that has one is made objects."""


def pyarrow() -> Any:
    """The module, which is not one of our requirements."""
    try:
        return imported("pyarrow")
    except ImportError:
        raise ImportError("columns need pyarrow: pip install 'cpbpe[arrow]'") from None


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
        """Begins and ends of texts with about `_PART` bytes, which lie one after the other."""
        np = numpy()
        marks = np.maximum.accumulate(self.ends.astype(np.int64)) // _PART
        edges = [0, *(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(self.begins)]
        for first, last in pairwise(edges):
            yield self.begins[first:last], self.ends[first:last]

    def as_bytes(self, begins: AnyPlaces, ends: AnyPlaces) -> list[bytes]:
        """Some of the texts as objects, if they lie one after the other."""
        first = int(begins.min()) if len(begins) else 0
        data = self.data[first : int(ends.max())].tobytes() if len(ends) else b""
        pairs = zip((begins - first).tolist(), (ends - first).tolist(), strict=True)
        return [data[begin:end] for begin, end in pairs]

    def offsets(self, offsets: Places) -> Places:
        """Where each row begins, and the end, from where each text does."""
        if self.present is None:
            return offsets
        np = numpy()
        before = np.zeros(self.rows + 1, np.int64)
        np.cumsum(self.present, out=before[1:])
        row_offsets: Places = offsets[before]
        return row_offsets

    @property
    def validity(self) -> tuple[Any, int]:
        """Which rows have a text, as Arrow's buffer, and how many have none."""
        if self.present is None:
            return None, 0
        arrow, np = pyarrow(), numpy()
        bits = np.packbits(self.present, bitorder="little")
        return arrow.py_buffer(bits), self.rows - len(self.begins)


# --- What is given ----------------------------------------------------------------------------------


def as_arrow(column: Any, name: str) -> Column:
    """A column as an array or chunked array; `name` is the call that it was given to."""
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


def texts_of(chunk: Any, name: str) -> Texts:
    """The texts of an array."""
    arrow, np = pyarrow(), numpy()
    chunk = plain(chunk, name)
    types = arrow.types
    strings = types.is_string(chunk.type) or types.is_large_string(chunk.type)
    large = types.is_large_string(chunk.type) or types.is_large_binary(chunk.type)
    rows = len(chunk)
    _, places, values = chunk.buffers()
    kind = np.int64 if large else np.int32
    offsets = np.zeros(1, kind) if not rows else np.frombuffer(places, kind)[chunk.offset :][: rows + 1]
    data = np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    begins, ends = offsets[:-1], offsets[1:]
    present = None
    if chunk.null_count:
        # Where there is no text, the offsets may be those of any.
        present = chunk.is_valid().to_numpy(zero_copy_only=False)
        begins, ends = begins[present], ends[present]
    return Texts(data, begins, ends, present, rows, strings, large)


def plain(chunk: Any, name: str) -> Any:
    """An array of one of the four types whose texts lie in one piece of memory."""
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
