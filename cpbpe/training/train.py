"""Training: from a corpus to a tokenizer, with a report of everything that happened.

This file calls the others. In `cpbpe.training`, `options` checks the options, `corpus` reads the corpus, and
`counting` counts it; an engine (`cpbpe.engine.training`) learns the merges; and `model_build` puts the model
file together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cpbpe.engine.training import learn
from cpbpe.errors import TrainingError
from cpbpe.model.formats import sentencepiece
from cpbpe.model.spec import ModelSpec, Settings
from cpbpe.reference.training_values import Learned, LearnSpec
from cpbpe.spelling import counted, given, listed, named
from cpbpe.training.arguments import check_arguments, checked_memory_limit, takes_a_corpus, threads_or_all
from cpbpe.training.byte_level.train import train_bytes
from cpbpe.training.corpus import Source
from cpbpe.training.counting import piece_limits
from cpbpe.training.model_build import Built, build, vocab_file
from cpbpe.training.options import ByteTrainOptions, TrainOptions, complete_options, special_counts
from cpbpe.training.progress import Display, ProgressOption
from cpbpe.training.report import Clock
from cpbpe.training.report_build import make_report, too_long
from cpbpe.training.result import BuiltModel, TrainingResult
from cpbpe.training.settings import settings_of, with_input, with_prefix
from cpbpe.training.word_counts import ReadingOptions, WordCounts, no_overflow, warn


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
    changes = dict(options) if vocab_size is None else {**options, "vocab_size": vocab_size}
    check_arguments(threads, field, column, progress)
    limit = checked_memory_limit(memory_limit)
    complete = complete_options(preset, changes)
    # Now, because files of rules may hold errors.
    settings = settings_of(complete) if isinstance(complete, TrainOptions) else Settings()
    with Display(progress) as display:
        clock = Clock()
        if isinstance(source, WordCounts):
            about_reading = (
                ("format", format, None),
                ("memory_limit", memory_limit, None),
                ("field", field, "text"),
                ("column", column, None),
            )
            for name, value, usual in about_reading:
                if value != usual:
                    raise TrainingError(
                        f"{named(name)} means nothing here: the source is WordCounts, so nothing is read; "
                        f"leave it out"
                    )
            if isinstance(complete, TrainOptions) and complete.record_paths:
                raise TrainingError(
                    f"{named('record_paths')} means nothing here: word counts do not record the files that "
                    f"they were made from; train on the files themselves"
                )
            source.check_setup(complete, settings.normalizer.get("precompiled_charsmap", b""))
            return _train_on(source, complete, settings, threads, display, clock)
        reading_options = ReadingOptions(threads, format, field, column, limit)
        result = train_on_corpus(source, complete, settings, reading_options, display, clock)
    reading = result.report.reading
    longest = 0 if isinstance(complete, ByteTrainOptions) else complete.max_sentence_length
    warn([*too_long(reading, longest), *reading.warnings])
    return result


def train_on_corpus(
    source: Source,
    options: TrainOptions | ByteTrainOptions,
    settings: Settings,
    reading_options: ReadingOptions,
    display: Display,
    clock: Clock,
) -> TrainingResult:
    """Count a corpus and train on the counts, with complete options and an open display."""
    with clock.phase("reading"):
        corpus = reading_options.corpus(source, options)
        if isinstance(options, TrainOptions) and options.record_paths:
            settings = with_input(settings, corpus)
        charsmap = settings.normalizer.get("precompiled_charsmap", b"")
        counts = WordCounts.of(corpus, options, charsmap, reading_options, display)
    return _train_on(counts, options, settings, reading_options.threads, display, clock)


def _train_on(
    counts: WordCounts,
    options: TrainOptions | ByteTrainOptions,
    settings: Settings,
    threads: int | None,
    display: Display,
    clock: Clock,
) -> TrainingResult:
    """Learn from counts that fit the options, whichever family the model is of."""
    if isinstance(options, ByteTrainOptions):
        return train_bytes(counts, options, threads, display, clock)
    return train_on_counts(counts, options, settings, threads, display, clock)


def train_on_counts(
    counts: WordCounts,
    options: TrainOptions,
    settings: Settings,
    threads: int | None,
    display: Display,
    clock: Clock,
) -> TrainingResult:
    """Learn from counts that fit the options, and put the model together."""
    # 1. The merges.
    if not len(counts):
        raise TrainingError(_why_nothing_is_left(counts))
    spec = LearnSpec(
        vocab_size=options.vocab_size,
        meta_pieces=len(options.special_pieces()),
        limits=piece_limits(options),
        character_coverage=options.character_coverage,
        required_chars=options.required_chars,
        auto_character_coverage=options.auto_character_coverage,
    )
    with clock.phase("learning"), no_overflow():
        learned = learn(counts.words, spec, threads_or_all(threads), display.update)
        display.update("merges", len(learned.merges), len(learned.merges))
    # 2. The model.
    with clock.phase("building"):
        _check_size(options, learned)
        base = sentencepiece.spec_of_settings(settings)
        built = build_model(options, base, learned)
        report = make_report(options, counts, learned, built)
        if options.hard_vocab_limit and built.size < options.vocab_size:
            raise TrainingError(
                f"{named('vocab_size')} is {options.vocab_size}, and this corpus with these options gives "
                f"{_smallest_size(options, learned)} to {built.size} pieces; choose a size in "
                f"this range, train on more text, or give {given('hard_vocab_limit', False)} to accept a "
                f"smaller one{''.join(f'. ({text})' for text in counts.reading.warnings[:1])}"
            )
        _ = built.data  # writes the file, so that this phase includes it
    return TrainingResult(Made(options, base, learned), built, report.with_phases(clock.phases))


@dataclass(frozen=True)
class Made:
    """What was learned for a model of the SentencePiece family."""

    options: TrainOptions
    """The options of the training."""
    base: ModelSpec
    """The model without its pieces."""
    learned: Learned
    """What was learned."""

    def least(self) -> int:
        """The smallest size of a model."""
        return _smallest_size(self.options, self.learned)

    def build(self, vocab_size: int) -> Built:
        """A smaller model."""
        return build_model(self.options.replace(vocab_size=vocab_size), self.base, self.learned)

    def files(self, built: BuiltModel, name: str) -> tuple[bytes, bytes]:
        """The model file and the .vocab file, when they are saved under this name."""
        data = built.data
        if self.options.record_paths:
            data = sentencepiece.write(with_prefix(built.spec, name))
        return data, vocab_file(built.spec, self.options.vocabulary_output_piece_score)


def build_model(options: TrainOptions, base: ModelSpec, learned: Learned) -> Built:
    """The model of what was learned, with as many pieces as the options' vocab_size says."""
    trainer = base.settings.trainer
    if "vocab_size" in trainer:
        settings = replace(base.settings, trainer={**trainer, "vocab_size": options.vocab_size})
        base = replace(base, settings=settings)
    return build(
        learned,
        vocab_size=options.vocab_size,
        special_pieces=options.special_pieces(),
        base=base,
        auto_character_coverage=options.auto_character_coverage,
    )


