"""What a format is: how ids are stored, and how the files of a whole shard are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cpbpe.lazy import numpy
from cpbpe.packing.spool import Chunk, Output, Shard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_UINT16 = 1 << 16
"""How many ids an uint16 can tell apart."""


class Format(ABC):
    """A format of token files. It has no state."""

    name: ClassVar[str]
    """Its name in options."""
    dtypes: ClassVar[tuple[str, ...]] = ("uint16", "uint32", "int32")
    """The types of ids that its readers know."""
    header: ClassVar[int] = 0
    """How many bytes its file of ids begins with; they are written last."""
    needs_places: ClassVar[bool] = False
    """Whether it says where documents come from."""
    usual_size: ClassVar[str | None] = None
    """The size of shards if none is given; None: everything in one."""

    def dtype(self, vocab_size: int) -> str:
        """The type of ids that its own tools choose for a vocabulary of this size."""
        return "uint16" if vocab_size <= MOST_UINT16 else "uint32"

    def check(self, dtype: str, shard_bytes: int | None) -> None:  # noqa: B027  # most have nothing to check
        """Raise an error if something needed is not there, or if shards of this size cannot be."""

    def first_files(self, split: str, number: int | None) -> Sequence[str]:
        """Names of files by which a shard, perhaps of another run, is recognized."""
        return ()

    @abstractmethod
    def write(self, shard: Shard, out: Output) -> None:
        """Write the files of a shard."""

    def index(self, shards: Sequence[dict[str, Any]], dtype: str) -> dict[str, bytes]:
        """Files that list all shards of one split, given their entries in the manifest."""
        return {}


class MappedFormat(Format):
    """A format whose files can be mapped into memory, which `PackedTokens` does."""

    @abstractmethod
    def tokens_file(self, files: Sequence[str]) -> str:
        """Which of a shard's files holds the ids."""

    @abstractmethod
    def offsets(self, paths: Sequence[str], documents: int, tokens: int) -> Offsets:
        """Where documents begin and end, from the files of a shard; mapped into memory, if possible."""


class Offsets:
    """Where each document of a shard begins and ends, taken from the values that a format stores."""

    def __init__(self, values: NDArray[Any], total: int, *, unit: int = 1, are_ends: bool = False):
        """`values`: a value for each document, where it begins or ends. `unit`: how many make a token."""
        self._values = values
        self._total = total
        self._unit = unit
        self._are_ends = are_ends

    def part(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where the documents from `begin` to `end` begin, and where the last of them ends."""
        np = numpy()
        if self._are_ends:
            inner = np.asarray(self._values[max(begin - 1, 0) : end]).astype(np.int64)
            ends: NDArray[Any] = inner if begin else np.append(np.zeros(1, np.int64), inner)
            return ends
        inner = np.asarray(self._values[begin : end + 1]).astype(np.int64) // self._unit
        begins: NDArray[Any] = np.append(inner, self._total) if end == len(self._values) else inner
        return begins

    def document_at(self, token: int) -> int:
        """Which document a token belongs to."""
        place = int(numpy().searchsorted(self._values, token * self._unit, "right"))
        return place if self._are_ends else place - 1


def write_ends(shard: Shard, file: Any, dtype: Any) -> None:
    """Write where each document ends."""
    for chunk in shard.chunks():
        file.write(chunk.ends.astype(dtype))


def npy_header(dtype: Any, length: int, size: int) -> bytes:
    """The header of a .npy file (version 1.0) with one dimension, in exactly this many bytes."""
    fields = f"{{'descr': {numpy().dtype(dtype).str!r}, 'fortran_order': False, 'shape': ({length},), }}"
    text = fields.encode().ljust(size - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + (size - 10).to_bytes(2, "little") + text


__all__ = ["Chunk", "Format", "MappedFormat", "Offsets", "Output", "Shard", "npy_header", "write_ends"]
