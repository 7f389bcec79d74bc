"""The protocol that every engine follows, and the choice between the compiled core and the reference.

Here are values that engines take: the ids around those of a text, and how merges are skipped at random.
(They have no class, so that loading a model does not wait for the protocol.)
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
Ends = tuple[int | None, int | None, bool]
"""The id in front, the id at the end, and whether the ids between them are reversed."""
NO_ENDS: Ends = (None, None, False)
Dropout = tuple[float, int]
"""The probability with which each merge is skipped, and a seed of 64 bits."""


def between(items: list[T], front: T | None, back: T | None, reverse: bool) -> list[T]:
    """The items, perhaps in reverse order, between two others.

    >>> between([1, 2], 8, None, True)
    [8, 2, 1]
    """
    if reverse:
        items = items[::-1]
    return [*([] if front is None else [front]), *items, *([] if back is None else [back])]


def reseeded(dropout: Dropout | None, number: int) -> Dropout | None:
    """The dropout for one text of a batch. `number`, the index of the text, is added to the seed.

    >>> reseeded((0.1, 2**64 - 1), 2)
    (0.1, 1)
    """
    return None if dropout is None else (dropout[0], (dropout[1] + number) % (1 << 64))
