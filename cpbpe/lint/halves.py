r"""Texts around bytes that are no whole characters, such as a piece of a byte-level model may be.

>>> next(completions(b"\x96\x81a")), next(completions(b"a\xc3")), list(completions(b"a\xff"))
('ᖁa', 'aÀ', [])
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from cpbpe.text.utf8 import is_valid_utf8

_OTHER_SIDE = 6
"""Where bytes are missing at both ends, so many characters of the side that has fewer are tried with each of
the other."""
_FEW = (0x80, 0x81, 0x9F, 0xA0, 0xA9, 0x90, 0xBF, 0x98, 0xB8, 0x84, 0x8C, 0xA4)
"""Bytes inside of characters, of which some make characters in use with most first bytes."""
_LENGTHS = {**dict.fromkeys(range(0xC2, 0xE0), 2), **dict.fromkeys(range(0xE0, 0xF0), 3)}
_LENGTHS |= dict.fromkeys(range(0xF0, 0xF5), 4)
"""How many bytes the character has that begins with a byte."""


def completions(data: bytes) -> Iterator[str]:
    """Yield texts that have some bytes in them, with as few characters as possible; none if UTF-8 has none.

    All of them, unless two or more bytes are missing in front, or three after them.
    """
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    if start and start == len(data):
        yield from _around(data)
        return
    end = len(data) - _open_bytes(data)
    middle = data[start:end]
    if not is_valid_utf8(middle):
        return
    lefts = _beginnings(data[:start]) if start else [""]
    rights = _endings(data[end:]) if end < len(data) else [""]
    text = middle.decode()
    if len(lefts) >= len(rights):
        yield from (left + text + right for left in lefts for right in rights[:_OTHER_SIDE])
    else:
        yield from (left + text + right for right in rights for left in lefts[:_OTHER_SIDE])


def is_open(data: bytes) -> bool:
    """Whether some bytes end inside a character."""
    return _open_bytes(data) > 0


def goes_on(data: bytes, byte: int) -> bool:
    r"""Whether a byte can follow bytes that end inside a character.

    >>> goes_on(b"\xe0", 0x80), goes_on(b"\xe0", 0xA0)
    (False, True)
    """
    head = data[len(data) - _open_bytes(data) :]
    return next(iter(_endings(head + bytes([byte]))), None) is not None


def _open_bytes(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character."""
    for back in range(1, min(3, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 != 0x80:
            return back if back < _LENGTHS.get(lead, 0) else 0
    return 0


def _inside(length: int, few: bool) -> Iterator[bytes]:
    """Yield bytes that stand inside a character."""
    return map(bytes, product(_FEW if few else range(0x80, 0xC0), repeat=length))


def _spread(texts: list[str]) -> list[str]:
    """The same texts, such that the first ones are far from each other."""
    step = max(len(texts) // 61, 1)
    return [texts[at] for begin in range(step) for at in range(begin, len(texts), step)]


@cache
def _around(data: bytes) -> list[str]:
    """Characters that have some bytes inside, none of which begins a character; not all of them."""
    found = []
    for lead, length in _LENGTHS.items():
        for front in range(length - len(data)):
            after = length - 1 - front - len(data)
            for ahead, behind in product(_inside(front, True), _inside(after, length > 3 or front > 0)):
                whole = bytes([lead]) + ahead + data + behind
                if is_valid_utf8(whole):
                    found.append(whole.decode())
    return _spread(found)


@cache
def _beginnings(tail: bytes) -> list[str]:
    """Characters that end with some bytes."""
    return _spread(
        [
            whole.decode()
            for lead, length in _LENGTHS.items()
            if length > len(tail)
            for middle in _inside(length - 1 - len(tail), length - len(tail) > 2)
            if is_valid_utf8(whole := bytes([lead]) + middle + tail)
        ]
    )


@cache
def _endings(head: bytes) -> list[str]:
    """Characters that begin with some bytes."""
    length = _LENGTHS[head[0]]
    missing = length - len(head)
    tails = _inside(missing, missing > 2)
    return _spread([whole.decode() for tail in tails if is_valid_utf8(whole := head + tail)])
