"""`WordCounts`: a counted corpus. It can be saved, merged with others, and trained on many times.

Counting is most of the work, and the parts of a corpus can be counted in any order, on many machines. The
rest of training needs all the words, but those are few. Merged counts give the same model as one run over
everything, byte for byte.

The file: the 8 bytes ``CPBPEWC1``; the length of a header (u64, little-endian) and the header, in JSON;
the words as `cpbpe.training.words_file` describes; the CRC-32 of all of this (u32).
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, BinaryIO

from cpbpe.checks import threads_or_all
from cpbpe.corpus.files import shown_path
from cpbpe.engine.choice import say_if_slow
from cpbpe.engine.training import merge_words
from cpbpe.errors import TrainingError
from cpbpe.lazy import importing
from cpbpe.model.writing import write_all
from cpbpe.reference.training_values import ByteCountSpec, Words
from cpbpe.spelling import counted
from cpbpe.training.arguments import ReadingOptions, takes_a_corpus
from cpbpe.training.byte_options import AnyOptions, complete_options
from cpbpe.training.corpus import Corpus, Source, warnings_of_files
from cpbpe.training.counting import Counting, CountSetup
from cpbpe.training.families import Family, family_of
from cpbpe.training.progress import Display, ProgressOption
from cpbpe.training.report import Reading
from cpbpe.training.words_file import Runs, join_words, read_words, write_words

MAGIC = b"CPBPEWC1"
_MAX_HEADER = 1 << 26
_SPILL_SHARE = 3  # counts may take a third of the limit, because words are copied when they are sorted


class WordCounts:
    """The words of a corpus with their counts. Immutable.

    >>> counts = WordCounts.build(["the cat and the hat"])
    >>> counts
    <cpbpe.WordCounts: 4 distinct words from 1 text>
    >>> dict(counts)
    {'▁and': 1, '▁cat': 1, '▁hat': 1, '▁the': 2}
    """

    __slots__ = ("reading", "setup", "words")

    setup: CountSetup
    """What the counts depend on."""
    words: Words
    """The words, as engines take them."""
    reading: Reading
    """What was read, and what was left out."""

    def __init__(self, setup: CountSetup, words: Words, reading: Reading):
        for name, value in (("setup", setup), ("words", words), ("reading", reading)):
            object.__setattr__(self, name, value)

    @classmethod
    @takes_a_corpus
    def build(
        cls,
        source: Source,
        *,
        preset: str | AnyOptions = "llama2",
        threads: int | None = None,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        memory_limit: int | str | None = None,
        progress: ProgressOption = None,
        **options: Any,
    ) -> WordCounts:
        """Count a corpus. The arguments are those of `cpbpe.train`.

        Only some options matter here: how text is normalized, what special pieces there are, where a piece
        must end, and which sentences are read. `cpbpe.train` must be given the same ones later.
        """
        reading_options = ReadingOptions.checked(threads, format, field, column, memory_limit, progress)
        family = family_of(complete_options(preset, options))
        with Display(progress) as display:
            corpus = reading_options.corpus(source, family.setup)
            counts = cls.of(corpus, family, reading_options, display)
        warn(counts.reading.warnings)
        return counts

    @classmethod
    def of(
        cls, corpus: Corpus, family: Family, reading_options: ReadingOptions, display: Display
    ) -> WordCounts:
        """Like `build`, with complete options and an open display."""
        say_if_slow()
        setup, limit = family.setup, reading_options.memory_limit
        work = Counting(family.options, setup, threads_or_all(reading_options.threads))
        with no_overflow(), Runs() as runs:

            def spill() -> None:
                if limit is not None and work.counter.memory() > limit // _SPILL_SHARE:
                    runs.add(work.counter.drain())

            for block in corpus.blocks():
                needs_more = work.take(block)
                spill()
                display.update("reading", corpus.read, corpus.total)
                if not needs_more:
                    break
            for batch in work.sampled():
                work.count(batch)
                spill()
                display.update("sampled", batch.first - 1 + len(batch.sentences), work.chosen)
            words = runs.merge(work.counter.drain(), lambda number: display.update("joining", number, None))
            reading = replace(
                work.reading(),
                files=corpus.file_count,
                files_left_out=tuple(map(shown_path, corpus.left_out)),
                links_left_out=tuple(map(shown_path, corpus.again)),
                nulls=corpus.nulls,
                not_utf8=work.broken.sentences,
                warnings=(*work.broken.warnings(), *warnings_of_files(corpus)),
                spilled_runs=len(runs),
                spilled_bytes=runs.bytes,
                by_line=setup.split_lines or not setup.spec.byte_level,
            )
        return cls(setup, in_order(words), reading)

    def check_setup(self, wanted: CountSetup) -> None:
        """Raise a TrainingError if the counts were made with other options than these."""
        different = self.setup.differences(wanted.with_order_of(self.setup))
        if different:
            raise TrainingError(
                "the counts were made with other options than this training uses; give the same options, or "
                f"count again; these differ: {', '.join(different)}"
            )

    def merge(self, *others: WordCounts) -> WordCounts:
        """The counts of several corpora together. They must have been made with the same options.

        >>> one, two = WordCounts.build(["a b"]), WordCounts.build(["b c"])
        >>> dict(one.merge(two))
        {'▁a': 1, '▁b': 2, '▁c': 1}
        >>> one.merge(WordCounts.build(["a b"], split_digits=False))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        cpbpe.errors.TrainingError: counts made with different options ...: split_digits (True and False)
        """
        reading = self.reading
        for other in others:
            if not isinstance(other, WordCounts):
                raise TypeError(f"merge() takes WordCounts, not {type(other).__name__}")
            different = self.setup.differences(other.setup)
            if different:
                raise TrainingError(
                    "counts made with different options cannot be merged; "
                    f"these differ: {', '.join(different)}"
                )
            reading = reading + other.reading
        if not others:
            return self
        # If it is recorded in which order words were first seen, those of each part come after earlier ones.
        # (`in_order` has numbered the words of each part from 0.)
        parts = [self.words]
        for other in others:
            parts.append(after(other.words, sum(map(len, parts))))
        with no_overflow():
            return WordCounts(self.setup, in_order(merge_words(parts)), reading)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file for `load`. An existing file is replaced in one step, so it is never half written."""
        write_all({os.fspath(path): self._write})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordCounts:
        """Read a file that `save` wrote."""
        with open(path, "rb") as file:
            reader = _Checked(file)
            try:
                return cls._read(reader)
            except EOFError:
                problem = "it is cut off; copy it again"
            except RecursionError:
                problem = "its header is nested too deeply"
            except KeyError as error:
                problem = f"its header lacks {error}"
            except (ValueError, TypeError, AttributeError, OverflowError) as error:
                problem = str(error)
        raise TrainingError(f"{os.fspath(path)}: not a file of word counts: {problem}")

    def characters(self) -> dict[str, int]:
        """Every character of the normalized corpus with its count, most frequent first."""
        counts: dict[str, int] = {}
        for word, count in self:
            for character in word:
                counts[character] = counts.get(character, 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def __iter__(self) -> Iterator[tuple[str, int]]:
        begin = 0
        for end, count in zip(array("Q", self.words.ends), array("Q", self.words.counts), strict=True):
            yield self.words.blob[begin:end].decode(), count
            begin = end

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordCounts):
            return NotImplemented
        return self.setup == other.setup and self.words == other.words

    def __hash__(self) -> int:
        return hash((self.setup, self.words))

    def __repr__(self) -> str:
        read = counted(self.reading.sentences, self.reading.unit)
        return f"<cpbpe.WordCounts: {counted(len(self), 'distinct word')} from {read}>"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"WordCounts do not change; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return WordCounts, (self.setup, self.words, self.reading)

    def _write(self, file: BinaryIO) -> None:
        writer = _Checked(file)
        header = json.dumps({"setup": self.setup.to_dict(), "reading": asdict(self.reading)}).encode()
        writer.write(MAGIC + len(header).to_bytes(8, "little") + header)
        write_words(writer, [self.words])
        file.write(writer.crc.to_bytes(4, "little"))

    @classmethod
    def _read(cls, reader: _Checked) -> WordCounts:
        magic = reader.read(len(MAGIC))
        if magic != MAGIC:
            if magic[:-1] == MAGIC[:-1] and len(magic) == len(MAGIC):
                raise ValueError(
                    f"its version is {magic[-1:].decode(errors='replace')!r}, and this reads '1'"
                )
            raise ValueError("it does not begin like one")
        size = int.from_bytes(reader.read(8), "little")
        if size > _MAX_HEADER:
            raise ValueError("its header is too long")
        data = reader.read(size)
        if len(data) < size:
            raise EOFError
        header = json.loads(data)
        setup = CountSetup.from_dict(header["setup"])
        ordered = isinstance(setup.spec, ByteCountSpec) and setup.spec.ordered
        words = join_words(read_words(reader.read, trusted=False, ordered=ordered))
        crc = reader.crc
        stored = reader.read(5)  # one byte more than there should be, to notice trailing data
        if len(stored) < 4:
            raise EOFError
        if stored != crc.to_bytes(4, "little"):
            raise ValueError("its checksum is wrong; copy it again")
        return cls(setup, in_order(words), Reading.from_dict(header["reading"]))


