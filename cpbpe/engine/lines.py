"""Ids as lines of text, and back: by the compiled core if it is there, otherwise by the reference.

A line writer has a word for each id: its digits, its piece, or either as JSON. Several threads can use a
writer at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import importing
from cpbpe.reference.lines import decimal, read_lines, write_lines

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Ids, Places

Others = list[tuple[int, bytes]]
"""Places in the array of ids, in ascending order, with the words to write there instead."""


class LineWriter(Protocol):
    """Writes the ids of many texts, a line for each text."""

    def write(self, ids: Ids, offsets: Places, others: Others) -> bytes:
        """The lines of texts. The ids of all are in one array; `offsets` says where those of each begin."""


def make_line_writer(words: Sequence[bytes], between: bytes, before: bytes, after: bytes) -> LineWriter:
    r"""A writer that has these words, and puts bytes between two of them, before the first, after the last.

    >>> import numpy
    >>> ids, offsets = numpy.array([1, 0, 1], numpy.uint32), numpy.array([0, 2, 3])
    >>> make_line_writer([b"0", b"1"], b", ", b"[", b"]\n").write(ids, offsets, [])
    b'[1, 0]\n[1]\n'
    """
    if engine_name() == "reference":
        return _Writer(words, between, before, after)
    with importing:
        from cpbpe import _core
    return _core.LineWriter(list(words), between, before, after)


def read_ids(data: bytes) -> tuple[Ids, Places, int | None]:
    r"""The ids in lines of decimal digits; where each line begins in them, and the end; a wrong word's place.

    >>> ids, offsets, wrong = read_ids(b"12 0\n\n7")
    >>> ids.tolist(), offsets.tolist(), wrong
    ([12, 0, 7], [0, 2, 2, 3], None)
    """
    if engine_name() == "reference":
        with importing:
            import numpy as np
        ids, offsets, wrong = read_lines(data, decimal)
        return np.array(ids, np.uint32), np.array(offsets, np.int64), wrong
    with importing:
        import numpy  # noqa: F401  (the core makes arrays)

        from cpbpe import _core
    return _core.read_ids(data)


def first_not_utf8(texts: list[bytes]) -> int | None:
    r"""The index of the first text that is not UTF-8; None if all are.

    >>> first_not_utf8([b"a", b"\xc3\xa9"]), first_not_utf8([b"a", b"\xe9"])
    (None, 1)
    """
    if engine_name() != "reference":
        with importing:
            from cpbpe import _core
        return _core.first_not_utf8(texts)
    for index, text in enumerate(texts):
        try:
            text.decode()
        except UnicodeDecodeError:
            return index
    return None


class _Writer:
    def __init__(self, words: Sequence[bytes], between: bytes, before: bytes, after: bytes):
        self._words = words
        self._shape = between, before, after

    def write(self, ids: Ids, offsets: Places, others: Others) -> bytes:
        return write_lines(self._words, self._shape, ids.tolist(), offsets.tolist(), dict(others))
