"""Normalization rules into the blob that a model file carries: the counterpart of `cpbpe.text.charsmap`.

The blob is built unit for unit as sentencepiece builds it (with darts-clone), so that equal rules give
equal model files. That takes two steps. First the rules become a graph: a tree of the bytes of all keys, in
which equal branches are one (`_Graph`). Then the graph is laid out in an array, every node at the first place
where all its children find room (`_Layout`); `cpbpe/charsmap.py` tells how one walks through it.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

MAX_MATCHES = 32
"""No more than 31 rules may begin one another: sentencepiece makes room for so many at one place."""

_BLOCK = 256
_OPEN_BLOCKS = 16
_HEX = re.compile(r"[ \t\r\v\f]*\+?(?:0[xX])?([0-9a-fA-F]+)[ \t\r\v\f]*")


@cache
def rule_charsmap(name: str) -> bytes:
    """The compiled rules of a name: nfkc, nmt_nfkc, nfkc_cf, nmt_nfkc_cf, or identity, which has none.

    >>> rule_charsmap("identity")
    b''
    """
    if name == "identity":
        return b""
    from cpbpe.text.named_rules import named_rules

    return charsmap_from_rules(named_rules(name).items())


def charsmap_from_tsv(text: str) -> bytes:
    r"""The compiled rules of a file: code points in hexadecimal, a tab, what they become; one rule a line.

    What follows a second tab is a comment. A rule without a right side deletes. Of two rules for the
    same text the last holds.

    >>> charsmap_from_tsv("2460\t31\t# circled one\nAD\n") == charsmap_from_rules([("①", "1"), ("\xad", "")])
    True
    >>> charsmap_from_tsv("2460\tone")
    Traceback (most recent call last):
    ...
    ValueError: line 1: 'one' is no hexadecimal code point
    """
    rules: dict[str, str] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        try:
            source, target = (_characters(field) for field in [*line.split("\t"), ""][:2])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not source:
            raise ValueError(f"line {number}: {line[:40]!r} has no code points on its left side")
        rules[source] = target
    return charsmap_from_rules(rules.items())


def _characters(field: str) -> str:
    characters = []
    for word in field.split(" "):
        if not word:
            continue
        found = _HEX.fullmatch(word.removeprefix("U+"))
        if not found:
            raise ValueError(f"{word[:40]!r} is no hexadecimal code point")
        point = int(found[1], 16)
        if not 0 < point <= 0x10FFFF or 0xD800 <= point < 0xE000:
            raise ValueError(f"{word[:40]!r} is no character; those are 1 to 10FFFF without D800 to DFFF")
        characters.append(chr(point))
    return "".join(characters)


def charsmap_from_rules(rules: Iterable[tuple[str, str]]) -> bytes:
    r"""Compile rules: what is replaced, and by what.

    >>> from cpbpe.text.charsmap import Charsmap
    >>> compiled = Charsmap(charsmap_from_rules([("①", "1"), ("ｶ", "カ"), ("ｶﾞ", "ガ")]))
    >>> compiled.longest("ｶﾞ①".encode(), 0), compiled.longest("①".encode(), 0)
    ((b'\xe3\x82\xac', 6), (b'1', 3))
    """
    known = dict(rules)
    if not known:
        raise ValueError("there are no rules; use normalization_rule_name='identity' to change nothing")
    for source, target in known.items():
        if not source:
            raise ValueError(f"a rule for nothing, which becomes {target!r}")
        if source == target:
            raise ValueError(f"a rule that changes nothing, {source!r}; leave it out")
        if "\0" in source + target:
            raise ValueError(f"U+0000 in the rule {source!r} -> {target!r}, which no rule can hold")
    positions: dict[str, int] = {}
    replacements = bytearray()
    for target in sorted(set(known.values())):
        positions[target] = len(replacements)
        replacements += target.encode() + b"\0"
    keys = {source.encode(): positions[target] for source, target in known.items()}
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
    """The keys as a tree of bytes, in which every two equal nodes are one.

    A node is a tuple of its children, each a label and where it leads: another node, by its index. A child
    with the label 0 says that a key ends here, and leads to the value of the key.
    """

    def __init__(self, keys: Mapping[bytes, int]):
        self.nodes: list[tuple[tuple[int, int], ...]] = []
        self.shared: set[int] = set()
        """The nodes that more than one way leads to."""
        self._known: dict[tuple[tuple[int, int], ...], int] = {}
        way: list[list[tuple[int, int]]] = [[]]  # the nodes along the last key, not yet complete
        last = b""
        for key in sorted(keys):
            same = next(
                (at for at, (a, b) in enumerate(zip(last, key, strict=False)) if a != b),
                min(len(last), len(key)),
            )
            self._complete(way, last, same)
            way += [[] for _ in key[same:]]
            way[-1].append((0, keys[key]))
            last = key
        self._complete(way, last, 0)
        self.root = self._node(way[0])

    def _complete(self, way: list[list[tuple[int, int]]], key: bytes, keep: int) -> None:
        """The nodes beyond the first `keep` bytes of a key have all their children."""
        while len(way) > keep + 1:
            node = self._node(way.pop())
            way[-1].append((key[len(way) - 1], node))

    def _node(self, children: list[tuple[int, int]]) -> int:
        found = self._known.setdefault(tuple(children), len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(tuple(children))
        else:
            self.shared.add(found)
        return found


class _Layout:
    """The graph in an array. Units are made in blocks of 256, and those of the last 16 may still be filled.

    A node's children sit at `base ^ label`, so they are all in one block. No two nodes have the same base: a
    base is `used`. The free units of the open blocks are a ring, in the order in which they became free; the
    first of them that can take the node's first child, such that all others find room, decides the base.
    """

    def __init__(self, graph: _Graph):
        self.units = array("I")
        self._next: list[int] = []
        self._previous: list[int] = []
        self._taken: list[bool] = []
        self._used: list[bool] = []
        self._first_free = 0
        self._take(0)
        self._used[0] = True
        self._lead(0, 1)
        bases: dict[int, int] = {}  # of the shared nodes, where they were laid out last
        waiting = [(0, graph.root)]
        while waiting:
            at, node = waiting.pop()
            children = graph.nodes[node]
            base = bases.get(node)
            if base is not None and _reachable(at ^ base):
                if children[0][0] == 0:
                    self.units[at] |= 0x100
                self._lead(at, at ^ base)
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

    def _lead(self, at: int, distance: int) -> None:
        """The unit at `at` has its children at this distance: 21 bits, or more if the lowest 8 are 0."""
        self.units[at] &= 1 << 31 | 0x1FF
        self.units[at] |= distance << 10 if distance < 1 << 21 else distance << 2 | 0x200

    def _place(self, at: int, labels: list[int]) -> int:
        """Take room for the children of the unit at `at`, and give the base."""
        base = next(
            (
                base
                for base in (free ^ labels[0] for free in self._free())
                if not self._used[base]
                and _reachable(at ^ base)
                and not any(self._taken[base ^ label] for label in labels[1:])
            ),
            len(self.units) | at & 0xFF,
        )
        self._lead(at, at ^ base)
        for label in labels:
            self._take(base ^ label)
        self._used[base] = True
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
        while at >= len(self.units):
            self._add_block()
        after, before = self._next[at], self._previous[at]
        if at == self._first_free:
            self._first_free = after if after != at else len(self.units)
        self._next[before], self._previous[after] = after, before
        self._taken[at] = True

    def _add_block(self) -> None:
        begin = len(self.units)
        if begin >= _BLOCK * _OPEN_BLOCKS:
            self._close(begin // _BLOCK - _OPEN_BLOCKS)
        end = begin + _BLOCK
        self.units.extend([0] * _BLOCK)
        self._next += range(begin + 1, end + 1)
        self._previous += range(begin - 1, end - 1)
        self._taken += [False] * _BLOCK
        self._used += [False] * _BLOCK
        first = self._first_free
        last = self._previous[first] if first != begin else end - 1
        self._next[last], self._previous[begin] = begin, last
        self._next[end - 1], self._previous[first] = first, end - 1

    def _close(self, block: int) -> None:
        """Give every free unit of a block a label that no walk arrives with."""
        units = range(block * _BLOCK, (block + 1) * _BLOCK)
        unused = next((base for base in units if not self._used[base]), 0)
        for at in units:
            if not self._taken[at]:
                self._take(at)
                self.units[at] |= (at ^ unused) & 0xFF


def _reachable(distance: int) -> bool:
    """Whether a unit can say so: it has 21 bits for it, or 29 of which the lowest 8 are 0."""
    return not distance & 0xFF or not distance & 0xFF << 21
