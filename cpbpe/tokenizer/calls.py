"""What the methods of a Tokenizer do with options. (Without any, most go straight to the engine.)

The Tokenizer has already made a plan from the options and, except for `align`, checked the types of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from cpbpe.checks import (
    Text,
    Unit,
    as_ids,
    checked_text,
    checked_unit,
    refuse_single,
    repeatable,
    threads_for,
    utf8,
)
from cpbpe.engine import NO_ENDS, between
from cpbpe.lazy import importing
from cpbpe.text.utf8 import character_positions
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialDecoder, SpecialEncoder, checked_parts
from cpbpe.tokenizer.vocabulary import piece_bytes

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.engine.protocol import Ids as IdArray
    from cpbpe.tokenizer.encoding import Encoding, Part

Ids = Iterable[SupportsIndex] | SupportsIndex
T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])
_NONE: frozenset[int] = frozenset()


def _blaming(call: Call) -> Call:
    """Let the error about half of a surrogate pair say which of many texts holds it."""

    @wraps(call)
    def blamed(*given: Any, **options: Any) -> Any:
        try:
            return call(*given, **options)
        except UnicodeEncodeError:
            for position, text in enumerate(next(value for value in given if isinstance(value, list))):
                try:
                    utf8(text, "")
                except UnicodeEncodeError as error:
                    error.reason += (
                        f" (in the text at position {position}; give it as bytes: "
                        f"text.encode(errors='replace'))"
                    )
                    raise error from None
            raise

    return blamed  # type: ignore[return-value]


# --- Text to ids ----------------------------------------------------------------------------------


@_blaming
def encode_batch(plan: EncodePlan, texts: list[Text], threads: int) -> list[list[int]]:
    """The ids of many texts."""
    if plan.dropout is not None:  # of an engine's calls for many texts, only those that align them can sample
        return encode_arrays(plan, texts, threads).tolist()
    return plan.encoder.encode_batch(texts, threads, plan.ends)


def encode_array(plan: EncodePlan, text: Text, threads: int) -> IdArray:
    """The ids of a text as an array."""
    if plan.dropout is None:
        return plan.encoder.encode_array(text, threads, plan.ends)
    with importing:
        import numpy as np
    return np.array(plan.encoder.encode(text, plan.ends, plan.dropout), np.uint32)


@_blaming
def encode_arrays(
    plan: EncodePlan, texts: list[Text], threads: int, spans: bool = False, unit: Unit | None = None
) -> Ragged:
    """The ids of many texts as arrays, with their spans if these are asked for."""
    with importing:
        import numpy  # noqa: F401
    checked_unit(unit, "")  # (raises an error if it is invalid, even if no spans are asked for)
    if spans or plan.dropout is not None:
        rows = align_arrays(plan, texts, threads, unit)
        return rows if spans else Ragged(rows.ids, rows.offsets)
    return Ragged(*plan.encoder.encode_arrays(texts, threads, plan.ends))


def encode_parts(facts: ModelFacts, plan: EncodePlan, parts: Iterable[Part]) -> list[int]:
    """The ids of one text in parts."""
    checked = checked_parts(parts, facts.special, facts.check_id)
    encoder = plan.encoder
    if not isinstance(encoder, SpecialEncoder):
        encoder = SpecialEncoder(encoder, plan.later(encoder), None)
    return plan.finish(encoder.encode_parts(checked, facts.special.all_texts, plan.dropout))


def encode_pieces(facts: ModelFacts, plan: EncodePlan, text: Text) -> list[str]:
    """The pieces of a text."""
    if plan.speller is not None:
        return plan.speller.encode_pieces(text, plan.ends, plan.dropout)
    encoder, (front, back, reverse) = plan.encoder, plan.ends or NO_ENDS
    if isinstance(encoder, SpecialEncoder):
        pieces = encoder.encode_pieces(text, plan.dropout)
    else:
        pieces = encoder.encode_pieces(text, None, plan.dropout)  # engines cannot spell added tokens
    first, last = (None if id is None else facts.piece(id) for id in (front, back))
    return between(pieces, first, last, reverse)


def count(plan: EncodePlan, text: Text) -> int:
    """How many ids a text has."""
    if plan.dropout is None:
        return plan.encoder.count(text) + plan.around
    return len(plan.encoder.encode(text, plan.ends, plan.dropout))


@_blaming
def count_batch(plan: EncodePlan, texts: list[Text], threads: int) -> list[int]:
    """How many ids each of many texts has."""
    if plan.dropout is not None:
        return list(map(len, encode_batch(plan, texts, threads)))
    counts = plan.encoder.count_batch(texts, threads)
    return [count + plan.around for count in counts] if plan.around else counts


# --- Text to ids with their places in the text ----------------------------------------------------


def align(facts: ModelFacts, plan: EncodePlan, text: Text, method: str, unit: Unit | None) -> Encoding:
    """Encode a text with its alignment, according to a plan."""
    given = checked_text(text, method)
    unit = checked_unit(unit, text)
    ids, pieces, spans = plan.encoder.align(given, unit == "char", False, plan.dropout)
    return _encoding(facts, plan, ids, pieces, spans, given, unit)


@_blaming
def align_batch(
    facts: ModelFacts, plan: EncodePlan, texts: list[Text], threads: int, unit: Unit | None
) -> list[Encoding]:
    """The same for many texts."""
    chars = None if unit is None else checked_unit(unit, "") == "char"
    aligned = plan.encoder.align_batch(texts, threads, chars, plan.dropout)
    return [
        _encoding(facts, plan, ids, pieces, spans, text, checked_unit(unit, text))
        for text, (ids, pieces, spans) in zip(texts, aligned, strict=True)
    ]


def align_arrays(plan: EncodePlan, texts: list[Text], threads: int, unit: Unit | None) -> Ragged:
    """The ids of many texts as arrays, with their spans."""
    chars = None if unit is None else checked_unit(unit, "") == "char"
    ids, offsets, spans = plan.encoder.align_arrays(texts, threads, chars, plan.dropout)
    lengths = [_length(text, checked_unit(unit, text)) for text in texts] if plan.back else None
    return plan.finish_ragged(Ragged(ids, offsets, spans), lengths)


def _encoding(
    facts: ModelFacts,
    plan: EncodePlan,
    ids: list[int],
    pieces: list[str],
    spans: list[tuple[int, int]],
    text: Text,
    unit: Unit,
) -> Encoding:
    """An Encoding of one text, with the ids that the plan puts around it."""
    special = _NONE
    if isinstance(plan.encoder, SpecialEncoder) and plan.encoder.finder is not None:
        found = plan.encoder.finder.texts.keys() & set(ids)
        special = frozenset(found.difference(facts.special.plain.values()))
    if plan.reverse:
        ids, pieces, spans = ids[::-1], pieces[::-1], spans[::-1]
    if plan.around:
        front, back = plan.front, plan.back
        ids = [*front, *ids, *back]
        named = [[facts.piece(id) for id in around] for around in (front, back)]
        length = _length(text, unit) if back else 0
        pieces = [*named[0], *pieces, *named[1]]
        spans = [*((0, 0) for _ in front), *spans, *((length, length) for _ in back)]
        special = special.union(front, back)
    encoding = object.__new__(_class())  # the constructor of a frozen class takes three times as long
    encoding.__dict__.update(
        ids=ids, pieces=pieces, offsets=spans, text=text, unit=unit, special=special, facts=facts
    )
    return encoding


def _length(text: Text, unit: Unit) -> int:
    """How many characters or bytes a text has."""
    if unit == "byte":
        return len(text.encode() if isinstance(text, str) else text)
    return len(text) if isinstance(text, str) else character_positions(text)[-1]


@cache
def _class() -> type[Encoding]:
    """The class of the results, imported when the first text is aligned."""
    with importing:
        from cpbpe.tokenizer.encoding import Encoding
    return Encoding


# --- Ids to text ----------------------------------------------------------------------------------


def decode(facts: ModelFacts, decoder: Engine | SpecialDecoder, ids: Ids) -> str:
    """The text of ids."""
    ids = repeatable(ids)
    plain = _plain(decoder)
    text = None if plain is None else plain.decode(_unchecked(facts, ids, "decode"))
    if text is None:  # there is a special token, or an id is wrong
        text = decoder.decode(facts.check_ids(ids, "decode"))
    return _not_none(text)


def decode_bytes(facts: ModelFacts, decoder: Engine | SpecialDecoder, ids: Ids) -> bytes:
    """The same as bytes."""
    ids = repeatable(ids)
    plain = _plain(decoder)
    text = None if plain is None else plain.decode_bytes(_unchecked(facts, ids, "decode_bytes"))
    if text is None:
        text = decoder.decode_bytes(facts.check_ids(ids, "decode_bytes"))
    return _not_none(text)


def decode_batch(
    facts: ModelFacts, decoder: Engine | SpecialDecoder, batch: Iterable[Ids] | Ragged, threads: int | None
) -> list[str]:
    """The texts of many sequences of ids."""
    refuse_single(batch, (str, bytes, bytearray), "decode_batch", "sequences of ids")
    listed = [ids if type(ids) is list else _row(ids, row) for row, ids in enumerate(batch)]
    plain = _plain(decoder)
    if plain is not None:
        size = facts.special.size
        given = [ids if type(ids) is list else as_ids(ids, size, "decode_batch") for ids in listed]
        texts = plain.decode_batch(given, threads_for(given, threads))
        if texts is not None:
            return texts
    rows: list[list[int] | bytes] = [
        facts.check_ids(ids, "decode_batch", f" of sequence {row}") for row, ids in enumerate(listed)
    ]
    return _not_none(decoder.decode_batch(rows, threads_for(rows, threads)))


def _row(ids: Any, row: int) -> Any:
    """One of many sequences of ids, in a form that can be iterated over twice."""
    if hasattr(ids, "__index__") and not hasattr(ids, "__len__"):
        raise TypeError(
            f"decode_batch() takes a list of sequences of ids, found {type(ids).__name__} at position {row}; "
            f"for one sequence use decode"
        )
    return repeatable(ids)


def _plain(decoder: Engine | SpecialDecoder) -> Engine | None:
    """The engine that decodes ordinary ids; None if it would also decode ids that are shown or left out.

    Its methods take unchecked ids, and return None if they cannot decode them.
    """
    return decoder.plain if isinstance(decoder, SpecialDecoder) else decoder


def decode_pieces(decoder: Engine | SpecialDecoder, pieces: Iterable[str | bytes]) -> str:
    """The text of pieces."""
    if type(pieces) is list and not isinstance(decoder, SpecialDecoder):
        with suppress(UnicodeEncodeError):  # a piece that is not UTF-8, see `piece_bytes`
            text = decoder.decode_pieces(pieces)
            if text is not None:
                return text
    refuse_single(pieces, (str, bytes, bytearray, memoryview), "decode_pieces", "pieces")
    return _not_none(decoder.decode_pieces([piece_bytes(piece, "decode_pieces") for piece in pieces]))


def _unchecked(facts: ModelFacts, ids: Any, method: str) -> list[int] | bytes:
    """Ids in a form that engines take, not checked."""
    return ids if type(ids) is list else as_ids(ids, facts.special.size, method)


def _not_none(text: T | None) -> T:
    """The engine's result for checked ids, which is never None."""
    assert text is not None
    return text
