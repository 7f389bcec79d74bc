"""`StreamDecoder`: turns ids into text while they arrive.

It returns text as soon as it is certain, and never text that could still change. Joined, that is the text
that `Tokenizer.decode` returns for all ids. The work for an id does not depend on how many came before.

Text has to wait because a character can take several BYTE pieces, and bytes that turn out not to be a
character become one U+FFFD each.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable
from functools import lru_cache
from operator import index
from typing import Any, NoReturn, SupportsIndex

from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import SPACE, certain
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.options import KeptSpace, checked_flag, checked_keep_space

Ids = Iterable[SupportsIndex] | SupportsIndex


class StreamDecoder:
    """Turns ids into text while they arrive. `Tokenizer.stream_decoder` makes one.

    The text that `push` returns is final. All of it together, with that of `flush` at the end, is exactly
    what `Tokenizer.decode` returns for all ids with the same options.

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
        "_facts",
        "_held",
        "_in_parts",
        "_in_run",
        "_plain",
        "_raw",
        "_shown",
        "_size",
        "_steady",
        "_strips",
    )

    def __init__(
        self,
        facts: ModelFacts,
        prompt_ids: Ids = (),
        *,
        skip_special_tokens: bool | None = None,
        keep_prefix_space: bool | KeptSpace | None = None,
        prefix_after_special: bool = True,
    ):
        """`prompt_ids` come first; their text is not returned. For the options see `Tokenizer`."""
        if facts.spec.denormalizer is not None and facts.spec.denormalizer.charsmap:
            raise ValueError(
                "this model has a denormalizer, which rewrites a text when all of it is there, so it cannot "
                "be decoded as a stream; collect the ids and call decode() with all of them"
            )
        skip_special_tokens = checked_flag("skip_special_tokens", skip_special_tokens, or_none=True)
        keep_prefix_space = facts.keeps_space(checked_keep_space(keep_prefix_space))
        prefix_after_special = checked_flag("prefix_after_special", prefix_after_special)
        self._facts = facts
        self._shown, _ = facts.special.shown_and_hidden(skip_special_tokens)
        self._plain, self._raw = facts.stream_texts_for(skip_special_tokens)
        self._size = len(self._plain)

        spec = facts.spec.normalizer
        drops = facts.drops_space and keep_prefix_space is not True
        self._strips = drops and keep_prefix_space == "after_special"  # a first token's own space, too
        self._drops_all = spec.remove_extra_whitespaces
        # Whether one would be dropped after a special token that is shown.
        self._drops_later = drops and prefix_after_special and not keep_prefix_space
        self._at_beginning = drops  # whether a space in front would be dropped
        self._held = b""  # the beginning of a character
        self._in_run = False  # whether it came from BYTE pieces, not from a piece that is not UTF-8
        self._in_parts = facts.engine.byte_level is not None  # see _next
        self._ended = False
        self._steady = not drops  # none of this matters now: an id adds its plain text
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
                return self.push(number)
        if self._ended:
            raise ValueError("the stream has ended with flush(); make a new one with stream_decoder()")
        return self._push(self._facts.check_ids(ids, "push"))

    def flush(self) -> str:
        """End the stream and return the rest: U+FFFD for every byte of an incomplete character."""
        text = self._give_up()
        self._ended = True
        self._size = 0  # so that `push` notices
        return text

    def copy(self) -> StreamDecoder:
        """A second stream that continues from here, for example for beam search. Copies are cheap.

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
        """The text that one id makes certain, whatever the state; see `_join` in the reference."""
        text = self._plain[id]
        if text is None:
            raw = self._raw.get(id)
            if raw is None:
                return self._special(id)
            made = "" if self._in_run == isinstance(raw, int) else self._give_up()
            if isinstance(raw, int):
                self._in_run, data = True, bytes((raw,))
            else:
                self._in_run, data = False, self._begin(id, raw)
            if data:
                self._at_beginning = False
            text, self._held = _next(self._held + data, self._in_parts)
            made += text
        else:
            # A piece that leaves no text still ends a run of BYTE pieces, but not half a character of others.
            made = self._give_up() if text or self._in_run else ""
            if self._at_beginning:
                text = self._begin(id, text)
            made += text
        self._steady = not self._held and not self._at_beginning
        return made

    def _begin(self, id: int, text: Any) -> Any:
        """The text of an id, without the space that is dropped if it is at the beginning of a text."""
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
        """The bytes that waited turn out not to be a character."""
        held, self._held, self._in_run = self._held, b"", False
        return held.decode(errors="replace") if self._in_parts else "\ufffd" * len(held)


def _single(ids: Ids) -> int | None:
    """The id, if it is a single one in another form: a numpy integer, or a list of one."""
    if type(ids) is list:
        return ids[0] if len(ids) == 1 and type(ids[0]) is int else None
    try:
        return index(ids)  # type: ignore[arg-type]
    except TypeError:
        return None


@lru_cache(4096)
def _next(data: bytes, in_parts: bool) -> tuple[str, bytes]:
    """The text of bytes, and the bytes that wait. (Cached, because a bad byte is slow.)

    `in_parts`: the beginning of a character that does not go on becomes one U+FFFD, as in Python, not one for
    each byte.
    """
    text, used = utf_8_decode(data, "replace", False) if in_parts else certain(data)
    return text, data[used:]
