r"""How byte-level BPE is trained, as minbpe or as tokenizers does it, to be read from top to bottom.

As in `cpbpe/reference/training.py`, the most frequent pair becomes a piece, again and again, and the same
loop does it. The rest is simpler here. All 256 bytes are pieces, so no rare characters are left out, and the
pattern has cut the text into chunks, so there are no rules about what a piece may hold. There are two ideas:

1. **Count chunks, not text.** Nothing merges across a cut, so equal chunks are counted together.
   (`count_chunks`)
2. **Ties need a rule.** Two pairs are often equally frequent, and libraries choose differently. Everything
   that follows depends on the choice, so to get the merges of a library one needs its rule. (`TIES`)

A corpus small enough to follow by hand; 97 is `a`, 98 is `b`:

>>> learned = learn(count_chunks(["aaabdaaabac"], None), 3)
>>> learned.pairs, learned.pieces, learned.counts
([(97, 97), (256, 97), (257, 98)], [b'aa', b'aaa', b'aaab'], [4, 2, 2])
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice

from cpbpe.reference.byte_level.patterns import compiled, cut, parts
from cpbpe.reference.training import (
    Pair,
    WordCounter,
    at_intervals,
    check_size,
    firsts_of,
    merges_of,
    unpack,
)
from cpbpe.reference.training_values import (
    Begun,
    ByteCountSpec,
    ByteLearnSpec,
    Learned,
    Progress,
    Skipped,
    Words,
)
from cpbpe.text.utf8 import BYTE_ORDER

TIES = ("minbpe", "tokenizers")
"""Which of several most frequent pairs is merged.

"minbpe": the one that comes first in the text, as far as it has been merged. The code of Andrej Karpathy's
lecture and tiktoken's educational code do this: both go through the text, and keep the first of the pairs
with the highest count.

