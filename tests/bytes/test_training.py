"""Training learns the merges of minbpe, of tokenizers, and of tiktoken's code for teaching."""

import json
import random
from collections.abc import Iterator
from functools import cache

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tiktoken._educational import SimpleBytePairEncoding
from tokenizers import models, pre_tokenizers, trainers

from cpbpe.reference.byte_level import BYTE_ORDER, PATTERNS, ByteLevel, count_chunks, learn
from cpbpe.reference.byte_level.patterns import cut
from cpbpe.text.utf8 import from_letters
from tests.bytes import oracles
from tests.bytes.making import any_text
from tests.support import corpus
from tests.support.budget import SEED, examples, quick

ALPHABETS = ["ab", "aab ", "abc d", "the cat\n1é你", "a'sSt ſ"]
CHOSEN = [None, PATTERNS["gpt2"], PATTERNS["cl100k"], PATTERNS["o200k"]]


def corpora(count: int) -> Iterator[tuple[list[str], int]]:
    """Small corpora with many ties, and how much is learned from each."""
    rng = random.Random(SEED)
    for _ in range(count):
        letters = rng.choice(ALPHABETS)
        texts = ["".join(rng.choices(letters, k=rng.randint(0, 60))) for _ in range(rng.randint(1, 3))]
        yield texts, rng.randint(0, 30)


def chunks_of(texts: list[str], pattern: str | None) -> list[bytes]:
    return [
        chunk.encode() for text in texts for chunk in (cut(pattern, text) if pattern is not None else [text])
    ]


def trained_by_tokenizers(texts: list[str], merges: int) -> list[bytes]:
    tok = tokenizers.Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=alphabet, show_progress=False)
    tok.train_from_iterator(texts, trainer)
    return [from_letters("".join(pair)) for pair in json.loads(tok.to_str())["model"]["merges"]]


@pytest.mark.parametrize("pattern", CHOSEN, ids=["none", "gpt2", "cl100k", "o200k"])
def test_as_minbpe(pattern: str | None) -> None:
    for texts, merges in corpora(examples(250)):
        learned = learn(count_chunks(texts, pattern), merges)
        assert list(zip(learned.pairs, learned.counts, strict=True)) == oracles.train(
            chunks_of(texts, pattern), merges
        ), texts


@quick(2, 60)
@given(st.lists(any_text, max_size=3), st.sampled_from(CHOSEN), st.integers(0, 40))
def test_as_minbpe_on_any_texts(texts: list[str], pattern: str | None, merges: int) -> None:
    learned = learn(count_chunks(texts, pattern), merges)
    assert list(zip(learned.pairs, learned.counts, strict=True)) == oracles.train(
        chunks_of(texts, pattern), merges
    )


@cache
def lines() -> tuple[str, ...]:
    return tuple(corpus.lines(400))


def test_as_minbpe_on_a_corpus() -> None:
    texts = list(lines())
    learned = learn(count_chunks(texts, PATTERNS["cl100k"]), 40)
    assert learned.pairs == [pair for pair, _ in oracles.train(chunks_of(texts, PATTERNS["cl100k"]), 40)]


def test_as_tokenizers() -> None:
    for texts, merges in corpora(examples(250)):
        learned = learn(count_chunks(texts, PATTERNS["gpt2"]), merges, ties="tokenizers")
        assert learned.pieces == trained_by_tokenizers(texts, merges), texts


def test_as_tokenizers_on_a_corpus() -> None:
    texts = corpus.lines()
    learned = learn(count_chunks(texts, PATTERNS["gpt2"]), 1500, ties="tokenizers")
    assert learned.pieces == trained_by_tokenizers(texts, 1500)
    assert learned.pieces != learn(count_chunks(texts, PATTERNS["gpt2"]), 1500).pieces  # the ties matter


def test_as_tiktoken_teaches() -> None:
    text = "\n".join(lines()[:60])
    theirs = SimpleBytePairEncoding.train(text, vocab_size=300, pat_str=PATTERNS["cl100k"])
    learned = learn(count_chunks([text], PATTERNS["cl100k"]), 300 - 256)
    assert learned.ranks() == theirs.mergeable_ranks


@pytest.mark.parametrize("ties", ["minbpe", "tokenizers"])
@pytest.mark.parametrize("pattern", CHOSEN, ids=["none", "gpt2", "cl100k", "o200k"])
def test_what_was_learned_encodes_as_it_was_merged(pattern: str | None, ties: str) -> None:
    """By the joined text as by the pairs, on other texts as well; and the bytes can have any order."""
    rng = random.Random(SEED)
    for texts, merges in corpora(examples(100)):
        learned = learn(count_chunks(texts, pattern), merges, ties)
        assert len(set(learned.pieces)) == len(learned.pieces)  # no piece is learned twice
        pairs = {pair: idx for idx, pair in enumerate(learned.pairs, 256)}
        tok = ByteLevel(learned.ranks(), pattern, whole=rng.random() < 0.5)
        ordered = ByteLevel(learned.ranks(BYTE_ORDER), pattern)
        for text in [*texts, "".join(rng.choices("".join(texts) or "a", k=40))]:
            by_pairs = [id for chunk in chunks_of([text], pattern) for id in oracles.encode(chunk, pairs)]
            assert tok.encode(text) == by_pairs
            assert ordered.encode(text) == [BYTE_ORDER.index(id) if id < 256 else id for id in by_pairs]


def test_progress_and_the_end_of_the_text() -> None:
    seen: list[tuple[int, tuple[int, int], bytes, int]] = []
    learned = learn({b"abab": 2}, 10, progress=lambda *step: seen.append(step))
    assert seen == [(1, (97, 98), b"ab", 4), (2, (256, 256), b"abab", 2)]
    assert learned.counts == [4, 2]
    assert learn({}, 5).pairs == []
    assert learn({b"a": 3}, 5).pairs == []
    with pytest.raises(ValueError, match="ties='first' is none of 'minbpe', 'tokenizers'"):
        learn({b"ab": 1}, 1, ties="first")
