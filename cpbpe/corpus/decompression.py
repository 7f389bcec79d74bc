"""Compressed files of every kind: streams, one after the other, each of which must be complete.

If Python's readers cannot understand what follows the first stream, they treat it as the end of the file. So
one damaged byte could silently lose most of a corpus. Here it is an error. No reader takes more memory than
it is allowed, however well its file is compressed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol, cast

from cpbpe.errors import CorpusError

_INPUT_BYTES = 1 << 18
"""How much of a compressed file is read at a time."""


class _Stream(Protocol):
    """One stream, with the interface of Python's decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def needs_input(self) -> bool:
        """Whether it returns nothing more without more data."""

    @property
    def unused_data(self) -> bytes:
        """The data after its end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Take data, and return some of its decompressed content."""


class Decompressed:
    """A compressed file, to be read like an open one. `suffix` is .gz, .xz, .bz2 or .zst."""

    def __init__(self, path: str, suffix: str, file: BinaryIO):
        self._path = path
        self._kind = suffix[1:]
        self._file = file
        self._make, self._errors = _codec(path, suffix)
        self._stream: _Stream | None = None
        self._streams = 0
        self._input = b""  # read, and not yet given to a stream
        self._taken = 0  # how much of the file has been read
        self._begin = 0  # where in the file the current stream begins

    def read(self, size: int) -> bytes:
        """About this many bytes; none at the end. EOFError if the file is cut off."""
        parts: list[bytes] = []
        length = 0
        while length < size:
            stream = self._stream or self._next_stream()
            if stream is None:
                break
            if stream.needs_input and not self._input and not self._refill():
                raise EOFError
            data, self._input = (self._input, b"") if stream.needs_input else (b"", self._input)
            try:
                parts.append(stream.decompress(data, size - length))
            except self._errors as error:
                raise CorpusError(self._damaged(error)) from error
            length += len(parts[-1])
            if stream.eof:
                self._input = stream.unused_data
                self._stream = None
        return b"".join(parts)

    def _refill(self) -> bool:
        self._input = self._file.read(_INPUT_BYTES)
        self._taken += len(self._input)
        return bool(self._input)

    def _next_stream(self) -> _Stream | None:
        """The stream that follows, or None at the end of the file. There may be NUL bytes between streams."""
        while True:
            if self._streams:
                self._input = self._input.lstrip(b"\0")
            if self._input:
                break
            if not self._refill():
                if not self._streams:
                    raise EOFError
                return None
        self._begin = self._taken - len(self._input)
        self._stream = self._make()
        self._streams += 1
        return self._stream

    def _damaged(self, error: Exception) -> str:
        if self._begin:
            return (
                f"{self._path}: what follows the first {self._begin:,} bytes is not valid {self._kind} data "
                f"({error}); copy or download the file again, or cut it off there if nothing is missing"
            )
        return (
            f"{self._path}: is not a valid {self._kind} file ({error}); copy or download it again, or rename "
            f"it if it is not compressed"
        )


def _codec(path: str, suffix: str) -> tuple[Callable[[], _Stream], tuple[type[Exception], ...]]:
    """A function that makes a stream, and the errors that it raises if its data are damaged."""
    if suffix == ".gz":
        import zlib

        return _Gzip, (zlib.error,)
    if suffix == ".xz":
        import lzma

        return lzma.LZMADecompressor, (lzma.LZMAError,)
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2Decompressor, (OSError, ValueError)
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, (zstd.ZstdError,)
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"reading {path!r} needs Python 3.14 or the package zstandard: pip install 'cpbpe[zst]'"
        ) from None
    context = zstandard.ZstdDecompressor()
    return (lambda: _Zstandard(context)), (zstandard.ZstdError,)


class _Gzip:
    """A member of a gzip file."""

    def __init__(self) -> None:
        import zlib

        self._zlib = zlib.decompressobj(wbits=31)  # with the header and the checksum of gzip
        self._is_full = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._is_full

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._zlib.decompress(data or self._zlib.unconsumed_tail, max_length)
        self._is_full = len(out) == max_length
        return out


class _Zstandard:
    """A frame of a Zstandard file, read with the package zstandard.

    It returns everything that the data decompresses to, which could be 30,000 times as much. So it is given
    little at a time: a block has at least 4 bytes and decompresses to at most 128 KB.
    """

    STEP = 1 << 9

    def __init__(self, context: Any):
        self._frame = context.decompressobj()
        self._rest = b""
        self._at = 0

    @property
    def eof(self) -> bool:
        return cast(bool, self._frame.eof)

    @property
    def needs_input(self) -> bool:
        return self._at == len(self._rest)

    @property
    def unused_data(self) -> bytes:
        unused: bytes = self._frame.unused_data
        return unused + self._rest[self._at :]

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if data:
            self._rest, self._at = data, 0
        parts: list[bytes] = []
        length = 0
        while length < max_length and self._at < len(self._rest) and not self._frame.eof:
            step = self._rest[self._at : self._at + self.STEP]
            self._at += len(step)
            parts.append(self._frame.decompress(step))
            length += len(parts[-1])
        return b"".join(parts)
