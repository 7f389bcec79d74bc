"""Small models with awkward settings: every piece, every pair and many triples of pieces are encoded.

What is called unreachable must not come out of any of them; what does come out must be called reachable; and
every witness yields its piece. With a larger budget (`CPBPE_EXAMPLES`), the core is given all triples.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest

import cpbpe
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType
from tests.bytes import models as byte_models
from tests.conftest import ENGINES
from tests.lint.search import Search
from tests.support import corpus, tiers
from tests.support.budget import MUCH, SEED, examples

USER_DEFINED = ["ab", "abc", "bca", "the", "e t", "<x>", "\u2581\u2581"]
TRAINED: dict[str, dict[str, Any]] = {
    "plain": {},
    "rules": {"normalization_rule_name": "nmt_nfkc_cf", "remove_extra_whitespaces": True},
    "user-defined": {"user_defined_symbols": USER_DEFINED},
    "suffix": {"treat_whitespace_as_suffix": True, "user_defined_symbols": USER_DEFINED},
    "across spaces": {"split_by_whitespace": False, "add_dummy_prefix": False},
    "spaces as pieces": {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False},
    "equal scores": {},
    "unused": {"user_defined_symbols": USER_DEFINED},
}
WORDS = [
    "the cat",
    "abc abca bcab",
    "tea  at  the",
    "a\u00e9\uff41 bee",
    "ab cab cabbage",
    "bet beta abet",
    "Tab Cat",
]
ALL_TRIPLES = 90
"""The most pieces of which all triples are tried: 700,000 texts."""


def small(name: str) -> ModelSpec:
    """A model of a few dozen pieces, with some that training would not have made."""
    rng = random.Random(SEED)
    texts = [" ".join(rng.choices(WORDS, k=3)) for _ in range(200)]
    options = {"preset": "sentencepiece", "vocab_size": 68, "hard_vocab_limit": False, **TRAINED[name]}
    spec: ModelSpec = cpbpe.train(texts, **options).tokenizer.spec
    pieces = list(spec.pieces)
    normal = [piece.text for piece in pieces if piece.type is PieceType.NORMAL]
    lowest = min(piece.score for piece in pieces)
    for text in sorted({b"".join(rng.choices(normal, k=rng.randint(2, 3))) for _ in range(20)} - {*normal}):
        if text not in {piece.text for piece in pieces}:
            pieces.append(Piece(text, rng.uniform(lowest, 0), PieceType.NORMAL))
    change = CHANGES.get(name)
    if change is not None:
        pieces = [
            change(piece, rng) if piece.type is PieceType.NORMAL and len(piece.text.decode()) > 1 else piece
            for piece in pieces
        ]
    return replace(spec, pieces=Pieces.of(pieces))


CHANGES: dict[str, Callable[[Piece, random.Random], Piece]] = {
    "equal scores": lambda piece, rng: piece._replace(score=-float(rng.randint(0, 3))),
    "unused": lambda piece, rng: piece._replace(
        type=PieceType.UNUSED if rng.random() < 0.4 else PieceType.NORMAL
    ),
}


def triples(search: Search, engine: str) -> Iterator[str]:
    """A ninth of them, with a larger budget all; fewer for the reference, and if there are very many."""
    pieces, rng = search.pieces, random.Random(SEED)
    if engine == "core" and len(pieces) <= ALL_TRIPLES:
        return islice(search.triples(), rng.randrange(9), None, 1 if MUCH else 9)
    return islice(("".join(rng.choices(pieces, k=3)) for _ in iter(int, 1)), examples(3000))


def pairs(search: Search, engine: str) -> Iterator[str]:
    """All of them, or a part if there are very many."""
    pieces, rng = search.pieces, random.Random(SEED)
    if len(pieces) <= ALL_TRIPLES:
        return map("".join, product(pieces, repeat=2))
    count = examples(4000) * (20 if engine == "core" else 1)
    return islice(("".join(rng.choices(pieces, k=2)) for _ in iter(int, 1)), count)


def check(tok: cpbpe.Tokenizer, engine: str) -> None:
    report, search = tok.lint(), Search(tok, SEED)
    if engine == "reference":
        search.separator = ""  # no text of half a million characters
    assert search.look("alone", search.alone(), 600)
    assert search.look("pairs", pairs(search, engine), 600)
    spaced = (text.replace("\u2581", " ") for text in pairs(search, engine))
    assert search.look("pairs with spaces", spaced, 600)
    assert search.look("triples", triples(search, engine), 600)
    assert search.look("prose", iter(corpus.lines(50)), 600)
    assert search.wrong(report) == []
    assert search.unwitnessed(report) == []
    # What was seen is called reachable, by a text; the rest of what is called reachable has one, too.
    seen = {id for id in report.reach.reasons if id < len(search.seen) and search.seen[id]}
    assert seen == set()
    assert set(report.reach.reasons).isdisjoint(report.reach.texts)
    assert len(report.reach.texts) > 20
    assert len(report.reach.reasons) > 5


@tiers.slow_reference
@pytest.mark.parametrize("name", tiers.some(TRAINED, ["plain", "user-defined"]))
def test_all_pairs_and_triples(name: str, engine: str) -> None:
    spec = small(name)
    assert len(spec.pieces) <= ALL_TRIPLES
    check(cpbpe.Tokenizer.from_spec(spec), engine)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
@pytest.mark.parametrize("engine", ENGINES if MUCH else ENGINES[:1], indirect=True)
def test_all_pairs_of_byte_level_models(pattern: str, engine: str) -> None:
    check(cpbpe.Tokenizer.from_spec(byte_models.model(pattern, pattern == "cl100k")), engine)