"tokenizers": the one whose left symbol has the smallest id; if there are several, the one whose right symbol
has. Hugging Face's library of this name does this; its ids are those of the bytes in GPT-2's order
(`BYTE_ORDER`), then those of the merges.
"""


@dataclass(frozen=True)
class LearnedMerges:
    """What training has learned, merge by merge. The bytes have the ids 0 to 255; the merges follow."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """The two ids that each merge joins."""
    pieces: list[bytes] = field(default_factory=list)
    """The piece that each merge makes."""
    counts: list[int] = field(default_factory=list)
    """How often the pair occurred when it was merged."""
    shortened: list[int] = field(default_factory=list)
    """How many symbols the text lost in each merge: `counts`, except that overlapping places count once."""

    def ranks(self, byte_order: Sequence[int] = range(256)) -> dict[bytes, int]:
        """The pieces and their ranks, for `ByteLevel`: first the bytes in the order given, then the merges.

        OpenAI's ranks have the bytes in GPT-2's order, `BYTE_ORDER`; minbpe's have them in numerical order.
        """
        return {
            piece: rank for rank, piece in enumerate([*(bytes([byte]) for byte in byte_order), *self.pieces])
        }


# --- Idea 1: count chunks, not text ---------------------------------------------------------------


def count_chunks(texts: Iterable[str], pattern: str | None) -> dict[bytes, int]:
    r"""Return the chunks of texts, in the order of their first appearance, and how often each occurs.

    Without a pattern, each text is one chunk.

    >>> count_chunks(["the cat the hat"], r" ?\p{L}+")
    {b'the': 1, b' cat': 1, b' the': 1, b' hat': 1}
    """
    counts: dict[str, int] = {}
    for text in texts:
        for chunk in [text] if pattern is None else cut(pattern, text):
            counts[chunk] = counts.get(chunk, 0) + 1
    return {chunk.encode(): count for chunk, count in counts.items()}


# --- Idea 2: ties need a rule -------------------------------------------------------------------------


def learn(
    chunks: Mapping[bytes, int],
    merges: int,
    ties: str = "minbpe",
    progress: Callable[[int, tuple[int, int], bytes, int], None] | None = None,
    *,
    min_frequency: int = 0,
    max_length: int = 0,
    forbidden: Collection[bytes] = (),
    begun: Begun | None = None,
) -> LearnedMerges:
    """Return the first `merges` merges that counted chunks yield; fewer if no pair is left.

    `merges_of` in `cpbpe/reference/training.py` does the merging; all libraries that are named here count
    pairs as it does. Chunks must be in the order of their first appearance, so that the pair that comes first
    among the distinct chunks also comes first in the whole text.

    `progress` is called after each merge with its number, its pair, its text and its count.

    A pair is not merged if it is rarer than `min_frequency`, if it has more than `max_length` bytes (0 means
    no limit; pairs of single bytes are always allowed), or if its text is `forbidden`, because it would be
    taken for a special token. With `begun`, learning goes on from what an older model makes of the chunks.
    """
    if ties not in TIES:
        raise ValueError(f"ties={ties!r} is none of {', '.join(map(repr, TIES))}")
    place_of = {byte: place for place, byte in enumerate(BYTE_ORDER)}
    longest = max(max_length, 2) if max_length else None

    def allowed(piece: bytes) -> bool:
        return piece not in forbidden and (longest is None or len(piece) <= longest)

    def order(pair: Pair, first: Callable[[Pair], int]) -> tuple[int, ...]:
        if ties == "minbpe":
            return (first(pair),)
        return pair if begun else tuple(place_of[id] if id < 256 else id for id in pair)

    learned = LearnedMerges()
    pieces = [bytes([byte]) for byte in range(256)]
    words: Iterable[tuple[Sequence[int], int]] = chunks.items()
    if begun:
        pieces, words = list(begun.texts), zip(begun.words(), chunks.values(), strict=True)
    for merge in islice(merges_of(words, pieces, allowed, order), merges):
        if merge.frequency < max(min_frequency, 1):
            break  # all pairs that are left are too rare, or no longer in the text
        learned.pairs.append(merge.pair)
        learned.pieces.append(merge.piece)
        learned.counts.append(merge.frequency)
        learned.shortened.append(merge.shorter)
        if progress:
            progress(len(learned.pairs), merge.pair, merge.piece, merge.frequency)
    return learned


# --- The same, as engines offer it ----------------------------------------------------------------


class ReferenceByteCounter(WordCounter):
    """Counts the chunks of texts."""

    def __init__(self, spec: ByteCountSpec):
        super().__init__(spec.ordered)
        self._pattern = spec.pattern
        if spec.pattern:
            compiled(spec.pattern)  # raises an error if this is not a regular expression

    def add_block(self, data: bytes, threads: int = 1) -> None:
        self.add(re.findall(rb"[^\n]*\n|[^\n]+", data))

    def _prepare(self, text: bytes) -> bytes | None:
        """Return the text, with U+FFFD for what is not valid UTF-8; None for an empty one."""
        self._sentences += 1
        self._bytes += len(text)
        if not text:
            self._skipped["empty"] = Skipped(self._skipped["empty"].sentences + 1)
            return None
        valid = text.decode(errors="replace").encode()
        self._broken += valid != text
        return valid

    def _cut(self, text: str) -> Iterator[str]:
        return filter(None, parts(self._pattern, text) if self._pattern else [text])


def learn_words(words: Words, spec: ByteLearnSpec, progress: Progress | None = None) -> Learned:
    """Learn merges from words. The ids of bytes are their places in `byte_order`, not their values."""
    if spec.ties == "tokenizers" and spec.byte_order != bytes(BYTE_ORDER):
        raise ValueError('ties="tokenizers" is defined for bytes in the order of GPT-2')
    total = check_size(words)
    rows = list(unpack(words))
    if spec.ties == "minbpe":
        rows = [row for _, row in sorted(zip(firsts_of(words), rows, strict=True))]
    report = at_intervals(progress)
    learned = learn(
        dict(rows),
        spec.merges,
        spec.ties,
        lambda number, *rest: report("merges", number, spec.merges),
        min_frequency=spec.min_frequency,
        max_length=spec.max_length,
        forbidden=frozenset(spec.forbidden),
        begun=spec.begun,
    )
    ids: Sequence[int] = [spec.byte_order.index(byte) for byte in range(256)]
    if spec.begun:
        ids = range(256)  # the numbers of the older model's symbols are ids
        total = sum(count * len(word) for word, (_, count) in zip(spec.begun.words(), rows, strict=True))
    return Learned(
        merges=tuple(learned.pieces),
        frequencies=array("Q", learned.counts),
        symbols=array("Q", accumulate(map(int.__neg__, learned.shortened), initial=total)),
        lefts=array("Q", (ids[left] if left < 256 else left for left, _ in learned.pairs)),
        rights=array("Q", (ids[right] if right < 256 else right for _, right in learned.pairs)),
    )
