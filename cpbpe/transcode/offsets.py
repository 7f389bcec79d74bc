"""Objects of JSON with ids and offsets, written by a line writer: Python's own writer took ten times as long.

A line writer puts the same thing between all words of a line, and here it differs. So there is nothing
between words; each kind of word has its own beginning. A line consists of the words of its ids, a word that
ends them, and two words for each span.
"""

from __future__ import annotations

import json
from itertools import pairwise

from cpbpe.engine.lines import LineWriter, make_line_writer
from cpbpe.lazy import kept, numpy
from cpbpe.tokenizer.ragged import Ragged

_NUMBERS = 1 << 16
"""Offsets below this have words of their own. Longer texts are left to `json`."""


class OffsetWriter:
    r"""Writes an object for each text, `before` and `after` included.

    >>> import numpy
    >>> ids, spans = numpy.array([7, 8], numpy.uint32), numpy.array([[0, 1], [1, 3]])
    >>> rows = Ragged(ids, numpy.array([0, 2, 2]), spans)
    >>> OffsetWriter(10, b"", b"\n").write(rows)
    b'{"ids":[7,8],"offsets":[[0,1],[1,3]]}\n{"ids":[],"offsets":[]}\n'
    """

    def __init__(self, size: int, before: bytes, after: bytes):
        """`size`: ids are below this, or they are left to `json`."""
        self._size = size
        self._before = before
        self._after = after

    @kept
    def _writer(self) -> LineWriter:
        ids = (word for id in range(self._size) for word in (b"%d" % id, b",%d" % id))
        numbers = range(_NUMBERS)
        spans = (word for number in numbers for word in (b"[%d" % number, b",[%d" % number, b",%d]" % number))
        words = [*ids, b'],"offsets":[', *spans]
        return make_line_writer(words, b"", self._before + b'{"ids":[', b"]}" + self._after)

    def write(self, rows: Ragged) -> bytes:
        """The objects of texts with spans."""
        assert rows.spans is not None
        high = len(rows.ids) and (rows.ids.max() >= self._size or rows.spans.max() >= _NUMBERS)
        if high:
            return self._by_json(rows)
        np = numpy()
        counts = np.diff(rows.offsets)
        # 1. Where each line begins, and the place of each id in its line.
        begins = 3 * rows.offsets[:-1] + np.arange(len(counts))
        local = np.arange(len(rows.ids)) - np.repeat(rows.offsets[:-1], counts)
        later = local > 0
        # 2. The words: two for each id, one that ends the ids, three for each number.
        words = np.empty(3 * len(rows.ids) + len(counts), np.uint32)
        words[np.repeat(begins, counts) + local] = 2 * rows.ids + later
        words[begins + counts] = 2 * self._size
        places = np.repeat(begins + counts + 1, counts) + 2 * local
        first = 2 * self._size + 1
        words[places] = first + 3 * rows.spans[:, 0] + later
        words[places + 1] = first + 3 * rows.spans[:, 1] + 2
        return self._writer.write(words, np.append(begins, len(words)), [])

    def _by_json(self, rows: Ragged) -> bytes:
        assert rows.spans is not None
        ids, listed, offsets = rows.ids.tolist(), rows.spans.tolist(), rows.offsets.tolist()
        texts = [
            json.dumps({"ids": ids[begin:end], "offsets": listed[begin:end]}, separators=(",", ":")).encode()
            for begin, end in pairwise(offsets)
        ]
        return b"".join(self._before + text + self._after for text in texts)
