"""All rules of a charsmap: `cpbpe.text.charsmap` finds the one that applies, and this lists them."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

MAX_DEPTH = 1000
"""The length at which sentencepiece gives up on a rule."""
MAX_RULES = 10_000_000
"""A charsmap from a stranger may lead to more rules than there are atoms; this is where listing ends."""


def rules_of(charsmap: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what each rule replaces, and by what. The charsmap is one that `Charsmap` has checked.

    >>> from cpbpe.text.charsmap_build import charsmap_from_rules
    >>> list(rules_of(charsmap_from_rules([("ab", "c"), ("a", "")])))
    [(b'a', b''), (b'ab', b'c')]
    """
    (size,) = struct.unpack_from("<I", charsmap)
    units = array("I", charsmap[4 : 4 + size])
    if sys.byteorder == "big":
        units.byteswap()
    replacements = charsmap[4 + size :]

    # A unit whose label is a byte is a child of the node whose base is its position ^ that label.
    children: dict[int, list[int]] = {}
    for at, unit in enumerate(units):
        if not unit >> 31:
            children.setdefault(at ^ unit & 0xFF, []).append(at)

    found = 0
    waiting = [(b"", 0)]
    while waiting:
        key, at = waiting.pop()
        unit = units[at]
        base = at ^ (unit >> 10) << ((unit & 0x200) >> 6)
        if unit & 0x100 and key:
            start = units[base] & 0x7FFFFFFF
            yield key, replacements[start : replacements.index(0, start)]
            found += 1
        if len(key) > MAX_DEPTH or found > MAX_RULES:
            raise RuntimeError("the rules are without end; this is no charsmap that a program has made")
        below = sorted(children.get(base, ()), key=lambda at: units[at] & 0xFF, reverse=True)
        waiting += [(key + bytes([units[at] & 0xFF]), at) for at in below]
