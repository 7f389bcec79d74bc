"""What kind of file a corpus file is, by its name and first bytes, and what to do if it is not text.

Training on files that are not text would raise no error, so their kind is checked beforehand. The phrases
here end messages that begin with the name of the file.
"""

from __future__ import annotations

import json
import os

from cpbpe.spelling import advised, given

FORMATS = ("text", "tsv", "csv", "jsonl", "parquet", "arrow")
"""The formats of a file."""

FOR_PYARROW = ("parquet", "arrow")
"""Those that pyarrow reads: from a file, that is, and not from a pipe."""

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
"""Files whose names end like this are decompressed."""

BINARY = "is not text"
"""Said about files of which nothing else is known."""

HEAD_BYTES = 8192
"""How many bytes of a file are checked to find out whether it is text."""

_SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
}
_TARS = (".tar", ".tgz", ".tbz2", ".txz", ".tzst")
_MAGIC = (
    (b"\x1f\x8b", "is gzip data; name it *.gz, then it is decompressed"),
    (b"\xfd7zXZ\0", "is xz data; name it *.xz, then it is decompressed"),
    (b"BZh", "is bzip2 data; name it *.bz2, then it is decompressed"),
    (b"\x28\xb5\x2f\xfd", "is Zstandard data; name it *.zst, then it is decompressed"),
    (b"\x04\x22\x4d\x18", "is LZ4 data; decompress it first"),
    (b"PK\x03\x04", "is a zip archive (as .docx, .xlsx and .npz files are); unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first"),
    (b"Rar!\x1a\x07", "is a rar archive; unpack it first"),
    (b"PAR1", "is Parquet; name it *.parquet, or give {parquet}"),
    (b"ARROW1\0", "is an Arrow file; name it *.arrow, or give {arrow}"),
    (b"FEA1", "is an Arrow file of the first kind, from before 2020; write it again with pyarrow"),
    (b"\x93NUMPY", "is a numpy array; if it holds texts, give numpy.load(path)"),
    (b"SQLite format 3\0", "is a database; give the texts in it, as from a query of sqlite3"),
    (b"\x89HDF\r\n\x1a\n", "is HDF5; give the texts in it, as h5py reads them"),
    (b"%PDF-", "is a PDF; extract its text first, for example with pdftotext"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an Office document; save it as text first"),
    (b"\x89PNG\r\n\x1a\n", "is an image"),
    (b"\xff\xd8\xff", "is an image"),
    (b"GGUF", "is a model (GGUF), not text"),
    (b"CPBPEWC", "holds word counts; to train on them, give cpbpe.WordCounts.load(path)"),
    (b"\xff\xfe\0\0", "is UTF-32; {utf_32}"),
    (b"\0\0\xfe\xff", "is UTF-32; {utf_32}"),
    (b"\xff\xfe", "is UTF-16; {utf_16}"),
    (b"\xfe\xff", "is UTF-16; {utf_16}"),
)
_BEGINNINGS = tuple(magic for magic, _ in _MAGIC)
_FOR_PYTHON = (b"\x93NUMPY", b"SQLite format 3\0", b"\x89HDF\r\n\x1a\n")
"""Of these, what is said after the semicolon is something to do in Python."""
_LFS = b"version https://git-lfs.github.com/"


def format_of(path: str) -> str:
    """The format that a file's name implies; "text" by default.

    >>> format_of("a.jsonl.zst"), format_of("a.py")
    ('jsonl', 'text')
    """
    return _SUFFIXES.get(_suffix(path), "text")


def named_as_no_text(path: str, column_named: bool = False) -> str | None:
    """What a file is if its name says that it cannot be read; otherwise None.

    `column_named`: the user said which column holds the texts, which a .csv file needs.

    >>> named_as_no_text("corpus.tar.gz")
    'is a tar archive; unpack it first'
    """
    suffix = _suffix(path)
    if suffix in _TARS:
        return "is a tar archive; unpack it first"
    if suffix == ".csv" and not column_named:
        column = given("column", ...)
        return f"is CSV, and only you know which column holds the texts; name it with {column}; {_as_text()}"
    if suffix == ".json":
        return _json(path)
    if suffix == ".model":
        return f"is a model, going by its name, and not text; {_as_text()}"
    return None


def is_no_text(head: bytes, any_text: bool = False) -> str | None:
    r"""What a file is if its first bytes show that it is not text; None if it may be text.

    `any_text`: the user said that it is text, so the answer is None unless it certainly is not.

    >>> is_no_text(b"a text"), is_no_text(b"\1\0\0\0\2\0\0\0")
    (None, "is not text, because it holds NUL bytes; format='text' takes its lines as they are")
    """
    if head.startswith(_LFS):
        return "is a Git LFS pointer; 'git lfs pull' fetches the file itself"
    if head.startswith(_BEGINNINGS) and not _is_clean(head):  # a text may begin with BZh or %PDF
        for magic, what in _MAGIC:
            if head.startswith(magic):
                said = what.format(
                    parquet=given("format", "parquet"),
                    arrow=given("format", "arrow"),
                    utf_16=_to_utf_8("utf-16"),
                    utf_32=_to_utf_8("utf-32"),
                )
                if magic not in _FOR_PYTHON:
                    return said
                return advised(said, f"{said.partition(';')[0]}; write its texts to a text file first")
    if any_text or b"\0" not in head:
        return None
    if head[257:262] == b"ustar":
        return "is a tar archive; unpack it first"
    for at, end in ((1, "le"), (0, "be")):
        if head[at::2].count(0) * 4 > len(head) >= 8 and not head[1 - at :: 2].count(0):
            return f"looks like UTF-16 without a byte order mark; {_to_utf_8(f'utf-16{end}')}; {_as_text()}"
    return f"{BINARY}, because it holds NUL bytes; {_as_text()}"


def _to_utf_8(encoding: str) -> str:
    iconv = f"convert it to UTF-8, for example with 'iconv -f {encoding} -t utf-8'"
    return advised(f"{iconv}, or give open(path, encoding='{encoding}')", iconv)


def _as_text() -> str:
    return f"{given('format', 'text')} takes its lines as they are"


def _suffix(path: str) -> str:
    """The suffix that tells what the file contains once it is decompressed."""
    base = path.lower()
    for suffix in COMPRESSED:
        base = base.removesuffix(suffix)
    return os.path.splitext(base)[1]


def _is_clean(head: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters; the last character may be cut off."""
    if any(byte < 9 or 13 < byte < 32 for byte in head[:64]):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _json(path: str) -> str:
    if os.path.isfile(path) and not path.lower().endswith(COMPRESSED):
        with open(path, "rb") as file:
            first = file.readline(1 << 20)
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return (
                f"is JSON Lines, so give {given('format', 'jsonl')}; the text is in the field 'text', or in "
                f"the one that you name with {given('field', ...)}; {_as_text()}"
            )
    lines = "write one object per line and name it *.jsonl"
    texts = advised(
        f"give the texts in it, as in [row['text'] for row in json.load(open(path))], or {lines}",
        f"{lines}, for example with 'jq -c .[]'",
    )
    return f"is JSON; {texts}; {_as_text()}"
