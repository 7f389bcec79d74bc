"""The container: a GGUF file begins with named values of many types, and only these are read.

The tensors follow, which can be tens of gigabytes. So a file is read from the front, part by part, up to
the end of the values. A memory map is no alternative: it would read no less, because the values have to be
walked one by one; a pipe cannot be mapped; and a file that becomes shorter while it is mapped kills the
process.

Every length is compared with the bytes that are there before memory of that size is taken. `walk` can skip
arrays without making Python values of them, and so finds the end of the values. `ValuesFile` writes values.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, NoReturn

from cpbpe.errors import ModelError
from cpbpe.spelling import sized

MAGIC = b"GGUF"
VERSIONS = (1, 2, 3)
MAX_BYTES = 1 << 28
"""How many bytes may precede the tensors. The largest vocabularies with their merges need a tenth of this."""

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
CODES = dict(
    zip(
        (UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, UINT64, INT64, FLOAT64),
        "BbHhIifBQqd",
        strict=True,
    )
)
"""The types of numbers, with the letters that `array` and `struct` have for them."""
_NAMES = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array"),
    *("uint64", "int64", "float64"),
)
_MAX_DEPTH = 8
"""How deeply arrays may be nested. No known file has an array of arrays."""
_PART = 1 << 20


class Value(NamedTuple):
    """A value, and its type as a message calls it."""

    type: str
    """For example "uint32", or "array of string"."""
    content: Any
    """A number, a bool, bytes for a text, and for arrays an `array`, or a list of texts or of arrays."""


def head_of(file: BinaryIO, begun: bytes) -> bytes:
    """Return the beginning of a file up to the tensors; up to 1 MiB more is read. `begun` was read before."""
    source = _Source(bytearray(begun), file)
    for _ in walk(source, lambda key: False):
        pass
    return bytes(source.data[: source.at])


def values(data: bytes, wanted: Callable[[str], bool]) -> dict[str, Value]:
    """Return the values in a file whose keys are wanted."""
    return dict(walk(_Source(data), wanted))


class _Source:
    """Bytes that are read from front to back; from a file, in parts, as they are needed."""

    def __init__(self, data: bytes | bytearray, file: BinaryIO | None = None):
        self.data = data
        self.at = 0
        self.place = "the header"
        """What is being read, for messages."""
        self.order = "<"
        self.wide = True
        """Whether lengths are 64 bits."""
        self._file = file

    def need(self, size: int) -> int:
        """Make sure that this many more bytes are there, skip them, and return where they begin."""
        begin, end = self.at, self.at + size
        if end > len(self.data):
            self._read(end)
        self.at = end
        return begin

    def _read(self, end: int) -> None:
        if end > MAX_BYTES:
            wrong(
                f"{self.place} reaches to byte {end:,}, and values have {sized(MAX_BYTES)} at most; the "
                f"file is damaged, or it is not a model"
            )
        while self._file is not None and isinstance(self.data, bytearray) and len(self.data) < end:
            part = self._file.read(max(_PART, min(end - len(self.data), 16 * _PART)))
            if not part:
                self._file = None
                break
            self.data += part
        if end > len(self.data):
            wrong(
                f"it is truncated: {self.place} needs the bytes up to {end:,}, and the file ends after "
                f"{len(self.data):,}; copy or download it again"
            )

    def unpack(self, code: str) -> Any:
        """Read a number."""
        begin = self.need(struct.calcsize(self.order + code))
        return struct.unpack_from(self.order + code, self.data, begin)[0]

    def length(self) -> int:
        """Read a length, or a count."""
        number: int = self.unpack("Q" if self.wide else "I")
        return number

    def text(self) -> bytes:
        """Read a text, which has its length in front."""
        size = self.length()
        begin = self.need(size)
        return bytes(self.data[begin : begin + size])


def walk(source: _Source, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Value]]:
    """Yield the wanted values with their keys. The others are checked and skipped."""
    count = _header(source)
    seen = set()
    for number in range(count):
        source.place = f"the key of value {number + 1} of {count}"
        raw = source.text()
        try:
            key = raw.decode()
        except UnicodeDecodeError:
            wrong(f"{source.place} is {shown(raw)}, which is not UTF-8")
        if key in seen:
            wrong(f"the key {shown(key)} occurs twice")
        seen.add(key)
        source.place = f"the value of {shown(key)}"
        type = source.unpack("I")
        keep = wanted(key)
        value = _value(source, type, keep)
        if keep:
            yield key, Value(*value)


def _header(source: _Source) -> int:
    """Read the header, and return how many values follow."""
    begin = source.need(8)
    if source.data[begin : begin + 4] != MAGIC:
        wrong("it does not begin with the letters GGUF")
    version = int.from_bytes(source.data[4:8], "little")
    if version & 0xFFFF == 0 and version:  # written on a big-endian machine
        source.order = ">"
        version = int.from_bytes(source.data[4:8], "big")
    if version not in VERSIONS:
        wrong(f"its version is {version}, and cpbpe knows the versions 1, 2 and 3")
    source.wide = version > 1
    source.length()  # how many tensors there are
    count = source.length()
    if count > MAX_BYTES // 9:  # a key, a type and a value take at least 9 bytes (from version 2 on, 13)
        wrong(f"it should hold {count:,} values, more than a file has room for")
    return count


def _value(source: _Source, type: int, keep: bool, depth: int = 0) -> tuple[str, Any]:
    """Read a value of this type. Return the name of the type, and the value; without `keep`, skip it.

    What cannot be a value is refused, even if it is skipped (except for a bool that is neither 0 nor 1).
    """
    if type == STRING:
        return _NAMES[type], source.text()
    if type in CODES:
        number = source.unpack(CODES[type])
        if type == BOOL and keep and number > 1:
            wrong(f"{source.place} is a bool with the number {number}, and must be 0 or 1")
        return _NAMES[type], number == 1 if type == BOOL else number
    if type != ARRAY:
        _unknown(source, type)
    inner, count = source.unpack("I"), source.length()
    name = f"array of {_NAMES[inner] if inner < len(_NAMES) else inner}"
    if inner == STRING:
        return name, _texts(source, count, keep)
    if inner in CODES:
        return name, _numbers(source, CODES[inner], count, keep)
    if inner != ARRAY:
        _unknown(source, inner)
    if depth >= _MAX_DEPTH:
        wrong(f"{source.place} is nested too deeply")
    if count > MAX_BYTES // 12:
        wrong(f"{source.place} should hold {count:,} arrays, more than a file has room for")
    arrays = (_value(source, ARRAY, keep, depth + 1)[1] for _ in range(count))
    return name, [content for content in arrays if keep]


def _texts(source: _Source, count: int, keep: bool) -> list[bytes]:
    """Read many texts; without `keep`, skip them. (This loop takes most of the time, so it avoids calls.)"""
    if count > MAX_BYTES // (8 if source.wide else 4):
        wrong(f"{source.place} should hold {count:,} texts, more than a file has room for")
    made = []
    length = struct.Struct(source.order + ("Q" if source.wide else "I"))
    size, read, data, at = length.size, length.unpack_from, source.data, source.at
    for _ in range(count):
        begin = at + size
        if begin > len(data):
            source.at = at
            source.need(size)
        end = begin + read(data, at)[0]
        if end > len(data):
            source.at = begin
            source.need(end - begin)
        if keep:
            made.append(bytes(data[begin:end]))
        at = end
    source.at = at
    return made


def _numbers(source: _Source, code: str, count: int, keep: bool) -> array[Any]:
    begin = source.need(count * struct.calcsize("=" + code))
    made = array(code)  # these codes have the same sizes on all machines that Python 3.10 runs on
    made.frombytes(bytes(source.data[begin : source.at if keep else begin]))
    if (source.order == ">") != (sys.byteorder == "big"):
        made.byteswap()
    return made


def _unknown(source: _Source, type: int) -> NoReturn:
    wrong(f"{source.place} has the type {type}, which GGUF does not have (0 to {len(_NAMES) - 1})")


def shown(value: Sequence[Any]) -> str:
    """Return a value as messages show it: shortened, because it may be as long as the file."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def wrong(problem: str) -> NoReturn:
    """Raise a ModelError."""
    raise ModelError(f"not a GGUF file that cpbpe can read: {problem}")


