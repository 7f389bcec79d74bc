"""The second and the fourth exercise: a pattern that cuts the text first, and special tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from cpbpe.compat.minbpe.base import Tokenizer, apply_merges, joined_text
from cpbpe.compat.minbpe.files import LectureError
from cpbpe.compat.minbpe.training import learn_merges
from cpbpe.model.formats.minbpe import vocab_of
from cpbpe.reference.byte_level.patterns import compiled

GPT2_SPLIT_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4_SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
"""The two patterns as minbpe spells
them: they are a line of its `.model` files."""


class RegexTokenizer(Tokenizer):
    """Merges only within the chunks that a pattern finds. Without `pattern`, it is GPT-4's.

    >>> tokenizer = RegexTokenizer()
    >>> tokenizer.train("the cat sat on the mat", 256 + 3)
    >>> [tokenizer.vocab[idx] for idx in (256, 257, 258)]
    [b'at', b'th', b'the']
    >>> tokenizer.register_special_tokens({"<|end|>": 259})
    >>> tokenizer.encode("that<|end|>", allowed_special="all")
    [257, 256, 259]
    """

    def __init__(self, pattern: str | None = None):
        super().__init__()
        self.pattern = GPT4_SPLIT_PATTERN if pattern is None else pattern

    @property
    def compiled_pattern(self) -> Any:
        """The pattern as an object of the package regex."""
        return compiled(self.pattern)

    def train(self, text: str, vocab_size: int, verbose: bool = False) -> None:
        """Learn `vocab_size` - 256 merges from a text."""
        self.merges = learn_merges(text, self.pattern, vocab_size, verbose)
        self.vocab = vocab_of(self.merges)

    def register_special_tokens(self, special_tokens: dict[str, int]) -> None:
        """Set the special tokens and their ids."""
        self.special_tokens = special_tokens
        self.inverse_special_tokens = {idx: token for token, idx in special_tokens.items()}

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which special tokens are text like any other."""
        ids = self._fast.encode(text, self.pattern, self.merges)
        if ids is not None:
            return ids
        chunks = (match.group() for match in self.compiled_pattern.finditer(text))
        return [idx for chunk in chunks for idx in self._encode_chunk(chunk.encode())]

    def _encode_chunk(self, text_bytes: bytes) -> list[int]:
        return apply_merges(text_bytes, self.merges)

    def encode(self, text: str, allowed_special: str | Collection[str] = "none_raise") -> list[int]:
        """The ids of a text.

        `allowed_special` says which special tokens in the text become their ids: "all", "none", or a set of
        them; the others are text. The default, "none_raise", is an error if the text has one.
        """
        special = self._allowed(text, allowed_special)
        if not special:
            return self.encode_ordinary(text)
        ids: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, special))})", text):
            ids += [special[part]] if part in special else self.encode_ordinary(part)
        return ids

    def _allowed(self, text: str, allowed: str | Collection[str]) -> dict[str, int]:
        if allowed == "all":
            return self.special_tokens
        if allowed in ("none", "none_raise"):
            found = [token for token in self.special_tokens if token in text]
            if found and allowed == "none_raise":
                raise LectureError(
                    f"the text has the special token {found[0]!r}; pass allowed_special='all' to encode it "
                    f"as the token, or allowed_special='none' as plain text"
                )
            return {}
        if isinstance(allowed, str) or not isinstance(allowed, Collection):
            raise ValueError(
                f"allowed_special={allowed!r} is neither 'all', 'none' or 'none_raise' nor a set of tokens"
            )
        return {token: idx for token, idx in self.special_tokens.items() if token in allowed}

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that belong to no character become U+FFFD."""
        special = {idx: token.encode() for idx, token in self.inverse_special_tokens.items()}
        return joined_text(self.vocab, ids, special).decode(errors="replace")
