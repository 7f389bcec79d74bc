"""datatrove: `SPLIT/00000_tokens.ds` with the ids, `.ds.index` with the ends of documents, `.ds.metadata`.

Each split has a folder of its own, because datatrove reads all the `.ds` files of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import MappedFormat, Offsets, Output, Shard, write_ends
from cpbpe.version import __version__

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


class Datatrove(MappedFormat):
    """Raw ids with an index of ends."""

    name = "datatrove"
    dtypes = ("uint16", "uint32")

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        name = f"{split}/{number or 0:05}_tokens.ds"
        return (name, f"{name}.index", f"{name}.metadata")

    def write(self, shard: Shard, out: Output) -> None:
        tokens, index, metadata = self.first_files(shard.split, shard.number)
        write_ends(shard, out.create(index), "<u8")
        lines = (f"cpbpe {__version__}|{shard.dtype.itemsize}", str(shard.tokens), in_words(shard.tokens))
        out.create(metadata).write("\n".join(lines).encode())
        out.take_tokens(shard, tokens)

    def tokens_file(self, files: Sequence[str]) -> str:
        return next(name for name in files if name.endswith(".ds"))

    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        index = next(path for path in paths if path.endswith(".index"))
        return Offsets(numpy().memmap(index, "<u8", "r"), tokens, are_ends=True)


def in_words(tokens: int) -> str:
    """A number of tokens for people, as the package humanize writes it: with three digits.

    >>> in_words(7), in_words(1500), in_words(999_999)
    ('7.00 T', '1.50 kT', '1.00 MT')
    """
    exponent = math.floor(math.log10(tokens)) if tokens else 0
    digits = 2 - exponent % 3
    scaled = tokens / 10 ** (exponent // 3 * 3)
    if round(scaled, digits) >= 10 ** (exponent % 3 + 1):  # rounding has added a digit
        exponent += 1
        digits = 2 - exponent % 3
        scaled = tokens / 10 ** (exponent // 3 * 3)
    return f"{scaled:.{digits}f} {_PREFIXES[exponent // 3]}T"
