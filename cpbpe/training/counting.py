"""Counting the words of a corpus: what the counts depend on, sampling, the pretokenizer, and the tallies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from random import Random
from typing import Any

from cpbpe.corpus.records import encoded
from cpbpe.engine.training import make_counter
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import (
    BOUNDARY,
    EXAMPLE_BYTES,
    EXAMPLES,
    UNKNOWN,
    ByteCountSpec,
    CountSpec,
    PieceLimits,
    skip_reason,
)
from cpbpe.spelling import given, named, shown
from cpbpe.text.split_patterns import name_of
from cpbpe.text.utf8 import is_valid_utf8
from cpbpe.training.corpus import Block, Broken
from cpbpe.training.options import Pretokenizer
from cpbpe.training.report import Example, LeftOut, Reading

_BATCH = 1 << 14


# --- What counts depend on ------------------------------------------------------------------------


@dataclass(frozen=True)
class CountSetup:
    """Everything that the counts of a corpus depend on. Only counts of equal setups can be merged."""

    spec: CountSpec | ByteCountSpec
    """The part that an engine takes; it says which family the counts are for."""
    pretokenizer: str = ""
    """The name of the function that cuts sentences, if there is one."""
    sample: tuple[int, bool, int] | None = None
    """Size, shuffle and seed of the sample; None when all sentences count."""
    split_lines: bool = False
    """In byte-level training: whether each line of a text file was a text of its own."""

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        spec = asdict(self.spec)
        if self.spec.byte_level:
            return {"byte_level": spec, "split_lines": self.split_lines}
        spec["charsmap"] = spec["charsmap"].hex()
        spec["symbols"] = [symbol.decode() for symbol in spec["symbols"]]
        spec["delimiter"] = spec["delimiter"].decode()
        sample = list(self.sample) if self.sample else None
        return {"spec": spec, "pretokenizer": self.pretokenizer, "sample": sample}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CountSetup:
        """The setup that `to_dict` turned into these values.

        Other values raise a ValueError, KeyError, TypeError or AttributeError. (A file can hold anything.)
        """
        if "byte_level" in values:
            byte_spec = {name: values["byte_level"][name] for name in ("pattern", "ordered")}
            made = cls(ByteCountSpec(**byte_spec), split_lines=values["split_lines"])
        else:
            spec = dict(values["spec"])
            spec["limits"] = PieceLimits(**spec["limits"])
            spec["charsmap"] = bytes.fromhex(spec["charsmap"])
            spec["symbols"] = tuple(symbol.encode() for symbol in spec["symbols"])
            spec["delimiter"] = spec["delimiter"].encode()
            sample = values["sample"]
            made = cls(CountSpec(**spec), values["pretokenizer"], tuple(sample) if sample else None)
        example = cls(ByteCountSpec() if made.spec.byte_level else CountSpec())
        _check_types({**asdict(made), "sample": None}, asdict(example))
        if made.sample is not None and tuple(map(type, made.sample)) != (int, bool, int):
            raise ValueError("its sample is not a size, a choice and a seed")
        return made

    def differences(self, other: CountSetup) -> list[str]:
        """The options that differ, in words; for str, numbers and bool with both values."""
        if self.spec.byte_level != other.spec.byte_level:
            return ["the family: one of them is byte-level"]
        different: list[str] = []
        theirs = other._by_option()
        for name, value in self._by_option().items():
            if value == theirs[name]:
                continue
            if isinstance(value, (str, int, bool)):
                different.append(f"{named(name)} ({shown(value)} and {shown(theirs[name])})")
            elif isinstance(value, tuple):
                symbols = sorted(symbol.decode() for symbol in set(value) ^ set(theirs[name]))
                different.append(f"{name} ({', '.join(symbols[:5])}{', ...' if len(symbols) > 5 else ''})")
            else:
                different.append(name)
        return different

    def with_order_of(self, counted: CountSetup) -> CountSetup:
        """Return this setup, with the order of words if `counted` has it: that serves both rules for ties."""
        if isinstance(self.spec, ByteCountSpec) and isinstance(counted.spec, ByteCountSpec):
            return replace(self, spec=replace(self.spec, ordered=self.spec.ordered or counted.spec.ordered))
        return self

    def _by_option(self) -> dict[str, Any]:
        """The values by the names of their options. What is not an option is named in words, for messages."""
        spec = self.spec
        if isinstance(spec, ByteCountSpec):
            return {
                "pattern": name_of(spec.pattern) or spec.pattern,
                "ties": "minbpe" if spec.ordered else "tokenizers",
                "split_lines": self.split_lines,
            }
        sample = self.sample or (0, True, 0)
        return {
            **asdict(spec.limits),
            "the normalization rules": spec.charsmap,
            "add_dummy_prefix": spec.add_dummy_prefix,
            "remove_extra_whitespaces": spec.remove_extra_whitespaces,
            "the special pieces": spec.symbols,
            "pretokenization_delimiter": spec.delimiter.decode(),
            "pretokenizer": self.pretokenizer,
            "max_sentence_length": spec.max_sentence_length,
            "keep_newlines": spec.keep_newlines,
            "keep_reserved": not spec.skip_reserved,
            "input_sentence_size": sample[0],
            "shuffle_input_sentence": sample[1],
            "seed": sample[2],
        }


def _check_types(values: Mapping[str, Any], examples: Mapping[str, Any]) -> None:
    """Raise a ValueError for a value whose type is not that of its example."""
    for name, value in values.items():
        if isinstance(value, dict) and isinstance(examples[name], dict):
            _check_types(value, examples[name])
        elif type(value) is not type(examples[name]):
            raise ValueError(f"its {name} is {value!r:.40}")


# --- Counting -------------------------------------------------------------------------------------


class Sample:
    """Up to `size` of the sentences that are offered, each with the same chance (reservoir sampling).

    Without `shuffle` the sample is the first `size` sentences. sentencepiece draws a new sample in every run;
    this one depends only on the corpus and the seed.

    >>> sample = Sample(3, shuffle=True, seed=1)
    >>> for number in range(100):
    ...     _ = sample.offer(b"%d" % number, 1)
    >>> len(sample.sentences), sample.offered
    (3, 100)
    """

    def __init__(self, size: int, shuffle: bool, seed: int):
        self._size = size
        self._shuffle = shuffle
        self._random = Random(seed).random  # gives the same numbers on every machine and in every Python
        self.sentences: list[bytes] = []
        """The sentences chosen so far."""
        self.counts: list[int] = []
        """How many times each of them counts."""
        self.offered = 0
        """How many sentences there were to choose from."""

    def offer(self, sentence: bytes, count: int) -> bool:
        """Offer a sentence. Return False if no later one can be chosen, so that reading can end."""
        self.offered += 1
        if len(self.sentences) < self._size:
            self.sentences.append(sentence)
            self.counts.append(count)
            return self._shuffle or len(self.sentences) < self._size
        if self._shuffle:
            place = int(self._random() * self.offered)
            if place < self._size:
                self.sentences[place] = sentence
                self.counts[place] = count
        return self._shuffle


class Counting:
    """A counter, and the work around it: sampling, the pretokenizer, and where skipped lines are."""

    def __init__(self, options: Any, setup: CountSetup, threads: int):
        """`options`: those of training, of either family."""
        try:
            self.counter = make_counter(setup.spec)
        except ValueError as error:
            if setup.spec.byte_level:
                raise TrainingError(f"{named('pattern')}: {error}") from None
            raise TrainingError(str(error)) from None
        spec = setup.spec
        self._max_length = spec.max_sentence_length if isinstance(spec, CountSpec) else 0
        self._skips_reserved = isinstance(spec, CountSpec) and spec.skip_reserved
        self._pretokenizer: Pretokenizer | None = getattr(options, "pretokenizer", None)
        self._allows_inconsistent = getattr(options, "allow_inconsistent_pretokenization", False)
        self._threads = threads
        self._places: dict[tuple[str, int], str] = {}  # (reason, number of the example) -> where it is
        self._counted = 0  # sentences in earlier blocks
        self._broken_before = 0  # sentences that are not valid UTF-8, in earlier blocks
        self._dropped_bytes = 0  # bytes of lines that are too long, which blocks do not contain
        self.broken = Broken("text" if spec.byte_level and not setup.split_lines else "line", spec.byte_level)
        """The sentences that are not valid UTF-8."""
        self._sample = None
        # About the sentences that a sample is chosen from (the counter sees only the chosen ones):
        self._skipped: dict[str, LeftOut] = {}  # those that were left out, by reason
        self._sentences = self._bytes = 0  # how many there are, and how long they are together
        if setup.sample is not None:
            size, shuffle, seed = setup.sample
            self._sample = Sample(size, shuffle, seed)

    @property
    def chosen(self) -> int:
        """How many sentences are in the sample."""
        return len(self._sample.sentences) if self._sample else 0

    def take(self, block: Block) -> bool:
        """Count a block, or sample from it. Return False if no more blocks are needed."""
        if self._sample is None:
            self.count(block)
            return True
        sentences = block.as_sentences()
        # The counter sees only the chosen sentences, so sentences that are not valid UTF-8 are counted here.
        all_valid = block.lines is not None and is_valid_utf8(block.lines)
        broken, needs_more = 0, True
        for index, sentence in enumerate(sentences):
            size = len(sentence) + (block.dropped_bytes if index == 0 else 0)
            self._sentences += 1
            self._bytes += size
            reason = self._skip_reason(sentence)
            if reason is not None:
                skipped = self._skipped.get(reason, LeftOut())
                examples = skipped.examples
                if len(examples) < EXAMPLES:
                    text = sentence[:EXAMPLE_BYTES].decode(errors="replace")
                    examples = (*examples, Example(block.where(index), text))
                self._skipped[reason] = LeftOut(skipped.sentences + 1, skipped.bytes + size, examples)
                continue
            broken += not (all_valid or is_valid_utf8(sentence))
            needs_more = self._sample.offer(sentence, block.counts[index] if block.counts else 1)
            if not needs_more:
                break
        if broken:
            self.broken.add(block, broken, self._skip_reason)
        return needs_more

    def _skip_reason(self, sentence: bytes) -> str | None:
        """Why a sentence is skipped; None if it is not, or only because normalization leaves nothing."""
        reason = skip_reason(sentence, self._max_length)
        return None if reason == "reserved" and not self._skips_reserved else reason

    def sampled(self) -> list[Block]:
        """The chosen sentences, to be counted."""
        if self._sample is None:
            return []
        sentences, counts = self._sample.sentences, self._sample.counts
        all_once = all(count == 1 for count in counts)
        return [
            Block(
                name="sample",
                first=at + 1,
                sentences=sentences[at : at + _BATCH],
                counts=None if all_once else counts[at : at + _BATCH],
            )
            for at in range(0, len(sentences), _BATCH)
        ]

    def count(self, block: Block) -> None:
        """Count a block, and record where the examples of sentences that were left out are."""
        if block.part is not None:
            self.counter.add_part(block.part, self._threads)
            if not block.part:  # an empty part says that the text has ended
                self.counter.end_text(self._threads)
        elif self._pretokenizer is not None:
            self._pretokenize(block)
        elif block.lines is not None:
            self.counter.add_block(block.lines, self._threads)
        else:
            self.counter.add(block.sentences, block.counts, self._threads)
        self._dropped_bytes += block.dropped_bytes
        tallies = self.counter.tallies()
        if block.lines and not block.keep_newlines:
            # Each line is a sentence, so the tallies say how many newlines the block has. (Counting these
            # again in Python would take a tenth of the time that counting the words takes.)
            block.newlines = tallies.sentences - self._counted - (not block.lines.endswith(b"\n"))
        if tallies.broken > self._broken_before and self._sample is None:  # (`take` counts those of a sample)
            self.broken.add(block, tallies.broken - self._broken_before, self._skip_reason)
        self._broken_before = tallies.broken
        for reason, skipped in tallies.skipped.items():
            for index, (number, _) in enumerate(skipped.examples):
                if number >= self._counted and (reason, index) not in self._places:
                    self._places[reason, index] = block.where(number - self._counted)
        self._counted = tallies.sentences

    def reading(self) -> Reading:
        """What was read, and how much of it was sampled."""
        tallies = self.counter.tallies()
        left_out = {
            reason: LeftOut(
                skipped.sentences,
                skipped.size + (self._dropped_bytes if reason == "too_long" else 0),
                tuple(
                    Example(self._places.get((reason, index), ""), text.decode(errors="replace"))
                    for index, (_, text) in enumerate(skipped.examples)
                ),
            )
            for reason, skipped in tallies.skipped.items()
            if skipped.sentences
        }
        counted = Reading(tallies.sentences, tallies.size + self._dropped_bytes, left_out)
        if self._sample is None:
            return counted
        sampling = Reading(
            self._sentences,
            self._bytes,
            self._skipped,
            sampled_from=self._sample.offered,
            sampled=self.chosen,
        )
        # Both include the chosen sentences, which were read only once.
        return replace(sampling + counted, sentences=sampling.sentences, bytes=sampling.bytes)

    def _pretokenize(self, block: Block) -> None:
        assert self._pretokenizer is not None
        sentences = block.as_sentences()
        texts: list[bytes] = []  # with BOUNDARY between their chunks
        counts: list[int] = []
        for index, prepared in enumerate(self.counter.prepare(sentences)):
            # (Like sentencepiece, ask about what normalization leaves of a text even if that is nothing.)
            if prepared is None and self._skip_reason(sentences[index]) is not None:
                continue
            joined = self._chunked((prepared or b"").decode(), partial(block.where, index))
            if joined:
                texts.append(joined)
                counts.append(block.counts[index] if block.counts else 1)
        self.counter.add_prepared(texts, counts)

    def _chunked(self, text: str, where: Callable[[], str]) -> bytes:
        """The chunks that the pretokenizer returns for a text, joined by BOUNDARY."""
        assert self._pretokenizer is not None
        made: Any = self._pretokenizer(text)
        # A generator can be read only once, so its chunks are put into a list first.
        chunks = list(made) if isinstance(made, Iterable) and not isinstance(made, str) else None
        if chunks is None or not all(isinstance(chunk, str) for chunk in chunks):
            what = made if chunks is None else chunks
            raise TypeError(
                f"the pretokenizer must return a list of str; it returned {what!r:.60} for {where()}"
            )
        if not self._allows_inconsistent and "".join(chunks) != text:
            raise TrainingError(
                f"the chunks of the pretokenizer do not join to the text for {where()}: "
                f"{chunks!r:.80} for {text!r:.60}; "
                f"{given('allow_inconsistent_pretokenization', True)} accepts that"
            )
        joined = BOUNDARY.decode().join(chunks)
        if " " in joined:
            raise TrainingError(
                f"the pretokenizer returned a space for {where()}: {chunks!r:.80}; "
                f"a space is U+2581 in normalized text"
            )
        if UNKNOWN.decode() in joined and self._skips_reserved:
            raise TrainingError(
                f"the pretokenizer returned U+2585 for {where()}: {chunks!r:.80}; training marks unknown "
                f"characters with it"
            )
        return encoded(joined, lambda: f"what the pretokenizer returned for {where()}")