def _smallest_size(options: TrainOptions, learned: Learned) -> int:
    """The smallest vocabulary for what was learned: no merges, or one piece beside the special ones."""
    special = len(options.special_pieces())
    return special + (1 if options.auto_character_coverage else len(learned.characters))


def _check_size(options: TrainOptions, learned: Learned) -> None:
    """Raise an error if the characters that cover the corpus do not fit into the vocabulary."""
    if options.auto_character_coverage:
        return
    least = _smallest_size(options, learned)
    if least > options.vocab_size:
        parts = special_counts(options.special_pieces())
        parts.append(counted(len(learned.characters), "character"))
        smaller = f", or a smaller {named('character_coverage')}"
        raise TrainingError(
            f"{named('vocab_size')} is {options.vocab_size}, and this corpus with these options needs at "
            f"least {least}, for {listed(parts)}; choose a larger size"
            f"{'' if options.character_coverage <= 0.98 else smaller}"
        )


def _why_nothing_is_left(counts: WordCounts) -> str:
    reading = counts.reading
    if not reading.sentences:
        return "there is nothing to train on: the corpus contains no text"
    reasons = ", ".join(
        f"{skipped.sentences:,} {reason.replace('_', ' ')}"
        for reason, skipped in reading.left_out.items()
        if skipped.sentences
    )
    hint = ""
    if "too_long" in reading.left_out:
        hint = f"; give a larger {named('max_sentence_length')}, or 0 for no limit"
    return (
        f"there is nothing to train on: {reading.sentences_left_out:,} of "
        f"{counted(reading.sentences, reading.unit)} {'was' if reading.sentences_left_out == 1 else 'were'} "
        f"left out ({reasons}){hint}"
    )
