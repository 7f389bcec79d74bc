"""The engines of training: what they offer, and which one does the work.

Only bytes, numbers and the specs themselves cross the border to the compiled core, which reads their fields
by name. `cpbpe.reference.training` is the plain Python engine; the core must answer with the same values.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cpbpe.engine.choice import engine_name
from cpbpe.reference.training_values import CountSpec, Learned, LearnSpec, Progress, Skipped, Tallies, Words


class WordCounter(Protocol):
    """What counters of both families offer."""

    def distinct(self) -> int:
        """How many different words there are."""

    def memory(self) -> int:
        """About how many bytes the words take."""

    def drain(self) -> Words:
        """Return all words and forget them; the tallies stay."""


class Counter(WordCounter, Protocol):
    """Turns text into words with counts. Sentences are bytes that may be invalid UTF-8."""

    def add(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        """Count sentences, each once or `counts` times (1 to 2**63 - 1)."""

    def add_block(self, data: bytes, threads: int = 1) -> None:
        r"""Count the lines of a part of a file: split at \n only; whole lines; the last may lack its \n."""

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        """The sentences normalized, with BOUNDARY for every symbol; None for one that is skipped.

        For a pretokenizer that is a Python function: it cuts these sentences, and the parts, joined
        by BOUNDARY, go to `add_prepared`. Tallies count a sentence here, not there.
        """

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        """Count sentences that `prepare` has prepared. They only need to be cut into words."""

    def add_words(self, words: Words) -> None:
        """Count words that another counter with the same spec has counted. No tallies."""

    def tallies(self) -> Tallies:
        """What was seen and what was skipped."""


def make_counter(spec: CountSpec) -> Counter:
    """A counter of the best available engine, or of the one that CPBPE_ENGINE names."""
    if engine_name() == "reference":
        from cpbpe.reference.training import ReferenceCounter

        return ReferenceCounter(spec)
    return _CoreCounter(spec)


def learn(words: Words, spec: LearnSpec, threads: int = 1, progress: Progress | None = None) -> Learned:
    """Learn merges from words. Counts that add up to 2**63 or more are an OverflowError."""
    if engine_name() == "reference":
        from cpbpe.reference import training

        return training.learn(words, spec, progress)
    from cpbpe import _core

    answer: dict[str, Any] = _core.learn(
        words.blob, words.ends, words.counts, spec, threads=threads, progress=progress
    )
    return Learned(**columns_of(answer))


def merge_words(parts: Sequence[Words]) -> Words:
    """One list of words from several, counts added up. A sum of 2**63 or more is an OverflowError.

    If it is recorded where words were first seen, the earliest place of each stays.
    """
    ordered = any(part.firsts for part in parts)
    if engine_name() == "reference":
        from cpbpe.reference import byte_training, training

        return byte_training.merge_ordered_words(parts) if ordered else training.merge_words(parts)
    from cpbpe import _core

    if ordered:
        columns = [(part.blob, part.ends, part.counts, part.firsts) for part in parts]
        return Words(*_core.merge_ordered_words(columns))
    return Words(*_core.merge_words([(part.blob, part.ends, part.counts) for part in parts]))


def columns_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of what was learned from what the core returns for them: u64 as bytes, lists, numbers."""
    return {name: _column(value) for name, value in answer.items()}


def _column(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        column = array("Q")
        column.frombytes(value)
        return column
    return tuple(value) if isinstance(value, list) else value


class CoreWordCounter:
    """A counter of the core, with the values of this package instead of the core's tuples."""

    def __init__(self, core: Any):
        self._core = core

    def distinct(self) -> int:
        count: int = self._core.distinct()
        return count

    def memory(self) -> int:
        size: int = self._core.memory()
        return size

    def drain(self) -> Words:
        return Words(*self._core.drain())


class _CoreCounter(CoreWordCounter):
    def __init__(self, spec: CountSpec):
        from cpbpe import _core

        super().__init__(_core.Counter(spec))

    def add(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        self._core.add(list(sentences), None if counts is None else list(counts))

    def add_block(self, data: bytes, threads: int = 1) -> None:
        self._core.add_block(data, threads)

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        prepared: list[bytes | None] = self._core.prepare(list(sentences))
        return prepared

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        self._core.add_prepared(list(sentences), None if counts is None else list(counts))

    def add_words(self, words: Words) -> None:
        self._core.add_words(words.blob, words.ends, words.counts)

    def tallies(self) -> Tallies:
        # skipped: {reason: (sentences, bytes, examples)}
        sentences, total, skipped, broken = self._core.tallies()
        columns = skipped.items()
        left_out = {reason: Skipped(n, size, tuple(examples)) for reason, (n, size, examples) in columns}
        return Tallies(sentences, total, left_out, broken)
