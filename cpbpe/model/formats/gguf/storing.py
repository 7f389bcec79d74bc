"""Storing values as a GGUF file has them; `container` reads them."""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Any

from cpbpe.model.formats.gguf.container import ARRAY, CODES, MAGIC, STRING

_VERSION = 3
_ALIGNMENT = 32


class ValuesFile:
    """The values of a file, as bytes: `file()` has all that were added."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def _begin(self, key: str, type: int) -> None:
        self._count += 1
        self._parts += [_text(key.encode()), struct.pack("<I", type)]

    def number(self, key: str, type: int, value: Any) -> None:
        """One number or bool."""
        self._begin(key, type)
        self._parts.append(struct.pack("<" + CODES[type], value))

    def text(self, key: str, value: str) -> None:
        """One text."""
        self._begin(key, STRING)
        self._parts.append(_text(value.encode(errors="replace")))

    def texts(self, key: str, values: list[bytes]) -> None:
        """An array of texts."""
        self._begin(key, ARRAY)
        self._parts.append(struct.pack("<IQ", STRING, len(values)))
        self._parts += map(_text, values)

    def numbers(self, key: str, type: int, values: array[Any]) -> None:
        """An array of numbers."""
        self._begin(key, ARRAY)
        if sys.byteorder == "big":
            values = values[:]
            values.byteswap()
        self._parts += [struct.pack("<IQ", type, len(values)), values.tobytes()]

    def file(self) -> bytes:
        """The file: no tensors, and filled up as if there were some."""
        data = b"".join([MAGIC, struct.pack("<IQQ", _VERSION, 0, self._count), *self._parts])
        return data + bytes(-len(data) % _ALIGNMENT)


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text
