"""Charsmaps, the normalization rules in model files: checks them, looks up a rule, lists all rules.

A charsmap is a blob of bytes: a little-endian u32 that gives the size of a trie, the trie, and replacement
strings, each of which ends in NUL. The trie maps the UTF-8 bytes of every key to the position of its
replacement.

The trie is a double array of u32 *units*. A node is identified by the position of its unit; the root is 0.
The children of a node lie around its *base*, which is `node ^ offset`: the child for the byte `c` is the unit
at `base ^ c`, if that unit has the label `c`. If a key ends at the node, the unit at the base itself is a
leaf, whose low 31 bits are the value. So a look-up takes one step per byte, and the file can be used as it
is.

A unit has 32 bits:

    31      is set in a leaf, whose other bits are its value
    10-30   the offset, or all of it but its lowest 8 bits, which are 0 ...
    9       ... if this is set: then it is shifted to the left by 8
    8       whether a key ends here
    0-7     the label, the byte that leads here

A charsmap comes from a file of unknown origin. The whole array is checked when it is loaded, by the rules of
sentencepiece, and each step checks its bounds again. But checking each unit by itself cannot show whether a
walk through the trie ends. Several paths may lead to one node (sentencepiece saves room with this), so a
crafted file can have cycles, and more rules than anybody could list. So every walk through the whole trie has
a limit. (`cpbpe.text.charsmap_build` makes charsmaps.)
"""

from __future__ import annotations

import pkgutil
import struct
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Iterator
from functools import cache, lru_cache

from cpbpe.errors import ModelError
from cpbpe.lazy import kept

MAX_MATCHES = 32
"""sentencepiece collects at most this many rules that match at one position, shortest first."""

MAX_VISITS = 1 << 20
"""At most this many steps are made to find the longest key. The largest named set of rules takes 48,000."""

_ROOT = 0
_LEAF = 1 << 31
_ENDS_KEY = 1 << 8
_LABEL = _LEAF | 0xFF
"""The bits that are compared with a byte. A leaf has more than a byte here, so no byte leads to it."""


def _offset(unit: int) -> int:
    """How far the base is from the node: 21 bits, or 29 of which the lowest 8 are 0."""
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _units(trie: bytes) -> array[int]:
    units = array("I", trie)
    if sys.byteorder == "big":
        units.byteswap()
    return units


@lru_cache(maxsize=4)
def _first_bad_unit(trie: bytes, limit: int) -> int | None:
    """The first unit that is not valid: a root that cannot be one, a base outside of the array or without the
    leaf that it should have, or a value with no replacement below `limit`. None if all are valid.

    The last few answers are kept: a model is checked before its engine is made, which checks it again, and
    many models have the charsmap of the same named rules. This is most of the time that it takes to load one.
    """
    units = _units(trie)
    size = len(units)
    if units[_ROOT] & _LABEL or units[_ROOT] & _ENDS_KEY or not _offset(units[_ROOT]):
        return 0
    for node, unit in enumerate(units):
        if unit & _LEAF:
            if unit & ~_LEAF >= limit:
                return node
            continue
        base = node ^ _offset(unit)
        if base | 0xFF >= size or (unit & _ENDS_KEY and not units[base] & _LEAF):
            return node
    return None


