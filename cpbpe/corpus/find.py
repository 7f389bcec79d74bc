"""Finding the files of a corpus: the files that a path, a glob or a directory names, each of them once.

Links can make one file appear under several names, and a folder appear inside itself. Nothing is visited
twice, and links that were skipped for this reason are reported. Folders that cannot be read are errors: the
texts in them would be lost silently.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cpbpe.corpus.kinds import (
    BINARY,
    COMPRESSED,
    FOR_PYARROW,
    HEAD_BYTES,
    format_of,
    is_no_text,
    named_as_no_text,
)
from cpbpe.errors import CorpusError
from cpbpe.spelling import advised


@dataclass
class Found:
    """The files of a corpus."""

    files: list[str] = field(default_factory=list)
    """Those to be read, in this order."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files in a directory that are not read, and what they are."""
    again: list[str] = field(default_factory=list)
    """Links to files and folders that are read under another name."""

    def add(self, other: Found) -> None:
        """Add the files of one more path. Those that a user names twice are read twice."""
        self.files += other.files
        self.left_out.update(other.left_out)
        self.again += other.again


def expand(path: str, any_text: bool = False, column_named: bool = False) -> Found:
    """The files that a path, a glob or a directory names.

    A directory names every text file below it, in sorted order, except those whose names begin with a
    dot. `any_text`: files are treated as text whatever their names say. `column_named`: the user said which
    column of a table holds the texts.
    """
    if path == "-":
        return Found([path])
    if os.path.isdir(path):
        return _of_directory(path, any_text, column_named)
    if not os.path.lexists(path) and glob.has_magic(path):
        found = Found()
        found.files = _once(_matching(path, found), found)
        if not found.files:
            raise FileNotFoundError(f"no file matches {_shown(path)}{_hint(path)}")
    else:
        _check_exists(path)
        found = Found([path])
    for file in found.files:
        _check_readable(file)
        what = None if any_text else named_as_no_text(file, column_named)
        if what is not None:
            raise CorpusError(f"{file}: the file {what}")
    return found


def checked_path(path: str | os.PathLike[str]) -> str:
    """A path as a str, if the system can have a file of this name."""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"a path must be a str or a Path, not {name!r}")
    if not name or "\0" in name or not _is_encodable(name):
        raise FileNotFoundError(f"no such file or directory: {name!r}")
    return name


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def check_standard_input(files: Sequence[str], format: str | None) -> None:
    """Raise an error if the standard input cannot be read as it is meant."""
    if files.count("-") > 1:
        raise CorpusError("the standard input ('-') can be read only once; give it once")
    if "-" in files and format in FOR_PYARROW:
        raise CorpusError(f"{format.capitalize()} cannot be read from the standard input ('-'); give a file")


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


def _of_directory(path: str, any_text: bool, column_named: bool) -> Found:
    found = Found()
    candidates = [
        os.path.join(folder, entry.name)
        for folder in _folders_below([path], found)
        for entry in _entries(folder)
        if not entry.name.startswith(".") and not entry.is_dir()
    ]
    for file in _once(candidates, found):
        _check_readable(file)
        what = None if any_text else named_as_no_text(file, column_named)
        what = what or _not_text(file)
        if what is None:
            found.files.append(file)
        else:
            found.left_out[file] = what
    if not found.files:
        why = ""
        for file, what in found.left_out.items():
            why = f" ({len(found.left_out):,} left out; the first, {file!r}, {what})"
            break
        raise CorpusError(f"the directory {path!r} holds no text file{why}; give another one, or a glob")
    return found


def _not_text(path: str) -> str | None:
    """What a file in a directory is if it is not text; None for text, compressed files, Parquet and Arrow."""
    if path.lower().endswith(COMPRESSED) or format_of(path) in FOR_PYARROW:
        return None
    with open(path, "rb") as file:
        what = is_no_text(file.read(HEAD_BYTES))
    return BINARY if what is not None and what.startswith(BINARY) else what


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
    """What was meant, perhaps, by a path that does not exist."""
    if re.match(r"[a-z][a-z0-9]+:/", path, re.IGNORECASE):  # as Path writes an address, too
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


def _once(paths: Iterable[str], found: Found) -> list[str]:
    """Those paths that are files, sorted. Each file appears once, under its own name rather than a link's.

    Anything that is neither a file nor a folder (a pipe, a link to nothing) is left out.
    """
    links: list[str] = []
    regular: list[str] = []
    for path in sorted(set(paths)):
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
    """The paths that match a pattern, as `glob.glob` finds them; but folders that cannot be read are errors.

    `**` enters each folder once, whatever links there are.
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
