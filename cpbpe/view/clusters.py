"""Which tokens are shown together, because their border is inside of what a reader sees as one character.

A browser cannot colour a half of 🦙, and draws an accent apart from its letter if a border separates them.
"""

from __future__ import annotations

from cpbpe.lazy import imported
from cpbpe.tokenizer.encoding import Encoding
from cpbpe.tokenizer.facts import ModelFacts

# Between two characters of ASCII a cluster ends, unless they end a line.
_NEAR_OTHERS = r"(?:\p{ASCII}?\P{ASCII}+)+(?:\r\n|\p{ASCII})?|\r\n"


def joined(encoding: Encoding, facts: ModelFacts) -> list[int]:
    """The tokens that belong to the one before them, as indices.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> joined(tok.align("Hi 🦙!"), tok.facts)
    [3, 4, 5]
    """
    text = str(encoding.text)
    inside = _inside(text)
    continues: dict[int, bool] = {}
    found = []
    for at in range(1, len(encoding.ids)):
        id, before = encoding.ids[at], encoding.ids[at - 1]
        if id in encoding.special or before in encoding.special:
            continue
        if id not in continues:
            first = facts.bytes_of(id)[:1]
            continues[id] = b"\x80" <= first < b"\xc0"
        begin = encoding.offsets[at][0]
        last_begin, last_end = encoding.offsets[at - 1]
        if continues[id] or begin in inside:
            found.append(at)
        elif last_begin == last_end == begin < len(text) and encoding.pieces[at - 1] not in ("▁", ""):
            found.append(at)  # rules made several tokens of one character
    return found


def _inside(text: str) -> frozenset[int]:
    """The places that are inside of a character as readers see it (a grapheme cluster)."""
    if text.isascii() and "\r" not in text:
        return frozenset()
    regex = imported("regex")
    cluster = regex.compile(r"\X")
    spans = (
        match.span()
        for part in regex.finditer(_NEAR_OTHERS, text)
        for match in cluster.finditer(text, part.start(), part.end())
    )
    return frozenset(place for begin, end in spans if end - begin > 1 for place in range(begin + 1, end))
