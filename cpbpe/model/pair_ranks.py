"""Two kinds of BPE, and when they are the same: by joined text (sentencepiece), and by ranked pairs.

Both merge two neighbouring symbols at a time until nothing is left to merge. sentencepiece merges those
whose text together is the piece with the highest score. The `tokenizers` library has a list of pairs, and
merges the pair that comes first in it. Among equals, both take the leftmost.

**One pair a piece.** Look at a span of a text, as long as no merge has crossed its ends. What has been
merged inside is what would have been merged if the span were the whole text: whether two neighbours are
merged, and before which others, depends on their texts only. So whenever two neighbours x and y together
are the text of a piece w, they are what w's text by itself becomes before its last merge. In other words:
there is one pair that makes w, in any text; or none, if w's text by itself does not end as one symbol. Then
w is never made.

**From scores to pairs.** So list one pair for each piece that can be made, in the order of the scores. If
no two scores are equal, both kinds of BPE take the same steps in every text. If some are, sentencepiece
takes the leftmost of several pieces, and a list of pairs the first of them. Whether that matters is decided
by finitely many texts: *the two differ on some text if and only if they differ on a text xyz such that the
pairs (x, y) and (y, z) are both in the list.*

    Let q = (y, z) be the first step by pairs, in some text, that is no step by scores there. By scores, y
    and z were made, too (all steps before were common), but were not merged with each other. As they cannot
    both be left at the end, y was merged with a symbol x before it, or z with a symbol after it; say the
    first came first (the other case is the same). Until then nothing had crossed the ends of xyz, neither
    by scores nor (because x and z are made there, and y is still there) by pairs. So on the text xyz alone,
    scores merge x and y, and pairs merge y and z: they differ. If there is no such step, all steps by pairs
    are steps by scores; and none is missing, because what the first missing one would merge would be there
    at the end.

**From pairs to scores.** Take the pieces that can be made by pairs, and let the rank of the pair that makes
a piece be its score. At every state of a text, both kinds of BPE can merge the same pairs, in the same
order: a pair (x, y) that together is a piece w is what w by itself becomes, and w can be made, so (x, y) is
the pair that makes it. So this direction is always exact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import pairwise

Pair = tuple[str, str]
Rank = Callable[[str, str], float | None]
"""The rank of two neighbours, the lowest first; None if they are not merged."""

_NEVER = float("inf")
_SHORT = 32
"""Up to this length, the best pair is looked for among all, in longer texts with a heap."""


def steps(text: str, rank: Rank) -> Iterator[tuple[int, str, str]]:
    """What is merged in a text, step by step: where the left one of the two symbols begins, and both.

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
    # 2. Merge the best pair until there is none. One that is no longer there is passed over.
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
    """The symbols that a text becomes.

    >>> merged("xabc", by_pair({("a", "b"): 0, ("ab", "c"): 1}))
    ['x', 'abc']
    """
    symbols = dict(enumerate(text))
    for at, x, y in steps(text, rank):
        symbols[at] = x + y
        del symbols[at + len(x)]
    return list(symbols.values())


def shortest_first(text: str) -> tuple[int, str]:
    """A key that sorts texts, always in the same order."""
    return len(text), text


def by_text(ranks: Mapping[str, float]) -> Rank:
    """Two neighbours have the rank of their text together."""
    return lambda x, y: ranks.get(x + y)


def by_pair(pairs: Mapping[Pair, float]) -> Rank:
    """Two neighbours have a rank of their own."""
    return lambda x, y: pairs.get((x, y))


def pairs_that_make(pieces: Iterable[str], rank: Rank) -> dict[str, Pair]:
    """For each of these pieces that can be made from several characters, the one pair that makes it.

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
    """The pair that is merged last if all of a text becomes one symbol, and else None.

    It is `steps` without a heap: for the pieces of a usual model, which are short, in half the time.
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


# --- From scores to pairs -------------------------------------------------------------------------


def ordered(
    made: Mapping[str, Pair], ranks: Mapping[str, float], texts: Collection[str] | None = None
) -> list[str]:
    """The pieces in the order in which their pairs are to be listed: by rank, and equals as they have to be.

    Where scores make the leftmost of several equal pieces, the list has to have that one first. So we look
    for texts on which the list differs, and put what has to be made there before what is made wrongly.
    `texts` are the `candidates`, if they are known already.

    >>> ranks = {"aa": 0, "aaa": 0}
    >>> ordered(pairs_that_make(ranks, by_text(ranks)), ranks)
    ['aaa', 'aa']
    """
    order = _Order(made, ranks)
    texts = candidates(made, ranks) if texts is None else texts
    known: set[Pair] = set()
    before = -1
    while len(known) > before:
        before = len(known)
        for text in texts:
            wrong = _wrong_step(text, made, ranks, order.places)
            if wrong is None or wrong in known:
                continue
            known.add(wrong)
            if not order.put(*wrong):  # this order is wrong, too, and `differences` will say where
                return order.pieces()
    return order.pieces()


