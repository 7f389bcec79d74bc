"""Writing files, so that none is ever left half written. An existing file keeps its mode."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from errno import EISDIR, ENOENT
from functools import partial
from typing import BinaryIO

from cpbpe.errors import MAKE_ROOM, NO_ROOM, room_for
from cpbpe.lazy import importing

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows does not need locks: it does not delete open files
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

_SUFFIX = ".cpbpe.tmp"
"""How temporary names end."""
_MAX_STEM = 200
"""How many bytes of a name are kept in the temporary one. A name has 255 at most."""

written: ContextVar[list[NewFile] | None] = ContextVar("written", default=None)
"""The files of this context, for a command that is interrupted and has to say which ones are in their places;
None: nobody asks."""


def write_all(files: Mapping[str, bytes | Callable[[BinaryIO], object]]) -> None:
    """Write several files, each under a temporary name; once all are complete, all are renamed.

    A file is given as its bytes, or as a function that writes it. A file that exists already keeps its mode
    and, if that is allowed, its owner; a link stays a link. A pipe or a device is written to directly. If
    anything goes wrong, all temporary files are deleted. If a process is killed, the next one that writes the
    same file deletes what it has left.
    """
    temporary: list[NewFile] = []
    noted = written.get()
    try:
        for name, content in files.items():
            write = content if callable(content) else partial(_write, content)
            path = os.path.realpath(name)
            if os.path.isdir(path):
                example = os.path.join(name, "tokenizer.model")
                raise IsADirectoryError(
                    EISDIR, f"it is a folder; give a name in it, such as {example!r}", name
                )
            if is_stream(name):
                with room_for(name), open(name, "wb") as file:
                    write(file)
                continue
            # (It is in the list before there is a file, which Ctrl-C could leave there otherwise.)
            temporary.append(NewFile(path, name))
            if noted is not None:
                noted.append(temporary[-1])
            temporary[-1].open()
            with room_for(name):
                temporary[-1].write(write)
        for made in temporary:
            made.rename()
    except BaseException:
        for made in temporary:
            made.remove()
        raise


def is_stream(path: str) -> bool:
    """Return whether a path is that of a pipe or a device. (/dev/fd has links to pipes without a name.)"""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def saving_path(path: str | os.PathLike[str], method: str, instead: str) -> str:
    """Return the path that a user gave for a file; if it is none, a TypeError says what to do `instead`."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{method}() takes a path, not {type(path).__name__}; {instead}")
    return os.fsdecode(path)


def _write(data: bytes, file: BinaryIO) -> None:
    file.write(data)


class NewFile:
    """A file under a temporary name, beside the one that it replaces.

    It is locked until it is renamed. So another process can tell a file that is being written from one that
    was abandoned. (A process number in the name would not be enough: on a shared disk, it may belong to a
    process in another container, or on another machine.)
    """

    def __init__(self, path: str, name: str):
        """`path` is where the file will be, and `name` is the same as the user gave it."""
        self.name = name
        """The path of the file, as the user gave it."""
        self._path = path
        self._before = _stat(path)
        self._temporary: str | None = None
        self._file: BinaryIO | None = None
        self._may_be_moved = False

    def open(self) -> None:
        """Make the file."""
        folder, base = os.path.split(self._path)
        stem = os.path.join(folder, os.fsdecode(os.fsencode(base)[:_MAX_STEM]))
        _remove_abandoned(stem)
        try:
            self._open(stem)
        except FileNotFoundError as error:
            why = f"there is no folder {folder!r}; make it first"
            raise FileNotFoundError(ENOENT, why, self.name) from error
        except OSError as error:  # its own text would mention the temporary name
            rights = "a file is written under another name first, so its folder must allow new ones"
            why = f"{error.strerror}; {MAKE_ROOM if error.errno in NO_ROOM else rights}"
            raise OSError(error.errno, why, self.name) from error

    def _open(self, stem: str) -> None:
        # While it is being replaced, a private file must not become readable for others.
        mode = 0o666 if self._before is None else 0o600
        with importing:
            import secrets
        while True:
            self._temporary = f"{stem}.{secrets.token_hex(8)}{_SUFFIX}"
            self._file = open(self._temporary, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115
            # Between opening and locking it, another process may have removed it as abandoned.
            if _lock(self._file) is not False and _is_still_there(self._temporary, self._file):
                return
            self._file.close()

    def write(self, write: Callable[[BinaryIO], object]) -> None:
        """Write the file, and give it the mode of the one that it replaces."""
        assert self._file is not None
        assert self._temporary is not None
        write(self._file)
        self._file.flush()
        if self._before is not None:
            if hasattr(os, "chown"):
                with suppress(OSError):  # only root may give files away
                    os.chown(self._temporary, self._before.st_uid, self._before.st_gid)
            os.chmod(self._temporary, self._before.st_mode & 0o777)

    def rename(self) -> None:
        """Give the file its own name."""
        assert self._file is not None
        assert self._temporary is not None
        if not HAS_LOCKS:
            self._file.close()  # Windows cannot rename a file that is open
        self._may_be_moved = True
        os.replace(self._temporary, self._path)
        self._file.close()

    def remove(self) -> None:
        """Delete the file, unless it has its own name already."""
        if self._temporary is None:
            return
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            os.unlink(self._temporary)
            self._may_be_moved = False

    @property
    def is_in_place(self) -> bool:
        """Whether the file has its own name."""
        return self._may_be_moved and not os.path.exists(str(self._temporary))


def _remove_abandoned(stem: str) -> None:
    """Delete the temporary files of a path that no process is still writing."""
    folder, base = os.path.split(stem)
    ours = re.compile(re.escape(base) + r"\.[0-9a-f]{16}" + re.escape(_SUFFIX))
    with suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(folder)):
            path = os.path.join(folder, name)
            with suppress(OSError):
                if not HAS_LOCKS:
                    os.unlink(path)
                    continue
                with open(path, "r+b") as file:
                    if _lock(file):
                        os.unlink(path)


def _stat(path: str) -> os.stat_result | None:
    """Return the status of the file at a path; None if there is none."""
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_still_there(path: str, file: BinaryIO) -> bool:
    there = _stat(path)
    return there is not None and os.path.samestat(there, os.fstat(file.fileno()))


def _lock(file: BinaryIO) -> bool | None:
    """Lock a file until it is closed. False if another process has locked it; None if locks do not work."""
    if not HAS_LOCKS:
        return None
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True
