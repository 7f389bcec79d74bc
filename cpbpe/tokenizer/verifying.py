"""Trying out a tokenizer.json: the library that it is for encodes some texts, if it is installed.

This is no proof, which `cpbpe.model.formats.tokenizer_json` has; it guards against a library that does not do
what was proved.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from cpbpe.engine.choice import make_engine
from cpbpe.errors import ConversionError
from cpbpe.lazy import imported
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.utf8 import text_of

TEXTS = 300
"""How many texts are tried."""
_OLDEST = (0, 20)
"""The first version that reads merges as pairs."""


def tried(spec: ModelSpec, files: Mapping[str, bytes]) -> str | None:
    """With what the files of a conversion, by their formats, were tried; None if no library is installed.

    A ConversionError shows a text that has other ids than in the model.
    """
    data = files.get("tokenizer.json")
    if data is None:
        return None
    try:
        installed = version("tokenizers")
    except PackageNotFoundError:
        return None
    if tuple(int(part) for part in installed.split(".")[:2]) < _OLDEST:
        return None
    other = imported("tokenizers").Tokenizer.from_str(data.decode())
    other.encode_special_tokens = True
    engine = make_engine(spec)
    for text in _texts(spec):
        if other.encode(text, add_special_tokens=False).ids != engine.encode(text):
            raise ConversionError(
                f"nothing was written: tokenizers {installed} gives other ids than this model should have "
                f"there, for example for {text!r}; please report this, with the model",
                differences=[(f"tokenizers {installed} gives other ids", text)],
            )
    return f"{TEXTS} texts with tokenizers {installed}"


def _texts(spec: ModelSpec) -> Iterator[str]:
    """The same texts every time: pieces side by side, and parts of pieces, with spaces and unknown text."""
    chance = random.Random(0)
    byte_level = spec.alphabet == "bytes"
    pieces = [
        text_of(text) if byte_level else text_of(text).replace("▁", " ")
        for text, type in zip(spec.pieces.texts, spec.pieces.types, strict=True)
        if not byte_level or type == PieceType.NORMAL
    ]
    others = [" ", "  ", "▁", "\n", "é", "☃☃", "\0", "a"]
    for number in range(TEXTS):
        parts = chance.choices(pieces, k=1 + number % 8) + chance.choices(others, k=number % 3)
        if number % 2:
            parts = [part[chance.randrange(len(part)) :] for part in parts]
        chance.shuffle(parts)
        yield "".join(parts)
