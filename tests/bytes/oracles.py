"""Training and encoding as minbpe does them, in the plainest form: everything is counted anew after every
merge.

This is the published algorithm: pairs are counted wherever they are, overlapping ones too; the most
frequent one is merged, of several the one that was met first; occurrences are replaced from left to right.
Encoding merges the pair with the lowest id everywhere, until none is left.
"""

from collections.abc import Mapping, Sequence

Pair = tuple[int, int]


def counted(texts: Sequence[Sequence[int]]) -> dict[Pair, int]:
    counts: dict[Pair, int] = {}
    for ids in texts:
        for at in range(len(ids) - 1):
            pair = ids[at], ids[at + 1]
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def replaced(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    result: list[int] = []
    at = 0
    while at < len(ids):
        if at + 1 < len(ids) and (ids[at], ids[at + 1]) == pair:
            result.append(new)
            at += 2
        else:
            result.append(ids[at])
            at += 1
    return result


def train(chunks: Sequence[bytes], merges: int) -> list[tuple[Pair, int]]:
    """The pairs that are merged, and how often each occurred."""
    texts = [list(chunk) for chunk in chunks]
    learned: list[tuple[Pair, int]] = []
    for new in range(256, 256 + merges):
        counts = counted(texts)
        if not counts:
            break
        most = max(counts.values())
        pair = next(pair for pair in counts if counts[pair] == most)
        learned.append((pair, most))
        texts = [replaced(ids, pair, new) for ids in texts]
    return learned


def encode(chunk: bytes | Sequence[int], merges: Mapping[Pair, int]) -> list[int]:
    ids = list(chunk)
    while pairs := [pair for pair in counted([ids]) if pair in merges]:
        lowest = min(merges[pair] for pair in pairs)
        pair = next(pair for pair in pairs if merges[pair] == lowest)
        ids = replaced(ids, pair, lowest)
    return ids
