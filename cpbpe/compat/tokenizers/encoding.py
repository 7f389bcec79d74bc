"""`Encoding`, which `Tokenizer.encode` returns, and how it is padded and truncated.

Most programs want only ids, and some a mask. Tokens as text, offsets and words take many times as long to
make, so they are made only when they are read, and only for the text in question. An encoding therefore
consists of runs of tokens, whose columns are made on demand. A run never changes: cutting, padding or merging
an encoding makes another list of runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from cpbpe.compat.tokenizers import arguments
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.tokenizer.special_tokens import SPACES

_SPACES = {*SPACES, "Ġ"}
Span = tuple[int, int]
Trim = tuple[bool, int]
"""Whether the first space of a text stays, and the place in the source at which the encoding begins."""
Details = tuple[list[str], list[Span], list[int | None]]
"""Tokens, offsets and words."""


class Source:
    """The ids of one text, or of tokens around texts, with details that are made when they are needed."""

    def __init__(self, ids: list[int], make: Callable[[], Details]):
        self.ids = ids
        """The ids."""
        self._make = make

    @kept
    def details(self) -> Details:
        """The tokens, offsets and words of the ids."""
        return self._make()

    @classmethod
    def of(cls, ids: list[int], details: Details) -> Source:
        """A source whose details are known."""
        return cls(ids, lambda: details)

    @classmethod
    def blank(cls, ids: list[int], tokens: list[str] | None = None) -> Source:
        """A source without offsets and words."""
        size = len(ids)
        return cls(ids, lambda: ([""] * size if tokens is None else tokens, [(0, 0)] * size, [None] * size))

    def __reduce__(self) -> tuple[Any, ...]:
        return Source.of, (self.ids, self.details)


class Run(NamedTuple):
    """A part of a source, with the values that all of its tokens share."""

    source: Source
    start: int
    stop: int
    type_id: int = 0
    special: int = 0
    """1 for tokens that are not from a text."""
    attention: int = 1
    """0 for padding."""
    shift: int = 0
    """What is added to offsets."""
    trims: tuple[Trim, ...] = ()
    """The removals of spaces from offsets, in the order in which they happen."""

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Run:
        """The tokens between two places, counted from the beginning of the run."""
        if start <= 0 and stop >= self.length:
            return self
        return self._replace(start=self.start + max(start, 0), stop=min(self.start + stop, self.stop))

    def moved(self, by: int) -> Run:
        """The same run with offsets moved by this much."""
        return self._replace(shift=self.shift + by) if by else self

    def typed(self, type_id: int) -> Run:
        """The same run with this type."""
        return self if self.type_id == type_id else self._replace(type_id=type_id)

    def column(self, name: str) -> list[Any]:
        """One of the lists of an encoding."""
        if name == "ids":
            ids = self.source.ids
            return ids if self.stop - self.start == len(ids) else ids[self.start : self.stop]
        if name in ("type_id", "special", "attention"):
            return [getattr(self, name)] * self.length
        tokens, offsets, words = self.source.details
        if name == "tokens":
            return tokens[self.start : self.stop]
        if name == "words":
            return words[self.start : self.stop]
        spans = offsets[self.start : self.stop]
        for keeps_prefix, first in self.trims:
            spans = _trimmed(tokens[self.start : self.stop], spans, keeps_prefix, first - self.start)
        by = self.shift
        return [(begin + by, end + by) for begin, end in spans] if by else spans


def _trimmed(tokens: list[str], spans: list[Span], keeps_prefix: bool, first: int) -> list[Span]:
    """The spans of tokens without the spaces at their ends.

    >>> _trimmed(["Ġa", "ĠĠ"], [(0, 2), (2, 4)], False, 0), _trimmed(["Ġa"], [(0, 1)], True, 0)
    ([(1, 2), (4, 4)], [(0, 1)])
    """
    found = []
    for at, (token, (begin, end)) in enumerate(zip(tokens, spans, strict=True)):
        leading, trailing = _spaces(token), _spaces(token[::-1])
        if leading == 1 and keeps_prefix and (at == first or begin == 0):
            leading = 0  # (with several spaces, none of them is a prefix)
        begin = min(begin + leading, end)
        # (If `trailing` were more than `end`, tokenizers keeps the end.)
        found.append((begin, max(end - trailing, begin) if end >= trailing else end))
    return found


def _spaces(token: str) -> int:
    """How many spaces a token begins with; `Ġ`, the letter for a space, counts as one."""
    return next((at for at, letter in enumerate(token) if letter not in _SPACES), len(token))


def run(source: Source, **fields: Any) -> Run:
    """A whole source as a run."""
    return Run(source, 0, len(source.ids), **fields)


def cut(runs: list[Run], start: int, stop: int) -> list[Run]:
    """The tokens between two places."""
    found = []
    for part in runs:
        if start < part.length and stop > 0:
            found.append(part.part(start, stop))
        start -= part.length
        stop -= part.length
    return [part for part in found if part.length]


def windows(length: int, most: int, stride: int, direction: str) -> list[Span]:
    """The beginnings and ends of the parts into which an encoding with too many tokens is cut.

    Neighbouring parts share `stride` tokens. The first part is what stays in the encoding.

    >>> windows(5, 3, 1, "right"), windows(4, 3, 1, "left")
    ([(0, 3), (2, 5)], [(1, 4), (0, 2)])
    """
    step = most - stride
    count = 1 + -(-max(length - most, 0) // step)
    if direction == "right":
        return [(at * step, min(at * step + most, length)) for at in range(count)]
    return [(max(length - at * step - most, 0), length - at * step) for at in range(count)]


# --- Encodings ------------------------------------------------------------------------------------


class Encoding:
    """The tokens of a text or of a pair of texts, as lists that have one entry for each token.

    >>> import cpbpe
    >>> from cpbpe.compat.tokenizers import Tokenizer
    >>> encoding = Tokenizer(cpbpe.load("tokenizer.model")).encode("Hi there")
    >>> encoding.tokens, encoding.offsets, encoding.attention_mask
    (['▁Hi', '▁there'], [(0, 2), (2, 8)], [1, 1])
    """

    def __init__(self, runs: list[Run] | None = None, ranges: dict[int, Span] | None = None) -> None:
        self.runs = [] if runs is None else runs
        """The runs that it consists of."""
        self.ranges = {} if ranges is None else ranges
        """The span of tokens of each text, if that is known."""
        self._overflowing: list[Encoding] = []
        self._kept: dict[str, list[Any]] = {}

    def copy(self) -> Encoding:
        """A copy, including what overflows."""
        new = Encoding(list(self.runs), dict(self.ranges))
        new._overflowing = [other.copy() for other in self._overflowing]
        return new

    def _column(self, name: str) -> list[Any]:
        column = self._kept.get(name)
        if column is None:
            column = self._kept[name] = self._made(name)
        return column

    def _made(self, name: str) -> list[Any]:
        """A new list, which the caller may change."""
        column: list[Any] = []
        for part in self.runs:
            column += part.column(name)
        return column

    def set(self, runs: list[Run]) -> None:
        """Replace the tokens."""
        self.runs = runs
        self._kept = {}

    def each(self) -> list[Encoding]:
        """The encoding itself, and the parts that truncation has cut off."""
        return [self, *self._overflowing]

    # --- One entry for each token -----------------------------------------------------------------

    def __len__(self) -> int:
        return sum([part.stop - part.start for part in self.runs])

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return self._made("ids")

    @property
    def tokens(self) -> list[str]:
        """The tokens: pieces, and added tokens as the text has them."""
        return self._made("tokens")

    @property
    def offsets(self) -> list[Span]:
        """The characters of its text that each token came from."""
        return self._made("offsets")

    @property
    def attention_mask(self) -> list[int]:
        """0 for padding, 1 for everything else."""
        return self._made("attention")

    @property
    def type_ids(self) -> list[int]:
        """0 for the first text and 1 for the second, unless the file says otherwise."""
        return self._made("type_id")

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for what is put around texts, and for padding."""
        return self._made("special")

    @property
    def word_ids(self) -> list[int | None]:
        """The number of the word that each token belongs to.

        Words are those of a pretokenized text, or else the parts into which the file's pre-tokenizer and
        added tokens cut the text. With Llama's file, most texts are one word.
        """
        return self._made("words")

    @property
    def words(self) -> list[int | None]:
        """The same as `word_ids`, by its old name."""
        warnings.warn("Encoding.words is deprecated: use Encoding.word_ids", DeprecationWarning, stacklevel=2)
        return self.word_ids

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 or 1 for tokens of the first or second text, None for all others."""
        found: list[int | None] = [None] * len(self)
        for number in range(self.n_sequences):
            begin, end = self._range(number)
            found[begin:end] = [number] * (end - begin)
        return found

    @property
    def n_sequences(self) -> int:
        """How many texts were encoded."""
        return len(self.ranges) or 1

    @property
    def overflowing(self) -> list[Encoding]:
        """What truncation has cut off, in parts of the same length."""
        return [other.copy() for other in self._overflowing]

    # --- From texts to tokens, and back -----------------------------------------------------------

    def _range(self, sequence: int) -> Span:
        return self.ranges.get(sequence, (0, len(self)))

    def token_to_sequence(self, token_index: int) -> int | None:
        """The text that a token came from."""
        token = arguments.unsigned(token_index, "token_index")
        if not self.ranges:
            return 0 if token <= len(self) else None  # (<=, as in tokenizers)
        return next((n for n, (begin, end) in self.ranges.items() if begin <= token < end), None)

    def token_to_chars(self, token_index: int) -> Span | None:
        """The offsets of a token, or None for one that is from no text."""
        span: Span | None = self._of_token(token_index, "offsets")
        return span

    def token_to_word(self, token_index: int) -> int | None:
        """The word of a token."""
        word: int | None = self._of_token(token_index, "words")
        return word

    def _of_token(self, token_index: int, column: str) -> Any:
        is_of_text = self.token_to_sequence(token_index) is not None and token_index < len(self)
        return self._column(column)[token_index] if is_of_text else None

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token that has a character of a text."""
        place = arguments.unsigned(char_pos, "char_pos")
        first, last = self._range(arguments.unsigned(sequence_index, "sequence_index"))
        spans = self._column("offsets")[first:last]
        return next((first + at for at, (begin, end) in enumerate(spans) if begin <= place < end), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The word that has a character of a text."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """The first token of a word of a text, and the one after its last."""
        word = arguments.unsigned(word_index, "word_index", arguments.ID_MOST)
        first, last = self._range(arguments.unsigned(sequence_index, "sequence_index"))
        found = []
        for at, other in enumerate(self._column("words")[first:last], first):
            if other is not None and other > word:
                break
            if other == word:
                found.append(at)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Where a word of a text begins and ends."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        offsets = self._column("offsets")
        return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

    # --- Changing it ------------------------------------------------------------------------------

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say which text all of the tokens came from."""
        self.ranges[arguments.unsigned(sequence_id, "sequence_id")] = (0, len(self))

    def pad(
        self,
        length: int,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Pad this encoding, and what overflows, to a length."""
        length = arguments.unsigned(length, "length")
        Padding(length, None, pad_id, pad_token, pad_type_id, direction).fill(self, length)

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Keep at most this many tokens; `overflowing` has the rest, with `stride` tokens in common."""
        Truncation(max_length, stride, direction=direction)  # which checks them
        self.keep(int(max_length), int(stride), direction)

    def keep(self, most: int, stride: int, direction: str) -> None:
        """`truncate` with arguments that are checked."""
        if most >= len(self):
            return
        if most == 0:
            self.runs, self.ranges, self._overflowing = [], {}, [self.copy()]
            self._kept = {}
            return
        if stride >= most:
            raise ValueError(
                f"stride is {stride}, and must be less than the number of tokens that a text keeps, here "
                f"{most} (max_length without the tokens around the texts, which the texts of a pair share)"
            )
        parts = [Encoding(cut(self.runs, *window)) for window in windows(len(self), most, stride, direction)]
        self.set(parts[0].runs)
        self.ranges = {}
        self._overflowing = parts[1:]

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """Several encodings as one. With `growing_offsets`, offsets continue where those before end."""
        given = arguments.sequence(encodings, "encodings", "Encoding")
        for other in given:
            if not isinstance(other, Encoding):
                raise TypeError(f"encodings must be a list of Encoding, and holds {type(other).__name__}")
        growing = arguments.flag(growing_offsets, "growing_offsets")
        merged = Encoding()
        for other in given:
            merged.append(other, growing)
        return merged

    def append(self, other: Encoding, growing: bool) -> None:
        """Add the tokens of another encoding.

        Every overflowing part of this encoding is combined with the other encoding and with each of its
        overflowing parts; this encoding is also combined with the latter.
        """
        combined = []
        rest = other.each()
        for first in [*self._overflowing, self]:
            for second in rest[1:] if first is self else rest:
                both = first.copy()
                both.append(second, growing)
                combined.append(both)
        length = len(self)
        by = self._column("offsets")[-1][1] if growing and length else 0
        self.ranges.update({n: (begin + length, end + length) for n, (begin, end) in other.ranges.items()})
        self.set([*self.runs, *(part.moved(by) for part in other.runs)])
        self._overflowing = combined

    # --- Being an object --------------------------------------------------------------------------

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Encoding:
        return self.copy()

    def __repr__(self) -> str:
        names = "ids, type_ids, tokens, offsets, attention_mask, special_tokens_mask, overflowing"
        return f"Encoding(num_tokens={len(self)}, attributes=[{names}])"


# --- Padding and truncation: parameters in calls and in files, and what they do -------------------


_DIRECTIONS = ("left", "right")
Option = TypeVar("Option", "Padding", "Truncation")
_STRATEGIES = {"longest_first": "LongestFirst", "only_first": "OnlyFirst", "only_second": "OnlySecond"}
"""The strategies of truncation, with their names in files."""


@dataclass(frozen=True)
class Padding:
    """How encodings are padded."""

    length: int | None = None
    """The length to pad to; None: that of the longest encoding in the batch."""
    pad_to_multiple_of: int | None = None
    pad_id: int = 0
    pad_token: str = "[PAD]"
    pad_type_id: int = 0
    direction: str = "right"

    def __post_init__(self) -> None:
        for name in ("length", "pad_to_multiple_of"):
            if getattr(self, name) is not None:
                arguments.unsigned(getattr(self, name), name)
        arguments.unsigned(self.pad_id, "pad_id", arguments.ID_MOST)
        arguments.unsigned(self.pad_type_id, "pad_type_id", arguments.ID_MOST)
        arguments.text(self.pad_token, "pad_token")
        arguments.choice(self.direction, "direction", _DIRECTIONS)

    def apply(self, encodings: list[Encoding]) -> None:
        """Pad the encodings of a batch."""
        length = self.length
        if length is None:
            length = max(map(len, encodings), default=0)
        if self.pad_to_multiple_of:
            length += -length % self.pad_to_multiple_of
        for encoding in encodings:
            self.fill(encoding, length)

    def fill(self, encoding: Encoding, length: int) -> None:
        """Pad an encoding, and what overflows, to a length."""
        for other in encoding.each()[1:]:
            self.fill(other, length)
        missing = length - len(encoding)
        if missing <= 0:
            return
        source = Source.blank([int(self.pad_id)] * missing, [self.pad_token] * missing)
        padding = run(source, type_id=int(self.pad_type_id), special=1, attention=0)
        if self.direction == "right":
            encoding.set([*encoding.runs, padding])
            return
        encoding.set([padding, *encoding.runs])
        encoding.ranges = {n: (begin + missing, end + missing) for n, (begin, end) in encoding.ranges.items()}

    @classmethod
    def of_file(cls, said: dict[str, Any]) -> Padding:
        """The padding of a file."""
        names = ("pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token")
        given = {name: said[name] for name in names if name in said}
        strategy = said["strategy"]
        length = None if strategy == "BatchLongest" else strategy["Fixed"]
        return cls(length=length, direction=said["direction"].lower(), **given)

    def in_file(self) -> dict[str, Any]:
        """As a file has it."""
        return {
            "strategy": "BatchLongest" if self.length is None else {"Fixed": self.length},
            "direction": self.direction.capitalize(),
            "pad_to_multiple_of": self.pad_to_multiple_of,
            "pad_id": self.pad_id,
            "pad_type_id": self.pad_type_id,
            "pad_token": self.pad_token,
        }


@dataclass(frozen=True)
class Truncation:
    """How encodings are cut."""

    max_length: int
    stride: int = 0
    strategy: str = "longest_first"
    direction: str = "right"

    def __post_init__(self) -> None:
        arguments.unsigned(self.max_length, "max_length")
        arguments.unsigned(self.stride, "stride")
        arguments.choice(self.strategy, "strategy", _STRATEGIES)
        arguments.choice(self.direction, "direction", _DIRECTIONS)

    def check(self, added: int) -> None:
        """ValueError if the tokens that are put around a single text leave no room for the stride."""
        room = self.max_length - added
        if room >= 0 and self.stride > room:
            raise ValueError(
                f"stride is {self.stride}, and must not be more than the tokens that "
                f"max_length={self.max_length} leaves for a text: {room} besides the {added} put around it"
            )

    def apply(self, encodings: list[Encoding], added: int) -> None:
        """Cut one or two encodings, to which this many tokens are added later."""
        # (If there is no room for these tokens, tokenizers cuts nothing.)
        if added > self.max_length:
            return
        most = self.max_length - added
        lengths = [len(encoding) for encoding in encodings]
        if most and sum(lengths) <= most:
            return
        wanted = self._lengths(lengths, most)
        for encoding, length in zip(encodings, wanted, strict=True):
            encoding.keep(length, self.stride, self.direction)

    def cut(self, texts: list[list[int]]) -> list[list[int]]:
        """The ids of one or two texts that stay, if they are more than `max_length`."""
        lengths = self._lengths([len(ids) for ids in texts], self.max_length)
        if self.direction == "left":
            return [ids[len(ids) - length :] for ids, length in zip(texts, lengths, strict=True)]
        return [ids[:length] for ids, length in zip(texts, lengths, strict=True)]

    def _lengths(self, lengths: list[int], most: int) -> list[int]:
        """How many tokens each text keeps."""
        if most == 0:
            return [0] * len(lengths)
        if self.strategy == "longest_first":
            if len(lengths) == 1:
                return [most]
            # The shorter text keeps all its tokens if they are at most half; otherwise each gets half.
            shorter = min(lengths)
            room = max(shorter, most - shorter)
            if shorter > most or shorter + room > most:
                shorter, room = most // 2, most - most // 2
            return [shorter, room] if lengths[0] <= lengths[1] else [room, shorter]
        place = 0 if self.strategy == "only_first" else 1
        if place >= len(lengths):
            raise ValueError("strategy is 'only_second', and there is no second text to truncate")
        left = lengths[place] - (sum(lengths) - most)
        if left <= 0:
            raise ValueError(
                f"the {'second' if place else 'first'} text is too short: it has {lengths[place]} of "
                f"{sum(lengths)} tokens, {most} may stay, and strategy {self.strategy!r} cuts nothing else"
            )
        return [left if at == place else length for at, length in enumerate(lengths)]

    @classmethod
    def of_file(cls, said: dict[str, Any]) -> Truncation:
        """The truncation of a file."""
        names = {name: ours for ours, name in _STRATEGIES.items()}
        direction = said.get("direction", "Right").lower()
        return cls(said["max_length"], said["stride"], names[said["strategy"]], direction)

    def in_file(self) -> dict[str, Any]:
        """As a file has it."""
        return {
            "direction": self.direction.capitalize(),
            "max_length": self.max_length,
            "strategy": _STRATEGIES[self.strategy],
            "stride": self.stride,
        }


def read(kind: type[Option], said: Any) -> Option | None:
    """The padding or truncation of a file, if there is one."""
    try:
        return None if said is None else kind.of_file(said)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        name = kind.__name__.lower()
        raise ModelError(f"{name} in the file is not as tokenizers writes it: {error}") from None
