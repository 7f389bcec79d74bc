"""How `SentencePieceTrainer` handles a call: it turns options into values, trains, and writes files.

It refuses everything that sentencepiece refuses.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from cpbpe.compat.sentencepiece.normalizer import charsmap_of_name
from cpbpe.errors import TrainingError
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import Settings
from cpbpe.model.writing import write_all
from cpbpe.training.arguments import ReadingOptions
from cpbpe.training.families import SentencePieceFamily, vocab_file
from cpbpe.training.options import PRESETS, TrainOptions
from cpbpe.training.progress import Display
from cpbpe.training.result import TrainingResult, check_prefix
from cpbpe.training.settings import charsmap_of_file, denormalizer_settings
from cpbpe.training.train import train_on_corpus

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
    trainer_fields, normalizer_fields = (
        getattr(model_file.messages(), spec).DESCRIPTOR.fields_by_name
        for spec in ("TrainerSpec", "NormalizerSpec")
    )
    for name, text in options.items():
        if name == "normalization_rule_name":
            normalizer.setdefault("name", text)  # (of this and `name`, the first one counts)
        elif name == "denormalization_rule_tsv":
            denormalizer = text
        elif name == "minloglevel":
            _integer(name, text, 32, True)  # nothing is logged
        elif name in _DEPRECATED:
            continue
        elif name in trainer_fields:
            trainer[name] = _parsed(trainer_fields[name], text)
        elif name in normalizer_fields:
            normalizer.setdefault(name, _parsed(normalizer_fields[name], text))
        else:
            raise TrainingError(f"there is no option {name!r} in sentencepiece 0.2.3")
    _check(trainer)
    return trainer, normalizer, denormalizer


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


def _parsed(field: Any, text: str) -> Any:
    """The value of an option, of the type that its field has in the model file."""
    name, kind = field.name, field.type
    if field.default_value == []:
        return split_csv(text)
    if kind == field.TYPE_INT32 or kind == field.TYPE_UINT64:
        return _integer(name, text, *((32, True) if kind == field.TYPE_INT32 else (64, False)))
    if kind == field.TYPE_FLOAT:
        try:
            value = float(text.strip(" \t\n\v\f\r")) if "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise TrainingError(f"{name}: {text!r} is not a number")
        return value
    if kind == field.TYPE_BOOL:
        lower = text.lower() or "true"
        if lower not in _TRUE and lower not in _FALSE:
            raise TrainingError(f"{name}: {text!r} is neither true nor false")
        return lower in _TRUE
    if kind == field.TYPE_ENUM:
        if text.upper() not in field.enum_type.values_by_name:
            raise TrainingError(f"model_type: there is no {text!r}; cpbpe trains bpe")
        return text.upper()
    return text.encode() if name == "precompiled_charsmap" else text


def _integer(name: str, text: str, bits: int, signed: bool) -> int:
    match = re.fullmatch(r"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*", text, re.ASCII)
    if match is not None:
        value = int(match[1])
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
        if low <= value < high:
            return value
    raise TrainingError(f"{name}: {text!r} is not an integer of {bits} bits")


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


def call(arg: str | None, logstream: TextIO | None, kwargs: dict[str, Any]) -> None:
    """Do the work of `SentencePieceTrainer.train`. Errors are those of `cpbpe.training`."""
    if isinstance(arg, str):
        if kwargs:
            raise TrainingError(f"with a string of flags, {next(iter(kwargs))} is ignored; leave it out")
        result = _train(_parse_flags(arg))
    elif arg is not None:
        raise TypeError(f"train() takes a string of flags or keyword arguments, not {arg!r}")
    else:
        result = _train(None, **kwargs)
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
    flags: Mapping[str, str] | None,
    /,
    sentence_iterator: Iterable[str | bytes] | None = None,
    sentence_reader: Iterable[str | bytes] | None = None,
    model_writer: Any = None,
    pretokenizer: Any = None,
    allow_inconsistent_pretokenization: Any = False,
    normalizer: Any = None,
    **options_given: Any,
) -> TrainingResult:
    # 1. Check what was given.
    if flags is None:
        flags = {name: _encode(value) for name, value in options_given.items()}
    trainer, normalizer_fields, denormalizer_tsv = parse_fields(flags)
    prefix = trainer.get("model_prefix", "")
    inputs = trainer.get("input", [])
    sentences = sentence_reader if sentence_iterator is None else sentence_iterator
    kind = trainer.get("model_type", "UNIGRAM")
    if kind != "BPE":
        stated = (
            f"model_type is {kind.lower()}" if "model_type" in trainer else "model_type is unigram by default"
        )
        raise TrainingError(f"{stated}, and cpbpe trains BPE models only; give model_type='bpe'")
    if (sentences is None) == (not inputs):
        raise TrainingError("give either input, with the names of files, or sentence_iterator")
    if (model_writer is None) == (not prefix):
        raise TrainingError("give either model_prefix, for files, or model_writer")
    if sentences is not None and not isinstance(sentences, Iterator):
        raise TypeError(
            f"sentence_iterator must be an iterator, not {type(sentences).__name__}; iter(...) makes one "
            "from a list"
        )
    if normalizer is not None:
        if normalizer_fields:
            raise TrainingError(
                f"normalizer and {next(iter(normalizer_fields))} exclude each other; choose one"
            )
        normalizer_fields = _of_normalizer(normalizer)

    # 2. The options of training, and what the file records.
    options = PRESETS["sentencepiece"].replace(
        # (Where `TrainOptions` has an option of sentencepiece, it has the same meaning.)
        **{field.name: trainer[field.name] for field in fields(TrainOptions) if field.name in trainer},
        **{
            name: normalizer_fields[name]
            for name in ("add_dummy_prefix", "remove_extra_whitespaces")
            if name in normalizer_fields
        },
        pretokenizer=pretokenizer,
        allow_inconsistent_pretokenization=bool(allow_inconsistent_pretokenization)
        and pretokenizer is not None,
    )
    if not normalizer_fields.get("escape_whitespaces", True):
        raise TrainingError("escape_whitespaces=false: training needs spaces to become U+2581; leave it out")
    if prefix:
        check_prefix(prefix)
    settings = _settings(trainer, normalizer_fields, denormalizer_tsv)
    # 3. Train. (sentencepiece treats an open file as an iterator, so its lines lose their ends, including \r.
    # num_threads is only recorded in the file.)
    source = [Path(path) for path in inputs] if sentences is None else _checked(sentences)
    reading_options = ReadingOptions(
        format=trainer.get("input_format") or "text", field="", column="", raw=True
    )
    with Display(False) as display:
        family = SentencePieceFamily(options, settings)
        result = train_on_corpus(source, family, reading_options, display)
    # 4. Write.
    if model_writer is not None:
        model_writer.write(result.model_bytes)
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


def _settings(
    trainer: Mapping[str, Any], normalizer: Mapping[str, Any], denormalizer_tsv: str | None
) -> Settings:
    """What the file records: the fields that were given, and the charsmaps that follow from them."""
    given = dict(normalizer)
    tsv = given.get("normalization_rule_tsv", "")
    if tsv:
        if given.get("precompiled_charsmap"):
            raise TrainingError("normalization_rule_tsv and precompiled_charsmap exclude each other")
        given["precompiled_charsmap"] = charsmap_of_file("normalization_rule_tsv", tsv)
        given["name"] = "user_defined"
    else:
        given["name"] = given.get("name") or "nmt_nfkc"
        if not given.get("precompiled_charsmap"):
            try:
                given["precompiled_charsmap"] = charsmap_of_name(given["name"])
            except (RuntimeError, ValueError) as error:
                raise TrainingError(str(error)) from None
    denormalizer = None
    if denormalizer_tsv:
        charsmap = charsmap_of_file("denormalization_rule_tsv", denormalizer_tsv)
        denormalizer = denormalizer_settings(charsmap, denormalizer_tsv)
    return Settings(trainer, given, denormalizer)


def _of_normalizer(normalizer: Any) -> dict[str, Any]:
    """The fields of a normalizer object: anything with sentencepiece's serialized_normalizer_spec()."""
    data = normalizer.serialized_normalizer_spec()
    try:
        return model_file.fields_of(model_file.messages().NormalizerSpec.FromString(data))
    except model_file.decode_error():
        raise TrainingError("normalizer: its serialized_normalizer_spec() is not a valid message") from None
