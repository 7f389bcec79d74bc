r"""Text and ids that arrive in parts: `StreamDecoder` and `StreamEncoder`.

Both give out what is certain, as soon as it is, and nothing that could still change; joined, that is what
`Tokenizer.decode` and `Tokenizer.encode` give for the whole. Neither looks at all of it again for every part.

Why text has to wait: a character may take several BYTE pieces, and bytes that make no character turn into one
U+FFFD each. Why ids have to wait: what follows may merge with what is there. (Where it cannot, `Engine.cut`
knows.)
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from cpbpe.engine.choice import Engine
from cpbpe.model.spec import PieceType
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import SPACE, certain
from cpbpe.tokenizer.checks import checked_text
from cpbpe.tokenizer.facts import all_bytes, cache_of, habits, kinds
from cpbpe.tokenizer.stream_normalizer import Shape, StreamNormalizer

if TYPE_CHECKING:
    from cpbpe.tokenizer.detokenizer import Detokenizer, Ids
    from cpbpe.tokenizer.vocabulary import Vocabulary

# --- Ids to text ----------------------------------------------------------------------------------


class Texts(NamedTuple):
    """What every id adds to a text."""

    plain: list[str | None]
    """In the middle of it; None for what is odd, for an added token, and for an id that is not in use."""
    odd: dict[int, int | bytes]
    """A BYTE piece's byte; the bytes of a piece that is not UTF-8."""


_BYTES = re.compile(b"%c" % PieceType.BYTE)


def _texts(tok: Vocabulary) -> Texts:
    cache = cache_of(tok)
    found: Texts | None = cache.get("texts")
    if found is None:
        table = all_bytes(tok)
        size = tok._engine.size
        odd: dict[int, int | bytes] = {}
        for byte in _BYTES.finditer(kinds(tok._engine)):
            id = byte.start()
            odd[id] = table[id][0]
            table[id] = b""
        plain: list[str | None]
        try:
            plain = [*b"\0".join(table).decode().split("\0")]  # all at once, which is faster
        except UnicodeDecodeError:
            plain = []
        if len(plain) != len(table):  # not UTF-8, or a piece that is a NUL
            plain = [data.decode(errors="ignore") for data in table]
            odd |= {id: data for id, data in enumerate(table) if str(plain[id]).encode() != data}
        for id in odd:
            plain[id] = None
        plain[size:] = [None] * (len(plain) - size)
        found = cache["texts"] = Texts(plain, odd)
    return found


def _texts_without(tok: Vocabulary, shown: dict[int, str]) -> Texts:
    """The same, without the CONTROL pieces that are shown."""
    cache = cache_of(tok)
    found: Texts | None = cache.get("texts shown")
    if found is None:
        texts = _texts(tok)
        plain = texts.plain.copy()
        for id in shown:
            plain[id] = None
        found = cache["texts shown"] = Texts(plain, texts.odd)
    return found


