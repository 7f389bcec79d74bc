"""What a corpus and an embedding show about a model: unused pieces, and rows that were hardly trained.

The indicator for rows comes from Land and Bartolo, "Fishing for Magikarp" (2024). Only weight decay and the
softmax move the rows of pieces that training never saw. So once the direction that all rows share is
subtracted, these rows point the same way. The nearer a row is to the mean of the rows that are known to be
unused, the less it has learned. `read_embeddings` reads an embedding from a file without loading all of it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from tokenize import TokenError
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import checked_text
from cpbpe.errors import CorpusError
from cpbpe.lint.checks import Subject
from cpbpe.lint.findings import MOST_EVIDENCE, Finding
from cpbpe.model.spec import PieceType
from cpbpe.spelling import given, named, sized
from cpbpe.text.drawn import quoted

FEW = 2
"""A piece that occurs this often at most is hardly used."""
_NEWLINE = "<0x0A>"
_BATCH = 4096
_ROWS = 8192
_STEPS = 12
_QUANTILE = 0.95

TABLES = (
    *("embed_tokens.weight", "wte.weight", "tok_embeddings.weight", "word_embeddings.weight"),
    "embeddings.weight",
)
"""How the names of embeddings end in .safetensors files."""
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MOST_HEADER = 100_000_000

Floats = NDArray[np.float32]


def _checked(texts: Iterable[str | bytes]) -> Iterator[str | bytes]:
    """The same texts. One that holds half of a surrogate pair is refused, with its number."""
    for number, text in enumerate(texts, 1):
        text = checked_text(text, "lint")
        try:
            _ = text.encode() if isinstance(text, str) and not text.isascii() else b""
        except UnicodeEncodeError as error:
            raise CorpusError(f"text {number} is not valid Unicode: {error}; correct it") from None
        yield text


def usage_findings(subject: Subject, texts: Iterable[str | bytes]) -> Iterator[Finding]:
    """Yield findings about a corpus: pieces that it hardly uses or not at all, and the share of bytes."""
    # 1. Count.
    counts = np.zeros(len(subject.spec.pieces), np.int64)
    every, size, number = _checked(texts), 0, 0
    while batch := list(islice(every, _BATCH)):
        found, _ = subject.engine.encode_arrays(batch, 1)
        counts += np.bincount(found, minlength=len(counts))[: len(counts)]
        size += sum(len(text if isinstance(text, bytes) else text.encode()) for text in batch)
        number += len(batch)
    total = int(counts.sum())
    of_all = f"of {total:,} tokens ({sized(size)}, {number:,} texts)"
    if not total:
        yield Finding.of("empty-corpus")
        return
    # 2. Pieces.
    reachable = [id for id in subject.text_ids if id in subject.reach.texts]
    never = [id for id in reachable if not counts[id]]
    longest = subject.named(sorted(never, key=lambda id: -len(subject.texts[id])))
    yield from subject.about("never-used", never, longest, reachable=len(reachable), of_all=of_all)
    hardly = sorted((id for id in reachable if 0 < counts[id] <= FEW), key=lambda id: counts[id])
    times = (f"{name}: {counts[id]} times" for name, id in zip(subject.named(hardly), hardly, strict=False))
    yield from subject.about("hardly-used", hardly, times, of_all=of_all)
    # 3. Bytes and unknown characters.
    for code, kind in (("byte-share", PieceType.BYTE), ("unknown-share", PieceType.UNKNOWN)):
        used = [id for id in subject.of_type(kind) if counts[id]]
        used.sort(key=lambda id: -counts[id])
        count = int(counts[used].sum())
        yield from subject.about(
            code,
            used,
            (f"{subject.texts[id]}: {counts[id]:,} times" for id in used[:MOST_EVIDENCE]),
            severity="warning" if count * 100 > total else None,
            share=100 * count / total,
            count=count,
            of_all=of_all,
            cure=_cure(kind, {subject.texts[id]: int(counts[id]) for id in used}),
        )


def _cure(kind: PieceType, counts: Mapping[str, int]) -> str:
    """What to train with to have fewer of these pieces."""
    if kind is PieceType.UNKNOWN:
        return named("byte_fallback")
    cures = {f"{given('keep_newlines', True)}, so that newlines get pieces": counts.get(_NEWLINE, 0)}
    cures[f"a higher {named('character_coverage')}"] = sum(counts.values()) - sum(cures.values())
    return ", and with ".join(sorted(filter(cures.__getitem__, cures), key=cures.__getitem__, reverse=True))


def embedding_findings(subject: Subject, matrix: Any) -> Iterator[Finding]:
    """Yield findings about the rows of an embedding."""
    # 1. Its shape.
    if getattr(matrix, "ndim", None) != 2:
        shape = getattr(matrix, "shape", type(matrix).__name__)
        raise ValueError(f"an embedding is a matrix with a row for each id, not {shape}")
    rows = len(matrix)
    if rows < subject.size:
        yield Finding.of("too-few-rows", rows=rows, last=subject.size - 1)
        return
    # 2. The rows that are known to be unused: those of ids that no text yields, and those beyond the last id.
    unused = [id for id, reason in subject.reach.reasons.items() if reason.decided]
    unused += range(subject.size, rows)
    if not unused:
        yield Finding.of("no-reference")
        return
    # 3. Subtract the direction that all rows share, and measure distances from the mean of the unused rows.
    common = _common_direction(matrix)

    def without(part: Any) -> Floats:
        rows = np.asarray(part, np.float32)
        left: Floats = rows - np.outer(rows @ common, common)
        return left

    mean = without(matrix[np.asarray(sorted(unused))]).mean(0)
    mean /= np.linalg.norm(mean) or 1.0
    distances = np.concatenate([_distance(without(part), mean) for part in _parts(matrix)])
    # 4. The rows that are as near as most of the unused ones.
    limit = float(np.quantile(distances[np.asarray(unused)], _QUANTILE))
    near = [id for id in subject.text_ids if id in subject.reach.texts and distances[id] <= limit]
    near.sort(key=lambda id: distances[id])
    shown = (f"{id} {quoted(subject.texts[id])}: distance {distances[id]:.3f}" for id in near[:10])
    yield from subject.about("undertrained", near, shown, unused=len(unused))


def _parts(matrix: Any) -> Iterator[Any]:
    for begin in range(0, len(matrix), _ROWS):
        yield matrix[begin : begin + _ROWS]


def _common_direction(matrix: Any) -> Floats:
    """The first principal direction of all rows, not centred, by power iteration."""
    direction = np.ones(matrix.shape[1], np.float32)
    for _ in range(_STEPS):
        longer = np.zeros_like(direction)
        for part in _parts(matrix):
            rows = np.asarray(part, np.float32)
            longer += rows.T @ (rows @ direction)
        norm = np.linalg.norm(longer)
        if not norm:
            break
        direction = longer / norm
    return direction


def _distance(rows: Floats, mean: Floats) -> Floats:
    """The cosine distance of each row from the mean; 1 if the row is zero."""
    norms = np.linalg.norm(rows, axis=1)
    found: Floats = 1 - (rows @ mean) / np.where(norms > 0, norms, 1)
    return found


# --- Matrices from files --------------------------------------------------------------------------


class FileRows:
    """The rows of a matrix in a file, which are read when they are asked for.

    (They are not mapped into memory: if a program cuts off a file that is mapped, the system ends the process
    that looks at it.)
    """

    def __init__(self, path: str, dtype: np.dtype[Any], begin: int, shape: tuple[int, ...]):
        self.dtype = dtype
        self.shape = shape
        self.ndim = len(shape)
        self._path = path
        self._begin = begin
        self._before = self._state()
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or begin + size > os.path.getsize(path):
            raise ValueError(f"{path}: it has no {size:,} bytes from {begin:,} on; the file is cut off")

    def _state(self) -> tuple[int, ...]:
        status = os.stat(self._path)
        return status.st_ino, status.st_size, status.st_mtime_ns

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Rows, as a slice without a step or an array of places says."""
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            return self._read(begin, end)
        places = np.asarray(rows)
        made = np.empty((len(places), *self.shape[1:]), self.dtype)
        if not len(places):
            return made
        ends = [*(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
        for first, last in pairwise([0, *ends]):  # rows that lie side by side
            made[first:last] = self._read(int(places[first]), int(places[last - 1]) + 1)
        return made

    def _read(self, begin: int, end: int) -> NDArray[Any]:
        width = math.prod(self.shape[1:])
        place = self._begin + begin * width * self.dtype.itemsize
        numbers = np.fromfile(self._path, self.dtype, (end - begin) * width, offset=place)
        if len(numbers) != (end - begin) * width or self._state() != self._before:
            raise ValueError(f"{self._path}: was changed or cut off while it was read; copy it again")
        return numbers.reshape(-1, *self.shape[1:])


class BFloat16:
    """A matrix of bfloat16, a type that numpy does not have. Indexing returns rows as float32."""

    ndim = 2

    def __init__(self, halves: FileRows | NDArray[np.uint16]):
        self._halves = halves
        self.shape = halves.shape

    def __len__(self) -> int:
        return len(self._halves)

    def __getitem__(self, rows: Any) -> Any:
        return (self._halves[rows].astype(np.uint32) << 16).view(np.float32)


def read_embeddings(path: str | os.PathLike[str], name: str | None = None) -> Any:
    """The matrix of a .npy or .safetensors file; `name` is that of the tensor, if there are several.

    >>> import numpy
    >>> numpy.save("rows.npy", numpy.zeros((10, 4), "float32"))
    >>> read_embeddings("rows.npy").shape
    (10, 4)
    """
    shown = os.fspath(path)
    with open(path, "rb") as file:
        begin = file.read(8)
        if begin.startswith(b"\x93NUMPY"):
            if name is not None:
                raise ValueError(
                    f"{shown}: a .npy file holds one matrix, which has no name; leave out {name!r}"
                )
            return _npy_rows(file, shown)
    data, head = safetensors_head(path)
    matrices = {name: tensor for name, tensor in head.items() if len(tensor.shape) == 2}
    tensor = matrices[_chosen(sorted(matrices), name, shown)]
    rows = tensor_rows(path, data, tensor)
    return BFloat16(rows) if tensor.kind == "BF16" else rows


def _npy_rows(file: BinaryIO, shown: str) -> Any:
    """The rows of a .npy file, of which the first 8 bytes, the magic and the version, have been read."""
    file.seek(0)
    npy: Any = np.lib.format
    try:
        is_first = npy.read_magic(file) == (1, 0)
        read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except (ValueError, TypeError, LookupError, SyntaxError, EOFError, TokenError) as error:
        raise ValueError(f"{shown}: numpy cannot read it: {error}") from None
    if len(shape) != 2 or dtype.kind != "f":
        raise ValueError(f"{shown}: it has {dtype} of shape {shape}, not rows of numbers")
    rows = FileRows(shown, dtype, file.tell(), shape)
    return np.load(shown, allow_pickle=False) if is_fortran else rows  # (there, columns lie together)


class Tensor(NamedTuple):
    """What the head of a .safetensors file says about a tensor."""

    kind: str
    """The type of its numbers."""
    shape: tuple[int, ...]
    first: int
    """Where it begins, from the end of the head."""
    last: int
    """Where it ends."""


def safetensors_head(path: str | os.PathLike[str]) -> tuple[int, dict[str, Tensor]]:
    """Where the data of a .safetensors file begins, and its tensors."""
    shown, size = os.fspath(path), os.path.getsize(path)
    with open(path, "rb") as file:
        begin = file.read(8)
        length = int.from_bytes(begin, "little")
        if len(begin) < 8 or length > min(size - 8, _MOST_HEADER) or length < 2:
            raise ValueError(f"{shown}: it is neither a .npy file nor a .safetensors file")
        header = file.read(length)
    try:
        return 8 + length, {
            key: _tensor(key, entry) for key, entry in json.loads(header).items() if key != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{shown}: the head of the .safetensors file is damaged: {error}") from None


def _tensor(name: str, entry: Mapping[str, Any]) -> Tensor:
    kind, shape, ends = entry["dtype"], entry["shape"], entry["data_offsets"]
    numbers = [*shape, *ends]
    if type(kind) is not str or len(ends) != 2 or not all(type(one) is int and one >= 0 for one in numbers):
        raise ValueError(f"{name!r} has {kind!r} of shape {shape} at {ends}")
    return Tensor(kind, tuple(shape), *ends)


def tensor_rows(path: str | os.PathLike[str], data: int, tensor: Tensor) -> FileRows:
    """The rows of a tensor in such a file, which are not read yet; those of bfloat16 as uint16."""
    shown, kind, shape = os.fspath(path), tensor.kind, tensor.shape
    if kind not in _TYPES:
        raise ValueError(f"{shown}: its tensor is of the type {kind}; {', '.join(_TYPES)} can be read")
    dtype = np.dtype(_TYPES[kind])
    size = math.prod(shape) * dtype.itemsize
    if tensor.first < 0 or tensor.last - tensor.first != size:
        raise ValueError(f"{shown}: the head of the file says two sizes of the tensor; copy it again")
    return FileRows(shown, dtype, data + tensor.first, shape)


def _chosen(there: Sequence[str], name: str | None, shown: str) -> str:
    """The embedding: the tensor of this name, the one with a usual name, or the only one."""
    if name is not None:
        found = [key for key in there if key == name]
    else:
        found = [key for key in there if key.endswith(TABLES)] or (list(there) if len(there) == 1 else [])
    if len(found) != 1:
        listed = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        what = f"no matrix {name!r}" if name is not None else "no matrix that is the embedding for sure"
        raise ValueError(f"{shown}: there is {what}; name one of {listed or 'none'}")
    return found[0]
