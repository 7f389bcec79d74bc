"""Texts split by the core, against the package `regex`, and against tiktoken itself."""

from functools import cache

import pytest
import regex
import tiktoken

from cpbpe import _core
from tests.split.patterns import CHARACTERS, PATTERNS, texts
from tests.support import tiers
from tests.support.budget import SEED, examples

EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CLASSES = (r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{N}", r"\s")
CHANGED = "\u0295"
"""A letter that Unicode 16 calls lowercase, and a later one caseless."""

patterns = pytest.mark.parametrize("name", tiers.some(PATTERNS, ["cl100k_base", "o200k_base"]))


def chunks(pattern: str, text: str) -> list[str]:
    """The chunks that the core finds."""
    data = text.encode()
    return [data[begin:end].decode() for begin, end in _core.Splitter(pattern).spans(text).tolist()]


def in_class(name: str) -> set[str]:
    """The characters of a class, in the Unicode of the core."""
    return set("".join(chunks(name + "+", "".join(EVERY))))


@cache
def disputed() -> frozenset[str]:
    """Characters whose class in `regex` is another one than in the core, and in tiktoken."""
    differ = (in_class(name) ^ set(regex.findall(name, "".join(EVERY))) for name in CLASSES)
    return frozenset().union(*differ)


def tiktoken_ids(pattern: str, ranks: dict[bytes, int], some: list[str]) -> list[list[int]]:
    encoding = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return [encoding.encode_ordinary(text) for text in some]


def showing(pattern: str, some: list[str]) -> tuple[dict[bytes, int], list[list[int]]]:
    """A vocabulary for tiktoken that shows where it splits these texts, and the ids if it does as the core.

    Every chunk is a token, and tokens are taken whole before anything is merged. So are the two bytes around
    every border between chunks, which come first if anything is merged: if tiktoken did not split at one, a
    token would reach across it. And if it split inside of a chunk, the chunk would not be one token.
    """
    data = [text.encode() for text in some]
    spans = [_core.Splitter(pattern).spans(text).tolist() for text in some]
    ranks = {bytes([byte]): byte for byte in range(256)}
    for text, ends in zip(data, spans, strict=True):
        for _, end in ends[:-1]:
            ranks.setdefault(text[end - 1 : end + 1], len(ranks))
    for text, ends in zip(data, spans, strict=True):
        for begin, end in ends:
            ranks.setdefault(text[begin:end], len(ranks))
    return ranks, [
        [ranks[text[begin:end]] for begin, end in ends] for text, ends in zip(data, spans, strict=True)
    ]


def check_with_tiktoken(pattern: str, some: list[str]) -> None:
    """That tiktoken splits these texts as the core does."""
    ranks, expected = showing(pattern, some)
    for text, found, wanted in zip(some, tiktoken_ids(pattern, ranks, some), expected, strict=True):
        assert found == wanted, (pattern, text)


@pytest.mark.slow
def test_classes_of_all_characters() -> None:
    """`regex` may know characters that tiktoken's Unicode does not, or the other way round."""
    new = in_class(r"\p{Cn}") | set(regex.findall(r"\p{Cn}", "".join(EVERY)))
    assert disputed() - new <= set(CHANGED)
    single = {bytes([byte]): byte for byte in range(256)}
    for name in CLASSES:
        # What no match has is lost in tiktoken, so only the characters of the class are left.
        [kept] = tiktoken_ids(name, single, ["".join(EVERY)])
        assert set(bytes(kept).decode()) == in_class(name), name


@patterns
def test_all_characters(name: str) -> None:
    """Each character after and before each kind of character."""
    step = max(1, 20_000 // examples(1_000))
    pattern = PATTERNS[name]
    kinds = ["a", "S", "7", " ", "\n", "!", "'", "漢", "\u0301", "  ", "'s", " !", "\n ", "!!"]
    parts = [
        left + character + right
        for i, character in enumerate(EVERY[::step])
        if character not in disputed()
        for left, right in [(kinds[i % len(kinds)], kinds[i * 5 % 9])]
    ]
    for text in ("".join(parts), "".join(reversed(parts))):
        assert chunks(pattern, text) == regex.findall(pattern, text)


@patterns
def test_texts(name: str) -> None:
    pattern = PATTERNS[name]
    assert not disputed() & set(CHARACTERS)
    some = texts(examples(600), SEED)
    for text in some:
        assert chunks(pattern, text) == regex.findall(pattern, text), text
    check_with_tiktoken(pattern, some)


@patterns
def test_long_text(name: str) -> None:
    """Batches, and what is split between them."""
    text = "".join(texts(300, SEED + 1))
    assert len(text) > 30_000
    assert chunks(PATTERNS[name], text) == regex.findall(PATTERNS[name], text)
    check_with_tiktoken(PATTERNS[name], [text, text[: len(text) // 2]])


def test_the_check_sees_other_borders() -> None:
    """The way to look into tiktoken finds a pattern that splits elsewhere."""
    llama3, cl100k = PATTERNS["llama3"], PATTERNS["cl100k_base"]
    for text, other in [("a1234", PATTERNS["qwen2"]), ("it's", PATTERNS["o200k_base"]), ("x\n  ", cl100k)]:
        assert chunks(llama3, text) != chunks(other, text)
        ranks, expected = showing(llama3, [text])
        assert tiktoken_ids(other, ranks, [text]) != expected


def test_other_patterns() -> None:
    assert chunks(r"\w+|\s", "so, what") == ["so", " ", "what"]
    splitter = _core.Splitter(r"\w+|\s")
    assert not splitter.has_scanner
    assert splitter.spans("").shape == (0, 2)
    assert all(_core.Splitter(pattern).has_scanner for pattern in PATTERNS.values())
    with pytest.raises(ValueError, match=r"not a valid pattern to split text with: .*parenthesis"):
        _core.Splitter("(")
    with pytest.raises(ValueError, match=r"the pattern cannot split this text .*possessive"):
        _core.Splitter("(?i)(a|b|ab)*(?>c)").spans("ab" * 100)
