"""The reference engine of byte-level training: the book in `byte_level/`, with the interface of the engines.

`cpbpe.engine.byte_training` describes the methods. Texts are bytes; what is not valid UTF-8 counts as U+FFFD.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Sequence

from cpbpe.reference.byte_level.patterns import compiled, parts
from cpbpe.reference.byte_level.training import Limits, learn
from cpbpe.reference.training import pack, unpack
from cpbpe.reference.training_values import (
    ByteCountSpec,
    ByteLearned,
    ByteLearnSpec,
    ByteTallies,
    Progress,
    Words,
)
from cpbpe.text.byte_letters import BYTE_ORDER


class ReferenceByteCounter:
    """Counts the chunks of texts."""

    def __init__(self, spec: ByteCountSpec):
        self._spec = spec
        if spec.pattern:
            compiled(spec.pattern)  # raises an error if it is none
        self._words: dict[bytes, int] = {}
        self._firsts: dict[bytes, int] = {}  # a number that rises with the text
        self._seen = 0
        self._texts = self._bytes = self._empty = self._broken = 0
        self._parts: list[bytes] | None = None  # of the text that has begun

    def add(self, texts: Sequence[bytes], counts: Sequence[int] | None = None, threads: int = 1) -> None:
        """Count texts, each once or `counts` times."""
        for text, count in zip(texts, counts or [1] * len(texts), strict=True):
            self._texts += 1
            self._bytes += len(text)
            self._empty += not text
            decoded = text.decode(errors="replace")
            self._broken += decoded.encode() != text
            cut = parts(self._spec.pattern, decoded) if self._spec.pattern else iter([decoded])
            for chunk in filter(None, cut):
                word = chunk.encode()
                self._words[word] = self._words.get(word, 0) + count
                self._firsts.setdefault(word, self._seen)
                self._seen += 1

    def add_lines(self, data: bytes, threads: int = 1) -> None:
        """Count lines, each with its newline."""
        self.add(re.findall(rb"[^\n]*\n|[^\n]+", data))

    def add_part(self, data: bytes, threads: int = 1) -> None:
        """Keep the next part of a text."""
        self._parts = [*(self._parts or []), data]

    def end_text(self, threads: int = 1) -> None:
        """Count the text whose parts were given."""
        if self._parts is not None:
            text, self._parts = b"".join(self._parts), None
            self.add([text])
            self._empty -= not text

    def tallies(self) -> ByteTallies:
        """What was seen."""
        return ByteTallies(self._texts, self._bytes, self._empty, self._broken)

    def distinct(self) -> int:
        """How many different words there are."""
        return len(self._words)

    def memory(self) -> int:
        """About how many bytes the words take."""
        return 250 * len(self._words)

    def drain(self) -> Words:
        """Return all words and forget them."""
        counted = pack(self._words)
        firsts = [self._firsts[word] for word in sorted(self._words)] if self._spec.ordered else []
        self._words, self._firsts = {}, {}
        return Words(counted.blob, counted.ends, counted.counts, _column(firsts))


def merge_ordered_words(parts: Sequence[Words]) -> Words:
    """Merge several lists of words: counts are added up, and the earliest place of each word stays."""
    counts: dict[bytes, int] = {}
    firsts: dict[bytes, int] = {}
    for part in parts:
        places = [first for (first,) in struct.iter_unpack("<Q", part.firsts)]
        for (word, count), first in zip(unpack(part), places, strict=True):
            counts[word] = counts.get(word, 0) + count
            firsts[word] = min(first, firsts.get(word, first))
    merged = pack(counts)
    return Words(merged.blob, merged.ends, merged.counts, _column([firsts[word] for word in sorted(firsts)]))


def learn_bytes(words: Words, spec: ByteLearnSpec, progress: Progress | None = None) -> ByteLearned:
    """Learn merges from words. The book numbers bytes by their values; here `byte_order` says their ids."""
    if spec.ties == "tokenizers" and spec.byte_order != bytes(BYTE_ORDER):
        raise ValueError('ties="tokenizers" is defined for bytes in the order of GPT-2')
    # 1. The words, in the order of their first appearance if that counts.
    rows = list(unpack(words))
    total = sum(len(word) * count for word, count in rows)
    if total >= 1 << 63:
        raise OverflowError("the bytes of text, repetitions included, are 2**63 or more")
    if spec.ties == "minbpe":
        places = [first for (first,) in struct.iter_unpack("<Q", words.firsts)]
        rows = [row for _, row in sorted(zip(places, rows, strict=True))]

    # 2. Learn.
    def step(number: int, *rest: object) -> None:
        if progress is not None and number % 64 == 0:
            progress("merges", number, spec.merges)

    limits = Limits(spec.min_frequency, spec.max_length, frozenset(spec.forbidden))
    learned = learn(dict(rows), spec.merges, spec.ties, step, limits)
    # 3. Renumber the bytes.
    order = [spec.byte_order.index(byte) for byte in range(256)]
    symbols = [total]
    for shorter in learned.shortened:
        symbols.append(symbols[-1] - shorter)
    return ByteLearned(
        lefts=array("Q", (order[left] if left < 256 else left for left, _ in learned.pairs)),
        rights=array("Q", (order[right] if right < 256 else right for _, right in learned.pairs)),
        pieces=tuple(learned.pieces),
        frequencies=array("Q", learned.counts),
        symbols=array("Q", symbols),
    )


def _column(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)
