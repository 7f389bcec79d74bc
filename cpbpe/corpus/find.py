"""Finding the files of a corpus, each of them once, and telling by names and first bytes what they are.

Links can make one file appear under several names, and a folder appear inside itself. Nothing is visited
twice, and links that were skipped for this reason are reported. Folders that cannot be read are errors: the
texts in them would be lost silently.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import filterfalse

from cpbpe.errors import CorpusError
from cpbpe.spelling import advised, given


@dataclass
class Found:
    """The files of a corpus."""

    files: list[str] = field(default_factory=list)
    """Those to be read, in this order."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files in a directory that are not read, and what they are."""
    again: list[str] = field(default_factory=list)
    """Links to files and folders that are read under another name."""


MANIFEST = "cpbpe-pack.json"
"""How the name of the file ends in which `cpbpe pack` says what it has written, and from what."""
Hidden = Callable[[str], bool]
"""Says of the path of a file whether it is as if it were not there."""


def none_hidden(path: str) -> bool:
    """Say that no file is hidden."""
    return False


def find(
    paths: Iterable[str | os.PathLike[str]],
    any_text: bool = False,
    column_named: bool = False,
    hidden: Hidden = none_hidden,
) -> Found:
    """The files that paths, globs and directories name; "-" is the standard input.

    A directory names every text file below it, in sorted order, except those whose names begin with a
    dot, and except README, LICENSE and the like if there are files of records or tables, too. What a user
    names twice is read twice. `any_text`: files are treated as text whatever their names say. `column_named`:
    the user said which column of a table holds the texts.
    """
    found = Found()
    for path in map(checked_path, paths):
        if path == "-":
            found.files.append(path)
            continue
        if os.path.isdir(path):
            below = _of_directory(path, any_text, column_named, hidden)
            found.files += below.files
            found.left_out.update(below.left_out)
            found.again += below.again
            continue
        if hidden(path):
            continue
        files = [path]
        if not os.path.lexists(path) and glob.has_magic(path):
            files = [
                os.path.join(os.curdir, file) if file == "-" else file
                for file in _once(_matching(path, found), found, hidden)
            ]
            if not files:
                raise FileNotFoundError(f"no file matches {_shown(path)}{_hint(path)}")
        else:
            _check_exists(path)
        for file in files:
            _check_readable(file)
            what = None if any_text else named_as_no_text(file, column_named)
            if what is not None:
                raise CorpusError(f"{file}: the file {what}")
        found.files += files
    return found


def checked_path(path: str | os.PathLike[str]) -> str:
    """A path as a str, if the system can have a file of this name."""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"a path must be a str or a Path, not {name!r}")
    try:
        is_name = b"\0" not in os.fsencode(name) and bool(name)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise FileNotFoundError(f"no such file or directory: {name!r}")
    return name


def size_of(paths: Iterable[str]) -> int | None:
    """The total size of the files on the disk; None if one of them is not a regular file (a pipe)."""
    total = 0
    for path in paths:
        if path == "-":
            return None
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def _of_directory(path: str, any_text: bool, column_named: bool, hidden: Hidden) -> Found:
    found = Found()
    candidates = [
        os.path.join(folder, entry.name)
        for folder in _folders_below([path], found)
        for entry in _entries(folder)
        if not entry.name.startswith(".") and not entry.is_dir()
    ]
    files = _once(candidates, found, hidden)
    packed = _packed(file for file in files if file.endswith(MANIFEST))
    has_data = any(format_of(file) != "text" for file in files)
    for file in files:
        _check_readable(file)
        what = None if any_text else named_as_no_text(file, column_named)
        if file in packed:
            what = "was written by cpbpe pack"
        elif has_data and not any_text and _ABOUT_DATA.match(os.path.basename(file)):
            what = "is about the data beside it, going by its name; name it if it is one of the texts"
        elif what is None and not file.lower().endswith(COMPRESSED) and format_of(file) not in FOR_PYARROW:
            with open(file, "rb") as opened:
                what = is_no_text(opened.read(HEAD_BYTES))
            if what is not None and what.startswith(BINARY):
                what = BINARY  # (without advice, because nobody named this file)
        if what is None:
            found.files.append(file)
        else:
            found.left_out[file] = what
    if not found.files and not any(map(hidden, candidates)):
        why = ""
        if found.left_out:
            file, what = next(iter(found.left_out.items()))
            why = f" ({len(found.left_out):,} left out; the first, {file!r}, {what})"
        raise CorpusError(f"the directory {path!r} holds no text file{why}; give another one, or a glob")
    return found


