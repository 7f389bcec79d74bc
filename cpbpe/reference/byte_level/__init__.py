"""Byte-level BPE in plain Python, written to be read: the family of GPT-2, GPT-4, Llama 3, Qwen and tekken.

Read the files in this order:

* `patterns.py`: how a text is cut before it is merged;
* `encoding.py`: from a text to ids, and back; and how vocabularies are written down;
* `training.py`: how they are learned;
* `word_ends.py`: the older form, in which words end in `</w>`; and characters and words as pieces, for
  comparison.

`cpbpe.reference.steps` shows how `ByteLevel` encodes a text, merge by merge. Cutting needs the package
`regex`.
"""

from __future__ import annotations

from cpbpe.reference.byte_level.encoding import (
    ByteLevel,
    read_gpt2,
    read_ranks,
    recover_merges,
    write_ranks,
)
from cpbpe.reference.byte_level.patterns import PATTERNS
from cpbpe.reference.byte_level.training import LearnedMerges, count_chunks, learn
from cpbpe.text.utf8 import BYTE_ORDER

__all__ = [
    "BYTE_ORDER",
    "PATTERNS",
    "ByteLevel",
    "LearnedMerges",
    "count_chunks",
    "learn",
    "read_gpt2",
    "read_ranks",
    "recover_merges",
    "write_ranks",
]
