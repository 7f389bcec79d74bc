"""Megatron-LM: `NAME_text_document.bin` with the ids, and `.idx` with lengths and pointers.

Every document is one sequence. The path for Megatron's `--data-path` is the one without `.bin`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import MappedFormat, Offsets, Output, Shard

MAGIC = b"MMIDIDX\0\0"
CODES = {"uint16": 8, "int32": 4}
"""The numbers of types in the index. There is none for uint32."""
LEAST_INT32 = 65_500
"""Megatron takes int32 from this size of the vocabulary on."""
_STEP = 1 << 20


class Megatron(MappedFormat):
    """An indexed dataset."""

    name = "megatron"
    dtypes = ("uint16", "int32")

    def dtype(self, vocab_size: int) -> str:
        return "uint16" if vocab_size < LEAST_INT32 else "int32"

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        name = split if number is None else f"{split}-{number:05}"
        return (f"{name}_text_document.bin", f"{name}_text_document.idx")

    def write(self, shard: Shard, out: Output) -> None:
        np, count = numpy(), shard.documents
        index = out.create(f"{shard.name}_text_document.idx")
        index.write(MAGIC + (1).to_bytes(8, "little") + bytes([CODES[shard.dtype.name]]))
        index.write(np.array([count, count + 1], "<u8"))
        for chunk in shard.chunks():
            index.write(chunk.lengths.astype("<i4"))
        for chunk in shard.chunks():
            index.write((chunk.ends - chunk.lengths).astype("<i8") * shard.dtype.itemsize)
        for begin in range(0, count + 1, _STEP):  # document n begins with sequence n
            index.write(np.arange(begin, min(begin + _STEP, count + 1), dtype="<i8"))
        out.take_tokens(shard, f"{shard.name}_text_document.bin")

    def tokens_file(self, files: Sequence[str]) -> str:
        return next(name for name in files if name.endswith(".bin"))

    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        """From the pointers. They are not aligned in the file, which numpy does not mind."""
        index = next(path for path in paths if path.endswith(".idx"))
        with open(index, "rb") as file:
            head = file.read(len(MAGIC) + 9)
        item = {8: 2, 4: 4}[head[-1]]
        begin = len(MAGIC) + 8 + 1 + 16 + 4 * documents
        pointers = numpy().memmap(index, "<i8", "r", offset=begin, shape=(documents,))
        return Offsets(pointers, tokens, unit=item)
