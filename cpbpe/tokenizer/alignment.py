"""What `Tokenizer.encode_offsets` returns: ids, pieces, and where in the text they came from."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Literal, SupportsIndex

from cpbpe.lazy import kept
from cpbpe.text.utf8 import character_positions, is_inside, text_of
from cpbpe.tokenizer.checks import Random, numpy, utf8
from cpbpe.tokenizer.ragged import Ragged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.engine.choice import Engine
    from cpbpe.tokenizer.special_text import Encoder
    from cpbpe.tokenizer.special_tokens import Scanner

Unit = Literal["char", "byte"]
Named = list[tuple[int, bytes]]
"""Ids with their pieces."""

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Encoding:
    """An encoded text with its alignment. All lists have one entry for each token.

    >>> import cpbpe
    >>> found = cpbpe.load("tokenizer.model").encode_offsets("Hi 🦙!", add_bos=True)
    >>> for token in zip(found.pieces, found.offsets, found.word_ids):
    ...     print(*token)
    <s> (0, 0) None
    ▁Hi (0, 2) 0
    ▁ (2, 3) None
    <0xF0> (3, 3) 1
    <0x9F> (3, 3) 1
    <0xA6> (3, 3) 1
    <0x99> (3, 4) 1
    ! (4, 5) 1
    """

    ids: list[int]
    """The ids, as `Tokenizer.encode` gives them."""
    pieces: list[str]
    """The pieces, as `Tokenizer.encode_pieces` gives them."""
    offsets: list[tuple[int, int]]
    """Begin and end of what each token came from; counts characters or bytes, see `unit`."""
    text: str | bytes
    """The input."""
    unit: Unit
    """What the offsets count: "char" or "byte"."""
    special: frozenset[int] = field(default=frozenset(), repr=False)
    """Those of the ids that are special tokens."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def surfaces(self) -> list[str] | list[bytes]:
        """The part of the text that each token came from: `str` by characters, `bytes` by bytes.

        Tokens that came from nothing (a CONTROL piece, the dummy prefix, all but the last byte of a
        character) have an empty one.
        """
        if self.unit == "char":
            text = self._characters
            return [text[begin:end] for begin, end in self.offsets]
        data = self._data
        return [data[begin:end] for begin, end in self.offsets]

    # --- From the text to the tokens, and back ----------------------------------------------------

    def char_to_token(self, position: SupportsIndex) -> int | None:
        """The token whose span holds a position of the text, which counts what `unit` says.

        Of several tokens for one character it is the one that has the span: the last in the order of the
        text. None if no token came from there, as from spaces that the model removes.

        >>> import cpbpe
        >>> found = cpbpe.load("tokenizer.model").encode_offsets("Hi 🦙!")
        >>> [found.char_to_token(position) for position in range(5)]
        [0, 0, 1, 5, 6]
        """
        at = _checked(position, self._length, "char_to_token", "position", "of a text with the length")
        begins, tokens = self._places
        found = bisect_right(begins, at) - 1
        return tokens[found] if found >= 0 and at < self.offsets[tokens[found]][1] else None

    def token_to_chars(self, token: SupportsIndex) -> tuple[int, int] | None:
        """Begin and end of what a token came from; None if that is nothing: if its span is empty.

        >>> import cpbpe
        >>> found = cpbpe.load("tokenizer.model").encode_offsets("Hi", add_bos=True)
        >>> found.token_to_chars(0), found.token_to_chars(1)
        (None, (0, 2))
        """
        at = _checked(token, len(self), "token_to_chars", "token", "of an encoding with the length")
        begin, end = self.offsets[at]
        return (begin, end) if begin < end else None

    # --- Words ------------------------------------------------------------------------------------

    @kept
    def word_spans(self) -> list[tuple[int, int]]:
        """Begin and end of every word of the text: what stands between whitespace, as for `str.split`.

        A special token that the text spells out is no part of a word, and ends one.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").encode_offsets("Hello,  world!").word_spans
        [(0, 6), (8, 14)]
        """
        text = self._characters
        special = sorted(span for id, span in zip(self.ids, self.offsets, strict=True) if id in self.special)
        positions: Sequence[int]
        positions = character_positions(self._data) if self.unit == "byte" else range(len(text) + 1)
        parts, at = [], 0
        for begin, end in special:
            begin, end = positions[begin], positions[end]
            parts += [text[at:begin], " " * (end - begin)]
            at = end
        spans = [found.span() for found in _WORD.finditer("".join([*parts, text[at:]]))]
        if self.unit == "char":
            return spans
        return [(bisect_left(positions, begin), bisect_left(positions, end)) for begin, end in spans]

    @kept
    def word_ids(self) -> list[int | None]:
        """For each token the word it belongs to, as a place in `word_spans`.

        That is the first word in its span (`▁Hi`, which spans " Hi", belongs to "Hi"), or, if its span is
        empty, the word that it stands in or in front of. None if there is none, and for special tokens.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").encode_offsets("Hello  world!", add_eos=True).word_ids
        [0, None, 1, 1, None]
        """
        ends = [end for _, end in self.word_spans]
        found: list[int | None] = []
        for id, (begin, end) in zip(self.ids, self.offsets, strict=True):
            word = bisect_right(ends, begin)
            inside = word < len(ends) and self.word_spans[word][0] < max(end, begin + 1)
            found.append(word if inside and id not in self.special else None)
        return found

    # --- Cutting ----------------------------------------------------------------------------------

    def truncate(self, max_tokens: SupportsIndex, side: Literal["left", "right"] = "right") -> Encoding:
        """At most `max_tokens` of the tokens; those too many go on one side.

        The tokens of one character stay together, and a dummy prefix with what it stands in front of, so
        there can be fewer. Special tokens are tokens like others. The text and the offsets stay as they are.

        >>> import cpbpe
        >>> found = cpbpe.load("tokenizer.model").encode_offsets("Hi 🦙!")
        >>> found.truncate(4).pieces, found.truncate(4, side="left").pieces
        (['▁Hi', '▁'], ['!'])
        """
        limit = checked_limit(max_tokens, "max_tokens")
        if side not in ("left", "right"):
            raise ValueError(f"side is 'left' or 'right', not {side!r}")
        count = len(self)
        if count <= limit:
            return self
        at = limit if side == "right" else count - limit
        while 0 < at < count and self._is_inside(at):
            at += -1 if side == "right" else 1
        kept = slice(None, at) if side == "right" else slice(at, None)
        return replace(
            self, ids=self.ids[kept], pieces=self.pieces[kept], offsets=self.offsets[kept], text=self.text
        )

    def _is_inside(self, at: int) -> bool:
        """Whether the tokens on both sides of a place belong to one character.

        Of tokens that begin at the same place all but one have an empty span, and belong to that one; so
        it does not matter in which direction the tokens go.
        """
        if self.ids[at - 1] in self.special or self.ids[at] in self.special:
            return False
        before, behind = self.offsets[at - 1][0], self.offsets[at][0]
        return before == behind or (self.unit == "byte" and is_inside(self._data, max(before, behind)))

    # --- As arrays --------------------------------------------------------------------------------

    def arrays(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The ids, and the offsets as two columns, as numpy arrays.

        >>> import cpbpe
        >>> ids, offsets = cpbpe.load("tokenizer.model").encode_offsets("Hello world").arrays()
        >>> ids, offsets[:, 1] - offsets[:, 0]
        (array([22557,  1526], dtype=uint32), array([5, 6]))
        """
        np = numpy()
        return np.array(self.ids, np.uint32), np.array(self.offsets, np.int64).reshape(-1, 2)

    # --- What is found out once -------------------------------------------------------------------

    @property
    def _data(self) -> bytes:
        return self.text if isinstance(self.text, bytes) else self.text.encode()

    @property
    def _characters(self) -> str:
        """The text as the characters that offsets count."""
        return self.text if isinstance(self.text, str) else text_of(self.text)

    @kept
    def _length(self) -> int:
        return len(self._characters if self.unit == "char" else self._data)

    @kept
    def _places(self) -> tuple[list[int], list[int]]:
        """Where the spans that are not empty begin, in the order of the text, and whose they are."""
        found = sorted((begin, token) for token, (begin, end) in enumerate(self.offsets) if begin < end)
        return [begin for begin, _ in found], [token for _, token in found]


def checked_limit(number: SupportsIndex, name: str, least: int = 0) -> int:
    """A number of tokens that a user gave."""
    try:
        checked = index(number)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {type(number).__name__}") from None
    if checked < least:
        raise ValueError(f"{name} is at least {least}, not {checked}")
    return checked


def _checked(number: SupportsIndex, size: int, method: str, name: str, of: str) -> int:
    """An index that a user gave. A negative one does not count from the end: it would hide a mistake."""
    try:
        checked = index(number)
    except TypeError:
        raise TypeError(f"{method}() takes an integer, not {type(number).__name__}") from None
    if not 0 <= checked < size:
        raise IndexError(f"there is no {name} {checked} {of} {size}")
    return checked


# --- Making one -----------------------------------------------------------------------------------


def aligned(
    encoder: Engine | Encoder,
    text: str | bytes,
    method: str,
    added: tuple[Named, Named],
    reverse: bool,
    unit: Unit | None,
    random: Random | None,
) -> Encoding:
    """Encode a text with its alignment, and put the ids of `added` in front and behind."""
    data = utf8(text, method)
    unit = _unit(unit, text)
    ids, pieces, begins, ends = encoder.tokens(data) if random is None else encoder.sample(data, *random)
    if unit == "char" and not data.isascii():
        positions = character_positions(data)
        begins = [positions[begin] for begin in begins]
        ends = [positions[end] for end in ends]
        length = positions[-1]
    else:
        length = len(data)
    offsets = list(zip(begins, ends, strict=True))
    special = _special(encoder, ids)
    if reverse:
        for column in (ids, pieces, offsets):
            column.reverse()
    front, back = added
    if front or back:
        ids = [*(id for id, _ in front), *ids, *(id for id, _ in back)]
        pieces = [*(piece for _, piece in front), *pieces, *(piece for _, piece in back)]
        offsets = [*((0, 0) for _ in front), *offsets, *((length, length) for _ in back)]
        special |= {id for id, _ in front + back}
    return Encoding(
        ids=ids,
        pieces=[text_of(piece) for piece in pieces],
        offsets=offsets,
        text=text if isinstance(text, str) else data,
        unit=unit,
        special=special,
    )


def aligned_arrays(
    encoder: Engine | Encoder,
    texts: Iterable[str | bytes],
    method: str,
    added: tuple[Named, Named],
    unit: Unit | None,
) -> tuple[Ragged, NDArray[np.int64]]:
    """Ids of many texts, and the begin and end of each in its text; without pieces."""
    np = numpy()
    front, back = ([id for id, _ in named] for named in added)
    rows, spans, offsets = [np.zeros(0, np.uint32)], [np.zeros((0, 2), np.int64)], [0]
    for text in texts:
        data = utf8(text, method)
        ids, _, begins, ends = encoder.tokens(data)
        found = np.empty((len(front) + len(ids) + len(back), 2), np.int64)
        inner = slice(len(front), len(front) + len(ids))
        found[inner, 0], found[inner, 1] = begins, ends
        found[: len(front)] = 0
        found[len(front) + len(ids) :] = len(data)
        if _unit(unit, text) == "char" and not data.isascii():
            found = np.array(character_positions(data), np.int64)[found]
        rows.append(np.array([*front, *ids, *back], np.uint32))
        spans.append(found)
        offsets.append(offsets[-1] + len(found))
    return Ragged(np.concatenate(rows), np.array(offsets, np.int64)), np.concatenate(spans)


def _unit(unit: Unit | None, text: str | bytes) -> Unit:
    if unit is None:
        return "char" if isinstance(text, str) else "byte"
    if unit not in ("char", "byte"):
        raise ValueError(f"unit is 'char' or 'byte', not {unit!r}")
    return unit


def _special(encoder: Engine | Encoder, ids: list[int]) -> frozenset[int]:
    """Those of the ids that are special tokens: only a scanner finds such in a text."""
    scanner: Scanner | None = getattr(encoder, "scanner", None)
    return frozenset() if scanner is None else frozenset(filter(scanner.has, set(ids)))
