"""Encodings that tiktoken and cpbpe make of the same ranks, and texts of every kind to compare them on.

`CPBPE_TEXTS` names a folder with more texts (`*.txt`), from which parts are taken.
"""

import os
import random
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import tiktoken

import cpbpe.compat.tiktoken as ours
from cpbpe.reference.byte_level import read_gpt2, read_ranks
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes.making import CLASSES
from tests.support import corpus, wheels

LLAMA3 = {f"<|reserved_special_token_{number}|>": 128_002 + number for number in range(254)}
SPECIAL = {
    "gpt2": {"<|endoftext|>": 50256},
    "p50k": {
        "<|endoftext|>": 50256,
        "<|fim_prefix|>": 50281,
        "<|fim_middle|>": 50282,
        "<|fim_suffix|>": 50283,
    },
    "cl100k": {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|endofprompt|>": 100276},
    "o200k": {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    "llama3": {"<|begin_of_text|>": 128_000, "<|end_of_text|>": 128_001, **LLAMA3},
    "llama4": {"<|begin_of_text|>": 200_000, "<|end_of_text|>": 200_001, "<|eot|>": 200_008},
    "tekken": {"<s>": 200_000, "</s>": 200_001, "[INST]": 200_002, "[/INST]": 200_003},
    "qwen2": {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
}
"""Special tokens of the published vocabularies, by their names in `wheels`."""
_PATTERN = {"p50k": "gpt2", "llama4": "o200k"}


@lru_cache(2)
def ranks_of(name: str) -> dict[bytes, int]:
    """The ranks of a published vocabulary."""
    if name == "gpt2":
        return read_gpt2(wheels.content("encoder.json"), wheels.content("vocab.bpe"))[0]
    return wheels.tekken()[0] if name == "tekken" else read_ranks(wheels.content(name))


@lru_cache(2)
def both(name: str) -> tuple[Any, Any]:
    """A published vocabulary in both libraries: ours, theirs."""
    arguments: dict[str, Any] = {
        "pat_str": PATTERNS[_PATTERN.get(name, name)],
        "mergeable_ranks": ranks_of(name),
        "special_tokens": SPECIAL[name],
    }
    return ours.Encoding(name, **arguments), tiktoken.Encoding(name, **arguments)


def outcome(encoding: Any, call: str, *args: Any, **options: Any) -> Any:
    """What a call returns, arrays as lists, or its error: of a ValueError also which token is refused."""
    try:
        result = getattr(encoding, call)(*args, **options)
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        refused = type(error) is ValueError and "special token" in str(error)
        return type(error), str(error).split("\n")[0] if refused else ""
    return result.tolist() if hasattr(result, "dtype") else result


def same(pair: tuple[Any, Any], call: str, *args: Any, **options: Any) -> Any:
    """What both return, which must be the same."""
    one, other = (outcome(encoding, call, *args, **options) for encoding in pair)
    assert one == other, (call, args, options)
    return other


def same_completions(pair: tuple[Any, Any], text: str, **options: Any) -> None:
    """Both have the same completions, in whatever order."""
    one, other = (outcome(encoding, "encode_with_unstable", text, **options) for encoding in pair)
    if isinstance(other[1], list):
        assert one == (other[0], sorted(other[1], key=lambda ids: (len(ids) > 1, ids))), (text, options)
    else:
        assert one == other, (text, options)


_SPACES = (
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u200a\u200b"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_APOSTROPHES = [
    "'s",
    "'S",
    "'\u017f",
    "'ll",
    "'LL",
    "'lL",
    "'re",
    "'ve",
    "'T",
    "'\u212a",
    "'d",
    "\u2019s",
    "'",
    "''",
]
_MARKS = "\u0301\u0308\u0327\u0903\u093e\u0e31\u200d\ufe0f\u20e3\U000e0100"
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2069\u061c\u05d0\u05d1\u0627\u0644"
_DIGITS = [chr(c) for c in range(0x110000) if chr(c).isnumeric()]
_TURNS = [
    "<|",
    "|>",
    "<|endoftext|",
    "|endoftext|>",
    "<|im_start|>",
    "<s>",
    "[INST]",
    "<|fim_",
    "<|endoftext|>",
]


@cache
def real_lines() -> list[str]:
    """Real lines."""
    found = corpus.lines()
    if "CPBPE_TEXTS" in os.environ:
        rng = random.Random(1)
        for path in sorted(Path(os.environ["CPBPE_TEXTS"]).glob("*.txt")):
            text = path.read_text(encoding="utf-8", errors="replace")
            for _ in range(4000):
                begin = rng.randrange(len(text))
                found.append(text[begin : begin + rng.randint(1, 200)])
    return found


class Maker:
    """Makes texts from a seed."""

    def __init__(self, seed: int, pieces: list[bytes], special: list[str]):
        self.rng = random.Random(seed)
        self.pieces = pieces
        self.special = special
        self.kinds: list[Callable[[], str]] = [
            lambda: self.rng.choice(real_lines()),
            lambda: self.rng.choice(real_lines())[: self.rng.randint(0, 40)],
            lambda: "".join(self.some(CLASSES, 14)),
            lambda: "".join(self.piece() for _ in range(self.rng.randint(1, 8))),
            lambda: "".join(self.character() for _ in range(self.rng.randint(1, 12))),
            lambda: "".join(self.some(_SPACES, 10)) + self.piece() + "".join(self.some(_SPACES, 6)),
            lambda: (
                self.piece() + self.rng.choice(_APOSTROPHES) + self.piece() + self.rng.choice(_APOSTROPHES)
            ),
            lambda: "".join(self.some(_DIGITS, 9)) + self.piece(),
            lambda: self.piece().join(self.some(_MARKS, 5)) + "".join(self.some(_BIDI, 6)),
            lambda: self.rng.choice(CLASSES) * self.rng.randint(2, 60) + self.piece(),
            lambda: "".join(self.some([*_TURNS, *special, self.piece(), "\0", " "], 6)),
            lambda: "".join(self.some([*_SPACES, "a", "1", ".", "\n", "\r\n", " "], 12)),
            lambda: "".join(self.some(["\ud83d", "\udc4d", "\ud83d\udc4d", "a", " ", *special], 5)),
        ]

    def some(self, items: Any, most: int) -> list[Any]:
        return self.rng.choices(items, k=self.rng.randint(1, most))

    def piece(self) -> str:
        return self.rng.choice(self.pieces).decode(errors="replace")

    def character(self) -> str:
        """Any character at all: of all planes, unassigned ones, too."""
        while True:
            code = self.rng.randrange(self.rng.choice((0x80, 0x3000, 0x10000, 0x20000, 0x110000)))
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    def texts(self, count: int) -> Iterator[str]:
        for number in range(count):
            yield self.kinds[number % len(self.kinds)]()

    def long(self, length: int) -> str:
        """A long text of parts of all kinds, in which one may be repeated often."""
        parts: list[str] = []
        size = 0
        while size < length:
            part = self.kinds[self.rng.randrange(len(self.kinds) - 1)]()
            parts += [part] * (self.rng.choice((1, 1, 1, 50)))
            size = sum(map(len, parts))
        return "".join(parts)[:length]

    def ids(self, size: int) -> list[int]:
        return [self.rng.randrange(size) for _ in range(self.rng.randint(0, 6))]
