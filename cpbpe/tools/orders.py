"""Whether two models with the same pieces, but other scores, merge every text in the same way.

A text of two or three pieces decides it, and only few of those have to be looked at.

**Trees.** Two neighbours whose text together is a piece w are what w's text by itself becomes before its last
merge (`cpbpe/model/pair_ranks.py` has the proof). So each piece that is ever made has one pair that makes it,
one tree of merges, and no merge crosses a span before something is merged with a neighbour of the span.

**Which of two comes first.** Let (x, y) make the piece xy, and (y, z) the piece yz. On the text xyz, one of
both is the first merge that crosses the ends of x, y and z. Let R(w) be the worst rank in the tree of w.

- If R(xy) < R(yz), then xy is first: R(yz) is a rank in z's tree or that of yz itself, and before that step
  is taken, nothing better is left to merge, so all of xy is done. If R(xy) > R(yz), then yz is first.
- If they are equal, the steps of that rank are taken from left to right: those in x, in y, and then in z. If
  z waits for a step of that rank, x and y are there before, and xy is first. Otherwise z is there when x and
  y are, and the ranks of xy and yz decide; if they are equal, xy is first, being on the left.

So xy is first if and only if (R(xy), rank of xy) <= (R(yz), rank of yz, or infinity if R(z) = R(yz)). These
are two keys for each piece, one for its place on the left, and one for its place on the right.

**Two models.** Take the trees of the first model A, and the keys that both models' ranks give to these trees.
*If the keys of every two pieces xy and yz compare in the same way, A and B merge every text in the same way.*

    Else let q = (y, z) be the first step of B, in some text, that A never does there. All steps before are
    A's, too; so y and z have the same trees in both, and A makes them. A does not merge them with each
    other, although yz is a piece; so A merges y with an x before it, or z with one after it. Say the first
    came first; the other case is the mirror image. If (y, z) is a pair of A's, then A merges xy first on
    xyz, and B, for which nothing had crossed the ends of xyz before q, merges yz first: their keys compare
    in other ways. If it is none, the text yz by itself goes another way in A: when y is there, it is merged
    with a part v of z that is made before z is, and in B, v is merged with its neighbour v' in z. So A makes
    yv before vv', and B does not, although the trees of y, v and v' are the same: the keys differ here.

All pairs that this compares are inside the text in question. So if the keys of a text xyz differ, and those
of no shorter one, then up to its length the trees are the same in both models, and they do merge xyz in
different ways. It ends as different pieces, unless all of xyz is one piece, that both make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpbpe.model.pair_ranks import by_text, pairs_that_make
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import MERGEABLE
from cpbpe.text.utf8 import character_length, is_valid_utf8

Numbers = NDArray[np.int64]
Ranks = dict[bytes, int]

K = TypeVar("K")

MOST_PIECES, MOST_NEIGHBOURS = 2_000, 20
"""This many pieces yz are made into texts, with this many pieces xy each: the shortest."""
MOST_WHOLES = 20
"""This many texts xyz that are pieces are tried with neighbours."""


class Orders(NamedTuple):
    """What the orders of two models' pieces say."""

    same: bool
    """Whether both merge every text in the same way, for certain."""
    texts: list[str]
    """Normalized texts that are merged in different ways, or may be; short ones first."""


NOTHING = Orders(False, [])
"""The answer where the proof above does not hold."""


