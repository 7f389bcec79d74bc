"""Ids as lines of text, and back: by the compiled core if it is there, otherwise by the reference.

A line writer has a word for each id: its digits, its piece, or either as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import importing
from cpbpe.reference.lines import decimal, read_lines, write_lines

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Ids, Places

Others = list[tuple[int, bytes]]
"""Places in the array of ids, in ascending order, with the words to write there instead."""


LineWriter = Callable[["Ids", "Places", Others], bytes]
"""A function that writes the ids of many texts, a line for each text. The ids of all are in one array; the
second argument says where those of each begin. Several threads can call it at the same time."""


def make_line_writer(words: Sequence[bytes], between: bytes, before: bytes, after: bytes) -> LineWriter:
    r"""A writer that has these words, and puts bytes between two of them, before the first, after the last.

    >>> import numpy
    >>> ids, offsets = numpy.array([1, 0, 1], numpy.uint32), numpy.array([0, 2, 3])
    >>> make_line_writer([b"0", b"1"], b", ", b"[", b"]\n")(ids, offsets, [])
    b'[1, 0]\n[1]\n'
    """
    if engine_name() == "reference":
        shape = between, before, after
        return lambda ids, offsets, others: write_lines(
            words, shape, ids.tolist(), offsets.tolist(), dict(others)
        )
    with importing:
        from cpbpe import _core
    return _core.LineWriter(list(words), between, before, after).write


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
