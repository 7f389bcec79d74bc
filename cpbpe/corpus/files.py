"""Files of texts: reading them in large parts, compressed or not.

`cpbpe.corpus.documents` and `cpbpe.training.corpus` know what the content means (lines, records).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from cpbpe.corpus.decompression import Decompressed
from cpbpe.corpus.kinds import COMPRESSED, HEAD_BYTES, is_no_text
from cpbpe.errors import CorpusError

PART_BYTES = 4 << 20
"""Files are read in parts of this size: large enough to make calls cheap, and small next to memory."""


def parts(
    path: str, advanced: Callable[[int], object], *, raw: bool = False, any_text: bool = False
) -> Iterator[bytes]:
    """The content of a file in parts. `advanced` is called with the number of bytes read.

    `raw` files are taken as they are, whatever they look like. With `any_text` only files that certainly are
    not text are refused.
    """
    with _open(path) as file:
        suffix = "" if raw else os.path.splitext(path.lower())[1]
        is_compressed = suffix in COMPRESSED
        opened: BinaryIO | Decompressed = Decompressed(path, suffix, file) if is_compressed else file
        size = _size(file)
        at, first = 0, True
        while True:
            part = _read(path, opened)
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
                    raise CorpusError(
                        f"{path}: became shorter while it was read: {at:,} bytes, and it had {size:,}; "
                        f"begin again when it is complete"
                    )
                return
            yield part


def shortened(
    file_parts: Iterable[bytes], longest: int, left_away: Callable[[int], object]
) -> Iterator[bytes]:
    r"""The same parts, but once a line is longer than `longest`, the rest of it is dropped.

    Lines that long are not counted anyway, so a line of any length takes little memory. `left_away` is called
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
            left_away(too_much)
            length += too_much
            part = part[too_much:]
        last = part.rfind(b"\n")
        length = len(part) - last - 1 if last >= 0 else length + len(part)
        if part:
            yield part


def _size(file: BinaryIO) -> int:
    """The size of a file on the disk; 0 if it is not one (a pipe)."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _open(path: str) -> BinaryIO:
    if path == "-":
        if sys.stdin is None:
            raise CorpusError("the standard input ('-') is closed; give a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path!r} was there when the work began, but is gone now") from None


def _read(path: str, file: BinaryIO | Decompressed) -> bytes:
    try:
        return file.read(PART_BYTES)
    except EOFError:
        raise CorpusError(f"{path}: the compressed file is cut off; copy or download it again") from None
    except OSError as error:  # errors of reading do not know the file's name
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, path) from error
