"""Trying out a conversion on texts of one's own: every library that reads one of its files encodes them.

cpbpe itself reads each file again, too, and encodes with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cpbpe.engine.choice import make_engine
from cpbpe.errors import ConversionError
from cpbpe.lazy import imported
from cpbpe.model.formats.registry import FORMATS, NO_HINTS, Hints
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.spelling import counted, listed, named
from cpbpe.text.utf8 import text_of

Encode = Callable[[str], list[int]]

_OURS = "cpbpe"
_SHOWN = 200
"""A longer text is cut in messages."""


def verified(
    spec: ModelSpec,
    files: Mapping[str, bytes],
    texts: str | os.PathLike[str] | Iterable[str],
    *,
    allow_differences: bool = False,
) -> tuple[str, tuple[Difference, ...]]:
    """How many texts were tried, and with what; and which libraries give other ids, if that is allowed.

    `files` are those of a conversion, by their formats. Otherwise, other ids are a ConversionError.
    """
    ours = make_engine(spec).encode
    others = dict(_encoders(spec, files, allow_differences))
    number = 0
    wrong: dict[str, list[str]] = {}
    for number, text in enumerate(_texts(texts), 1):
        ids = ours(text)
        for name, encode in others.items():
            if encode(text) != ids:
                if not allow_differences:
                    raise ConversionError(
                        f"nothing was written: text {number} gets other ids with {name}: {_cut(text)}",
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
    missing = [library for format, library in _LIBRARIES.items() if format in files and not _has(library)]
    return f"{with_others} ({listed(missing)} is not installed)" if missing else with_others


_LIBRARIES = {"tokenizer.json": "tokenizers", "model": "sentencepiece"}
"""Which library a format is for."""


def _encoders(
    spec: ModelSpec, files: Mapping[str, bytes], allow_differences: bool
) -> Iterator[tuple[str, Encode]]:
    """What encodes with the files, by a name for it."""
    for format, data in files.items():
        hints = _hints(spec) if FORMATS[format].takes_hints else NO_HINTS
        read = FORMATS[format].read(data, allow_differences=allow_differences, hints=hints)
        yield f"{_OURS}, which has read the {format} again,", make_engine(read.spec).encode
    if "tokenizer.json" in files and _has("tokenizers"):
        fast = imported("tokenizers").Tokenizer.from_str(files["tokenizer.json"].decode())
        fast.encode_special_tokens = True
        yield (
            f"tokenizers {version('tokenizers')}",
            lambda text: fast.encode(text, add_special_tokens=False).ids,
        )
    if "model" in files and _has("sentencepiece") and spec.alphabet == "characters":
        slow: Any = imported("sentencepiece").SentencePieceProcessor(model_proto=files["model"])
        yield f"sentencepiece {version('sentencepiece')}", slow.encode


def _hints(spec: ModelSpec) -> Hints:
    """What a user says to load a file of this model that does not say it."""
    control = (id for id, type in enumerate(spec.pieces.types) if type == PieceType.CONTROL)
    special = {text_of(spec.pieces.texts[id]): id for id in control}
    special |= {text_of(text): id for text, id in spec.added}
    return Hints(spec.splitter.pattern if spec.splitter is not None else "", special)


def _has(library: str) -> bool:
    try:
        return bool(version(library))
    except PackageNotFoundError:
        return False


def _texts(given: str | os.PathLike[str] | Iterable[str]) -> Iterator[str]:
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


def _cut(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
