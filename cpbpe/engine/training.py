"""The engines of training, and the choice between them, for both families of models.

Only bytes, numbers and the specs themselves cross the border to the compiled core, which reads their fields
by name. `cpbpe.reference.training` is the plain Python engine, and `cpbpe.reference.byte_level.training` that
of byte-level models; the core must answer with the same values.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import importing
from cpbpe.reference.training_values import (
    ByteCountSpec,
    ByteLearnSpec,
    CountSpec,
    Learned,
    LearnSpec,
    Progress,
    Skipped,
    Tallies,
    Words,
)

if TYPE_CHECKING:
    from cpbpe.reference.training import WordCounter


Counter: TypeAlias = "WordCounter | _CoreCounter"
"""Turns text into words with counts. `WordCounter` says what the methods of both do."""


def make_counter(spec: CountSpec | ByteCountSpec) -> Counter:
    """A counter of the best available engine, or of the one that CPBPE_ENGINE names.

    A pattern that is not a regular expression raises a ValueError.
    """
    if engine_name() != "reference":
        return _CoreCounter(spec)
    with importing:
        from cpbpe.reference.byte_level.training import ReferenceByteCounter
        from cpbpe.reference.training import ReferenceCounter
    return ReferenceByteCounter(spec) if isinstance(spec, ByteCountSpec) else ReferenceCounter(spec)


def learn(
    words: Words, spec: LearnSpec | ByteLearnSpec, threads: int = 1, progress: Progress | None = None
) -> Learned:
    """Learn merges from words. Counts that add up to 2**63 or more raise an OverflowError."""
    if engine_name() != "reference":
        with importing:
            from cpbpe import _core
        answer = _core.learn(_columns(words), spec, threads=threads, progress=progress)
        return Learned(**{name: _value(value) for name, value in answer.items()})
    with importing:
        from cpbpe.reference.byte_level.training import learn_words
        from cpbpe.reference.training import learn as learn_pieces
    if isinstance(spec, ByteLearnSpec):
        return learn_words(words, spec, progress)
    return learn_pieces(words, spec, progress)


def merge_words(parts: Sequence[Words]) -> Words:
    """One list of words from several, with counts added up. A sum of 2**63 or more raises an OverflowError.

    If the lists record where words were first seen, the earliest place of each is kept.
    """
    if engine_name() == "reference":
        with importing:
            from cpbpe.reference import training
        return training.merge_words(parts)
    with importing:
        from cpbpe import _core
    return Words(*_core.merge_words(list(map(_columns, parts))))


def _columns(words: Words) -> tuple[bytes, bytes, bytes, bytes]:
    return words.blob, words.ends, words.counts, words.firsts


def _value(value: Any) -> Any:
    """A field of `Learned` from what the core returns for it: u64 as bytes, lists, numbers."""
    if isinstance(value, (bytes, bytearray)):
        column = array("Q")
        column.frombytes(value)
        return column
    return tuple(value) if isinstance(value, list) else value


class _CoreCounter:
    """A counter of the core, with the values of this package instead of the core's tuples."""

    def __init__(self, spec: CountSpec | ByteCountSpec):
        with importing:
            from cpbpe import _core
        core = self._core = _core.Counter(spec)
        self._in_lines = isinstance(spec, CountSpec) and not spec.keep_newlines
        self.distinct, self.memory = core.distinct, core.memory

    def add(self, texts: Sequence[bytes], counts: Sequence[int] | None = None, threads: int = 1) -> None:
        if self._in_lines and threads > 1 and counts is None and texts:
            lines = b"\n".join(texts) + b"\n"
            if lines.count(b"\n") == len(texts):  # no text has a newline in it, so threads can share them
                self._core.add_block(lines, threads)
                return
        self._core.add(list(texts), None if counts is None else list(counts), threads)

    def add_block(self, data: bytes, threads: int = 1) -> None:
        self._core.add_block(data, threads)

    def add_part(self, data: bytes, threads: int = 1) -> None:
        self._core.add_part(data, threads)

    def end_text(self, threads: int = 1) -> None:
        self._core.end_text(threads)

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        return self._core.prepare(list(sentences))

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        self._core.add_prepared(list(sentences), None if counts is None else list(counts))

    def tallies(self) -> Tallies:
        sentences, total, skipped, broken = self._core.tallies()
        left_out = {
            reason: Skipped(number, size, tuple(examples))
            for reason, (number, size, examples) in skipped.items()
        }
        return Tallies(sentences, total, left_out, broken)

    def drain(self) -> Words:
        return Words(*self._core.drain())
