"""The third exercise: GPT-4's own merges, recovered from the ranks that OpenAI has published."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cpbpe.compat.minbpe.base import joined_text
from cpbpe.compat.minbpe.engine import FastEncoder
from cpbpe.compat.minbpe.files import write
from cpbpe.compat.minbpe.regex import GPT4_SPLIT_PATTERN, RegexTokenizer
from cpbpe.lazy import imported
from cpbpe.model.formats.minbpe import BYTES, Pair, vocab_lines
from cpbpe.reference.byte_level import encoding as ranks_of

GPT4_SPECIAL_TOKENS = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}


def recover_merges(mergeable_ranks: Mapping[bytes, int]) -> dict[Pair, int]:
    """The pairs of ids that make the pieces of a table of ranks, each with the rank of the piece.

    >>> recover_merges({**{bytes([byte]): byte for byte in range(256)}, b"ab": 256, b"abab": 257})
    {(97, 98): 256, (256, 256): 257}
    """
    merges, added = ranks_of.recover_merges(mergeable_ranks)
    if added:
        raise ValueError(
            f"{len(added)} pieces are not made of two others, for example {added[0]!r}; "
            f"cpbpe.reference.byte_level.ByteLevel takes such a table of ranks as it is"
        )
    return {(mergeable_ranks[left], mergeable_ranks[right]): rank for (left, right), rank in merges.items()}


def _published_ranks() -> dict[bytes, int]:
    """GPT-4's ranks from where tiktoken keeps them. Nothing is downloaded."""
    try:
        gpt4: dict[str, Any] = imported("cpbpe.compat.tiktoken.openai_public").cl100k_base()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; or pass its path: GPT4Tokenizer(path)") from None
    ranks: dict[bytes, int] = gpt4["mergeable_ranks"]
    return ranks


class GPT4Tokenizer(RegexTokenizer):
    """GPT-4's tokenizer. Its ids are those of tiktoken's `cl100k_base`.

    The ranks are read from a `.tiktoken` file, or from where tiktoken keeps the ones that it has downloaded.
    Recovering the merges takes a few seconds.

    In GPT-4's vocabulary the bytes have other ids than their own values. minbpe therefore permutes the
    bytes of a text before they are merged (`byte_shuffle`), and those of `vocab` are permuted, too.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        super().__init__(GPT4_SPLIT_PATTERN)
        ranks = _published_ranks() if path is None else ranks_of.read_ranks(Path(path).read_bytes())
        self.byte_shuffle = {byte: ranks[bytes([byte])] for byte in range(BYTES)}
        """The id of each byte."""
        self.inverse_byte_shuffle = {idx: byte for byte, idx in self.byte_shuffle.items()}
        """The byte of each of these ids."""
        self.merges = recover_merges(ranks)
        self.vocab = self._build_vocab()
        self.register_special_tokens(GPT4_SPECIAL_TOKENS)
        self._to_ids = bytes(self.byte_shuffle[byte] for byte in range(BYTES))
        self._to_bytes = bytes(self.inverse_byte_shuffle[idx] for idx in range(BYTES))
        self._fast = FastEncoder(self._to_bytes)

    def _encode_chunk(self, text_bytes: bytes) -> list[int]:
        return super()._encode_chunk(text_bytes.translate(self._to_ids))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that belong to no character become U+FFFD."""
        special = {
            idx: token.encode().translate(self._to_ids) for idx, token in self.inverse_special_tokens.items()
        }
        if any(map(self.vocab.__contains__, special)):
            return self._shown(joined_text({**self.vocab, **special}, ids))
        return self._shown(joined_text(self.vocab, ids, special))

    def _shown(self, shuffled: bytes) -> str:
        return shuffled.translate(self._to_bytes).decode(errors="replace")

    def train(self, text: str, vocab_size: int, verbose: bool = False) -> None:
        """Refused: this tokenizer is GPT-4's."""
        raise NotImplementedError(
            "GPT4Tokenizer is GPT-4's and is not trained; RegexTokenizer().train(...) is"
        )

    def save(self, file_prefix: str | os.PathLike[str]) -> None:
        """Refused: a `.model` file does not hold the ids of the bytes."""
        raise NotImplementedError(
            "GPT4Tokenizer cannot be saved: minbpe's .model files do not hold the ids of the bytes"
        )

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Refused: this tokenizer is GPT-4's."""
        raise NotImplementedError(
            "GPT4Tokenizer is GPT-4's and loads no files; RegexTokenizer().load(...) does"
        )

    def save_vocab(self, vocab_file: str | os.PathLike[str]) -> None:
        """Write the pieces as `.vocab` files show them."""
        vocab = {idx: piece.translate(self._to_bytes) for idx, piece in self.vocab.items()}
        write(os.fspath(vocab_file), vocab_lines(vocab, self.merges))
