"""nanoGPT: `train.bin` and `val.bin`, ids as uint16 and nothing else.

`train.offsets` beside it is for `PackedTokens`, as in `cpbpe.packing.formats.npy`; nanoGPT does not look at
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cpbpe.packing.formats.npy import read_offsets, write_offsets
from cpbpe.packing.formats.protocol import MOST_UINT16, MappedFormat, Offsets, Output, Shard
from cpbpe.spelling import given


class NanoGpt(MappedFormat):
    """Raw ids."""

    name = "nanogpt"

    def dtype(self, vocab_size: int) -> str:
        if vocab_size > MOST_UINT16:
            raise ValueError(
                f"nanoGPT reads ids as uint16, and the model has {vocab_size:,}; give {given('to', 'npy')}, "
                f"or {given('dtype', 'uint32')} and change the type in nanoGPT, too"
            )
        return "uint16"

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        name = split if number is None else f"{split}-{number:05}"
        return (f"{name}.bin", f"{name}.offsets")

    def write(self, shard: Shard, out: Output) -> None:
        write_offsets(shard, out)
        out.take_tokens(shard, f"{shard.name}.bin")

    def tokens_file(self, files: Sequence[str]) -> str:
        return next(name for name in files if name.endswith(".bin"))

    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        return read_offsets(paths, tokens)
