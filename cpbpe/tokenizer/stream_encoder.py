"""`StreamEncoder`: turns text into ids while it arrives.

It returns ids as soon as they are certain, and never ids that could still change. Joined, they are what
`Tokenizer.encode` returns for the whole text. It never goes through the whole text again for another part.

Ids have to wait because what follows may merge with what is there. (`Engine.cut` knows where it cannot.) And
if special tokens are looked for, what may be the beginning of one waits for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from cpbpe.checks import checked_text
from cpbpe.engine.protocol import Engine
from cpbpe.text.finder import Finder
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_finder import SpecialFinder, not_allowed
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.stream_normalizer import StreamNormalizer
from cpbpe.tokenizer.stream_values import StreamPlan


class StreamEncoder:
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

    __slots__ = (
        "_at",
        "_back",
        "_ended",
        "_facts",
        "_front",
        "_kind",
        "_later",
        "_segment",
        "_special",
        "_waiting",
    )

    def __init__(self, facts: ModelFacts, plan: EncodePlan):
        """`plan` follows from the options."""
        finder = plan.encoder.finder if isinstance(plan.encoder, SpecialEncoder) else None
        self._facts = facts
        self._later = plan.prefix_space if plan.prefix_after_special else False
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
        new = object.__new__(StreamEncoder)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        new._segment = self._segment.copy()
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> StreamEncoder:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a StreamEncoder is not pickled, because it holds tables of its tokenizer; pickle the tokenizer "
            "and the text so far, and push that to another, made with stream_encoder()"
        )

    def _begin(self) -> list[int]:
        """The ids that go in front: those of bos, at the first call only."""
        front, self._front = self._front, []
        return front

    def _push(self, data: bytes, whole: bool, final: bool) -> list[int]:
        """The ids of more text, in which special tokens are looked for. `whole`: it is str."""
        if self._special is None:
            return self._begin() + self._segment.push(data, whole=whole)
        text = self._waiting + data if self._waiting else data

        # 1. Find all tokens before taking anything: one that is refused leaves the stream as it was.
        tokens: list[tuple[int, int, int]] = []
        done = 0
        while (key := self._special.next(text, done, final)) is not None:
            begin, done, name, id = key
            if id is None:
                raise not_allowed(name, self._at + _length(text[:begin], whole))
            tokens.append((begin, done, id))

        # 2. Encode the segments before them.
        ids = [*self._begin()]
        done = 0
        for begin, end, id in tokens:
            ids += self._segment.push(text[done:begin], whole=whole) + self._segment.flush()
            ids.append(id)
            self._segment = _Segment(self._facts, self._later)
            done = end

        # 3. Encode the rest, except for what may be the beginning of another token.
        certain = len(text) if final else self._special.first_open(text, done)
        ids += self._segment.push(text[done:certain], whole=whole)
        self._at += _length(text[:certain], whole)
        self._waiting = text[certain:]
        return ids


def _length(text: bytes, whole: bool) -> int:
    return len(text.decode()) if whole else len(text)


class SpecialKeys:
    """Special tokens in text that arrives in parts."""

    def __init__(self, special: SpecialFinder, method: str):
        if special.odd is not None:
            raise ValueError(
                f"{method}() does not know whether a text has the token {special.odd!r} before all of it is "
                f"there: the file says that it takes spaces around it, that it must be a word of its own, or "
                f"that it is looked for in normalized text; encode the whole text with encode()"
            )
        self._ids = special.ids
        self._finder = Finder(list(special.ids))
        firsts = b"".join(re.escape(bytes([first])) for first in {key[0] for key in special.ids})
        self._first = re.compile(b"[" + firsts + b"]") if firsts else None

    def next(self, text: bytes, at: int, final: bool) -> tuple[int, int, str, int | None] | None:
        """The span of the next token, its text and its id; None if none is certain."""
        while self._first is not None and (place := self._first.search(text, at)):
            at = place.start()
            if not final and self._finder.could_grow(text, at):
                return None
            length = self._finder.longest(text, at)
            if length:
                key = text[at : at + length]
                return at, at + length, key.decode(), self._ids[key]
            at += 1
        return None

    def first_open(self, text: bytes, at: int) -> int:
        """The first place from `at` on where a token could begin, given more text."""
        while self._first is not None and (place := self._first.search(text, at)):
            at = place.start()
            if self._finder.could_grow(text, at):
                return at
            at += 1
        return len(text)

    def rests(self, text: bytes, at: int) -> Iterator[bytes]:
        """Yield what makes a token of the end of the text, which begins from `at` on: what it has besides."""
        for begin in range(at, len(text)):
            for key in self._ids:
                if len(key) > len(text) - begin and key.startswith(text[begin:]):
                    yield key[len(text) - begin :]


class _Segment:
    """One text without special tokens, or one segment."""

    __slots__ = ("_engine", "_held", "_last_unknown", "_normalizer", "_plan", "_searched")

    def __init__(self, facts: ModelFacts, prefix_space: bool | None):
        self._plan: StreamPlan = facts.stream_plan
        self._last_unknown = False
        self._held = bytearray()  # text that has no ids yet; normalized, if there is a normalizer
        self._searched = 0  # see _cut
        self._engine: Engine
        self._normalizer: StreamNormalizer | None
        if self._plan.shape is None:
            self._normalizer = None
            self._engine = facts.engine
            if prefix_space is not None:
                self._engine = facts.engine.variant(prefix=prefix_space)
        else:
            prefix = self._plan.shape.spec.add_dummy_prefix if prefix_space is None else prefix_space
            self._normalizer = StreamNormalizer(self._plan.shape, prefix)
            self._engine = facts.engine.variant(raw=True)

    def copy(self) -> _Segment:
        new = object.__new__(_Segment)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        new._held = self._held.copy()
        new._normalizer = self._normalizer and self._normalizer.copy()
        return new

    def push(self, data: bytes, whole: bool) -> list[int]:
        """The ids that more text makes certain. `whole`: it is not cut inside a character."""
        if self._normalizer is None:
            self._held += data
            return []
        self._held += self._normalizer.push(data, whole=whole)
        return self._encode(self._cut())

    def flush(self) -> list[int]:
        """The ids of the rest."""
        if self._normalizer is not None:
            self._held += self._normalizer.push(b"", final=True)
        return self._encode(len(self._held))

    def _cut(self) -> int:
        """How much of the held text has its final ids.

        A long text without a cut is not searched from its beginning for every part. A cut is before or after
        a user-defined piece, or between two characters that nothing joins. So the search can continue at the
        last piece or character that it reached, which `_searched` points to. (It stops where a piece could
        begin of which the rest is still missing.)
        """
        assert self._normalizer is not None
        user_defined = self._normalizer.shape.user_defined
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
        if self._last_unknown and ids[0] == self._plan.unk:  # continues the run of unknown characters
            del ids[0]
        if ids:
            self._last_unknown = ids[-1] == self._plan.unk
        return ids