def _packed(manifests: Iterable[str]) -> set[str]:
    """The files that runs of `cpbpe pack` have written, given their manifests. They may look like text."""
    files = set()
    for path in manifests:
        with suppress(ValueError, LookupError, TypeError, RecursionError), open(path, "rb") as file:
            shards, base = json.load(file)["shards"], path.removesuffix(MANIFEST)
            files |= {path, *(base + entry["name"] for shard in shards for entry in shard["files"])}
    return files


def _check_exists(path: str) -> None:
    try:
        os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR):
            raise
        if os.path.islink(path):
            target = os.readlink(path)
            raise FileNotFoundError(f"{path!r} is a link to {target!r}, which does not exist") from None
        raise FileNotFoundError(f"no such file or directory: {_shown(path)}{_hint(path)}") from None


def _shown(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "...")


def _hint(path: str) -> str:
    """A guess at what was meant by a path that does not exist."""
    if re.match(r"[a-z][a-z0-9]+:/", path, re.IGNORECASE):  # one slash, because Path shortens "://" to ":/"
        return "; cpbpe downloads nothing, give a file"
    if len(path.split()) > 3:
        way = advised("give a list of texts", "write it to a file, or pipe it in and give -")
        return f"; for a text rather than a file, {way}"
    parts = [part.strip() for part in path.split(",")]
    if len(parts) > 1 and all(map(os.path.exists, parts)):
        way = advised(f"give a list: {parts}", "put spaces between them")
        return f"; for several files {way}"
    at_home = os.path.expanduser(path)
    return f"; is it {at_home!r}?" if at_home != path and os.path.exists(at_home) else ""


def _check_readable(path: str) -> None:
    if not os.access(path, os.R_OK):
        raise PermissionError(f"the file {path!r} may not be read")


# --- Each file once -------------------------------------------------------------------------------


def _once(paths: Iterable[str], found: Found, hidden: Hidden) -> list[str]:
    """Those paths that are files, sorted. Each file appears once, under its own name rather than a link's.

    Anything that is neither a file nor a folder (a pipe, a link to nothing) is left out.
    """
    links: list[str] = []
    regular: list[str] = []
    for path in sorted(filterfalse(hidden, set(paths))):
        (links if os.path.islink(path) else regular).append(path)
    seen: dict[object, str] = {}
    files: list[str] = []
    for path in [*regular, *links]:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if not os.path.islink(path):
                raise
            found.left_out[path] = "is a link to nothing"
            continue
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            found.left_out[path] = "is a link to itself"
            continue
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            found.left_out[path] = "is a pipe, a socket or a device; give it by name if you mean it"
            continue
        first = seen.setdefault(_identity(path, status), path)
        # Inode numbers are unreliable on some file systems, so they are not the only thing compared.
        if first != path and (status.st_nlink > 1 or os.path.realpath(first) == os.path.realpath(path)):
            found.again.append(path)
        else:
            files.append(path)
    return sorted(files)


def _identity(path: str, status: os.stat_result) -> object:
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)


def _folders_below(bases: Iterable[str], found: Found) -> list[str]:
    """These folders and all below them, without those whose names begin with a dot; each folder once.

    The contents of a folder come before the targets of its links, so a folder is found under its own name.
    """
    seen: dict[object, str] = {}
    waiting = list(bases)
    while waiting:
        links: list[str] = []
        stack = waiting[::-1]
        while stack:
            folder = stack.pop()
            identity = _identity(folder, os.stat(folder or os.curdir))
            if identity in seen:
                if folder != seen[identity]:
                    found.again.append(folder)
                continue
            seen[identity] = folder
            for entry in _entries(folder):
                if not entry.name.startswith(".") and entry.is_dir():
                    path = os.path.join(folder, entry.name)
                    (links if entry.is_symlink() else stack).append(path)
        waiting = sorted(links)
    return list(seen.values())


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = os.scandir(folder or os.curdir)
    except PermissionError:
        raise PermissionError(
            f"the folder {folder or os.curdir!r} may not be read; make it readable, or name the other files"
        ) from None
    with entries:
        yield from entries


# --- Globs ----------------------------------------------------------------------------------------