# --- Writing --------------------------------------------------------------------------------------

_VERSION = 3
_ALIGNMENT = 32


class ValuesFile:
    """Collects values for a file; `file()` returns the file with all of them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def _begin(self, key: str, type: int) -> None:
        self._count += 1
        self._parts += [_text(key.encode()), struct.pack("<I", type)]

    def number(self, key: str, type: int, value: Any) -> None:
        """Add one number or bool."""
        self._begin(key, type)
        self._parts.append(struct.pack("<" + CODES[type], value))

    def text(self, key: str, value: str) -> None:
        """Add one text."""
        self._begin(key, STRING)
        self._parts.append(_text(value.encode(errors="replace")))

    def texts(self, key: str, values: list[bytes]) -> None:
        """Add an array of texts."""
        self._begin(key, ARRAY)
        self._parts.append(struct.pack("<IQ", STRING, len(values)))
        self._parts += map(_text, values)

    def numbers(self, key: str, type: int, values: array[Any]) -> None:
        """Add an array of numbers."""
        self._begin(key, ARRAY)
        if sys.byteorder == "big":
            values = values[:]
            values.byteswap()
        self._parts += [struct.pack("<IQ", type, len(values)), values.tobytes()]

    def file(self) -> bytes:
        """Return the file. It has no tensors, but is padded to where they would begin."""
        data = b"".join([MAGIC, struct.pack("<IQQ", _VERSION, 0, self._count), *self._parts])
        return data + bytes(-len(data) % _ALIGNMENT)


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text
