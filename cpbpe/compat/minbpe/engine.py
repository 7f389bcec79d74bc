"""Encoding and training on the core, with the reference (`cpbpe/reference/byte_level`) where that is needed.

**Encoding.** `merges` and `pattern` are plain attributes, which users may change at any time. So before every
use, they are compared with what the core's engine was built from. For long texts, that takes less time than
it saves.

The core is not used for three things. Merges that are no model (ids in another order, or two with the same
bytes) and short texts are left to the reference. Texts are cut by the package `regex` where the core may cut
differently: by all patterns but the published ones, and if the text has characters that are of another kind
in the core's version of Unicode than in that of `regex`.

**Training.** The core and the reference learn the same merges, and the tests compare them. With `verbose`,
the reference prints each merge when it makes it. With the core, all of them are printed at the end, a
fraction of a second later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

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
"""Shorter texts are left to the reference."""
_WORTH_IT = 30
"""The reference takes about as long for a character as it takes to compare this many merges."""


class _Built(NamedTuple):
    """What the core was built from, and its functions; None for what is left to the reference."""

    pattern: str
    merges: dict[Pair, int]
    text: Callable[[bytes], list[int]] | None
    """Cuts a text and encodes it."""
    chunk: Callable[[bytes], list[int]] | None
    """Encodes a single chunk."""


class FastEncoder:
    """Encodes for one tokenizer on the core, if it can."""

    def __init__(self, bytes_of_ids: bytes = bytes(range(BYTES))):
        """`bytes_of_ids`: the bytes that the ids 0 to 255 stand for."""
        self._bytes = bytes_of_ids
        self._built: _Built | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FastEncoder, (self._bytes,)

    def encode(self, text: str, pattern: str, merges: Mapping[Pair, int]) -> list[int] | None:
        """The ids of a text; None if it is left to the reference."""
        if len(text) < _SHORT or len(text) * _WORTH_IT < len(merges) or engine_name() != "core":
            return None
        built = self._built
        if built is None or built.pattern != pattern or built.merges != merges:
            built = self._built = self._build(pattern, dict(merges))
        if built.chunk is None:
            return None
        if built.text is not None and (text.isascii() or _differing_characters().isdisjoint(text)):
            return built.text(text.encode())
        chunks = (match.group().encode() for match in compiled(pattern).finditer(text))
        return list(chain.from_iterable(map(built.chunk, chunks)))

    def _build(self, pattern: str, merges: dict[Pair, int]) -> _Built:
        nothing = _Built(pattern, merges, None, None)
        if list(merges.values()) != list(range(BYTES, BYTES + len(merges))):
            return nothing
        try:
            spec, differences = spec_of(Model("", {}, merges))
        except (ModelError, KeyError):  # two ids have the same bytes, or a pair has an id without bytes
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


@lru_cache(8)
def _is_known(pattern: str) -> bool:
    """Whether the core has a scanner of its own for a pattern, without a regular expression."""
    try:
        return Cutter(pattern, "core").is_complete
    except ValueError:  # if the pattern is wrong, `regex` reports it later
        return False


@lru_cache(1)
def _differing_characters() -> frozenset[str]:
    """The characters that are of different kinds in `regex` and in the core.

    This takes a third of a second, once in a process.
    """
    return _differing_among("".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000))


def _differing_among(characters: str) -> frozenset[str]:
    differing: set[str] = set()
    for kind in _KINDS:
        ours = b"".join(Cutter(kind, "core").chunks(characters)).decode()
        differing |= set(ours) ^ set("".join(compiled(kind).findall(characters)))
    return frozenset(differing)


_KINDS = (r"\p{L}+", r"\p{N}+", r"\s+", r"\p{Lu}+", r"\p{Ll}+", r"\p{Lt}+", r"\p{Lm}+", r"\p{Lo}+", r"\p{M}+")
"""The kinds of characters that the published patterns distinguish."""


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
    """The chunks of a text, counted. (After an empty match, regex looks for a longer one, as in minbpe.)"""
    found = [text] if pattern is None else (match.group() for match in compiled(pattern).finditer(text))
    return count_chunks(filter(None, found), None)


def _words(text: str, pattern: str | None) -> Words:
    """The chunks of a text, counted; the core remembers in which order they come."""
    # The core cuts it if it certainly cuts as `regex` does. Each different character is looked up only once.
    if pattern is None or (
        _is_known(pattern) and (text.isascii() or not _differing_among("".join(set(text))))
    ):
        counter = make_counter(ByteCountSpec(pattern or "", ordered=True))
        counter.add([text.encode()])
    else:
        counter = make_counter(ByteCountSpec(ordered=True))
        chunks = _chunks(text, pattern)
        counter.add(list(chunks), list(chunks.values()))
    return counter.drain()
