"""Training a byte-level model: from counts to the model. `cpbpe.training.train` has the corpus read."""

from __future__ import annotations

from dataclasses import dataclass

from cpbpe.engine.training import learn
from cpbpe.errors import TrainingError
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.training_values import Learned
from cpbpe.spelling import given, named
from cpbpe.text.byte_letters import to_letters
from cpbpe.training.arguments import threads_or_all
from cpbpe.training.byte_level.model_build import ByteBuilt, build, learn_spec, make_report
from cpbpe.training.options import BYTES, ByteTrainOptions
from cpbpe.training.progress import Display
from cpbpe.training.report import Clock
from cpbpe.training.result import BuiltModel, TrainingResult
from cpbpe.training.word_counts import WordCounts, no_overflow


@dataclass(frozen=True)
class MadeOfBytes:
    """What was learned for a byte-level model."""

    options: ByteTrainOptions
    """The options of the training."""
    learned: Learned
    """What was learned."""

    def least(self) -> int:
        """The smallest size of a model: no merges."""
        return len(self.options.special_tokens) + BYTES

    def build(self, vocab_size: int) -> ByteBuilt:
        """A smaller model."""
        return build(self.options.replace(vocab_size=vocab_size), self.learned)

    def files(self, built: BuiltModel, name: str) -> tuple[bytes, bytes]:
        """The model file and the .vocab file."""
        return built.data, vocab_file(built.spec)


def train_bytes(
    counts: WordCounts, options: ByteTrainOptions, threads: int | None, display: Display, clock: Clock
) -> TrainingResult:
    """Learn from counts that fit the options, and put the model together."""
    # 1. The merges.
    if not len(counts):
        why = "all texts are empty" if counts.reading.sentences_left_out else "the corpus contains no text"
        raise TrainingError(f"there is nothing to train on: {why}")
    spec = learn_spec(options)
    with clock.phase("learning"), no_overflow():
        learned = learn(counts.words, spec, threads_or_all(threads), display.update)
        display.update("merges", len(learned.merges), len(learned.merges))
    # 2. The model.
    made = MadeOfBytes(options, learned)
    with clock.phase("building"):
        built = build(options, learned)
        if options.hard_vocab_limit and built.size < options.vocab_size:
            raise TrainingError(
                f"{named('vocab_size')} is {options.vocab_size}, and this corpus with these options gives "
                f"{made.least()} to {built.size} pieces; choose a size in this range, train on more text, or "
                f"give {given('hard_vocab_limit', False)} to accept a smaller one"
            )
        report = make_report(options, counts, learned, built)
        _ = built.data  # writes the file, so that this phase includes it
    return TrainingResult(made, built, report.with_phases(clock.phases))


def vocab_file(spec: ModelSpec) -> bytes:
    """The `.vocab` file: a piece and its id on each line, for people and for grep.

    Bytes are written as GPT-2's letters, of which none is a space or ends a line; special tokens as they are.
    """
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    lines = (
        f"{text.decode() if type == PieceType.CONTROL else to_letters(text)}\t{id}\n"
        for id, (text, type) in enumerate(rows)
    )
    return "".join(lines).encode()
