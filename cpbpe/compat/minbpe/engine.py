"""Encoding and training on the core.

**Encoding**, for as long as the tables of a tokenizer say something that the core can do.

`merges` and `pattern` are plain attributes, and may be changed at any time. So what the core was built from
is compared with them before every use, which takes less time than a text that is worth it.

Three things are left to the book: merges that are no model (ids in another order, or two of equal bytes);
texts that are short; and cutting by the package `regex`, where the core may cut in another way. That is by
every pattern but the published ones; and in texts with characters that `regex` knows from a newer or older
version of Unicode than the core.

**Training**: the core and the book, `cpbpe/reference/byte_level/training.py`, learn the same merges, and the
tests compare them. What differs is when they are printed: the book prints a merge when it makes it, the core
all of them when it has made the last one, a fraction of a second later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from cpbpe.engine.choice import engine_name, make_engine
from cpbpe.engine.cutting import Cutter
from cpbpe.engine.training import learn as learn_fast
from cpbpe.engine.training import make_counter
from cpbpe.errors import ModelError
from cpbpe.model.formats.minbpe import BYTES, Model, Pair, spec_of
from cpbpe.model.spec import Pieces, SplitSpec
from cpbpe.reference.byte_level.patterns import compiled
from cpbpe.reference.byte_level.training import count_chunks, learn
from cpbpe.reference.training_values import ByteCountSpec, ByteLearnSpec, Words

_SHORT = 30
"""Shorter texts are left to the book."""
_WORTH_IT = 30
"""Each character takes the book about as long as comparing this many merges takes."""


class _Built(NamedTuple):
    """What the core was built from, and what it gives; None for what is left to the book."""

    pattern: str
    merges: dict[Pair, int]
    text: Callable[[bytes], list[int]] | None
    """Cuts a text, and encodes it."""
    chunk: Callable[[bytes], list[int]] | None
    """Encodes what was cut already."""


class FastEncoder:
    """Encodes for one tokenizer of the lecture."""

    def __init__(self, bytes_of_ids: bytes = bytes(range(BYTES))):
        """`bytes_of_ids`: the bytes that the ids 0 to 255 stand for."""
        self._bytes = bytes_of_ids
        self._built: _Built | None = None

    def encode(self, text: str, pattern: str, merges: Mapping[Pair, int]) -> list[int] | None:
        """The ids of a text; None if it is left to the book."""
        if len(text) < _SHORT or len(text) * _WORTH_IT < len(merges) or engine_name() != "core":
            return None
        built = self._built
        if built is None or built.pattern != pattern or built.merges != merges:
            built = self._built = self._build(pattern, dict(merges))
        if built.chunk is None:
            return None
        if built.text is not None and (text.isascii() or _odd_characters().isdisjoint(text)):
            return built.text(text.encode())
        chunks = (match.group().encode() for match in compiled(pattern).finditer(text))
        return list(chain.from_iterable(map(built.chunk, chunks)))

    def _build(self, pattern: str, merges: dict[Pair, int]) -> _Built:
        nothing = _Built(pattern, merges, None, None)
        if list(merges.values()) != list(range(BYTES, BYTES + len(merges))):
            return nothing
        try:
            spec, differences = spec_of(Model("", {}, merges))
        except (ModelError, KeyError):  # two ids of equal bytes; or halves that have no bytes
            return nothing
        if differences:
            return nothing
        texts = [text.translate(self._bytes) for text in spec.pieces.texts]
        pieces = Pieces.of_lists(texts, spec.pieces.numbers(), spec.pieces.types)
        spec = replace(spec, pieces=pieces)
        chunk = make_engine(spec).encode
        if not pattern:
            return _Built(pattern, merges, chunk, chunk)
        text = make_engine(replace(spec, splitter=SplitSpec(pattern))).encode if _is_known(pattern) else None
        return _Built(pattern, merges, text, chunk)


def cuts_alike(pattern: str, text: str) -> bool:
    """Whether the core is sure to cut this text by a pattern as the package `regex` does.

    For a long text: only the characters in it are looked up, but the text is gone through for them.
    """
    return _is_known(pattern) and (text.isascii() or not _odd_among("".join(set(text))))


@lru_cache(8)
def _is_known(pattern: str) -> bool:
    """Whether the core cuts by a pattern without a regular expression."""
    try:
        return Cutter(pattern, "core").is_complete
    except ValueError:  # `regex` says what is wrong with it, if anything is
        return False


@lru_cache(1)
def _odd_characters() -> frozenset[str]:
    """The characters that `regex` and the core take for different kinds.

    Making it takes a third of a second, once in a process.
    """
    return _odd_among("".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000))


def _odd_among(characters: str) -> frozenset[str]:
    odd: set[str] = set()
    for kind in _KINDS:
        ours = b"".join(Cutter(kind, "core").chunks(characters)).decode()
        odd |= set(ours) ^ set("".join(compiled(kind).findall(characters)))
    return frozenset(odd)


_KINDS = (r"\p{L}+", r"\p{N}+", r"\s+", r"\p{Lu}+", r"\p{Ll}+", r"\p{Lt}+", r"\p{Lm}+", r"\p{Lo}+", r"\p{M}+")
"""What the published patterns tell apart."""


# --- Training -------------------------------------------------------------------------------------


def learn_merges(text: str, pattern: str | None, vocab_size: int, verbose: bool) -> dict[Pair, int]:
    """The merges that minbpe learns from a text; printed one by one, if `verbose`.

    `pattern` cuts the text; without one, it is a single chunk.
    """
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