class Charsmap:
    r"""The rules of one blob. See `tests/support/charsmaps.py` for one written by hand.

    >>> from cpbpe.text.charsmap_build import charsmap_from_rules
    >>> charsmap = Charsmap(charsmap_from_rules([("ab", "c"), ("abcd", "")]))
    >>> charsmap.longest(b"xabc", 1), charsmap.longest(b"xabc", 0)
    ((b'c', 2), None)
    """

    def __init__(self, blob: bytes, where: str = "normalizer_spec", *, trusted: bool = False):
        """`trusted`: the same blob has been checked before, which takes 15 ms for the larger ones."""
        problem = f"{where}.precompiled_charsmap is malformed: "
        if len(blob) <= 4:
            raise ModelError(f"{problem}{len(blob)} bytes are too few for a trie")
        (size,) = struct.unpack_from("<I", blob)
        if size >= len(blob) - 4:
            raise ModelError(f"{problem}a trie of {size} bytes in a blob of {len(blob)}")
        if size < 1024 or size % 1024:
            raise ModelError(f"{problem}the trie's size, {size}, is not a multiple of 1024")
        self._units = _units(blob[4 : 4 + size])
        self._replacements = blob[4 + size :]
        if self._replacements[-1] != 0:
            raise ModelError(f"{problem}the last replacement does not end in NUL")
        bad = None if trusted else _first_bad_unit(blob[4 : 4 + size], len(self._replacements))
        if bad is not None:
            raise ModelError(f"{problem}unit {bad} of the trie is not valid")
        # Most characters of most texts begin no key, and this shows it at once.
        self._first_nodes = [self._child(_ROOT, byte) for byte in range(256)]
        self._with_children: dict[int, bool] = {}

    # --- One step ---------------------------------------------------------------------------------

    def _child(self, node: int, byte: int) -> int | None:
        """The node that a byte leads to from a node. (`_offset` is inlined here for speed.)"""
        units = self._units
        unit = units[node]
        child = node ^ (unit >> 10) << ((unit & 0x200) >> 6) ^ byte
        return child if child < len(units) and units[child] & _LABEL == byte else None

    def _children(self, node: int) -> list[tuple[int, int]]:
        """All bytes that lead somewhere from a node, in order, with the nodes that they lead to.

        An empty unit at the base looks like the child for a NUL, and like a child of itself. No compiler
        makes such units, but a crafted file may have them.
        """
        base = node ^ _offset(self._units[node])
        low, begin, end = base & 0xFF, base & ~0xFF, base | 0xFF
        found = []
        at = self._low_bases.find(low, begin, end + 1)
        while at >= 0:
            if not self._units[at] & _LEAF:
                found.append((at ^ base, at))
            at = self._low_bases.find(low, at + 1, end + 1)
        found.sort()
        return found

    def _has_children(self, node: int) -> bool:
        """Whether any byte leads somewhere from a node. Streams ask this often, of few nodes."""
        known = self._with_children.get(node)
        if known is None:
            known = self._with_children[node] = bool(self._children(node))
        return known

    @kept
    def _low_bases(self) -> bytes:
        """For each unit, the low byte of the base to which it belongs: its position ^ its label.

        All units of one base are in one block of 256 units, so the other bytes of the base are known, and
        `find` finds the children of a node faster than 256 steps would (in a microsecond instead of 20).
        """
        size = len(self._units)
        lowest = self._units.tobytes()[0 if sys.byteorder == "little" else 3 :: 4]
        labels = int.from_bytes(lowest, "little")
        positions = int.from_bytes(bytes(range(256)) * (size // 256), "little")
        return (labels ^ positions).to_bytes(size, "little")

    def _replacement(self, node: int) -> bytes:
        """The replacement for the key that ends at a node."""
        value = self._units[node ^ _offset(self._units[node])] & ~_LEAF
        return self._replacements[value : self._replacements.index(0, value)]

    # --- At one position of a text ----------------------------------------------------------------

    def longest(self, text: bytes, at: int) -> tuple[bytes, int] | None:
        """The replacement for the longest key that `text` holds at `at`, and the key's length.

        The length is in bytes, and the walk goes byte by byte: nothing keeps a rule from ending inside a
        character.
        """
        return self.longest_so_far(text, at)[0]

    def longest_so_far(self, text: bytes, at: int) -> tuple[tuple[bytes, int] | None, bool]:
        r"""The same, and whether more text after this could make a longer key apply.

        >>> from cpbpe.text.charsmap_build import charsmap_from_rules
        >>> charsmap = Charsmap(charsmap_from_rules([("ab", "c"), ("abcd", "")]))
        >>> [charsmap.longest_so_far(text, 0) for text in (b"x", b"a", b"abc", b"abx", b"abcd")]
        [(None, False), (None, True), ((b'c', 2), True), ((b'c', 2), False), ((b'', 4), False)]
        """
        if at >= len(text):
            return None, self._has_children(_ROOT)
        node = self._first_nodes[text[at]]
        if node is None:
            return None, False
        units, child = self._units, self._child
        last: int | None = None  # where the longest key so far ends
        length = matches = 0
        end = at + 1
        while True:
            if units[node] & _ENDS_KEY:
                last, length, matches = node, end - at, matches + 1
                if matches == MAX_MATCHES:
                    could_grow = False
                    break
            if end == len(text):
                could_grow = self._has_children(node)
                break
            after = child(node, text[end])
            if after is None:
                could_grow = False
                break
            node = after
            end += 1
        return (None if last is None else (self._replacement(last), length)), could_grow

    # --- All of it --------------------------------------------------------------------------------

    def rules(
        self,
        max_nodes: int,
        max_length: int | None = None,
        *,
        follow_empty: bool = False,
        shortest_first: bool = False,
        begin: bytes = b"",
    ) -> Iterator[tuple[bytes, bytes]]:
        """All rules: each key and its replacement, in the order of the keys or with the shortest keys first.
        Of other keys than those that begin with `begin`, nothing is visited.

        ModelError where the walk has visited `max_nodes` nodes, or comes to a key that is longer than
        `max_length`: a crafted charsmap may have cycles. (Every 256 bytes of a key count as one node more,
        because a cycle makes keys without end, which take memory and time.) Empty units (see `_children`)
        are such cycles, but are passed over; with `follow_empty` they are followed, which ends in an error.

        >>> from cpbpe.text.charsmap_build import charsmap_from_rules
        >>> charsmap = Charsmap(charsmap_from_rules([("ab", "c"), ("a", ""), ("b", "")]))
        >>> list(charsmap.rules(max_nodes=100, begin=b"a")), list(charsmap.rules(100, begin=b"c"))
        ([(b'a', b''), (b'ab', b'c')], [])
        """
        node: int | None = _ROOT
        for first in begin:
            node = None if node is None else self._child(node, first)
        if node is None:
            return
        units = self._units
        below: dict[int, list[tuple[bytes, int]]] = {}  # shared nodes are visited again and again
        waiting = deque([(begin, node)])
        take = waiting.popleft if shortest_first else waiting.pop
        while waiting:
            key, node = take()
            max_nodes -= 1 + (len(key) >> 8)
            if max_nodes < 0 or (max_length is not None and len(key) > max_length):
                raise ModelError("the charsmap's rules have no end; no compiler makes such a charsmap")
            if units[node] & _ENDS_KEY:
                yield key, self._replacement(node)
            children = below.get(node)
            if children is None:
                children = [
                    (bytes((byte,)), child)
                    for byte, child in self._children(node)
                    if units[child] or follow_empty
                ]
                below[node] = children = children if shortest_first else children[::-1]
            for byte, child in children:
                waiting.append((key + byte, child))

    def longest_key(self, limit: int, *, follow_empty: bool = False) -> int | None:
        """The length of the longest key in bytes; None if it is greater than `limit`, or if there is no end.

        Strictly speaking, this is the length of the longest path to any node; in what a compiler makes, every
        path leads to a key. `follow_empty` is as in `rules`. A crafted charsmap in which this takes too long
        counts as one without an end.

        >>> from cpbpe.text.charsmap_build import charsmap_from_rules
        >>> charsmap = Charsmap(charsmap_from_rules([("ab", "c"), ("abcd", "")]))
        >>> charsmap.longest_key(limit=100), charsmap.longest_key(limit=3)
        (4, None)
        """
        # All nodes at one distance from the root are taken at once. The named rule sets share most of their
        # nodes: 225,000 keys lead through 30,000, and each of these is visited once for each distance.
        # (What `_children` does is written out here, in half of the time: the first stream waits for this.)
        units, find = self._units, self._low_bases.find
        nodes = {_ROOT}
        visits = 0
        for length in range(limit + 1):
            reached: set[int] = set()
            for node in nodes:
                unit = units[node]
                base = node ^ (unit >> 10) << ((unit & 0x200) >> 6)
                low, end = base & 0xFF, (base | 0xFF) + 1
                at = find(low, end - 256, end)
                while at >= 0:
                    visits += 1
                    if not units[at] & _LEAF and (units[at] or follow_empty):
                        reached.add(at)
                    at = find(low, at + 1, end)
                if visits > MAX_VISITS:
                    return None
            if not reached:
                return length
            nodes = reached
        return None

    def unchanged_ascii(self) -> bytes:
        """The visible ASCII characters that no rule changes, as long as ASCII follows.

        >>> from cpbpe.text.charsmap_build import charsmap_from_rules
        >>> unchanged = Charsmap(charsmap_from_rules([("a", "b"), ("cd", "e"), ("é", "f")])).unchanged_ascii()
        >>> [letter in unchanged for letter in b"abcde"]
        [False, True, False, True, True]
        """
        unchanged = bytearray()
        for byte in range(0x21, 0x7F):
            node = self._first_nodes[byte]
            changes = node is not None and (
                self._units[node] & _ENDS_KEY or any(after < 0x80 for after, _ in self._children(node))
            )
            if not changes:
                unchanged.append(byte)
        return bytes(unchanged)

    def makes_text(self) -> bool:
        r"""Whether every replacement is valid UTF-8. (An invalid one could be completed by the next.)

        >>> from cpbpe.text.charsmap_build import charsmap_from_rules
        >>> blob = charsmap_from_rules([("a", "b")])
        >>> Charsmap(blob).makes_text(), Charsmap(blob.replace(b"b\0", b"\xc3\0")).makes_text()
        (True, False)
        """
        try:
            self._replacements.decode()
        except UnicodeDecodeError:
            return False
        values = {unit & ~_LEAF for unit in self._units if unit & _LEAF}
        return all(self._replacements[value] & 0xC0 != 0x80 for value in values)


# --- The named rules ------------------------------------------------------------------------------

RULE_NAMES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""sentencepiece's names of sets of rules. identity has no rules; `charsmap_build` has those of the others."""


@cache
def rule_charsmap(name: str) -> bytes:
    """The charsmap of a named set of rules. That of identity is empty.

    They are files of the package, because `charsmap_build` takes more than two seconds to make them, as long
    as training on 60 MB of text. Reading one takes two milliseconds. (With lzma, they would take 330 KB
    instead of 566, but fifteen times as long to read, and lzma is missing in some builds of Python.)

    >>> rule_charsmap("identity"), len(rule_charsmap("nmt_nfkc"))
    (b'', 240007)
    """
    if name == "identity":
        return b""
    if name not in RULE_NAMES:
        raise ValueError(f"there are no rules named {name!r}")
    try:
        data = pkgutil.get_data("cpbpe.text", f"charsmaps/{name}.zlib")  # also from a zip file
    except OSError as error:
        raise ImportError(f"the installation of cpbpe is incomplete: {error}; install it again") from error
    if data is None:
        raise ImportError("the installation of cpbpe is incomplete: cpbpe/text/charsmaps cannot be read")
    return zlib.decompress(data)
