"""Counting in parts: each part of a dataset becomes a row, and rows are merged until a few are left.

A row holds those words of its part that belong to one bucket, and what was read. Counts are added up, so the
order of rows does not matter. A task that is repeated gives the same rows, which replace the first ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbpe.arrow import Column, chunks_of, plain, pyarrow, texts_of
from cpbpe.corpus.files import PART_BYTES
from cpbpe.corpus.records import as_a_line_each
from cpbpe.engine.training import merge_words
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import EXAMPLES, Words
from cpbpe.spelling import counted, named
from cpbpe.training.arguments import ReadingOptions, checked_memory_limit
from cpbpe.training.byte_options import AnyOptions, ByteTrainOptions, complete_options
from cpbpe.training.corpus import Block, Corpus
from cpbpe.training.families import Family, family_of
from cpbpe.training.progress import Display
from cpbpe.training.report import Example, LeftOut, Reading
from cpbpe.training.word_counts import WordCounts, no_overflow
from cpbpe.training.words_file import BLOCK_WORDS, join_words, slice_words

BUCKETS = 64
"""Words are divided among this many buckets by a hash, so a word has the same bucket in all parts.

A worker that merges a bucket holds that share of all distinct words, and no more: of a hundred million words,
one and a half million.
"""
_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_BYTES = 8

FAN_IN = 16
"""This many rows are merged at once. A task has to hold them, and their merged words, in memory."""

MOST_BYTES = 1 << 29
"""About the most bytes of a row, because Ray and Spark have trouble with values of gigabytes."""

LITTLE = 1 << 28
"""Up to this many bytes in all, rows are merged by the process that calls."""

BUCKET, PART = "bucket", "part"
"""The columns of rows: the number of a bucket, and what a task has made of a part, as bytes."""
Row = tuple[int, bytes]
"""The number of a bucket, and its words in a part with what was read, pickled."""


@dataclass(frozen=True)
class Counting:
    """Counts the texts of a column. It is sent to every worker."""

    column: str
    """The name of the column."""
    family: Family
    """What is counted, for which family of models."""
    memory_limit: int | None
    """About how many bytes the counts of one part may take in memory."""
    min_count: int
    """Words that occur less often are left out at the end."""

    def count(self, columns: Iterable[Column], buckets: int = BUCKETS) -> list[Row]:
        """The counts of a part of the dataset, whose texts come as arrays or chunked arrays."""
        corpus = ColumnCorpus(columns, self.family)
        how = ReadingOptions(1, memory_limit=self.memory_limit)
        with Display(False) as display:
            counts = WordCounts.of(corpus, self.family, how, display)
        return _rows(by_bucket(counts.words, buckets), without_places(counts.reading))

    def merge(self, rows: Iterable[Row]) -> list[Row]:
        """Merge the rows of each bucket into one. At most `FAN_IN` rows of a bucket are in memory."""
        parts: dict[int, list[Words]] = {}
        reading = Reading()
        with no_overflow():
            for bucket, row in rows:
                words, own = pickle.loads(row)
                waiting = parts.setdefault(bucket, [])
                waiting.append(words)
                reading = without_places(reading + own)
                if len(waiting) == FAN_IN:
                    waiting[:] = [merge_words(waiting)]
            merged = [
                (bucket, waiting[0] if len(waiting) == 1 else merge_words(waiting))
                for bucket, waiting in sorted(parts.items())
            ]
        return _rows(merged, reading)

    def result(self, rows: Iterable[bytes]) -> WordCounts:
        """The counts of the whole dataset, from a row for each bucket, or from those of few parts."""
        parts: list[Words] = []
        reading = Reading()
        for row in rows:
            words, own = pickle.loads(row)
            parts.append(words)
            reading = without_places(reading + own)
        with no_overflow():
            words = merge_words(parts) if parts else Words(b"", b"", b"")
        del parts
        warnings: list[str] = []
        counts = np.frombuffer(words.counts, "<u8")
        often = counts >= self.min_count
        if not often.all():
            rare, left_out = int((~often).sum()), int(counts[~often].sum())
            warnings.append(
                f"{counted(rare, 'distinct word')} with fewer than {self.min_count:,} occurrences "
                f"({left_out:,} in all) {'was' if rare == 1 else 'were'} left out, because of min_count"
            )
            words = _picked(words, np.flatnonzero(often))
        if reading.not_utf8:
            warnings.append(
                f"{counted(reading.not_utf8, 'text')} in the column {self.column!r} "
                f"{'is' if reading.not_utf8 == 1 else 'are'} not valid UTF-8; what is no character is "
                "trained on as U+FFFD"
            )
        return WordCounts(self.family.setup, words, replace(reading, warnings=tuple(warnings)))


def counting(
    column: Any, preset: str | AnyOptions, memory_limit: Any, min_count: Any, options: dict[str, Any]
) -> Counting:
    """A `Counting` of these arguments, which are checked before any work starts."""
    if isinstance(min_count, bool) or not isinstance(min_count, int) or min_count < 1:
        raise ValueError(f"min_count must be an integer, at least 1, not {min_count!r}")
    if not isinstance(column, str):
        raise TypeError(f"{named('column')} must be the name of a column, not {column!r}")
    complete = complete_options(preset, options)
    if isinstance(complete, ByteTrainOptions):
        if complete.ties == "minbpe":
            raise TrainingError(
                f"{named('ties')} is 'minbpe', which depends on the order of the texts, and a cluster keeps "
                "none; use the ties of tokenizers, or count on one machine"
            )
    else:
        if complete.input_sentence_size:
            raise TrainingError(
                f"{named('input_sentence_size')} chooses by the order of the texts, and a cluster keeps "
                "none; take a sample of the dataset instead"
            )
        if complete.record_paths:
            raise TrainingError(f"{named('record_paths')}: a dataset has no paths; leave it out")
    return Counting(column, family_of(complete), checked_memory_limit(memory_limit), min_count)


def without_places(reading: Reading) -> Reading:
    """What was read, without what depends on how the dataset was cut into parts.

    The number of a text within a part would tell users nothing. Of the examples of all parts, those whose
    texts sort first are kept, so that the result does not depend on the order in which parts are added.
    """
    left_out = {}
    for reason, skipped in sorted(reading.left_out.items()):
        texts = sorted({example.text for example in skipped.examples})[:EXAMPLES]
        left_out[reason] = LeftOut(
            skipped.sentences, skipped.bytes, tuple(Example("the dataset", text) for text in texts)
        )
    return replace(reading, left_out=left_out, warnings=())


def _rows(parts: list[tuple[int, Words]], reading: Reading) -> list[Row]:
    """Words and what was read as rows: at least one, and none that is too large."""
    made: list[Row] = []
    for bucket, words in parts or [(0, Words(b"", b"", b""))]:
        size = len(words.blob) + len(words.ends) + len(words.counts)
        step = max(1, len(words) * MOST_BYTES // max(size, 1))
        for at in range(0, max(len(words), 1), step):
            part = words if step >= len(words) else slice_words(words, at, min(at + step, len(words)))
            value = (part, Reading() if made else reading)
            made.append((bucket, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)))
    return made


# --- The texts of columns ----------------------------------------------------------------------------


class ColumnCorpus(Corpus):
    r"""Columns with texts. Each text counts like an item of an iterable; nulls are left out.

    >>> import pyarrow
    >>> from cpbpe.training.options import TrainOptions
    >>> family = family_of(TrainOptions())
    >>> columns = [pyarrow.array(["one", None, "two\n"]), pyarrow.array(["a\nb"])]
    >>> [block.lines or block.sentences for block in ColumnCorpus(columns, family).blocks()]
    [b'one\ntwo\n', [b'a\nb']]
    """

    def __init__(self, columns: Iterable[Column], family: Family):
        super().__init__(iter(()), family.setup.spec)
        self._columns = columns

    def _blocks_of_items(self) -> Iterator[Block]:
        first = 1
        for column in self._columns:
            for chunk in chunks_of(column):
                # Dictionaries are decoded in parts, because they grow. The others are made plain at once:
                # pyarrow before version 22 cannot tell the size of views.
                if not isinstance(chunk, pyarrow().DictionaryArray):
                    chunk = plain(chunk, "count")
                rows = max(PART_BYTES * len(chunk) // max(chunk.nbytes, 1), 1)
                for begin in range(0, len(chunk), rows):
                    part = plain(chunk.slice(begin, rows), "count")
                    self.nulls += part.null_count
                    part = part.drop_null()
                    yield self._block_of(part, first)
                    first += len(part)

    def _block_of(self, part: Column, first: int) -> Block:
        if not self._keep:
            lines = as_a_line_each(part.cast(pyarrow().large_binary()))
            if lines is not None:
                return Block("item", first, lines)
        texts = texts_of(part, "count")
        sentences = texts.as_bytes(texts.begins, texts.ends)
        return Block("item", first, None, [self._checked_text(sentence, first) for sentence in sentences])


# --- Buckets -----------------------------------------------------------------------------------------


def by_bucket(words: Words, buckets: int) -> list[tuple[int, Words]]:
    """The words of each bucket that has any, still sorted."""
    if buckets == 1:
        return [(0, words)]
    of_buckets: list[list[Words]] = [[] for _ in range(buckets)]
    for begin in range(0, len(words), BLOCK_WORDS):
        block = slice_words(words, begin, min(begin + BLOCK_WORDS, len(words)))
        own = _hashes(block) % np.uint64(buckets)
        order = np.argsort(own, kind="stable")
        block = _picked(block, order)
        bounds = np.searchsorted(own[order], np.arange(buckets + 1, dtype=np.uint64)).tolist()
        for bucket, (first, last) in enumerate(pairwise(bounds)):
            if first < last:
                of_buckets[bucket].append(slice_words(block, first, last))
    return [(bucket, join_words(parts)) for bucket, parts in enumerate(of_buckets) if parts]


def _picked(words: Words, order: NDArray[np.int64]) -> Words:
    """Some of the words, by their indices, in this order."""
    ends = np.frombuffer(words.ends, "<u8").astype(np.int64)
    lengths = np.diff(ends, prepend=0)[order]
    new_ends = np.cumsum(lengths)
    # Each byte keeps its distance from the end of its word.
    places = np.arange(new_ends[-1] if len(order) else 0) + np.repeat(ends[order] - new_ends, lengths)
    blob = np.frombuffer(words.blob, np.uint8)[places]
    counts = np.frombuffer(words.counts, "<u8")[order]
    return Words(blob.tobytes(), new_ends.astype("<u8").tobytes(), counts.tobytes())


def _hashes(words: Words) -> NDArray[np.uint64]:
    """A number for each word, from its length, its first and its last eight bytes.

    Few words agree in all of these, and it does no harm if such words are in one bucket.
    """
    ends = np.frombuffer(words.ends, "<u8").astype(np.int64)
    lengths = np.diff(ends, prepend=0)
    padded = np.frombuffer(bytes(_BYTES) + words.blob + bytes(_BYTES), np.uint8)
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
    """Each row of eight bytes as a little-endian number."""
    return np.ascontiguousarray(rows).view("<u8").reshape(-1)
