"""Checks of arguments from users: texts, ids, numbers of threads and other limits, and amounts.

Messages name the method, what it was given, and what to do instead.
"""

from __future__ import annotations

import os
import re
import sys
from collections import UserString
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from io import IOBase
from operator import index
from typing import Any, Literal, SupportsIndex

from cpbpe.lazy import importing

Text = str | bytes
Ids = Iterable[SupportsIndex] | SupportsIndex
"""What users pass as ids."""
Unit = Literal["char", "byte"]
"""What spans of a text count."""

THREAD_ITEMS = 1 << 16
"""This many characters or ids keep a thread busy for longer than starting it takes."""

_TEXTS = (str, bytes, bytearray, memoryview)


# --- Text -----------------------------------------------------------------------------------------


def utf8(text: object, method: str) -> bytes:
    """Text as bytes. A lone surrogate in a str is an error, as it is to `str.encode`."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"{method}() takes str or bytes, not {type(text).__name__}{_hint(text, method)}")


def checked_text(text: object, method: str) -> Text:
    """A text as an engine takes it."""
    return text if isinstance(text, str) else utf8(text, method)


_BATCHES = {
    "encode": "encode_batch",
    "encode_array": "encode_arrays",
    "encode_pieces": "align_batch",
    "align": "align_batch",
    "count": "count_batch",
}


def is_missing(value: Any) -> bool:
    """Whether a value is one of those that mark a missing value in tables."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"  # NAType is that of pandas.NA


def _hint(text: Any, method: str) -> str:
    if is_missing(text):
        return "; is a value missing?"
    if isinstance(text, os.PathLike):
        return "; give it the text of the file, path.read_text(encoding='utf-8')"
    if isinstance(text, IOBase):
        return "; give it the text of the file, file.read()"
    if isinstance(text, UserString) or getattr(text, "ndim", 1) == 0:
        return "; give it str(text)"
    if hasattr(text, "__index__") and "decode" in method:
        return "; for ids use decode()"
    if hasattr(text, "__index__") and method == "piece_to_id":
        return "; for the piece of an id use id_to_piece()"
    if isinstance(text, Mapping):
        return "; give it one of its values, such as text['text']"
    if isinstance(text, Iterable):
        batch = _BATCHES.get(method)
        several = f"; for several texts use {batch}()" if batch else "; give it one text after the other"
        parts = ", and for one text in parts encode_parts()" if method == "encode" else ""
        return several + parts
    return ""


def checked_texts(texts: object, method: str) -> list[Text]:
    """Several texts as an engine takes them.

    A list or an iterator of texts, or a column of a table: a Series of pandas or polars, an array of Arrow or
    numpy. A whole table is refused, because only its owner knows which column holds the texts.
    """
    if type(texts) is not list:
        texts = _listed(texts, method)
    if set(map(type, texts)) <= {str, bytes}:
        return texts
    checked: list[Text] = []
    for position, text in enumerate(texts):
        try:
            checked.append(text if isinstance(text, str) else utf8(text, method))
        except TypeError:
            raise TypeError(
                f"{method}() takes texts (str or bytes), found {type(text).__name__} at position {position}"
                f"{_hint(text, '')}"
            ) from None
    return checked


def _listed(texts: Any, method: str) -> list[Any]:
    kind = type(texts)
    name = kind.__name__
    if isinstance(texts, (*_TEXTS, UserString)):
        raise TypeError(f"{method}() takes a list of texts, not {name}; put it into a list: [text]")
    refuse_unordered(texts, method, "texts")
    if getattr(texts, "ndim", 1) != 1:
        raise TypeError(f"{method}() takes an array with one dimension, not {texts.ndim}")
    if not isinstance(texts, Iterable):
        raise TypeError(f"{method}() takes a list of texts, not {name}")
    return list(listed_column(texts))