def _matching(pattern: str, found: Found) -> list[str]:
    """The paths that match a pattern, as in `glob.glob`, except that folders that cannot be read are errors.

    `**` enters each folder once, even if links lead to it again.
    """
    drive, rest = os.path.splitdrive(pattern)
    names = rest.replace(os.altsep, os.sep) if os.altsep else rest
    root = drive + os.sep if names.startswith(os.sep) else drive
    parts = [part for part in names.split(os.sep) if part]
    if names.endswith(os.sep):
        return []  # only folders match, not the files in them
    paths = [root]
    for number, part in enumerate(parts):
        if part == "**":
            paths = _folders_below(filter(_is_folder, paths), found)
            if number == len(parts) - 1:
                paths = list(_names_in(paths, "*"))
        elif glob.has_magic(part):
            paths = list(_names_in(filter(_is_folder, paths), part))
        else:
            joined = (os.path.join(path, part) for path in paths)
            paths = [path for path in joined if os.path.lexists(path)]
    return paths


def _names_in(folders: Iterable[str], pattern: str) -> Iterator[str]:
    for folder in folders:
        for entry in _entries(folder):
            if entry.name.startswith(".") and not pattern.startswith("."):
                continue
            if fnmatch.fnmatch(entry.name, pattern):
                yield os.path.join(folder, entry.name)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path or os.curdir)


# --- What kind of file it is ----------------------------------------------------------------------
#
# Training on files that are not text would raise no error, so their kind is checked first. The phrases
# below end messages that begin with the name of the file.

FORMATS = ("text", "tsv", "csv", "jsonl", "parquet", "arrow")
"""The formats of a file."""

FOR_PYARROW = ("parquet", "arrow")
"""The formats that pyarrow reads. It needs a file; it cannot read a pipe."""

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
"""Files whose names end like this are decompressed."""

BINARY = "is not text"
"""The phrase for files about which nothing else is known."""

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
    (b"CPBPEWC", "holds word counts; {counts}"),
    (b"\xff\xfe\0\0", "is UTF-32; {utf_32}"),
    (b"\0\0\xfe\xff", "is UTF-32; {utf_32}"),
    (b"\xff\xfe", "is UTF-16; {utf_16}"),
    (b"\xfe\xff", "is UTF-16; {utf_16}"),
)
_BEGINNINGS = tuple(magic for magic, _ in _MAGIC)
_FOR_PYTHON = (b"\x93NUMPY", b"SQLite format 3\0", b"\x89HDF\r\n\x1a\n")
"""The beginnings for which the advice after the semicolon is about Python, so the command gives another."""
_ABOUT_DATA = re.compile(r"(readme|licen[cs]e|copying|notice|changelog)(\.(md|rst|txt))?$", re.IGNORECASE)
"""The names of files that a folder of data has for people, such as the card of a dataset."""
_LFS = b"version https://git-lfs.github.com/"


def format_of(path: str) -> str:
    """The format that a file's name implies; "text" by default.

    >>> format_of("a.jsonl.zst"), format_of("a.py")
    ('jsonl', 'text')
    """
    return _SUFFIXES.get(suffix_of(path), "text")


def named_as_no_text(path: str, column_named: bool = False) -> str | None:
    """What a file is if its name says that it cannot be read; otherwise None.

    `column_named`: the user said which column holds the texts, which a .csv file needs.

    >>> named_as_no_text("corpus.tar.gz")
    'is a tar archive; unpack it first'
    """
    suffix = suffix_of(path)
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

    `any_text`: the user said that it is text, so the result is None unless it certainly is not.

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
                    counts=advised(
                        "to train on them, give cpbpe.WordCounts.load(path)",
                        "'cpbpe train' takes such files by their names, without others",
                    ),
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


def suffix_of(path: str) -> str:
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
    as_lines = (
        f"give {given('format', 'jsonl')}; the text is in the field 'text', or in the one that you name with "
        f"{given('field', ...)}; {_as_text()}"
    )
    if path.lower().endswith(COMPRESSED):  # (as C4's files are)
        return f"is JSON, going by its name; if each line is an object, {as_lines}"
    first = b""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            first = file.readline(1 << 20)
    try:
        if isinstance(json.loads(first), dict):
            return f"is JSON Lines, so {as_lines}"
    except (ValueError, RecursionError):
        pass
    lines = "write one object with the field 'text' per line and name it *.jsonl"
    if first.lstrip().startswith(b"{"):
        return f"is one object of JSON; {lines}; {_as_text()}"
    texts = advised(
        f"give the texts in it, as in [row['text'] for row in json.load(open(path))], or {lines}",
        f"{lines}, for example with 'jq -c .[]'",
    )
    return f"is JSON; {texts}; {_as_text()}"