class StreamDecoder:
    """Turns ids that arrive one by one, or some at a time, into text. `Tokenizer.stream_decoder` makes one.

    What `push` gives will not change, whatever follows. All of it, and at last `flush`, is exactly what
    `Tokenizer.decode` gives for all ids with the same options. The work for an id does not depend on
    how many there were.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.stream_decoder()
    >>> [stream.push(id) for id in tok.encode("Hi 🦙!")], stream.flush()
    (['Hi', ' ', '', '', '', '🦙', '!'], '')
    """

    __slots__ = (
        "_at_beginning",
        "_drops_all",
        "_drops_later",
        "_ended",
        "_held",
        "_in_run",
        "_odd",
        "_plain",
        "_shown",
        "_size",
        "_steady",
        "_tok",
    )

    def __init__(
        self,
        tok: Detokenizer,
        prompt_ids: Ids = (),
        *,
        skip_special_tokens: bool | None = None,
        keep_prefix_space: bool = False,
        prefix_after_special: bool = True,
    ):
        """`prompt_ids` come first, and their text is not given out. For the options see `Tokenizer`."""
        known = habits(tok)
        if known.denormalizes:
            raise ValueError(
                "this model has a denormalizer, which rewrites a text when all of it is there, so it cannot "
                "be decoded as a stream; collect the ids and call decode() with all of them"
            )
        special = tok._special
        self._tok = tok
        if skip_special_tokens is None or skip_special_tokens:
            self._shown = {} if skip_special_tokens else special.texts
            self._plain, self._odd = _texts(tok)
        else:
            self._shown = special.shown
            self._plain, self._odd = _texts_without(tok, special.shown)
        self._size = len(self._plain)

        spec = known.normalizer
        drops = (spec.add_dummy_prefix or spec.remove_extra_whitespaces) and not keep_prefix_space
        self._drops_all = spec.remove_extra_whitespaces
        self._drops_later = drops and prefix_after_special  # behind a special token that is shown
        self._at_beginning = drops  # whether a space in front would go
        self._held = b""  # the beginning of a character
        self._in_run = False  # whether BYTE pieces made it, or a piece that is not UTF-8
        self._ended = False
        self._steady = not drops  # nothing of this is to be thought of: an id adds its plain text
        self._push(tok._checked(prompt_ids, "stream_decoder"))

    def push(self, ids: Ids) -> str:
        """Take one id, or several, and give the text that is certain now, and was not before.

        IndexError for an id outside the vocabulary; then none of the ids was taken.
        """
        if type(ids) is int and 0 <= ids < self._size:
            text = self._plain[ids]
            if text is not None:
                return text if self._steady else self._step(ids)
            if ids in self._odd or ids in self._shown or ids in self._tok._special.texts:
                return self._step(ids)
        elif type(ids) is not int:
            number = _single(ids)
            if number is not None:
                return self.push(number)
        if self._ended:
            raise ValueError("the stream has ended with flush(); make a new one with stream_decoder()")
        return self._push(self._tok._checked(ids, "push"))

    def flush(self) -> str:
        """End the stream and give what is left: U+FFFD for every byte of a character that is not complete."""
        text = self._settle()
        self._ended = True
        self._size = 0  # so that `push` looks
        return text

    def copy(self) -> StreamDecoder:
        """Another stream that goes on from here, as beam search needs it. It costs next to nothing.

        >>> import cpbpe
        >>> tok = cpbpe.load("tokenizer.model")
        >>> one = tok.stream_decoder(tok.encode("Hello"))
        >>> two = one.copy()
        >>> one.push(tok.encode(" world", prefix_space=False)), two.push(tok.encode("!", prefix_space=False))
        (' world', '!')
        """
        new = object.__new__(StreamDecoder)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> StreamDecoder:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a StreamDecoder is not pickled, because it holds tables of its tokenizer; pickle the tokenizer "
            "and the ids so far, and make another with stream_decoder(prompt_ids)"
        )

    def _push(self, ids: list[int]) -> str:
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
        """The text that one id makes certain, whatever the state; see `_join` in `cpbpe/reference.py`."""
        text = self._plain[id]
        if text is None:
            odd = self._odd.get(id)
            if odd is None:
                return self._special(id)
            made = "" if self._in_run == isinstance(odd, int) else self._settle()
            if isinstance(odd, int):
                self._in_run, data = True, bytes((odd,))
            else:
                self._in_run, data = False, self._begin(id, odd, SPACE)
            if data:
                self._at_beginning = False
            text, self._held = _next(self._held + data)
            made += text
        else:
            # A piece that leaves no text still ends a run of BYTE pieces, but not half a character of others.
            made = self._settle() if text or self._in_run else ""
            if self._at_beginning:
                text = self._begin(id, text, " ")
            made += text
        self._steady = not self._held and not self._at_beginning
        return made

    def _begin(self, id: int, text: Any, space: Any) -> Any:
        """What is left of the text of an id, maybe at the beginning of a text."""
        if not self._at_beginning or self._tok._engine.kind(id) == PieceType.CONTROL:
            return text
        if self._tok._engine.piece(id).startswith(SPACE):
            if self._tok._engine.kind(id) != PieceType.UNKNOWN:
                text = text[1:]
            self._at_beginning = self._drops_all
        if text:
            self._at_beginning = False
        return text

    def _special(self, id: int) -> str:
        """A special token: one that is shown, with a new stretch behind it, or an added one that is not."""
        text = self._shown.get(id)
        if text is None:
            return ""
        made = self._settle() + text
        self._at_beginning = self._drops_later
        self._steady = not self._at_beginning
        return made

    def _settle(self) -> str:
        """What is held turns out to be no character."""
        text, self._held, self._in_run = "\ufffd" * len(self._held), b"", False
        return text


def _single(ids: Ids) -> int | None:
    """The id, if it is a single one in another shape: numpy's, or a list of one."""
    if type(ids) is list:
        return ids[0] if len(ids) == 1 and type(ids[0]) is int else None
    try:
        return index(ids)  # type: ignore[arg-type]
    except TypeError:
        return None


@lru_cache(4096)
def _next(data: bytes) -> tuple[str, bytes]:
    """The text of bytes, and those that wait. (Remembered, because a bad byte takes long.)"""
    text, used = certain(data)
    return text, data[used:]


# --- Text to ids ----------------------------------------------------------------------------------

# Characters that nobody has side by side in a piece, and more of them than a piece is long.
_PROBE = "".join(map(chr, range(0xF0000, 0xF0000 + 2100))).encode()


