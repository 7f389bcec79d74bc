"""Training that goes on: which pieces a corpus would add to a vocabulary that exists.

The words of the corpus are counted as for training. Instead of their characters or bytes, learning begins
with the tokens that the old model makes of them. From there on the algorithm is the same, so a model that was
trained on a corpus continues as if its training had never stopped.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from cpbpe.checks import threads_or_all
from cpbpe.engine.choice import make_engine
from cpbpe.engine.protocol import Slices
from cpbpe.engine.training import learn
from cpbpe.errors import TrainingError
from cpbpe.model.spec import ModelSpec, PieceType, Settings
from cpbpe.reference.training import accept_characters, is_valid
from cpbpe.reference.training_values import (
    Begun,
    ByteLearnSpec,
    CountSpec,
    LearnSpec,
    PieceLimits,
    Words,
)
from cpbpe.spelling import counted, spelled
from cpbpe.text.utf8 import BYTE_ORDER, is_valid_utf8, text_of
from cpbpe.tools.rows import Rows
from cpbpe.training.arguments import ReadingOptions
from cpbpe.training.byte_options import ByteTrainOptions
from cpbpe.training.corpus import Source
from cpbpe.training.families import ByteFamily, Family, SentencePieceFamily
from cpbpe.training.options import LONGEST_PIECE, TrainOptions
from cpbpe.training.progress import Display
from cpbpe.training.report import REASONS
from cpbpe.training.word_counts import WordCounts

_UNKNOWN = "\uf8ff<unk>".encode()
"""A piece for unknown characters, in a model that has none."""


class Continued(NamedTuple):
    """What a corpus adds to a vocabulary."""

    merges: tuple[bytes, ...]
    """New pieces of several symbols, best first."""
    characters: tuple[bytes, ...]
    """New pieces that are characters."""
    saved: int
    """By how many tokens the merges shorten the corpus."""
    notes: tuple[str, ...]
    """Which lines of the corpus were left out."""


def continued(
    spec: ModelSpec,
    source: Source,
    number: int,
    *,
    character_coverage: float,
    limits: PieceLimits,
    reading: ReadingOptions,
    display: Display,
) -> Continued:
    """The `number` pieces that training would add next. An error if the corpus has too little text."""
    # 1. Count words, and find the characters that have no piece yet.
    family = _family(spec, limits)
    words = WordCounts.of(reading.corpus(source, family.setup), family, reading, display)
    left_out, unit = words.reading.left_out, words.reading.unit
    notes = tuple(
        f"{counted(left_out[reason].sentences, unit)} {spelled(REASONS[reason])} left out, as in training"
        for reason in ("too_long", "reserved")
        if reason in left_out
    )
    if not len(words):
        why = "; ".join(notes) or "the corpus contains no text"
        raise TrainingError(f"there is nothing to learn from: {why}")
    texts = set(spec.pieces.texts)
    characters: list[str] = []
    if spec.alphabet == "characters":
        known = {text_of(text) for text in texts}
        counts = Counter(words.characters())
        required = "".join(c for c in counts if c in known)
        accepted = accept_characters(
            counts, LearnSpec(0, 0, character_coverage=character_coverage, required_chars=required)
        )
        characters = sorted(accepted - known, key=lambda c: (-counts[c], c))
    room = number - len(characters)
    if room < 0:
        raise TrainingError(
            f"the corpus has {counted(len(characters), 'new character')}, more than {number}; ask for more "
            f"pieces, or for a smaller character_coverage"
        )
    # 2. Let the old model begin, and learn the rest. A piece that exists is never made by the old merges if
    #    the corpus offers it here, and is not counted.
    threads = threads_or_all(reading.threads)
    begun = _begun(spec, characters, words.words, limits, threads)
    wanted = room
    while True:
        learned = learn(words.words, _learn_spec(spec, wanted, limits, begun), threads, display.update)
        rows = zip(learned.merges, learned.frequencies, strict=True)
        fresh = [piece for piece, frequency in rows if frequency and piece not in texts]
        if len(fresh) >= room or len(learned.merges) < wanted or not learned.frequencies[-1]:
            break
        wanted += room - len(fresh)
    if len(fresh) < room:
        most = len(fresh) + len(characters)
        raise TrainingError(
            f"the corpus gives only {counted(most, 'new piece')}, not {number}; ask for at most {most}, or "
            f"give more text"
        )
    saved = learned.symbols[0] - learned.symbols[len(learned.merges)]
    return Continued(tuple(fresh[:room]), tuple(c.encode() for c in characters), saved, notes)


def limits_of(spec: ModelSpec, given: dict[str, Any]) -> PieceLimits:
    """What pieces may be: what the model file says about its own training, unless it is given."""
    names = {field.name for field in fields(PieceLimits)}
    if unknown := sorted(given.keys() - names):
        raise TypeError(f"from_corpus() has no option {unknown[0]!r}; there are {', '.join(sorted(names))}")
    said = {name: value for name, value in spec.settings.trainer.items() if name in names}
    return PieceLimits(**{**said, **given})


def _family(spec: ModelSpec, limits: PieceLimits) -> Family:
    """How the words of the corpus are counted: as the model cuts and rewrites texts."""
    if spec.alphabet == "bytes":
        if len(spec.patterns) > 1:
            raise TrainingError(
                f"this model cuts text by {len(spec.patterns)} patterns, one after the other, and learning "
                f"takes one; learn with a tokenizer that has one pattern, and add() the pieces"
            )
        return ByteFamily(ByteTrainOptions(pattern="".join(spec.patterns), special_tokens=()))
    if not spec.normalizer.escape_whitespaces:
        raise TrainingError("this model does not write spaces as ▁, and training does; add() pieces instead")
    rules, said = spec.normalizer, spec.settings.trainer
    options = TrainOptions(
        add_dummy_prefix=rules.add_dummy_prefix,
        remove_extra_whitespaces=rules.remove_extra_whitespaces,
        max_sentence_length=said.get("max_sentence_length", TrainOptions.max_sentence_length),
        pretokenization_delimiter=said.get("pretokenization_delimiter", ""),
        **{field.name: getattr(limits, field.name) for field in fields(PieceLimits)},
    )
    family = SentencePieceFamily(options, Settings({}, {"precompiled_charsmap": rules.charsmap}))
    if isinstance(family.setup.spec, CountSpec):
        counting = replace(family.setup.spec, symbols=tuple(sorted(_special(spec))))
        family.setup = replace(family.setup, spec=counting)
    return family


def _learn_spec(spec: ModelSpec, number: int, limits: PieceLimits, begun: Begun) -> LearnSpec | ByteLearnSpec:
    if spec.alphabet == "characters":
        return LearnSpec(number, 0, limits, begun=begun)
    return ByteLearnSpec(
        number, bytes(BYTE_ORDER), max_length=LONGEST_PIECE, forbidden=_special(spec), begun=begun
    )


def _special(spec: ModelSpec) -> tuple[bytes, ...]:
    """The texts of pieces and tokens that no merges make."""
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    pieces = (text for text, type in rows if type not in (PieceType.NORMAL, PieceType.UNUSED))
    return (*pieces, *(text for text, _ in spec.added))


def _begun(spec: ModelSpec, characters: list[str], words: Words, limits: PieceLimits, threads: int) -> Begun:
    """The words as the old model merges them. Nothing merges across what it does not know."""
    # 1. A model that does nothing else: without fallback, what is unknown stays one token.
    rows = Rows(replace(spec, added=()))
    below = rows.scores_below()
    for character in characters:
        rows.append(character.encode(), next(below))
    byte_level = spec.alphabet == "bytes"
    if not byte_level:
        if spec.unknown_id is None:
            rows.append(_UNKNOWN, 0.0, PieceType.UNKNOWN)
        rows.types = rows.types.replace(bytes([PieceType.BYTE]), bytes([PieceType.CONTROL]))
    bare = replace(rows.spec(), byte_fallback=False, splitter=None)
    # 2. The symbols are the pieces that may become part of a new one, in the order of their ids.
    table = np.zeros(len(rows.texts), np.uint32)
    texts: list[bytes] = []
    for id, (text, type) in enumerate(zip(rows.texts, rows.types, strict=True)):
        if type == PieceType.NORMAL and (byte_level or _may_grow(text, limits)):
            texts.append(text)
            table[id] = len(texts)
    # 3. Encode the words.
    ends = np.frombuffer(words.ends, np.uint64).astype(np.int64)
    begins = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    engine = make_engine(bare).variant(raw=True)
    data = np.frombuffer(words.blob, np.uint8)
    ids, offsets = engine.encode_arrays(Slices(data, begins, ends), threads)
    return Begun(tuple(texts), table[ids].tobytes(), array("Q", offsets[1:].tolist()).tobytes())


def _may_grow(text: bytes, limits: PieceLimits) -> bool:
    return is_valid_utf8(text) and is_valid(text.decode(), limits)
