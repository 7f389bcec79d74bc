"""MDS, the format of mosaicml-streaming: `SPLIT/shard.00000.mds`, and `SPLIT/index.json` with all shards.

A sample is a document, and its only column is `tokens`, an array. It is written here rather than by that
library's own writer, which imports PyTorch, cannot be continued after an interruption, and encodes documents
one by one. The tests compare the files with those of that writer, byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import Format, Output, Shard
from cpbpe.spelling import named

COLUMN = "tokens"
MOST_BYTES = 1 << 32
"""Offsets are uint32."""
_USUAL_BYTES = 1 << 26
_DIMENSION = 1 << 2
"""The number of dimensions, above the two bits that say how wide their lengths are."""


class Mds(Format):
    """Samples with one array each."""

    name = "mds"
    usual_size = "32MiB"  # of ids: well below the 64 MiB that the library recommends, headers included

    def dtype(self, vocab_size: int) -> str:
        """What llm-foundry writes: PyTorch does little with unsigned integers."""
        return "int32"

    def check(self, dtype: str, shard_bytes: int | None) -> None:
        if shard_bytes is not None and shard_bytes > MOST_BYTES // 2:
            raise ValueError(
                f"{named('shard_size')}: a shard of MDS has 32-bit offsets; choose at most 2GB of ids"
            )

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        return (f"{split}/shard.{number or 0:05}.mds", f"{split}/index.json")

    def write(self, shard: Shard, out: Output) -> None:
        np = numpy()
        file = out.create(f"{shard.split}/shard.{shard.number or 0:05}.mds")
        config = json.dumps(_config(shard.dtype.name), sort_keys=True).encode()
        at = 4 + 4 * (shard.documents + 1) + len(config)
        total = at + sum(int(_sizes(chunk.lengths, shard.dtype.itemsize).sum()) for chunk in shard.chunks())
        if total >= MOST_BYTES:
            raise ValueError(
                f"a shard of MDS has 32-bit offsets, and this one would have {total:,} bytes; give a smaller "
                f"{named('shard_size')}"
            )
        file.write(np.uint32(shard.documents))
        file.write(np.uint32(at))
        for chunk in shard.chunks():
            ends = np.cumsum(_sizes(chunk.lengths, shard.dtype.itemsize)) + at
            file.write(ends.astype("<u4"))
            at = int(ends[-1])
        file.write(config)
        for chunk in shard.chunks():
            data = memoryview(chunk.ids.tobytes())
            ends_of_data = (np.cumsum(chunk.lengths) * shard.dtype.itemsize).tolist()
            parts: list[Any] = []
            begin = 0
            for length, end in zip(chunk.lengths.tolist(), ends_of_data, strict=True):
                width = 0 if length < 1 << 8 else 1 if length < 1 << 16 else 2
                shape = bytes([_DIMENSION | width]) + length.to_bytes(1 << width, "little")
                parts += ((len(shape) + end - begin).to_bytes(4, "little"), shape, data[begin:end])
                begin = end
            file.write(b"".join(parts))

    def index(self, shards: Sequence[dict[str, Any]], dtype: str) -> dict[str, bytes]:
        entries = []
        for shard in shards:
            (file,) = shard["files"]
            raw = {"basename": file["name"].rpartition("/")[2], "bytes": file["size"], "hashes": {}}
            samples = {"raw_data": raw, "samples": shard["documents"], "zip_data": None}
            entries.append(_config(dtype) | samples)
        content = json.dumps({"version": 2, "shards": entries}, sort_keys=True)
        return {f"{shards[0]['split']}/index.json": content.encode()}


def _config(dtype: str) -> dict[str, Any]:
    return {
        "version": 2,
        "format": "mds",
        "compression": None,
        "hashes": [],
        "size_limit": _USUAL_BYTES,
        "column_names": [COLUMN],
        "column_encodings": [f"ndarray:{dtype}"],
        "column_sizes": [None],
    }


def _sizes(lengths: Any, item: int) -> Any:
    """The bytes of each sample: the size of its column, the shape of the array, and its ids."""
    widths = numpy().where(lengths < 1 << 8, 1, numpy().where(lengths < 1 << 16, 2, 4))
    return 4 + 1 + widths + lengths * item
