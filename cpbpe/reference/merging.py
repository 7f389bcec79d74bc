"""The merge loop, which the whole reference shares: the best pair first, again and again.

The order of scores, and the random numbers by which dropout skips merges, are here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TypeVar

S = TypeVar("S")

_MASK = (1 << 64) - 1


def merge(
    symbols: Iterable[S],
    joined: Callable[[S, S], tuple[int, S] | None],
    skips: Callable[[int, int, int], bool] | None = None,
) -> list[S]:
    """Merge neighbours until no pair can merge: the lowest rank first, the leftmost of equals.

    `joined` returns the rank of what two symbols become, and that symbol, or None. Where pieces have scores
    or ranks, it looks up the joined text. Other libraries (minbpe, GPT-2's own code, Hugging Face's
    tokenizers) have a list of pairs; `cpbpe/model/pair_ranks.py` proves when the result is the same.

    A symbol is identified by its place in the list. Pairs that a merge has made invalid stay in the heap.
    They are recognized when their turn comes, because one of the two symbols has changed or is gone.

    When the turn of a pair comes, `skips` is given the places of its two symbols and the place where the
    second one ends. If it returns true, the pair is skipped for good.

    >>> table = {("a", "b"): (0, "ab"), ("b", "c"): (1, "bc")}
    >>> merge("abcbc", lambda left, right: table.get((left, right)))
    ['ab', 'c', 'bc']
    """
    now = list(symbols)
    gone = [False] * len(now)  # whether each symbol was merged into the one before it
    before = list(range(-1, len(now) - 1))
    after = [*range(1, len(now)), -1]
    heap: list[tuple[int, int, int, S, S, S]] = []

    def consider(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            ranked = joined(now[left], now[right])
            if ranked is not None:
                heappush(heap, (ranked[0], left, right, now[left], now[right], ranked[1]))

    for left in range(len(now) - 1):
        consider(left, left + 1)
    while heap:
        _, left, right, first, second, made = heappop(heap)
        if gone[left] or gone[right] or now[left] != first or now[right] != second:
            continue
        following = after[right]
        if skips is not None and skips(left, right, following if following >= 0 else len(now)):
            continue
        now[left] = made
        gone[right] = True
        after[left] = following
        if following >= 0:
            before[following] = left
        consider(before[left], left)
        consider(left, following)
    return [symbol for place, symbol in enumerate(now) if not gone[place]]


# --- Random numbers for BPE-dropout ---------------------------------------------------------------
#
# When a text is sampled, every merge that is about to happen is skipped with a given probability. Whether it
# is skipped depends only on the positions of the two symbols and on the seed. So the order in which an engine
# considers merges makes no difference, and all engines agree.


def mixed(number: int) -> int:
    """A number of 64 bits, each of which depends on all bits of `number` (SplitMix64).

    >>> mixed(0) != mixed(1), 0 <= mixed(2**64 - 1) < 2**64
    (True, True)
    """
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & _MASK
    return number ^ number >> 31


def chance(mixed_seed: int, left: int, right: int, end: int) -> float:
    """The random number, from 0 to 1 (exclusive), that decides whether one merge is skipped.

    `left` is where the left symbol begins; the right one is from `right` to `end`. (All three count the
    symbols that the text starts as.) The numbers of two merges that differ in one of these are independent.

    >>> 0 <= chance(mixed(7), 0, 1, 2) < 1
    True
    """
    return (mixed(mixed(mixed(mixed_seed ^ left) ^ right) ^ end) >> 11) / (1 << 53)
