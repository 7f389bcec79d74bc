"""Whether two models with the same pieces, but other scores, merge every text in the same way.

If any text is merged differently, so is one that consists of three parts xyz, where xy and yz are pieces.
Only few of these texts have to be compared.

**Trees.** If two neighbouring symbols together are a piece w, they are the two symbols that w's own text
consists of before its last merge (`cpbpe/model/pair_ranks.py` has the proof). So each piece that is ever made
has exactly one pair that makes it, and one tree of merges. No merge crosses a span before something is merged
with a neighbour of the span.

**Which of two merges comes first.** Let (x, y) make the piece xy, and (y, z) the piece yz. On the text xyz,
one of these is the first merge that crosses the ends of x, y and z. Let R(w) be the worst rank in w's tree.

- If R(xy) < R(yz), then xy is first, because R(yz) is a rank in z's tree or that of yz itself, and when that
  step is taken, nothing better is left to merge, so all of xy is done. If R(xy) > R(yz), then yz is first.
- If they are equal, the steps of that rank are taken from left to right: those in x, in y, and then in z. If
  z needs a step of that rank, x and y are made before z, and xy is first. Otherwise z is made by the time x
  and y are, and the ranks of xy and yz decide; if they are equal, xy is first, because it is on the left.

So xy is first if and only if (R(xy), rank of xy) <= (R(yz), rank of yz, or infinity if R(z) = R(yz)). Each
piece thus has two keys: one for when it is on the left, and one for when it is on the right.

**Two models.** Take the trees of model A, and for both models A and B the keys that their ranks give to these
trees. *If the keys of every two pieces xy and yz compare in the same way in A and in B, then both merge every
text in the same way.*

    Suppose that some text is merged differently, and let q = (y, z) be the first step of B in it that A never
    makes there. A makes all steps before q, too; so y and z have the same trees in both models, and A makes
    them. A does not merge them with each other, although yz is a piece; so A merges y with an x before it, or
    z with a symbol after it. Assume that the former happens first; the other case is the mirror image.
    (1) If (y, z) is a pair of A's, then on xyz, A merges xy first. B merges yz first, because nothing had
    crossed the ends of xyz before q. So their keys compare differently.
    (2) Otherwise A merges the text yz by itself differently: once y is made, A merges it with a part v of z
    that is made before z is, while B merges v with its neighbour v' in z. So A makes yv before vv', and B
    does not, although the trees of y, v and v' are the same: the keys compare differently here.

All pairs in this argument lie inside the text in question. So if the keys differ for a text xyz, but for no
shorter one, then the trees of all pieces up to its length are the same in both models, and the models do
merge xyz in different ways. The results differ, unless all of xyz is one piece that both models make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpbpe.lint.merging import Merging
from cpbpe.model.pair_ranks import pairs_by_text, pairs_that_make
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.utf8 import character_length, is_valid_utf8

Numbers = NDArray[np.int64]
Ranks = dict[bytes, int]

K = TypeVar("K")

MOST_PIECES, MOST_NEIGHBOURS = 2_000, 20
"""Texts xyz are made from this many pieces yz, the shortest, with this many pieces xy for each."""
MOST_WHOLES = 20
"""This many texts xyz that are pieces are tried with neighbours."""


class Orders(NamedTuple):
    """What follows from the orders in which two models merge their pieces."""

    same: bool
    """Whether both merge every text in the same way, for certain."""
    texts: list[str]
    """Normalized texts that are, or may be, merged in different ways; short ones first."""


NOTHING = Orders(False, [])
"""The answer where the proof above does not hold."""


def compare_orders(old: ModelSpec, new: ModelSpec) -> Orders:
    """Compare two models; the answer is `NOTHING` if pieces that text can become differ in text or type.

    If the order of the pieces is the same, too, so is every step. Otherwise the answer for models with UNUSED
    pieces is `NOTHING`, because how these are split again depends on all pairs that were examined, not only
    on those that were merged. User-defined pieces are cut out before merging, in both models alike, so it
    does no harm to compare texts that contain them.
    """
    first, second = Merging(old).ranks, Merging(new).ranks
    if old.alphabet != new.alphabet or not _have_the_same(old, new, first, second):
        return NOTHING
    pieces = [text for text in first if text in second]
    if _dense(first, pieces) == _dense(second, pieces):
        return Orders(True, [])
    code = "latin-1" if old.alphabet == "bytes" else "utf-8"
    # It is not certain of which symbols a piece consists that is not UTF-8.
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
    """Whether the models have the same pieces with the same types, idle pieces aside (`_is_idle`)."""
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
    """Whether a piece of several symbols never occurs: it is a control piece, or cannot be merged.

    No piece of a byte-level model counts as idle, because such a model may look up whole chunks without any
    merge. Nor does a NORMAL piece in a model with UNUSED pieces, where even pairs that are not merged matter.
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
    """Texts in which one of `wholes` stands beside a symbol with which a part of it can merge.

    If two models make a piece xyz in different ways, such a text may end as different pieces.
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


def _dense(ranks: Mapping[K, int], pieces: Iterable[K]) -> list[int]:
    """The ranks of pieces, replaced by 0, 1, 2 ... in the same order; equal ranks stay equal."""
    found = [ranks[piece] for piece in pieces]
    places = {rank: place for place, rank in enumerate(sorted(set(found)))}
    return [places[rank] for rank in found]


class _Trees:
    """The trees of a model's pieces, in columns: the numbers of the two parts that make each."""

    def __init__(self, ranks: dict[str, int]):
        made = pairs_by_text(ranks)
        self.texts = sorted(made, key=len)
        """The pieces from short to long, so that the parts of each come before it."""
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
        """Texts xyz whose keys compare differently, short ones first. An empty list means there are none."""
        if not self.texts:
            return []
        # 1. The keys of both models, each offset by its y, so that pieces with different y are far apart.
        keys = [self._keys(ranks) for ranks in (one, other)]
        span = max(int(key.max()) for pair in keys for key in pair) + 1
        (a, a_right), (b, b_right) = (
            (self.right * span + left, self.left * span + right) for left, right in keys
        )
        # 2. For each yz, the xy that A merges first: all up to a place in A's order.
        order = np.argsort(a, kind="stable")
        a, b, y = a[order], b[order], self.right[order]
        places = np.searchsorted(a, a_right, side="right")
        # 3. B must merge the same ones first: none of them comes after yz in B's order, and all others do.
        last, first = _running_most(b), len(b) - 1 - _running_most(-b[::-1])[::-1]
        before, after = last[places - 1], first[np.minimum(places, len(b) - 1)]
        contradicts = (places > 0) & (y[before] == self.left) & (b[before] > b_right)
        contradicts |= (places < len(b)) & (y[after] == self.left) & (b[after] <= b_right)
        # 4. The contradictions, as texts. (Pieces are numbered from short to long.)
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
    """For each place, the place of the greatest value so far."""
    most = np.maximum.accumulate(values)
    places = np.where(values == most, np.arange(len(values)), 0)
    found: Numbers = np.maximum.accumulate(places)
    return found
