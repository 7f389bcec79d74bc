"""Embedding matrices from files, without loading them: .npy, and .safetensors, whose beginning is JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from cpbpe.lazy import numpy

_NAMES = (
    "embed_tokens.weight",
    "wte.weight",
    "tok_embeddings.weight",
    "word_embeddings.weight",
    "embeddings.weight",
)
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MOST_HEADER = 100_000_000


class BFloat16:
    """A matrix of bfloat16, which numpy does not have: what is taken out of it is float32."""

    ndim = 2

    def __init__(self, halves: Any):
        self._halves = halves
        self.shape = halves.shape

    def __len__(self) -> int:
        return len(self._halves)

    def __getitem__(self, rows: Any) -> Any:
        np = numpy()
        return (self._halves[rows].astype(np.uint32) << 16).view(np.float32)


def read_embeddings(path: str | os.PathLike[str], name: str | None = None) -> Any:
    """The embedding matrix of a file; `name` is that of the tensor, if a .safetensors file has several.

    >>> import numpy
    >>> numpy.save("rows.npy", numpy.zeros((10, 4), "float32"))
    >>> read_embeddings("rows.npy").shape
    (10, 4)
    """
    np, shown = numpy(), os.fspath(path)
    with open(path, "rb") as file:
        begin = file.read(8)
        if begin.startswith(b"\x93NUMPY"):
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
            if matrix.ndim != 2 or matrix.dtype.kind != "f":
                raise ValueError(
                    f"{shown}: it has {matrix.dtype} of shape {matrix.shape}, not rows of numbers"
                )
            return matrix
        length = int.from_bytes(begin, "little")
        size = os.path.getsize(path)
        if len(begin) < 8 or length > min(size - 8, _MOST_HEADER) or length < 2:
            raise ValueError(f"{shown}: it is neither a .npy file nor a .safetensors file")
        header = file.read(length)
    try:
        tensors = json.loads(header)
        entry = _chosen(tensors, name, shown)
        kind, (rows, columns), (first, last) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, LookedFor):
            raise
        raise ValueError(f"{shown}: the head of the .safetensors file is damaged: {error}") from None
    if kind not in _TYPES:
        raise ValueError(f"{shown}: its tensor is of the type {kind}; {', '.join(_TYPES)} can be read")
    dtype = np.dtype(_TYPES[kind])
    begins = 8 + length + first
    if first < 0 or last - first != rows * columns * dtype.itemsize or 8 + length + last > size:
        raise ValueError(f"{shown}: the tensor is not where the head of the file says; the file is cut off")
    matrix = np.memmap(path, dtype, "r", begins, (rows, columns))
    return BFloat16(matrix) if kind == "BF16" else matrix


class LookedFor(ValueError):  # noqa: N818
    """The tensor is not there; the message says which are."""


def _chosen(tensors: Any, name: str | None, shown: str) -> Any:
    """The entry of the embedding: by its name, by a usual name, or the only one with two dimensions."""
    there = {
        key: entry for key, entry in tensors.items() if key != "__metadata__" and len(entry["shape"]) == 2
    }
    if name is not None:
        found = [key for key in there if key == name]
    else:
        found = [key for key in there if key.endswith(_NAMES)] or (list(there) if len(there) == 1 else [])
    if len(found) != 1:
        listed = ", ".join(sorted(there)[:8]) + (", ..." if len(there) > 8 else "")
        what = f"no matrix {name!r}" if name is not None else "no matrix that is the embedding for sure"
        raise LookedFor(f"{shown}: there is {what}; name one of {listed or 'none'}")
    return there[found[0]]
