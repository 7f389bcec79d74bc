"""Files of a corpus: finding them, and reading them in large parts, compressed or not.

What a file's content means (lines, records) is the business of `cpbpe.training.corpus`.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, BinaryIO, cast

from cpbpe.errors import TrainingError
from cpbpe.spelling import given

PART_BYTES = 4 << 20
"""Files are read in parts of this size: large against the cost of a call, small against memory."""

FORMATS = ("text", "tsv", "jsonl", "parquet")
"""The formats of a corpus file."""

_SUFFIXES = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
_MAGIC = (
    (b"\x1f\x8b", "is gzip data; name it *.gz, then it is decompressed"),
    (b"\xfd7zXZ\0", "is xz data; name it *.xz, then it is decompressed"),
    (b"BZh", "is bzip2 data; name it *.bz2, then it is decompressed"),
    (b"\x28\xb5\x2f\xfd", "is Zstandard data; name it *.zst, then it is decompressed"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"PAR1", "is Parquet; name it *.parquet, or give {format}"),
    (b"\xff\xfe", "is UTF-16 or UTF-32; convert it to UTF-8, for example with 'iconv -t utf-8'"),
    (b"\xfe\xff", "is UTF-16; convert it to UTF-8, for example with 'iconv -t utf-8'"),
    (b"version https://git-lfs.github.com/", "is a Git LFS pointer; 'git lfs pull' fetches the file itself"),
)
_HEAD_BYTES = 8192


def expand(path: str) -> tuple[list[str], list[str]]:
    """The files that a path, a glob or a directory stands for; and files in a directory that are not text.

    A directory stands for every file below it, in sorted order, except those whose name begins with a dot.
    """
    if path == "-":
        return ["-"], []
    if os.path.isdir(path):
        files = sorted(_walk(path))
        text = [file for file in files if not _is_binary(file)]
        if not text:
            raise TrainingError(f"the directory {path!r} holds no text file; give another one, or a glob")
        return text, sorted(set(files) - set(text))
    if not os.path.lexists(path) and glob.has_magic(path):
        files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
        if not files:
            raise FileNotFoundError(f"no file matches {path!r}")
        return files, []
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR):
            raise
        hint = ""
        if any(character in path for character in " \n\t") and len(path) > 40:
            hint = "; to train on a text rather than on a file, give a list of texts"
        shown = path if len(path) <= 200 else path[:200] + "..."
        raise FileNotFoundError(f"no such file or directory: {shown!r}{hint}") from None
    if stat.S_ISREG(mode) and not os.access(path, os.R_OK):
        raise PermissionError(f"the file {path!r} may not be read")
    return [path], []


def format_of(path: str) -> str:
    """The format that a file's name tells; "text" for all other names.

    >>> format_of("a.jsonl.zst"), format_of("a.py")
    ('jsonl', 'text')
    """
    base = path.lower()
    for suffix in _COMPRESSED:
        base = base.removesuffix(suffix)
    return _SUFFIXES.get(os.path.splitext(base)[1], "text")


def size_of(paths: Iterable[str]) -> int | None:
    """The size of the files together on the disk; None if one of them is not a regular file (a pipe)."""
    total = 0
    for path in paths:
        if path == "-":
            return None
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def parts(path: str, advanced: Callable[[int], object], raw: bool = False) -> Iterator[bytes]:
    """The content of a file in parts. `advanced` is told how many bytes of the file were read.

    `raw` files are taken as they are, whatever they look like.
    """
    with _open(path) as file:
        suffix = "" if raw else os.path.splitext(path.lower())[1]
        opened = _decompressor(path, suffix, file)
        at, first = 0, True
        while True:
            part = _read(path, suffix, opened)
            if first and not raw and suffix not in _COMPRESSED:
                _check_head(path, part)
            first = False
            if path != "-" and file.seekable():
                advanced(file.tell() - at)
                at = file.tell()
            if not part:
                return
            yield part


def _open(path: str) -> BinaryIO:
    if path == "-":
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    return open(path, "rb")


def _read(path: str, suffix: str, file: IO[bytes]) -> bytes:
    try:
        return file.read(PART_BYTES)
    except EOFError:
        raise TrainingError(f"{path}: the compressed file is cut off; copy or download it again") from None
    except Exception as error:
        if suffix in _COMPRESSED and type(error).__name__ in (
            "BadGzipFile",
            "LZMAError",
            "ZstdError",
            "error",
        ):
            raise TrainingError(f"{path}: is not a valid {suffix[1:]} file: {error}") from error
        if suffix == ".bz2" and isinstance(error, OSError) and error.errno is None:
            raise TrainingError(f"{path}: is not a valid bz2 file: {error}") from error
        raise


def _decompressor(path: str, suffix: str, file: BinaryIO) -> IO[bytes]:
    if suffix == ".gz":
        import gzip

        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if suffix == ".xz":
        import lzma

        return cast("IO[bytes]", lzma.LZMAFile(file))
    if suffix == ".bz2":
        import bz2

        return cast("IO[bytes]", bz2.BZ2File(file))
    if suffix == ".zst":
        if sys.version_info >= (3, 14):
            from compression import zstd

            return zstd.ZstdFile(file)
        return cast("IO[bytes]", _Zstandard(path, file))
    return file


class _Zstandard:
    """Reads Zstandard with the package zstandard, and notices a file that is cut off."""

    def __init__(self, path: str, file: BinaryIO):
        try:
            import zstandard
        except ImportError:
            raise ImportError(
                f"reading {path!r} needs Python 3.14 or the package zstandard: pip install 'cpbpe[zst]'"
            ) from None
        self._context = zstandard.ZstdDecompressor()
        self._frame = self._context.decompressobj()
        self._between = True  # whether every frame that has begun has ended
        self._file = file

    def read(self, size: int) -> bytes:
        out: list[bytes] = []
        length = 0
        while length < size:
            data = self._file.read(1 << 20)
            if not data:
                if not self._between:
                    raise EOFError
                break
            while data:
                out.append(self._frame.decompress(data))
                length += len(out[-1])
                self._between = self._frame.eof
                data = b""
                if self._frame.eof:
                    data = self._frame.unused_data
                    self._frame = self._context.decompressobj()
        return b"".join(out)


def _check_head(path: str, head: bytes) -> None:
    control = any(byte < 9 or 13 < byte < 32 for byte in head[:64])
    for magic, what in _MAGIC:
        # A text may begin with BZh or PAR1, but holds no control characters.
        if head.startswith(magic) and (control or magic not in (b"BZh", b"PAR1")):
            raise TrainingError(f"{path}: the file {what.format(format=given('format', 'parquet'))}")


def _walk(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and os.path.isfile(os.path.join(here, name)):
                yield os.path.join(here, name)


def _is_binary(path: str) -> bool:
    """Whether a file in a directory is something other than text: it holds a NUL near its beginning."""
    if path.lower().endswith(_COMPRESSED) or format_of(path) == "parquet":
        return False
    with open(path, "rb") as file:
        return b"\0" in file.read(_HEAD_BYTES)
