"""Counting in parts: each part of a dataset becomes a row, and rows are merged until a few are left.

A row holds some words of its part, those of one bucket, and what was read. Addition has no order, so neither
have the rows; and a task that is done again gives the same rows again, which stand in the place of the first.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cpbpe.arrow import Column
from cpbpe.engine.training import merge_words
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import EXAMPLES, Words
from cpbpe.scale.buckets import BUCKETS, by_bucket
from cpbpe.scale.column_corpus import ColumnCorpus
from cpbpe.spelling import counted, named
from cpbpe.training.arguments import checked_memory_limit
from cpbpe.training.byte_level.counting import ByteCountSetup, byte_count_setup
from cpbpe.training.counting import CountSetup, count_setup
from cpbpe.training.options import AnyOptions, ByteTrainOptions, complete_options
from cpbpe.training.progress import Display
from cpbpe.training.report import Example, LeftOut, Reading
from cpbpe.training.settings import charsmap_of
from cpbpe.training.word_counts import ReadingOptions, WordCounts, no_overflow
from cpbpe.training.words_file import slice_words

FAN_IN = 16
"""This many rows are merged at once. A task has to hold them, and their merged words, in memory."""

MOST_BYTES = 1 << 29
"""About the most bytes of a row: no engine likes values of gigabytes."""

LITTLE = 1 << 28
"""Rows of so many bytes in all are nothing to the process that calls."""

Row = tuple[int, bytes]
"""A bucket, and the words of it in a part with what was read."""


@dataclass(frozen=True)
class Counting:
    """Counts the texts of a column. It is sent to every worker."""

    column: str
    """The name of the column."""
    options: AnyOptions
    """Complete options of a training."""
    charsmap: bytes
    """The compiled normalization rules."""
    memory_limit: int | None
    """About how many bytes the counts of one part may take in memory."""
    threads: int
    """How many threads count a part."""

    @property
    def setup(self) -> CountSetup | ByteCountSetup:
        """What the counts depend on."""
        if isinstance(self.options, ByteTrainOptions):
            return byte_count_setup(self.options)
        return count_setup(self.options, self.charsmap)

    def count(self, columns: Iterable[Column], buckets: int = BUCKETS) -> list[Row]:
        """The counts of a part of the dataset, whose texts come as arrays or chunked arrays."""
        corpus = ColumnCorpus(columns, self.options)
        how = ReadingOptions(self.threads, memory_limit=self.memory_limit)
        with Display(False) as display:
            counts = WordCounts.of(corpus, self.options, self.charsmap, how, display)
        return _rows(by_bucket(counts.words, buckets), without_places(counts.reading))

    def merge(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of each bucket as one. At most `FAN_IN` rows of a bucket are in memory."""
        parts: dict[int, list[Words]] = {}
        reading = Reading()
        with no_overflow():
            for bucket, row in rows:
                words, own = pickle.loads(row)
                found = parts.setdefault(bucket, [])
                found.append(words)
                reading = without_places(reading + own)
                if len(found) == FAN_IN:
                    found[:] = [merge_words(found)]
            merged = [
                (bucket, found[0] if len(found) == 1 else merge_words(found))
                for bucket, found in sorted(parts.items())
            ]
        return _rows(merged, reading)

    def result(self, rows: Iterable[bytes], min_count: int) -> WordCounts:
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
        if min_count > 1:
            words, warning = without_rare(words, min_count)
            reading = replace(reading, warnings=(*reading.warnings, *warning))
        if reading.not_utf8:
            warning = (
                f"{counted(reading.not_utf8, 'text')} in the column {self.column!r} "
                f"{'is' if reading.not_utf8 == 1 else 'are'} not valid UTF-8; what is no character is "
                "trained on as U+FFFD",
            )
            reading = replace(reading, warnings=(*reading.warnings, *warning))
        return WordCounts(self.setup, words, reading)


def counting(
    column: Any, preset: str | AnyOptions, memory_limit: Any, threads: int, options: dict[str, Any]
) -> Counting:
    """How to count, checked before any work starts."""
    if not isinstance(column, str):
        raise TypeError(f"{named('column')} must be the name of a column, not {column!r}")
    complete = complete_options(preset, options)
    if isinstance(complete, ByteTrainOptions):
        if complete.ties == "minbpe":
            raise TrainingError(
                f"{named('ties')} is 'minbpe', which depends on the order of the texts, and a cluster keeps "
                "none; use the ties of tokenizers, or count on one machine"
            )
        charsmap = b""
    else:
        if complete.input_sentence_size:
            raise TrainingError(
                f"{named('input_sentence_size')} chooses by the order of the texts, and a cluster keeps "
                "none; take a sample of the dataset instead"
            )
        if complete.record_paths:
            raise TrainingError(f"{named('record_paths')}: a dataset has no paths; leave it out")
        charsmap = charsmap_of(complete)
    return Counting(column, complete, charsmap, checked_memory_limit(memory_limit), threads)


def checked_min_count(number: Any) -> int:
    """The least count of words that are kept."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"min_count must be an integer, at least 1, not {number!r}")
    return number


def without_places(reading: Reading) -> Reading:
    """What was read, without what depends on how the dataset was cut into parts.

    Numbers of texts within a part say nothing to anybody. Of the examples that the parts give, the same few
    are kept in whatever order parts are added: the first by their text.
    """
    left_out = {}
    for reason, skipped in sorted(reading.left_out.items()):
        texts = sorted({example.text for example in skipped.examples})[:EXAMPLES]
        left_out[reason] = LeftOut(
            skipped.sentences, skipped.bytes, tuple(Example("the dataset", text) for text in texts)
        )
    return replace(reading, left_out=left_out, warnings=())


def without_rare(words: Words, min_count: int) -> tuple[Words, tuple[str, ...]]:
    """The words that occur often enough, and what to say about the others."""
    import numpy as np

    counts = np.frombuffer(words.counts, "<u8")
    ends = np.frombuffer(words.ends, "<u8").astype(np.int64)
    kept = counts >= min_count
    if kept.all():
        return words, ()
    lengths = np.diff(ends, prepend=0)
    blob = np.frombuffer(words.blob, np.uint8)[np.repeat(kept, lengths)]
    rare = int((~kept).sum())
    warning = (
        f"{counted(rare, 'distinct word')} with fewer than {min_count:,} occurrences "
        f"({int(counts[~kept].sum()):,} in all) {'was' if rare == 1 else 'were'} left out, "
        "because of min_count"
    )
    left = Words(blob.tobytes(), np.cumsum(lengths[kept]).astype("<u8").tobytes(), counts[kept].tobytes())
    return left, (warning,)


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
