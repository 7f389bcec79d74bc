"""Lines in, lines out: what sentencepiece's programs read and write.

A line ends with a newline, and only with one; whatever else is in it, broken UTF-8 included, belongs to it.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from cpbpe.checks import cores
from cpbpe.corpus.files import in_order

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


class Block(NamedTuple):
    """Whole lines of one file, each with its newline; a file's last one gets one if it has none."""

    data: bytes
    """The lines."""
    first: int = 1
    """The number of the first line in all that is read, from 1."""
    threads: int = 1
    """How many threads may work on it: one, if blocks are worked on side by side."""

    @property
    def lines(self) -> list[bytes]:
        """The lines without their newlines."""
        lines = self.data.split(b"\n")
        lines.pop()
        return lines


def transformed(files: Sequence[str], work: Callable[[Block], bytes]) -> Iterator[bytes]:
    """What becomes of the lines of all files, in order, some at a time, by as many threads as are of use.

    What has arrived through a pipe is not kept waiting: it is worked on at once, before more is read.
    """
    threads = cores()
    side_by_side = threads if all(map(os.path.isfile, files)) else 1
    return in_order(blocks(files, threads // side_by_side), work, side_by_side)


def blocks(files: Sequence[str], threads: int = 1) -> Iterator[Block]:
    """The lines of all files in order."""
    first = 1
    for path in files:
        for data in _whole_lines(path, not os.path.isfile(path)):
            yield Block(data, first, threads)
            first += data.count(b"\n")


def _whole_lines(path: str, waits: bool) -> Iterator[bytes]:
    """The lines of a file in blocks."""
    if not path or (path == "-" and not os.path.exists(path)):
        if sys.stdin is None:
            raise ValueError("there is no standard input; name a file")
        yield from _ended(_blocks(sys.stdin.buffer, True))
        return
    with open(path, "rb", buffering=0) as file:
        yield from _ended(_blocks(file, waits))


def _ended(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that each end with a newline."""
    unfinished: list[bytes] = []  # joined when the line ends, so that a long one costs no more
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end == 0:
            unfinished.append(block)
            continue
        yield b"".join([*unfinished, memoryview(block)[:end]]) if unfinished or end < len(block) else block
        unfinished = [block[end:]] if end < len(block) else []
    if unfinished:
        yield b"".join([*unfinished, b"\n"])


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