def differences(
    made: Mapping[str, Pair],
    ranks: Mapping[str, float],
    order: Iterable[str],
    texts: Collection[str] | None = None,
) -> Iterator[str]:
    """Texts on which a list of pairs differs from the scores, the shortest first; none if they never do.

    `made` is what `pairs_that_make` gives for all pieces of these ranks; `order` has all of them, by rank.
    """
    theirs = by_pair({made[piece]: place for place, piece in enumerate(order)})
    for text in candidates(made, ranks) if texts is None else texts:
        if merged(text, by_text(ranks)) != merged(text, theirs):
            yield text


def candidates(made: Mapping[str, Pair], ranks: Mapping[str, float]) -> list[str]:
    """The texts xyz of two pairs (x, y) and (y, z) that can matter, the shortest first.

    Only pieces of equal rank matter. If two different ones are parts of one piece, its own text shows it. Let
    all those texts be the same by scores and by pairs. Then x, y and z become what they are in either, and
    the question is what is ready first, (x, y) or (y, z). What waits for a rank is ready after all that
    waits for lower ones. So this can differ only if a part of x + y and a part of y + z that are not the same
    piece have the same rank.
    """
    # 1. The parts of each piece that share their rank with another piece.
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
    # 2. The pieces with two of them, and all two pieces with a symbol in common and a part of one rank.
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
    """The pieces by rank, with their places, in which one piece after the other is put before another.

    Each time as little as possible changes: only pieces between the two move. (To sort all of them each time
    took 33 s where 32,000 pieces have one score; this takes 0.1 s.)
    """

    def __init__(self, made: Iterable[str], ranks: Mapping[str, float]):
        # Longer ones first, which is right where a run grows from the left, and saves looking for it.
        order = sorted(made, key=lambda piece: (ranks[piece], -len(piece)))
        self.places = {piece: place for place, piece in enumerate(order)}
        """Where each piece is."""
        self._before: dict[str, set[str]] = defaultdict(set)
        self._after: dict[str, set[str]] = defaultdict(set)

    def pieces(self) -> list[str]:
        """The pieces in this order."""
        return sorted(self.places, key=self.places.__getitem__)

    def put(self, first: str, second: str) -> bool:
        """Put a piece before another, from now on; False if it must come after that."""
        # 1. What must come after the second one, and now is before the first; and the other way round.
        places = self.places
        begin, end = places[second], places[first]
        late = self._reached(second, self._after, lambda place: place <= end)
        if first in late:
            return False
        early = self._reached(first, self._before, lambda place: place >= begin)
        # 2. They share their places anew.
        moved = sorted(early, key=places.__getitem__) + sorted(late, key=places.__getitem__)
        places.update(zip(moved, sorted(map(places.__getitem__, moved)), strict=True))
        self._after[first].add(second)
        self._before[second].add(first)
        return True

    def _reached(
        self, piece: str, steps: Mapping[str, set[str]], is_between: Callable[[int], bool]
    ) -> set[str]:
        """A piece and all those that its constraints lead to, as far as they are between two places."""
        found, waiting = {piece}, [piece]
        while waiting:
            for other in steps.get(waiting.pop(), ()):
                if other not in found and is_between(self.places[other]):
                    found.add(other)
                    waiting.append(other)
        return found


def _wrong_step(
    text: str, made: Mapping[str, Pair], ranks: Mapping[str, float], order: Mapping[str, int]
) -> Pair | None:
    """Where a list goes wrong in a text: a piece that has to be made first, and the one that is made.

    The first step of the list that scores never take is wrong. Before it, one of the steps has to come that
    scores do take, and that is possible there.
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
    """Two neighbours have the rank of a piece if they are the pair that makes it."""
    return lambda x, y: ranks[x + y] if made.get(x + y) == (x, y) else None


# --- From pairs to scores -------------------------------------------------------------------------


def ranks_of(pieces: Iterable[str], pairs: Mapping[Pair, float]) -> dict[str, float]:
    """The rank of each piece that a list of pairs can make. With these as scores, all texts stay the same.

    >>> ranks_of(["ab", "abc", "cd"], {("a", "b"): 0, ("a", "bc"): 1, ("ab", "c"): 2, ("c", "d"): 3})
    {'ab': 0, 'abc': 2, 'cd': 3}
    """
    return {piece: pairs[pair] for piece, pair in pairs_that_make(pieces, by_pair(pairs)).items()}
