"""The tokenizers of the lecture: their tables, their files, and the helpers of its code."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from cpbpe.compat.minbpe.engine import FastEncoder, learn_merges
from cpbpe.lazy import importing
from cpbpe.model.formats.minbpe import (
    BYTES,
    VERSION,
    Model,
    Pair,
    model_lines,
    parsed,
    vocab_lines,
    vocab_of,
)
from cpbpe.model.writing import write_all
from cpbpe.reference import merging as reference
from cpbpe.reference.byte_level import encoding as byte_level
from cpbpe.reference.byte_level.patterns import compiled

GPT2_SPLIT_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4_SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
"""The two patterns as minbpe spells them: they are a line of its `.model` files."""
GPT4_SPECIAL_TOKENS = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}


class LectureError(AssertionError, ValueError):
    """A wrong argument or file, for which minbpe raises AssertionError."""


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
    """The ids with each occurrence of the pair replaced by `idx`, from left to right.

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
    """The ids after all merges.

    minbpe takes the pair whose merge has the lowest id, replaces it everywhere, and starts again. The
    reference's `merge` makes the same merges in less time, unless an id is not higher than the ids of its
    pair, or two pairs have the same id. Training makes no such merges, but `merges` can be set to anything.

    >>> apply_merges(list(b"abab"), {(97, 98): 256, (256, 256): 257})
    [257]
    >>> apply_merges(list(b"abab"), {(97, 98): 300, (300, 97): 299})
    [300, 300]
    """
    made: dict[int, Pair] = {}

    def joined(left: int, right: int) -> tuple[int, int] | None:
        idx = merges.get((left, right))
        if idx is None:
            return None
        if idx <= left or idx <= right or made.setdefault(idx, (left, right)) != (left, right):
            raise _OrderMayDifferError
        return idx, idx

    try:
        return reference.merge(ids, joined)
    except _OrderMayDifferError:
        pass
    now = list(ids)
    while True:
        pair = min(get_stats(now), key=lambda pair: merges.get(pair, inf), default=None)
        if pair is None or pair not in merges:
            return now
        now = merge(now, pair, merges[pair])


class _OrderMayDifferError(Exception):
    """The reference may make these merges in another order than minbpe."""


def joined_text(
    vocab: Mapping[int, bytes], ids: Iterable[int], more: Mapping[int, bytes] | None = None
) -> bytes:
    """The bytes that ids stand for; `more` has the bytes of ids that are not in the vocabulary."""
    ids = list(ids)
    try:
        return b"".join([vocab[idx] for idx in ids])
    except KeyError as error:
        if more:
            return joined_text({**more, **vocab}, ids)
        raise ValueError(f"{error.args[0]!r} is no id of this vocabulary, which has {len(vocab)}") from None


def recover_merges(mergeable_ranks: Mapping[bytes, int]) -> dict[Pair, int]:
    """The pairs of ids that make the pieces of a table of ranks, each with the rank of the piece.

    >>> recover_merges({**{bytes([byte]): byte for byte in range(256)}, b"ab": 256, b"abab": 257})
    {(97, 98): 256, (256, 256): 257}
    """
    merges, added = byte_level.recover_merges(mergeable_ranks)
    if added:
        raise ValueError(
            f"{len(added)} pieces are not made of two others, for example {added[0]!r}; "
            f"cpbpe.reference.byte_level.ByteLevel takes such a table of ranks as it is"
        )
    return {(mergeable_ranks[left], mergeable_ranks[right]): rank for (left, right), rank in merges.items()}


def _write(files: Mapping[str, Iterable[str]]) -> None:
    """Write files of lines in UTF-8."""
    write_all({path: "".join(f"{line}\n" for line in lines).encode() for path, lines in files.items()})


# --- The tokenizers -------------------------------------------------------------------------------


class Tokenizer:
    """The tables of a tokenizer, and its files. `BasicTokenizer` and `RegexTokenizer` extend it."""

    def __init__(self) -> None:
        self.merges: dict[Pair, int] = {}
        """The pairs that were merged, in order, with the ids that they became."""
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

    def _learn(self, text: str, pattern: str | None, vocab_size: int, verbose: bool) -> None:
        if vocab_size < BYTES:
            raise LectureError(
                f"vocab_size={vocab_size} is too small: the 256 bytes are pieces, so at least 256"
            )
        self.merges = learn_merges(text, pattern, vocab_size, verbose)
        self.vocab = vocab_of(self.merges)

    def save(self, file_prefix: str | os.PathLike[str]) -> None:
        """Write PREFIX.model, which `load` reads, and PREFIX.vocab, which shows how each piece was made.

        What a `.model` file cannot hold is refused before anything is written.
        """
        lines = model_lines(Model(self.pattern, self.special_tokens, self.merges))
        prefix = os.fspath(file_prefix)
        _write({f"{prefix}.model": lines, f"{prefix}.vocab": vocab_lines(self.vocab, self.merges)})

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Read what `save` has written: the file that ends in `.model`."""
        path = os.fspath(model_file)
        if not path.endswith(".model"):
            raise LectureError(f"load() reads the file that ends in .model, and {path!r} does not")
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError as error:
            raise LectureError(
                f"{path!r} is not a file that minbpe has saved: it is not UTF-8 ({error})"
            ) from None
        first = text.partition("\n")[0]
        if first.strip() != VERSION:
            raise LectureError(f"{path!r} does not begin with the line {VERSION!r}, but with {first[:40]!r}")
        self.pattern, self.special_tokens, self.merges = parsed(text, repr(path))
        self.inverse_special_tokens = {idx: token for token, idx in self.special_tokens.items()}
        self.vocab = self._build_vocab()


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
        self._learn(text, None, vocab_size, verbose)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        ids = self._fast.encode(text, "", self.merges)
        return apply_merges(text.encode(), self.merges) if ids is None else ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that belong to no character become U+FFFD."""
        return joined_text(self.vocab, ids).decode(errors="replace")


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
        self._learn(text, self.pattern, vocab_size, verbose)

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


class GPT4Tokenizer(RegexTokenizer):
    """GPT-4's tokenizer. Its ids are those of tiktoken's `cl100k_base`.

    The ranks are read from a `.tiktoken` file, or from where tiktoken keeps the ones that it has downloaded.
    Recovering the merges takes a few seconds.

    In GPT-4's vocabulary the bytes have other ids than their own values. minbpe therefore permutes the
    bytes of a text before they are merged (`byte_shuffle`), and those of `vocab` are permuted, too.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        super().__init__(GPT4_SPLIT_PATTERN)
        ranks = _published_ranks() if path is None else byte_level.read_ranks(Path(path).read_bytes())
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
        _write({os.fspath(vocab_file): vocab_lines(vocab, self.merges)})


def _published_ranks() -> dict[bytes, int]:
    """GPT-4's ranks from where tiktoken keeps them. Nothing is downloaded."""
    with importing:
        from cpbpe.compat.tiktoken.openai_public import cl100k_base
    try:
        ranks: dict[bytes, int] = cl100k_base()["mergeable_ranks"]
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; or pass its path: GPT4Tokenizer(path)") from None
    return ranks
