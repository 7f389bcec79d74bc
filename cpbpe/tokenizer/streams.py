"""Texts that arrive in parts, and ids that arrive one by one: `StreamEncoder` and `StreamDecoder`.

Both return each result as soon as it is certain, and never one that could still change. Joined, the results
are what `Tokenizer.encode` and `Tokenizer.decode` return for the whole. The work for a new part does not
depend on how much came before.

A `StoppingDecoder` is a StreamDecoder that also ends at certain texts.

Text has to wait for its ids because what follows may merge with it. (`Engine.cut` knows where that is
impossible.) If special tokens are looked for, text that may be the beginning of one has to wait, too. Ids
have to wait for their text because a character can take several of them. Bytes that turn out not to be a
character become U+FFFD: one for each byte, or, in byte-level models, as Python decodes them.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar

from cpbpe.checks import Ids, checked_text
from cpbpe.engine.protocol import Engine
from cpbpe.foreign import DECODER_METHODS, ENCODER_METHODS, elsewhere, native_dir
from cpbpe.model.spec import PieceType
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import SPACE, certain
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.options import KeptSpace
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.special_tokens import SpecialFinder, not_allowed
from cpbpe.tokenizer.stream_normalizer import StreamNormalizer, copied

S = TypeVar("S", bound="_Stream")


class _Stream:
    """Streams can be copied. An encoder can be pickled, too."""

    _name: ClassVar[str]
    """Its public name, for `repr` and messages."""
    _ended: bool

    def __repr__(self) -> str:
        state = self._state()
        return f"<cpbpe.{self._name}{state and f': {state}'}>"

    def _state(self) -> str:
        """What `repr` says: that the stream has ended, or what it holds back; "" for nothing."""
        held = self._holds()
        shown = repr(held[:40]) + "..." * (len(held) > 40)
        return "ended" if self._ended else f"holds {shown}" if held else ""

    def _holds(self) -> str | bytes:
        """What has come and is held back."""
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __dir__(self) -> list[str]:
            """The names that exist, for completion: without those of other libraries."""
            return native_dir(self)

    def copy(self: S) -> S:
        """A second stream that continues from here, for example for beam search. Copies are cheap.

        >>> import cpbpe
        >>> tok = cpbpe.load("tokenizer.model")
        >>> one = tok.stream_decoder(tok.encode("Hello"))
        >>> two = one.copy()
        >>> one.push(tok.encode(" world", prefix_space=False)), two.push(tok.encode("!", prefix_space=False))
        (' world', '!')
        """
        return copied(self)

    def __copy__(self: S) -> S:
        return self.copy()

    def __deepcopy__(self: S, memo: object) -> S:
        return self.copy()


# --- Text to ids ----------------------------------------------------------------------------------


class StreamEncoder(_Stream):
    """Turns text into ids while it arrives. `Tokenizer.stream_encoder` makes one.

    The ids that `push` returns are final. All of them together, with those of `flush` at the end, are exactly
    what `Tokenizer.encode` returns for the whole text. With some models everything waits for `flush`: those
    with pieces or rules that are not UTF-8.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.stream_encoder()
    >>> [stream.push(part) for part in ["Hel", "lo, wor", "ld", "! And"]], stream.flush()
    ([[], [22557, 28725], [], [1526, 28808]], [1015])
    >>> stream = tok.stream_encoder(allowed_special={"</s>"})
    >>> stream.push("Hi</"), stream.push("s>"), stream.flush()
    ([], [15359, 2], [])
    """

    _name = "StreamEncoder"

    if not TYPE_CHECKING:  # so that type checkers still report wrong names
        vars().update(elsewhere(ENCODER_METHODS))

    def __init__(self, facts: ModelFacts, plan: EncodePlan, again: Callable[[], StreamEncoder]):
        """`plan` is what the options lead to, and `again` makes another encoder with these."""
        self._again = again
        finder = plan.encoder.finder if isinstance(plan.encoder, SpecialEncoder) else None
        self._facts = facts
        self._prefix_later = plan.prefix_space if plan.prefix_after_special else False  # after special tokens
        self._special = None if finder is None else SpecialKeys(finder, "stream_encoder")
        self._front = plan.front
        self._back = plan.back
        self._segment = _Segment(facts, plan.prefix_space)
        self._waiting = b""  # text that may be the beginning of a special token
        self._at = 0  # where it begins, in characters or bytes
        self._kind: type | None = None
        self._ended = False

    def push(self, text: str | bytes) -> list[int]:
        """Take the next part of the text, and return the ids that are certain now and were not before.

        The parts of a text must be all str or all bytes; bytes may be cut inside a character. After an error,
        such as one for a special token that the text must not hold, the stream is as it was before.
        """
        if self._ended:
            raise ValueError("the stream has ended with flush(); make a new one with stream_encoder()")
        given = checked_text(text, "push")
        data = given.encode() if isinstance(given, str) else given  # refuses a lone surrogate
        if self._kind is not None and type(given) is not self._kind:
            raise TypeError(
                f"push() takes {self._kind.__name__}, as the parts before, not {type(given).__name__}; "
                f"a stream has one kind of text"
            )
        whole = type(given) is str
        if self._special is None and not self._front:
            # The usual case. (Without `_push` it takes a fifth less.)
            ids = self._segment.push(data, whole=whole)
        else:
            ids = self._push(data, whole, final=False)
        self._kind = type(given)
        return ids

    def flush(self) -> list[int]:
        """End the stream and return the remaining ids."""
        if self._ended:
            return []
        ids = self._push(b"", self._kind is str, final=True) + self._segment.flush() + self._back
        self._ended = True
        return ids

    def copy(self) -> StreamEncoder:
        """A second stream that continues from here."""
        return copied(self, _segment=self._segment.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._kind, self._at, self._waiting, self._front, self._ended, self._segment.state()
        return _restored, (self._again, state)

    def resumed(self, at: int) -> StreamEncoder:
        """A copy that counts from `at`, the characters of a text that have come, to name places in errors."""
        at -= len(self._waiting.decode()) if self._waiting else 0
        return copied(self, _segment=self._segment.copy(), _at=at)

    def is_equivalent_to(self, other: object) -> bool:
        """Whether both return the same ids for all text that may come."""
        return (
            isinstance(other, StreamEncoder)
            and self._segment.is_equivalent_to(other._segment)
            and self._waiting == other._waiting
            and self._front == other._front
        )

    def holds_less_than(self, size: int) -> bool:
        """Whether it holds back fewer bytes than this."""
        return len(self._waiting) < size and self._segment.holds_less_than(size)

    def _holds(self) -> bytes:
        return self._segment.held + self._waiting

    def _push(self, data: bytes, whole: bool, final: bool) -> list[int]:
        """The ids that more text makes certain, special tokens included. `whole`: the text was str."""
        # 1. Find all tokens before changing anything, so that a refused one leaves the stream as it was.
        text = self._waiting + data
        tokens, end = self._special.find(text, 0, final) if self._special else ([], len(text))
        for key in tokens:
            if key.id is None:
                raise not_allowed(key.text, self._at + _length(text[: key.begin], whole))
        # 2. Encode the segments before them.
        ids, self._front = self._front[:], []
        done = 0
        for key in tokens:
            ids += self._segment.push(text[done : key.begin], whole=whole) + self._segment.flush()
            ids.append(key.id)  # type: ignore[arg-type]
            self._segment = _Segment(self._facts, self._prefix_later)
            done = key.end
        # 3. Encode the rest, except for what may be the beginning of another token.
        ids += self._segment.push(text[done:end], whole=whole)
        if self._special is not None:
            self._at += _length(text[:end], whole)
        self._waiting = text[end:]
        return ids


def _restored(again: Callable[[], StreamEncoder], state: tuple[Any, ...]) -> StreamEncoder:
    """An encoder that was pickled."""
    new = again()
    new._kind, new._at, new._waiting, new._front, new._ended, segment = state
    new._segment = _Segment.of(new._facts, *segment)
    return new


def _length(text: bytes, whole: bool) -> int:
    return len(text.decode()) if whole else len(text)


class Key(NamedTuple):
    """A special token in a text."""

    begin: int
    """Where it begins."""
    end: int
    """Where it ends."""
    text: str
    """Its text."""
    id: int | None
    """Its id; None if the text must not hold it."""


class SpecialKeys:
    """Special tokens in text that arrives in parts."""

    def __init__(self, special: SpecialFinder, method: str):
        if special.odd is not None:
            raise ValueError(
                f"{method}() does not know whether a text has the token {special.odd!r} before all of it is "
                f"there: the file says that it takes spaces around it, that it must be a word of its own, or "
                f"that it is looked for after others or in normalized text; encode it whole with encode()"
            )
        self._ids = special.ids
        self._finder = Finder(list(special.ids))
        firsts = b"".join(re.escape(bytes([first])) for first in {key[0] for key in special.ids})
        self._first = re.compile(b"[" + firsts + b"]") if firsts else None

    def find(self, text: bytes, at: int, final: bool) -> tuple[list[Key], int]:
        """The tokens that are certain, from a place on, and how far the text has been searched.

        It ends early where a token may begin that only more text can decide.
        """
        tokens: list[Key] = []
        while self._first is not None and (place := self._first.search(text, at)):
            at = place.start()
            if not final and self._finder.could_grow(text, at):
                return tokens, at
            length = self._finder.longest(text, at)
            if length:
                key = text[at : at + length]
                tokens.append(Key(at, at + length, key.decode(), self._ids[key]))
            at += length or 1
        return tokens, len(text)

    def rests(self, text: bytes, at: int) -> Iterator[bytes]:
        """Yield what is missing of each token that may begin at `at` or later and end after the text."""
        for begin in range(at, len(text)):
            for key in self._ids:
                if len(key) > len(text) - begin and key.startswith(text[begin:]):
                    yield key[len(text) - begin :]


class _Segment:
    """One text without special tokens, or one segment."""

    def __init__(self, facts: ModelFacts, prefix_space: bool | None):
        self._prefix = prefix_space
        self._unk = facts.stream_unk
        self._last_unknown = False
        self._held = bytearray()  # text without ids so far; normalized, unless `_normalizer` is None
        self._searched = 0  # see _take_cut
        self._engine: Engine
        self._normalizer: StreamNormalizer | None
        shape = facts.stream_shape
        if shape is None:
            self._normalizer = None
            self._engine = facts.engine
            if prefix_space is not None:
                self._engine = facts.engine.variant(prefix=prefix_space)
        else:
            prefix = shape.spec.add_dummy_prefix if prefix_space is None else prefix_space
            self._normalizer = StreamNormalizer(shape, prefix)
            self._engine = facts.engine.variant(raw=True)

    @classmethod
    def of(
        cls, facts: ModelFacts, prefix_space: bool | None, state: tuple[Any, ...], normalizer: dict[str, Any]
    ) -> _Segment:
        """A segment that was taken apart by `state`."""
        self = cls(facts, prefix_space)
        self._held, self._last_unknown, self._searched = state
        if self._normalizer is not None:
            self._normalizer = copied(self._normalizer, **normalizer)
        return self

    def state(self) -> tuple[Any, ...]:
        """All that is not made from the model: what `of` takes."""
        state = self._held, self._last_unknown, self._searched
        return self._prefix, state, self._normalizer.state() if self._normalizer else {}

    @property
    def held(self) -> bytes:
        """The text without ids so far; what a normalizer holds back does not belong to it."""
        return bytes(self._held)

    def copy(self) -> _Segment:
        normalizer = self._normalizer and self._normalizer.copy()
        return copied(self, _held=self._held.copy(), _normalizer=normalizer)

    def is_equivalent_to(self, other: _Segment) -> bool:
        """Whether both return the same ids for all text that may come."""
        if self._normalizer is None or other._normalizer is None:
            return self._prefix == other._prefix and self._held == other._held
        return (
            self._held == other._held
            and self._last_unknown == other._last_unknown
            and self._normalizer.state() == other._normalizer.state()
        )

    def holds_less_than(self, size: int) -> bool:
        """Whether it holds back fewer bytes than this. (Spaces that wait are not included.)"""
        return len(self._held) < size and (self._normalizer is None or self._normalizer.holds_less_than(size))

    def push(self, data: bytes, whole: bool) -> list[int]:
        """The ids that more text makes certain. `whole`: it is not cut inside a character."""
        if self._normalizer is None:
            self._held += data
            return []
        # (Spaces may stay spaces, which takes less time: see `Engine.cut`.)
        stays = whole and self._normalizer.only_spaces
        self._held += data if stays else self._normalizer.push(data, whole=whole)
        return self._encode(self._take_cut())

    def flush(self) -> list[int]:
        """The ids of the rest."""
        if self._normalizer is not None:
            self._held += self._normalizer.push(b"", final=True)
        return self._encode(len(self._held))

    def _take_cut(self) -> int:
        """How much of the held text has its final ids. The caller has to remove that much.

        A long text without a cut is not searched from its beginning for every part. A cut is before or after
        a user-defined piece, or between two characters that nothing joins. So the search can continue at the
        last piece or character that it reached, which is at `_searched`. (The search stops where a
        user-defined piece could begin whose rest is still missing.)
        """
        searched = self._searched
        text = bytes(self._held[searched:]) if searched else bytes(self._held)
        cut = self._engine.cut(text)
        if cut:  # 0 says that there is none
            self._searched = 0
            return searched + cut
        assert self._normalizer is not None
        user_defined = self._normalizer.shape.user_defined
        self._searched += user_defined.last_start(text, 0, len(text) + 1 - user_defined.longest_key)
        return 0

    def _encode(self, length: int) -> list[int]:
        """The ids of the beginning of the held text."""
        if not length:
            return []
        ids = self._engine.encode(bytes(self._held[:length]))
        del self._held[:length]
        if self._last_unknown and ids[0] == self._unk:  # continues the run of unknown characters
            del ids[0]
        if ids:
            self._last_unknown = ids[-1] == self._unk
        return ids


# --- Ids to text ----------------------------------------------------------------------------------


class StreamDecoder(_Stream):
    """Turns ids into text while they arrive. `Tokenizer.stream_decoder` makes one.

    The text that `push` returns is final. All of it together, with that of `flush` at the end, is exactly
    what `Tokenizer.decode` returns for all ids with the same options.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.stream_decoder()
    >>> [stream.push(id) for id in tok.encode("Hi 🦙!")], stream.flush()
    (['Hi', ' ', '', '', '', '🦙', '!'], '')
    """

    _name = "StreamDecoder"

    if not TYPE_CHECKING:
        vars().update(elsewhere(DECODER_METHODS))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {self._name} is not pickled, because it holds tables of its tokenizer; pickle the "
            f"tokenizer and the ids so far, and make another with stream_decoder(prompt_ids)"
        )

    def __init__(
        self,
        facts: ModelFacts,
        prompt_ids: Ids = (),
        *,
        skip_special_tokens: bool | None,
        keep_prefix_space: bool | KeptSpace | None,
        prefix_after_special: bool,
    ):
        """`prompt_ids` come first; their text is not returned. The options are those of `decode`, checked."""
        if facts.spec.denormalizer is not None and facts.spec.denormalizer.charsmap:
            raise ValueError(
                "this model has a denormalizer, which rewrites a text when all of it is there, so it cannot "
                "be decoded as a stream; collect the ids and call decode() with all of them"
            )
        keep_prefix_space = facts.keeps_space(keep_prefix_space)
        self._facts = facts
        self._shown, _ = facts.shown_and_hidden(skip_special_tokens)
        self._plain, self._raw = facts.stream_texts(skip_special_tokens)
        self._size = len(self._plain)

        spec = facts.spec.normalizer
        drops = facts.drops_space and keep_prefix_space is not True
        # Whether the space of a special token at the beginning is dropped, too.
        self._strips = facts.strips_tokens and keep_prefix_space == "after_special"
        self._drops_all = spec.remove_extra_whitespaces
        # Whether a space would be dropped after a special token that is shown.
        self._drops_later = drops and prefix_after_special and not keep_prefix_space
        self._at_beginning = drops  # whether a space in front would be dropped
        self._held = b""  # the beginning of a character
        self._in_run = False  # whether it came from BYTE pieces, not from a piece that is not UTF-8
        self._replaces_as_python = facts.is_byte_level  # see _decodable
        self._ended = False
        self._steady = not drops  # whether an id simply adds its text, because nothing above applies now
        self._push(facts.check_ids(prompt_ids, "stream_decoder"))

    def push(self, ids: Ids) -> str:
        """Take one id or several, and return the text that is certain now and was not before.

        An id outside the vocabulary raises IndexError, and the stream then ignores the whole push.
        """
        if type(ids) is int and 0 <= ids < self._size:
            text = self._plain[ids]
            if text is not None:
                return text if self._steady else self._step(ids)
            if ids in self._raw or ids in self._shown or ids in self._facts.special.texts:
                return self._step(ids)
        elif type(ids) is not int:
            number = _single(ids)
            if number is not None:
                return StreamDecoder.push(self, number)
        if self._ended:
            raise ValueError("the stream has ended with flush(); make a new one with stream_decoder()")
        return self._push(self._facts.check_ids(ids, "push"))

    def flush(self) -> str:
        """End the stream and return the rest: U+FFFD for an incomplete character, or for each byte of it."""
        text = self._give_up()
        self._ended = True
        self._size = 0  # so that `push` takes its slow path, which raises an error
        return text

    @property
    def stopped(self) -> str | None:
        """The stop text at which the stream has ended; None as long as none has come."""
        return None

    @property
    def rest(self) -> str:
        """The text that has come after the stop text."""
        return ""

    def _holds(self) -> str | bytes:
        return self._held

    def _push(self, ids: list[int]) -> str:
        """The text that some checked ids make certain."""
        plain = self._plain
        if self._steady:
            try:
                return "".join([plain[id] for id in ids])  # type: ignore[misc]
            except TypeError:  # one of them is None
                pass
        parts: list[str] = []
        for id in ids:
            text = plain[id]
            parts.append(self._step(id) if text is None or not self._steady else text)
        return "".join(parts)

    def _step(self, id: int) -> str:
        """The text that one id makes certain, whatever the state; see `surfaces` in the reference."""
        text = self._plain[id]
        if text is None:
            raw = self._raw.get(id)
            if raw is None:
                return self._special(id)
            made = "" if self._in_run == isinstance(raw, int) else self._give_up()
            if isinstance(raw, int):
                self._in_run, data = True, bytes((raw,))
            else:
                self._in_run, data = False, self._without_dropped_space(id, raw)
            if data:
                self._at_beginning = False
            text, self._held = _decodable(self._held + data, self._replaces_as_python)
            made += text
        else:
            # A piece that leaves no text still ends a run of BYTE pieces, but not half a character of others.
            made = self._give_up() if text or self._in_run else ""
            if self._at_beginning:
                text = self._without_dropped_space(id, text)
            made += text
        self._steady = not self._held and not self._at_beginning
        return made

    def _without_dropped_space(self, id: int, text: Any) -> Any:
        """The text of an id, without the space that is dropped at the beginning of a text. The beginning ends
        with the first text.
        """
        engine = self._facts.engine
        if not self._at_beginning or engine.kind(id) == PieceType.CONTROL:
            return text
        if engine.piece(id).startswith(SPACE):
            if engine.kind(id) != PieceType.UNKNOWN:
                text = text[1:]
            self._at_beginning = self._drops_all
        if text:
            self._at_beginning = False
        return text

    def _special(self, id: int) -> str:
        """A special token: one that is shown and followed by a new segment, or a hidden added token."""
        text = self._shown.get(id)
        if text is None:
            return ""
        made = self._give_up() + (text.removeprefix(" ") if self._strips and self._at_beginning else text)
        self._at_beginning = self._drops_later
        self._steady = not self._at_beginning
        return made

    def _give_up(self) -> str:
        """The text of the bytes that waited, which turn out not to be a character."""
        held, self._held, self._in_run = self._held, b"", False
        return held.decode(errors="replace") if self._replaces_as_python else "\ufffd" * len(held)


class StoppingDecoder(StreamDecoder):
    """A StreamDecoder that ends at the first stop text. `Tokenizer.stream_decoder(stop=...)` makes one.

    The first is the one that ends first, and if several end there, the longest. So it does not depend on how
    the ids were cut into pushes, and nothing has to wait for a longer one. Text that may be the beginning of
    a stop text is held back until more text decides.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.stream_decoder(stop=["User:"])
    >>> [stream.push(id) for id in tok.encode("Use it. User: Why?")], stream.flush()
    (['', 'Use it', '.', ' ', '', '', ''], '')
    >>> stream.stopped, stream.rest
    ('User:', ' Why?')
    """

    def __init__(self, stops: list[str], *given: Any, **options: Any):
        """`stops` are checked; the rest is what a StreamDecoder takes."""
        self._stops = stops
        self._stopped: str | None = None
        self._rest = ""  # decoded text that was not returned
        super().__init__(*given, **options)

    def push(self, ids: Ids) -> str:
        """Take one id or several, and return the text that is certain now and comes before a stop text.

        After a stop text this is "". An id outside the vocabulary raises IndexError, as without stop texts.
        """
        text = super().push(ids)
        return self._before_stop(text) if text else ""

    def flush(self) -> str:
        """End the stream and return the remaining text, if no stop text has come."""
        made = self._before_stop(super().flush())
        if self._stopped is None:
            made, self._rest = made + self._rest, ""
        return made

    def _before_stop(self, text: str) -> str:
        """The part of the held and the new text that can be returned."""
        text = self._rest + text
        if self._stopped is not None:
            self._rest = text
            return ""
        places = [(place + len(stop), place) for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            end, begin = min(places)
            self._stopped, self._rest = text[begin:end], text[end:]
            return text[:begin]
        held = max((_held(text, stop) for stop in self._stops), default=0)
        self._rest = text[len(text) - held :]
        return text[: len(text) - held]

    @property
    def stopped(self) -> str | None:
        """The stop text at which the stream has ended; None as long as none has come."""
        return self._stopped

    @property
    def rest(self) -> str:
        """The text that has come after the stop text."""
        return "" if self._stopped is None else self._rest

    def _state(self) -> str:
        return super()._state() if self._stopped is None else f"stopped at {self._stopped!r}"

    def _holds(self) -> str | bytes:
        return self._rest or super()._holds()


def _held(text: str, stop: str) -> int:
    """How many characters at the end of a text may be the beginning of a stop text."""
    at = max(0, len(text) - len(stop) + 1)
    while (at := text.find(stop[0], at)) >= 0:
        if stop.startswith(text[at:]):
            return len(text) - at
        at += 1
    return 0


def checked_stops(stop: str | Iterable[str] | None, facts: ModelFacts, skip: bool | None) -> list[str]:
    """The texts at which a stream ends. `skip` is the option `skip_special_tokens`."""
    if isinstance(stop, (bytes, bytearray)) or not isinstance(stop, (Iterable, type(None))):
        raise TypeError(f"stop must be str, or a list of str, not {type(stop).__name__}")
    stops = [stop] if isinstance(stop, str) else [] if stop is None else list(stop)
    shown, hidden = facts.shown_and_hidden(skip)
    engine = facts.engine
    for text in stops:
        if not isinstance(text, str):
            raise TypeError(f"stop must be str, or a list of str, not {type(text).__name__}")
        if not text:
            raise ValueError("stop: an empty text would end the stream at once; leave it out")
        id = facts.special.ids.get(text, facts.special.plain.get(text))
        if id is None or text in shown.get(id, ""):
            continue
        if id in shown:
            raise ValueError(f"stop: the token {text!r} is decoded to {shown[id]!r}; stop at that")
        if id in hidden or id >= engine.size or engine.kind(id) == PieceType.CONTROL:
            raise ValueError(
                f"stop: {text!r} is a special token, and decoding leaves it out; end when its id comes, "
                f"{id}, or show it with skip_special_tokens=False"
            )
    return stops


def _single(ids: Ids) -> int | None:
    """The id, if it is a single one in another form: a numpy integer, or a list of one."""
    if type(ids) is list:
        return ids[0] if len(ids) == 1 and type(ids[0]) is int else None
    try:
        return index(ids)  # type: ignore[arg-type]
    except TypeError:
        return None


@lru_cache(4096)
def _decodable(data: bytes, as_python: bool) -> tuple[str, bytes]:
    """The text of bytes, and the bytes that wait. (Cached, because invalid bytes are slow to decode.)

    `as_python`: an incomplete character becomes one U+FFFD, as in Python, instead of one for each byte.
    """
    text, used = utf_8_decode(data, "replace", False) if as_python else certain(data)
    return text, data[used:]
