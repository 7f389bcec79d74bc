"""Trying out a conversion before its files are written: libraries that read them encode texts.

`cpbpe.model.formats` proves that a conversion is exact. This guards against a library that does something
else than the proof assumes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from cpbpe.engine.choice import make_engine
from cpbpe.errors import ConversionError
from cpbpe.lazy import importing
from cpbpe.model.byte_level import special_tokens_of
from cpbpe.model.formats.registry import FORMATS, JSON, MODEL, NO_HINTS, Hints
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.spelling import counted, listed, named
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.identity import facts_of_read
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.plans import Plans

Encode = Callable[[str], list[int]]

_OURS = "cpbpe"
_SHOWN = 200
"""A longer text is cut in messages."""
_TRIED = 300
"""This many texts are tried in every conversion."""
_OLDEST = (0, 20)
"""The first version of tokenizers that reads merges as pairs."""


def _encode_of(spec: ModelSpec) -> Encode:
    """What encodes texts with a model. Like tokenizers, it finds added tokens that are not special.

    Text after such a token has a prefix if the model's tokenizer.json says so.
    """
    with importing:
        from cpbpe.model.formats.tokenizer_json.steps import by_metaspace
    first = spec.carried.options.get("prefix_after_special") is False and by_metaspace(spec.normalizer)
    plan = Plans(facts_of_read(spec)).encode({"prefix_after_special": not first}, "convert")
    return plan.encoder.encode


# --- Random texts ---------------------------------------------------------------------------------


def tried(spec: ModelSpec, files: Mapping[str, bytes]) -> str | None:
    """Try the files of a conversion (by format), and return with what; None if no library is installed.

    A ConversionError shows a text that gets other ids than in the model.
    """
    installed = _version("tokenizers")
    if JSON.name not in files or not installed:
        return None
    if tuple(int(part) for part in installed.split(".")[:2]) < _OLDEST:
        return None
    ours, theirs = _encode_of(spec), _by_tokenizers(files[JSON.name])
    for text in _random_texts(spec):
        if theirs(text) != ours(text):
            raise ConversionError(
                f"nothing was written: tokenizers {installed} gives other ids than this model should have "
                f"there, for example for {text!r}; please report this, with the model",
                differences=[(f"tokenizers {installed} gives other ids", text)],
            )
    return f"{_TRIED} texts with tokenizers {installed}"


def _random_texts(spec: ModelSpec) -> Iterator[str]:
    """The same texts every time: pieces side by side, and parts of pieces, with spaces and unknown text."""
    chance = random.Random(0)
    byte_level = spec.alphabet == "bytes"
    pieces = [
        text_of(text) if byte_level else text_of(text).replace("▁", " ")
        for text, type in zip(spec.pieces.texts, spec.pieces.types, strict=True)
        if not byte_level or type == PieceType.NORMAL
    ]
    others = [" ", "  ", "▁", "\n", "é", "☃☃", "\0", "a"]
    for number in range(_TRIED):
        parts = chance.choices(pieces, k=1 + number % 8) + chance.choices(others, k=number % 3)
        if number % 2:
            parts = [part[chance.randrange(len(part)) :] for part in parts]
        chance.shuffle(parts)
        yield "".join(parts)


def first_difference(model: ModelFacts, other: ModelFacts) -> str | None:
    """A text that gets other ids from another reading of the same model; None if none was found.

    Each encodes as its file asks for, with the names of special tokens as these tokens.
    """
    common = [name for name in model.special.ids if name in other.special.ids]
    usual = (" a", "a", "a  b", "\ta", "▁a", *(f"a{name}{end}" for name in common for end in ("a", " a")))

    def encode_of(facts: ModelFacts) -> Encode:
        after = facts.carried.options.get("prefix_after_special", True)
        options: EncodeOptions = {"allowed_special": common, "prefix_after_special": after}
        return Plans(facts).encode(options, "convert").encoder.encode

    ours, theirs = map(encode_of, (model, other))
    texts = (*usual, *_random_texts(model.full_spec))
    return next((text for text in texts if ours(text) != theirs(text)), None)


# --- Texts from the user --------------------------------------------------------------------------


def verified(
    spec: ModelSpec,
    files: Mapping[str, bytes],
    texts: str | os.PathLike[str] | Iterable[str],
    *,
    allow_differences: bool = False,
) -> tuple[str, tuple[Difference, ...]]:
    """Return how many texts were tried and with what, and the differences that were found.

    `files` are those of a conversion, by format. Differences are a ConversionError unless they are allowed.
    """
    ours = _encode_of(spec)
    others = dict(_encoders(spec, files, allow_differences))
    number = 0
    wrong: dict[str, list[str]] = {}
    for number, text in enumerate(_given_texts(texts), 1):
        ids = ours(text)
        for name, encode in others.items():
            if encode(text) != ids:
                if not allow_differences:
                    shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
                    raise ConversionError(
                        f"nothing was written: text {number} gets other ids with {name}: {shown}",
                        differences=[Difference(f"{name} gives other ids", text)],
                    )
                wrong.setdefault(name, []).append(text)
    if not number:
        raise ValueError(f"{named('verify')} holds no texts; give at least one")
    differences = (
        Difference(f"{name} gives other ids for {len(found):,} of {number:,} texts", min(found, key=len))
        for name, found in wrong.items()
    )
    return f"{counted(number, 'text')}, {_with(others, files)}", tuple(differences)


def _with(others: Iterable[str], files: Iterable[str]) -> str:
    libraries = [name for name in others if not name.startswith(_OURS)]
    with_others = f"with {listed([_OURS, *libraries])}"
    missing = [library for format, library in _LIBRARIES.items() if format in files and not _version(library)]
    return f"{with_others} ({listed(missing)} is not installed)" if missing else with_others


_LIBRARIES = {JSON.name: "tokenizers", MODEL.name: "sentencepiece"}
"""Which library a format is for."""


def _encoders(
    spec: ModelSpec, files: Mapping[str, bytes], allow_differences: bool
) -> Iterator[tuple[str, Encode]]:
    """Yield functions that encode with the files, each with a name for messages."""
    for format, data in files.items():
        hints = NO_HINTS
        if FORMATS[format].takes_hints and spec.alphabet == "bytes":  # what a user would say of this file
            special = {text_of(text): id for id, text in special_tokens_of(spec).items()}
            lists_them = bool(FORMATS[format].flags)
            pattern = spec.splitter.pattern if spec.splitter is not None else ""
            hints = Hints(pattern, None if lists_them else special)
        read = FORMATS[format].read(data, allow_differences=allow_differences, hints=hints)
        yield f"{_OURS}, which has read the {format} again,", _encode_of(read.spec)
    if JSON.name in files and _version("tokenizers"):
        yield f"tokenizers {_version('tokenizers')}", _by_tokenizers(files[JSON.name])
    if MODEL.name in files and _version("sentencepiece") and spec.alphabet == "characters":
        with importing:
            from sentencepiece import SentencePieceProcessor
        slow: Any = SentencePieceProcessor(model_proto=files[MODEL.name])
        yield f"sentencepiece {_version('sentencepiece')}", slow.encode


def _by_tokenizers(data: bytes) -> Encode:
    with importing:
        from tokenizers import Tokenizer
    try:
        library = Tokenizer.from_str(data.decode())
    except Exception as error:  # (it has none of its own)
        raise ConversionError(
            f"nothing was written: tokenizers {_version('tokenizers')} does not read the tokenizer.json: "
            f"{error}"
        ) from None
    library.encode_special_tokens = True
    return lambda text: list(library.encode(text, add_special_tokens=False).ids)


def _version(library: str) -> str:
    """The version of a library that is installed; "" if it is not."""
    with importing:
        from importlib.metadata import PackageNotFoundError, version
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _given_texts(given: str | os.PathLike[str] | Iterable[str]) -> Iterator[str]:
    if not isinstance(given, (str, os.PathLike)):
        for text in given:
            if not isinstance(text, str):
                raise TypeError(f"{named('verify')} holds texts (str), not {type(text).__name__}")
            yield text
        return
    with open(given, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode().removesuffix("\n")
            except UnicodeDecodeError:
                raise ValueError(
                    f"{os.fspath(given)}:{number}: is not UTF-8; convert the file first"
                ) from None


# --- What sentencepiece does with a `.model` ------------------------------------------------------
#
# sentencepiece ignores cpbpe's own fields in a `.model`. One of them changes ids: `prefix_before_space`. (The
# others hold added tokens and what other files say beside the model. They change ids only on request.)

_REASON = "sentencepiece puts a space in front of every text, also of text that begins with one"


def model_file_differences(spec: ModelSpec) -> list[Difference]:
    """The difference, if sentencepiece gives some text other ids with the model's file than cpbpe does."""
    rules = spec.normalizer
    if spec.alphabet == "bytes" or rules.prefix_before_space or rules.suffix or not rules.add_dummy_prefix:
        return []
    ours = make_engine(replace(spec, file=None))
    theirs = make_engine(replace(spec, normalizer=replace(rules, prefix_before_space=True), file=None))
    shown = next((text for text in _spaced_texts(spec) if ours.encode(text) != theirs.encode(text)), None)
    return [] if shown is None else [Difference(_REASON, shown)]


def _spaced_texts(spec: ModelSpec) -> Iterable[str]:
    """Texts that begin with a space, or with U+2581 if spaces are removed; one for each piece with that."""
    spaces = " " if not spec.normalizer.remove_extra_whitespaces else "▁"
    pieces = (text_of(text) for text in spec.pieces.texts)
    return [f"{spaces}a", spaces, *(text.replace("▁", spaces) for text in pieces if text.startswith("▁"))]
