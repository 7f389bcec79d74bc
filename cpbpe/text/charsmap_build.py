"""Compiles normalization rules into a charsmap, the blob that a model file contains.

`cpbpe.text.charsmap` reads such blobs and explains their format. Here they are built unit for unit as
sentencepiece builds them (with darts-clone), so that equal rules give equal model files. There are two steps.
First the keys become a graph: a tree of their bytes in which equal subtrees are stored only once (`_Graph`).
Then the graph is laid out in an array, with each node at the first place where all its children fit
(`_Layout`).

The named rules are NFKC as of Unicode 17, with additions for machine translation (nmt). Each version of
Python has its own version of Unicode, and the rules must not depend on it, because they are written into
model files. The package unicodedata2 has Unicode 17 for every Python. Nobody needs it to use the rules: their
charsmaps are in `charsmaps/`. This command writes them again, and a test compares them with what it would
write:

    python -m cpbpe.text.charsmap_build
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from cpbpe.lazy import importing
from cpbpe.text.charsmap import MAX_MATCHES, RULE_NAMES

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
    said: dict[tuple[int, ...], str] = {}
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
        rules[source], said[source] = target, f"line {number}: {line[:40]!r}"
    # Of several lines with the same left side the last one counts, and only that has to be right.
    for source, target in rules.items():
        if any(0xD800 <= point < 0xE000 for point in source + target):
            raise ValueError(f"{said[source]} has a surrogate, D800 to DFFF, which is no character")
        if source == target:
            raise ValueError(f"{said[source]} changes nothing; leave it out")
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
        if point >= 1 << 32:
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
    check_rules(known)
    return _compiled((tuple(map(ord, source)), tuple(map(ord, target))) for source, target in known.items())


def check_rules(rules: Mapping[str, str]) -> None:
    """ValueError if there is a rule that cannot be."""
    for source, target in rules.items():
        if not source:
            raise ValueError(f"a rule for nothing, which becomes {target!r}")
        if source == target:
            raise ValueError(f"a rule that changes nothing, {source!r}; leave it out")
        if "\0" in source + target:
            raise ValueError(f"U+0000 in the rule {source!r} -> {target!r}, which no rule can hold")


def _compiled(rules: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> bytes:
    """The blob of rules, each of which is a key and what replaces it, in code points.

    Rules from a file may contain U+0000. sentencepiece accepts such rules, so they are compiled as it does.
    A replacement is stored whole, but read only up to U+0000. A key ends before U+0000. If this makes keys
    equal, the first rule counts, in the order of the whole keys, then of the replacements.
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
    for key in keys:  # sentencepiece has no room for so many matches at one place
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
    base. The free units of the open blocks form a ring, in the order in which they became free. A node's
    first child is put into the first of them for which the units of all other children are free, too. This
    decides the base of the node.
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
        """Give each free unit of a block the label that it would have at a base that no node has. So no byte
        leads to it.
        """
        units = range(block * _BLOCK, (block + 1) * _BLOCK)
        unused = next((base for base in units if not self._used_bases[base]), 0)
        for at in units:
            if not self._taken_units[at]:
                self._take(at)
                self.units[at] |= (at ^ unused) & 0xFF


def _fits(offset: int) -> bool:
    """Whether a unit can hold an offset: it has 21 bits for it, or 29 of which the lowest 8 are 0."""
    return not offset & 0xFF or not offset & 0xFF << 21


# --- The named rules ------------------------------------------------------------------------------

UNICODE = 17
"""The version of Unicode that sentencepiece 0.2.3 uses for normalization."""

_SPACES = "\t\n\f\r\u061c\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd\u200c"
"""The characters that the nmt rules replace by a space."""
_CONTROLS = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]
"""The code points that the nmt rules delete."""
_FULLWIDTH_TILDE = "\uff5e"
"""The one character that they do not change: in Japanese it differs from a tilde."""


