"""Training: from a corpus to a tokenizer, with a report of everything that happened.

This file calls the others. In `cpbpe.training`, `options` checks the options, `corpus` reads the corpus, and
`counting` counts it; an engine (`cpbpe.engine.training`) learns the merges; and `model_build` puts the model
file together.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from cpbpe.engine.training import learn
from cpbpe.errors import TrainingError
from cpbpe.lazy import kept
from cpbpe.model.formats import sentencepiece
from cpbpe.model.spec import ModelSpec, Settings
from cpbpe.model.writing import write_all
from cpbpe.reference.training_values import Learned, LearnSpec
from cpbpe.spelling import counted, given, listed, named
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.argument_checks import check_arguments, checked_memory_limit, takes_a_corpus
from cpbpe.training.corpus import Source
from cpbpe.training.counting import piece_limits, threads_or_all
from cpbpe.training.model_build import Built, build, vocab_file
from cpbpe.training.options import TrainOptions, preset, special_counts
from cpbpe.training.progress import Display, ProgressOption
from cpbpe.training.recorded import settings_of, with_input, with_prefix
from cpbpe.training.report import Phase, Report
from cpbpe.training.report_build import make_report, too_long
from cpbpe.training.word_counts import ReadingOptions, WordCounts, no_overflow, warn

_preset = preset  # an argument of `train` has the same name


class TrainingResult:
    """A trained model with its report, and with every smaller model that the same training gives.

    >>> result = train(["the cat sat on the mat, the bat sat on the hat"], vocab_size=290)
    >>> result.tokenizer.encode_pieces("the cat")
    ['▁the', '▁cat']
    >>> result.tokenizer_at(280).vocab_size
    280
    """

    def __init__(
        self, options: TrainOptions, base: ModelSpec, learned: Learned, built: Built, report: Report
    ):
        """`base` is the model without its pieces."""
        self._options = options
        self._base = base
        self._learned = learned
        self._built = built
        self._report = report

    @property
    def options(self) -> TrainOptions:
        """The options of this training."""
        return self._options

    @property
    def report(self) -> Report:
        """What was read, left out, learned and needed."""
        return self._report

    @property
    def model_bytes(self) -> bytes:
        """The model file. (With `record_paths`, the file that `save` writes also has the model's path.)"""
        return self._built.data

    @property
    def spec(self) -> ModelSpec:
        """The model as a value."""
        return self._built.spec

    @kept
    def tokenizer(self) -> Tokenizer:
        """The model, ready to be used."""
        return Tokenizer.from_bytes(self._built.data)

    def model_bytes_at(self, vocab_size: int) -> bytes:
        """The model file that training with a smaller `vocab_size` would have given, byte for byte."""
        least, most = self._least(), self._options.vocab_size
        if isinstance(vocab_size, bool) or not isinstance(vocab_size, int):
            raise TypeError(f"vocab_size must be an integer, not {vocab_size!r}")
        if not least <= vocab_size <= most:
            raise TrainingError(
                f"vocab_size is {vocab_size}, and this training gives models of {least} to {most} pieces; "
                f"choose a size in this range, or train again for a larger one"
            )
        if vocab_size == most:
            return self._built.data
        options = self._options.replace(vocab_size=vocab_size)
        return build_model(options, self._base, self._learned).data

    def tokenizer_at(self, vocab_size: int) -> Tokenizer:
        """The tokenizer that training with a smaller `vocab_size` would have given, exactly."""
        return Tokenizer.from_bytes(self.model_bytes_at(vocab_size))

    def save(self, prefix: str | os.PathLike[str]) -> tuple[str, str]:
        """Write `prefix`.model and `prefix`.vocab, and return their paths. The folder must exist.

        Both are written under other names first and renamed when they are complete. With `record_paths` the
        model file records `prefix`, as sentencepiece records its model_prefix.
        """
        name = os.fspath(prefix)
        if not isinstance(name, str):
            raise TypeError(f"save() takes a path as str or Path, not {name!r}")
        name = name.removesuffix(".model")
        check_prefix(name)
        vocab = vocab_file(self._built.spec, self._options.vocabulary_output_piece_score)
        paths = f"{name}.model", f"{name}.vocab"
        data = self._built.data
        if self._options.record_paths:
            data = sentencepiece.write(with_prefix(self._built.spec, name))
        write_all({paths[0]: data, paths[1]: vocab})
        return paths

    def __repr__(self) -> str:
        pieces, tokens = self._report.vocab_size, self._report.tokens
        return f"<cpbpe.TrainingResult: {counted(pieces, 'piece')}, {counted(tokens, 'token')}>"

    if not TYPE_CHECKING:  # type checkers should go on reporting what is missing

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse: what encodes is in the result."""
            there = not name.startswith("_") and hasattr(Tokenizer, name)
            hint = f"; use result.tokenizer.{name}" if there else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)

    def _least(self) -> int:
        return _smallest_size(self._options, self._learned)


@takes_a_corpus
def train(
    source: Source | WordCounts,
    *,
    vocab_size: int | None = None,
    preset: str | TrainOptions = "llama2",
    threads: int | None = None,
    format: str | None = None,
    field: str = "text",
    column: str | int | None = None,
    memory_limit: int | str | None = None,
    progress: ProgressOption = None,
    **options: Any,
) -> TrainingResult:
    r"""Train a SentencePiece BPE model: the one that sentencepiece 0.2.3 trains from the same texts.

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
    starts.

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
    complete = _preset(preset).replace(**changes)
    settings = settings_of(complete)  # first, because files of rules may hold errors
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
            if complete.record_paths:
                raise TrainingError(
                    f"{named('record_paths')} means nothing here: word counts do not record the files that "
                    f"they were made from; train on the files themselves"
                )
            source.check_setup(complete, settings.normalizer["precompiled_charsmap"])
            return train_on_counts(source, complete, settings, threads, display, clock)
        reading_options = ReadingOptions(threads, format, field, column, limit)
        result = train_on_corpus(source, complete, settings, reading_options, display, clock)
    reading = result.report.reading
    warn([*too_long(reading, complete.max_sentence_length), *reading.warnings])
    return result


def train_on_corpus(
    source: Source,
    options: TrainOptions,
    settings: Settings,
    reading_options: ReadingOptions,
    display: Display,
    clock: Clock,
) -> TrainingResult:
    """Count a corpus and train on the counts, with complete options and an open display."""
    with clock.phase("reading"):
        corpus = reading_options.corpus(source, options)
        if options.record_paths:
            settings = with_input(settings, corpus)
        charsmap = settings.normalizer["precompiled_charsmap"]
        counts = WordCounts.of(corpus, options, charsmap, reading_options, display)
    return train_on_counts(counts, options, settings, reading_options.threads, display, clock)


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
    return TrainingResult(options, base, learned, built, report.with_phases(clock.phases))


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


def check_prefix(prefix: str) -> None:
    """Raise an error if `prefix`.model and `prefix`.vocab cannot be written."""
    folder = os.path.dirname(os.path.abspath(prefix))
    if not os.path.basename(prefix):
        raise TrainingError(
            f"{prefix!r} is a folder; give a name in it, such as {os.path.join(prefix, 'my')!r}"
        )
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder!r} does not exist; make it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder!r} may not be written to; choose another")
    for path in (f"{prefix}.model", f"{prefix}.vocab"):
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is a folder; choose another name")


class Clock:
    """Measures the phases of the work."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        begun = time.perf_counter()
        yield
        self.phases.append(Phase(name, time.perf_counter() - begun, _peak_memory()))


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
