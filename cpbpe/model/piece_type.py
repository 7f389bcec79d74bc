"""The types of pieces. They have a file of their own because loading a model needs them, but not `spec`."""

from __future__ import annotations

from enum import IntEnum


class PieceType(IntEnum):
    """What a piece is for. The numbers are those of the model file.

    >>> PieceType(6).name
    'BYTE'
    """

    NORMAL = 1
    """Learned from text: takes part in merging."""
    UNKNOWN = 2
    """Replaces text that the vocabulary does not hold. A model has at most one."""
    CONTROL = 3
    """A mark such as ``<s>``: added by the program, never found in text, invisible when decoded."""
    USER_DEFINED = 4
    """Always kept whole when text contains it."""
    UNUSED = 5
    """Takes part in merging, but is split again before the result is returned."""
    BYTE = 6
    """``<0x00>`` to ``<0xFF>``: one byte of a character that has no piece."""


KEEPS_SPACE = "keep_space_after_special"
"""In `Carried.options`: decoding keeps a space after a special token that it shows, as in tokenizers."""
PLAIN = "plain"
"""Of a token in `Carried.tokens`: every text that spells it out yields it, and decoding always shows it."""
TOKEN_FLAGS = (PLAIN, "lstrip", "rstrip", "single_word", "late", "normalized")
"""The flags that a token can have in `Carried.tokens`: see `cpbpe.tokenizer.special_tokens`."""
