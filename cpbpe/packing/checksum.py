"""CRC-32 of files while they are written, and of two parts that were written in another order.

A CRC can be continued where an earlier process stopped, which hashes of Python cannot. It finds damage, not
forgery.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

_POLYNOMIAL = 0xEDB88320
"""That of CRC-32, its highest power in the lowest bit, as in zlib."""
_READ_BYTES = 1 << 22


def combined(first: int, second: int, length: int) -> int:
    """The CRC of two parts, from the CRC of each and the length of the second.

    >>> combined(zlib.crc32(b"one, "), zlib.crc32(b"two"), 3) == zlib.crc32(b"one, two")
    True
    """
    # Bits that follow multiply the CRC by a power of x; the constants at both ends cancel each other out.
    return _times(first, _power_of_x(8 * length)) ^ second


def of_file(path: str, size: int, begin: int = 0) -> int | None:
    """The CRC of this many bytes of a file; None if there are fewer, or no file."""
    if not os.path.isfile(path):
        return None
    crc = 0
    with open(path, "rb") as file:
        file.seek(begin)
        while size:
            part = file.read(min(size, _READ_BYTES))
            if not part:
                return None
            crc = zlib.crc32(part, crc)
            size -= len(part)
    return crc


class Checked:
    """A file that is written from its beginning to its end, with the CRC and the size of what was written."""

    def __init__(self, path: str):
        self._file = open(path, "wb")  # noqa: SIM115
        self.crc = 0
        self.size = 0

    def write(self, data: Any) -> int:
        """Write bytes, or an array in one piece."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        return len(view)

    def flush(self) -> None:
        """For libraries that write to it."""
        self._file.flush()

    def close(self) -> None:
        """Make sure that it is on the disk, and close it."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        """Close it in whatever state it is."""
        self._file.close()


def _power_of_x(exponent: int) -> int:
    result, square = 1 << 31, 1 << 30  # 1 and x
    while exponent:
        if exponent & 1:
            result = _times(result, square)
        square = _times(square, square)
        exponent >>= 1
    return result


def _times(first: int, second: int) -> int:
    """The product of two polynomials over two elements, modulo that of CRC-32."""
    product = 0
    while first:
        if first & 1 << 31:
            product ^= second
        first = first << 1 & 0xFFFFFFFF
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product
