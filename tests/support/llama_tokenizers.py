"""CpbpeTokenizer and transformers' own Llama tokenizer, made from the same models, and texts for both.

Before version 5 transformers has a Llama tokenizer that runs on sentencepiece. Version 5's merges in another
order, and can be compared on texts for which that makes no difference.
"""

import os
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaTokenizer, PreTrainedTokenizer

import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer
from tests.support import corpus, texts, zoo

LEGACY = pytest.mark.parametrize("legacy", [True, False])
V1 = zoo.REAL[0]
ON_SENTENCEPIECE = issubclass(LlamaTokenizer, PreTrainedTokenizer)
"""Whether transformers' own runs on sentencepiece."""


@cache
def _loaded(name: str, engine: str | None) -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def load(name: str = V1) -> cpbpe.Tokenizer:
    return _loaded(name, os.environ.get("CPBPE_ENGINE"))


def ours(name: str = V1, **options: Any) -> Any:
    return CpbpeTokenizer(load(name), **options)


def theirs(folder: Path, name: str = V1, **options: Any) -> Any:
    (folder / "tokenizer.model").write_bytes(zoo.model(name))
    return LlamaTokenizer.from_pretrained(folder, **{"add_bos_token": True, "legacy": True, **options})


EXTRA = ["<|x|>", "<|y|>", "[INST]"]
SPECIALS = ["<s>", "</s>", "<unk>", *EXTRA]
SEGMENTS = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")


def some_texts(tok: cpbpe.Tokenizer, count: int, seed: int) -> list[str]:
    pieces = [tok.id_to_piece(id) for id in range(3, len(tok))]
    pieces = [piece for piece in pieces if not piece.startswith("[control")]
    maker = texts.TextMaker(seed, pieces, list(corpus.lines())[:200])
    rng = random.Random(seed)
    maker.kinds += [lambda: rng.choice(SPECIALS), lambda: rng.choice(SPECIALS), lambda: " "]
    return [maker.text() for _ in range(count)]


def with_extra(tokenizer: Any) -> Any:
    tokenizer.add_special_tokens({"additional_special_tokens": EXTRA})
    return tokenizer


def spaced(text: str) -> bool:
    """Whether a segment of a text begins with a space, or has two in a row.

    transformers 5 puts no prefix before such a beginning, and merges spaces first, whose score is the lowest.
    """
    return bool(re.search("[ ▁]{2}", text)) or any(part[:1] in {" ", "▁"} for part in SEGMENTS.split(text))
