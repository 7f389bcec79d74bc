"""Texts cut to a number of tokens: `Tokenizer.truncate` and `Tokenizer.split`.

A cut goes where a token of the text ends, and what stands in front of it is counted by itself before it is
believed to fit: with spaces that go at its end, or a dummy prefix there, it may have other ids than it has
within the text.

A long text is not encoded to its end to find a cut near its beginning. What is looked at, the *window*, grows
until enough of its tokens are certain: those in front of a place where nothing can merge (`Engine.cut`), in
that part of the normalized text which more text cannot change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import SupportsIndex, TypeVar, cast

from cpbpe.engine.protocol import Engine
from cpbpe.text.utf8 import SPACE, is_inside, valid_character
from cpbpe.tokenizer.checks import checked_limit, checked_text, utf8
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder

AnyText = TypeVar("AnyText", bound=str | bytes)

FIRST_WINDOW = 4
"""This many characters (or bytes) for each token, and FIRST_MARGIN, are looked at first."""
FIRST_MARGIN = 64
"""See FIRST_WINDOW."""
MANY = 256
"""Where no token is certain, they are believed in a window with this many more than twice those needed."""


def truncate(facts: ModelFacts, plan: EncodePlan, text: AnyText, max_tokens: SupportsIndex) -> AnyText:
    """The beginning of a text that has at most `max_tokens` ids. See `Tokenizer.truncate`.

    It is the text itself if that fits; else the longest beginning that ends where one of the first
    `max_tokens` tokens of the text ends, not inside a character, and that fits when it is encoded by itself.
    """
    limit = _limit(plan, max_tokens, 0)
    given = _checked(text, "truncate")
    return cast(AnyText, given[: _Cutter(facts, _for_parts(plan, given), limit).end(given, 0)])


def split(
    facts: ModelFacts, plan: EncodePlan, text: AnyText, max_tokens: SupportsIndex, overlap: SupportsIndex
) -> list[AnyText]:
    """A text in parts that have at most `max_tokens` ids each. See `Tokenizer.split`.

    Each part is what `truncate` makes of the rest of the text, or one character where that is nothing.
    The rest begins where the part before ends; or at most `overlap` of that part's own tokens before, as
    many as leave a part that ends behind it.
    """
    limit = _limit(plan, max_tokens, 1)
    shared = checked_limit(overlap, "overlap")
    if shared >= limit:
        raise ValueError(f"overlap is less than max_tokens, which is {limit}; it is {shared}")
    given = _checked(text, "split")
    parts = _Cutter(facts, _for_parts(plan, given), limit).parts(given, shared)
    return [cast(AnyText, given[begin:end]) for begin, end in parts]


def _limit(plan: EncodePlan, max_tokens: SupportsIndex, least: int) -> int:
    """How many ids the text itself may have."""
    limit = checked_limit(max_tokens, "max_tokens", least)
    if limit < plan.around + least * bool(plan.around):
        raise ValueError(
            f"max_tokens is {limit}, and bos and eos take {plan.around} of them; give a larger one"
        )
    return limit - plan.around


def _checked(text: AnyText, method: str) -> AnyText:
    given: AnyText = checked_text(text, method)  # type: ignore[assignment]
    return given


def _for_parts(plan: EncodePlan, text: AnyText) -> EncodePlan:
    """The plan for parts of a text, all of which is searched for tokens that it must not hold.

    That does not depend on where the text is cut, nor on how much of it is looked at for that.
    """
    encoder = plan.encoder
    return replace(plan, encoder=encoder.checked(text)) if isinstance(encoder, SpecialEncoder) else plan


class _Cutter:
    """Cuts texts to one number of tokens. Positions count characters of str, and bytes of bytes."""

    def __init__(self, facts: ModelFacts, plan: EncodePlan, limit: int):
        self._facts = facts
        self._encoder = plan.encoder
        self._limit = limit
        self._around = plan.around
        self._window = FIRST_WINDOW * limit + FIRST_MARGIN
        self._many = 2 * limit + MANY
        self._longest_special = 0
        if isinstance(plan.encoder, SpecialEncoder) and plan.encoder.finder is not None:
            self._longest_special = max(map(len, plan.encoder.finder.ids), default=0)

    def parts(self, text: str | bytes, overlap: int) -> Iterator[tuple[int, int]]:
        """Begin and end of every part of a text."""
        begin = end = 0
        while end < len(text):
            starts = [] if begin == end or not overlap else self._starts(text, begin, end, overlap)
            for begin in starts:
                new = self.end(text, begin)
                if new > end:
                    break
            else:
                begin, new = end, self.end(text, end)
                if new == end:
                    new = self._first_character(text, end)
            end = new
            yield begin, end

    def _starts(self, text: str | bytes, begin: int, end: int, overlap: int) -> Iterator[int]:
        """Where the last tokens of a part begin, as it is encoded by itself; the first one is left out."""
        data = utf8(text[begin:end], "split")
        _, _, begins, _ = self._encoder.align(data)
        for i in range(max(len(begins) - overlap, 1), len(begins)):
            if begins[i] > begins[i - 1] and not is_inside(data, begins[i]):
                yield begin + _length(text, data, begins[i])

    def end(self, text: str | bytes, begin: int) -> int:
        """Where the longest part that begins at `begin` ends; `begin` itself if nothing fits."""
        size = self._window
        while True:
            stop = begin + size
            whole = stop >= len(text)
            while isinstance(text, bytes) and is_inside(text, stop):
                stop -= 1
            data = utf8(text[begin:stop], "truncate")
            if whole and self._fits(data):
                return len(text)
            ids, pieces, begins, ends = self._encoder.align(data)
            certain = whole or self._certain(data, ids, pieces, begins, ends) > self._limit
            if certain or len(ids) > self._many:
                break
            size *= 2

        for i in range(self._limit, 0, -1):  # there are more tokens than that
            end = ends[i - 1]
            if begins[i] > begins[i - 1] and not is_inside(data, end) and self._fits(data[:end]):
                length = _length(text, data, end)
                # The next part will be about as long.
                self._window = length + length // 4 + FIRST_MARGIN if certain else size
                return begin + length
        return begin

    def _fits(self, data: bytes) -> bool:
        return self._encoder.count(data) <= self._limit

    def _certain(
        self, data: bytes, ids: list[int], pieces: list[bytes], begins: list[int], ends: list[int]
    ) -> int:
        """How many tokens of a window are those of any text that begins with it; 0 if not more than needed.

        A special token is certain if no longer one could stand where it begins. What stands before the last
        of these is encoded whatever follows it; what stands after it is a segment that is not complete.
        """
        first, at, engine = 0, 0, self._encoder
        if isinstance(engine, SpecialEncoder):
            row = engine.split(data)
            lengths = (len(engine.spell(part) if isinstance(part, int) else part) for part in row)
            starts = [0, *accumulate(lengths)]
            last = 0
            for i in range(1, len(row), 2):
                if starts[i] + self._longest_special <= len(data):
                    last = i + 1
            at = starts[last]
            if last:  # the token that is not empty and ends there is the special one
                first = 1 + next(i for i, end in enumerate(ends) if begins[i] < end == at)
            engine = engine.engine_at(last)
        if first > self._limit:
            return first
        in_segment = self._certain_in_segment(
            data[at:],
            engine,
            ids[first:],
            pieces[first:],
            [end - at for end in ends[first:]],
            self._limit - first,
        )
        return first + in_segment if in_segment else 0

    def _certain_in_segment(
        self, data: bytes, engine: Engine, ids: list[int], pieces: list[bytes], ends: list[int], limit: int
    ) -> int:
        """The same for one segment of a text.

        Rewriting looks `lookahead` bytes ahead at most, so what a token came from was rewritten in the same
        way in the whole text if there are that many after it. The tokens to which that applies spell the
        beginning of the normalized text; and what stands before a cut in that has its tokens for good. (None
        of them is an unknown part that goes on after the cut: it would do so in the window, too.)
        """
        count = bisect_right(ends, len(data) - max(self._facts.lookahead, self._longest_special))
        if count <= limit:
            return 0
        in_bytes = self._facts.byte_ids
        lengths = [
            *accumulate(
                1 if id in in_bytes else len(piece)
                for id, piece in zip(ids[:count], pieces[:count], strict=True)
            )
        ]
        spelled = engine.normalize(data)[: lengths[-1]]
        spec = self._facts.spec.normalizer
        if spec.remove_extra_whitespaces:  # spaces at the end go, if nothing else follows
            space = SPACE if spec.escape_whitespaces else b" "
            while spelled.endswith(space):
                spelled = spelled.removesuffix(space)
        try:
            spelled.decode()
        except UnicodeDecodeError:  # rules that make broken text
            return 0
        return bisect_right(lengths, engine.cut(spelled))

    def _first_character(self, text: str | bytes, begin: int) -> int:
        """Where the first character of a part ends, or its special token, with spaces in front of it.

        The spaces belong to no token.
        """
        size, at = max(FIRST_MARGIN, 2 * self._longest_special), None
        while at is None:
            data = utf8(text[begin : begin + size], "split")
            ids, _, begins, ends = self._encoder.align(data)
            at = next((i for i, (b, e) in enumerate(zip(begins, ends, strict=True)) if b < e), None)
            if at is None and begin + size >= len(text):
                break
            size *= 2
        start = 0 if at is None else begins[at]
        encoder = self._encoder
        if at is not None and isinstance(encoder, SpecialEncoder) and ids[at] in encoder.found_ids:
            end = ends[at]
        else:
            end = start + len(valid_character(data, start) or b"?")
        count = encoder.count(data[:end])
        if count <= self._limit:
            return begin + _length(text, data, end)
        shown = data[start:end].decode() if valid_character(data, start) else data[start:end]
        raise ValueError(
            f"max_tokens is {self._limit + self._around}, but {shown!r} at position "
            f"{begin + _length(text, data, start)} has {count} ids by itself, and no character is cut; "
            f"max_tokens must be at least {count + self._around}"
        )


def _length(text: str | bytes, data: bytes, end: int) -> int:
    """A position in the bytes of a text as one in the text."""
    return end if isinstance(text, bytes) else len(data[:end].decode())
