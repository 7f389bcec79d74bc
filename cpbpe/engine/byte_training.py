"""The engines of byte-level training: what they offer, and which one does the work.

`cpbpe.reference.byte_training` is the plain Python engine; the core must answer with the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cpbpe.engine.choice import engine_name
from cpbpe.engine.training import CoreWordCounter, WordCounter, columns_of
from cpbpe.reference.training_values import (
    ByteCountSpec,
    ByteLearned,
    ByteLearnSpec,
    ByteTallies,
    Progress,
    Words,
)


class ByteCounter(WordCounter, Protocol):
    """Turns texts into words with counts. Texts are bytes that may be invalid UTF-8."""

    def add(self, texts: Sequence[bytes], counts: Sequence[int] | None = None, threads: int = 1) -> None:
        """Count texts, each once or `counts` times (1 to 2**63 - 1)."""

    def add_lines(self, data: bytes, threads: int = 1) -> None:
        r"""Count the lines of a part of a file, each with its \n: whole lines; the last may lack it."""

    def add_part(self, data: bytes, threads: int = 1) -> None:
        """Count the next part of one text. Parts end anywhere, even inside a character."""

    def end_text(self, threads: int = 1) -> None:
        """Say that the text has ended whose parts were given."""

    def tallies(self) -> ByteTallies:
        """What was seen; a text in parts is one when it has ended."""


def make_byte_counter(spec: ByteCountSpec) -> ByteCounter:
    """A counter of the best available engine. A pattern that is no regular expression is a ValueError."""
    if engine_name() == "reference":
        from cpbpe.reference.byte_training import ReferenceByteCounter

        return ReferenceByteCounter(spec)
    return _CoreByteCounter(spec)


def learn_bytes(
    words: Words, spec: ByteLearnSpec, threads: int = 1, progress: Progress | None = None
) -> ByteLearned:
    """Learn merges from words. Counts that add up to 2**63 or more are an OverflowError."""
    if engine_name() == "reference":
        from cpbpe.reference import byte_training

        return byte_training.learn_bytes(words, spec, progress)
    from cpbpe import _core

    answer: dict[str, Any] = _core.learn_bytes(
        words.blob, words.ends, words.counts, words.firsts, spec, threads=threads, progress=progress
    )
    return ByteLearned(**columns_of(answer))


class _CoreByteCounter(CoreWordCounter):
    def __init__(self, spec: ByteCountSpec):
        from cpbpe import _core

        super().__init__(_core.ByteCounter(spec.pattern or None, spec.ordered))

    def add(self, texts: Sequence[bytes], counts: Sequence[int] | None = None, threads: int = 1) -> None:
        self._core.add(list(texts), None if counts is None else list(counts), threads)

    def add_lines(self, data: bytes, threads: int = 1) -> None:
        self._core.add_lines(data, threads)

    def add_part(self, data: bytes, threads: int = 1) -> None:
        self._core.add_part(data, threads)

    def end_text(self, threads: int = 1) -> None:
        self._core.end_text(threads)

    def tallies(self) -> ByteTallies:
        return ByteTallies(*self._core.tallies())
