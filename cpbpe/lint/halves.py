r"""Texts that contain given bytes, which may end or begin inside a character.

The pieces of byte-level models can be such bytes.

>>> next(completions(b"\x96\x81a")), next(completions(b"a\xc3")), list(completions(b"a\xff"))
('ᖁa', 'aÀ', [])
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice, product

from cpbpe.text.utf8 import is_valid_utf8

_OTHER_SIDE = 6
"""If bytes are missing at both ends, all completions of the end that has more of them are tried, each with
this many of the other end."""
_LENGTHS = {**dict.fromkeys(range(0xC2, 0xE0), 2), **dict.fromkeys(range(0xE0, 0xF0), 3)}
_LENGTHS |= dict.fromkeys(range(0xF0, 0xF5), 4)
"""How many bytes a character has, by its first byte."""
_LEAST = {2: 0x80, 3: 0x800, 4: 0x10000}
"""The lowest code of a character of this many bytes."""


def completions(data: bytes) -> Iterator[str]:
    """Yield texts that contain some bytes and as few characters as possible; nothing if no UTF-8 has them.

    All such texts are yielded, unless bytes are missing at both ends.
    """
    if data and all(byte & 0xC0 == 0x80 for byte in data):  # inside one character
        for more in range(4 - len(data)):
            for tail in product(range(0x80, 0xC0), repeat=more):
                yield from _spread(_ending(data + bytes(tail)))
        return
    sides = _sides(data)
    if sides is None:
        return
    before, middle, after = sides
    if len(before) >= len(after):
        ends = list(islice(_spread(after), _OTHER_SIDE))
        yield from (begin + middle + end for begin in _spread(before) for end in ends)
    else:
        begins = list(islice(_spread(before), _OTHER_SIDE))
        yield from (begin + middle + end for end in _spread(after) for begin in begins)


def parted(data: bytes) -> tuple[str, str, str] | None:
    r"""Some bytes in three parts: the characters that may end with the first bytes, the whole characters in
    the middle, and the characters that may begin with the last bytes. None if all bytes continue one
    character, or no UTF-8 has them.

    >>> before, middle, after = parted(b"ab\xc3")
    >>> before, middle, len(after), after[0]
    ('', 'ab', 64, 'À')
    """
    sides = _sides(data)
    return None if sides is None else (_text(sides[0]), sides[1], _text(sides[2]))


def _sides(data: bytes) -> tuple[range, str, range] | None:
    """The same, with the codes of characters instead of the characters."""
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    end = len(data) - open_bytes(data)
    middle = data[start:end]
    if start > end or (start and start == len(data)) or not is_valid_utf8(middle):
        return None
    before = _ending(data[:start]) if start else range(0)
    after = _beginning(data[end:]) if end < len(data) else range(0)
    if (start and not before) or (end < len(data) and not after):
        return None
    return before, middle.decode(), after


def _ending(part: bytes) -> range:
    """The codes of all characters whose last bytes are these, and of surrogates, which are no characters.

    A continuation byte holds six bits, so characters with the same n last bytes are 64**n codes apart.
    """
    step, least = 64 ** len(part), _LEAST[len(part) + 1]
    return range(least + (_bits(0, part) - least) % step, 0x110000, step)


def codes_beginning(part: bytes) -> range:
    r"""The codes of all characters whose first bytes are these; none if no UTF-8 has them.

    >>> codes_beginning(b"a"), codes_beginning(b"\xc3"), codes_beginning(b"\xc3a"), codes_beginning(b"\xff")
    (range(97, 98), range(192, 256), range(0, 0), range(0, 0))
    """
    if len(part) == 1 and part < b"\x80":
        return range(part[0], part[0] + 1)
    if len(part) > _LENGTHS.get(part[0], 0) or any(byte & 0xC0 != 0x80 for byte in part[1:]):
        return range(0)
    return _beginning(part)


def _beginning(part: bytes) -> range:
    """The same for bytes that are known to begin a character."""
    length = _LENGTHS[part[0]]
    rest = 64 ** (length - len(part))
    first = _bits(part[0] & 0xFF >> length + 1, part[1:]) * rest
    # (The first byte 0xED would also begin surrogates, which are no characters.)
    end = 0xD800 if 0xD000 <= first < 0xE000 else 0x110000
    return range(max(first, _LEAST[length]), min(first + rest, end))


def _bits(code: int, part: bytes) -> int:
    """A code that goes on with these continuation bytes."""
    for byte in part:
        code = code << 6 | byte & 0x3F
    return code


@lru_cache(maxsize=256)
def _text(codes: range) -> str:
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _spread(codes: range) -> Iterator[str]:
    """Characters: the rare ones above U+FFFF last, and the first ones far apart. Without codes, no text."""
    if not codes:
        yield ""
    rare = bisect_left(codes, 0x10000)
    for part in (codes[:rare], codes[rare:]):
        step = max(len(part) // 61, 1)
        for code in chain.from_iterable(part[begin::step] for begin in range(step)):
            if not 0xD800 <= code < 0xE000:
                yield chr(code)


def goes_on(data: bytes, byte: int) -> bool:
    r"""Whether a byte can follow bytes that end inside a character.

    >>> goes_on(b"\xe0", 0x80), goes_on(b"\xe0", 0xA0)
    (False, True)
    """
    return bool(_beginning(data[len(data) - open_bytes(data) :] + bytes([byte])))


def open_bytes(data: bytes) -> int:
    """How many bytes at the end begin a character without completing it."""
    for back in range(1, min(3, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 != 0x80:
            return back if back < _LENGTHS.get(lead, 0) else 0
    return 0
