"""Tokenizers of the zoo's models on either engine, made once and kept."""

import os
from collections.abc import Sequence
from functools import cache
from unittest import mock

from cpbpe import Tokenizer
from tests.conftest import ENGINES
from tests.support import zoo


def make(data: bytes, engine: str, added: Sequence[str] = ()) -> Tokenizer:
    """A tokenizer that runs on an engine, with those of the tokens that its model lacks added."""
    with mock.patch.dict(os.environ, {"CPBPE_ENGINE": engine}):
        tok = Tokenizer.from_bytes(data)
        missing = [text for text in added if tok.piece_to_id(text) is None]
        return tok.with_special_tokens(missing) if missing else tok


@cache
def tokenizer(name: str, engine: str, added: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer of a model of the zoo."""
    return make(zoo.model(name), engine, added)


@cache
def pieces_of(name: str) -> list[str]:
    """All pieces of a model of the zoo."""
    tok = tokenizer(name, ENGINES[0])
    return [tok.id_to_piece(id) for id in range(len(tok))]


def with_gaps(data: bytes, engine: str) -> Tokenizer:
    """A tokenizer with three added tokens, and two ids between them that are not in use."""
    tok = make(data, engine)
    size = len(tok)
    return tok.with_special_tokens({"<|a|>": size, "▁<é>": size + 3, "<|c|>": size + 4})
