"""Writing files so that nobody ever finds half of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import BinaryIO


def write_all(files: Mapping[str, bytes | Callable[[BinaryIO], object]]) -> None:
    """Write several files: each under a temporary name beside it; when all are complete, all are renamed.

    A file is given as its bytes, or as a function that writes it.

    A pipe or a device is written to directly. Whatever goes wrong, no temporary file stays behind.
    """
    temporary: dict[str, str] = {}
    try:
        for name, content in files.items():
            write = content if callable(content) else partial(_write, content)
            path = os.path.realpath(name)
            if os.path.exists(path) and not os.path.isfile(path):
                with open(path, "wb") as file:
                    write(file)
                continue
            temporary[path] = f"{path}.{token_hex(8)}.tmp"
            with open(temporary[path], "xb") as file:
                write(file)
        for path, written in list(temporary.items()):
            os.replace(written, path)
            del temporary[path]
    except BaseException:
        for written in temporary.values():
            with suppress(OSError):
                os.unlink(written)
        raise


def _write(data: bytes, file: BinaryIO) -> None:
    file.write(data)
