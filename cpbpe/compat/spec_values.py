"""Turns sentencepiece's options from text into values, and refuses what sentencepiece refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.model.formats import sentencepiece as model_file

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")


def parse_fields(options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """The fields of trainer_spec and of normalizer_spec, and the file with the denormalizer's rules.

    >>> parse_fields({"vocab_size": "100", "control_symbols": 'a,"b,c"', "add_dummy_prefix": ""})
    ({'vocab_size': 100, 'control_symbols': ['a', 'b,c']}, {'add_dummy_prefix': True}, None)
    """
    trainer: dict[str, Any] = {}
    normalizer: dict[str, Any] = {}
    denormalizer: str | None = None
    for name, text in options.items():
        if name == "normalization_rule_name":
            normalizer["name"] = text
        elif name == "denormalization_rule_tsv":
            denormalizer = text
        elif name == "minloglevel":
            _integer(name, text, 32, True)  # nothing is logged
        elif name in _DEPRECATED:
            continue
        elif name in _TRAINER:
            trainer[name] = _TRAINER[name](name, text)
        elif name in _NORMALIZER:
            normalizer[name] = _NORMALIZER[name](name, text)
        else:
            raise TrainingError(f"there is no option {name!r} in sentencepiece 0.2.3")
    _check(trainer)
    return trainer, normalizer, denormalizer


def fields_of_normalizer(data: bytes) -> dict[str, Any]:
    """The fields that are set in a serialized normalizer_spec."""
    spec = model_file.messages().NormalizerSpec()
    try:
        spec.ParseFromString(data)
    except model_file.decode_error():
        raise TrainingError("normalizer: its serialized_normalizer_spec() is not a valid message") from None
    return {field.name: _text(field.name, value) for field, value in spec.ListFields()}


def split_csv(text: str) -> list[str]:
    """A list as sentencepiece reads it: separated by commas, with double quotes around items that hold one.

    >>> split_csv('a,"b,""c",,d,')
    ['a', 'b,"c', '', 'd']
    """
    items: list[str] = []
    at, end = 0, len(text)
    while at < end:
        item = ""
        if text[at] == '"':
            at += 1
            while at < end:
                if text[at] == '"':
                    at += 1
                    if at >= end or text[at] != '"':
                        break
                item += text[at]
                at += 1
            comma = text.find(",", at)
            at = end if comma < 0 else comma
        else:
            comma = text.find(",", at)
            stop = end if comma < 0 else comma
            item, at = text[at:stop], stop
        items.append(item.partition("\0")[0])
        at += 1
    return items


def _text(name: str, value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) and name != "precompiled_charsmap" else value


def _list(name: str, text: str) -> list[str]:
    return split_csv(text)


def _string(name: str, text: str) -> str:
    return text


def _bytes(name: str, text: str) -> bytes:
    return text.encode()


def _integer(name: str, text: str, bits: int, signed: bool) -> int:
    match = re.fullmatch(r"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*", text, re.ASCII)
    if match is not None:
        value = int(match[1])
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
        if low <= value < high:
            return value
    raise TrainingError(f"{name}: {text!r} is not an integer of {bits} bits")


def _int32(name: str, text: str) -> int:
    return _integer(name, text, 32, True)


def _uint64(name: str, text: str) -> int:
    return _integer(name, text, 64, False)


def _float(name: str, text: str) -> float:
    try:
        value = float(text.strip(" \t\n\v\f\r")) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise TrainingError(f"{name}: {text!r} is not a number")
    return value


def _bool(name: str, text: str) -> bool:
    lower = text.lower() or "true"
    if lower in _TRUE:
        return True
    if lower in _FALSE:
        return False
    raise TrainingError(f"{name}: {text!r} is neither true nor false")


def _model_type(name: str, text: str) -> str:
    if text.upper() not in ("UNIGRAM", "BPE", "WORD", "CHAR"):
        raise TrainingError(f"model_type: there is no {text!r}; cpbpe trains bpe")
    return text.upper()


_Parser = Callable[[str, str], Any]

_TRAINER: dict[str, _Parser] = {
    "model_type": _model_type,
    **dict.fromkeys(("input", "control_symbols", "user_defined_symbols"), _list),
    **dict.fromkeys(
        (
            "input_format",
            "model_prefix",
            "pretokenization_delimiter",
            "required_chars",
            "seed_sentencepieces_file",
            "unk_piece",
            "bos_piece",
            "eos_piece",
            "pad_piece",
            "unk_surface",
        ),
        _string,
    ),
    **dict.fromkeys(
        (
            "vocab_size",
            "seed_sentencepiece_size",
            "max_sentence_length",
            "num_threads",
            "num_sub_iterations",
            "max_sentencepiece_length",
            "unk_id",
            "bos_id",
            "eos_id",
            "pad_id",
        ),
        _int32,
    ),
    "input_sentence_size": _uint64,
    **dict.fromkeys(("character_coverage", "shrinking_factor"), _float),
    **dict.fromkeys(
        (
            "shuffle_input_sentence",
            "split_by_unicode_script",
            "split_by_number",
            "split_by_whitespace",
            "split_digits",
            "treat_whitespace_as_suffix",
            "allow_whitespace_only_pieces",
            "byte_fallback",
            "auto_character_coverage",
            "hard_vocab_limit",
            "vocabulary_output_piece_score",
            "use_all_vocab",
        ),
        _bool,
    ),
}
_NORMALIZER: dict[str, _Parser] = {
    "name": _string,
    "precompiled_charsmap": _bytes,
    "normalization_rule_tsv": _string,
    **dict.fromkeys(("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"), _bool),
}
_DEPRECATED = (
    # sentencepiece accepts these, logs that they do nothing, and continues.
    "accept_language",
    "self_test_sample_size",
    "mining_sentence_size",
    "training_sentence_size",
    "train_extremely_large_corpus",
    "enable_differential_privacy",
    "differential_privacy_noise_level",
    "differential_privacy_clipping_threshold",
)


def _check(trainer: Mapping[str, Any]) -> None:
    """The checks that sentencepiece makes for options that `TrainOptions` does not have."""
    for name, low, high in (
        ("num_threads", 1, 1024),
        ("num_sub_iterations", 1, 10),
        ("shrinking_factor", 0.5, 0.95),
        ("max_sentence_length", 10, 1 << 30),
    ):
        if name in trainer and not low <= trainer[name] <= high:
            raise TrainingError(f"{name} must be from {low} to {high}, not {trainer[name]}")
    if trainer.get("use_all_vocab"):
        raise TrainingError("use_all_vocab is for word and character models, and this is BPE; leave it out")
    if trainer.get("seed_sentencepieces_file"):
        raise TrainingError("seed_sentencepieces_file is for unigram models, and this is BPE; leave it out")
    if trainer.get("input_format", "") not in ("", "text", "tsv"):
        raise TrainingError(f"input_format must be text or tsv, not {trainer['input_format']!r}")
