"""Where two models cut a text differently."""

from __future__ import annotations

from cpbpe.lazy import numpy
from cpbpe.tokenizer.encoding import Encoding


def differing(one: Encoding, other: Encoding) -> list[tuple[int, int]]:
    """The spans between two places where both models cut, in which only one of them cuts, or cuts more often.

    What is put around the text, and a dummy prefix, is no difference.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> differing(tok.align("hello there"), tok.align("hello there", alpha=0.2, seed=0))
    [(0, 5)]
    """
    text = str(one.text)
    begins = [_begins(one), _begins(other)]
    cuts = [_cuts(one), _cuts(other)]
    common = sorted((cuts[0] & cuts[1]) | {0, len(text)})
    either = sorted(cuts[0] ^ cuts[1])
    np = numpy()
    # How many lie between two common cuts that follow each other.
    alone, here, there = (np.diff(np.searchsorted(places, common)) for places in (either, *begins))
    found: list[tuple[int, int]] = []
    for at in np.flatnonzero((alone > 0) | (here != there)).tolist():
        begin, end = common[at : at + 2]
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _cuts(encoding: Encoding) -> set[int]:
    """Where tokens begin and end."""
    return {place for span in encoding.offsets for place in span}


def _begins(encoding: Encoding) -> list[int]:
    """Where the tokens of the text begin, one entry for each."""
    tokens = zip(encoding.ids, encoding.pieces, encoding.offsets, strict=True)
    return sorted(
        begin
        for id, piece, (begin, end) in tokens
        if begin < end or (id not in encoding.special and piece != "▁")
    )
