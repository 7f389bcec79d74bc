"""Counted words on the disk, in blocks, so that more words than fit into memory can be merged.

A block consists of: the number n of words (u64); the number b of bytes of all words (u64); where each word
ends among these bytes (n times u64); the counts (n times u64); where each word was first seen (n times u64),
if that is recorded; the words (b bytes). Integers are little-endian. Words are sorted by their bytes, across
all blocks, and no word occurs twice. A block of no words ends the list.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from cpbpe.engine.training import merge_words
from cpbpe.errors import NO_ROOM
from cpbpe.lazy import importing
from cpbpe.reference.training_values import Words
from cpbpe.spelling import named
from cpbpe.text.utf8 import is_valid_utf8

BLOCK_WORDS = 1 << 16
"""The most words that a block can have."""
MOST_RUNS = 64
"""How many files are merged at once. Systems allow a process a few hundred open files."""

_HEAD = struct.Struct("<QQ")


def slice_words(words: Words, begin: int, end: int) -> Words:
    """Some of the words, from one index up to another."""
    first = _end_of(words, begin - 1)
    ends = array("Q", words.ends[8 * begin : 8 * end])
    last = ends[-1] if ends else first
    columns = words.counts[8 * begin : 8 * end], words.firsts[8 * begin : 8 * end]
    return Words(words.blob[first:last], _shifted(ends.tobytes(), -first), *columns)


def join_words(parts: Iterable[Words]) -> Words:
    """One list from several; each must begin after the last word of the list before it."""
    blobs: list[bytes] = []
    ends: list[bytes] = []
    counts: list[bytes] = []
    firsts: list[bytes] = []
    length = 0
    for part in parts:
        blobs.append(part.blob)
        ends.append(_shifted(part.ends, length))
        counts.append(part.counts)
        firsts.append(part.firsts)
        length += len(part.blob)
    return Words(_joined(blobs), _joined(ends), _joined(counts), _joined(firsts))


def write_words(file: Any, parts: Iterable[Words]) -> None:
    """Write words, in blocks, and the block that ends the list.

    They may come in parts, each of which begins after the last word of the part before it.
    """
    for words in parts:
        for begin in range(0, len(words), BLOCK_WORDS):
            block = slice_words(words, begin, min(begin + BLOCK_WORDS, len(words)))
            file.write(_HEAD.pack(len(block), len(block.blob)))
            for column in (block.ends, block.counts, block.firsts, block.blob):
                file.write(column)
    file.write(_HEAD.pack(0, 0))


def read_words(read: Callable[[int], bytes], *, trusted: bool, ordered: bool = False) -> Iterator[Words]:
    """Yield the blocks of a list. Raise EOFError if it is cut off, ValueError if it is not valid.

    With `ordered`, blocks record where each word was first seen. The words are checked, unless the list is
    `trusted` because this process wrote it.
    """

    def exactly(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:  # in steps, so that a wrong size does not allocate much memory
            part = read(min(size - len(data), 1 << 24))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    last = b""
    while True:
        number, size = _HEAD.unpack(exactly(_HEAD.size))
        if not number:
            return
        if number > BLOCK_WORDS or size > 1 << 40:
            raise ValueError("a block is larger than a block can be")
        ends, counts = exactly(8 * number), exactly(8 * number)
        firsts = exactly(8 * number) if ordered else b""
        words = Words(exactly(size), ends, counts, firsts)
        if not trusted:
            _check(words, last)
            last = _word(words, number - 1)
        yield words


def merge_lists(lists: Sequence[Iterator[Words]]) -> Iterator[Words]:
    """Merge sorted lists that come in blocks into one that comes in blocks; counts are added up.

    Each round merges all words up to a bound, which is the smallest of the last words of the current
    blocks: whatever comes later in any list is larger. So only a few blocks are in memory, whatever the size
    of the lists.
    """
    blocks: dict[int, Words] = {}
    at: dict[int, int] = {}
    for index, blocks_of_list in enumerate(lists):
        first = next(blocks_of_list, None)
        if first is not None:
            blocks[index], at[index] = first, 0
    while blocks:
        bound = min(_word(block, len(block) - 1) for block in blocks.values())
        parts: list[Words] = []
        for index in list(blocks):
            block, begin = blocks[index], at[index]
            end = bisect_right(range(len(block)), bound, begin, key=partial(_word, block))
            if end > begin:
                parts.append(slice_words(block, begin, end))
            at[index] = end
            if end == len(block):
                following = next(lists[index], None)
                at[index] = 0
                if following is None:
                    del blocks[index]
                else:
                    blocks[index] = following
        yield merge_words(parts) if len(parts) > 1 else parts[0]


class Runs:
    """Words that were set aside on the disk, to be merged at the end. Used with `with`, which cleans up."""

    def __init__(self) -> None:
        self._folder: str | None = None
        # The paths of the files, by level. Each file of a level was merged from files of the level before.
        self._levels: list[list[str]] = []
        self._number = 0
        self._ordered = False
        self.bytes = 0
        """The size of the files."""

    def __len__(self) -> int:
        return self._number

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *unused: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, words: Words) -> None:
        """Set words aside."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="cpbpe-")
        self._number += 1
        self._ordered = bool(words.firsts)
        self.bytes += os.path.getsize(self._write([words], level=0))
        for level, paths in enumerate(self._levels):
            if len(paths) == MOST_RUNS:  # merge them, so that few files are open at the end
                with _opened(paths, self._ordered) as lists:
                    self._write(merge_lists(lists), level + 1)
                for path in paths:
                    os.remove(path)
                paths.clear()

    def _write(self, parts: Iterable[Words], level: int) -> str:
        """Write a file, and return its path."""
        assert self._folder is not None
        path = os.path.join(self._folder, f"{self._number}-{level}.words")
        try:
            with open(path, "xb") as file:
                write_words(file, parts)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise OSError(
                error.errno,
                f"there is no room for counts that {named('memory_limit')} moves to the disk; set TMPDIR to "
                "a folder on a larger one",
                self._folder,
            ) from error
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(path)
        return path

    def merge(self, last: Words, step: Callable[[int], object]) -> Words:
        """All words that were set aside, and the last ones. `step` is called with the number merged."""
        if not self._levels:
            return last
        if len(last):
            self.add(last)
        number = 0

        def parts(lists: list[Iterator[Words]]) -> Iterator[Words]:
            nonlocal number
            for part in merge_lists(lists):
                number += len(part)
                step(number)
                yield part

        with _opened((path for paths in self._levels for path in paths), self._ordered) as lists:
            return join_words(parts(lists))


