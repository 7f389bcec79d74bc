"""Readers of the files of each format, in as few lines as possible, which share no code with the writers."""

import csv
import gzip
import json
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[list[int]]


def cut(ids: Any, ends: Any) -> Rows:
    """The ids of each document, which are all ids."""
    assert [0, *ends][-1] == len(ids)
    begins = [0, *list(ends)[:-1]]
    return [list(map(int, ids[begin:end])) for begin, end in zip(begins, ends, strict=True)]


def npy(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    for path in sorted(folder.glob(f"{split}*.npy")):
        ids = np.load(path)
        assert ids.dtype == dtype
        offsets = np.load(path.with_suffix(".offsets"))
        assert offsets[0] == 0
        assert offsets[-1] == len(ids)
        yield cut(ids, offsets[1:])


def nanogpt(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    for path in sorted(folder.glob(f"{split}*.bin")):
        yield cut(np.fromfile(path, dtype), np.load(path.with_suffix(".offsets"))[1:])


def megatron(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    for path in sorted(folder.glob(f"{split}*_text_document.bin")):
        index = path.with_suffix(".idx").read_bytes()
        magic, version, code, count, documents = struct.unpack_from("<9sQBQQ", index)
        assert (magic, version, documents) == (b"MMIDIDX\0\0", 1, count + 1)
        assert {8: "uint16", 4: "int32"}[code] == dtype
        lengths = struct.unpack_from(f"<{count}i", index, 34)
        pointers = struct.unpack_from(f"<{count}q", index, 34 + 4 * count)
        assert struct.unpack_from(f"<{count + 1}q", index, 34 + 12 * count) == tuple(range(count + 1))
        assert len(index) == 34 + 12 * count + 8 * (count + 1)
        data = path.read_bytes()
        rows = [np.frombuffer(data, dtype, *at).tolist() for at in zip(lengths, pointers, strict=True)]
        assert sum(lengths) * np.dtype(dtype).itemsize == len(data)
        yield rows


def datatrove(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    for path in sorted((folder / split).glob("*.ds")):
        ids = np.fromfile(path, dtype)
        lines = path.with_name(f"{path.name}.metadata").read_text().split("\n")
        assert lines[0].split("|")[1] == str(ids.itemsize)
        assert lines[1] == str(len(ids))
        yield cut(ids, np.fromfile(path.with_name(f"{path.name}.index"), "<u8").tolist())


def dolma(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    for path in sorted(folder.glob(f"{split}*.npy")):  # in spite of their names, these have no header
        ids = np.fromfile(path, dtype)
        with gzip.open(path.with_suffix(".csv.gz"), "rt", newline="") as file:
            table = list(csv.reader(file))
        begins, ends = ([int(row[place]) for row in table] for place in (0, 1))
        assert begins == [0, *ends[:-1]]
        assert all(row[2] == f"{row[3]}:{row[4]}" for row in table)
        yield cut(ids, ends)


def mds(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
    index = folder / split / "index.json"
    shards = json.loads(index.read_text())["shards"] if index.exists() else []
    for shard in shards:
        data = (folder / split / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"]
        (count,) = struct.unpack_from("<I", data)
        assert count == shard["samples"]
        offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
        assert shard["column_encodings"] == [f"ndarray:{dtype}"]
        rows = []
        for begin, end in pairwise(offsets):
            assert struct.unpack_from("<I", data, begin) == (end - begin - 4,)
            kind = data[begin + 4]
            assert kind >> 2 == 1  # dimensions
            width = 1 << (kind & 3)
            length = int.from_bytes(data[begin + 5 : begin + 5 + width], "little")
            ids = np.frombuffer(data[begin + 5 + width : end], dtype)
            assert len(ids) == length
            rows.append(ids.tolist())
        assert offsets[-1] == len(data)
        yield rows


def tables(suffix: str, read: Callable[[Path], Any]) -> Callable[[Path, str, str], Iterator[Rows]]:
    def decode(folder: Path, split: str, dtype: str) -> Iterator[Rows]:
        for path in sorted(folder.glob(f"{split}-*.{suffix}")):
            table = read(path)
            assert table.schema.names == ["input_ids", "source", "record"]
            assert table.schema.field("input_ids").type.value_type == dtype
            yield table.column("input_ids").to_pylist()

    return decode


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path)


def _arrow(path: Path) -> Any:
    import pyarrow.ipc

    with pyarrow.ipc.open_file(path) as file:
        return file.read_all()


DECODE: dict[str, Callable[[Path, str, str], Iterator[Rows]]] = {
    "npy": npy,
    "megatron": megatron,
    "nanogpt": nanogpt,
    "datatrove": datatrove,
    "dolma": dolma,
    "mds": mds,
    "parquet": tables("parquet", _parquet),
    "arrow": tables("arrow", _arrow),
}
"""For each format: the documents of each shard of a split, in order."""

DTYPES = {
    "npy": ["uint16", "uint32", "int32"],
    "megatron": ["uint16", "int32"],
    "nanogpt": ["uint16", "uint32", "int32"],
    "datatrove": ["uint16", "uint32"],
    "dolma": ["uint16", "uint32"],
    "mds": ["uint16", "uint32", "int32"],
    "parquet": ["uint16", "uint32", "int32"],
    "arrow": ["uint16", "uint32", "int32"],
}
"""The types that each format knows."""
