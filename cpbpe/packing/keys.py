"""A number for each document that looks random: what the order and the split into two parts come from.

It depends on a seed and on the number of the document and nothing else, so neither threads nor the size of a
batch nor an interruption can change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpbpe.lazy import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ORDER = 0x6F72646572
VALIDATION = 0x76616C6964
"""What the numbers are for. For the same seed, the order says nothing about the split."""

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def keys(numbers: NDArray[np.int64], seed: int, purpose: int) -> NDArray[np.uint64]:
    """The keys of documents: SplitMix64, in which equal seeds give different keys to different numbers.

    >>> import numpy as np
    >>> [hex(key) for key in keys(np.arange(2), 0, ORDER).tolist()]
    ['0xb0d4375e18a003f4', '0xbe9ac585fad994a8']
    """
    np = numpy()
    begin = _mixed_number((seed * _GOLDEN + purpose) & _MASK)
    with np.errstate(over="ignore"):
        mixed: Any = numbers.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(begin)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    result: NDArray[Any] = mixed ^ (mixed >> np.uint64(31))
    return result


def is_validation(numbers: NDArray[np.int64], seed: int, share: float) -> NDArray[np.bool_]:
    """Which documents belong to the validation part, of which `share` of all do on average."""
    np = numpy()
    chosen: NDArray[Any] = keys(numbers, seed, VALIDATION) < np.uint64(min(int(share * 2.0**64), _MASK))
    return chosen


def _mixed_number(value: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ value >> shift) * factor) & _MASK
    return value ^ value >> 31
