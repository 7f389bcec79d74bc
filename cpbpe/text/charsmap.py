"""Normalization rules as model files carry them: read, check, look up.

A charsmap is one blob of bytes: a little-endian u32 that gives the size of a trie, the trie, and
replacement strings that end in NUL each. The trie maps the UTF-8 bytes of what is to be replaced
to the position of its replacement.

The trie is a double array: every unit is a u32, and the child of the unit at position `p` for the
byte `c` sits at `p ^ offset ^ c`, if that unit carries the label `c`. A unit that ends a key has a
leaf at `p ^ offset`, whose low 31 bits are the value. So looking up costs one step a byte, and the
file can be used as it is. It comes from strangers, though: the whole array is checked when it is
loaded, by the rules of sentencepiece, and each step checks its bounds again.
"""

from __future__ import annotations

import struct
import sys
from array import array

from cpbpe.errors import ModelError

MAX_MATCHES = 32
"""sentencepiece collects this many rules that match at one place, shortest first, and no more."""

_LEAF = 1 << 31


def _offset(unit: int) -> int:
    """The 21 bits of distance to the children; one more bit says to shift them by 8."""
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _has_leaf(unit: int) -> bool:
    return bool(unit & 0x100)


def _label(unit: int) -> int:
    """The byte this unit is reached by; more than 255 for a leaf, so that no byte reaches it."""
    return unit & (_LEAF | 0xFF)


class Charsmap:
    """The rules of one blob. See `tests/support/charsmaps.py` for one written by hand."""

    def __init__(self, blob: bytes, where: str = "normalizer_spec"):
        problem = f"{where}.precompiled_charsmap is malformed: "
        if len(blob) <= 4:
            raise ModelError(f"{problem}{len(blob)} bytes are too few for a trie")
        (size,) = struct.unpack_from("<I", blob)
        if size >= len(blob) - 4:
            raise ModelError(f"{problem}a trie of {size} bytes in a blob of {len(blob)}")
        if size < 1024 or size % 1024:
            raise ModelError(f"{problem}the trie's size, {size}, is not a multiple of 1024")
        self._units = array("I", blob[4 : 4 + size])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._replacements = blob[4 + size :]
        if self._replacements[-1] != 0:
            raise ModelError(f"{problem}the last replacement does not end in NUL")
        bad = self._first_bad_unit()
        if bad is not None:
            raise ModelError(f"{problem}unit {bad} of the trie points outside of it")

    def _first_bad_unit(self) -> int | None:
        """The first unit that a walk could leave the array from, or whose value has no replacement."""
        units, size, limit = self._units, len(self._units), len(self._replacements)
        if _label(units[0]) or _has_leaf(units[0]) or not _offset(units[0]):
            return 0
        for i, unit in enumerate(units):
            if _label(unit) > 0xFF:
                if unit & ~_LEAF >= limit:
                    return i
                continue
            child = i ^ _offset(unit)
            if child | 0xFF >= size or (_has_leaf(unit) and _label(units[child]) <= 0xFF):
                return i
        return None

    def longest(self, text: bytes, start: int) -> tuple[bytes, int] | None:
        """The replacement for the longest key that `text` holds at `start`, and the key's length.

        The key counts bytes, and so does the walk: nothing keeps a rule from ending inside a character.
        """
        units = self._units
        node = _offset(units[0])
        value = None
        length = matches = 0
        for at in range(start, len(text)):
            node ^= text[at]
            if node >= len(units) or _label(units[node]) != text[at]:
                break
            unit = units[node]
            node ^= _offset(unit)
            if _has_leaf(unit):
                value, length, matches = units[node] & ~_LEAF, at + 1 - start, matches + 1
                if matches == MAX_MATCHES:
                    break
        if value is None:
            return None
        return self._replacements[value : self._replacements.index(0, value)], length
