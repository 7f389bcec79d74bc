"""Pieces and texts as a terminal can show them.

A model may come from anybody. Its pieces may hold controls that move the cursor, reverse the direction of a
line or hide text. Here every character that is not visible is written as an escape, as Python writes it.
"""

from __future__ import annotations

import re
from unicodedata import combining

from cpbpe.text.drawn import width

__all__ = ["fitted", "shown", "shown_with_spaces", "width"]

_PART = re.compile(r"[^ -~]")


def shown(text: str) -> str:
    r"""A text with escapes for what is not visible; a combining mark in front gets a circle to stand on.

    >>> shown("▁a\tb"), shown("\x1b[2J"), shown("\u202egnp"), shown("\\"), shown("\u0301")
    ('▁a\\tb', '\\x1b[2J', '\\u202egnp', '\\\\', '◌́')
    """
    text = text.replace("\\", "\\\\")
    if not text.isprintable():
        text = _PART.sub(_escape, text)
    return f"◌{text}" if text and combining(text[0]) else text


def shown_with_spaces(text: str) -> str:
    """The same with `␣` for a space, where spaces are a part of pieces.

    >>> shown_with_spaces(" hello")
    '␣hello'
    """
    return shown(text).replace(" ", "␣")


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else ascii(match[0])[1:-1]


def fitted(text: str, columns: int) -> str:
    """A shown text, cut if it takes more columns.

    >>> fitted("abcdef", 4), fitted("日本語", 5)
    ('abc…', '日本…')
    """
    if width(text) <= columns:
        return text
    kept = ""
    left = columns - 1
    for character in text:
        left -= width(character)
        if left < 0:
            break
        kept += character
    return f"{kept}…"
