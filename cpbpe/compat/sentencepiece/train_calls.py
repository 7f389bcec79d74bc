"""How `SentencePieceTrainer` handles a call: it turns options into values, trains, and writes files.

It refuses everything that sentencepiece refuses.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO

from cpbpe.errors import TrainingError
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import Settings
from cpbpe.model.writing import write_all
from cpbpe.training.families import SentencePieceFamily, vocab_file
from cpbpe.training.options import PRESETS, RULE_NAMES
from cpbpe.training.progress import Display
from cpbpe.training.result import TrainingResult, check_prefix
from cpbpe.training.settings import charsmap_of_file, denormalizer_settings
from cpbpe.training.train import train_on_corpus
from cpbpe.training.word_counts import ReadingOptions

# --- Options --------------------------------------------------------------------------------------


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


# --- Training -------------------------------------------------------------------------------------


class _Writer(Protocol):
    def write(self, data: bytes, /) -> object:
        """Take the model file."""


def call(arg: str | None, logstream: TextIO | None, kwargs: dict[str, Any]) -> None:
    """Do the work of `SentencePieceTrainer.train`. Errors are those of `cpbpe.training`."""
    if isinstance(arg, str):
        if kwargs:
            raise TrainingError(f"with a string of flags, {next(iter(kwargs))} is ignored; leave it out")
        result = _train(_parse_flags(arg), None, None, False, None, None)
    else:
        if arg is not None:
            raise TypeError(f"train() takes a string of flags or keyword arguments, not {arg!r}")
        sentences = kwargs.pop("sentence_iterator", None)
        reader = kwargs.pop("sentence_reader", None)
        writer = kwargs.pop("model_writer", None)
        pretokenizer = kwargs.pop("pretokenizer", None)
        inconsistent = bool(kwargs.pop("allow_inconsistent_pretokenization", False))
        normalizer = kwargs.pop("normalizer", None)
        fields = {name: _encode(value) for name, value in kwargs.items()}
        texts = reader if sentences is None else sentences
        result = _train(fields, texts, pretokenizer, inconsistent, normalizer, writer)
    if logstream is not None:
        logstream.write(f"{result.report}\n")
        logstream.flush()


def _encode(value: object) -> str:
    """A value as sentencepiece passes it on: lists become one line of CSV."""
    if isinstance(value, list):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([str(item) for item in value])
        return line.getvalue()
    return str(value)


def _parse_flags(line: str) -> dict[str, str]:
    """Flags separated by single spaces; if a name occurs twice, the first counts."""
    fields: dict[str, str] = {}
    for flag in line.split(" ") if line else []:
        name, _, value = flag.removeprefix("--").partition("=")
        fields.setdefault(name, value)
    return fields


def _train(
    fields: Mapping[str, str],
    sentences: Iterable[str | bytes] | None,
    pretokenizer: Any,
    inconsistent: bool,
    normalizer: Any,
    writer: _Writer | None,
) -> TrainingResult:
    trainer, normalizer_fields, denormalizer_tsv = parse_fields(fields)
    prefix = trainer.get("model_prefix", "")
    inputs = trainer.get("input", [])
    kind = trainer.get("model_type", "UNIGRAM")
    if kind != "BPE":
        stated = (
            f"model_type is {kind.lower()}" if "model_type" in trainer else "model_type is unigram by default"
        )
        raise TrainingError(f"{stated}, and cpbpe trains BPE models only; give model_type='bpe'")
    if (sentences is None) == (not inputs):
        raise TrainingError("give either input, with the names of files, or sentence_iterator")
    if (writer is None) == (not prefix):
        raise TrainingError("give either model_prefix, for files, or model_writer")
    if sentences is not None and not isinstance(sentences, Iterator):
        raise TypeError(
            f"sentence_iterator must be an iterator, not {type(sentences).__name__}; iter(...) makes one "
            "from a list"
        )
    if normalizer is not None:
        normalizer_fields = _of_normalizer(normalizer, normalizer_fields)

    options = PRESETS["sentencepiece"].replace(
        **{name: value for name, value in trainer.items() if name in _SAME_MEANING},
        **{
            name: normalizer_fields[name]
            for name in ("add_dummy_prefix", "remove_extra_whitespaces")
            if name in normalizer_fields
        },
        pretokenizer=pretokenizer,
        allow_inconsistent_pretokenization=inconsistent and pretokenizer is not None,
    )
    if not normalizer_fields.get("escape_whitespaces", True):
        raise TrainingError("escape_whitespaces=false: training needs spaces to become U+2581; leave it out")
    if prefix:
        check_prefix(prefix)
    settings = _settings(trainer, normalizer_fields, denormalizer_tsv)
    # sentencepiece treats an open file as an iterator, so its lines lose their ends, including \r.
    source = [Path(path) for path in inputs] if sentences is None else _checked(sentences)
    # num_threads is only recorded in the file.
    reading_options = ReadingOptions(
        format=trainer.get("input_format") or "text", field="", column="", raw=True
    )
    with Display(False) as display:
        family = SentencePieceFamily(options, settings)
        result = train_on_corpus(source, family, reading_options, display)
    if writer is not None:
        writer.write(result.model_bytes)
        return result
    vocab = vocab_file(result.spec, options.vocabulary_output_piece_score)
    write_all({f"{prefix}.model": result.model_bytes, f"{prefix}.vocab": vocab})
    return result


def _checked(sentences: Iterable[str | bytes]) -> Iterator[str | bytes]:
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, (str, bytes)):
            raise TrainingError(
                f"sentence_iterator yields str or bytes, but item {number} is {type(sentence).__name__}"
            )
        yield sentence


_SAME_MEANING = (
    # Options of sentencepiece that have the same meaning in `TrainOptions`.
    "allow_whitespace_only_pieces",
    "auto_character_coverage",
    "bos_id",
    "bos_piece",
    "byte_fallback",
    "character_coverage",
    "control_symbols",
    "eos_id",
    "eos_piece",
    "hard_vocab_limit",
    "input_sentence_size",
    "max_sentence_length",
    "max_sentencepiece_length",
    "pad_id",
    "pad_piece",
    "pretokenization_delimiter",
    "required_chars",
    "shuffle_input_sentence",
    "split_by_number",
    "split_by_unicode_script",
    "split_by_whitespace",
    "split_digits",
    "treat_whitespace_as_suffix",
    "unk_id",
    "unk_piece",
    "unk_surface",
    "user_defined_symbols",
    "vocab_size",
    "vocabulary_output_piece_score",
)


def _settings(
    trainer: Mapping[str, Any], normalizer: Mapping[str, Any], denormalizer_tsv: str | None
) -> Settings:
    """What the file records: the fields that were given, and the charsmaps that follow from them."""
    fields = dict(normalizer)
    tsv = fields.get("normalization_rule_tsv", "")
    if tsv:
        if fields.get("precompiled_charsmap"):
            raise TrainingError("normalization_rule_tsv and precompiled_charsmap exclude each other")
        fields["precompiled_charsmap"] = charsmap_of_file("normalization_rule_tsv", tsv)
        fields["name"] = "user_defined"
    else:
        fields["name"] = fields.get("name") or "nmt_nfkc"
        if not fields.get("precompiled_charsmap"):
            fields["precompiled_charsmap"] = _named_rules(fields["name"])
    denormalizer = None
    if denormalizer_tsv:
        charsmap = charsmap_of_file("denormalization_rule_tsv", denormalizer_tsv)
        denormalizer = denormalizer_settings(charsmap, denormalizer_tsv)
    return Settings(trainer, fields, denormalizer)


def _named_rules(name: str) -> bytes:
    if name == "identity":
        return b""
    if name not in RULE_NAMES:
        raise TrainingError(f"there are no normalization rules {name!r}; there are {', '.join(RULE_NAMES)}")
    from cpbpe.text.charsmap import rule_charsmap

    return rule_charsmap(name)


def _of_normalizer(normalizer: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a normalizer object: anything with sentencepiece's serialized_normalizer_spec()."""
    if fields:
        raise TrainingError(f"normalizer and {next(iter(fields))} exclude each other; choose one")
    return fields_of_normalizer(normalizer.serialized_normalizer_spec())
