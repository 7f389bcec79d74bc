r"""The published patterns of byte-level models by their names, spelled as they were published.

`cpbpe/reference/byte_level/patterns.py` explains what each part of them is for. Here their spelling
matters: the core knows the published ones by their text, and cuts without a regular expression.

>>> PATTERNS["qwen2"] == PATTERNS["cl100k"]
False
"""

from __future__ import annotations

from types import MappingProxyType

_NOT_LETTERS = r"[^\r\n\p{L}\p{N}]?"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _by_case(endings: str, numbers: str) -> str:
    words = (f"{_NOT_LETTERS}{_UPPER}*{_LOWER}+{endings}", f"{_NOT_LETTERS}{_UPPER}+{_LOWER}*{endings}")
    return "|".join((*words, numbers, r" ?[^\s\p{L}\p{N}]+[\r\n/]*", _SPACES))


def _like_llama3(numbers: str) -> str:
    return "|".join((_ENDINGS, rf"{_NOT_LETTERS}\p{{L}}+", numbers, r" ?[^\s\p{L}\p{N}]+[\r\n]*", _SPACES))


PATTERNS = MappingProxyType(
    {
        "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        "cl100k": (
            # (`_NOT_LETTERS` ends with ?, which the + after it makes possessive.)
            rf"'(?i:[sdmt]|ll|ve|re)|{_NOT_LETTERS}+\p{{L}}++|\p{{N}}{{1,3}}+| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        "o200k": _by_case(f"{_ENDINGS}?", r"\p{N}{1,3}"),
        "llama3": _like_llama3(r"\p{N}{1,3}"),
        "qwen2": _like_llama3(r"\p{N}"),
        "tekken": _by_case("", r"\p{N}"),
    }
)
"""The patterns by the names of their models. GPT-3's (r50k, p50k) is GPT-2's."""

OTHER_NAMES = MappingProxyType(
    {
        "r50k": "gpt2",
        "p50k": "gpt2",
        "r50k_base": "gpt2",
        "p50k_base": "gpt2",
        "p50k_edit": "gpt2",
        "gpt4": "cl100k",
        "cl100k_base": "cl100k",
        "gpt4o": "o200k",
        "o200k_base": "o200k",
        "o200k_harmony": "o200k",
        "llama4": "o200k",
        "qwen": "qwen2",
    }
)
"""Other names of these patterns."""

_NAMES = {pattern: name for name, pattern in PATTERNS.items()}


def named_pattern(name: str) -> str | None:
    """Return the name in PATTERNS for any name of a pattern; None if there is no such pattern.

    >>> named_pattern("GPT-4"), named_pattern("cl100k_base"), named_pattern("llama_3"), named_pattern("bert")
    ('cl100k', 'cl100k', 'llama3', None)
    """
    plain = name.lower().replace("-", "_")
    for spelled in (plain, plain.replace("_", "")):
        known = OTHER_NAMES.get(spelled, spelled)
        if known in PATTERNS:
            return known
    return None


def name_of(pattern: str) -> str:
    """The name of a pattern; "" if it has none."""
    return _NAMES.get(pattern, "")
