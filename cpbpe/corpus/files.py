"""Files of texts, read in large parts: decompressed, cut where lines end, and worked on by several threads.

What the content means (lines, records) is in `cpbpe.corpus.documents` and `cpbpe.training.corpus`.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

from cpbpe.corpus.find import COMPRESSED, HEAD_BYTES, is_no_text
from cpbpe.errors import CorpusError, missing, starting_a_thread
from cpbpe.lazy import importing

P = TypeVar("P")
R = TypeVar("R")

PART_BYTES = 4 << 20
"""Files are read in parts of this size: large enough to make calls cheap, and small next to memory."""


def parts(
    path: str,
    advanced: Callable[[int], object],
    *,
    raw: bool = False,
    any_text: bool = False,
    part_bytes: int | None = None,
) -> Iterator[bytes]:
    """Yield the content of a file in parts. `advanced` is called with the number of bytes read for each part.

    A `raw` file is not decompressed, and never refused. With `any_text`, other files are refused only if they
    certainly are not text. `part_bytes`: the size of a part; None: `PART_BYTES`.
    """
    with _open(path) as file:
        suffix = "" if raw else os.path.splitext(path.lower())[1]
        is_compressed = suffix in COMPRESSED
        opened: BinaryIO | Decompressed = Decompressed(path, suffix, file) if is_compressed else file
        status = os.fstat(file.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0  # (it is 0 for a pipe)
        at, first = 0, True
        while True:
            part = _read(path, opened, part_bytes or PART_BYTES)
            if first and not raw:
                what = is_no_text(part[:HEAD_BYTES], any_text)
                if what is not None:
                    raise CorpusError(
                        f"{path}: {'what is compressed in it' if is_compressed else 'the file'} {what}"
                    )
            first = False
            if file.seekable():
                before, at = at, file.tell()
                advanced(at - before)
            if not part:
                if at < size:
                    raise became_shorter(path, at, size)
                return
            yield part


def became_shorter(path: str, size: int, before: int) -> CorpusError:
    """Return the error for a file that another program cuts off."""
    return CorpusError(
        f"{path}: became shorter while it was read: {size:,} bytes, and it had {before:,}; begin again when "
        "it is complete"
    )


def shortened(file_parts: Iterable[bytes], longest: int, dropped: Callable[[int], object]) -> Iterator[bytes]:
    r"""Yield the same parts, but drop the rest of a line once it is longer than `longest`.

    Lines that long are not counted anyway, so a line of any length takes little memory. `dropped` is called
    with the number of bytes dropped, before the part in which the line ends.

    >>> list(shortened([b"ab\nlong ", b"long ", b"long\nc"], 4, print))
    5
    4
    [b'ab\nlong ', b'\nc']
    """
    length = 0  # of the line that has not ended yet
    for part in file_parts:
        end = part.find(b"\n")
        if length > longest:
            too_much = end if end >= 0 else len(part)
            dropped(too_much)
            length += too_much
            part = part[too_much:]
        last = part.rfind(b"\n")
        length = len(part) - last - 1 if last >= 0 else length + len(part)
        if part:
            yield part


def _open(path: str) -> BinaryIO:
    if path == "-":
        if sys.stdin is None:
            raise CorpusError("the standard input ('-') is closed; give a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path!r} was there when the work began, but is gone now") from None


def _read(path: str, file: BinaryIO | Decompressed, size: int) -> bytes:
    try:
        return file.read(size)
    except EOFError:
        raise CorpusError(f"{path}: the compressed file is cut off; copy or download it again") from None
    except OSError as error:  # errors of reading do not include the file's name
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, path) from error


# --- Lines ----------------------------------------------------------------------------------------

SENTENCES = re.compile(rb"[^\n]*\n+|[^\n]+")
"""Each line with the newlines that follow it."""


def split_lines(lines: bytes, keep_newlines: bool) -> list[bytes]:
    r"""Lines as sentences; with `keep_newlines` each has the newlines that follow it.

    >>> split_lines(b"a\n\nb\n", False), split_lines(b"a\n\nb\n", True)
    ([b'a', b'', b'b'], [b'a\n\n', b'b\n'])
    """
    if keep_newlines:
        sentences: list[bytes] = SENTENCES.findall(lines)
        return sentences
    return (lines[:-1] if lines.endswith(b"\n") else lines).split(b"\n") if lines else []


def whole_lines(file_parts: Iterable[bytes], keep_newlines: bool = False) -> Iterator[bytes]:
    r"""Parts of a file, cut again so that each ends where a line ends (or where a run of newlines does).

    >>> list(whole_lines([b"a\nb", b"c\n", b"d"]))
    [b'a\n', b'bc\n', b'd']
    >>> list(whole_lines([b"a\n", b"\nb", b"c"], keep_newlines=True))
    [b'a\n\n', b'bc']
    """
    # The parts of a line that has not ended. They are joined only when it ends, so that no part is copied
    # again and again.
    unfinished: list[bytes] = []
    for part in file_parts:
        if keep_newlines:
            # A run of newlines at the end may go on in the next part, so the cut is after the run before.
            end = part.rfind(b"\n", 0, len(part.rstrip(b"\n"))) + 1
            if end == 0 and unfinished and unfinished[-1].endswith(b"\n") and not part.startswith(b"\n"):
                yield b"".join(unfinished)
                unfinished = []
        else:
            end = part.rfind(b"\n") + 1
        if end:
            yield b"".join([*unfinished, memoryview(part)[:end]]) if unfinished or end < len(part) else part
            unfinished = []
        if end < len(part):
            unfinished.append(part[end:])
    if unfinished:
        yield b"".join(unfinished)


def shown_path(path: str) -> str:
    r"""A path as it is shown in a report: bytes of a name that are not text are escaped.

    >>> shown_path("caf\udce9.txt"), shown_path("-")
    ('caf\\xe9.txt', 'stdin')
    """
    if path == "-":
        return "stdin"
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


# --- Compressed files -----------------------------------------------------------------------------

_INPUT_BYTES = 1 << 18
"""How much of a compressed file is read at a time."""


class Decompressed:
    """A compressed file, to be read like an open one. `suffix` is .gz, .xz, .bz2 or .zst."""

    def __init__(self, path: str, suffix: str, file: BinaryIO):
        self._path = path
        self._kind = suffix[1:]
        self._file = file
        self._make, self._errors = _codec(path, suffix)
        self._stream: Any = None
        self._streams = 0
        self._input = b""  # read, and not yet given to a stream
        self._taken = 0  # how much of the file has been read
        self._begin = 0  # where in the file the current stream begins

    def read(self, size: int) -> bytes:
        """Return about this many bytes, or none at the end. Raise EOFError if the file is cut off."""
        parts: list[bytes] = []
        length = 0
        while length < size:
            stream = self._stream or self._next_stream()
            if stream is None:
                break
            if stream.needs_input and not self._input and not self._refill():
                raise EOFError
            # A stream that needs no input has some left. It gets no more until it has used that.
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

    def _next_stream(self) -> Any:
        """Begin the next stream, and return it, or None at the end of the file.

        There may be NUL bytes between streams.
        """
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
        if "too much memory" in str(error):
            return (
                f"{self._path}: needs more than 128 MB for looking back; decompress it with zstd --long=31 -d"
            )
        if self._begin:
            return (
                f"{self._path}: what follows the first {self._begin:,} bytes is not valid {self._kind} data "
                f"({error}); copy or download the file again, or cut it off there if nothing is missing"
            )
        return (
            f"{self._path}: is not a valid {self._kind} file ({error}); copy or download it again, or rename "
            f"it if it is not compressed"
        )


def _codec(path: str, suffix: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return a function that makes a stream, and the errors that a stream raises if its data are damaged.

    A stream has the interface of Python's decompressors: `eof`, `needs_input`, `unused_data`, `decompress`.
    """
    if suffix == ".gz":
        return _Gzip, (zlib.error,)
    if suffix == ".xz":
        with importing:
            import lzma
        return lzma.LZMADecompressor, (lzma.LZMAError,)
    if suffix == ".bz2":
        with importing:
            import bz2
        return bz2.BZ2Decompressor, (OSError, ValueError)
    if sys.version_info >= (3, 14):
        with importing:
            from compression import zstd
        return zstd.ZstdDecompressor, (zstd.ZstdError,)
    try:
        with importing:
            import zstandard
    except ImportError:
        raise missing(f"reading {path!r} needs Python 3.14 or the package zstandard", "zstandard") from None
    context = zstandard.ZstdDecompressor()
    return (lambda: _Zstandard(context)), (zstandard.ZstdError,)