def compare_orders(old: ModelSpec, new: ModelSpec) -> Orders:
    """Compare two models, as far as all pieces that text can become have the same texts and types.

    If even the order is the same, so is every step. Otherwise nothing is said about models with UNUSED
    pieces: into what these are split again depends on all pairs that were looked at, not only on those that
    were merged. User-defined pieces are cut out before merging, in both models alike, so it does no harm that
    texts that contain them are compared as well.
    """
    first, second = ranks_of(old), ranks_of(new)
    if old.alphabet != new.alphabet or not _have_the_same(old, new, first, second):
        return NOTHING
    pieces = [text for text in first if text in second]
    if _dense(first, pieces) == _dense(second, pieces):
        return Orders(True, [])
    code = "latin-1" if old.alphabet == "bytes" else "utf-8"
    # Of which symbols a piece is made that is not UTF-8 is not certain.
    if PieceType.UNUSED in old.pieces.types or (code == "utf-8" and not all(map(is_valid_utf8, pieces))):
        return NOTHING
    one, other = ({text.decode(code): ranks[text] for text in pieces} for ranks in (first, second))
    found = _Trees(one).compared(one, other)
    found += _with_neighbours([text for text in found if text in one], one)
    if code == "utf-8":
        return Orders(not found, found)
    told = [text.encode(code) for text in found]
    return Orders(not found, [text.decode() for text in told if is_valid_utf8(text)])


def _have_the_same(old: ModelSpec, new: ModelSpec, first: Ranks, second: Ranks) -> bool:
    """Whether all pieces that only one model has, or has with this type, are idle there."""
    sides = (old, first, _types(old)), (new, second, _types(new))
    texts = {text for text, _ in sides[0][2].items() ^ sides[1][2].items()}
    return all(
        _is_idle(text, types[text], spec, ranks)
        for text in texts
        for spec, ranks, types in sides
        if text in types
    )


def _types(spec: ModelSpec) -> dict[bytes, int]:
    return dict(zip(spec.pieces.texts, spec.pieces.types, strict=True))


def _is_idle(text: bytes, type: int, spec: ModelSpec, ranks: Ranks) -> bool:
    """Whether no text becomes a piece of several symbols: a control piece, or one that cannot be made.

    Byte-level models are left out: they may look up whole chunks, without any merge. A model with UNUSED
    pieces looks also at what it does not make.
    """
    if spec.alphabet == "bytes" or len(text) <= character_length(text, 0):
        return False
    if type == PieceType.CONTROL:
        return True
    if type != PieceType.NORMAL or PieceType.UNUSED in spec.pieces.types or not is_valid_utf8(text):
        return False

    def rank(x: str, y: str) -> int | None:
        return ranks.get((x + y).encode())

    return not pairs_that_make([text.decode()], rank)


def _with_neighbours(wholes: Sequence[str], pieces: Iterable[str]) -> list[str]:
    """Texts in which some pieces stand beside what other pieces would merge parts of them with.

    If a text xyz is a piece that both models make, in two ways, then such a text may end as different pieces.
    """
    prefixes: dict[str, list[str]] = defaultdict(list)
    suffixes: dict[str, list[str]] = defaultdict(list)
    for whole in wholes[:MOST_WHOLES]:
        for at in range(1, len(whole)):
            prefixes[whole[:at]].append(whole)
            suffixes[whole[at:]].append(whole)
    found: set[str] = set()
    for piece in pieces if wholes else ():
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            found.update(left + whole for whole in prefixes.get(right, ()))
            found.update(whole + right for whole in suffixes.get(left, ()))
    return sorted(found, key=lambda text: (len(text), text))


def ranks_of(spec: ModelSpec) -> Ranks:
    """The pieces that merging may make; the one with the lowest number is merged first."""
    bits = np.frombuffer(spec.pieces.scores, "<i4").astype(np.int64)
    # (as `cpbpe.reference.encoding.score_key` does it)
    ranks = (-np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF) - 1)).tolist()
    types, characters = spec.pieces.types, spec.alphabet != "bytes"
    return {
        text: ranks[id]
        for text, id in spec.ids.items()
        if types[id] in MERGEABLE and len(text) > (character_length(text, 0) if characters else 1)
    }


def _dense(ranks: Mapping[K, int], pieces: Iterable[K]) -> list[int]:
    """The places of pieces in their order; equal ones have the same."""
    found = [ranks[piece] for piece in pieces]
    places = {rank: place for place, rank in enumerate(sorted(set(found)))}
    return [places[rank] for rank in found]


