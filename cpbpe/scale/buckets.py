"""Words divided among buckets by what they are, so that the same word of every part goes to the same bucket.

A worker that merges one bucket holds that share of all distinct words, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpbpe.lazy import numpy
from cpbpe.reference.training_values import Words
from cpbpe.training.words_file import BLOCK_WORDS, join_words, slice_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUCKETS = 64
"""How many buckets there are. A hundred million words are one and a half million in each."""

_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_BYTES = 8


def by_bucket(words: Words, buckets: int) -> list[tuple[int, Words]]:
    """The words of each bucket that has any, still sorted."""
    if buckets == 1:
        return [(0, words)]
    found: list[list[Words]] = [[] for _ in range(buckets)]
    for begin in range(0, len(words), BLOCK_WORDS):
        block = slice_words(words, begin, min(begin + BLOCK_WORDS, len(words)))
        for bucket, part in _divided(block, buckets):
            found[bucket].append(part)
    return [(bucket, join_words(parts)) for bucket, parts in enumerate(found) if parts]


def _divided(words: Words, buckets: int) -> list[tuple[int, Words]]:
    """The same for words of one block."""
    np = numpy()
    ends = np.frombuffer(words.ends, "<u8").astype(np.int64)
    lengths = np.diff(ends, prepend=0)
    counts = np.frombuffer(words.counts, "<u8")
    of_words = _hashes(words.blob, ends, lengths) % np.uint64(buckets)
    order = np.argsort(of_words, kind="stable")
    # The bytes of the words, in the order of the buckets.
    new_lengths = lengths[order]
    new_ends = np.cumsum(new_lengths)
    places = np.arange(len(words.blob)) + np.repeat(
        (ends - lengths)[order] - (new_ends - new_lengths), new_lengths
    )
    blob = np.frombuffer(words.blob, np.uint8)[places]
    bounds = np.searchsorted(of_words[order], np.arange(buckets + 1, dtype=np.uint64))
    new_counts = counts[order]
    parts = []
    for bucket in np.flatnonzero(np.diff(bounds)).tolist():
        first, last = int(bounds[bucket]), int(bounds[bucket + 1])
        base = int(new_ends[first - 1]) if first else 0
        own_ends = (new_ends[first:last] - base).astype("<u8")
        own_blob = blob[base : int(new_ends[last - 1])]
        parts.append(
            (bucket, Words(own_blob.tobytes(), own_ends.tobytes(), new_counts[first:last].tobytes()))
        )
    return parts


def _hashes(blob: bytes, ends: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each word, from its length, its first and its last eight bytes.

    Words that agree in all of these are few, and it does no harm that they are in one bucket.
    """
    np = numpy()
    padded = np.frombuffer(bytes(_BYTES) + blob + bytes(_BYTES), np.uint8)
    eight = np.lib.stride_tricks.as_strided(
        padded[: -_BYTES + 1].view(), (len(padded) - _BYTES + 1, _BYTES), (1, 1)
    )
    begins = ends - lengths + _BYTES
    missing = (8 * np.maximum(_BYTES - lengths, 0)).astype(np.uint64)
    with np.errstate(over="ignore"):
        first = _numbers(eight[begins]) << missing >> missing
        last = _numbers(eight[begins + lengths - _BYTES]) >> missing << missing
        mixed: Any = (
            first * np.uint64(_FACTORS[0]) + last * np.uint64(_FACTORS[1]) + lengths.astype(np.uint64)
        )
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_FACTORS[2])
    result: NDArray[Any] = mixed >> np.uint64(40)
    return result


def _numbers(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Eight bytes each as a number, little-endian."""
    result: NDArray[Any] = numpy().ascontiguousarray(rows).view("<u8").reshape(-1)
    return result
