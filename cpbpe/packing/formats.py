"""The formats of token files: what the files of a shard are called, and what is in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cpbpe.errors import CorpusError, missing
from cpbpe.lazy import importing
from cpbpe.packing.shards import MOST_UINT16, Checked, Format, Shard
from cpbpe.packing.spool import Chunk
from cpbpe.spelling import given, named
from cpbpe.version import __version__


class MappedFormat(Format):
    """A format whose files can be mapped into memory, which `PackedTokens` does."""

    @abstractmethod
    def offsets(self, path: str, documents: int, tokens: int) -> Offsets:
        """Where documents begin and end, from the second file of a shard; mapped into memory, if possible."""


class Offsets:
    """Where each document of a shard begins and ends, taken from the values that a format stores."""

    def __init__(
        self,
        path: str,
        values: NDArray[Any],
        documents: int,
        total: int,
        *,
        unit: int = 1,
        are_ends: bool = False,
    ):
        """`values`: where each document begins, or ends if `are_ends`. `unit`: a token's size in them.

        `path` is that of their file, for errors. They are checked when they are used.
        """
        if len(values) != documents:
            raise broken(path)
        self._path = path
        self._values = values
        self._total = total
        self._unit = unit
        self._are_ends = are_ends

    def part(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where the documents from `begin` to `end` begin, and where the last of them ends."""
        if self._are_ends:
            inner = np.asarray(self._values[max(begin - 1, 0) : end]).astype(np.int64)
            inner = inner if begin else np.append(np.zeros(1, np.int64), inner)
        else:
            inner = np.asarray(self._values[begin : end + 1]).astype(np.int64) // self._unit
            inner = np.append(inner, self._total) if end == len(self._values) else inner
        if not 0 <= inner[0] <= inner[-1] <= self._total or (
            len(inner) > 2 and (inner[1:] < inner[:-1]).any()
        ):
            raise broken(self._path)
        return inner

    def document_at(self, token: int) -> int:
        """The index of the document that a token belongs to."""
        # (searchsorted would copy all of them if they are not aligned, or of another type.)
        place = bisect_right(self._values, token * self._unit)
        place = place if self._are_ends else place - 1
        if not 0 <= place < len(self._values):
            raise broken(self._path)
        return place


def broken(path: str) -> CorpusError:
    """The error for a file that is not what was written."""
    return CorpusError(f"{path!r} is damaged: it is not what was written; pack the texts again")


# --- numpy, nanoGPT -------------------------------------------------------------------------------


class Npy(MappedFormat):
    """Plain numpy: the ids of all documents, and where each of them begins.

    Both are .npy files, whatever they are called: `numpy.load` reads them, and `mmap_mode="r"` maps them.
    (The offsets have a name of their own so that `*.npy` means the ids.)
    """

    name = "npy"
    files = ("{name}.npy", "{name}.offsets")
    header = 128  # a multiple of 64, as numpy's own headers, with room for any length

    def write(self, shard: Shard) -> None:
        ids, offsets = shard.names
        file = shard.create(offsets)
        file.write(_npy_header("<i8", shard.documents + 1))
        file.write(bytes(8))
        _write_ends(shard, file, "<i8")
        shard.take_tokens(ids, _npy_header(shard.dtype, shard.tokens) if self.header else b"")

    def offsets(self, path: str, documents: int, tokens: int) -> Offsets:
        with open(path, "rb") as file:
            head = file.read(Npy.header)
        if head != _npy_header("<i8", documents + 1):
            raise broken(path)
        return Offsets(path, np.memmap(path, "<i8", "r", len(head), (documents,)), documents, tokens)


class NanoGpt(Npy):
    """nanoGPT: ids as uint16 and nothing else. (The offsets are for `PackedTokens`.)"""

    name = "nanogpt"
    files = ("{name}.bin", "{name}.offsets")
    header = 0

    def dtype(self, vocab_size: int) -> str:
        if vocab_size > MOST_UINT16:
            raise ValueError(
                f"nanoGPT reads ids as uint16, and the model has {vocab_size:,}; give {given('to', 'npy')}, "
                f"or {given('dtype', 'uint32')} and change the type in nanoGPT, too"
            )
        return "uint16"


