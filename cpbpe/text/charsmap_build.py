"""Compiles normalization rules into a charsmap, the blob that a model file contains.

`cpbpe.text.charsmap` reads such blobs and explains their format. Here they are built unit for unit as
sentencepiece builds them (with darts-clone), so that equal rules give equal model files. There are two steps.
First the keys become a graph: a tree of their bytes in which equal subtrees are stored only once (`_Graph`).
Then the graph is laid out in an array, with each node at the first place where all its children fit
(`_Layout`).
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping

MAX_MATCHES = 32
"""At most 31 keys may be beginnings of one another: sentencepiece has no room for 32 matches at one place."""

_BLOCK = 256
"""Units are made in blocks of this size."""
_OPEN_BLOCKS = 16
"""Only this many of the last blocks still take new nodes."""
_HEX = re.compile(r"[ \t\r\v\f]*\+?(?:0[xX])?([0-9a-fA-F]+)[ \t\r\v\f]*")


def charsmap_from_tsv(text: str) -> bytes:
    r"""Compile the rules of a TSV file: each line has the code points of a key, a tab, and its replacement.

    Code points are hexadecimal, separated by spaces. Anything after a second tab is a comment. A rule
    without a replacement deletes its key. If two rules have the same key, the last one counts. As in
    sentencepiece, a number above 10FFFF is U+FFFD, and a side that contains U+0000 ends before it.

    >>> charsmap_from_tsv("2460\t31\t# circled one\nAD\n") == charsmap_from_rules([("①", "1"), ("\xad", "")])
    True
    >>> charsmap_from_tsv("2460\tone")
    Traceback (most recent call last):
    ...
    ValueError: line 1: 'one' is no hexadecimal code point
    """
    rules: dict[tuple[int, ...], tuple[int, ...]] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        try:
            source, target = (_code_points(field) for field in [*line.split("\t"), ""][:2])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not source:
            raise ValueError(f"line {number}: {line[:40]!r} has no code points on its left side")
        if source[0] == 0:
            raise ValueError(f"line {number}: {line[:40]!r} begins with U+0000, where a left side ends")
        if source == target:
            raise ValueError(f"line {number}: {line[:40]!r} changes nothing; leave it out")
        rules[source] = target
    return _compiled(rules.items())


def _code_points(field: str) -> tuple[int, ...]:
    """The code points that a field of a TSV file lists."""
    points = []
    for word in field.split(" "):
        if not word:
            continue
        found = _HEX.fullmatch(word.removeprefix("U+"))
        if not found:
            raise ValueError(f"{word[:40]!r} is no hexadecimal code point")
        point = int(found[1], 16)
        if point >= 1 << 32 or 0xD800 <= point < 0xE000:
            raise ValueError(f"{word[:40]!r} is no character; those are 0 to 10FFFF without D800 to DFFF")
        points.append(point)
    return tuple(points)


def _utf8(points: Iterable[int]) -> bytes:
    """Code points in UTF-8. For sentencepiece all numbers above U+10FFFF are U+FFFD, so they are here."""
    return "".join(chr(point) if point <= 0x10FFFF else "\ufffd" for point in points).encode()


def charsmap_from_rules(rules: Iterable[tuple[str, str]]) -> bytes:
    r"""Compile rules: pairs of a key and its replacement.

    >>> from cpbpe.text.charsmap import Charsmap
    >>> compiled = Charsmap(charsmap_from_rules([("①", "1"), ("ｶ", "カ"), ("ｶﾞ", "ガ")]))
    >>> compiled.longest("ｶﾞ①".encode(), 0), compiled.longest("①".encode(), 0)
    ((b'\xe3\x82\xac', 6), (b'1', 3))
    """
    known = dict(rules)
    for source, target in known.items():
        if not source:
            raise ValueError(f"a rule for nothing, which becomes {target!r}")
        if source == target:
            raise ValueError(f"a rule that changes nothing, {source!r}; leave it out")
        if "\0" in source + target:
            raise ValueError(f"U+0000 in the rule {source!r} -> {target!r}, which no rule can hold")
    return _compiled((tuple(map(ord, source)), tuple(map(ord, target))) for source, target in known.items())


def _compiled(rules: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> bytes:
    """The blob of rules, each of which is a key and what replaces it, in code points.

    In files, rules may hold U+0000. sentencepiece trains with them, so the blob is what it makes of them.
    What replaces a key is stored whole, but read up to U+0000. A key ends before U+0000, and of rules whose
    keys have become equal the first one counts, in the order of the whole keys, then of what replaces them.
    """
    rules = list(rules)
    if not rules:
        raise ValueError("there are no rules; use normalization_rule_name='identity' to change nothing")
    positions: dict[tuple[int, ...], int] = {}
    replacements = bytearray()
    for target in sorted({target for _, target in rules}):
        positions[target] = len(replacements)
        replacements += _utf8(target) + b"\0"
    keys: dict[bytes, int] = {}
    for source, position in sorted((_utf8(source), positions[target]) for source, target in rules):
        keys.setdefault(source.partition(b"\0")[0], position)
    for key in keys:
        if (
            len(key) >= MAX_MATCHES
            and sum(key[:end] in keys for end in range(1, len(key) + 1)) >= MAX_MATCHES
        ):
            raise ValueError(
                f"{MAX_MATCHES - 1} other rules are beginnings of the rule for {key.decode()[:40]!r}"
            )
    units = _Layout(_Graph(keys)).units
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + bytes(replacements)


class _Graph:
    """The keys as a tree of their bytes in which equal nodes, with everything below them, are stored once.

    A node is a tuple of its children, each of which is a label and the index of another node. A child with
    the label 0 means that a key ends here; instead of an index it has the value of the key.
    """

    def __init__(self, keys: Mapping[bytes, int]):
        self.nodes: list[tuple[tuple[int, int], ...]] = []
        """All nodes; children come before their parents."""
        self.shared: set[int] = set()
        """The nodes that more than one path leads to."""
        self._known: dict[tuple[tuple[int, int], ...], int] = {}
        path: list[list[tuple[int, int]]] = [[]]  # the nodes along the last key, which may get more children
        last = b""
        for key in sorted(keys):
            same = next(
                (at for at, (a, b) in enumerate(zip(last, key, strict=False)) if a != b),
                min(len(last), len(key)),
            )
            self._finish(path, last, same)
            path += [[] for _ in key[same:]]
            path[-1].append((0, keys[key]))
            last = key
        self._finish(path, last, 0)
        self.root = self._node(path[0])

    def _finish(self, path: list[list[tuple[int, int]]], key: bytes, keep: int) -> None:
        """Store the nodes after the first `keep` bytes of a key, which will get no more children."""
        while len(path) > keep + 1:
            node = self._node(path.pop())
            path[-1].append((key[len(path) - 1], node))

    def _node(self, children: list[tuple[int, int]]) -> int:
        """The index of a node; it is stored unless there is an equal one."""
        index = self._known.setdefault(tuple(children), len(self.nodes))
        if index == len(self.nodes):
            self.nodes.append(tuple(children))
        else:
            self.shared.add(index)
        return index


class _Layout:
    """The graph as an array of units.

    The children of a node are at `base ^ label`, so all of them are in one block. No two nodes have the same
    base. The free units of the open blocks form a ring, in the order in which they became free. The first of
    them that can hold a node's first child, while the units of all its other children are free, too, decides
    the base of the node.
    """

    def __init__(self, graph: _Graph):
        self.units = array("I")
        self._next: list[int] = []
        self._previous: list[int] = []
        self._taken_units: list[bool] = []
        self._used_bases: list[bool] = []
        self._first_free = 0
        self._take(0)
        self._used_bases[0] = True
        self._set_offset(0, 1)
        bases: dict[int, int] = {}  # the base that each shared node was given last
        waiting = [(0, graph.root)]
        while waiting:
            at, node = waiting.pop()
            children = graph.nodes[node]
            base = bases.get(node)
            if base is not None and _fits(at ^ base):
                if children[0][0] == 0:
                    self.units[at] |= 0x100
                self._set_offset(at, at ^ base)
                continue
            base = self._place(at, [label for label, _ in children])
            if node in graph.shared:
                bases[node] = base
            for label, child in children:
                if label == 0:
                    self.units[at] |= 0x100
                    self.units[base] = child | 1 << 31
                else:
                    self.units[base ^ label] |= label
            waiting += [(base ^ label, child) for label, child in reversed(children) if label]
        for block in range(max(0, len(self.units) // _BLOCK - _OPEN_BLOCKS), len(self.units) // _BLOCK):
            self._close(block)

    def _set_offset(self, at: int, offset: int) -> None:
        """Write the offset of a base into the unit at `at`: 21 bits, or more if the lowest 8 are 0."""
        self.units[at] &= 1 << 31 | 0x1FF
        self.units[at] |= offset << 10 if offset < 1 << 21 else offset << 2 | 0x200

    def _place(self, at: int, labels: list[int]) -> int:
        """Take the units for all children of the unit at `at`, and return their base."""
        base = next(
            (
                base
                for base in (free ^ labels[0] for free in self._free())
                if not self._used_bases[base]
                and _fits(at ^ base)
                and not any(self._taken_units[base ^ label] for label in labels[1:])
            ),
            len(self.units) | at & 0xFF,
        )
        self._set_offset(at, at ^ base)
        for label in labels:
            self._take(base ^ label)
        self._used_bases[base] = True
        return base

    def _free(self) -> Iterator[int]:
        """The free units of the open blocks, in order."""
        at = self._first_free
        while at < len(self.units):
            yield at
            at = self._next[at]
            if at == self._first_free:
                return

    def _take(self, at: int) -> None:
        """Remove a unit from the ring of free ones."""
        while at >= len(self.units):
            self._add_block()
        after, before = self._next[at], self._previous[at]
        if at == self._first_free:
            self._first_free = after if after != at else len(self.units)
        self._next[before], self._previous[after] = after, before
        self._taken_units[at] = True

    def _add_block(self) -> None:
        """Make a block of free units, and close the first open one if there are too many."""
        begin = len(self.units)
        if begin >= _BLOCK * _OPEN_BLOCKS:
            self._close(begin // _BLOCK - _OPEN_BLOCKS)
        end = begin + _BLOCK
        self.units.extend([0] * _BLOCK)
        self._next += range(begin + 1, end + 1)
        self._previous += range(begin - 1, end - 1)
        self._taken_units += [False] * _BLOCK
        self._used_bases += [False] * _BLOCK
        first = self._first_free
        last = self._previous[first] if first != begin else end - 1
        self._next[last], self._previous[begin] = begin, last
        self._next[end - 1], self._previous[first] = first, end - 1

    def _close(self, block: int) -> None:
        """Give each free unit of a block a label that no byte leads to: that of a base that no node has."""
        units = range(block * _BLOCK, (block + 1) * _BLOCK)
        unused = next((base for base in units if not self._used_bases[base]), 0)
        for at in units:
            if not self._taken_units[at]:
                self._take(at)
                self.units[at] |= (at ^ unused) & 0xFF


def _fits(offset: int) -> bool:
    """Whether a unit can hold an offset: it has 21 bits for it, or 29 of which the lowest 8 are 0."""
    return not offset & 0xFF or not offset & 0xFF << 21
