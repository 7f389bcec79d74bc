"""Checks of arguments: which values sentencepiece accepts as numbers, bools, texts or ids, and as what.

sentencepiece's methods are written in C++ and bound with pybind11, which has rules of its own. An integer can
be anything with `__index__` or `__int__`, but not a float; a bool can be anything with `__bool__`, but not a
str; a file name can be str or bytes, but not a path. Other values raise the same types of exceptions as in
sentencepiece, because code may rely on them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from functools import cache, lru_cache
from operator import index
from types import GeneratorType
from typing import Any, TypeVar

from cpbpe.lazy import importing
from cpbpe.model.formats import sentencepiece as model_file

T = TypeVar("T")
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
_INTEGERS = frozenset("bhilqnBHILQN")
"""The letters that stand for integers in the formats of buffers."""
_ITERATED = (GeneratorType, set, frozenset, KeysView, ValuesView, ItemsView, map, zip)
"""Types that are accepted as lists although they have no items by index."""


def as_int(value: Any, name: str, low: int = INT_MIN, high: int = INT_MAX) -> int:
    """An integer of 32 bits.

    >>> as_int(True, "nbest_size"), as_int(7, "nbest_size")
    (1, 7)
    >>> as_int(7.0, "nbest_size")
    Traceback (most recent call last):
    ...
    TypeError: nbest_size must be an integer, not float
    """
    number = _integer(value)
    if number is None:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    if not low <= number <= high:
        raise TypeError(f"{name} must be an integer from {low} to {high}, not {number}")
    return number


def _integer(value: Any) -> int | None:
    if type(value) is int:
        return value
    if isinstance(value, float):
        return None
    try:
        return index(value)
    except Exception:
        pass
    if not hasattr(type(value), "__int__"):
        return None
    try:
        return int(value)
    except Exception:
        return None


def as_float(value: Any, name: str) -> float:
    """A number, rounded to 32 bits as in sentencepiece; numbers that are too large become infinite."""
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        try:
            number = float(value)
        except Exception:
            pass
        else:
            return rounded(number)
    raise TypeError(f"{name} must be a number, not {_shown(value)}")


@lru_cache(maxsize=64)
def rounded(number: float) -> float:
    """A number, rounded to 32 bits as in sentencepiece; numbers that are too large become infinite."""
    try:
        kept: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return kept


def as_bool(value: Any, name: str) -> bool:
    """True or False, from anything with `__bool__`; None is False."""
    if value is True or value is False:
        return bool(value)
    if value is None:
        return False
    if hasattr(type(value), "__bool__"):
        try:
            return bool(value)
        except Exception:
            pass
    raise TypeError(f"{name} must be True or False, not {_shown(value)}")


def as_name(value: Any, what: str) -> str | bytes:
    """The name of a file or of something else."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise TypeError(f"{what}: {error}") from None
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    hint = "; str(...) makes one of a path" if hasattr(value, "__fspath__") else ""
    raise TypeError(f"{what} must be str or bytes, not {type(value).__name__}{hint}")


def as_serialized(value: Any, what: str) -> bytes:
    """A serialized message: bytes, or a message object, which is serialized."""
    if hasattr(value, "SerializeToString"):
        value = value.SerializeToString()
    if not isinstance(value, bytes):
        raise TypeError(f"{what} must be bytes, not {type(value).__name__}")
    return bytes(value)


def as_text(value: Any) -> str | bytes:
    """One text to encode or to normalize."""
    if type(value) is str or type(value) is bytes:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    hint = "; for several texts give a list" if isinstance(value, tuple) else ""
    raise TypeError(f"the input must be str or bytes, not {type(value).__name__}{hint}")


def not_utf8(error: UnicodeEncodeError) -> RuntimeError:
    """The error for a text that cannot be written in UTF-8."""
    return RuntimeError(f"the input holds half a character, which UTF-8 cannot write: {error}")


def utf8(text: str | bytes) -> bytes:
    """A text from `as_text` as bytes."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise not_utf8(error) from error


def in_utf8(call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call. For a str that cannot be UTF-8, raises the error that sentencepiece raises."""
    try:
        return call(*arguments)
    except UnicodeEncodeError as error:
        raise not_utf8(error) from error


def as_pieces(values: Any, what: str = "pieces") -> list[bytes]:
    """The items of a sequence of str or bytes, all as bytes.

    >>> as_pieces(["a", b"b"])
    [b'a', b'b']
    """
    if isinstance(values, (str, bytes)) or not _is_sequence(values):
        raise TypeError(f"{what} must be a list of str or bytes, not {_shown(values)}")
    pieces = []
    for position, value in enumerate(_items(values)):
        if isinstance(value, str):
            try:
                pieces.append(value.encode())
            except UnicodeEncodeError as error:
                raise TypeError(f"{what}[{position}]: {error}") from None
        elif isinstance(value, (bytes, bytearray)):
            pieces.append(bytes(value))
        else:
            raise TypeError(f"{what}[{position}] must be str or bytes, not {type(value).__name__}")
    return pieces


