"""Charsmaps in a tokenizer.json: the step Precompiled, and a text that shows how it differs.

The other library applies the rules to user-perceived characters, not to the longest text that has a rule. A
character of fewer than six bytes is looked up as a whole. If a rule matches the beginning of it, all of it is
replaced: the accent after a letter that has a rule is lost.
"""

from __future__ import annotations

import unicodedata
from base64 import b64decode, b64encode
from binascii import Error

from cpbpe.errors import ConversionError
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.text.charsmap import Charsmap

_ACCENT = "\u0323"
"""A combining mark that few rules have to do with: a dot below."""


def precompiled(charsmap: bytes) -> Json:
    """The step that holds a charsmap. The library cannot load one whose replacements are not UTF-8."""
    try:
        charsmap[4 + int.from_bytes(charsmap[:4], "little") :].decode()
    except UnicodeDecodeError:
        raise ConversionError(
            "some rules of the normalizer make text that is not UTF-8, which tokenizers cannot load; "
            "there is no tokenizer.json for this model"
        ) from None
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()}


def charsmap_of(step: Json) -> bytes | None:
    """The charsmap that a step holds, or None if it cannot be read."""
    try:
        return b64decode(step["precompiled_charsmap"], validate=True)
    except (Error, KeyError, TypeError, ValueError):
        return None


def lost_accent(blob: bytes, known: frozenset[str]) -> str | None:
    """A letter with a rule and an accent, which the other library loses; None if there is none.

    What the letter is rewritten to must end in a character that is `known`: two unknown characters side by
    side are one token, with or without the accent.
    """
    charsmap = Charsmap(blob, trusted=True)
    accent = _ACCENT.encode()
    if charsmap.longest(accent, 0) is not None:
        return None
    for code in range(0xA0, 0x10000):
        letter = chr(code)
        if unicodedata.category(letter) not in ("Lu", "Ll", "Lo", "No") or 0x1100 <= code < 0x1200:
            continue
        data = letter.encode()
        rule = charsmap.longest(data + accent, 0)
        if rule is None or rule[1] != len(data):
            continue
        rewritten = rule[0].decode(errors="replace")
        if rewritten[-1:] in known and not rewritten[-1:].isspace():
            return letter + _ACCENT
    return None
