"""The published patterns, as published, and awkward texts for them."""

import random

CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
FRONT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"

PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "r50k_base": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k_base": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "cl100k_before": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
    "llama3": FRONT + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
    "qwen2": FRONT + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
    "qwen3.5": FRONT + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES,
    "nanochat": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
    "o200k_base": "|".join(part + SUFFIX for part in CASED)
    + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    + SPACES,
    "tekken": "|".join(CASED) + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES,
}

_NOT_HAN = r"&&[^\p{Han}]]"
_CASED_OF_KIMI = (part.replace(r"\p{M}]", r"\p{M}" + _NOT_HAN) + SUFFIX for part in CASED)
KIMI = r"[\p{Han}]+|" + "|".join(_CASED_OF_KIMI) + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
"""Kimi K2's, with intersections, which only tiktoken's engine reads as it does."""

CHARACTERS = (
    "astlvermdxASTLVERZkK07    \n\n\r\t\v\f\x1c\x1f\0\x7f''''//!._-\x85\xa0\u017f\u212a"
    "éÉǅʰяЯא漢字ー々〇한ก\u0301\u093e"
    "\u20e3\ufe0f٣²Ⅷ½\u2003\u2028\u3000\u180e\u200b\u200d\ufeff’。…"
    "\u0378\ufffe\U0010ffff𝒳𝓍𐍈😀𝟗\U0001d165\U000e0100"
)
"""What the patterns can tell apart, and what looks like it."""


def texts(count: int, seed: int) -> list[str]:
    """Texts of a few kinds of characters each, with runs."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        kinds = rng.choices(CHARACTERS, k=rng.randint(1, 9))
        runs = rng.choices([1, 1, 1, 1, 2, 3, 5, 17], k=rng.choice([3, 12, 40, 80]))
        made.append("".join(rng.choice(kinds) * run for run in runs))
    return made