@contextmanager
def _opened(paths: Iterable[str], ordered: bool) -> Iterator[list[Iterator[Words]]]:
    """The words of several files, each in blocks."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        yield [read_words(file.read, trusted=True, ordered=ordered) for file in files]


def _end_of(words: Words, index: int) -> int:
    return int.from_bytes(words.ends[8 * index : 8 * index + 8], "little") if index >= 0 else 0


def _word(words: Words, index: int) -> bytes:
    return words.blob[_end_of(words, index - 1) : _end_of(words, index)]


def _joined(parts: list[bytes]) -> bytes:
    """The parts, joined. The list is emptied, so that at most one column is in memory twice."""
    joined = b"".join(parts)
    parts.clear()
    return joined


def _shifted(ends: bytes, by: int) -> bytes:
    with importing:
        import numpy as np
    return (np.frombuffer(ends, "<i8") + by).tobytes() if by else ends


def _check(words: Words, before: bytes) -> None:
    if not is_valid_utf8(words.blob):
        raise ValueError("its words are not UTF-8")
    begin = 0
    for end in array("Q", words.ends):
        word = words.blob[begin:end]
        if not begin < end <= len(words.blob) or word <= before:
            raise ValueError("its words are not in order")
        if word[0] & 0xC0 == 0x80:
            raise ValueError("a word begins inside a character")
        begin, before = end, word
    if begin != len(words.blob):
        raise ValueError("its words do not fill their block")
    if 0 in array("Q", words.counts):
        raise ValueError("a word is counted 0 times")
