"""Ids as lines of text, and back: a format for programs that cannot exchange arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

_WORD = re.compile(rb"[^ \n]+")
_DIGITS = re.compile(rb"[0-9]{1,10}")


def write_lines(
    words: Sequence[bytes],
    shape: tuple[bytes, bytes, bytes],
    ids: Sequence[int],
    offsets: Sequence[int],
    others: Mapping[int, bytes],
) -> bytes:
    r"""A line for each text: the word of each of its ids, or one of `others` in its place.

    `shape` holds the bytes between two words, before the first word and after the last.

    >>> write_lines([b"zero", b"one"], (b" ", b"", b"\n"), [1, 0, 1], [0, 2, 2, 3], {2: b"new"})
    b'one zero\n\nnew\n'
    """
    between, before, after = shape
    parts = []
    for begin, end in pairwise(offsets):
        line = (others[place] if place in others else words[ids[place]] for place in range(begin, end))
        parts += [before, between.join(line), after]
    return b"".join(parts)


def read_lines(data: bytes, id_of: Callable[[bytes], int | None]) -> tuple[list[int], list[int], int | None]:
    r"""The ids in lines of words; where the ids of each line begin, and the end; where an unknown word is.

    Reading stops at the first word for which `id_of` returns None; if there is none, the last value is None.

    >>> read_lines(b"12 0\n\n7", decimal), read_lines(b"12 -1\n", decimal)[2]
    (([12, 0, 7], [0, 2, 2, 3], None), 3)
    """
    ids: list[int] = []
    offsets = [0]
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        for word in _WORD.finditer(data, begin, end):
            id = id_of(word[0])
            if id is None:
                return ids, offsets, word.start()
            ids.append(id)
        offsets.append(len(ids))
        begin = end + 1
    return ids, offsets, None


def decimal(word: bytes) -> int | None:
    """A number in decimal digits, if it is below 2**32."""
    number = int(word) if _DIGITS.fullmatch(word) else 1 << 32
    return None if number >> 32 else number
