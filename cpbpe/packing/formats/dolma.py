"""Dolma and OLMo: `NAME.npy` with the ids and `NAME.csv.gz` with a line for each document.

In spite of its name, the first file has no header of numpy: OLMo maps it as raw ids. The columns of the
second are the begin and the end of the document in ids, a name for it, its file and its line or record there.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence

from cpbpe.lazy import numpy
from cpbpe.packing.formats.protocol import MappedFormat, Offsets, Output, Shard


class Dolma(MappedFormat):
    """Raw ids with a table of documents."""

    name = "dolma"
    dtypes = ("uint16", "uint32")
    needs_places = True

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        name = split if number is None else f"{split}-{number:05}"
        return (f"{name}.npy", f"{name}.csv.gz")

    def write(self, shard: Shard, out: Output) -> None:
        file = out.create(f"{shard.name}.csv.gz")
        # Neither a name nor a time in the header of gzip: the same documents give the same bytes.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            for chunk in shard.chunks():
                lines = io.StringIO(newline="")
                begins = chunk.ends - chunk.lengths
                columns = (begins, chunk.ends, chunk.files, chunk.records)
                csv.writer(lines).writerows(
                    (begin, end, f"{shard.sources[file]}:{record}", shard.sources[file], record)
                    for begin, end, file, record in zip(*(column.tolist() for column in columns), strict=True)
                )
                packed.write(lines.getvalue().encode(errors="surrogateescape"))
        out.take_tokens(shard, f"{shard.name}.npy")

    def tokens_file(self, files: Sequence[str]) -> str:
        return next(name for name in files if name.endswith(".npy"))

    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        """From the table, which cannot be mapped: 8 bytes of memory for each document."""
        table = next(path for path in paths if path.endswith(".csv.gz"))
        ends = numpy().empty(documents, "<i8")
        with gzip.open(table, "rt", encoding="utf-8", errors="surrogateescape", newline="") as lines:
            for index, row in enumerate(csv.reader(lines)):
                ends[index] = int(row[1])
        return Offsets(ends, tokens, are_ends=True)
