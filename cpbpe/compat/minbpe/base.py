"""What the tokenizers of the lecture share: their tables, and the helpers of its code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from cpbpe.compat.minbpe import files
from cpbpe.compat.minbpe.engine import FastEncoder
from cpbpe.model.formats.minbpe import Model, Pair, model_lines, vocab_lines, vocab_of

# --- Helpers --------------------------------------------------------------------------------------


def get_stats(ids: Sequence[int], counts: dict[Pair, int] | None = None) -> dict[Pair, int]:
    """How often each pair of neighbours occurs; added to `counts` if it is given.

    >>> get_stats([1, 2, 3, 1, 2])
    {(1, 2): 2, (2, 3): 1, (3, 1): 1}
    """
    counts = {} if counts is None else counts
    for pair in pairwise(ids):
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def merge(ids: Sequence[int], pair: Pair, idx: int) -> list[int]:
    """The ids, in which `idx` stands for each pair, from left to right.

    >>> merge([1, 2, 3, 1, 2], (1, 2), 4), merge([1, 1, 1], (1, 1), 2)
    ([4, 3, 4], [2, 1])
    """
    merged: list[int] = []
    at = 0
    while at < len(ids):
        found = tuple(ids[at : at + 2]) == tuple(pair)
        merged.append(idx if found else ids[at])
        at += 2 if found else 1
    return merged


def apply_merges(ids: Sequence[int], merges: Mapping[Pair, int]) -> list[int]:
    """The ids after all merges, as minbpe makes them, but without going through all pairs after each one.

    minbpe takes the pair whose merge has the lowest id, replaces it everywhere, and begins anew. The heap
    has the same pairs in the same order: all places of one pair are merged, from left to right, before any
    new pair is looked at. (Merges that training has made never give a new pair a lower id, so there it
    would not matter; but `merges` can be set to anything.)

    >>> apply_merges(list(b"abab"), {(97, 98): 300, (300, 97): 299})
    [300, 300]
    """
    now = list(ids)
    gone = [False] * len(now)
    before = list(range(-1, len(now) - 1))
    after = [*range(1, len(now)), -1]
    heap: list[tuple[int, int, Pair]] = []

    def consider(left: int) -> None:
        if left >= 0 and after[left] >= 0:
            pair = now[left], now[after[left]]
            if pair in merges:
                heappush(heap, (merges[pair], left, pair))

    for left in range(len(now)):
        consider(left)
    while heap:
        idx = heap[0][0]
        chosen: Pair | None = None
        merged: list[int] = []
        others: list[tuple[int, int, Pair]] = []  # of another pair with the same id
        while heap and heap[0][0] == idx:
            _, left, pair = entry = heappop(heap)
            right = after[left]
            if gone[left] or right < 0 or (now[left], now[right]) != pair:
                continue
            chosen = chosen or pair
            if pair != chosen:
                others.append(entry)
                continue
            now[left] = idx
            gone[right] = True
            after[left] = after[right]
            if after[left] >= 0:
                before[after[left]] = left
            merged.append(left)
        for entry in others:
            heappush(heap, entry)
        for left in merged:
            consider(before[left])
            consider(left)
    return [id for place, id in enumerate(now) if not gone[place]]


def joined_text(
    vocab: Mapping[int, bytes], ids: Iterable[int], more: Mapping[int, bytes] | None = None
) -> bytes:
    """The bytes that ids stand for; `more` has ids that the vocabulary may not have."""
    ids = list(ids)
    try:
        return b"".join([vocab[idx] for idx in ids])
    except KeyError as error:
        if more:
            return joined_text({**more, **vocab}, ids)
        raise ValueError(f"{error.args[0]!r} is no id of this vocabulary, which has {len(vocab)}") from None


# --- The class that the others extend -------------------------------------------------------------


class Tokenizer:
    """The tables of a tokenizer, and its files. `BasicTokenizer` and `RegexTokenizer` extend it."""

    def __init__(self) -> None:
        self.merges: dict[Pair, int] = {}
        """The pairs that were merged, in order, each with the id of the result."""
        self.pattern = ""
        """The pattern that cuts texts; the empty one leaves them whole."""
        self.special_tokens: dict[str, int] = {}
        """The ids of special tokens."""
        self.inverse_special_tokens: dict[int, str] = {}
        """The special tokens by id."""
        self.vocab: dict[int, bytes] = self._build_vocab()
        """The bytes of each id."""
        self._fast = FastEncoder()

    def train(self, text: str, vocab_size: int, verbose: bool = False) -> None:
        """Learn `vocab_size` - 256 merges from a text."""
        raise NotImplementedError(f"{type(self).__name__} cannot be trained; BasicTokenizer can")

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        raise NotImplementedError(f"{type(self).__name__} cannot encode; BasicTokenizer can")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        raise NotImplementedError(f"{type(self).__name__} cannot decode; BasicTokenizer can")

    def _build_vocab(self) -> dict[int, bytes]:
        return vocab_of(self.merges, self.special_tokens)

    def save(self, file_prefix: str | os.PathLike[str]) -> None:
        """Write PREFIX.model, which `load` reads, and PREFIX.vocab, which shows how each piece was made.

        What a `.model` file cannot hold is refused before anything is written.
        """
        lines = model_lines(Model(self.pattern, self.special_tokens, self.merges))
        prefix = os.fspath(file_prefix)
        files.write(f"{prefix}.model", lines)
        files.write(f"{prefix}.vocab", vocab_lines(self.vocab, self.merges))

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Read what `save` has written: the file that ends in `.model`."""
        self.pattern, self.special_tokens, self.merges = files.read(os.fspath(model_file))
        self.inverse_special_tokens = {idx: token for token, idx in self.special_tokens.items()}
        self.vocab = self._build_vocab()
