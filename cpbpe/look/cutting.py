r"""What each part of a byte-level model's pattern does, in a phrase.

>>> list(explained(r"\p{N}{1,3}|\s+"))
[('\\p{N}{1,3}', 'a number of one to three digits'), ('\\s+', 'whitespace')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENDING = "an ending: 's, 'd, 'm, 't, 'll, 've or 're"
_WORD = "letters, and the space in front"
_FREE_WORD = "letters, and the character in front if it is no digit or line break"
_MARKS = "marks and symbols, and the space in front"
_BREAKS = "whitespace up to its last line break"
_LAST = "whitespace, but not its last character if something else follows"

_MEANINGS = {
    r"'(?:[sdmt]|ll|ve|re)": _ENDING,
    r"'(?i:[sdmt]|ll|ve|re)": f"{_ENDING}, also in capitals",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)": f"{_ENDING}, also in capitals",
    r" ?\p{L}+": _WORD,
    r" ?\p{N}+": "a number of any length, and the space in front",
    r" ?[^\s\p{L}\p{N}]+": _MARKS,
    r"[^\r\n\p{L}\p{N}]?\p{L}+": _FREE_WORD,
    r"\p{N}{1,3}": "a number of one to three digits",
    r"\p{N}": "one digit",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*": f"{_MARKS}, and line breaks after them",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*": f"{_MARKS}, and line breaks or slashes after them",
    r"\s+$": "whitespace at the end of the text",
    r"\s*[\r\n]": _BREAKS,
    r"\s*[\r\n]+": _BREAKS,
    r"\s+(?!\S)": _LAST,
    r"\s+": "whitespace",
    r"\s": "one character of whitespace",
}
"""By the text of a part, without possessive repeats, which do not change what it matches here."""

_POSSESSIVE = re.compile(r"([+*?]|\{\d+,\d+\})\+")
"""A repeat that gives nothing back."""

_BY_CASE = (
    (r"*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+", "a word that ends in small letters"),
    (r"+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*", "a word that begins with capitals"),
)
"""The words of patterns that cut before a capital."""
_ENDING_AFTER = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


def explained(pattern: str) -> Iterator[tuple[str, str]]:
    """The parts of a pattern in the order in which they are tried, each with its meaning; "" if unknown."""
    for part in _parts(pattern):
        yield part, _meaning(part)


def _meaning(part: str) -> str:
    plain = _POSSESSIVE.sub(r"\1", part)
    if plain in _MEANINGS:
        return _MEANINGS[plain]
    for inside, meaning in _BY_CASE:
        if part.startswith(r"[^\r\n\p{L}\p{N}]?[\p{Lu}") and inside in part:
            return meaning + (", and an ending such as 's after it" if part.endswith(_ENDING_AFTER) else "")
    return ""


def _parts(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern."""
    begin = depth = 0
    in_class = escaped = False
    for at, character in enumerate(pattern):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and not depth:
            yield pattern[begin:at]
            begin = at + 1
    yield pattern[begin:]
