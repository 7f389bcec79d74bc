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
from dataclasses import asdict
from typing import Any, BinaryIO, NamedTuple

from cpbpe.engine.choice import say_if_slow
from cpbpe.engine.training import merge_words
from cpbpe.errors import TrainingError
from cpbpe.model.writing import write_all
from cpbpe.reference.training_values import Words
from cpbpe.spelling import counted
from cpbpe.training.arguments import check_arguments, checked_memory_limit, takes_a_corpus, threads_or_all
from cpbpe.training.byte_level.counting import ByteCountSetup, after, byte_count_setup, count_texts, in_order
from cpbpe.training.corpus import Corpus, Source
from cpbpe.training.counting import CountSetup, count_corpus, count_setup
from cpbpe.training.options import AnyOptions, ByteTrainOptions, complete_options
from cpbpe.training.progress import Display, ProgressOption
from cpbpe.training.report import Reading
from cpbpe.training.settings import charsmap_of
from cpbpe.training.words_file import join_words, read_words, write_words

MAGIC = b"CPBPEWC1"
_MAX_HEADER = 1 << 26


class ReadingOptions(NamedTuple):
    """How a corpus is read; `cpbpe.train` explains these arguments."""

    threads: int | None = None
    """How many threads count."""
    format: str | None = None
    """The format of files."""
    field: str = "text"
    """Where the text is in JSON Lines."""
    column: str | int | None = None
    """Where the text is in a table."""
    memory_limit: int | str | None = None
    """About how many bytes the counts may take in memory."""
    raw: bool = False
    """Whether paths are taken as they are, and files are not decompressed."""

    def corpus(self, source: Source, options: AnyOptions) -> Corpus:
        """The source, ready to be read in this way."""
        if isinstance(options, ByteTrainOptions):
            return Corpus(
                source,
                format=self.format,
                field=self.field,
                column=self.column,
                documents=True,
                split_lines=options.split_lines,
                raw=self.raw,
            )
        return Corpus(
            source,
            format=self.format,
            field=self.field,
            column=self.column,
            keep_newlines=options.keep_newlines,
            longest=options.max_sentence_length,
            raw=self.raw,
        )


class WordCounts:
    """The words of a corpus with their counts. Immutable.

    >>> counts = WordCounts.build(["the cat and the hat"])
    >>> counts
    <cpbpe.WordCounts: 4 distinct words from 1 text>
    >>> dict(counts)
    {'▁and': 1, '▁cat': 1, '▁hat': 1, '▁the': 2}
    """

    __slots__ = ("reading", "setup", "words")

    setup: CountSetup | ByteCountSetup
    """What the counts depend on."""
    words: Words
    """The words, as engines take them."""
    reading: Reading
    """What was read, and what was left out."""

    def __init__(self, setup: CountSetup | ByteCountSetup, words: Words, reading: Reading):
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
        check_arguments(threads, field, column, progress)
        complete = complete_options(preset, options)
        reading_options = ReadingOptions(threads, format, field, column, memory_limit)
        with Display(progress) as display:
            charsmap = b"" if isinstance(complete, ByteTrainOptions) else charsmap_of(complete)
            counts = cls.of(source, complete, charsmap, reading_options, display)
        warn(counts.reading.warnings)
        return counts

    @classmethod
    def of(
        cls,
        source: Source,
        options: AnyOptions,
        charsmap: bytes,
        reading_options: ReadingOptions,
        display: Display,
    ) -> WordCounts:
        """Like `build`, with complete options, a compiled charsmap and an open display."""
        limit = checked_memory_limit(reading_options.memory_limit)
        threads = threads_or_all(reading_options.threads)
        corpus = source
        if not isinstance(source, Corpus):
            corpus = reading_options.corpus(source, options)
        say_if_slow()
        if isinstance(options, ByteTrainOptions):
            byte_setup = byte_count_setup(options)
            with no_overflow():
                return cls(byte_setup, *count_texts(corpus, byte_setup, threads, limit, display))
        setup = count_setup(options, charsmap)
        with no_overflow():
            words, reading = count_corpus(
                corpus,
                setup,
                options.pretokenizer,
                options.allow_inconsistent_pretokenization,
                threads,
                limit,
                display,
            )
        return cls(setup, words, reading)

    def check_setup(self, options: AnyOptions, charsmap: bytes) -> None:
        """Raise a TrainingError if the counts were made with other options than these."""
        wanted: CountSetup | ByteCountSetup
        if isinstance(options, ByteTrainOptions):
            wanted = byte_count_setup(options)
        else:
            wanted = count_setup(options, charsmap)
        if isinstance(self.setup, ByteCountSetup):
            different = self.setup.missing_for(wanted)
        else:
            different = self.setup.differences(wanted)
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
        # Where words were first seen: the texts of each come after those of the counts before it.
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
            reader = _Reader(file)
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
        writer = _Writer(file)
        header = json.dumps({"setup": self.setup.to_dict(), "reading": asdict(self.reading)}).encode()
        writer.write(MAGIC + len(header).to_bytes(8, "little") + header)
        write_words(writer, self.words)  # type: ignore[arg-type]
        file.write(writer.crc.to_bytes(4, "little"))

    @classmethod
    def _read(cls, reader: _Reader) -> WordCounts:
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
        setup: CountSetup | ByteCountSetup
        if "byte_level" in header["setup"]:
            setup = ByteCountSetup.from_dict(header["setup"])
            words = join_words(read_words(reader.read, trusted=False, ordered=setup.spec.ordered))
        else:
            setup = CountSetup.from_dict(header["setup"])
            words = join_words(read_words(reader.read, trusted=False))
        crc = reader.crc
        stored = reader.read(5)  # one byte more than there should be, to notice trailing data
        if len(stored) < 4:
            raise EOFError
        if stored != crc.to_bytes(4, "little"):
            raise ValueError("its checksum is wrong; copy it again")
        return cls(setup, in_order(words), Reading.from_dict(header["reading"]))


class _Writer:
    def __init__(self, file: BinaryIO):
        self._file = file
        self.crc = 0

    def write(self, data: bytes) -> None:
        self.crc = zlib.crc32(data, self.crc)
        self._file.write(data)


class _Reader:
    def __init__(self, file: BinaryIO):
        self._file = file
        self.crc = 0

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.crc = zlib.crc32(data, self.crc)
        return data


def warn(texts: Iterable[str]) -> None:
    """Warn the caller of `train` or `build` about problems of the corpus. Not everybody reads reports."""
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
