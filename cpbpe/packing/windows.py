"""Packed tokens in windows of a fixed length, each with the boundaries of its documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from cpbpe.lazy import imported, numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class _Tokens(Protocol):
    """What windows need of `PackedTokens`."""

    @property
    def tokens(self) -> int:
        """How many tokens there are."""

    def ids(self, begin: int, end: int) -> NDArray[np.integer]:
        """Some of them."""

    def starts(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where the document of the first of them begins, and where the following ones do."""


@dataclass(frozen=True)
class Window:
    """A window, or several as the rows of arrays."""

    ids: NDArray[np.integer]
    """The ids."""
    segments: NDArray[np.int32]
    """For each id, which document of the window it belongs to: 0 for the first. Attention that must not cross
    documents compares these."""
    positions: NDArray[np.int64]
    """For each id, where it is in its document. The first window of a document begins with 0; a document that
    goes on from the window before goes on counting."""

    def starts(self) -> NDArray[np.bool_]:
        """For each id, whether a document begins with it."""
        begins: NDArray[np.bool_] = self.positions == 0
        return begins

    def torch(self) -> dict[str, Any]:
        """The three as tensors of int64, by their names."""
        try:
            torch = imported("torch")
        except ImportError:
            raise ImportError("torch() needs PyTorch: pip install torch") from None
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

    def __init__(self, tokens: _Tokens, length: SupportsIndex, stride: SupportsIndex | None = None):
        self._tokens = tokens
        self.length = _positive("length", length)
        """How many tokens a window has."""
        self.stride = self.length if stride is None else _positive("stride", stride)
        """How far it is from one window to the next."""

    def __len__(self) -> int:
        return max(0, (self._tokens.tokens - self.length) // self.stride + 1)

    def __getitem__(self, index: SupportsIndex) -> Window:
        """One window. Its ids are mapped from the file, if they lie in one."""
        count, number = len(self), as_index(index)
        if not -count <= number < count:
            raise IndexError(f"window {number} is out of range: there are {count:,}")
        np = numpy()
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
        np, count = numpy(), len(self)
        for first in range(0, count - rows + 1 if drop_last else count, rows):
            windows = [self[number] for number in range(first, min(first + rows, count))]
            names = ("ids", "segments", "positions")
            yield Window(*(np.stack([getattr(window, name) for window in windows]) for name in names))


def _positive(name: str, value: SupportsIndex) -> int:
    try:
        number = as_index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number
