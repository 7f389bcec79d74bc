"""The ids of the reference are tiktoken's: with every pattern, and on the published vocabularies."""

import random
from functools import cache
from typing import Any

import pytest
import tiktoken
from hypothesis import given

from cpbpe.reference.byte_level import PATTERNS, ByteLevel, read_gpt2, read_ranks
from cpbpe.reference.byte_level.patterns import cut
from tests.bytes.making import CLASSES, any_text, decoded, pairs, texts
from tests.support import wheels
from tests.support.budget import examples, quick

SPELLINGS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": wheels.tekken()[1],
}
"""The patterns as their libraries spell them."""
NAMES = sorted(PATTERNS)


@cache
def ranks_of(name: str) -> dict[bytes, int]:
    """A published vocabulary; or all pairs of bytes."""
    if name == "gpt2":
        return read_gpt2(wheels.content("encoder.json"), wheels.content("vocab.bpe"))[0]
    if name == "tekken":
        return wheels.tekken()[0]
    return pairs() if name == "pairs" else read_ranks(wheels.content(name))


@cache
def both(vocabulary: str, pattern: str) -> tuple[ByteLevel, tiktoken.Encoding]:
    """The reference and tiktoken with a vocabulary, each with its own spelling of the pattern."""
    ranks, special = ranks_of(vocabulary), {"<|end|>": 500_000}
    theirs = tiktoken.Encoding(
        "test", pat_str=SPELLINGS[pattern], mergeable_ranks=ranks, special_tokens=special
    )
    return ByteLevel(ranks, PATTERNS[pattern], special), theirs


def check(vocabulary: str, pattern: str, text: str) -> None:
    ours, theirs = both(vocabulary, pattern)
    ids = ours.encode_ordinary(text)
    assert ids == theirs.encode_ordinary(text), text
    assert ours.decode_bytes(ids) == text.encode()
    assert ours.decode(ids) == text


def test_every_pattern_is_tested() -> None:
    assert sorted(SPELLINGS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_patterns_on_pairs_of_classes(name: str) -> None:
    """Every two classes side by side, alone and between others."""
    for left in CLASSES:
        for right in CLASSES:
            for text in (left + right, f"a{left}{right}", f" {left}{right} 1", f"{right}{left}{right}\n"):
                check("pairs", name, text)


@pytest.mark.parametrize("name", NAMES)
def test_patterns_on_many_texts(name: str) -> None:
    for text in texts(examples(1500), CLASSES):
        check("pairs", name, text)


@pytest.mark.parametrize("name", NAMES)
def test_patterns_on_any_text(name: str) -> None:
    @quick(2, 50)
    @given(any_text)
    def run(text: str) -> None:
        check("pairs", name, text)
        assert "".join(cut(PATTERNS[name], text)) == text

    run()


PUBLISHED = [
    ("tekken", "tekken"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in [
            ("gpt2", "gpt2"),
            ("p50k", "gpt2"),
            ("cl100k", "cl100k"),
            ("o200k", "o200k"),
            ("llama3", "llama3"),
            ("qwen2", "qwen2"),
        ]
    ),
]
published = pytest.mark.parametrize(("name", "pattern"), PUBLISHED)


@published
def test_published_vocabularies(name: str, pattern: str) -> None:
    pieces = decoded(list(ranks_of(name)))
    for text in texts(examples(2000), pieces):
        check(name, pattern, text)


@published
def test_ids_at_random_are_decoded_alike(name: str, pattern: str) -> None:
    ours, theirs = both(name, pattern)
    chance = random.Random(1)
    known = [*ours.ranks.values(), *ours.special_tokens.values()]
    for _ in range(examples(300)):
        ids = chance.choices(known, k=chance.randint(0, 6))
        assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
        assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("character", ["a", " ", "\n", "^", "'", "1", "é", "中", "\u3000"])
def test_one_character_many_times(character: str) -> None:
    """What once took tiktoken quadratic time."""
    check("tekken", "tekken", character * 3000)
    check("pairs", "cl100k", f" {character * 3000}x")


def test_surrogates_become_what_they_become_in_tiktoken() -> None:
    ours, theirs = both("pairs", "gpt2")
    for text in ("\ud83d\ude00", "a\ud83d", "\ude00b", "\ud83d \ude00", "\ud83d\ud83d\ude00"):
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)


