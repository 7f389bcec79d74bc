"""How many documents of a corpus have other tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cpbpe.differing.search import Pair
from cpbpe.differing.values import CorpusDifference
from cpbpe.lazy import numpy

_BLOCK = 4_000_000
_EXAMPLES = 5
_AROUND = 20


def corpus_difference(pair: Pair, texts: Iterable[str | bytes]) -> CorpusDifference:
    """Count the documents, those that differ, and all tokens."""
    documents = different = old = new = 0
    examples: list[str] = []
    for block in _blocks(texts):
        found = pair.differing(block)
        documents += len(block)
        different += int(found.sum())
        old += sum(pair.old.count_batch(block, threads=1))
        new += sum(pair.new.count_batch(block, threads=1))
        for place in numpy().flatnonzero(found)[: _EXAMPLES - len(examples)]:
            examples.append(_extract(pair, block[place]))
    return CorpusDifference(documents, different, old, new, tuple(examples))


def _blocks(texts: Iterable[str | bytes]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for given in texts:
        if not isinstance(given, (str, bytes)):
            raise TypeError(f"a text is a str or bytes, not {type(given).__name__}")
        text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        block.append(text)
        size += len(text)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _extract(pair: Pair, text: str) -> str:
    """The text around the first token that is not the same."""
    one, other = pair.old.align(text).offsets, pair.new.align(text).offsets
    place = next((a[0] for a, b in zip(one, other, strict=False) if a != b), 0)
    begin, end = max(place - _AROUND, 0), place + _AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
