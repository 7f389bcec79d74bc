"""Lines in, lines out: what sentencepiece's programs read and write.

A line ends with a newline, and only with one; whatever else is in it, broken UTF-8 included, belongs to it.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

BATCH_BYTES = 1 << 22
"""About this much text is worked on at once."""


def files_of(flags_input: str, files: Sequence[str]) -> list[str]:
    """The files to read, in order; "" is the standard input. `flags_input` is the flag ``--input``."""
    if flags_input and files:
        raise ValueError(
            f"the file is given with --input and as an argument ({files[0]!r}), which sentencepiece would "
            f"ignore; give all files as arguments, without --input"
        )
    return [flags_input] if flags_input else list(files) or [""]


def check_output(output: str, sources: Sequence[str]) -> None:
    """Raise an error if the output would replace one of the files that are read."""
    for source in sources:
        if source and os.path.isfile(source) and os.path.exists(output) and os.path.samefile(source, output):
            raise ValueError(f"--output would replace {source!r}, which is read; choose another name")


def batches(files: Sequence[str]) -> Iterator[list[bytes]]:
    """The lines of all files in order, some at a time. From a pipe, what has arrived is not kept waiting."""
    for path in files:
        if path and not (path == "-" and not os.path.exists(path)):
            with open(path, "rb", buffering=0) as file:
                yield from _lines(_blocks(file, waits=not os.path.isfile(path)))
        elif sys.stdin is None:
            raise ValueError("there is no standard input; name a file")
        else:
            yield from _lines(_blocks(sys.stdin.buffer, waits=True))


def _lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    unfinished: list[bytes] = []  # joined when the line ends, so that a long one costs no more
    for block in blocks:
        lines = block.split(b"\n")
        unfinished.append(lines[0])
        if len(lines) > 1:
            lines[0] = b"".join(unfinished)
            unfinished = [lines.pop()]
            yield lines
    if last := b"".join(unfinished):
        yield [last]


def _blocks(file: BinaryIO, waits: bool) -> Iterator[bytes]:
    """The contents in blocks. Where reading may wait, a block is what there is, up to the size of a batch."""
    read = file.read1 if hasattr(file, "read1") else file.read
    while block := read(BATCH_BYTES):
        parts, size = [block], len(block)
        while waits and size < BATCH_BYTES and _is_ready(file):
            more = read(BATCH_BYTES - size)
            if not more:
                break
            parts.append(more)
            size += len(more)
        yield b"".join(parts)


def _is_ready(file: BinaryIO) -> bool:
    """Whether something can be read without waiting."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):  # not a file of the system; or Windows, where this works for sockets only
        return False


def write(output: str, parts: Iterable[bytes]) -> None:
    """Write to a file, which appears when it is complete, or to the standard output, as the parts come."""
    if output:
        from cpbpe.model.writing import write_all

        write_all({output: lambda file: file.writelines(parts)})
        return
    if sys.stdout is None:
        raise ValueError("there is no standard output; name a file with --output")
    sys.stdout.flush()
    file = sys.stdout.buffer
    for part in parts:
        file.write(part)
        file.flush()  # another program may wait for the answer to what it has sent
