"""What is put around the ids or pieces of a text. The core does it by itself."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def between(items: list[T], front: T | None, back: T | None, reverse: bool) -> list[T]:
    """The items, perhaps in reverse order, between two others.

    >>> between([1, 2], 8, None, True)
    [8, 2, 1]
    """
    if reverse:
        items = items[::-1]
    return [*([] if front is None else [front]), *items, *([] if back is None else [back])]