def test_a_pattern_that_leaves_text_out_loses_it_as_in_tiktoken() -> None:
    ranks = pairs()
    theirs = tiktoken.Encoding("test", pat_str=r"\p{L}+", mergeable_ranks=ranks, special_tokens={})
    ours = ByteLevel(ranks, r"\p{L}+")
    assert ours.encode("one, two") == theirs.encode("one, two")
    assert ours.decode(ours.encode("one, two")) == "onetwo"


# --- Special tokens -------------------------------------------------------------------------------

SPECIAL = {"<|a|>": 70_000, "<|b|>": 70_001, " c": 70_002}
CHOICES: list[Any] = ["all", set(), {"<|a|>"}, {"<|a|>", " c"}, {"<|b|>"}, {"<|unknown|>"}]


@pytest.mark.parametrize("disallowed", CHOICES, ids=lambda choice: str(sorted(choice)))
@pytest.mark.parametrize("allowed", CHOICES, ids=lambda choice: str(sorted(choice)))
def test_special_tokens(allowed: Any, disallowed: Any) -> None:
    theirs = tiktoken.Encoding(
        "test", pat_str=SPELLINGS["gpt2"], mergeable_ranks=pairs(), special_tokens=SPECIAL
    )
    ours = ByteLevel(pairs(), PATTERNS["gpt2"], SPECIAL)
    for text in (
        "",
        "x",
        "<|a|>",
        "x <|a|>  <|b|> y",
        "a c<|a|><|a|>",
        "<|a|",
        "<|unknown|>",
        " c  c",
        "<|<|b|>a|>",
    ):
        results: list[Any] = []
        for encode in (ours.encode, theirs.encode):
            try:
                results.append(encode(text, allowed_special=allowed, disallowed_special=disallowed))
            except ValueError:
                results.append(ValueError)
        assert results[0] == results[1], text
        if results[0] is not ValueError:
            assert ours.decode(results[0]) == text


def test_a_special_token_is_cut_out_before_the_pattern_sees_the_text() -> None:
    tok = ByteLevel(pairs(), PATTERNS["gpt2"], SPECIAL)
    assert tok.encode("ab<|a|>", allowed_special="all") == [*tok.encode("ab"), 70_000]
    assert tok.encode("a  <|a|>b", allowed_special="all") == [*tok.encode("a  "), 70_000, *tok.encode("b")]


def test_the_longer_of_two_special_tokens_is_found() -> None:
    tok = ByteLevel(pairs(), None, {"<s>": 70_000, "<s>x": 70_001})
    assert tok.encode("<s>x<s>", allowed_special="all") == [70_001, 70_000]
    assert tok.encode("<s>x", allowed_special={"<s>"}, disallowed_special=()) == [70_000, ord("x")]


# --- Errors ---------------------------------------------------------------------------------------


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"255 of the 256 bytes have no rank, for example b'\\x00'"):
        ByteLevel({b"a": 0}, None)
    with pytest.raises(ValueError, match="two pieces have the same rank"):
        ByteLevel({**pairs(), b"abc": 7}, None)
    with pytest.raises(ValueError, match=r"the special token '<e>' has the id 97, which b'a' already has"):
        ByteLevel({byte: rank for rank, byte in enumerate(bytes([b]) for b in range(256))}, None, {"<e>": 97})
    tok = ByteLevel(pairs(), "(")
    with pytest.raises(
        ValueError, match=r"'\(' is not a regular expression that regex understands: missing \)"
    ):
        tok.encode("a")
    with pytest.raises(IndexError, match="70000 is not an id of this vocabulary"):
        tok.decode([97, 70_000])
