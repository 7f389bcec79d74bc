"""Cutting texts to a number of tokens: `Tokenizer.truncate` and `Tokenizer.split`.

A cut is made where a token of the text ends. The part before it is then encoded by itself to count its ids,
because these can differ from those within the text: spaces at the end may be removed, or a dummy prefix added
there.

A long text is not encoded to its end to find a cut near its beginning. Only a *window* is encoded, which
grows until enough of its tokens are certain. Tokens are certain if they come before a place where nothing can
merge (`Engine.cut`), in the part of the normalized text that more text cannot change.
"""

from __future__ import annotations

from bisect import bisect_right
from codecs import utf_8_decode
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from typing import SupportsIndex, TypeVar, cast

from cpbpe.checks import Text, checked_limit, checked_text, utf8
from cpbpe.engine.protocol import Engine, Span
from cpbpe.text.unicode_forms import last_boundary
from cpbpe.text.utf8 import SPACE, is_inside, valid_character
from cpbpe.text.utf8 import certain as complete
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.special_tokens import FoundToken, engine_at

AnyText = TypeVar("AnyText", bound=str | bytes)

FIRST_WINDOW = 4
"""The first window has this many characters (or bytes) for each token, plus FIRST_MARGIN."""
FIRST_MARGIN = 64
"""See FIRST_WINDOW."""
MANY = 256
"""A window with twice as many tokens as needed, plus this many, is used even if they are not certain."""


def truncate(facts: ModelFacts, plan: EncodePlan, text: AnyText, max_tokens: SupportsIndex) -> AnyText:
    """The beginning of a text, with at most `max_tokens` ids. See `Tokenizer.truncate`.

    A text that fits is returned whole. Otherwise the result is the longest beginning that meets three
    conditions: it fits when it is encoded by itself; it ends where one of the first `max_tokens` tokens of
    the text ends; and it does not end inside a character.
    """
    limit = _limit(plan, max_tokens, 0)
    given = checked_text(text, "truncate")
    return cast(AnyText, given[: _Cutter(facts, _for_parts(plan, given), limit).end(given, 0)])


def split(
    facts: ModelFacts, plan: EncodePlan, text: AnyText, max_tokens: SupportsIndex, overlap: SupportsIndex
) -> list[AnyText]:
    """A text in parts that have at most `max_tokens` ids each. See `Tokenizer.split`.

    Each part is what `truncate` returns for the rest of the text, or one character if that is empty. The rest
    begins where the part before it ends, or up to `overlap` of that part's tokens earlier: as many as
    possible while the new part still ends after the old one.
    """
    limit = _limit(plan, max_tokens, 1)
    shared = checked_limit(overlap, "overlap")
    if shared >= limit:
        without = " without bos and eos" if plan.around else ""
        raise ValueError(f"overlap is {shared}, and must be less than max_tokens, which is {limit}{without}")
    given = checked_text(text, "split")
    parts = _Cutter(facts, _for_parts(plan, given), limit).parts(given, shared)
    return [cast(AnyText, given[begin:end]) for begin, end in parts]


def _limit(plan: EncodePlan, max_tokens: SupportsIndex, least: int) -> int:
    """How many ids are left for the text itself."""
    limit = checked_limit(max_tokens, "max_tokens", least)
    if limit < plan.around + least * bool(plan.around):
        raise ValueError(
            f"max_tokens is {limit}, and bos and eos take {plan.around} of them; choose a larger one"
        )
    return limit - plan.around


def _for_parts(plan: EncodePlan, text: Text) -> EncodePlan:
    """The plan for the parts of a text, after the whole text was searched for tokens that it must not hold.

    Searching the whole text first makes a refusal independent of where it is cut and how much is encoded.
    """
    encoder = plan.encoder
    return plan.changed(encoder=encoder.checked(text)) if isinstance(encoder, SpecialEncoder) else plan


