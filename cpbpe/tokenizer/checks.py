"""What comes in from users: is it text, is it ids, and what to say if it is not.

Messages name the method, what came, and what to do instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from operator import index
from secrets import randbits
from typing import Any, SupportsFloat, SupportsIndex

from cpbpe.lazy import numpy as numpy

Random = tuple[float, int]
"""How a text is sampled: the chance of every merge to be left out, and a seed."""

THREAD_ITEMS = 1 << 16
"""So many characters, or ids, keep a thread busy for longer than it takes to start."""

MAX_THREADS = 256
"""More threads than this are not started, whatever is asked for."""


def utf8(text: object, method: str) -> bytes:
    """Text as bytes. A lone surrogate in a str is an error, as it is to `str.encode`."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"{method}() takes str or bytes, not {type(text).__name__}")


def checked_text(text: object, method: str) -> str | bytes:
    """A text as an engine takes it."""
    return text if isinstance(text, str) else utf8(text, method)


def checked_threads(threads: SupportsIndex) -> int:
    """How many threads to use, at least one; more than MAX_THREADS are never of use."""
    try:
        number = index(threads)
    except TypeError:
        raise TypeError(f"threads is an integer, not {type(threads).__name__}") from None
    if number < 1:
        raise ValueError(f"threads is at least 1, not {number}")
    return min(number, MAX_THREADS)


def threads_for(items: Sequence[Sized], threads: int | None) -> int:
    """How many threads to use for a batch: by default one for each THREAD_ITEMS, up to all cores."""
    if threads is not None:
        return checked_threads(threads)
    worth = sum(map(len, items)) // THREAD_ITEMS
    if worth < 2:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(worth, cores)


def checked_random(alpha: SupportsFloat, seed: SupportsIndex | None) -> Random:
    """What sampling takes. Without a seed there is another one every time."""
    try:
        chance = float("x" if isinstance(alpha, str) else alpha)
    except (TypeError, ValueError):
        raise TypeError(f"alpha is a number from 0 to 1, not {alpha!r}") from None
    if not 0 <= chance <= 1:
        raise ValueError(f"alpha is the chance of a merge to be left out, from 0 to 1, not {alpha!r}")
    if seed is None:
        return chance, randbits(64)
    try:
        return chance, index(seed) % (1 << 64)
    except TypeError:
        raise TypeError(f"seed is an integer or None, not {type(seed).__name__}") from None


def refuse_single(items: object, single: tuple[type, ...], method: str, what: str) -> None:
    """Refuse one text, or one piece, where a list of them is meant."""
    if isinstance(items, single) or not isinstance(items, Iterable):
        raise TypeError(f"{method}() takes a list of {what}, not {type(items).__name__}")


def bounds(size: int) -> str:
    """The ids there are, for messages."""
    return f"{size} pieces, 0 to {size - 1}"


def as_ids(ids: object, size: int, method: str) -> list[int] | bytes:
    """Ids as an engine takes them; whether they are inside the vocabulary is its business."""
    np = sys.modules.get("numpy")
    if np and isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu":
        narrow = ids.dtype.itemsize <= 4 or not len(ids) or (ids.min() >= 0 and ids.max() < 1 << 32)
        if narrow:  # a negative number becomes one that is outside of any vocabulary
            data: bytes = ids.astype(np.uint32).tobytes()
            return data
    return check_ids(ids, size, method)


def settled(ids: Any) -> Any:
    """The same ids, in a form that can be looked at twice."""
    return list(ids) if isinstance(ids, Iterator) else ids


def check_ids(ids: object, size: int, method: str, of: str = "") -> list[int]:
    """Ids as a list of int, each in the vocabulary."""
    if isinstance(ids, (str, bytes, bytearray)):
        hint = "; for pieces use decode_pieces" if method.startswith("decode") else ""
        raise TypeError(f"{method}() takes ids (integers), not {type(ids).__name__}{hint}")
    if hasattr(ids, "tolist"):  # numpy, torch, memoryview, array: all at once, as Python's own int
        ids = ids.tolist()
    checked: list[int] = []
    for position, id in enumerate(ids if isinstance(ids, Iterable) else [ids]):
        try:
            checked.append(index(id))
        except TypeError:
            hint = "; use decode_batch" if isinstance(id, (list, tuple)) and method == "decode" else ""
            raise TypeError(
                f"{method}() takes ids (integers), found {type(id).__name__} at position {position}{of}{hint}"
            ) from None
    for position, number in enumerate(checked):
        if not 0 <= number < size:
            there = bounds(size)
            raise IndexError(f"id {number} at position {position}{of} is outside the vocabulary: {there}")
    return checked