class _Gzip:
    """A stream for one member of a gzip file."""

    eof, needs_input, unused_data = False, True, b""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)  # with the header and the checksum of gzip

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._zlib.decompress(data or self._zlib.unconsumed_tail, max_length)
        self.eof, self.unused_data = self._zlib.eof, self._zlib.unused_data
        self.needs_input = len(out) < max_length
        return out


class _Zstandard:
    """A stream for one frame of a Zstandard file, read with the package zstandard.

    The package returns everything that its input decompresses to, which can be 30,000 times as long. So it
    gets `STEP` bytes at a time. (A block has at least 4 bytes, and decompresses to at most 128 KB.)
    """

    STEP = 1 << 9

    eof, needs_input, unused_data = False, True, b""

    def __init__(self, context: Any):
        self._frame = context.decompressobj()
        self._rest = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        rest, at = data or self._rest, 0
        parts: list[bytes] = []
        length = 0
        while length < max_length and at < len(rest) and not self.eof:
            step = rest[at : at + self.STEP]
            at += len(step)
            parts.append(self._frame.decompress(step))
            length += len(parts[-1])
            self.eof = self._frame.eof
        self._rest = rest[at:]
        self.needs_input = not self._rest
        if self.eof:
            self.unused_data = self._frame.unused_data + self._rest
        return b"".join(parts)


# --- Threads --------------------------------------------------------------------------------------


def in_order(parts: Iterable[P], work: Callable[[P], R], threads: int) -> Generator[R, None, None]:
    """Yield the results of the work on all parts, in the order of the parts.

    An error, be it from `work` or from the iteration over the parts, is raised after the results of all
    parts before it.

    One thread does all the work on a part. So what happens between calls of the core, such as making lists,
    also runs while other threads are in the core. Only as many parts are in memory as keep the threads busy.
    No thread is alive after the last result, or once the iterator is closed.

    >>> list(in_order(range(5), lambda number: number * number, 2))
    [0, 1, 4, 9, 16]
    """
    if threads < 2:
        yield from map(work, parts)
        return
    with importing:
        from concurrent.futures import Future, ThreadPoolExecutor
        from contextvars import copy_context  # with it, messages spell options as they do here

    def submitted() -> Iterator[Future[R]]:
        try:
            for part in parts:
                with starting_a_thread():
                    future = pool.submit(copy_context().run, work, part)
                yield future
        except Exception as error:
            failed: Future[R] = Future()
            failed.set_exception(error)
            yield failed

    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for future in submitted():
                waiting.append(future)
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
