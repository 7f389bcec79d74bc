"""minbpe, the code of Andrej Karpathy's lecture "Let's build the GPT Tokenizer": its tokenizers.

    from cpbpe.compat.minbpe import BasicTokenizer, RegexTokenizer, GPT4Tokenizer

Merges, ids and files are minbpe's. The core makes them, if it is there, and `cpbpe/reference/byte_level`, the
book in plain Python, if it is not, or for what only that can do. `RegexTokenizer` and `GPT4Tokenizer` need
the package regex.

What is different is on purpose: errors say what to do, though with the same classes where minbpe raises one
itself; a loaded tokenizer cuts by the pattern of its file (minbpe goes on with the one before); a pattern
or special token that the file could not give back is refused by `save`; GPT4Tokenizer takes the path of a
file, downloads nothing, and decodes special tokens.
"""

from __future__ import annotations

from cpbpe.compat.minbpe.tokenizers import (
    GPT2_SPLIT_PATTERN,
    GPT4_SPECIAL_TOKENS,
    GPT4_SPLIT_PATTERN,
    BasicTokenizer,
    GPT4Tokenizer,
    LectureError,
    RegexTokenizer,
    Tokenizer,
    get_stats,
    merge,
    recover_merges,
)
from cpbpe.model.formats.minbpe import render_token, replace_control_characters

__all__ = [
    "GPT2_SPLIT_PATTERN",
    "GPT4_SPECIAL_TOKENS",
    "GPT4_SPLIT_PATTERN",
    "BasicTokenizer",
    "GPT4Tokenizer",
    "LectureError",
    "RegexTokenizer",
    "Tokenizer",
    "get_stats",
    "merge",
    "recover_merges",
    "render_token",
    "replace_control_characters",
]

LectureError.__module__ = __name__  # messages show where users find it