class _Checked:
    """A file, and the CRC-32 of everything written to it or read from it so far."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.crc = 0

    def write(self, data: bytes) -> None:
        self.crc = zlib.crc32(data, self.crc)
        self._file.write(data)

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.crc = zlib.crc32(data, self.crc)
        return data


def warn(texts: Iterable[str]) -> None:
    """Warn the caller of `train` or `build` about problems of the corpus, for those who read no reports."""
    for text in texts:
        warnings.warn(text, stacklevel=3)


@contextmanager
def no_overflow() -> Iterator[None]:
    """Turn an engine's OverflowError into a TrainingError that says what to do."""
    try:
        yield
    except OverflowError as error:
        raise TrainingError(
            "the counts add up to 2**63 or more, which is more than they can hold; divide the counts"
        ) from error


# --- The order of words ---------------------------------------------------------------------------


def in_order(words: Words) -> Words:
    """The words, numbered 0, 1, 2 ... in the order in which they were first seen.

    The places themselves depend on how the corpus was counted; the numbers do not, so counts of equal texts
    are equal. Words without that order are returned as they are.
    """
    if not words.firsts:
        return words
    with importing:
        import numpy as np
    order = np.argsort(np.frombuffer(words.firsts, "<u8"), kind="stable")
    ranks = np.empty(len(order), "<u8")
    ranks[order] = np.arange(len(order), dtype="<u8")
    return replace(words, firsts=ranks.tobytes())


def after(words: Words, others: int) -> Words:
    """The words as if they had been seen after this many other words."""
    if not words.firsts:
        return words
    with importing:
        import numpy as np
    return replace(words, firsts=(np.frombuffer(words.firsts, "<u8") + np.uint64(others)).tobytes())
