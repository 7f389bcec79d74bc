"""`PackedTokens`: what `pack` wrote, mapped into memory, as documents and as windows of a fixed length."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import index as as_index
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from cpbpe.corpus.find import MANIFEST
from cpbpe.errors import CorpusError, missing
from cpbpe.lazy import importing, kept
from cpbpe.packing.formats import MAPPED, MappedFormat, Offsets, broken
from cpbpe.packing.manifest import Manifest, Place, damaged
from cpbpe.packing.shards import is_same
from cpbpe.spelling import counted
from cpbpe.tokenizer.ragged import Ragged

_STEP = 1 << 12
"""The bounds of this many documents are read at once."""


class PackedTokens:
    """The documents of one split, as a sequence: `len` is their number, and `packed[i]` the ids of one.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> report = cpbpe.pack(tok, ["Hi", "Hello world"], "folder", add_eos=True)
    >>> packed = PackedTokens("folder")
    >>> packed
    <cpbpe.PackedTokens: 2 documents, 5 tokens, uint16, npy>
    >>> packed[0], packed[:2]
    (array([15359,     2], dtype=uint16), <cpbpe.Ragged: 2 sequences, 5 ids>)

    Nothing is read before it is needed. A `PackedTokens` can be pickled and so given to worker processes, and
    PyTorch's DataLoader accepts it as a dataset.
    """

    def __init__(self, path: str | os.PathLike[str], split: str = "train"):
        """`path`: the folder or prefix that `pack` was given. `split`: "train" or "val"."""
        self._place = Place(path)
        if not self._place.exists():
            raise FileNotFoundError(
                f"there is no {MANIFEST} at {self._place.out!r}, so this is nothing that cpbpe.pack wrote; "
                f"give the folder, or the prefix, that it was given as out"
            )
        manifest = Manifest.load(self._place)
        if manifest.summary is None:
            raise ValueError(
                f"{self._place.out!r} is not complete; call cpbpe.pack with the same arguments once more, "
                f"and it goes on where it was interrupted"
            )
        kind = MAPPED.get(manifest.options["to"])
        if kind is None:
            raise ValueError(
                f"{self._place.out!r} holds {manifest.options['to']}, which has readers of its own; "
                f"PackedTokens reads {', '.join(MAPPED)}"
            )
        manifest.check_files(self._place)
        splits = sorted({shard["split"] for shard in manifest.shards})
        if split not in splits:
            raise ValueError(f"split must be one of {', '.join(splits)}, not {split!r}")
        self.split = split
        """The split."""
        self.format = kind.name
        """The format of the files."""
        self.dtype: np.dtype[Any] = np.dtype(manifest.options["dtype"])
        """The type of ids."""
        self._place = self._place.absolute()  # files are mapped later, and in other processes
        self._all_files = manifest.files()
        entries = [shard for shard in manifest.shards if shard["split"] == split]
        for entry in entries:
            sizes, size = [file["size"] for file in entry["files"]], self.dtype.itemsize * entry["tokens"]
            is_right = len(sizes) == len(kind.files) and sizes[0] == kind.header + size
            if not is_right or entry["documents"] > entry["tokens"]:
                counts = " with ".join(counted(entry[f"{noun}s"], noun) for noun in ("document", "token"))
                problem = f"shard {entry['number']} of {split} cannot have {counts} in files of {sizes} bytes"
                raise damaged(self._place, problem)
        self._shards = [_Shard(self._place, kind, self.dtype, entry) for entry in entries]
        self._first_documents = [0, *accumulate(shard.documents for shard in self._shards)]
        self._first_tokens = [0, *accumulate(shard.tokens for shard in self._shards)]

    # --- Documents ----------------------------------------------------------------------------------

    @property
    def documents(self) -> int:
        """How many documents there are; also `len(packed)`."""
        return self._first_documents[-1]

    @property
    def tokens(self) -> int:
        """How many tokens all of them have."""
        return self._first_tokens[-1]

    def __len__(self) -> int:
        return self._first_documents[-1]

    @overload
    def __getitem__(self, index: SupportsIndex) -> NDArray[np.integer]: ...
    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    def __getitem__(self, index: SupportsIndex | slice) -> NDArray[np.integer] | Ragged:
        """The ids of a document, mapped; or some documents, in memory."""
        count = len(self)
        if isinstance(index, slice):
            begin, end, step = index.indices(count)
            if step == 1:
                bounds = self._bounds(begin, max(begin, end))
                ids = self.ids(int(bounds[0]), int(bounds[-1])).astype(np.uint32)
                return Ragged(ids, bounds - bounds[0])
            rows = [self[document] for document in range(begin, end, step)]
            ids = np.concatenate([np.zeros(0, np.uint32), *rows]).astype(np.uint32)
            return Ragged(ids, np.cumsum([0, *map(len, rows)], dtype=np.int64))
        number = as_index(index)
        if not -count <= number < count:
            raise IndexError(f"document {number} is out of range: there are {count:,}")
        number %= count
        place = bisect_right(self._first_documents, number) - 1
        shard = self._shards[place]
        number -= self._first_documents[place]
        begin, end = shard.offsets.part(number, number + 1).tolist()
        return shard.ids[begin:end]

    def __iter__(self) -> Iterator[NDArray[np.integer]]:
        for shard in self._shards:
            for first in range(0, shard.documents, _STEP):
                bounds = shard.offsets.part(first, min(first + _STEP, shard.documents)).tolist()
                for begin, end in pairwise(bounds):
                    yield shard.ids[begin:end]

    def _bounds(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where documents begin in all tokens, and where the last of them ends."""
        parts = [np.zeros(1, np.int64)]
        for place in _places(self._first_documents, begin, end):
            first = self._first_documents[place]
            offsets = self._shards[place].offsets
            part = offsets.part(max(begin - first, 0), min(end, self._first_documents[place + 1]) - first)
            # The end of one shard is the beginning of the next, so it is kept only once.
            parts[-1] = parts[-1][:-1]
            parts.append(part + self._first_tokens[place])
        bounds: NDArray[Any] = np.concatenate(parts)
        return bounds

    # --- Tokens -------------------------------------------------------------------------------------

    def ids(self, begin: int = 0, end: int | None = None) -> NDArray[np.integer]:
        """The ids of all documents as one sequence, or the part from one token to another.

        A part that lies in one shard is mapped; others are copied.
        """
        begin, end, _ = slice(begin, end).indices(self.tokens)
        parts = []
        for place in _places(self._first_tokens, begin, end):
            first = self._first_tokens[place]
            parts.append(self._shards[place].ids[max(begin - first, 0) : end - first])
        if len(parts) == 1:
            return parts[0]
        joined: NDArray[Any] = np.concatenate([np.zeros(0, self.dtype), *parts])
        return joined

    def starts(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where the document of token `begin` begins, and where those after it begin, up to `end`."""
        found = self._bounds(self._document_at(begin), self._document_at(end - 1) + 1)[:-1]
        if not len(found) or found[0] > begin or found[-1] >= end:
            raise broken(self._place.out)
        return found

    def _document_at(self, token: int) -> int:
        place = bisect_right(self._first_tokens, token) - 1
        inside = self._shards[place].offsets.document_at(token - self._first_tokens[place])
        return self._first_documents[place] + inside

    def windows(self, length: SupportsIndex, *, stride: SupportsIndex | None = None) -> Windows:
        """All tokens in windows of a fixed length, as a sequence; see `Windows`.

        `stride`: how far a window is from the next one; by default they do not overlap. For a language model
        that learns the next token, windows of n + 1 tokens with the stride n give inputs and targets.
        """
        return Windows(self, length, stride)

    def batches(
        self,
        length: SupportsIndex,
        size: SupportsIndex = 1,
        *,
        stride: SupportsIndex | None = None,
        drop_last: bool = True,
    ) -> Iterator[Window]:
        """The windows in order, `size` of them at a time: arrays with a row for each.

        `drop_last`: leave out the last batch if it has fewer rows.
        """
        return self.windows(length, stride=stride).batches(size, drop_last=drop_last)

    def check(self) -> None:
        """Read all files of the run and compare them with their checksums. Raises ValueError."""
        for file in self._all_files:
            path = self._place.path(file["name"])
            if not is_same(path, file):
                raise broken(path)

    # --- Pickling and showing -----------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedTokens, (self._place.out, self.split)

    def __repr__(self) -> str:
        return (
            f"<cpbpe.PackedTokens: {self.documents:,} documents, {self.tokens:,} tokens, {self.dtype}, "
            f"{self.format}>"
        )


def _places(firsts: list[int], begin: int, end: int) -> range:
    """Which shards the part from `begin` to `end` lies in; `firsts` holds the beginning of each shard."""
    if begin >= end:
        return range(0)
    return range(bisect_right(firsts, begin) - 1, bisect_right(firsts, end - 1))


class _Shard:
    """One shard. Its files are mapped when they are first needed."""

    def __init__(self, place: Place, format: MappedFormat, dtype: Any, entry: dict[str, Any]):
        self.documents: int = entry["documents"]
        self.tokens: int = entry["tokens"]
        self._format = format
        self._dtype = dtype
        self._paths = [place.path(file["name"]) for file in entry["files"]]

    @kept
    def ids(self) -> NDArray[np.integer]:
        """All ids."""
        shape, header = (self.tokens,), self._format.header
        mapped = np.memmap(self._paths[0], self._dtype, "r", offset=header, shape=shape)
        return mapped.view(np.ndarray)  # slices of a plain array are made faster

    @kept
    def offsets(self) -> Offsets:
        """Where its documents begin and end."""
        path = self._paths[1]
        try:
            return self._format.offsets(path, self.documents, self.tokens)
        except CorpusError:
            raise
        except ValueError:  # there is less in the file than there should be, or no numbers
            raise broken(path) from None


# --- Windows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A window, or several as the rows of arrays."""

    ids: NDArray[np.integer]
    """The ids."""
    segments: NDArray[np.int32]
    """For each id, which document of the window it belongs to: 0 for the first. Attention that must not cross
    documents compares these."""
    positions: NDArray[np.int64]
    """For each id, its place in its document, from 0. If a document began in an earlier window, counting
    continues from there."""

    def starts(self) -> NDArray[np.bool_]:
        """For each id, whether a document begins with it."""
        begins: NDArray[np.bool_] = self.positions == 0
        return begins

    def torch(self) -> dict[str, Any]:
        """The three arrays as tensors of int64, by their names."""
        try:
            with importing:
                import torch
        except ImportError:
            raise missing("torch() needs PyTorch", "torch") from None
        names = ("ids", "segments", "positions")
        return {name: torch.from_numpy(getattr(self, name).astype("int64")) for name in names}


class Windows:
    """All tokens of a split in windows of a fixed length, as a sequence.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> report = cpbpe.pack(tok, ["Hello world", "Hi", "Hello"], "windows", add_eos=True)
    >>> windows = cpbpe.PackedTokens("windows").windows(3)
    >>> len(windows), windows[1].ids, windows[1].segments, windows[1].positions
    (2, array([15359,     2, 22557], dtype=uint16), array([0, 0, 1], dtype=int32), array([0, 1, 0]))

    Tokens at the end that do not fill a window are left out.
    """

    def __init__(self, tokens: PackedTokens, length: SupportsIndex, stride: SupportsIndex | None = None):
        self._tokens = tokens
        self.length = _positive("length", length)
        """How many tokens a window has."""
        self.stride = self.length if stride is None else _positive("stride", stride)
        """How many tokens after a window begins the next one begins."""

    def __len__(self) -> int:
        return max(0, (self._tokens.tokens - self.length) // self.stride + 1)

    def __getitem__(self, index: SupportsIndex) -> Window:
        """One window. Its ids are mapped from the file, if they lie in one."""
        count, number = len(self), as_index(index)
        if not -count <= number < count:
            raise IndexError(f"window {number} is out of range: there are {count:,}")
        begin = number % count * self.stride
        end = begin + self.length
        starts = self._tokens.starts(begin, end) - begin
        segments = np.zeros(self.length, np.int32)
        segments[starts[1:]] = 1
        segments = np.cumsum(segments, dtype=np.int32)
        return Window(self._tokens.ids(begin, end), segments, np.arange(self.length) - starts[segments])

    def __iter__(self) -> Iterator[Window]:
        return (self[number] for number in range(len(self)))

    def batches(self, size: SupportsIndex = 1, *, drop_last: bool = True) -> Iterator[Window]:
        """`size` windows at a time, as the rows of arrays."""
        return self._batches(_positive("size", size), drop_last)

    def _batches(self, rows: int, drop_last: bool) -> Iterator[Window]:
        count = len(self)
        for first in range(0, count - rows + 1 if drop_last else count, rows):
            windows = [self[number] for number in range(first, min(first + rows, count))]
            columns = zip(
                *((window.ids, window.segments, window.positions) for window in windows), strict=True
            )
            yield Window(*map(np.stack, columns))


def _positive(name: str, value: SupportsIndex) -> int:
    try:
        number = as_index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number
