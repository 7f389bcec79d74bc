"""Training, on the core if there is one: the merges that minbpe learns from a text.

The core and the book, `cpbpe/reference/byte_level/training.py`, learn the same merges, and the tests compare
them. What differs is when they are printed: the book prints a merge when it makes it, the core all of them
when it has made the last one, a fraction of a second later.
"""

from __future__ import annotations

from cpbpe.compat.minbpe.engine import cuts_alike
from cpbpe.compat.minbpe.files import LectureError
from cpbpe.engine.choice import engine_name
from cpbpe.engine.training import learn as learn_fast
from cpbpe.engine.training import make_counter
from cpbpe.model.formats.minbpe import BYTES, Pair
from cpbpe.reference.byte_level.patterns import compiled
from cpbpe.reference.byte_level.training import count_chunks, learn
from cpbpe.reference.training_values import ByteCountSpec, ByteLearnSpec, Words


def learn_merges(text: str, pattern: str | None, vocab_size: int, verbose: bool) -> dict[Pair, int]:
    """The merges that minbpe learns from a text; printed one by one, if `verbose`.

    `pattern` cuts the text; without one, it is a single chunk.
    """
    if vocab_size < BYTES:
        raise LectureError(f"vocab_size={vocab_size} is too small: the 256 bytes are pieces, so at least 256")
    wanted = vocab_size - BYTES

    def show(number: int, pair: Pair, piece: bytes, count: int) -> None:
        idx = BYTES + number - 1
        print(f"merge {number}/{wanted}: {pair} -> {idx} ({piece!r}) had {count} occurrences")

    pairs: list[Pair]
    if engine_name() == "core":
        spec = ByteLearnSpec(merges=wanted, byte_order=bytes(range(BYTES)), ties="minbpe")
        learned = learn_fast(_words(text, pattern), spec)
        pairs = list(zip(learned.lefts, learned.rights, strict=True))
        if verbose:
            for number, pair in enumerate(pairs, 1):
                show(number, pair, learned.merges[number - 1], learned.frequencies[number - 1])
    else:
        pairs = learn(_chunks(text, pattern), wanted, "minbpe", show if verbose else None).pairs
    if len(pairs) < wanted:
        raise ValueError(
            f"after {len(pairs)} merges no pair is left in the text; give train() more text, or at most "
            f"vocab_size={BYTES + len(pairs)}"
        )
    return {pair: idx for idx, pair in enumerate(pairs, BYTES)}


def _chunks(text: str, pattern: str | None) -> dict[bytes, int]:
    """The chunks of a text, counted. Where a match is empty, regex looks for a longer one, and so minbpe."""
    found = [text] if pattern is None else (match.group() for match in compiled(pattern).finditer(text))
    return count_chunks(filter(None, found), None)


def _words(text: str, pattern: str | None) -> Words:
    """The chunks of a text, counted; the core remembers in which order they come."""
    if pattern is None or cuts_alike(pattern, text):
        counter = make_counter(ByteCountSpec(pattern or "", ordered=True))
        counter.add([text.encode()])
    else:
        counter = make_counter(ByteCountSpec(ordered=True))
        chunks = _chunks(text, pattern)
        counter.add(list(chunks), list(chunks.values()))
    return counter.drain()
