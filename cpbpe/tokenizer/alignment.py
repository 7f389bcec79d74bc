"""`Tokenizer.align`: the ids and pieces of a text, and where in the text each came from."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cpbpe.checks import Text, Unit, checked_text, checked_unit
from cpbpe.lazy import importing
from cpbpe.text.utf8 import character_positions
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
    ids, pieces, spans = plan.encoder.align(given, unit == "char", False, plan.dropout)
    return _encoding(facts, plan, ids, pieces, spans, given, unit)


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
        special = frozenset(plan.encoder.finder.texts.keys() & set(ids))
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
