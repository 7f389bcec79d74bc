"""The first exercise of the lecture: byte pair encoding of whole texts, without a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpbpe.compat.minbpe.base import Tokenizer, apply_merges, joined_text
from cpbpe.compat.minbpe.files import LectureError
from cpbpe.model.formats.minbpe import BYTES, Pair, vocab_of
from cpbpe.reference.byte_level.training import count_chunks, learn


def learn_merges(chunks: Mapping[bytes, int], vocab_size: int, verbose: bool) -> dict[Pair, int]:
    """The merges that minbpe learns from counted chunks; printed one by one, if `verbose`."""
    if vocab_size < BYTES:
        raise LectureError(f"vocab_size={vocab_size} is too small: the 256 bytes are pieces, so at least 256")
    wanted = vocab_size - BYTES

    def show(number: int, pair: Pair, piece: bytes, count: int) -> None:
        idx = BYTES + number - 1
        print(f"merge {number}/{wanted}: {pair} -> {idx} ({piece!r}) had {count} occurrences")

    learned = learn(chunks, wanted, "minbpe", show if verbose else None)
    if len(learned.pairs) < wanted:
        raise ValueError(
            f"after {len(learned.pairs)} merges no pair is left in the text; give train() more text, or "
            f"at most vocab_size={BYTES + len(learned.pairs)}"
        )
    return {pair: idx for idx, pair in enumerate(learned.pairs, BYTES)}


class BasicTokenizer(Tokenizer):
    """Merges bytes wherever they are: "dog." and "dog!" may become pieces of their own.

    >>> tokenizer = BasicTokenizer()
    >>> tokenizer.train("aaabdaaabac", 256 + 3)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100, 258, 97, 99])
    'aaabdaaabac'
    """

    def train(self, text: str, vocab_size: int, verbose: bool = False) -> None:
        """Learn `vocab_size` - 256 merges from a text."""
        self.merges = learn_merges(count_chunks([text], None), vocab_size, verbose)
        self.vocab = vocab_of(self.merges)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        ids = self._fast.encode(text, "", self.merges)
        return apply_merges(text.encode(), self.merges) if ids is None else ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that belong to no character become U+FFFD."""
        return joined_text(self.vocab, ids).decode(errors="replace")