def as_texts(values: list[Any]) -> list[str | bytes]:
    """A list of texts to encode."""
    texts: list[str | bytes] = []
    for position, value in enumerate(values):
        if type(value) is str:
            texts.append(value)  # the engine notices text that UTF-8 cannot write
        elif isinstance(value, (str, bytes, bytearray)):
            texts.append(str.__str__(value) if isinstance(value, str) else bytes(value))
        else:
            raise TypeError(f"input[{position}] must be str or bytes, not {type(value).__name__}")
    return texts


def as_ids(values: Any) -> list[int]:
    """The integers of a sequence, a buffer, a set or the like.

    Integers in a buffer may have any size, others 32 bits. It is not checked whether they are in the
    vocabulary.
    """
    if type(values) is list and set(map(type, values)) == {int}:  # the common case
        if min(values) >= INT_MIN and max(values) <= INT_MAX:
            return values
    elif isinstance(values, (str, bytes)):
        raise TypeError(f"ids must be integers, not {type(values).__name__}")
    if not isinstance(values, (list, tuple, range, bytearray)):
        buffer = _buffer(values)
        if buffer is not None:
            if buffer.format[-1:] not in _INTEGERS:
                raise TypeError(f"ids must be integers, not a buffer of the type {buffer.format!r}")
            if buffer.ndim != 1:
                raise TypeError(f"ids have one dimension, not {buffer.ndim}")
            listed: list[int] = values.tolist() if hasattr(values, "tolist") else buffer.tolist()
            return listed
        if hasattr(values, "tolist"):  # a tensor: all at once
            values = values.tolist()
        if not _is_sequence(values) and not isinstance(values, _ITERATED):
            raise TypeError(f"ids must be integers, not {_shown(values)}")
    numbers = []
    for position, value in enumerate(_items(values)):
        number = value if type(value) is int else _integer(value)
        if number is None:
            raise TypeError(f"ids are integers, and the one at position {position} is {_shown(value)}")
        if not INT_MIN <= number <= INT_MAX:
            raise TypeError(f"the id at position {position} has more than 32 bits: {number}")
        numbers.append(number)
    return numbers


def as_one_id(value: Any) -> int | None:
    """One id, or None if the value is not an integer and may hold several."""
    if type(value) is int:
        number = value
    else:
        try:
            number = index(value)
        except Exception:
            return None
    return number if INT_MIN <= number <= INT_MAX else None


def is_list_like(value: Any) -> bool:
    """Whether sentencepiece accepts a value as a list."""
    return not isinstance(value, (str, bytes)) and (_is_sequence(value) or isinstance(value, _ITERATED))


def _is_sequence(value: Any) -> bool:
    """Whether C treats a value as a sequence: it has items by index and is not a dict."""
    return hasattr(type(value), "__getitem__") and not isinstance(value, Mapping)


def _items(values: Any) -> Any:
    """The items of a sequence, as many as its length says."""
    if isinstance(values, _ITERATED):
        return values
    try:
        size = len(values)
    except TypeError:
        raise TypeError(f"a list is wanted, not {type(values).__name__}") from None
    return values if isinstance(values, (list, tuple, range)) else (values[at] for at in range(size))


def _buffer(value: Any) -> memoryview | None:
    try:
        return memoryview(value)
    except Exception:
        return None


def _shown(value: object) -> str:
    """A value in a message: its type, and itself if it is short."""
    text = repr(value) if isinstance(value, (str, int, float, type(None))) else ""
    return f"{type(value).__name__} {text[:40]}".rstrip()


# --- Files and arrays -----------------------------------------------------------------------------------


def read_file(name: str | bytes) -> bytes:
    """The contents of a file. Errors are RuntimeErrors, as in sentencepiece."""
    try:
        with open(name, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise RuntimeError(f"cannot read the file {name!r}: {error}") from error


def is_message(data: bytes) -> bool:
    """Whether data can be parsed as a model file, valid or not."""
    return model_file.is_parsed(model_file.messages().ModelProto(), data)


@cache
def numpy() -> Any:
    """The module numpy. (Importing it in every call would take as long as encoding four ids.)"""
    with importing:
        import numpy as module
    return module


def packed_ids(ids: Any) -> bytes | None:
    """A numpy array of ids as an engine takes it; None for everything else."""
    dtype = getattr(ids, "dtype", None)
    if dtype is None or type(ids).__module__ != "numpy" or ids.ndim != 1 or dtype.kind not in "iu":
        return None
    if dtype.itemsize > 4 and len(ids) and not (ids.min() >= 0 and ids.max() <= INT_MAX):
        return None
    data: bytes = ids.astype("uint32").tobytes()  # (a negative number becomes one outside the vocabulary)
    return data


def unchangeable(ids: Any) -> Any:
    """An array of ids as sentencepiece returns it: int32, read-only, a view of memory of another owner."""
    np = numpy()
    view = ids.view(np.int32) if len(ids) else np.zeros(0, np.int32)
    view.setflags(write=False)
    return view


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
