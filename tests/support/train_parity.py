"""Training the same model twice: with sentencepiece, and with an engine of ours from the same options.

`theirs` and `ours` take sentencepiece's keyword arguments and give the two files. This does without the
face of training (`cpbpe.train`), so that a difference is one of the algorithm.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cpbpe.engine.training import learn, make_counter
from cpbpe.errors import TrainingError
from cpbpe.model.formats.sentencepiece import spec_of_settings
from cpbpe.model.spec import Settings
from cpbpe.reference.training_values import (
    CountSpec,
    Learned,
    LearnSpec,
    PieceLimits,
    Words,
)
from cpbpe.text.charsmap import rule_charsmap
from cpbpe.text.charsmap_build import charsmap_from_tsv
from cpbpe.training.families import Built, build, vocab_file

NORMALIZER_FIELDS = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
RULE_FIELDS = tuple(PieceLimits.__dataclass_fields__)


class RefusedError(Exception):
    """sentencepiece gave an error."""


@dataclass(frozen=True)
class Trained:
    """What an engine of ours made."""

    built: Built
    vocab: bytes
    learned: Learned
    words: Words


def theirs(sentences: Iterable[bytes], options: Mapping[str, Any]) -> bytes:
    """The model that sentencepiece trains."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            minloglevel=4,
            **options,
        )
    except (RuntimeError, ValueError) as error:
        raise RefusedError(str(error)) from None
    return model.getvalue()


def special_pieces(options: Mapping[str, Any]) -> dict[int, tuple[str, int]]:
    """The special pieces by id. The options are known to be good."""
    placed = {}
    for name, id, text in (("unk", 0, "<unk>"), ("bos", 1, "<s>"), ("eos", 2, "</s>"), ("pad", -1, "<pad>")):
        if options.get(f"{name}_id", id) >= 0:
            placed[options.get(f"{name}_id", id)] = (
                options.get(f"{name}_piece", text),
                2 if name == "unk" else 3,
            )
    listed = [(text, 3) for text in options.get("control_symbols", ())]
    listed += [(text, 4) for text in options.get("user_defined_symbols", ())]
    listed += [(f"<0x{byte:02X}>", 6) for byte in range(256 if options.get("byte_fallback") else 0)]
    for text, type in listed:
        ids = [id for id, (other, _) in placed.items() if other == text]
        free = next(id for id in range(len(placed) + 1) if id not in placed)
        placed[ids[0] if ids else free] = text, type
    return placed


