"""The first exercise of the lecture: byte pair encoding of whole texts, without a pattern."""

from __future__ import annotations

from collections.abc import Iterable

from cpbpe.compat.minbpe.base import Tokenizer, apply_merges, joined_text
from cpbpe.compat.minbpe.training import learn_merges
from cpbpe.model.formats.minbpe import vocab_of


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
        self.merges = learn_merges(text, None, vocab_size, verbose)
        self.vocab = vocab_of(self.merges)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        ids = self._fast.encode(text, "", self.merges)
        return apply_merges(text.encode(), self.merges) if ids is None else ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that belong to no character become U+FFFD."""
        return joined_text(self.vocab, ids).decode(errors="replace")
