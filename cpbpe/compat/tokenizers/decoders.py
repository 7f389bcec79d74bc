"""Decoding as the decoder in a file does it; and `DecodeStream`, of the module `tokenizers.decoders`.

The engine decodes ids that come from a text, because its result is the same and it is faster. Other ids are
decoded step by step, because the results can differ: bytes that are not UTF-8 together become one U+FFFD
each, and a space at the beginning is dropped, whichever token it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from cpbpe.checks import threads_for
from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.added import AddedTokens
from cpbpe.compat.tokenizers.arguments import DECODERS, refuse
from cpbpe.compat.tokenizers.texts import compiled
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import from_letters, is_spelled

# --- From ids to text -----------------------------------------------------------------------------


_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>\Z")
Step = Callable[[list[str]], list[str]]


class Decoder:
    """Decodes ids for one tokenizer."""

    def __init__(
        self, engine: Engine, added: AddedTokens, steps: Callable[[], Any], is_usual: Callable[[], bool]
    ):
        """`steps` makes the decoder of the file, and `is_usual` says whether the engine does the same."""
        self._engine = engine
        self._added = added
        self._make_steps = steps
        self._make_usual = is_usual

    @kept
    def _steps(self) -> list[Step]:
        return steps_of_decoder(self._make_steps())

    @kept
    def _by_engine(self) -> tuple[frozenset[int], frozenset[int]]:
        """The ids that the engine decodes like the steps, and those of bytes, which it mostly does."""
        if not self._make_usual():
            return frozenset(), frozenset()
        engine = self._engine
        plain = {PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED}
        plain.add(PieceType.BYTE if engine.head["byte_fallback"] else PieceType.UNKNOWN)
        kinds = [(id, engine.kind(id)) for id in range(engine.size)]
        return (
            frozenset(id for id, kind in kinds if kind in plain),
            frozenset(id for id, kind in kinds if kind == PieceType.BYTE),
        )

    def decode_batch(self, batch: list[list[int]], skip_special_tokens: bool) -> list[str]:
        """The texts of many sequences of ids."""
        # 1. Remove the ids that are left out.
        added = self._added
        if skip_special_tokens:
            hidden = {id for id in added.by_id if added.name(id) in added.specials}
            batch = [
                ids if hidden.isdisjoint(ids) else [id for id in ids if id not in hidden] for ids in batch
            ]
        # 2. The engine decodes what it can.
        plain, bytes = self._by_engine
        plain = plain.difference(added.by_id)
        can = [plain.issuperset(ids) and not (ids and ids[0] in bytes) for ids in batch]
        at_once: list[list[int] | Any] = [ids for ids, by_engine in zip(batch, can, strict=True) if by_engine]
        texts = iter(self._engine.decode_batch(at_once, threads_for(at_once, None)) or ())
        # 3. The rest is decoded step by step: also bytes that may not be UTF-8.
        found = []
        for ids, by_engine in zip(batch, can, strict=True):
            text = next(texts) if by_engine else None
            if text is None or ("\ufffd" in text and not bytes.isdisjoint(ids)):
                tokens = [token for id in ids if (token := added.name(id)) is not None]
                for step in self._steps:
                    tokens = step(tokens)
                text = "".join(tokens)
            found.append(text)
        return found


def steps_of_decoder(decoder: Any) -> list[Step]:
    """What the decoder of a file does to the tokens of a text. In the end they are joined."""
    if decoder is None:
        return [lambda tokens: [" ".join(tokens)]]
    return [_step(step) for step in (decoder["decoders"] if decoder["type"] == "Sequence" else [decoder])]


def _step(step: Any) -> Step:
    kind = step["type"]
    if kind == "Replace":
        pattern, content = compiled(step["pattern"]), step["content"]
        return lambda tokens: [pattern.sub(lambda _: content, token) for token in tokens]
    if kind == "ByteFallback":
        return _bytes
    if kind == "Fuse":
        return lambda tokens: ["".join(tokens)]
    if kind == "Strip":
        return lambda tokens: [
            _stripped(token, step["content"], step["start"], step["stop"]) for token in tokens
        ]
    if kind == "Metaspace":
        return lambda tokens: _metaspace(tokens, step)
    if kind == "ByteLevel":
        return _letters
    raise ModelError(f"decoder is {kind}, and such a step is not possible here")


def _bytes(tokens: list[str]) -> list[str]:
    """Replace runs of bytes by their text; if a run is not UTF-8, each of its bytes becomes U+FFFD."""
    done: list[str] = []
    run = bytearray()

    def end_run() -> None:
        if run:
            try:
                done.append(run.decode())
            except UnicodeDecodeError:
                done.extend("\ufffd" * len(run))
            run.clear()

    for token in tokens:
        if _BYTE.match(token):
            run.append(int(token[3:5], 16))
        else:
            end_run()
            done.append(token)
    end_run()
    return done


def _letters(tokens: list[str]) -> list[str]:
    """The text of tokens whose letters stand for bytes. A token with any other character is text itself."""
    data = [from_letters(token) if is_spelled(token) else token.encode() for token in tokens]
    return [b"".join(data).decode(errors="replace")]


def _stripped(token: str, content: str, start: int, stop: int) -> str:
    """A token without up to `start` and `stop` occurrences of a character at its ends."""
    for _ in range(start):
        token = token.removeprefix(content)
    for _ in range(stop):
        token = token.removesuffix(content)
    return token


def _metaspace(tokens: list[str], step: Any) -> list[str]:
    """The decoder of Metaspace: spaces for its mark, but nothing for those of the first token."""
    mark = step["replacement"]
    drops = (
        step.get("prepend_scheme", "always") != "never" and step.get("add_prefix_space", True) is not False
    )
    spaced = [token.replace(mark, " ") for token in tokens]
    if drops and tokens:
        spaced[0] = tokens[0].replace(mark, "")
    return spaced


# --- Decoding ids that arrive one by one -----------------------------------------------------------


__all__ = ["DecodeStream"]


class Decodes(Protocol):
    """What a `DecodeStream` needs of a `Tokenizer`."""

    def decode(self, ids: list[int], skip_special_tokens: bool = True, /) -> str:
        """The text of ids."""


class DecodeStream:
    """Decodes ids that arrive one by one, or a few at a time.

    >>> import cpbpe
    >>> from cpbpe.compat.tokenizers import Tokenizer
    >>> from cpbpe.compat.tokenizers.decoders import DecodeStream
    >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
    >>> stream = DecodeStream()
    >>> [stream.step(tokenizer, id) for id in tokenizer.encode("Hi 🦙!").ids]
    ['Hi', ' ', None, None, None, '🦙', '!']
    """

    def __init__(self, ids: list[int] | None = None, skip_special_tokens: bool = False):
        """`ids` came before the first call. They influence the text that follows, but are not part of it."""
        self._ids = [] if ids is None else list(arguments.ids(ids, "ids"))
        self._skips = arguments.flag(skip_special_tokens, "skip_special_tokens")
        self._text = ""
        self._shown = 0

    def step(self, tokenizer: Decodes, id: int | list[int]) -> str | None:
        """The text that has become certain with this id or these ids; None if there is none yet."""
        given = arguments.ids(id, "id") if isinstance(id, (list, tuple)) else arguments.ids([id], "id")
        # 1. On the first call: the text of the ids that came before.
        if not self._text and self._ids:
            self._keep(tokenizer, len(self._ids))
        # 2. Decode the new ids together with those before them that may influence their text.
        self._ids += given
        text = tokenizer.decode(self._ids, self._skips)
        if text.endswith("\ufffd") or len(text.encode()) <= len(self._text.encode()):
            return None
        if not text.startswith(self._text):
            raise ValueError(
                f"the text of the ids so far was {self._text!r}, and with the new ones it is {text!r}: what "
                f"has been returned cannot be taken back"
            )
        # 3. From now on, only the ids of the new text can have an influence.
        new = text[len(self._text) :]
        last = len(self._ids) - self._shown
        del self._ids[: self._shown]
        self._keep(tokenizer, last, always=True)
        return new

    def _keep(self, tokenizer: Decodes, shown: int, always: bool = False) -> None:
        text = tokenizer.decode(self._ids, self._skips)
        if always or not text.endswith("\ufffd"):
            self._text, self._shown = text, shown

    def __copy__(self) -> DecodeStream:
        new = type(self)(self._ids, self._skips)
        new._text, new._shown = self._text, self._shown
        return new


def __getattr__(name: str) -> NoReturn:
    if name in DECODERS:
        refuse(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
