r"""How byte-level BPE is trained, as minbpe or as tokenizers does it, to be read from top to bottom.

Training is what `cpbpe/reference/training.py` says: the most frequent pair becomes a piece, again and
again. It is simpler here. All 256 bytes are pieces, so no rare characters are left out, and the pattern has
cut the text into chunks, so there are no rules about what a piece may hold. There are three ideas:

1. **Count chunks, not text.** Nothing merges across a cut, so equal chunks are counted together.
   (`count_chunks`)
2. **After a merge, only its neighbours change.** Their counts are corrected, instead of counting all pairs
   anew. (`learn`)
3. **Ties need a rule.** Two pairs are often equally frequent, and libraries choose differently. Everything
   that follows depends on the choice, so whoever wants the merges of a library must know its rule. (`TIES`)

A corpus small enough to follow by hand; 97 is `a`, 98 is `b`:

>>> learned = learn(count_chunks(["aaabdaaabac"], None), 3)
>>> learned.pairs, learned.pieces, learned.counts
([(97, 97), (256, 97), (257, 98)], [b'aa', b'aaa', b'aaab'], [4, 2, 2])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from cpbpe.reference.byte_level.patterns import cut
from cpbpe.text.byte_letters import BYTE_ORDER

WALL = -1
"""Stands between two chunks; and where there was a symbol that was merged into the one before it."""

TIES = ("minbpe", "tokenizers")
"""Which of several most frequent pairs is merged.

"minbpe": the one that comes first in the text as it is at that moment. So does the code of Andrej
Karpathy's lecture, and what tiktoken has for teaching: both go through the text, and keep the first of the
pairs with the highest count.

