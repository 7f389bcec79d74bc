r"""Texts that contain given bytes, which may end or begin inside a character.

The pieces of byte-level models can be such bytes.

>>> next(completions(b"\x96\x81a")), next(completions(b"a\xc3")), list(completions(b"a\xff"))
('ᖁa', 'aÀ', [])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from cpbpe.text.utf8 import is_valid_utf8

_OTHER_SIDE = 6
"""If bytes are missing at both ends, all completions of the end that has more of them are tried, each with
this many of the other end."""
_FEW = (0x80, 0x81, 0x9F, 0xA0, 0xA9, 0x90, 0xBF, 0x98, 0xB8, 0x84, 0x8C, 0xA4)
"""Continuation bytes. With most first bytes, some of these make characters that are in use."""
_LENGTHS = {**dict.fromkeys(range(0xC2, 0xE0), 2), **dict.fromkeys(range(0xE0, 0xF0), 3)}
_LENGTHS |= dict.fromkeys(range(0xF0, 0xF5), 4)
"""How many bytes a character has, by its first byte."""


def completions(data: bytes) -> Iterator[str]:
    """Yield texts that contain some bytes and as few characters as possible; nothing if no UTF-8 has them.

    All such texts are yielded, unless two or more bytes are missing in front, or three at the end.
    """
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    if start and start == len(data):
        yield from _around(data, False)
        return
    end = len(data) - open_bytes(data)
    middle = data[start:end]
    if not is_valid_utf8(middle):
        return
    lefts = _around(data[:start], True) if start else [""]
    rights = _endings(data[end:]) if end < len(data) else [""]
    text = middle.decode()
    if len(lefts) >= len(rights):
        yield from (left + text + right for left in lefts for right in rights[:_OTHER_SIDE])
    else:
        yield from (left + text + right for right in rights for left in lefts[:_OTHER_SIDE])


def parted(data: bytes) -> tuple[str, str, str] | None:
    r"""Some bytes in three parts: the characters that may end with the first bytes, the whole characters in
    the middle, and the characters that may begin with the last bytes. None if all bytes lie inside one
    character, or no UTF-8 has them.

    >>> before, middle, after = parted(b"ab\xc3")
    >>> before, middle, len(after), after[0]
    ('', 'ab', 64, 'À')
    """
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    end = len(data) - open_bytes(data)
    middle = data[start:end]
    if start > end or (start and start == len(data)) or not is_valid_utf8(middle):
        return None
    before = _all_that(data[:start], True) if start else ""
    after = _all_that(data[end:], False) if end < len(data) else ""
    if (start and not before) or (end < len(data) and not after):
        return None
    return before, middle.decode(), after


@lru_cache(maxsize=256)
def _all_that(part: bytes, end: bool) -> str:
    """All characters that end, or begin, with some bytes, in the order of their codes."""
    if not end:
        low = _LENGTHS[part[0]] - len(part)
        codes: Iterable[int] = _codes(part + b"\x80" * low, part + b"\xbf" * low)
    else:
        # A continuation byte holds six bits, so characters with the same n last bytes are 64**n codes apart.
        step = 64 ** len(part)
        codes = range(sum((byte & 0x3F) << 6 * at for at, byte in enumerate(reversed(part))), 0x110000, step)
    found = (chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    if end:
        return "".join(c for c in found if (data := c.encode()).endswith(part) and len(data) > len(part))
    return "".join(c for c in found if c.encode().startswith(part))


def _codes(first: bytes, last: bytes) -> range:
    """The codes from one UTF-8 spelling to another; some may not be valid characters."""

    def code(data: bytes) -> int:
        value = data[0] & (0xFF >> (len(data) + 1))
        for byte in data[1:]:
            value = value << 6 | byte & 0x3F
        return value

    return range(code(first), min(code(last) + 1, 0x110000))


def goes_on(data: bytes, byte: int) -> bool:
    r"""Whether a byte can follow bytes that end inside a character.

    >>> goes_on(b"\xe0", 0x80), goes_on(b"\xe0", 0xA0)
    (False, True)
    """
    head = data[len(data) - open_bytes(data) :]
    return bool(_endings(head + bytes([byte])))


def open_bytes(data: bytes) -> int:
    """How many bytes at the end begin a character without completing it."""
    for back in range(1, min(3, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 != 0x80:
            return back if back < _LENGTHS.get(lead, 0) else 0
    return 0


def _inside(length: int, few: bool) -> Iterator[bytes]:
    """Yield sequences of continuation bytes; with `few`, only of those in `_FEW`."""
    return map(bytes, product(_FEW if few else range(0x80, 0xC0), repeat=length))


def _spread(texts: list[str]) -> list[str]:
    """The same texts in another order, in which the first ones are far apart."""
    step = max(len(texts) // 61, 1)
    return [texts[at] for begin in range(step) for at in range(begin, len(texts), step)]


@lru_cache(maxsize=256)
def _around(data: bytes, at_end: bool) -> list[str]:
    """Characters with some continuation bytes inside, or at their end. (Not always all of them.)"""
    found = []
    for lead, length in _LENGTHS.items():
        missing = length - 1 - len(data)
        for front in range(max(missing, 0) if at_end else 0, missing + 1):
            sides = product(_inside(front, missing > 1), _inside(missing - front, missing > 1))
            spelled = (bytes([lead]) + before + data + after for before, after in sides)
            found += [whole.decode() for whole in spelled if is_valid_utf8(whole)]
    return _spread(found)


@lru_cache(maxsize=256)
def _endings(head: bytes) -> list[str]:
    """Characters that begin with some bytes."""
    length = _LENGTHS[head[0]]
    missing = length - len(head)
    tails = _inside(missing, missing > 2)
    return _spread([whole.decode() for tail in tails if is_valid_utf8(whole := head + tail)])