def named_rules(name: str) -> dict[str, str]:
    """A named set of rules: each key and its replacement.

    >>> rules = named_rules("nfkc")
    >>> rules["①"], rules["e\u0301"], "é" in rules, len(rules)
    ('1', 'é', False, 225232)
    """
    if name not in RULE_NAMES[1:]:
        raise ValueError(f"there are no rules named {name!r}")
    rules = dict(_nfkc())
    if name.startswith("nmt_"):
        rules.update(dict.fromkeys(_SPACES, " "))
        rules.update(dict.fromkeys(map(chr, _CONTROLS), ""))
        del rules[_FULLWIDTH_TILDE]
        rules = _without_redundant(rules)
    if name.endswith("_cf"):
        rules = {source: "".join(map(_fold, target)) for source, target in rules.items()}
        for character in _characters():
            folded = _fold(character)
            if folded != character:
                rules.setdefault(character, folded)
        rules = _without_redundant(rules)
    return rules


@cache
def _nfkc() -> dict[str, str]:
    """The rules of NFKC. Their keys are single characters, and sequences that compose to a character.

    Such a sequence is any way to write the full decomposition of some character with characters that
    decompose to one character each: instead of `e` there may be a full-width `e`, and so on for the accent.
    """
    normalize = _unicode_data().normalize
    rules: dict[str, str] = {}
    sources: dict[str, list[str]] = {}  # for each character, those that decompose to it alone
    composed: dict[str, str] = {}  # for each sequence, the NFKC of the characters that decompose to it
    for character in _characters():
        decomposed = normalize("NFKD", character)
        normal = character if decomposed == character else normalize("NFKC", character)
        if normal != character:
            rules[character] = normal
        if len(decomposed) == 1:
            sources.setdefault(decomposed, []).append(character)
        else:
            composed[decomposed] = normal
    for decomposed, normal in composed.items():
        if normal == decomposed:
            continue
        for written in map("".join, product(*(sources[character] for character in decomposed))):
            if written != normal:
                rules[written] = normal
    return _without_redundant(rules)


def _without_redundant(rules: dict[str, str]) -> dict[str, str]:
    """Leave out rules whose keys the shorter rules rewrite in the same way."""
    kept = {source: target for source, target in rules.items() if len(source) == 1}
    lengths: dict[int, list[str]] = {}
    for source in rules:
        lengths.setdefault(len(source), []).append(source)
    for length in range(2, max(lengths, default=0) + 1):
        needed = [s for s in lengths.get(length, ()) if rules[s] != _apply(kept, s, length - 1)]
        kept.update((source, rules[source]) for source in needed)
    return kept


def _apply(rules: dict[str, str], text: str, longest: int) -> str:
    """Apply rules from left to right, at each position the one with the longest key."""
    result = []
    at = 0
    while at < len(text):
        for end in range(min(len(text), at + longest), at, -1):
            if text[at:end] in rules:
                result.append(rules[text[at:end]])
                break
        else:
            end = at + 1
            result.append(text[at])
        at = end
    return "".join(result)


def _characters() -> Iterable[str]:
    """The characters of the planes that have characters with a decomposition or a lower case."""
    return (chr(point) for point in range(1, 0x30000) if not 0xD800 <= point < 0xE000)


@cache
def _unicode_data() -> Any:
    """The package unicodedata2, imported only when rules are built."""
    with importing:
        import unicodedata2 as data
    if not data.unidata_version.startswith(f"{UNICODE}."):
        raise ImportError(
            f"the named normalization rules are those of Unicode {UNICODE}, and the installed package "
            f"unicodedata2 has {data.unidata_version}; pip install 'unicodedata2=={UNICODE}.*'"
        )
    return data


def _fold(character: str) -> str:
    """The simple case folding of a character: always one character, so `ß` stays.

    Python folds according to its own version of Unicode. A capital letter that was added later has a small
    letter of the same name; a letter that was added after Unicode 17 stays as it is.
    """
    folded = character.casefold()
    if folded == character:
        data = _unicode_data()
        if unicodedata.category(character) == "Cn" and data.category(character) == "Lu":
            return str(data.lookup(data.name(character).replace("CAPITAL", "SMALL")))
        return character
    if len(folded) > 1:
        folded = character.lower()
    if len(folded) > 1 or _unicode_data().category(character) == "Cn":
        return character
    return folded


def main() -> None:
    """Write the charsmaps of all named rules into the package."""
    for name in RULE_NAMES[1:]:
        charsmap = charsmap_from_rules(named_rules(name).items())
        path = Path(__file__).with_name("charsmaps") / f"{name}.zlib"
        path.write_bytes(zlib.compress(charsmap, 9))


if __name__ == "__main__":
    main()
