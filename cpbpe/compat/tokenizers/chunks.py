"""The tokens of byte-level models: the characters that they came from, and the words that they are parts of.

A token is a run of bytes here, and may begin or end within a character. To tokenizers each byte is a letter
that came from all of its character, and a chunk, in which merging stays, is a word.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from cpbpe.compat.tokenizers.runs import Span
from cpbpe.engine.cutting import Cutter, make_cutter
from cpbpe.lazy import kept
from cpbpe.model.spec import SplitSpec
from cpbpe.text.utf8 import character_positions


class Chunks:
    """The chunks of one byte-level model."""

    def __init__(self, splitter: SplitSpec | None):
        self._splitter = splitter

    @kept
    def _cutters(self) -> list[Cutter]:
        splitter = self._splitter
        return [] if splitter is None else list(map(make_cutter, (splitter.pattern, *splitter.then)))

    def _begins(self, data: bytes) -> set[int]:
        """Where chunks begin: each pattern cuts those of the one before, as if they were texts."""
        begins = {0}
        for cutter in self._cutters:
            for begin, end in pairwise(sorted({*begins, len(data)})):
                for span in cutter.spans(data[begin:end].decode()):
                    begins.update(begin + place for place in span)
        return begins

    def places(self, pieces: list[bytes], spans: list[Span]) -> tuple[list[Span], list[bool]]:
        r"""The span of each token, and whether it begins a word. `spans`: those of the characters.

        >>> Chunks(None).places([b"a\xc3", b"\xa9"], [(0, 1), (1, 2)])
        ([(0, 2), (1, 2)], [True, False])
        """
        data = b"".join(pieces)
        text = data.decode()
        if len(text) > len(spans):
            spans = [spans[0], *spans]  # the space in front belongs to the first character
        characters = range(len(data)) if text.isascii() else character_positions(data)
        ends = list(accumulate(map(len, pieces)))
        begins = [0, *ends[:-1]] if ends else []
        own = [
            (spans[characters[begin]][0], spans[characters[end - 1]][1])
            for begin, end in zip(begins, ends, strict=True)
        ]
        words = self._begins(data)
        return own, [begin in words for begin in begins]
