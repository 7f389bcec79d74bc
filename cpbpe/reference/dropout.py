"""Chances for BPE-dropout: numbers that look random but depend only on the seed and the position.

When a text is sampled, every merge that is about to happen is skipped with a given probability. The positions
of the two symbols and the seed decide. So the result does not depend on the order in which an engine looks at
merges, and all engines agree.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


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
    """The number from 0 to 1 (exclusive) that decides about one merge.

    The symbol that begins with the character `left` merges with the one from `right` to `end`; two merges
    that differ in one of these are independent.

    >>> 0 <= chance(mixed(7), 0, 1, 2) < 1
    True
    """
    return (mixed(mixed(mixed(mixed_seed ^ left) ^ right) ^ end) >> 11) / (1 << 53)
