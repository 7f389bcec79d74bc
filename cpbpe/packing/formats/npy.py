"""Plain numpy: `NAME.npy` with the ids of all documents, and `NAME.offsets`, where each of them begins.

Both are .npy files, whatever they are called: `numpy.load` reads them, and `mmap_mode="r"` maps them. (The
offsets have a name of their own so that `*.npy` means the ids.)
"""

from __future__ import annotations

from collections.abc import Sequence

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import MappedFormat, Offsets, Output, Shard, npy_header, write_ends

HEADER = 128
"""A multiple of 64, as numpy's own headers, with room for any length."""


class Npy(MappedFormat):
    """Plain numpy."""

    name = "npy"
    header = HEADER

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        name = split if number is None else f"{split}-{number:05}"
        return (f"{name}.npy", f"{name}.offsets")

    def write(self, shard: Shard, out: Output) -> None:
        write_offsets(shard, out)
        out.take_tokens(shard, f"{shard.name}.npy", npy_header(shard.dtype, shard.tokens, HEADER))

    def tokens_file(self, files: Sequence[str]) -> str:
        return next(name for name in files if name.endswith(".npy"))

    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        return read_offsets(paths, tokens)


def write_offsets(shard: Shard, out: Output) -> None:
    """Write `NAME.offsets`: 0, and where each document ends."""
    file = out.create(f"{shard.name}.offsets")
    file.write(npy_header("<i8", shard.documents + 1, HEADER))
    file.write(bytes(8))
    write_ends(shard, file, "<i8")


def read_offsets(paths: Sequence[str], tokens: int) -> Offsets:
    """Where documents begin, from `NAME.offsets`."""
    path = next(path for path in paths if path.endswith(".offsets"))
    return Offsets(numpy().load(path, mmap_mode="r")[:-1], tokens)
