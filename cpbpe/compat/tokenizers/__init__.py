"""The calls of `tokenizers.Tokenizer`, version 0.23, for the BPE models that cpbpe can load.

A program only has to change its import line:

>>> import cpbpe
>>> from cpbpe.compat.tokenizers import Tokenizer
>>> cpbpe.load("tokenizer.model").using(add_bos=True).save("tokenizer.json")
>>> tokenizer = Tokenizer.from_file("tokenizer.json")
>>> tokenizer.encode("Hello world").ids
[1, 22557, 1526]

`docs/replacing.md` lists what is the same, and what is not. The library itself is not needed.
"""

from __future__ import annotations

from typing import NoReturn

from cpbpe.compat.tokenizers.added import AddedToken
from cpbpe.compat.tokenizers.arguments import CLASSES, refuse, refuse_modules
from cpbpe.compat.tokenizers.encoding import Encoding
from cpbpe.compat.tokenizers.tokenizer import Tokenizer

__version__ = "0.23.3"
"""The version of tokenizers that this package imitates."""

__all__ = ["AddedToken", "Encoding", "Tokenizer"]

# Pickles, messages and documentation show the module where users find these, not the file they are in.
for _class in (AddedToken, Encoding, Tokenizer):
    _class.__module__ = __name__
del _class
refuse_modules(__path__)


def __getattr__(name: str) -> NoReturn:
    if name in CLASSES:
        refuse(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
