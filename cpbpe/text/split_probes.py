r"""Probes: a few short texts that stand for everything that can follow a text and change where it is cut.

What follows a text may change where a pattern cuts it. But a published pattern only tells classes of
characters apart, and looks ahead only a little: at the letters of an ending, at what comes after whitespace,
at a small letter after capitals. So whatever follows, one of the probes has the same effect. That holds only
for the patterns listed here; another one may look ahead as far as it likes.
(`tests/encode/test_completions.py` tries all texts of a few characters before and after.)

>>> is_probed(PATTERNS["cl100k"]), is_probed("[a-z]+(?=.*!)")
(True, False)
>>> "'" in PROBES, " x" in PROBES, len(PROBES) < 200
(True, True, True)
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from unicodedata import category

from cpbpe.text.split_patterns import PATTERNS

_FRONT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
_OLD_FRONT = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+"
_REST = r"\s+(?!\S)|\s+"

_OTHERS = frozenset(
    {
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_REST}",
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{{L}}]+| ?[\p{{N}}]+| ?[^\s\p{{L}}\p{{N}}]+|{_REST}",
        rf"'(?:[sdmt]|ll|ve|re)| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_REST}",
        rf"{_OLD_FRONT}\p{{L}}++|\p{{N}}{{1,3}}+| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*+|\s++$|\s*[\r\n]|{_REST}",
        rf"{_OLD_FRONT}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*|\s*[\r\n]|{_REST}",
        rf"{_OLD_FRONT}\p{{L}}+|\p{{N}}{{1,2}}| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*|\s*[\r\n]|{_REST}",
        rf"{_FRONT}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_REST}",
    }
)
"""Other spellings of published patterns, and the patterns of nanochat and Qwen 3.5."""


def is_probed(pattern: str) -> bool:
    """Whether the probes stand for everything that can follow a text that this pattern cuts."""
    return pattern in PATTERNS.values() or pattern in _OTHERS


_SMALL = "stdmrevla"
"""Small letters: those of the endings ('s, 't, 'll, ...), and another one."""
_CLASSES = _SMALL + "SAxǅʰ中\u0301\U000104d81²\U0001e950 \t\n\r'/.\U00010b3f"
"""At least one character of each class. Those of several bytes are in hardly any pieces."""

_AHEAD = " \t\n\r'"
"""After these, patterns look at one more character."""

PROBES = ("", *_CLASSES, *map("".join, product(_AHEAD, _CLASSES)), "'ve", "'re", "'ll", " 's")
"""The probes, which stand for everything that can follow."""

PAIRS = tuple(dict.fromkeys((*PROBES, *map("".join, product(_CLASSES, repeat=2)))))
"""The probes, and all pairs of `_CLASSES`. These also show in which of its loops a pattern is at the end of a
text. (In o200k, what capitals belong to depends on whether a small letter follows.)"""

_OWN = frozenset(" \n\r'/")
"""Characters that patterns name one by one, so that each is a class of its own."""
_OF_ENDINGS = frozenset(_SMALL + _SMALL.upper() + "\u017f")
"""Letters that patterns name after an apostrophe."""


@lru_cache(1 << 14)
def class_of(letter: str) -> str:
    r"""The class of a character, as far as the published patterns tell characters apart.

    >>> [class_of(letter) for letter in "aAǅ中ʰ\u03011. \u3000\n\x1c"]
    ['Ll', 'Lu', 'Lu', 'Lo', 'Lo', 'M', 'N', 'other', 'space', 'space', 'newline', 'other']
    """
    kind = category(letter)
    if letter in "\r\n":
        return "newline"
    if letter.isspace() and not "\x1c" <= letter <= "\x1f":  # these four are whitespace in Python only
        return "space"
    if kind[0] == "L":
        return {"Lt": "Lu", "Lm": "Lo"}.get(kind, kind)
    return kind[0] if kind[0] in "MN" else "other"


def loops_of(pattern: str) -> tuple[set[str], ...]:
    r"""Return, for each loop of a published pattern, the classes of characters that it takes into one chunk.

    >>> [sorted(loop) for loop in loops_of(PATTERNS["cl100k"])]
    [['space'], ['M', 'other'], ['Ll', 'Lo', 'Lu']]
    """
    marks = {"M"} if r"\p{M}" in pattern else set()
    others = {"other"} if r"\p{M}\p{N}" in pattern else {"other", "M"}
    letters = [{"Ll", "Lo"}, {"Lu", "Lo"}] if r"\p{Lu}" in pattern else [{"Ll", "Lu", "Lo"}]
    return {"space"}, others, *(loop | marks for loop in letters)


def signature(before: bytes, text: bytes) -> str:
    """Return the classes of a text's characters, given the text before it.

    Texts with equal signatures are cut alike.

    >>> signature(b"", b"xyz1") == signature(b"", b"ttt3"), signature(b"", b"a") == signature(b"", b"A")
    (True, False)
    >>> signature(b"'", b"x") == signature(b"'", b"t"), len(signature(b"", b"x" * 20))
    (False, 3)
    """
    letters = text.decode()
    kinds = letters.translate(_KINDS)
    if b"'" in before or b"'" in text:  # the two letters after it may be an ending
        around = ("  " + before.decode("latin-1"))[-2:] + letters
        kinds = "".join(
            letter if letter in _OF_ENDINGS and "'" in around[at : at + 2] else kind
            for at, (letter, kind) in enumerate(zip(letters, kinds, strict=True))
        )
    return _shortened(kinds)


@lru_cache(1 << 14)
def _shortened(kinds: str) -> str:
    """Shorten runs of one class to three, except for classes whose characters patterns count or name."""
    return _MORE_THAN_THREE.sub(r"\1\1\1", kinds)


class _Kinds(dict[int, str]):
    """For each character, a digit for its class, or the character itself if patterns name it."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = kind = letter if letter in _OWN else _DIGITS[class_of(letter)]
        return kind


_DIGITS = {"Ll": "0", "Lu": "1", "Lo": "2", "M": "3", "other": "4", "space": "5", "N": "9"}
_KINDS = _Kinds()
_MORE_THAN_THREE = re.compile(r"([^9 \n\r'/])\1{3,}")


@lru_cache(512)
def characters(begin: bytes, count: int = 60) -> tuple[bytes, ...]:
    r"""Return what can complete a character that begins like this: all endings, or `count` per category.

    >>> len(characters(b"\xc3")), characters(b"\xc3")[0], 100 < len(characters(b"\xf0")) < 2000
    (64, b'\x80', True)
    """
    # All code points whose UTF-8 begins like this have the same high bits.
    missing = (2 if begin[0] < 0xE0 else 3 if begin[0] < 0xF0 else 4) - len(begin)
    bits = begin[0] & (0xFF >> (len(begin) + missing + 1))
    for byte in begin[1:]:
        bits = bits << 6 | byte & 0x3F
    first = bits << 6 * missing
    found: dict[str, list[bytes]] = {}
    for code in range(first, min(first + (1 << 6 * missing), 0x110000)):
        if 0xD800 <= code < 0xE000:
            continue
        whole = chr(code).encode()
        if whole.startswith(begin):
            of_kind = found.setdefault(category(chr(code)), [])
            if missing < 3 or len(of_kind) < count:
                of_kind.append(whole[len(begin) :])
    return tuple(rest for of_kind in found.values() for rest in of_kind)
