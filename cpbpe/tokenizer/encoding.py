"""`Encoding`, which `Tokenizer.align` returns: ids, pieces, and where in the text they came from.

And `Special`, a part of what `Tokenizer.encode_parts` takes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex

from cpbpe.checks import Unit, checked_limit
from cpbpe.lazy import importing, kept
from cpbpe.text.utf8 import character_positions, is_inside, text_of
from cpbpe.tokenizer.facts import ModelFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Special:
    """A special token as one part of a list to encode, for `encode_parts`.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> tok.encode_parts([cpbpe.Special("<s>"), "Hi </s>", 13])
    [1, 15359, 1867, 28713, 28767, 13]
    """

    text: str
    """The text of the token, as in `tok.vocab.special_tokens`."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a Special must be a str, not {type(self.text).__name__}")


Part = str | bytes | int | Special
"""One of the parts."""


@dataclass(frozen=True)
class Encoding:
    """An encoded text with its alignment. All lists have one entry for each token.

    >>> import cpbpe
    >>> encoding = cpbpe.load("tokenizer.model").align("Hi 🦙!", add_bos=True)
    >>> for token in zip(encoding.pieces, encoding.offsets, encoding.word_ids):
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
    """The ids that `Tokenizer.encode` returns."""
    pieces: list[str]
    """The pieces that `Tokenizer.encode_pieces` returns."""
    offsets: list[tuple[int, int]]
    """The span of the text that each token came from, in characters or bytes (see `unit`)."""
    text: str | bytes
    """The input."""
    unit: Unit
    """What the offsets count: "char" or "byte"."""
    special: frozenset[int] = field(default=frozenset(), repr=False)
    """The ids that are special tokens."""

    facts: ClassVar[ModelFacts | None] = None
    """The model, for drawings; None if the encoding was copied or unpickled.

    (It is not a field, so encodings are compared, pickled and turned into a dict without the model.)
    """

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def surfaces(self) -> list[str] | list[bytes]:
        """The part of the text that each token came from: `str` if offsets count characters, else `bytes`.

        It is empty for tokens with an empty span: bos and eos, a dummy prefix that is a token by itself, all
        but the last byte of a character.
        """
        if self.unit == "char":
            text = self._characters
            return [text[begin:end] for begin, end in self.offsets]
        data = self._data
        return [data[begin:end] for begin, end in self.offsets]

    # --- From the text to the tokens, and back ----------------------------------------------------

    def char_to_token(self, position: SupportsIndex) -> int | None:
        """The token whose span holds a position of the text, counted in `unit`s.

        If a character has several tokens, it is the last of them, which has the span. None if no token came
        from that position, for example from a space that the model removes.

        >>> import cpbpe
        >>> encoding = cpbpe.load("tokenizer.model").align("Hi 🦙!")
        >>> [encoding.char_to_token(position) for position in range(5)]
        [0, 0, 1, 5, 6]
        """
        at = _checked(position, self._length, "char_to_token", "position", "of a text with the length")
        begins, tokens = self._places
        place = bisect_right(begins, at) - 1
        return tokens[place] if place >= 0 and at < self.offsets[tokens[place]][1] else None

    def token_to_chars(self, token: SupportsIndex) -> tuple[int, int] | None:
        """The span of a token, or None if it is empty.

        >>> import cpbpe
        >>> encoding = cpbpe.load("tokenizer.model").align("Hi", add_bos=True)
        >>> encoding.token_to_chars(0), encoding.token_to_chars(1)
        (None, (0, 2))
        """
        at = _checked(token, len(self), "token_to_chars", "token", "of an encoding with the length")
        begin, end = self.offsets[at]
        return (begin, end) if begin < end else None

    # --- Words ------------------------------------------------------------------------------------

    @kept
    def word_spans(self) -> list[tuple[int, int]]:
        """The span of every word of the text. Words are separated by whitespace, as in `str.split`.

        A special token that the text spells out is not part of a word; it ends the word before it.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").align("Hello,  world!").word_spans
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
        spans = [word.span() for word in _WORD.finditer("".join([*parts, text[at:]]))]
        if self.unit == "char":
            return spans
        return [(bisect_left(positions, begin), bisect_left(positions, end)) for begin, end in spans]

    @kept
    def word_ids(self) -> list[int | None]:
        """The word that each token belongs to, as an index into `word_spans`.

        It is the first word in the token's span (`▁Hi`, which spans " Hi", belongs to "Hi"). If the span is
        empty, it is the word that the character at that position belongs to. None if there is no such word,
        and for special tokens.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").align("Hello  world!", add_eos=True).word_ids
        [0, None, 1, 1, None]
        """
        ends = [end for _, end in self.word_spans]
        word_ids: list[int | None] = []
        for id, (begin, end) in zip(self.ids, self.offsets, strict=True):
            word = bisect_right(ends, begin)
            inside = word < len(ends) and self.word_spans[word][0] < max(end, begin + 1)
            word_ids.append(word if inside and id not in self.special else None)
        return word_ids

    # --- Cutting ----------------------------------------------------------------------------------

    def truncate(self, max_tokens: SupportsIndex, side: Literal["left", "right"] = "right") -> Encoding:
        """At most `max_tokens` of the tokens: the others are dropped from one side.

        The tokens of one character stay together, and so do a dummy prefix and the token after it, so there
        can be fewer. Special tokens are treated like others. The text and the offsets stay as they are.

        >>> import cpbpe
        >>> encoding = cpbpe.load("tokenizer.model").align("Hi 🦙!")
        >>> encoding.truncate(4).pieces, encoding.truncate(4, side="left").pieces
        (['▁Hi', '▁'], ['!'])
        """
        limit = checked_limit(max_tokens, "max_tokens")
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right', not {side!r}")
        count = len(self)
        if count <= limit:
            return self
        at = limit if side == "right" else count - limit
        while 0 < at < count and self._is_inside(at):
            at += -1 if side == "right" else 1
        kept = slice(None, at) if side == "right" else slice(at, None)
        shorter = replace(
            self, ids=self.ids[kept], pieces=self.pieces[kept], offsets=self.offsets[kept], text=self.text
        )
        shorter.__dict__["facts"] = self.facts
        return shorter

    def _is_inside(self, at: int) -> bool:
        """Whether the tokens before and after an index belong to one character.

        Of the tokens that begin at the same position, all but one have an empty span and belong to that one,
        so the direction of the tokens does not matter.
        """
        if self.ids[at - 1] in self.special or self.ids[at] in self.special:
            return False
        before, after = self.offsets[at - 1][0], self.offsets[at][0]
        return before == after or (self.unit == "byte" and is_inside(self._data, max(before, after)))

    # --- As arrays --------------------------------------------------------------------------------

    def arrays(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The ids, and the offsets as two columns, as numpy arrays.

        >>> import cpbpe
        >>> ids, offsets = cpbpe.load("tokenizer.model").align("Hello world").arrays()
        >>> ids, offsets[:, 1] - offsets[:, 0]
        (array([22557,  1526], dtype=uint32), array([5, 6]))
        """
        with importing:
            import numpy as np
        return np.array(self.ids, np.uint32), np.array(self.offsets, np.int64).reshape(-1, 2)

    # --- Being drawn, and pickled -----------------------------------------------------------------

    def _repr_html_(self) -> str:
        """The drawing of `Tokenizer.show`, for notebooks."""
        with importing:
            from cpbpe.tokenizer.shown import Shown
        return Shown(self).html()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "facts"}

    # --- Computed once, when needed ---------------------------------------------------------------

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
        """Where the non-empty spans begin, in the order of the text, and the tokens they belong to."""
        places = sorted((begin, token) for token, (begin, end) in enumerate(self.offsets) if begin < end)
        return [begin for begin, _ in places], [token for _, token in places]


def _checked(number: SupportsIndex, size: int, method: str, name: str, of: str) -> int:
    """An index from a user. Negative ones are refused: counting from the end would hide mistakes."""
    try:
        checked = index(number)
    except TypeError:
        raise TypeError(f"{method}() takes an integer, not {type(number).__name__}") from None
    if not 0 <= checked < size:
        raise IndexError(f"there is no {name} {checked} {of} {size}")
    return checked