"tokenizers": the one whose left symbol has the smallest id, then whose right symbol has. So does Hugging
Face's library of this name; its ids are those of the bytes in GPT-2's order (`BYTE_ORDER`), then the
merges.
"""


@dataclass(frozen=True)
class LearnedMerges:
    """What training has found out, merge by merge. The bytes have the ids 0 to 255, the merges follow."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """The two ids that each merge joins."""
    pieces: list[bytes] = field(default_factory=list)
    """The text of each."""
    counts: list[int] = field(default_factory=list)
    """How often the pair occurred when it was merged."""
    shortened: list[int] = field(default_factory=list)
    """By how many symbols each merge made the text shorter: like `counts`, but places that overlap once."""

    def ranks(self, byte_order: Sequence[int] = range(256)) -> dict[bytes, int]:
        """The pieces and their ranks: bytes first, in this order, then the merges. `ByteLevel` takes them.

        OpenAI's ranks have the bytes in GPT-2's order, `BYTE_ORDER`; minbpe's in their own.
        """
        return {
            piece: rank for rank, piece in enumerate([*(bytes([byte]) for byte in byte_order), *self.pieces])
        }


@dataclass(frozen=True)
class Limits:
    """Which pairs are not merged."""

    min_frequency: int = 0
    """Pairs that are rarer than this."""
    max_length: int = 0
    """Pairs of more bytes than this, except those of two bytes; 0 for no limit."""
    forbidden: Collection[bytes] = ()
    """Pairs with one of these texts. A piece with the text of a special token could be taken for that."""


# --- Idea 1: count chunks, not text ---------------------------------------------------------------


def count_chunks(texts: Iterable[str], pattern: str | None) -> dict[bytes, int]:
    r"""The chunks of some texts, and how often each occurs. They are in the order of their first appearance.

    Without a pattern, each text is one chunk.

    >>> count_chunks(["the cat the hat"], r" ?\p{L}+")
    {b'the': 1, b' cat': 1, b' the': 1, b' hat': 1}
    """
    counts: dict[str, int] = {}
    for text in texts:
        for chunk in [text] if pattern is None else cut(pattern, text):
            counts[chunk] = counts.get(chunk, 0) + 1
    return {chunk.encode(): count for chunk, count in counts.items()}


# --- Ideas 2 and 3: merging -------------------------------------------------------------------------


def learn(
    chunks: Mapping[bytes, int],
    merges: int,
    ties: str = "minbpe",
    progress: Callable[[int, tuple[int, int], bytes, int], None] | None = None,
    limits: Limits | None = None,
) -> LearnedMerges:
    """The first `merges` merges of counted chunks; fewer if no pair is left.

    **Counts.** A pair is counted at every place, overlapping ones included: `aaa` has two pairs `aa`. Merging
    goes from left to right, so `aaa` becomes `aa`, `a`. All libraries that are named here count in this way.

    **The first of several.** Chunks are in the order of their first appearance, so what comes first among
    the distinct chunks comes first in the whole text. The places of a pair are all found during one merge:
    a symbol gets a new neighbour only by becoming part of a new symbol, or by a neighbour that does, so a
    pair of two old symbols never appears again. This merge goes from left to right. So the places of a pair
    are in order, and the first of them that still holds the pair is where it is met first.

    **The queue.** A pair's count only falls after that merge, and its first place only moves on. So an entry
    of the queue that is out of date stands too far in front. When its turn comes, it is put back, and nothing
    has to be searched for.

    `progress` is called after each merge with its number, its pair, its text and its count.
    """
    if ties not in TIES:
        raise ValueError(f"ties={ties!r} is none of {', '.join(map(repr, TIES))}")
    order = [0] * 256
    for place, byte in enumerate(BYTE_ORDER):
        order[byte] = place
    limits = limits or Limits()
    learned = LearnedMerges()

    # 1. Write the chunks as one long list of symbols, with walls between them.
    text = [WALL]
    weight = [0]  # for each place in the text: how often its chunk occurs
    for chunk, count in chunks.items():
        text += [*chunk, WALL]
        weight += [count] * (len(chunk) + 1)
    before = list(range(-1, len(text) - 1))
    after = list(range(1, len(text) + 1))
    pieces = [bytes([byte]) for byte in range(256)]

    # 2. Find all pairs, with their counts and places, and put them in a queue, the next one to merge first.
    counts: dict[tuple[int, int], int] = {}
    places: dict[tuple[int, int], list[int]] = {}  # where they occur, or occurred, from left to right
    looked: dict[tuple[int, int], int] = {}  # how many of its places no longer hold the pair
    new_pairs: list[tuple[int, int]] = []

    def add(left: int, right: int) -> None:
        """Count the pair at these two places of the text."""
        pair = text[left], text[right]
        if WALL in pair:
            return
        if pair not in counts:
            counts[pair] = looked[pair] = 0
            places[pair] = []
            new_pairs.append(pair)
        counts[pair] += weight[left]
        places[pair].append(left)

    def remove(left: int, right: int) -> None:
        """Uncount the pair at these two places: one of them is about to change."""
        pair = text[left], text[right]
        if pair in counts:
            counts[pair] -= weight[left]

    def first(pair: tuple[int, int]) -> int:
        """The first place that still holds the pair."""
        spots, at = places[pair], looked[pair]
        while at < len(spots) and (text[spots[at]], text[after[spots[at]]]) != pair:
            at += 1
        looked[pair] = at
        return spots[at] if at < len(spots) else len(text)

    def entry(pair: tuple[int, int]) -> tuple[int, int, int, tuple[int, int]]:
        """The entry of a pair in the queue: the smallest one is merged next."""
        if ties == "minbpe":
            return -counts[pair], first(pair), 0, pair
        left, right = (order[id] if id < 256 else id for id in pair)
        return -counts[pair], left, right, pair

    for at in range(len(text) - 1):
        add(at, at + 1)
    queue = [entry(pair) for pair in new_pairs]
    new_pairs.clear()
    heapify(queue)

    # 3. Merge the first pair of the queue, until there are enough merges or no pair is left.
    while len(learned.pairs) < merges and queue:
        top = heappop(queue)
        pair = top[-1]
        if top != (true := entry(pair)):
            heappush(queue, true)
            continue
        if -top[0] < max(limits.min_frequency, 1):
            break  # all pairs that are left are too rare, or no longer in the text
        piece = pieces[pair[0]] + pieces[pair[1]]
        if piece in limits.forbidden or len(piece) > max(limits.max_length or len(piece), 2):
            continue  # (it is out of the queue, and no merge puts it in again)
        del counts[pair]
        new, shorter = len(pieces), 0
        pieces.append(piece)
        for left in places.pop(pair):
            right = after[left]
            if (text[left], text[right]) != pair:
                continue  # another pair was merged here, or this pair overlapped itself
            previous, following = before[left], after[right]
            remove(previous, left)
            remove(right, following)
            text[left], text[right] = new, WALL
            after[left], before[following] = following, left
            add(previous, left)
            add(left, following)
            shorter += weight[left]
        for fresh in new_pairs:
            heappush(queue, entry(fresh))
        new_pairs.clear()
        learned.pairs.append(pair)
        learned.pieces.append(pieces[new])
        learned.counts.append(-top[0])
        learned.shortened.append(shorter)
        if progress:
            progress(len(learned.pairs), pair, pieces[new], -top[0])
    return learned