def refuse_unordered(items: object, method: str, what: str) -> None:
    """Refuse tables, which have more than one column, and sets, which have no order."""
    name = type(items).__name__
    way_out = table_way_out(items)
    if way_out is not None:
        raise TypeError(f"{method}() takes a list of {what}, not {name}; {way_out}")
    if isinstance(items, (set, frozenset)):
        raise TypeError(f"{method}() takes {what} in an order, not a {name}; give it sorted({what})")


_AS_LIST = {"pyarrow": "to_pylist", "polars": "to_list", "pandas": "tolist", "numpy": "tolist"}


def listed_column(texts: Any) -> Any:
    """A column of a table as Python's own values; anything else as it is."""
    method = _AS_LIST.get(type(texts).__module__.partition(".")[0], "")
    return getattr(texts, method)() if hasattr(texts, method) else texts


def table_way_out(table: Any) -> str | None:
    """What to say to somebody who gives a whole table instead of texts; None if it is not a table."""
    for kind in type(table).__mro__:  # GeoPandas and others have subclasses
        library, name = kind.__module__.partition(".")[0], kind.__name__
        if library == "datasets" and name in _DATASETS:
            split = "['train']" if name.endswith("Dict") else ""
            if name.startswith("Iterable"):
                return f"give it the texts, such as (row['text'] for row in dataset{split})"
            return f"give it the column that holds the texts, such as dataset{split}['text']"
        if library in ("pandas", "polars", "pyarrow") and name in _TABLES:
            collect = ".collect()" if name == "LazyFrame" else ""
            return f"give it the column that holds the texts, such as table{collect}['text']"
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "columns"):  # of another library
        return "give it the column that holds the texts, such as table['text']"
    return "give it one of its values, such as texts['text']" if isinstance(table, Mapping) else None


_TABLES = ("DataFrame", "LazyFrame", "Table", "RecordBatch")
_DATASETS = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")


# --- Threads --------------------------------------------------------------------------------------


def checked_threads(threads: SupportsIndex) -> int:
    """How many threads to use: at least one, and no more than there are processors.

    Every thread has a cache of its own, which must get warm, so on two processors 16 threads took twice as
    long as two.
    """
    if type(threads) is not int or threads < 1:
        with importing:
            from cpbpe.spelling import named
        threads = checked_limit(threads, named("threads"), 1)
    return min(threads, cores())


def threads_for(items: Sequence[Sized], threads: SupportsIndex | None) -> int:
    """How many threads to use for a batch: by default one for each THREAD_ITEMS, up to all cores."""
    if threads is not None:
        return checked_threads(threads)
    worth = sum(map(len, items)) // THREAD_ITEMS
    if worth < 2:
        return 1
    return min(worth, cores())


def threads_or_all(threads: SupportsIndex | None) -> int:
    """How many threads to use: as many as given, or one for each processor that this process may use."""
    return cores() if threads is None else checked_threads(threads)


def cores() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


# --- Ids ------------------------------------------------------------------------------------------


def bounds(size: int) -> str:
    """The range of ids, for messages."""
    return f"{size} pieces, 0 to {size - 1}"


def refuse_single(items: object, single: tuple[type, ...], method: str, what: str) -> None:
    """Refuse one sequence of ids, or one piece, where a list of them is expected."""
    if isinstance(items, single) or not isinstance(items, Iterable):
        raise TypeError(f"{method}() takes a list of {what}, not {type(items).__name__}")


def as_ids(ids: object, size: int, method: str) -> list[int] | bytes:
    """Ids as an engine takes them.

    All but those of a numpy array are checked here; for these, the engine looks whether the vocabulary has
    them.
    """
    np = sys.modules.get("numpy")
    if np and isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu":
        narrow = ids.dtype.itemsize <= 4 or not len(ids) or (ids.min() >= 0 and ids.max() < 1 << 32)
        if narrow:  # a negative number becomes one outside any vocabulary
            data: bytes = ids.astype(np.uint32).tobytes()
            return data
    return check_ids(ids, size, method)


