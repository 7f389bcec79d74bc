"""Values that are computed, and modules that are imported, when they are first needed.

Start-up should not pay for them: importing numpy or protobuf takes longer than importing cpbpe.

Another thread may fork the process at just that moment. The child then has every lock that was held, but not
the thread that would release it, so it would wait forever. Therefore nothing here holds a lock while it
computes a value. An import cannot do without one, because Python itself holds a lock until it is done. So
imports take place under `importing`, and a fork waits for that.
"""

from __future__ import annotations

import os
from _thread import RLock  # (`threading` imports more)
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
T = TypeVar("T")

MAX_KEPT = 32
"""A `Kept` holds this many values."""

importing = RLock()
"""Held during an import in a function: `with importing: import numpy as np`. A fork waits for it.

Nearly everything that start-up should not pay for is imported in this way. (It is an import statement and
not a function with the name of a module, so that type checkers still see the types.)
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release
    )


class kept(Generic[T]):  # noqa: N801 (used like property)
    """A property that is computed once, and kept in the object.

    This is `functools.cached_property` without the lock that it has before Python 3.12. Two threads may
    compute the value at the same time; both then get the same object.
    """

    def __init__(self, make: Callable[[Any], T]):
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> kept[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._make(instance))
        return value


class Kept(dict[K, T]):
    """A cache of values by key. Threads may share one, because each step is a single operation of dict."""

    def keep(self, key: K, value: T) -> None:
        """Store a value. A full cache is emptied: dropping only the oldest value would need a lock."""
        if len(self) >= MAX_KEPT:
            self.clear()
        self[key] = value
