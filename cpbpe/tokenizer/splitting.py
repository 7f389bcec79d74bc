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
from itertools import accumulate
from typing import TYPE_CHECKING, SupportsIndex, TypeVar, cast

from cpbpe.model.spec import PieceType
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.utf8 import SPACE, is_inside, valid_character
from cpbpe.tokenizer.alignment import checked_limit
from cpbpe.tokenizer.checks import checked_text, utf8
from cpbpe.tokenizer.facts import cache_of, habits, kinds

if TYPE_CHECKING:
    from cpbpe.tokenizer.vocabulary import Vocabulary

AnyText = TypeVar("AnyText", bound=str | bytes)

FIRST_WINDOW = 4
"""So many characters (or bytes) for each token, and FIRST_MARGIN, are looked at first."""
FIRST_MARGIN = 64
"""See FIRST_WINDOW."""
MANY = 256
"""Where no token is certain, they are believed in a window that has so many more than twice those needed."""
MAX_RULE = 100
"""Rules with longer keys, which nobody has, leave nothing certain."""

_NO_END = 1 << 62


def truncate(tok: Vocabulary, text: AnyText, max_tokens: SupportsIndex, prefix_space: bool | None) -> AnyText:
    """The beginning of a text that has at most `max_tokens` ids. See `Tokenizer.truncate`.

    It is the text itself if that fits; else the longest beginning that ends where one of the first
    `max_tokens` tokens of the text ends, not inside a character, and that fits when it is encoded by itself.
    """
    limit = checked_limit(max_tokens, "max_tokens")
    given = _checked(text, "truncate")
    return cast(AnyText, given[: _Cutter(tok, prefix_space, limit).end(given, 0)])


def split(
    tok: Vocabulary,
    text: AnyText,
    max_tokens: SupportsIndex,
    overlap: SupportsIndex,
    prefix_space: bool | None,
) -> list[AnyText]:
    """A text in parts that have at most `max_tokens` ids each. See `Tokenizer.split`.

    Each part is what `truncate` makes of the rest of the text, or one character where that is nothing.
    The rest begins where the part before ends; or at most `overlap` of that part's own tokens before, as
    many as leave a part that ends behind it.
    """
    limit = checked_limit(max_tokens, "max_tokens", 1)
    shared = checked_limit(overlap, "overlap")
    if shared >= limit:
        raise ValueError(f"overlap is less than max_tokens, which is {limit}; it is {shared}")
    given = _checked(text, "split")
    parts = _Cutter(tok, prefix_space, limit).parts(given, shared)
    return [cast(AnyText, given[begin:end]) for begin, end in parts]


def _checked(text: AnyText, method: str) -> AnyText:
    given: AnyText = checked_text(text, method)  # type: ignore[assignment]
    return given


class _Cutter:
    """Cuts texts to one number of tokens. Positions count characters of str, and bytes of bytes."""

    def __init__(self, tok: Vocabulary, prefix_space: bool | None, limit: int):
        self._tok = tok
        self._engine = tok._engine if prefix_space is None else tok._engine.variant(prefix=bool(prefix_space))
        self._limit = limit
        self._window = FIRST_WINDOW * limit + FIRST_MARGIN
        self._many = 2 * limit + MANY

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
        _, _, begins, _ = self._engine.tokens(data)
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
            ids, pieces, begins, ends = self._engine.tokens(data)
            certain = whole or self._certain(data, ids, pieces, ends) > self._limit
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
        return self._engine.count(data) <= self._limit

    def _certain(self, data: bytes, ids: list[int], pieces: list[bytes], ends: list[int]) -> int:
        """How many tokens of a window are those of any text that begins with it; 0 if not more than needed.

        Rewriting looks `_reach` bytes ahead at most, so what a token came from was rewritten in the same way
        in the whole text if there are so many behind it. The tokens to which that applies spell the
        beginning of the normalized text; and what stands before a cut in that has its tokens for good. (None
        of them is an unknown part that goes on behind the cut: it would do so in the window, too.)
        """
        count = bisect_right(ends, len(data) - _reach(self._tok))
        if count <= self._limit:
            return 0
        in_bytes = _byte_ids(self._tok)
        lengths = [
            *accumulate(
                1 if id in in_bytes else len(piece)
                for id, piece in zip(ids[:count], pieces[:count], strict=True)
            )
        ]
        spelled = self._engine.normalize(data)[: lengths[-1]]
        spec = habits(self._tok).normalizer
        if spec.remove_extra_whitespaces:  # spaces at the end go, if nothing else follows
            space = SPACE if spec.escape_whitespaces else b" "
            while spelled.endswith(space):
                spelled = spelled.removesuffix(space)
        try:
            spelled.decode()
        except UnicodeDecodeError:  # rules that make broken text
            return 0
        return bisect_right(lengths, self._engine.cut(spelled))

    def _first_character(self, text: str | bytes, begin: int) -> int:
        """Where the first character of a part ends, with spaces in front that belong to no token."""
        size, at = FIRST_MARGIN, None
        while at is None:
            data = utf8(text[begin : begin + size], "split")
            _, _, begins, ends = self._engine.tokens(data)
            at = next((b for b, e in zip(begins, ends, strict=True) if b < e), None)
            if at is None and begin + size >= len(text):
                at = 0
            size *= 2
        end = at + len(valid_character(data, at) or b"?")
        count = self._engine.count(data[:end])
        if count <= self._limit:
            return begin + _length(text, data, end)
        shown = data[at:end].decode() if valid_character(data, at) else data[at:end]
        raise ValueError(
            f"max_tokens is {self._limit}, but {shown!r} at position {begin + _length(text, data, at)} has "
            f"{count} ids by itself, and no character is cut; max_tokens must be at least {count}"
        )


def _length(text: str | bytes, data: bytes, end: int) -> int:
    """A position in the bytes of a text as one in the text."""
    return end if isinstance(text, bytes) else len(data[:end].decode())


# --- What a model looks ahead ---------------------------------------------------------------------


def _byte_ids(tok: Vocabulary) -> frozenset[int]:
    cache = cache_of(tok)
    found: frozenset[int] | None = cache.get("byte ids")
    if found is None:
        found = frozenset(id for id, kind in enumerate(kinds(tok._engine)) if kind == PieceType.BYTE)
        cache["byte ids"] = found
    return found


def _reach(tok: Vocabulary) -> int:
    """So many bytes at most decide how the first of them are rewritten."""
    cache = cache_of(tok)
    found: int | None = cache.get("reach")
    if found is None:
        engine = tok._engine
        words = (
            len(engine.piece(id)) for id, kind in enumerate(kinds(engine)) if kind == PieceType.USER_DEFINED
        )
        blob = habits(tok).normalizer.charsmap
        rule = Charsmap(blob, trusted=True).longest_key(MAX_RULE) if blob else 0
        found = max(4, *words, _NO_END if rule is None else rule)
        cache["reach"] = found
    return found
