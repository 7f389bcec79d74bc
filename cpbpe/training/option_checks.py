"""Checks of options that models of both families share: their names, their types, texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from cpbpe.errors import TrainingError
from cpbpe.spelling import named

T = TypeVar("T")


def names_checked(refuse: Callable[[Iterable[str]], None]) -> Callable[[type[T]], type[T]]:
    """A decorator for options, which passes the names that are given to `refuse`, for unknown ones."""

    def decorate(kind: type[T]) -> type[T]:
        made = kind.__init__

        @wraps(made)
        def initialize(self: T, *values: Any, **options: Any) -> None:
            refuse(options)
            made(self, *values, **options)

        kind.__init__ = initialize  # type: ignore[assignment]
        return kind

    return decorate


def check_type(name: str, value: object, kind: str) -> None:
    """Raise an error if the value of an option is of another type than this annotation says."""
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"{named(name)} must be True or False, not {value!r}")
    if kind == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{named(name)} must be an integer, not {value!r}")
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{named(name)} must be a number, not {value!r}")
    if kind == "str":
        if not isinstance(value, str):
            raise TypeError(f"{named(name)} must be text (str), not {value!r}")
        check_unicode(name, value)


def check_unicode(name: str, text: str) -> None:
    """Raise an error if a text has half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TrainingError(f"{named(name)}: {text[:40]!r} is not valid Unicode: {error.reason}") from None


def checked_strings(name: str, value: object) -> tuple[str, ...]:
    """Several texts as a tuple."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{named(name)} must be a list of str, not {value!r}")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{named(name)} must be a list of str, but it contains {item!r}")
        check_unicode(name, item)
    return items