class _Cutter:
    """Cuts texts to a fixed number of tokens. Positions count characters of str, and bytes of bytes."""

    def __init__(self, facts: ModelFacts, plan: EncodePlan, limit: int):
        self._facts = facts
        self._encoder = plan.encoder
        self._limit = limit
        self._around = plan.around
        self._window = FIRST_WINDOW * limit + FIRST_MARGIN
        self._many = 2 * limit + MANY
        self._longest_special = 0
        self._is_odd = False  # whether special tokens can only be found in the whole text
        if isinstance(plan.encoder, SpecialEncoder) and plan.encoder.finder is not None:
            self._longest_special = max(map(len, plan.encoder.finder.ids), default=0)
            self._is_odd = plan.encoder.finder.odd is not None

    def parts(self, text: Text, overlap: int) -> Iterator[tuple[int, int]]:
        """The span of every part of a text."""
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

    def _starts(self, text: Text, begin: int, end: int, overlap: int) -> Iterator[int]:
        """Yield where the last tokens of a part, encoded by itself, begin; never its first token."""
        data = utf8(text[begin:end], "split")
        _, _, spans = self._encoder.align(data, False, True)
        for i in range(max(len(spans) - overlap, 1), len(spans)):
            place = spans[i][0]
            if place > spans[i - 1][0] and not is_inside(data, place):
                yield begin + _length(text, data, place)

    def end(self, text: Text, begin: int) -> int:
        """Where the longest part that begins at `begin` ends; `begin` itself if nothing fits."""
        size = len(text) if self._is_odd else self._window
        while True:
            stop = begin + size
            whole = stop >= len(text)
            while isinstance(text, bytes) and is_inside(text, stop):
                stop -= 1
            data = utf8(text[begin:stop], "truncate")
            if whole and self._fits(data):
                return len(text)
            ids, pieces, spans = self._encoder.align(data, False, True)
            certain = whole or self._certain(data, ids, pieces, spans) > self._limit
            if certain or len(ids) > self._many:
                break
            size *= 2

        for i in range(self._limit, 0, -1):  # there are more tokens than this
            before, end = spans[i - 1]
            if spans[i][0] > before and not is_inside(data, end) and self._fits(data[:end]):
                length = _length(text, data, end)
                # The next part will probably be about as long.
                self._window = length + length // 4 + FIRST_MARGIN if certain else size
                return begin + length
        return begin

    def _fits(self, data: bytes) -> bool:
        return self._encoder.count(data) <= self._limit

    def _certain(self, data: bytes, ids: list[int], pieces: list[bytes], spans: list[Span]) -> int:
        """How many tokens of a window are certain: every text that begins with it has them. 0 if too few.

        A special token is certain if no longer one could begin at the same place. Everything before the last
        certain one is certain, too. After it comes a segment that may go on beyond the window.
        """
        first, at, engine = 0, 0, self._encoder
        if isinstance(engine, SpecialEncoder):
            row = engine.split(data)
            lengths = (len(part.taken if isinstance(part, FoundToken) else part) for part in row)
            starts = [0, *accumulate(lengths)]
            last = 0
            for i in range(1, len(row), 2):
                if starts[i] + self._longest_special <= len(data):
                    last = i + 1
            at = starts[last]
            if last:  # the special token is the one with a span that is not empty and ends there
                first = 1 + next(i for i, (begin, end) in enumerate(spans) if begin < end == at)
            engine = engine_at(row, last, engine.first, engine.later)
        if first > self._limit:
            return first
        # (Normalizing looks at most `lookahead` bytes ahead.)
        certain = len(data) - max(self._facts.lookahead, self._longest_special)
        if form := self._facts.spec.normalizer.unicode_form:
            text = data[at : at + complete(data[at:])[1]].decode(errors="surrogateescape")
            final = text[: last_boundary(form, text) or 0]
            certain = min(certain, at + len(final.encode(errors="surrogateescape")))
        count = bisect_right(spans, certain, first, key=itemgetter(1)) - first
        if count <= self._limit - first:
            return 0
        some = slice(first, first + count)
        in_segment = self._certain_in_segment(data[at:], engine, ids[some], pieces[some])
        return first + in_segment if in_segment else 0

    def _certain_in_segment(self, data: bytes, engine: Engine, ids: list[int], pieces: list[bytes]) -> int:
        """The same for the first tokens of a segment, if what follows cannot change how they are normalized.

        Together they spell the beginning of the normalized text, in which everything before a cut has its
        final tokens. (None of these is a run of unknown characters that goes on after the cut, because it
        would then do so in the window, too.)
        """
        in_bytes = self._facts.byte_ids
        lengths = [
            *accumulate(1 if id in in_bytes else len(piece) for id, piece in zip(ids, pieces, strict=True))
        ]
        spelled = engine.normalize(data)[: lengths[-1]]
        spec = self._facts.spec.normalizer
        if spec.remove_extra_whitespaces:  # spaces at the end stay only if something else follows
            space = SPACE if spec.escape_whitespaces else b" "
            while spelled.endswith(space):
                spelled = spelled.removesuffix(space)
        if self._facts.is_byte_level:  # the last token may end inside a character
            spelled = spelled[: utf_8_decode(spelled, "strict", False)[1]]
        try:
            spelled.decode()
        except UnicodeDecodeError:  # rules whose results are not UTF-8
            return 0
        return bisect_right(lengths, engine.cut(spelled))

    def _first_character(self, text: Text, begin: int) -> int:
        """Where the first character of a part, or its first special token, ends, after any spaces before it.

        The spaces belong to no token.
        """
        size, at = max(FIRST_MARGIN, 2 * self._longest_special), None
        while at is None:
            data = utf8(text[begin : begin + size], "split")
            ids, _, spans = self._encoder.align(data, False, True)
            at = next((i for i, (first, end) in enumerate(spans) if first < end), None)
            if at is None and begin + size >= len(text):
                break
            size *= 2
        start, end = (0, 0) if at is None else spans[at]
        encoder = self._encoder
        finder = encoder.finder if isinstance(encoder, SpecialEncoder) else None
        if at is None or finder is None or ids[at] not in finder.texts:
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


def _length(text: Text, data: bytes, end: int) -> int:
    """A position in the bytes of a text, as a position in the text."""
    return end if isinstance(text, bytes) else len(data[:end].decode())
