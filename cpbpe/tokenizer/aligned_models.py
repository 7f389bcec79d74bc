"""Two tokenizers at once: `align_models`, for a network that learns from another, or guesses its next ids.

Ids of two vocabularies do not mean the same. What two networks have in common is the text. So a text is cut
where tokens of both begin, and each part has ids of one and ids of the other; and two ids that add the same
bytes to a text stand for each other.

**Where a token begins.** At a place at which no token stands for text on both sides. The spans of
`Tokenizer.align` are not enough to find it, because they are sentencepiece's: if a rule turns `ﬁ` into `fi`,
and `a` and `f` become one token, then the span of this token ends before the `ﬁ`, from which half of it came.
So this file looks at where each byte of the normalized text came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import Text, Unit, checked_text, checked_unit
from cpbpe.lazy import kept
from cpbpe.text.utf8 import character_positions
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.special_tokens import FoundToken, as_bytes, engine_at
from cpbpe.tokenizer.tokenizer import Tokenizer


class AlignedSpan(NamedTuple):
    """A part of a text, and its ids."""

    begin: int
    """Where it begins in the text."""
    end: int
    """Where it ends."""
    a: slice
    """Its ids in `AlignedText.a_ids`."""
    b: slice
    """Its ids in `AlignedText.b_ids`."""


class AlignedText(NamedTuple):
    """The ids of a text with two tokenizers. `AlignedModels.align` returns it."""

    a_ids: list[int]
    """What `encode` of the first tokenizer returns."""
    b_ids: list[int]
    """What `encode` of the second one returns."""
    spans: list[AlignedSpan]
    """The parts of the text, in order. Together they are the whole of it."""


@dataclass(frozen=True)
class AlignedModels:
    """Two tokenizers, seen together. `cpbpe.align_models` makes one."""

    a: Tokenizer
    """The first tokenizer."""
    b: Tokenizer
    """The second one."""

    def align(self, text: Text, *, unit: Unit | None = None) -> AlignedText:
        """The ids of both for a text, and the smallest parts of it at whose ends tokens of both begin or end.

        Places count characters for `str` and bytes for `bytes`; `unit` ("char" or "byte") chooses. The
        options of encoding are those that `using` has bound to each tokenizer.

        >>> import cpbpe
        >>> mistral = cpbpe.load("tokenizer.model")
        >>> small = cpbpe.train(["the end, the rest"], vocab_size=280).tokenizer
        >>> found = cpbpe.align_models(mistral, small).align("the rest")
        >>> for begin, end, a, b in found.spans:
        ...     print(begin, end, found.a_ids[a], found.b_ids[b])
        0 3 [272] [261]
        3 8 [1846] [268]

        A part without ids of one of them (a space that only this model removes) is joined with the next one
        or, at the end, with the one before. The ids of bos and eos belong to no part.
        """
        given = checked_text(text, "align")
        data = given.encode() if isinstance(given, str) else given
        is_char = checked_unit(unit, given) == "char"
        places = character_positions(data) if is_char else range(len(data) + 1)
        a, b = _tokens(self.a, given), _tokens(self.b, given)
        # 1. The places between two parts, each with the tokens before it.
        rows = [(0, 0, 0)]
        for place in sorted(a.begins.keys() & b.begins.keys()):
            row = place, a.begins[place], b.begins[place]
            has_ids = rows[-1][1] < row[1] < a.size and rows[-1][2] < row[2] < b.size
            if has_ids and places[place - 1] < places[place]:  # (not within a character)
                rows.append(row)
        if data:
            rows.append((len(data), a.size, b.size))
        # 2. The parts.
        spans = [
            AlignedSpan(
                places[begin],
                places[end],
                slice(a.front + first_a, a.front + last_a),
                slice(b.front + first_b, b.front + last_b),
            )
            for (begin, first_a, first_b), (end, last_a, last_b) in pairwise(rows)
        ]
        return AlignedText(a.ids, b.ids, spans)

    @kept
    def same_ids(self) -> NDArray[np.int64]:
        """For each id of the first tokenizer the id of the second that adds the same bytes; -1 for none.

        The bytes are those of `Vocabulary.token_bytes` with `text_only`. So ids that stand for no text, such
        as those of bos and eos, have -1. If several ids of the second add the same bytes, it is the lowest
        one that is no BYTE piece; but for a BYTE piece it is the BYTE piece, if there is one.

        >>> import cpbpe
        >>> mistral = cpbpe.load("tokenizer.model")
        >>> small = cpbpe.train(["the end, the rest"], vocab_size=280).tokenizer
        >>> same = cpbpe.align_models(small, mistral).same_ids
        >>> small.encode("the end"), same[small.encode("the end")].tolist()
        ([261, 267], [272, 948])
        """
        facts, others = self.a.facts, self.b.facts
        texts: dict[bytes, int] = {}
        single_bytes: dict[bytes, int] = {}
        for id, data in reversed([*enumerate(others.token_bytes(text_only=True))]):
            (single_bytes if id in others.byte_ids else texts)[data] = id
        known = {**single_bytes, **texts, b"": -1}
        table = facts.token_bytes(text_only=True)
        same = np.array([known.get(data, -1) for data in table], np.int64)
        for id in facts.byte_ids:
            same[id] = single_bytes.get(table[id], same[id])
        return same


def align_models(a: Tokenizer, b: Tokenizer) -> AlignedModels:
    """Two tokenizers, to be seen together: which parts of a text, and which pieces, both of them have.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> models = cpbpe.align_models(tok, tok.using(prefix_space=False))
    >>> [(span.begin, span.end) for span in models.align("Hello world").spans]
    [(0, 5), (5, 11)]
    """
    for tok in (a, b):
        if not isinstance(tok, Tokenizer):
            raise TypeError(f"align_models() takes two tokenizers of cpbpe, not {type(tok).__name__}")
    return AlignedModels(a, b)


class _Tokens(NamedTuple):
    """The tokens of a text."""

    ids: list[int]
    """All ids."""
    front: int
    """How many of them are put in front of those of the text."""
    size: int
    """How many are those of the text."""
    begins: dict[int, int]
    """The places in the text, in bytes, at which a token begins, each with how many tokens are before it."""


def _tokens(tok: Tokenizer, text: Text) -> _Tokens:
    plan = tok.plans.encode({}, "align")
    if plan.reverse:
        raise ValueError(
            "align() needs ids in the order of the text, and a tokenizer has bound reverse=True; give it "
            "tok.using(reverse=False)"
        )
    encoder = plan.encoder
    if not isinstance(encoder, SpecialEncoder):
        encoder = SpecialEncoder(encoder, encoder, None)
    row = encoder.split(text)
    ids, pieces, _ = encoder.align_row(row, True, plan.dropout)
    byte_ids = tok.facts.byte_ids
    begins: dict[int, int] = {}
    place = token = 0
    for position, part in enumerate(row):
        begins[place] = token
        if isinstance(part, FoundToken):
            token += 1
        else:
            origins = engine_at(row, position, encoder.first, encoder.later).origins(part)[1]
            at = 0
            while at < len(origins) - 1:
                if origins[at - 1] < origins[at]:  # (at 0, `begins` has the place already)
                    begins[place + origins[at]] = token
                at += 1 if ids[token] in byte_ids else len(pieces[token])
                token += 1
        place += len(as_bytes(part))
    return _Tokens(plan.finish(ids), len(plan.front), token, begins)
