"""Texts with their ids, pieces, and where in the text these came from: what `Tokenizer.align` does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cpbpe.checks import Text, Unit, checked_text, checked_unit
from cpbpe.lazy import imported, numpy
from cpbpe.text.utf8 import character_positions, text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialEncoder

if TYPE_CHECKING:
    from cpbpe.tokenizer.encoding import Encoding

_NONE: frozenset[int] = frozenset()


def align(facts: ModelFacts, plan: EncodePlan, text: Text, method: str, unit: Unit | None) -> Encoding:
    """Encode a text with its alignment, according to a plan."""
    given = checked_text(text, method)
    unit = checked_unit(unit, text)
    mapping = plan.encoder.mapping(given, unit == "char", False, plan.alpha, plan.seed)
    if mapping is not None:
        length = _length(given, unit) if plan.back else 0
        return _encoding(facts, plan, *mapping, given, unit, length)
    data = given.encode() if isinstance(given, str) else given
    ids, pieces, begins, ends = plan.encoder.align(given, plan.alpha, plan.seed)
    length = len(data)
    if unit == "char" and not data.isascii():
        positions = character_positions(data)
        begins = [positions[begin] for begin in begins]
        ends = [positions[end] for end in ends]
        length = positions[-1]
    spans = list(zip(begins, ends, strict=True))
    return _encoding(facts, plan, ids, [text_of(piece) for piece in pieces], spans, given, unit, length)


def align_batch(
    facts: ModelFacts, plan: EncodePlan, texts: list[Text], threads: int, unit: Unit | None
) -> list[Encoding]:
    """The same for many texts."""
    chars = None if unit is None else checked_unit(unit, "") == "char"
    mappings = plan.encoder.mapping_batch(texts, threads, chars, False, plan.alpha, plan.seed)
    if mappings is not None:
        found: list[Encoding] = []
        for text, mapping in zip(texts, mappings, strict=True):
            own = checked_unit(unit, text)
            length = _length(text, own) if plan.back else 0
            found.append(_encoding(facts, plan, *mapping, text, own, length))
        return found
    numpy()
    arrays = plan.encoder.align_arrays(texts, threads, chars, plan.alpha, plan.seed)
    ids, offsets, spans = (column.tolist() for column in arrays[:3])
    names = facts.pieces
    pieces = [names[id] for id in ids]
    for at, piece in arrays[3]:
        pieces[at] = text_of(piece)
    spans = [(begin, end) for begin, end in spans]
    encodings: list[Encoding] = []
    for text, begin, end in zip(texts, offsets, offsets[1:], strict=False):
        own = checked_unit(unit, text)
        length = _length(text, own) if plan.back else 0
        rows = ids[begin:end], pieces[begin:end], spans[begin:end]
        encodings.append(_encoding(facts, plan, *rows, text, own, length))
    return encodings


def align_arrays(plan: EncodePlan, texts: list[Text], threads: int, unit: Unit | None) -> Ragged:
    """The ids of many texts as arrays, with their spans."""
    chars = None if unit is None else checked_unit(unit, "") == "char"
    ids, offsets, spans, _ = plan.encoder.align_arrays(texts, threads, chars, plan.alpha, plan.seed)
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
    length: int,
) -> Encoding:
    """An Encoding of one text of the given length, with the ids that the plan puts around it."""
    special = _NONE
    if isinstance(plan.encoder, SpecialEncoder) and plan.encoder.finder is not None:
        special = frozenset(plan.encoder.finder.texts.keys() & set(ids))
    if plan.reverse:
        ids, pieces, spans = ids[::-1], pieces[::-1], spans[::-1]
    if plan.around:
        front, back = plan.front, plan.back
        ids = [*front, *ids, *back]
        named = [[facts.piece(id) for id in around] for around in (front, back)]
        pieces = [*named[0], *pieces, *named[1]]
        spans = [*((0, 0) for _ in front), *spans, *((length, length) for _ in back)]
        special = special.union(front, back)
    encoding = object.__new__(_class())  # (the constructor of a frozen class takes three times as long)
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
    made: type[Encoding] = imported("cpbpe.tokenizer.encoding").Encoding
    return made
