"""What is made when it is first needed, and what is imported then: numpy and protobuf take longer than cpbpe.

Another thread may fork the process at just that moment. Then the child has whatever lock was taken, and not
the thread that would release it, and waits forever. So nothing here makes others wait for a value, and nobody
forks while one of these imports runs, for each of which Python takes a lock: the fork waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
T = TypeVar("T")

MAX_KEPT = 32
"""A `Kept` holds this many values."""

importing = RLock()
"""Held while something is imported late: `with importing: import numpy as np`, in a function.

A fork waits for it. This is how everything is imported that start-up should not pay for, so types are kept.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release
    )


class kept(Generic[T]):  # noqa: N801 (used like property)
    """A property that is made once, and kept in the object.

    It is `functools.cached_property` without the lock that this has before Python 3.12. Two threads at once
    may make a value each, and both get the same one.
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
    """Values made for keys that may come again. Threads may share one: each step is one of dict's."""

    def keep(self, key: K, value: T) -> None:
        """Put a value there. A full one begins anew, because looking for the oldest value takes a lock."""
        if len(self) >= MAX_KEPT:
            self.clear()
        self[key] = value
