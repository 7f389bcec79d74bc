r"""The package tiktoken, version 0.14.0: the same names, calls and results.

A program only has to change its import line:

    import cpbpe.compat.tiktoken as tiktoken

>>> from cpbpe.compat.tiktoken import Encoding
>>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 256, b"ll": 257, b"hell": 258}
>>> enc = Encoding("my", pat_str=r"\w+| ", mergeable_ranks=ranks, special_tokens={"<|end|>": 259})
>>> enc.encode("hello<|end|>", allowed_special="all")
[258, 111, 259]

`docs/replacing.md` lists the differences and the reasons for them. The most important one: nothing is
downloaded. `get_encoding` reads the files that tiktoken has downloaded, or says where it wants them.
"""

from __future__ import annotations

from cpbpe.compat.tiktoken.core import Encoding
from cpbpe.compat.tiktoken.model import encoding_for_model, encoding_name_for_model
from cpbpe.compat.tiktoken.registry import get_encoding, list_encoding_names

__version__ = "0.14.0"
"""The version of tiktoken that this package imitates."""

__all__ = [
    "Encoding",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]

# Pickles, messages and documentation show the module where users find it, not the file it is in.
Encoding.__module__ = __name__
