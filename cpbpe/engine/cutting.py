"""Where a pattern cuts a text, by itself: for what has to know chunks, or what a pattern leaves out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from cpbpe.engine.choice import engine_name
from cpbpe.lazy import imported
from cpbpe.text.split_patterns import PATTERNS

Cutter = Callable[[str], list[bytes]]
"""Takes a text to the matches of a pattern in it, those that are not empty, as UTF-8."""


def make_cutter(pattern: str) -> tuple[Cutter, bool]:
    r"""What cuts by a pattern, and whether it is known that the pattern leaves nothing of any text out.

    >>> cut, is_complete = make_cutter(r"[a-z]+|\d")
    >>> cut("ab, 12 é"), is_complete
    ([b'ab', b'1', b'2'], False)
    """
    if engine_name() == "reference":
        compiled = imported("cpbpe.reference.byte_level.patterns").compiled(pattern)

        def cut(text: str) -> list[bytes]:
            return [match.group().encode() for match in compiled.finditer(text) if match.group()]

        return cut, pattern in PATTERNS.values()
    from cpbpe import _core

    splitter = _core.Splitter(pattern)

    def cut_by_core(text: str) -> list[bytes]:
        data = text.encode()
        spans = splitter.spans(text)
        if splitter.has_scanner:
            return [data[begin:end] for begin, end in pairwise([0, *spans[:, 1].tolist()])]
        return [data[begin:end] for begin, end in spans.tolist()]

    return cut_by_core, splitter.has_scanner
