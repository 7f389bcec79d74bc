"""Two kinds of BPE, and when they are the same: by joined text (sentencepiece), and by ranked pairs.

Both merge two neighbouring symbols at a time until nothing is left to merge. sentencepiece merges the two
whose joined text is the piece with the highest score. The `tokenizers` library has a list of pairs, and
merges the pair that comes first in it. Among equals, both take the leftmost.

**At most one pair per piece.** Take a span of a text, and suppose that no merge has crossed its ends yet.
Then the merges inside it are those that would have happened if the span were the whole text, because
whether two neighbours merge, and before which others, depends only on their texts. So whenever the joined
text of two neighbours x and y is the piece w, x and y are what w's text by itself becomes before its last
merge. In other words: the same pair makes w in every text. If w's text by itself does not end as one
symbol, no pair does, and w is never made.

**From scores to pairs.** So list one pair for each piece that can be made, in the order of the scores. If
no two scores are equal, both kinds of BPE take the same steps in every text. If some are equal,
sentencepiece takes whichever of these pieces is leftmost in the text, and a list of pairs whichever comes
first in the list. Finitely many texts decide whether that matters: *the two differ on some text if and only
if they differ on a text xyz such that the pairs (x, y) and (y, z) are both in the list.*

    Suppose that they differ on some text, and let (y, z) be the first merge by pairs there that merging by
    scores does not make. All earlier merges are common, so merging by scores makes y and z as well, but does
    not merge them with each other. They cannot both be left at the end, so it merges y with a symbol x before
    it, or z with a symbol after it. Suppose that the former happens first (the other case is the same). Until
    then, no merge by scores has crossed the ends of xyz. No merge by pairs before (y, z) has either: scores
    make all of these, too, and what they make across the beginning of x contains y, but by pairs, y and z
    are still there. So on the text xyz alone, scores merge x and y, and pairs merge y and z: they differ. If
    there is no such merge, all merges by pairs are merges by scores. None is missing either:
    the two symbols that the first missing one would merge would still be there at the end.

**From pairs to scores.** Take the pieces that pairs can make, and let the rank of the pair that makes a
piece be its score. Then, at every state of a text, both kinds of BPE can merge the same pairs, in the same
order: if the joined text of x and y is a piece w, they are what w's text by itself becomes before its last
merge, and since w can be made, (x, y) is the pair that makes it. So this direction is always exact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import chain, pairwise
from operator import eq
from typing import TYPE_CHECKING

from cpbpe.lazy import importing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places = NDArray[np.int64]

Pair = tuple[str, str]
Rank = Callable[[str, str], float | None]
"""Returns the rank of two neighbours (the lowest merges first), or None if they do not merge."""

_NEVER = float("inf")
_LAST = 1 << 62
_NONE = -1
_SHORT = 32
"""Up to this length, all pairs are compared to find the best one; in longer texts, a heap finds it."""
_MANY = 4096
"""This many pieces take longer one by one than importing numpy and merging them all at once."""


def steps(text: str, rank: Rank) -> Iterator[tuple[int, str, str]]:
    """Yield the merges of a text, step by step: where the left symbol begins, and the two symbols.

    >>> ranks = {("a", "b"): 0, ("ab", "c"): 1}
    >>> list(steps("xabc", by_pair(ranks)))
    [(1, 'a', 'b'), (1, 'ab', 'c')]
    """
    # 1. The symbols are a linked list in arrays, and the pairs a heap: a text may be long.
    symbols = list(text)
    count = len(symbols)
    after = list(range(1, count + 1))
    before = list(range(-1, count - 1))
    heap: list[tuple[float, int, str, str]] = []

    def add(at: int) -> None:
        x, y = symbols[at], symbols[after[at]]
        if (place := rank(x, y)) is not None:
            heappush(heap, (place, at, x, y))

    for at in range(count - 1):
        add(at)
    # 2. Merge the best pair until there is none. Skip a pair whose symbols have changed since it was added.
    while heap:
        _, at, x, y = heappop(heap)
        right = after[at]
        if symbols[at] != x or right >= count or symbols[right] != y:
            continue
        yield at, x, y
        symbols[at], symbols[right] = x + y, ""
        after[at] = after[right]
        if after[at] < count:
            before[after[at]] = at
            add(at)
        if before[at] >= 0:
            add(before[at])


def merged(text: str, rank: Rank) -> list[str]:
    """Return the symbols that a text becomes.

    >>> merged("xabc", by_pair({("a", "b"): 0, ("ab", "c"): 1}))
    ['x', 'abc']
    """
    symbols = dict(enumerate(text))
    for at, x, y in steps(text, rank):
        symbols[at] = x + y
        del symbols[at + len(x)]
    return list(symbols.values())


def shortest_first(text: str) -> tuple[int, str]:
    """A sort key: by length, and texts of the same length alphabetically, so that the order is fixed."""
    return len(text), text


def by_text(ranks: Mapping[str, float]) -> Rank:
    """Return a `Rank` that looks up the joined text of two neighbours."""
    return lambda x, y: ranks.get(x + y)


def by_pair(pairs: Mapping[Pair, float]) -> Rank:
    """Return a `Rank` that looks up the pair."""
    return lambda x, y: pairs.get((x, y))


def pairs_that_make(pieces: Iterable[str], rank: Rank) -> dict[str, Pair]:
    """Return, for each of these pieces that merges can make, the one pair that makes it.

    >>> ranks = {"ab": 0, "bc": 1, "abc": 2, "abcd": 3, "cd": 9}
    >>> pairs_that_make(ranks, by_text(ranks))
    {'ab': ('a', 'b'), 'bc': ('b', 'c'), 'abc': ('ab', 'c'), 'abcd': ('abc', 'd'), 'cd': ('c', 'd')}
    """
    made: dict[str, Pair] = {}
    for piece in pieces:
        if len(piece) > _SHORT:
            last = next(((x, y) for _, x, y in steps(piece, rank) if len(x + y) == len(piece)), None)
        else:
            last = _last_pair(piece, rank)
        if last is not None:
            made[piece] = last
    return made


def _last_pair(text: str, rank: Rank) -> Pair | None:
    """Return the pair that is merged last if the whole text becomes one symbol, and None otherwise.

    This is `steps` without a heap. For the pieces of a typical model, which are short, it takes half the
    time.
    """
    symbols = list(text)
    ranks = [_NEVER if (place := rank(x, y)) is None else place for x, y in pairwise(symbols)]
    x = y = ""
    while ranks:
        best = min(ranks)
        if best == _NEVER:
            return None
        at = ranks.index(best)
        x, y = symbols[at], symbols.pop(at + 1)
        symbols[at] = x + y
        del ranks[at]
        if at < len(ranks):
            ranks[at] = _NEVER if (place := rank(x + y, symbols[at + 1])) is None else place
        if at:
            ranks[at - 1] = _NEVER if (place := rank(symbols[at - 1], x + y)) is None else place
    return (x, y) if y else None


def pairs_by_text(ranks: Mapping[str, float]) -> dict[str, Pair]:
    """Return `pairs_that_make(ranks, by_text(ranks))`; for many pieces, in a third of the time.

    >>> pairs_by_text({"bc": 1, "abc": 2, "xy": 9})
    {'bc': ('b', 'c'), 'abc': ('a', 'bc'), 'xy': ('x', 'y')}
    """
    if len(ranks) < _MANY:
        return pairs_that_make(ranks, by_text(ranks))
    several = {piece: rank for piece, rank in ranks.items() if len(piece) > 1}
    texts, left, right, _ = made_at_once(several, sorted({*chain.from_iterable(several)}))
    parts = zip(texts, left.tolist(), right.tolist(), strict=True)
    made = {text: (texts[x], texts[y]) for text, x, y in parts if len(text) > 1}
    return {piece: made[piece] for piece in ranks if piece in made}


def made_at_once(ranks: Mapping[str, float], roots: list[str]) -> tuple[list[str], Places, Places, Places]:
    """The letters, and the pieces that merging makes, the shortest first. For each its parts, and its rank: a
    small number, the lowest for letters.

    This does what `pairs_that_make` does, but merges all texts of a length at once, which is faster if there
    are many. `roots` are all letters of the pieces, in order.
    """
    with importing:
        import numpy as np
    texts = [*roots, *sorted(ranks, key=len)]
    size, count = len(texts), len(roots)
    values = np.fromiter(map(ranks.__getitem__, texts[count:]), np.float64)
    rank = np.concatenate((np.full(count, _NONE), np.unique(values, return_inverse=True)[1].ravel()))
    lengths = np.fromiter(map(len, texts), np.int64)
    levels = [
        (length, *np.searchsorted(lengths, (length, length + 1)).tolist())
        for length in np.unique(lengths[lengths <= _SHORT]).tolist()
    ]
    # 1. The letters of the texts, and which text each beginning and each end is.
    *_, short = levels[-1] if levels else (0,)
    letters = np.full((short, _SHORT), _NONE, np.int32)
    turned = letters.copy()
    codes = np.array([*map(ord, roots)], np.uint32)
    for length, low, high in levels:
        found = np.frombuffer("".join(texts[low:high]).encode("utf-32-le", "surrogatepass"), np.uint32)
        letters[low:high, :length] = np.searchsorted(codes, found).reshape(-1, length)
        turned[low:high, :length] = letters[low:high, :length][:, ::-1]
    begins, ends = _beginnings(letters, levels), _beginnings(turned, levels)
    # 2. What two neighbours make, if they are symbols at all.
    keys, makes = [np.array([_LAST])], [np.array([_NONE])]
    for length, low, high in levels:
        first, second = begins[low:high, : length - 1], ends[low:high, : length - 1][:, ::-1]
        both = (first != _NONE) & (second != _NONE)
        keys.append(first[both].astype(np.int64) * size + second[both])
        makes.append(low + both.nonzero()[0])
    order = np.argsort(np.concatenate(keys))
    key, makes_of = np.concatenate(keys)[order], np.concatenate(makes)[order]

    def make(x: Places, y: Places) -> Places:
        wanted = x * size + y
        found = np.searchsorted(key, wanted)
        return np.where(key[found] == wanted, makes_of[found], _NONE)

    # 3. Merge all texts of a length, the best pair of each at a time.
    left, right = np.full((2, size), _NONE)
    turn = np.append(rank, size)  # (what is not made comes last)
    for length, low, high in levels[1:]:
        symbols = letters[low:high, :length].astype(np.int64)
        pairs = make(symbols[:, :-1], symbols[:, 1:])
        for width in range(length, 2, -1):
            at = turn[pairs].argmin(1)
            can_merge = pairs[np.arange(len(at)), at] != _NONE
            at, symbols, pairs = at[can_merge], symbols[can_merge], pairs[can_merge]
            row = np.arange(len(at))
            symbols[row, at] = pairs[row, at]
            symbols, pairs = _without(symbols, at + 1), _without(pairs, at)
            for place, some in ((at, at < width - 2), (at - 1, at > 0)):
                changed, place = row[some], place[some]
                pairs[changed, place] = make(symbols[changed, place], symbols[changed, place + 1])
        is_made = pairs[:, 0] != _NONE
        left[pairs[is_made, 0]], right[pairs[is_made, 0]] = symbols[is_made].T
    # 4. Long texts one by one. Keep those that are made.
    numbers = {text: number for number, text in enumerate(texts)} if short < size else {}
    for text, parts in pairs_that_make(texts[short:], by_text(ranks)).items():
        left[numbers[text]], right[numbers[text]] = map(numbers.__getitem__, parts)
    kept = np.flatnonzero((left != _NONE) | (lengths == 1))
    number_of = np.full(size + 1, _NONE)
    number_of[kept] = np.arange(len(kept))
    return (
        [texts[number] for number in kept.tolist()],
        number_of[left[kept]],
        number_of[right[kept]],
        rank[kept],
    )


def _beginnings(letters: NDArray[np.int32], levels: list[tuple[int, int, int]]) -> NDArray[np.int32]:
    """The numbers of the texts that others begin with, by the length of the beginning less one.

    `letters` are the numbers of their letters, `levels` the texts of each length. Texts are told apart letter
    by letter: at each length, those with the same beginning have the same number in `same`.
    """
    with importing:
        import numpy as np
    numbers = np.full_like(letters, _NONE)
    same = np.zeros(len(letters), np.int64)
    of_length = {length: (low, high) for length, low, high in levels}
    low = 0
    for at in range(letters.shape[1]):
        low, high = of_length.get(at + 1, (low, low))
        whole = same[low:] * len(letters) + letters[low:, at]
        same[low:] = np.unique(whole, return_inverse=True)[1].ravel()
        text = np.full(len(letters), _NONE)
        text[same[low:high]] = np.arange(low, high)
        numbers[low:, at] = text[same[low:]]
        low = high
    return numbers


def _without(rows: Places, columns: Places) -> Places:
    """The rows, each without the number in one column; `columns` has that column for each row."""
    with importing:
        import numpy as np
    count, width = rows.shape
    left: Places = rows[np.arange(width) != columns[:, None]].reshape(count, width - 1)
    return left


# --- From scores to pairs -------------------------------------------------------------------------


def ordered(
    made: Mapping[str, Pair], ranks: Mapping[str, float], texts: Collection[str] | None = None
) -> list[str]:
    """Return the pieces in the order in which to list their pairs: by rank, then in an order that works.

    Where scores make the leftmost of several pieces of equal rank, that piece has to come first in the list.
    So we look for texts on which the list differs, and move the piece that has to be made there before the
    one that is made wrongly. `texts` are the `candidates`, if they are known already.

    >>> ranks = {"aa": 0, "aaa": 0}
    >>> ordered(pairs_that_make(ranks, by_text(ranks)), ranks)
    ['aaa', 'aa']
    """
    order = _Order(made, ranks)
    texts = candidates(made, ranks) if texts is None else texts
    known: set[Pair] = set()
    before = -1
    # Each move may change what the list does with other texts, so repeat this until no text shows a new one.
    while len(known) > before:
        before = len(known)
        for text in texts:
            wrong = _wrong_step(text, made, ranks, order.places)
            if wrong is None or wrong in known:
                continue
            known.add(wrong)
            if not order.put(*wrong):  # no order is right for all texts; `differences` will say where
                return order.pieces()
    return order.pieces()


def differences(
    made: Mapping[str, Pair],
    ranks: Mapping[str, float],
    order: Iterable[str],
    texts: Collection[str] | None = None,
) -> Iterator[str]:
    """Yield texts on which a list of pairs differs from the scores, the shortest first; none if none does.

    `made` is what `pairs_that_make` returns for all pieces of these ranks; `order` has all of them, by rank.
    """
    theirs = by_pair({made[piece]: place for place, piece in enumerate(order)})
    for text in candidates(made, ranks) if texts is None else texts:
        if merged(text, by_text(ranks)) != merged(text, theirs):
            yield text


def candidates(made: Mapping[str, Pair], ranks: Mapping[str, float]) -> list[str]:
    """Return the texts xyz on which scores and pairs may differ (see above), the shortest first.

    Only pieces of equal rank matter. If two different pieces of equal rank are parts of one piece, its own
    text is a candidate. Suppose that scores and pairs agree on all those texts. Then both of them make x, y
    and z out of xyz, and the question is only which is merged first, (x, y) or (y, z). A merge comes after
    all merges of lower ranks that it waits for. So the answer can differ only if a part of x + y and a part
    of y + z have the same rank and are not the same piece.
    """
    # 1. For each piece, those of its parts (itself included) that share their rank with another piece.
    counts = Counter(ranks[piece] for piece in made)
    none: frozenset[str] = frozenset()
    equals: dict[str, frozenset[str]] = {}
    for piece in sorted(made, key=len):
        left, right = (equals.get(part, none) for part in made[piece])
        inside = left | right if left and right else left or right
        if counts[ranks[piece]] > 1:
            inside = inside | {piece}
        if inside:
            equals[piece] = inside
    # 2. Pieces with two such parts of one rank, and any two pieces x + y and y + z with parts of one rank.
    texts = {piece for piece in equals if len({ranks[part] for part in equals[piece]}) < len(equals[piece])}
    beginning: dict[tuple[str, float], list[tuple[str, str]]] = defaultdict(list)
    for piece, parts in equals.items():
        for part in parts:
            beginning[made[piece][0], ranks[part]].append((part, piece))
    for piece, parts in equals.items():
        x, y = made[piece]
        for part in parts:
            found = beginning.get((y, ranks[part]))
            if found:
                texts.update(x + right for other, right in found if other != part)
    return sorted(texts, key=shortest_first)


class _Order:
    """The pieces in an order by rank, in which a piece can be moved before another.

    Each move changes as little as possible: only pieces between the two are moved. (Sorting all pieces for
    each move took 33 s where 32,000 pieces have one score; this takes 0.1 s.)
    """

    def __init__(self, made: Iterable[str], ranks: Mapping[str, float]):
        # Of equal ranks, longer pieces come first. This is right for runs of one character, which grow from
        # the left, so `ordered` need not find that out from a text.
        order = sorted(made, key=lambda piece: (ranks[piece], -len(piece)))
        self.places = {piece: place for place, piece in enumerate(order)}
        """Where each piece is."""
        # For each piece, those that have to come before it, and those that have to come after it.
        self._before: dict[str, set[str]] = defaultdict(set)
        self._after: dict[str, set[str]] = defaultdict(set)

    def pieces(self) -> list[str]:
        """Return the pieces in this order."""
        return sorted(self.places, key=self.places.__getitem__)

    def put(self, first: str, second: str) -> bool:
        """Put a piece before another from now on. Return False if earlier calls demand the opposite."""
        # 1. Between the two: pieces that have to stay after the second, and those before the first.
        places = self.places
        begin, end = places[second], places[first]
        followers = self._reached(second, self._after, lambda place: place <= end)
        if first in followers:
            return False
        leaders = self._reached(first, self._before, lambda place: place >= begin)
        # 2. Give their places to the leaders first, then to the followers.
        moved = sorted(leaders, key=places.__getitem__) + sorted(followers, key=places.__getitem__)
        places.update(zip(moved, sorted(map(places.__getitem__, moved)), strict=True))
        self._after[first].add(second)
        self._before[second].add(first)
        return True

    def _reached(
        self, piece: str, steps: Mapping[str, set[str]], is_between: Callable[[int], bool]
    ) -> set[str]:
        """Return a piece and all pieces that can be reached from it by `steps` without leaving the range."""
        reached, waiting = {piece}, [piece]
        while waiting:
            for other in steps.get(waiting.pop(), ()):
                if other not in reached and is_between(self.places[other]):
                    reached.add(other)
                    waiting.append(other)
        return reached


def _wrong_step(
    text: str, made: Mapping[str, Pair], ranks: Mapping[str, float], order: Mapping[str, int]
) -> Pair | None:
    """Return where a list goes wrong in a text: the piece to make first, and the piece that the list makes.

    The first step of the list that scores never take is wrong. Instead, the list should take one of the
    steps that are possible at this point and that scores do take.
    """
    ours = {(at, x + y) for at, x, y in steps(text, _of_made(made, ranks))}
    symbols = dict(enumerate(text))
    for at, x, y in steps(text, _of_made(made, order)):
        piece = x + y
        if (at, piece) not in ours:
            possible = {(place, left + right) for (place, left), (_, right) in pairwise(symbols.items())}
            equal = [o for _, o in possible & ours if ranks[o] == ranks[piece] and o != piece]
            return (min(equal, key=order.__getitem__), piece) if equal else None
        symbols[at] = piece
        del symbols[at + len(x)]
    return None


def _of_made(made: Mapping[str, Pair], ranks: Mapping[str, float]) -> Rank:
    """Return a `Rank` that gives two neighbours the rank of a piece if they are the pair that makes it."""
    return lambda x, y: ranks[x + y] if made.get(x + y) == (x, y) else None


# --- From pairs to scores -------------------------------------------------------------------------


def ranks_of(pieces: Iterable[str], pairs: Mapping[Pair, float]) -> dict[str, float]:
    """Return the rank of each piece that a list of pairs can make.

    Merging by these ranks gives the same symbols in every text as merging by the list.

    >>> ranks_of(["ab", "abc", "cd"], {("a", "b"): 0, ("a", "bc"): 1, ("ab", "c"): 2, ("c", "d"): 3})
    {'ab': 0, 'abc': 2, 'cd': 3}
    """
    # 1. If all pairs with the same joined text are next to each other in the list, merging by text, with the
    #    rank of the first of them, takes the same steps, provided that what it merges is this first pair.
    listed = sorted(pairs, key=pairs.__getitem__, reverse=True) if len(pairs) >= _MANY else []
    texts = [x + y for x, y in listed]
    ranks = dict(zip(texts, map(pairs.__getitem__, listed), strict=True))
    if ranks and len(ranks) == len(texts) - sum(map(eq, texts, texts[1:])):
        made, first = pairs_by_text(ranks), dict(zip(texts, listed, strict=True))
        if all(map(eq, made.values(), map(first.get, made))):
            return {piece: ranks[piece] for piece in pieces if piece in made}
    # 2. Otherwise the pairs themselves decide.
    return {piece: pairs[pair] for piece, pair in pairs_that_make(pieces, by_pair(pairs)).items()}