def _npy_header(dtype: Any, length: int) -> bytes:
    """The header of a .npy file (version 1.0) with one dimension, in exactly `Npy.header` bytes."""
    fields = f"{{'descr': {np.dtype(dtype).str!r}, 'fortran_order': False, 'shape': ({length},), }}"
    text = fields.encode().ljust(Npy.header - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + (Npy.header - 10).to_bytes(2, "little") + text


def _write_ends(shard: Shard, file: Checked, dtype: str) -> None:
    for chunk in shard.chunks():
        file.write(chunk.ends.astype(dtype))


# --- Megatron -------------------------------------------------------------------------------------


class Megatron(MappedFormat):
    """Megatron-LM: ids, and an index with lengths and pointers. Every document is one sequence.

    The path for Megatron's `--data-path` is the one without `.bin`.
    """

    name = "megatron"
    files = ("{name}_text_document.bin", "{name}_text_document.idx")
    dtypes = ("uint16", "int32")

    magic = b"MMIDIDX\0\0"
    codes: ClassVar = {"uint16": 8, "int32": 4}
    """The code of each type in the index. There is none for uint32."""
    least_int32 = 65_500
    """The smallest vocabulary size for which Megatron takes int32."""
    step = 1 << 20

    def dtype(self, vocab_size: int) -> str:
        return "uint16" if vocab_size < self.least_int32 else "int32"

    def write(self, shard: Shard) -> None:
        ids, name = shard.names
        count, index = shard.documents, shard.create(name)
        index.write(self.magic + (1).to_bytes(8, "little") + bytes([self.codes[shard.dtype.name]]))
        index.write(np.array([count, count + 1], "<u8"))
        for chunk in shard.chunks():
            index.write(chunk.lengths.astype("<i4"))
        for chunk in shard.chunks():
            index.write((chunk.ends - chunk.lengths).astype("<i8") * shard.dtype.itemsize)
        for begin in range(0, count + 1, self.step):  # document n begins with sequence n
            index.write(np.arange(begin, min(begin + self.step, count + 1), dtype="<i8"))
        shard.take_tokens(ids)

    def offsets(self, path: str, documents: int, tokens: int) -> Offsets:
        """Map the pointers. They are not aligned in the file, but numpy can read them anyway."""
        with open(path, "rb") as file:
            head = file.read(len(self.magic) + 9)
        sizes = {code: np.dtype(name).itemsize for name, code in self.codes.items()}
        if not head.startswith(self.magic) or head[-1] not in sizes:
            raise broken(path)
        begin = len(head) + 16 + 4 * documents
        pointers = np.memmap(path, "<i8", "r", offset=begin, shape=(documents,))
        return Offsets(path, pointers, documents, tokens, unit=sizes[head[-1]])


# --- datatrove ------------------------------------------------------------------------------------


class Datatrove(MappedFormat):
    """datatrove: ids, the ends of documents, and a few facts for people.

    Each split has a folder of its own, because datatrove reads all the `.ds` files in a folder.
    """

    name = "datatrove"
    files = tuple(f"{{split}}/{{number:05}}_tokens.ds{suffix}" for suffix in ("", ".index", ".metadata"))
    dtypes = ("uint16", "uint32")

    def write(self, shard: Shard) -> None:
        ids, index, metadata = shard.names
        _write_ends(shard, shard.create(index), "<u8")
        lines = (f"cpbpe {__version__}|{shard.dtype.itemsize}", str(shard.tokens), in_words(shard.tokens))
        shard.create(metadata).write("\n".join(lines).encode())
        shard.take_tokens(ids)

    def offsets(self, path: str, documents: int, tokens: int) -> Offsets:
        return Offsets(path, np.memmap(path, "<u8", "r"), documents, tokens, are_ends=True)


def in_words(tokens: int) -> str:
    """A number of tokens for people, as the package humanize writes it: with three digits.

    >>> in_words(7), in_words(1500), in_words(999_999)
    ('7.00 T', '1.50 kT', '1.00 MT')
    """
    exponent = math.floor(math.log10(tokens)) if tokens else 0
    for place in (exponent, exponent + 1):
        digits, scaled = 2 - place % 3, tokens / 10 ** (place // 3 * 3)
        if round(scaled, digits) < 10 ** (place % 3 + 1):  # otherwise rounding adds a digit
            break
    return f"{scaled:.{digits}f} {('', 'k', 'M', 'G', 'T', 'P', 'E')[place // 3]}T"


# --- Dolma ----------------------------------------------------------------------------------------


class Dolma(MappedFormat):
    """Dolma and OLMo: ids, and a table with a line for each document.

    Although its name ends in .npy, the first file has no numpy header: OLMo maps it as raw ids. The columns
    of the table are where the document begins and ends in the ids, a name for it, its file, and its line or
    record in that file.
    """

    name = "dolma"
    files = ("{name}.npy", "{name}.csv.gz")
    dtypes = ("uint16", "uint32")
    needs_places = True

    def write(self, shard: Shard) -> None:
        ids, table = shard.names
        # The gzip header has neither a name nor a time, so that the same documents give the same bytes.
        with gzip.GzipFile("", "wb", 6, shard.create(table), mtime=0) as packed:
            for chunk in shard.chunks():
                lines = io.StringIO(newline="")
                columns = (chunk.ends - chunk.lengths, chunk.ends, chunk.files, chunk.records)
                csv.writer(lines).writerows(
                    (begin, end, f"{shard.sources[file]}:{record}", shard.sources[file], record)
                    for begin, end, file, record in zip(*(column.tolist() for column in columns), strict=True)
                )
                packed.write(lines.getvalue().encode(errors="surrogateescape"))
        shard.take_tokens(ids)

    def offsets(self, path: str, documents: int, tokens: int) -> Offsets:
        """Read the table, which cannot be mapped. The result takes 8 bytes of memory for each document."""
        try:
            with gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape", newline="") as lines:
                ends = np.fromiter((int(row[1]) for row in csv.reader(lines)), "<i8", documents)
        except (LookupError, OverflowError, EOFError, gzip.BadGzipFile, zlib.error, csv.Error):
            raise broken(path) from None
        return Offsets(path, ends, documents, tokens, are_ends=True)


# --- MDS ------------------------------------------------------------------------------------------


class Mds(Format):
    """MDS, the format of mosaicml-streaming: samples with one array each, and a list of all shards.

    A sample is a document, and its only column is `tokens`, an array. It is written here rather than by that
    library's own writer, which imports PyTorch, cannot be continued after an interruption, and encodes
    documents one by one. The tests compare the files with those of that writer, byte by byte.
    """

    name = "mds"
    files = ("{split}/shard.{number:05}.mds", "{split}/index.json")
    usual_size = "32MiB"  # of ids: well below the 64 MiB that the library recommends, headers included

    most_bytes = 1 << 32
    """Offsets are uint32."""
    dimension = 1 << 2
    """How a shape begins: the number of dimensions, 1, above two bits for the width of lengths."""

    def dtype(self, vocab_size: int) -> str:
        """int32, as llm-foundry writes, because PyTorch supports few operations on unsigned integers."""
        return "int32"

    def check(self, shard_bytes: int | None) -> None:
        if shard_bytes is not None and shard_bytes > self.most_bytes // 2:
            raise ValueError(
                f"{named('shard_size')}: a shard of MDS has 32-bit offsets; choose at most 2GB of ids"
            )

    def write(self, shard: Shard) -> None:
        item = shard.dtype.itemsize
        file = shard.create(shard.names[0])
        config = json.dumps(self._config(shard.dtype.name), sort_keys=True).encode()
        # 1. Where each sample ends.
        at = 4 + 4 * (shard.documents + 1) + len(config)
        total = at + sum(int(self._sizes(chunk, item).sum()) for chunk in shard.chunks())
        if total >= self.most_bytes:
            raise ValueError(
                f"a shard of MDS has 32-bit offsets, and this one would have {total:,} bytes; give a smaller "
                f"{named('shard_size')}"
            )
        file.write(np.uint32(shard.documents))
        file.write(np.uint32(at))
        for chunk in shard.chunks():
            ends = np.cumsum(self._sizes(chunk, item)) + at
            file.write(ends.astype("<u4"))
            at = int(ends[-1])
        file.write(config)
        # 2. The samples: the size of the column, the shape of the array, and its ids.
        for chunk in shard.chunks():
            data = memoryview(chunk.ids.tobytes())
            ends_of_data = (np.cumsum(chunk.lengths) * item).tolist()
            parts: list[Any] = []
            begin = 0
            for length, end in zip(chunk.lengths.tolist(), ends_of_data, strict=True):
                width = 0 if length < 1 << 8 else 1 if length < 1 << 16 else 2
                shape = bytes([self.dimension | width]) + length.to_bytes(1 << width, "little")
                parts += ((len(shape) + end - begin).to_bytes(4, "little"), shape, data[begin:end])
                begin = end
            file.write(b"".join(parts))

    def index(self, shards: Sequence[dict[str, Any]], dtype: str) -> dict[str, bytes]:
        entries = []
        for shard in shards:
            file = shard["files"][0]
            raw = {"basename": file["name"].rpartition("/")[2], "bytes": file["size"], "hashes": {}}
            samples = {"raw_data": raw, "samples": shard["documents"], "zip_data": None}
            entries.append(self._config(dtype) | samples)
        content = json.dumps({"version": 2, "shards": entries}, sort_keys=True)
        return {f"{shards[0]['split']}/index.json": content.encode()}

    def _config(self, dtype: str) -> dict[str, Any]:
        return {
            "version": 2,
            "format": "mds",
            "compression": None,
            "hashes": [],
            "size_limit": 1 << 26,
            "column_names": ["tokens"],
            "column_encodings": [f"ndarray:{dtype}"],
            "column_sizes": [None],
        }

    def _sizes(self, chunk: Chunk, item: int) -> NDArray[np.int64]:
        """How many bytes each sample has."""
        widths = np.where(chunk.lengths < 1 << 8, 1, np.where(chunk.lengths < 1 << 16, 2, 4))
        return 4 + 1 + widths + chunk.lengths * item


# --- Parquet, Arrow -------------------------------------------------------------------------------


class Parquet(Format):
    """Parquet, with a row for each document, and a row group for each million ids or so.

    Its columns are `input_ids`, `source` (the file) and `record` (the line or record in it, from 1).
    """

    name = "parquet"
    files = ("{split}-{number:05}.parquet",)
    needs_places = True
    usual_size = "100M"

    def dtype(self, vocab_size: int) -> str:
        """int32, because PyTorch supports few operations on unsigned integers. Both formats store it well."""
        return "int32"

    def check(self, shard_bytes: int | None) -> None:
        try:
            with importing:
                import pyarrow  # noqa: F401
        except ImportError:
            raise missing(f"{given('to', self.name)} needs pyarrow", "pyarrow") from None

    def write(self, shard: Shard) -> None:
        with importing:
            import pyarrow
        ids = pyarrow.list_(getattr(pyarrow, shard.dtype.name)())
        schema = pyarrow.schema(
            [("input_ids", ids), ("source", pyarrow.string()), ("record", pyarrow.int64())]
        )
        file = pyarrow.PythonFile(shard.create(shard.names[0]), "w")
        with self._writer(file, schema) as writer:
            for chunk in shard.chunks():
                offsets = np.concatenate(([0], np.cumsum(chunk.lengths)))
                if offsets[-1] >= 1 << 31:
                    raise ValueError(
                        f"a document has {int(chunk.lengths.max()):,} tokens, and a list of Arrow holds "
                        f"fewer than 2**31; give {given('to', 'npy')}, or split the document"
                    )
                lists = pyarrow.ListArray.from_arrays(offsets.astype(np.int32), pyarrow.array(chunk.ids))
                names = [
                    shard.sources[file].encode(errors="replace").decode() for file in chunk.files.tolist()
                ]
                columns = [lists, pyarrow.array(names, pyarrow.string()), pyarrow.array(chunk.records)]
                writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))

    def _writer(self, file: Any, schema: Any) -> Any:
        """A writer of pyarrow for this format: a context manager with `write_batch`."""
        with importing:
            from pyarrow.parquet import ParquetWriter
        return ParquetWriter(file, schema, compression="zstd")


class Arrow(Parquet):
    """The same in Arrow's IPC file format (Feather version 2), not compressed, so that it can be mapped."""

    name = "arrow"
    files = ("{split}-{number:05}.arrow",)

    def _writer(self, file: Any, schema: Any) -> Any:
        with importing:
            from pyarrow import ipc
        return ipc.new_file(file, schema)


# --- All formats ----------------------------------------------------------------------------------

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (Npy(), Megatron(), NanoGpt(), Datatrove(), Dolma(), Mds(), Parquet(), Arrow())
}
MAPPED = {name: format for name, format in FORMATS.items() if isinstance(format, MappedFormat)}
"""The formats that `PackedTokens` reads."""