class _Trees:
    """The trees of a model's pieces, in columns: the numbers of the two parts that make each."""

    def __init__(self, ranks: dict[str, int]):
        made = pairs_that_make(ranks, by_text(ranks))
        self.texts = sorted(made, key=len)
        """The pieces, with all parts before the wholes."""
        numbers = {text: number for number, text in enumerate(self.texts)}
        for pair in made.values():
            for part in pair:
                numbers.setdefault(part, len(numbers))
        pairs = [made[text] for text in self.texts]
        self.left: Numbers = np.array([numbers[x] for x, _ in pairs], np.int64)
        self.right: Numbers = np.array([numbers[y] for _, y in pairs], np.int64)
        self._symbols = len(numbers)
        counts = accumulate(sum(1 for _ in group) for _, group in groupby(self.texts, len))
        self._levels = list(pairwise([0, *counts]))

    def compared(self, one: dict[str, int], other: dict[str, int]) -> list[str]:
        """Texts xyz whose keys compare in different ways, short ones first; none only if there is none."""
        if not self.texts:
            return []
        # 1. The keys of both models. They are offset by y, so that pieces with different ones are far apart.
        keys = [self._keys(ranks) for ranks in (one, other)]
        span = max(int(key.max()) for pair in keys for key in pair) + 1
        (a, a_right), (b, b_right) = (
            (self.right * span + left, self.left * span + right) for left, right in keys
        )
        # 2. For each yz, A has these first: all xy up to a place in A's order of them.
        order = np.argsort(a, kind="stable")
        a, b, y = a[order], b[order], self.right[order]
        places = np.searchsorted(a, a_right, side="right")
        # 3. B must have the same first: none of them after yz in B's order, and all others after it.
        last, first = _running_most(b), len(b) - 1 - _running_most(-b[::-1])[::-1]
        before, after = last[places - 1], first[np.minimum(places, len(b) - 1)]
        contradicts = (places > 0) & (y[before] == self.left) & (b[before] > b_right)
        contradicts |= (places < len(b)) & (y[after] == self.left) & (b[after] <= b_right)
        # 4. What contradicts that, as texts. (The pieces are sorted by length, and so are their numbers.)
        found = set()
        for yz in np.flatnonzero(contradicts)[:MOST_PIECES].tolist():
            begin, end = np.searchsorted(y, [self.left[yz], self.left[yz] + 1])
            differ = (a[begin:end] <= a_right[yz]) != (b[begin:end] <= b_right[yz])
            left = int(self.left[yz])
            shared = len(self.texts[left]) if left < len(self.texts) else 1
            for xy in np.sort(order[begin:end][differ])[:MOST_NEIGHBOURS].tolist():
                found.add(self.texts[xy][:-shared] + self.texts[yz])
        return sorted(found, key=lambda text: (len(text), text))

    def _keys(self, of: dict[str, int]) -> tuple[Numbers, Numbers]:
        """The keys of all pieces on the left and on the right."""
        count = len(self.texts)
        ranks: Numbers = np.array(_dense(of, self.texts), np.int64) + 1
        worst = np.zeros(self._symbols, np.int64)
        for begin, end in self._levels:
            parts = np.maximum(worst[self.left[begin:end]], worst[self.right[begin:end]])
            worst[begin:end] = np.maximum(ranks[begin:end], parts)
        whole = worst[:count]
        waits = worst[self.right] == whole
        most = len(of) + 1
        return whole * (most + 1) + ranks, whole * (most + 1) + np.where(waits, most, ranks)


def _running_most(values: Numbers) -> Numbers:
    """The place of the greatest value up to each place."""
    most = np.maximum.accumulate(values)
    places = np.where(values == most, np.arange(len(values)), 0)
    found: Numbers = np.maximum.accumulate(places)
    return found