def repeatable(ids: Any) -> Any:
    """The same ids, in a form that can be iterated over twice."""
    return list(ids) if isinstance(ids, Iterator) else ids


def check_ids(ids: object, size: int, method: str, of: str = "") -> list[int]:
    """Ids as a list of int, each in the vocabulary. `of` says where they are."""
    if isinstance(ids, (str, bytes, bytearray)):
        hint = "; for pieces use decode_pieces" if method.startswith("decode") else ""
        raise TypeError(f"{method}() takes ids (integers), not {type(ids).__name__}{hint}")
    unordered = not isinstance(ids, (list, tuple)) and isinstance(ids, (set, frozenset, Mapping))
    if unordered or hasattr(ids, "columns"):
        example = (
            "one of its values, such as batch['input_ids']" if isinstance(ids, Mapping) else "one column"
        )
        way_out = "a list, in the order of the text" if isinstance(ids, (set, frozenset)) else example
        raise TypeError(f"{method}() takes ids (integers), not {type(ids).__name__}; give it {way_out}")
    if hasattr(ids, "tolist"):  # numpy, torch, memoryview, array: all at once, as Python's own int
        ids = ids.tolist()
    checked: list[int] = []
    for position, id in enumerate(ids if isinstance(ids, Iterable) else [ids]):
        try:
            checked.append(index(id))
        except TypeError:
            hint = ""
            if method == "decode" and isinstance(id, (list, tuple, str)):
                hint = "; for pieces use decode_pieces" if isinstance(id, str) else "; use decode_batch"
            elif hasattr(id, "ids"):  # an Encoding, of this library or of another
                hint = "; give it encoding.ids"
            raise TypeError(
                f"{method}() takes ids (integers), found {type(id).__name__} at position {position}{of}{hint}"
            ) from None
    for position, number in enumerate(checked):
        if not 0 <= number < size:
            there = bounds(size)
            raise IndexError(f"id {number} at position {position}{of} is outside the vocabulary: {there}")
    return checked


def checked_limit(number: SupportsIndex, name: str, least: int = 0) -> int:
    """A number that a user gave, such as one of tokens or threads: an integer of at least `least`."""
    try:
        checked = index(number)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(number).__name__}") from None
    if checked < least:
        raise ValueError(f"{name} must be at least {least}, not {checked}")
    return checked


def checked_unit(unit: Unit | None, text: Text) -> Unit:
    """What the spans of a text count, "char" or "byte". None means characters for str and bytes for bytes."""
    if unit is None:
        return "char" if isinstance(text, str) else "byte"
    if unit not in ("char", "byte"):
        raise ValueError(f"unit must be 'char' or 'byte', not {unit!r}")
    return unit


# --- Amounts --------------------------------------------------------------------------------------

# (A comma stands before three digits: elsewhere, "1,5GB" may mean 1.5. Most programs never compile this.)
_AMOUNT = r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]+)?)\s*([kmgt]?)(i?)(b?)"


def amount(given: Any) -> tuple[int, bool] | None:
    """A number as people write it, and whether it has the unit B, for bytes; None if it is no number.

    >>> amount("500MB"), amount("1.5 GiB"), amount("1.001M"), amount(4e9), amount("1.5"), amount("1,5GB")
    ((500000000, True), (1610612736, True), (1001000, False), (4000000000, False), None, None)
    """
    if isinstance(given, str):
        match = re.fullmatch(_AMOUNT, given.strip(), re.IGNORECASE)
        if match is None:
            return None
        digits = re.sub("[_,]", "", match[1])
        scale = (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " ")
        if scale == 1 and not float(digits).is_integer():
            return None
        return int(digits) * scale if digits.isdecimal() else round(float(digits) * scale), bool(match[4])
    if isinstance(given, float) and given.is_integer():
        return int(given), False
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        return None
    return index(given), False
