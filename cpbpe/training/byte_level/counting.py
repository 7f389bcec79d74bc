"""From a corpus to counted chunks, for byte-level models: setups, reading, and the memory limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cpbpe.corpus.files import shown_path
from cpbpe.engine.training import make_counter
from cpbpe.errors import TrainingError
from cpbpe.lazy import numpy
from cpbpe.reference.training_values import ByteCountSpec, Words
from cpbpe.spelling import advised, counted, named, shown
from cpbpe.text.split_patterns import name_of
from cpbpe.text.utf8 import is_valid_utf8
from cpbpe.training.corpus import Block, Corpus, warnings_of_files
from cpbpe.training.options import ByteTrainOptions
from cpbpe.training.progress import Display
from cpbpe.training.report import LeftOut, Reading
from cpbpe.training.words_file import Runs

_SPILL_SHARE = 3  # the limit is divided by this, because words are copied when they are sorted
_MOST = 5  # at most this many files are named that are not UTF-8


@dataclass(frozen=True)
class ByteCountSetup:
    """Everything that the counts of a corpus depend on. Only counts of equal setups can be merged."""

    spec: ByteCountSpec
    """The part that an engine takes."""
    split_lines: bool = False
    """Whether each line of a text file was a text of its own."""

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        spec = {"pattern": self.spec.pattern, "ordered": self.spec.ordered}
        return {"byte_level": spec, "split_lines": self.split_lines}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ByteCountSetup:
        """The setup that `to_dict` turned into these values."""
        pattern, ordered = values["byte_level"]["pattern"], values["byte_level"]["ordered"]
        split_lines = values["split_lines"]
        if (type(pattern), type(ordered), type(split_lines)) != (str, bool, bool):
            raise ValueError("its pattern is no text, or a switch is neither true nor false")
        return cls(ByteCountSpec(pattern, ordered), split_lines)

    def differences(self, other: object) -> list[str]:
        """The options that differ, in words, with both values."""
        if not isinstance(other, ByteCountSetup):
            return [_FAMILIES]
        different: list[str] = []
        patterns = self.spec.pattern, other.spec.pattern
        if patterns[0] != patterns[1]:
            one, two = (shown(name_of(pattern) or pattern) for pattern in patterns)
            different.append(f"{named('pattern')} ({one} and {two})")
        if self.spec.ordered != other.spec.ordered:
            one, two = (shown("minbpe" if setup.spec.ordered else "tokenizers") for setup in (self, other))
            different.append(f"{named('ties')} ({one} and {two})")
        if self.split_lines != other.split_lines:
            different.append(
                f"{named('split_lines')} ({shown(self.split_lines)} and {shown(other.split_lines)})"
            )
        return different

    def missing_for(self, wanted: object) -> list[str]:
        """The options because of which a training cannot use these counts.

        Counts that know the order of their words serve both rules of ties.
        """
        if isinstance(wanted, ByteCountSetup) and self.spec.ordered:
            wanted = replace(wanted, spec=replace(wanted.spec, ordered=True))
        return self.differences(wanted)


_FAMILIES = "the family: one of them is byte-level"


def byte_count_setup(options: ByteTrainOptions) -> ByteCountSetup:
    """The part of the options that counts depend on."""
    splitter = options.splitter
    pattern = splitter.pattern if splitter is not None else ""
    return ByteCountSetup(ByteCountSpec(pattern, options.ties == "minbpe"), options.split_lines)


def count_texts(
    corpus: Corpus, setup: ByteCountSetup, threads: int, memory_limit: int | None, display: Display
) -> tuple[Words, Reading]:
    """Count all of a corpus."""
    work = _Counting(setup, threads)
    with Runs() as runs:
        for block in corpus.blocks():
            work.count(block)
            if memory_limit is not None and work.counter.memory() > memory_limit // _SPILL_SHARE:
                runs.add(work.counter.drain())
            display.update("reading", corpus.read, corpus.total)
        words = runs.merge(work.counter.drain(), lambda number: display.update("joining", number, None))
        tallies = work.counter.tallies()
        reading = Reading(
            sentences=tallies.sentences,
            bytes=tallies.size,
            left_out={"empty": LeftOut(tallies.skipped["empty"].sentences)}
            if tallies.skipped["empty"].sentences
            else {},
            files=corpus.file_count,
            files_left_out=tuple(map(shown_path, corpus.left_out)),
            links_left_out=tuple(map(shown_path, corpus.again)),
            nulls=corpus.nulls,
            not_utf8=tallies.broken,
            warnings=(*work.warnings(), *warnings_of_files(corpus)),
            spilled_runs=len(runs),
            spilled_bytes=runs.bytes,
            by_line=setup.split_lines,
        )
    return in_order(words), reading


def in_order(words: Words) -> Words:
    """The words with 0, 1, 2 ... for where each was first seen, so that equal texts give equal counts."""
    if not words.firsts:
        return words
    np = numpy()
    order = np.argsort(np.frombuffer(words.firsts, "<u8"), kind="stable")
    ranks = np.empty(len(order), "<u8")
    ranks[order] = np.arange(len(order), dtype="<u8")
    return replace(words, firsts=ranks.tobytes())


def after(words: Words, others: int) -> Words:
    """The words as if the text with that many other words came before theirs."""
    if not words.firsts:
        return words
    np = numpy()
    return replace(words, firsts=(np.frombuffer(words.firsts, "<u8") + np.uint64(others)).tobytes())


class _Counting:
    """A counter, with what it needs from Python: where texts are that are not UTF-8."""

    def __init__(self, setup: ByteCountSetup, threads: int):
        self._by_line = setup.split_lines
        self._threads = threads
        self._broken: dict[str, list[Any]] = {}  # by name: how many, and where the first is
        try:
            self.counter = make_counter(setup.spec)
        except ValueError as error:
            raise TrainingError(f"{named('pattern')}: {error}") from None

    def count(self, block: Block) -> None:
        """Count a block."""
        before = self.counter.tallies().broken
        if block.part is not None:
            self.counter.add_part(block.part, self._threads)
            if block.ends:
                self.counter.end_text(self._threads)
        elif block.lines is not None:
            self.counter.add_block(block.lines, self._threads)
        else:
            self.counter.add(block.sentences, block.counts, self._threads)
        broken = self.counter.tallies().broken - before
        if broken:
            where = block.name if block.part is not None else _first_broken(block)
            self._broken.setdefault(block.name, [0, where])[0] += broken

    def warnings(self) -> list[str]:
        """What to say about texts that are not UTF-8."""
        convert = advised(
            "convert it (iconv -f latin1 -t utf-8), or give open(path, encoding='latin-1')",
            "convert it (iconv -f latin1 -t utf-8)",
        )
        found: list[str] = []
        for name, (number, where) in list(self._broken.items())[:_MOST]:
            unit = "line" if self._by_line and name != "item" else "text"
            found.append(
                f"{counted(number, unit)} {'is' if number == 1 else 'are'} not valid UTF-8, the first in "
                f"{where}; what is no character is trained on as U+FFFD; if text is in another encoding, "
                f"such as Latin-1, {convert}"
            )
        more = len(self._broken) - _MOST
        if more > 0:
            found.append(f"{counted(more, 'more file')} with text that is not valid UTF-8")
        return found


def _first_broken(block: Block) -> str:
    texts = block.as_sentences(False)
    return next((block.where(at) for at, text in enumerate(texts) if not is_valid_utf8(text)), block.name)
