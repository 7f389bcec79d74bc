"""Training: from a corpus to a tokenizer, with a report of everything that happened.

This file calls the others. In `cpbpe.training`, `options` checks the options, `families` says what differs
between the families of models, `corpus` reads the corpus, and `counting` counts it; an engine
(`cpbpe.engine.training`) learns the merges; and the family puts the model file together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cpbpe.checks import threads_or_all
from cpbpe.engine.choice import engine_name
from cpbpe.engine.training import learn
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import Learned
from cpbpe.spelling import counted, given, named
from cpbpe.training.arguments import ReadingOptions, takes_a_corpus
from cpbpe.training.byte_options import ByteTrainOptions, complete_options
from cpbpe.training.corpus import Source
from cpbpe.training.curve import Curve
from cpbpe.training.families import Built, Family, SentencePieceFamily, family_of
from cpbpe.training.options import TrainOptions
from cpbpe.training.progress import Display, ProgressOption
from cpbpe.training.report import Clock, Reading, Report
from cpbpe.training.result import TrainingResult, check_prefix
from cpbpe.training.word_counts import WordCounts, no_overflow, warn


@takes_a_corpus
def train(
    source: Source | WordCounts,
    *,
    vocab_size: int | None = None,
    preset: str | TrainOptions | ByteTrainOptions = "llama2",
    threads: int | None = None,
    format: str | None = None,
    field: str = "text",
    column: str | int | None = None,
    memory_limit: int | str | None = None,
    progress: ProgressOption = None,
    **options: Any,
) -> TrainingResult:
    r"""Train a BPE model: by default the one that sentencepiece 0.2.3 trains from the same texts.

    The model file is the same, byte for byte, as the one that sentencepiece writes when it is given an
    iterator of these texts. (Given paths, sentencepiece records them in the file. ``record_paths=True`` does
    so here.)

    `source` is where the text is: a path, a glob (``"corpus/**/*.txt"``), a directory, or a list of those;
    an open file; an iterable of texts, str or bytes; a mapping from texts to counts; or `WordCounts`. In
    files each line is a text of its own. `format` is "text", "tsv" (a text, a tab, a count), "jsonl" (the
    text is in `field`), or "parquet", "arrow" or "csv" (in `column`, by name, usually "text", or by number);
    by default the file's name decides, but a .csv file needs `column`. Files whose names end in .gz, .xz,
    .bz2 or .zst are decompressed. (A list of str names files if all of them exist; Path objects are always
    files, and the items of an iterator are always texts.)

    `preset` is a name in `cpbpe.PRESETS`, or `TrainOptions`; `vocab_size` and `options` change single
    options. ``help(cpbpe.TrainOptions)`` explains all of them. Errors in them are raised before work
    starts. A name in `cpbpe.BYTE_PRESETS`, such as "gpt4", trains a byte-level model: its options are
    ``cpbpe.ByteTrainOptions``, and a file is one text.

    A call written for sentencepiece works as well: `input`, `num_threads` and other names of its own are
    understood, options that mean nothing for BPE are ignored with a warning, and with `model_prefix` the
    result is saved under this name.

    `threads` is how many are used, by default one for each processor. `memory_limit` is about how much memory
    the counts may take while the corpus is read, in bytes or as text such as "500MB"; beyond it they are
    moved to the disk.
    `progress` is a function that is called with a `cpbpe.training.progress.Step`, True for a bar, False for
    silence; by default there is a bar if the error output is a terminal. The result does not depend on
    any of these.

    >>> result = train(["hello hello world"] * 3, vocab_size=275, preset="sentencepiece", byte_fallback=True)
    >>> result.tokenizer.encode_pieces("hello")
    ['▁hello']
    >>> train(["hello"], vocab_size=8000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: vocab_size is 8000, and this corpus with these options gives ...
    """
    prefix = options.pop("model_prefix", None)
    if prefix is not None:
        check_prefix(os.fspath(prefix))  # (before the work, which would be lost)
    changes = dict(options) if vocab_size is None else {**options, "vocab_size": vocab_size}
    reading_options = ReadingOptions.checked(threads, format, field, column, memory_limit, progress)
    # (Before the corpus is read, because files of rules may hold errors.)
    family = family_of(complete_options(preset, changes))
    with Display(progress) as display:
        if isinstance(source, WordCounts):
            for name in ("format", "memory_limit", "field", "column"):
                if getattr(reading_options, name) != getattr(ReadingOptions(), name):
                    raise TrainingError(
                        f"{named(name)} means nothing here: the source is WordCounts, so nothing is read; "
                        f"leave it out"
                    )
            if getattr(family.options, "record_paths", False):
                raise TrainingError(
                    f"{named('record_paths')} means nothing here: word counts do not record the files that "
                    f"they were made from; train on the files themselves"
                )
            source.check_setup(family.setup)
            result = train_on_counts(source, family, threads, display, Clock())
        else:
            result = train_on_corpus(source, family, reading_options, display)
            reading = result.report.reading
            warn([*too_long(reading, family), *reading.warnings])
    if prefix is not None:
        result.save(prefix)
    return result


def train_on_corpus(
    source: Source, family: Family, reading_options: ReadingOptions, display: Display
) -> TrainingResult:
    """Count a corpus and train on the counts, with complete options and an open display."""
    clock = Clock()
    with clock.phase("reading"):
        corpus = reading_options.corpus(source, family.setup)
        if isinstance(family, SentencePieceFamily) and family.options.record_paths:
            family = family.recording(corpus)
        counts = WordCounts.of(corpus, family, reading_options, display)
    return train_on_counts(counts, family, reading_options.threads, display, clock)


def train_on_counts(
    counts: WordCounts, family: Family, threads: int | None, display: Display, clock: Clock
) -> TrainingResult:
    """Learn from counts, which were made with the same options, and put the model together."""
    # 1. The merges.
    options = family.options
    if not len(counts):
        raise TrainingError(f"there is nothing to train on: {_why_nothing_is_left(counts)}")
    with clock.phase("learning"), no_overflow():
        learned = learn(counts.words, family.learn_spec, threads_or_all(threads), display.update)
        display.update("merges", len(learned.merges), len(learned.merges))
    # 2. The model.
    with clock.phase("building"):
        built = family.build(learned)
        report = make_report(family, counts, learned, built)
        if options.hard_vocab_limit and built.size < options.vocab_size:
            raise TrainingError(
                f"{named('vocab_size')} is {options.vocab_size}, and this corpus with these options gives "
                f"{family.least(learned)} to {built.size} pieces; choose a size in this range, train on more "
                f"text, or give {given('hard_vocab_limit', False)} to accept a smaller one"
                f"{''.join(f'. ({text})' for text in counts.reading.warnings[:1])}"
            )
        _ = built.data  # writes the file, so that this phase includes it
    return TrainingResult(family, learned, built, replace(report, phases=tuple(clock.phases)))


def _why_nothing_is_left(counts: WordCounts) -> str:
    reading = counts.reading
    if not reading.sentences:
        return "the corpus contains no text"
    if counts.setup.spec.byte_level:
        return "all texts are empty"
    if not reading.sentences_left_out:
        return "the pretokenizer returned nothing for any text"
    reasons = ", ".join(
        f"{skipped.sentences:,} {reason.replace('_', ' ')}"
        for reason, skipped in reading.left_out.items()
        if skipped.sentences
    )
    hint = ""
    if "too_long" in reading.left_out:
        hint = f"; give a larger {named('max_sentence_length')}, or 0 for no limit"
    return (
        f"{reading.sentences_left_out:,} of {counted(reading.sentences, reading.unit)} "
        f"{'was' if reading.sentences_left_out == 1 else 'were'} left out ({reasons}){hint}"
    )


# --- The report ----------------------------------------------------------------------------------


def make_report(family: Family, counts: WordCounts, learned: Learned, built: Built) -> Report:
    """The report without its phases, because the last one has not ended yet."""
    options, merges = family.options, built.merges
    singles = set(built.characters)
    special = len(family.special_texts) + family.byte_pieces
    seen = learned.seen()
    rare = tuple((text, count) for text, count in seen if count and text not in singles)
    text_bytes, text_characters = family.text_size(learned, counts.words)
    byte_fallback = getattr(options, "byte_fallback", False)
    # Merging leaves a rare character as one symbol; with byte fallback each of its bytes becomes a token.
    extra = sum((len(text.encode()) - 1) * count for text, count in rare) if byte_fallback else 0
    # (With auto_character_coverage, a smaller model has other characters, so its tokens are not known here.)
    curve = None
    if not getattr(options, "auto_character_coverage", False):
        tokens = tuple(map(extra.__add__, learned.symbols[: merges + 1]))
        curve = Curve(special + len(singles), tokens, text_bytes)
    return Report(
        engine=engine_name(),
        vocab_size=built.size,
        special_pieces=special,
        merges=merges,
        characters=len(singles),
        reading=counts.reading,
        distinct_words=len(counts),
        text_bytes=text_bytes,
        text_characters=text_characters,
        rare_characters=rare,
        byte_fallback=byte_fallback,
        nuls=learned.nuls,
        boundaries=learned.boundaries,
        empty_merges=learned.frequencies[:merges].count(0),
        tokens=learned.symbols[merges] + extra,
        curve=curve,
        phases=(),
        warnings=tuple(_warnings(family, counts.reading, dict(seen))),
        special_texts=family.special_texts,
        byte_pieces=family.byte_pieces,
    )


def too_long(reading: Reading, family: Family) -> list[str]:
    """A warning if more than a hundredth of the corpus was left out because of its length."""
    long = reading.left_out.get("too_long")
    if long is None or long.bytes * 100 <= reading.bytes:
        return []
    share = f"{min(long.bytes / reading.bytes, 0.99):.0%}" if long.bytes < reading.bytes else "all"
    return [
        f"{share} of the corpus is in {reading.unit}s of more than "
        f"{getattr(family.options, 'max_sentence_length', 0)} bytes "
        f"and was left out; give a larger {named('max_sentence_length')}, or 0 for no limit"
    ]


def _warnings(family: Family, reading: Reading, characters: Mapping[str, int]) -> list[str]:
    warnings = too_long(reading, family)
    returns = characters.get("\r", 0)
    if returns and returns * 2 > reading.sentences - reading.sentences_left_out:
        warnings.append(
            f"the text contains {counted(returns, 'carriage return')} (U+000D): lines that end in \\r\\n "
            f"keep their \\r, as in sentencepiece; remove them from the corpus if you do not want pieces of "
            f"them"
        )
    warnings += reading.warnings
    if characters.get("\ufffd") and not reading.not_utf8:
        warnings.append(
            f"the text contains U+FFFD {counted(characters[chr(0xFFFD)], 'time')}: it replaces characters "
            f"that were lost when the text was decoded, before it came here"
        )
    return warnings + family.warnings()
