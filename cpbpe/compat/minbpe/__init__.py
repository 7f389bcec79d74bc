"""minbpe, the code of Andrej Karpathy's lecture "Let's build the GPT Tokenizer": its tokenizers.

    from cpbpe.compat.minbpe import BasicTokenizer, RegexTokenizer, GPT4Tokenizer

Merges, ids and files are the same as minbpe's. The core computes them if it is installed. Otherwise, and for
what the core cannot do, the reference in plain Python does (`cpbpe/reference/byte_level`). `RegexTokenizer`
and `GPT4Tokenizer` need the package regex.

These differences are intended:

- Errors say what to do. Where minbpe raises one itself, the class is the same.
- A loaded tokenizer cuts by the pattern of its file; minbpe continues with the pattern it had before.
- `save` refuses a pattern or special token that could not be read back from the file.
- GPT4Tokenizer takes the path of a file, downloads nothing, and decodes special tokens.
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