def normalizer(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of normalizer_spec."""
    fields = {name: options[name] for name in NORMALIZER_FIELDS if name in options}
    if tsv := options.get("normalization_rule_tsv"):
        fields["normalization_rule_tsv"] = tsv
        fields["name"] = "user_defined"
        with open(tsv, encoding="utf-8", newline="") as file:
            fields["precompiled_charsmap"] = charsmap_from_tsv(file.read())
    else:
        fields["name"] = options.get("normalization_rule_name", "nmt_nfkc")
        fields["precompiled_charsmap"] = named(fields["name"])
    return fields


@cache
def named(rule: str) -> bytes:
    return rule_charsmap(rule)


def trainer(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of trainer_spec."""
    elsewhere = ("normalization_rule_name", "normalization_rule_tsv", *NORMALIZER_FIELDS)
    return {"model_type": "bpe", **{name: value for name, value in options.items() if name not in elsewhere}}


def specs(options: Mapping[str, Any]) -> tuple[CountSpec, LearnSpec]:
    rules = PieceLimits(**{name: options[name] for name in RULE_FIELDS if name in options})
    special = special_pieces(options)
    counting = CountSpec(
        limits=rules,
        charsmap=normalizer(options)["precompiled_charsmap"],
        add_dummy_prefix=options.get("add_dummy_prefix", True),
        remove_extra_whitespaces=options.get("remove_extra_whitespaces", True),
        symbols=tuple(text.encode() for text, _ in special.values()),
        delimiter=options.get("pretokenization_delimiter", "").encode(),
        max_sentence_length=options.get("max_sentence_length", 4192),
    )
    learning = LearnSpec(
        vocab_size=options.get("vocab_size", 8000),
        meta_pieces=len(special),
        limits=rules,
        character_coverage=options.get("character_coverage", 0.9995),
        required_chars=options.get("required_chars", ""),
        auto_character_coverage=options.get("auto_character_coverage", False),
    )
    return counting, learning


def ours(
    sentences: Iterable[bytes] | Path,
    options: Mapping[str, Any],
    threads: int = 1,
    counts: list[int] | None = None,
) -> Trained:
    """The model that the engine in use trains, of sentences or of a file."""
    counting, learning = specs(options)
    counter = make_counter(counting)
    if isinstance(sentences, Path):
        counter.add_block(sentences.read_bytes(), threads)
    else:
        counter.add(list(sentences), counts)
    words = counter.drain()
    learned = learn(words, learning, threads)
    built = build_at(learned, options, learning.vocab_size)
    return Trained(
        built, vocab_file(built.spec, options.get("vocabulary_output_piece_score", True)), learned, words
    )


def build_at(learned: Learned, options: Mapping[str, Any], vocab_size: int) -> Built:
    return build(
        learned,
        vocab_size=vocab_size,
        special_pieces=special_pieces(options),
        base=spec_of_settings(Settings(trainer({**options, "vocab_size": vocab_size}), normalizer(options))),
        auto_character_coverage=options.get("auto_character_coverage", False),
    )


def their_vocab(model: bytes, scores: bool = True) -> bytes:
    """The .vocab file that sentencepiece would write beside a model, by its rule: `%g` of the score."""
    from cpbpe.model.formats import model_pb2

    pieces = model_pb2.ModelProto.FromString(model).pieces
    if not scores:
        return b"".join(piece.piece + b"\n" for piece in pieces)
    return b"".join(b"%s\t%s\n" % (piece.piece, b"%g" % piece.score) for piece in pieces)


def difference(mine: bytes, other: bytes) -> str:
    """Where two models part, for a message that helps."""
    from cpbpe.model.formats import model_pb2

    a, b = model_pb2.ModelProto.FromString(mine), model_pb2.ModelProto.FromString(other)
    for id, (left, right) in enumerate(zip(a.pieces, b.pieces, strict=False)):
        if left != right:
            return (
                f"piece {id}: ours {left.piece.decode()!r}, theirs {right.piece.decode()!r} ({left}, {right})"
            )
    if len(a.pieces) != len(b.pieces):
        return f"ours has {len(a.pieces)} pieces, theirs {len(b.pieces)}"
    for name in ("trainer_spec", "normalizer_spec", "denormalizer_spec"):
        if getattr(a, name) != getattr(b, name):
            return f"{name}: ours {str(getattr(a, name))[:500]}\ntheirs {str(getattr(b, name))[:500]}"
    return "nothing but the order of the fields" if mine != other else "nothing"


def check(options: Mapping[str, Any], sentences: list[bytes], threads: int = 1) -> Trained | None:
    """Train twice; None if both refuse."""
    options = {"vocab_size": 1000, **options}
    model = refusal = None
    try:
        model = theirs(sentences, options)
    except RefusedError as error:
        refusal = str(error)
    try:
        mine = ours(sentences, options, threads)
    except TrainingError:
        assert refusal, "sentencepiece trains"
        return None
    if model is None:
        assert reason(options, mine), f"sentencepiece refuses: {refusal}"
        return None
    assert mine.built.data == model, f"{options}: {difference(mine.built.data, model)}"
    return mine


def reason(options: Mapping[str, Any], mine: Trained) -> str:
    """Why sentencepiece had to refuse, judged by what was trained here."""
    if mine.built.size < options["vocab_size"] and options.get("hard_vocab_limit", True):
        return "too few pieces"
    if len(mine.learned.characters) + len(special_pieces(options)) > options["vocab_size"]:
        return "too many characters"
    if not sum(mine.learned.character_counts) + sum(mine.learned.dropped_counts):
        return "nothing to train on"
    if len(set(mine.built.spec.pieces.texts)) < mine.built.size:
        return "a special piece is a required character too"
    if mine.learned.boundaries and not mine.learned.characters:
        return "nothing but symbols"
    return ""