class Plan(NamedTuple):
    """How a model's text is encoded when it arrives in parts: made once, and shared by its streams."""

    shape: Shape | None
    """How it is normalized; None if all of it must be there."""
    unk: int
    """The id that is given once for unknown characters side by side, -1 if there is none."""


def _plan(tok: Vocabulary) -> Plan:
    cache = cache_of(tok)
    found: Plan | None = cache.get("plan")
    if found is None:
        engine = tok._engine
        types = kinds(engine)
        words = [
            piece
            for id, kind in enumerate(types)
            if kind == PieceType.USER_DEFINED and (piece := engine.piece(id)) != b"\0"
        ]
        shape = Shape(habits(tok).normalizer, words) if engine.cut(_PROBE) else None
        if shape is not None and not shape.is_text:
            shape = None
        unk = -1 if engine.byte_fallback else types.index(PieceType.UNKNOWN)
        found = cache["plan"] = Plan(shape, unk)
    return found


class StreamEncoder:
    """Turns text that arrives in parts into ids. `Tokenizer.stream_encoder` makes one.

    What `push` gives will not change, whatever follows. All of it, and at last `flush`, is exactly
    what `Tokenizer.encode` gives for the whole text. Text of some models has to wait for `flush`: those with
    UNUSED pieces, or with pieces or rules that are not UTF-8.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.stream_encoder()
    >>> [stream.push(part) for part in ["Hel", "lo, wor", "ld", "! And"]], stream.flush()
    ([[], [22557, 28725], [], [1526, 28808]], [1015])
    """

    __slots__ = (
        "_ended",
        "_engine",
        "_held",
        "_kind",
        "_last_unknown",
        "_normalizer",
        "_plan",
        "_searched",
    )

    def __init__(self, tok: Vocabulary, *, prefix_space: bool | None = None):
        """`prefix_space`: as for `Tokenizer.encode`."""
        self._plan = _plan(tok)
        self._kind: type | None = None
        self._ended = False
        self._last_unknown = False
        self._held = bytearray()  # text that has no ids yet; normalized, if there is a normalizer
        self._searched = 0  # see _cut
        self._engine: Engine
        self._normalizer: StreamNormalizer | None
        if self._plan.shape is None:
            self._normalizer = None
            self._engine = tok._engine
            if prefix_space is not None:
                self._engine = tok._engine.variant(prefix=bool(prefix_space))
        else:
            prefix = self._plan.shape.spec.add_dummy_prefix if prefix_space is None else bool(prefix_space)
            self._normalizer = StreamNormalizer(self._plan.shape, prefix)
            self._engine = tok._engine.variant(raw=True)

    def push(self, text: str | bytes) -> list[int]:
        """Take the next part of the text, and give the ids that are certain now, and were not before.

        All parts of a text are str, or all are bytes; bytes may be cut inside a character.
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
        self._kind = type(given)
        if self._normalizer is None:
            self._held += data
            return []
        self._held += self._normalizer.push(data, whole=self._kind is str)
        return self._encode(self._cut(self._normalizer.shape.user_defined))

    def flush(self) -> list[int]:
        """End the stream and give the ids that are left."""
        if self._normalizer is not None and not self._ended:
            self._held += self._normalizer.push(b"", final=True)
        self._ended = True
        return self._encode(len(self._held))

    def copy(self) -> StreamEncoder:
        """Another stream that goes on from here."""
        new = object.__new__(StreamEncoder)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        new._held = self._held.copy()
        new._normalizer = self._normalizer and self._normalizer.copy()
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> StreamEncoder:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a StreamEncoder is not pickled, because it holds tables of its tokenizer; pickle the tokenizer "
            "and the text so far, and push that to another, made with stream_encoder()"
        )

    def _cut(self, user_defined: Finder) -> int:
        """How much of the held text has its ids for good.

        A long text without a cut is not searched again for every part. A cut is in front of a user-defined
        piece, behind one, or between two characters that nothing joins. So the search can go on at the last
        piece or character that it came to, where `_searched` points. (It stops where a piece could
        begin that has not all come, and the next part moves that on.)
        """
        text = bytes(self._held[self._searched :])
        cut = self._engine.cut(text)
        last = user_defined.last_start(text, cut, len(text) + 1 - user_defined.longest_key)
        if cut:  # 0 says that there is none
            cut += self._searched
        self._searched += last - cut
        return cut

    def _encode(self, length: int) -> list[int]:
        """The ids of the beginning of the held text."""
        if not length:
            return []
        ids = self._engine.encode(bytes(self._held[:length]))
        del self._held[:length]
        if self._last_unknown and ids[0] == self._plan.unk:  # goes on with the unknown characters before
            del ids[0]
        if ids:
            self._last_unknown = ids[-1] == self._plan.unk
        return ids
