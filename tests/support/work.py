"""What processes do for tests/encode/test_workers.py. They import this module, so it imports little."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cpbpe

Result = tuple[list[list[int]], list[str], str]

_tokenizer: cpbpe.Tokenizer


def start(tokenizer: cpbpe.Tokenizer) -> None:
    """Called once in each process of a pool."""
    global _tokenizer
    _tokenizer = tokenizer


def work(texts: list[str]) -> Result:
    return work_with(_tokenizer, texts)


def work_with(tokenizer: cpbpe.Tokenizer, texts: list[str]) -> Result:
    """Every kind of use, with threads inside."""
    ids = tokenizer.encode_batch(texts, threads=3)
    assert ids == [tokenizer.encode(text) for text in texts]
    assert [row.tolist() for row in tokenizer.encode_arrays(texts, threads=2)] == ids
    assert tokenizer.encode("</s>", allowed_special="all") == [tokenizer.eos_id]
    return ids, tokenizer.decode_batch(ids, threads=2), tokenizer.fingerprint


class Texts:
    """A dataset as a DataLoader takes it, that holds a tokenizer."""

    def __init__(self, tokenizer: cpbpe.Tokenizer, texts: list[str]):
        self.tokenizer = tokenizer
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, i: int) -> list[int]:
        return self.tokenizer.encode(self.texts[i])


class Collate:
    """Makes a padded tensor of texts, in the worker."""

    def __init__(self, tokenizer: cpbpe.Tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, texts: list[str]) -> Any:
        import torch

        rows = self.tokenizer.encode_arrays(texts, threads=2)
        return torch.from_numpy(rows.padded(pad_id=0).astype("int64"))


def as_list(rows: Iterable[Any]) -> Any:
    """A collate function that leaves everything as it is."""
    return list(rows)
