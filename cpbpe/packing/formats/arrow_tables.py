"""Parquet and Arrow: a row for each document, with the columns `input_ids`, `source` and `record`.

`source` is the file, and `record` the number of the line or record in it, from 1. An Arrow file is one of the
IPC file format, also called Feather version 2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from cpbpe.lazy import imported, numpy
from cpbpe.packing.formats.protocol import Chunk, Format, Output, Shard
from cpbpe.spelling import given


class _Tables(Format):
    needs_places = True
    usual_size = "100M"

    def dtype(self, vocab_size: int) -> str:
        """int32: PyTorch does little with unsigned integers, and both formats compress or map it well."""
        return "int32"

    def check(self, dtype: str, shard_bytes: int | None) -> None:
        _pyarrow(self.name)

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        return (f"{split}-{number or 0:05}.{self.name}",)

    def write(self, shard: Shard, out: Output) -> None:
        pyarrow = _pyarrow(self.name)
        schema = pyarrow.schema(
            [
                ("input_ids", pyarrow.list_(getattr(pyarrow, shard.dtype.name)())),
                ("source", pyarrow.string()),
                ("record", pyarrow.int64()),
            ]
        )
        (name,) = self.first_files(shard.split, shard.number)
        file = pyarrow.PythonFile(_Writable(out.create(name)), "w")
        batches = (_batch(pyarrow, schema, shard, chunk) for chunk in shard.chunks())
        with self._writer(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    @abstractmethod
    def _writer(self, file: Any, schema: Any) -> Any:
        """What writes batches to a file, as pyarrow has it: a context manager with `write_batch`."""


class Parquet(_Tables):
    """Parquet, a row group for each million ids or so."""

    name = "parquet"

    def _writer(self, file: Any, schema: Any) -> Any:
        return imported("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")


class Arrow(_Tables):
    """The IPC file format, without compression, so that it can be mapped into memory."""

    name = "arrow"

    def _writer(self, file: Any, schema: Any) -> Any:
        return imported("pyarrow.ipc").new_file(file, schema)


class _Writable:
    """A file as pyarrow wants it. pyarrow closes it, and it is closed in fact with the other ones."""

    def __init__(self, file: Any):
        self._file = file
        self.closed = False

    def write(self, data: Any) -> int:
        written: int = self._file.write(data)
        return written

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True

    def tell(self) -> int:
        size: int = self._file.size
        return size

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _batch(pyarrow: Any, schema: Any, shard: Shard, chunk: Chunk) -> Any:
    np = numpy()
    offsets = np.concatenate(([0], np.cumsum(chunk.lengths)))
    if offsets[-1] >= 1 << 31:
        raise ValueError(
            f"a document has {int(chunk.lengths.max()):,} tokens, and a list of Arrow holds fewer than "
            f"2**31; give {given('to', 'npy')}, or split the document"
        )
    ids = pyarrow.ListArray.from_arrays(pyarrow.array(offsets.astype(np.int32)), pyarrow.array(chunk.ids))
    names = [shard.sources[file].encode(errors="replace").decode() for file in chunk.files.tolist()]
    columns = [ids, pyarrow.array(names, pyarrow.string()), pyarrow.array(chunk.records)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _pyarrow(name: str) -> Any:
    try:
        return imported("pyarrow")
    except ImportError:
        raise ImportError(f"{given('to', name)} needs pyarrow: pip install 'cpbpe[parquet]'") from None
