"""Decoding as the decoder of a file does it; and `DecodeStream`, of the module `tokenizers.decoders`.

For the ids of a text, the engine does the same at once. But ids that no text has are decoded step by step:
bytes that are not UTF-8 together become one U+FFFD each, and a space at the beginning is dropped whatever
stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from cpbpe.checks import threads_for
from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.added import AddedTokens
from cpbpe.compat.tokenizers.texts import python_pattern
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
        made = self._make_steps()
        if made is None:
            return [_spaced]
        return [_step(step) for step in (made["decoders"] if made["type"] == "Sequence" else [made])]

    @kept
    def _by_engine(self) -> tuple[frozenset[int], frozenset[int]]:
        """The ids that the engine decodes as the steps do, and those of bytes, for which it does mostly."""
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
        # 1. What is left out needs no decoding.
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
                text = self._slowly(ids)
            found.append(text)
        return found

    def _slowly(self, ids: Iterable[int]) -> str:
        tokens = [token for id in ids if (token := self._added.name(id)) is not None]
        for step in self._steps:
            tokens = step(tokens)
        return "".join(tokens)


def _spaced(tokens: list[str]) -> list[str]:
    return [" ".join(tokens)]


def _step(step: Any) -> Step:
    kind = step["type"]
    if kind == "Replace":
        pattern, content = step["pattern"], step["content"]
        if "String" in pattern:
            return lambda tokens: [token.replace(pattern["String"], content) for token in tokens]
        compiled = re.compile(python_pattern(pattern["Regex"]))
        return lambda tokens: [compiled.sub(lambda _: content, token) for token in tokens]
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
    """Runs of bytes as text; if one is not UTF-8, each of its bytes is U+FFFD."""
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
    """Tokens of letters, each of which is a byte, as text; one with another character is a text itself."""
    data = [from_letters(token) if is_spelled(token) else token.encode() for token in tokens]
    return [b"".join(data).decode(errors="replace")]


def _stripped(token: str, content: str, start: int, stop: int) -> str:
    """A token without some of the characters at its ends."""
    for _ in range(start):
        if not token.startswith(content):
            break
        token = token[1:]
    for _ in range(stop):
        if not token.endswith(content):
            break
        token = token[:-1]
    return token


def _metaspace(tokens: list[str], step: Any) -> list[str]:
    """Metaspace's decoder: spaces, without the prefix of the first token."""
    mark = step["replacement"]
    drops = (
        step.get("prepend_scheme", "always") != "never" and step.get("add_prefix_space", True) is not False
    )
    spaced = [token.replace(mark, " ") for token in tokens]
    if drops and spaced and tokens[0].startswith(mark):
        spaced[0] = spaced[0][1:]
    return spaced


# --- Text while ids come one by one ---------------------------------------------------------------


__all__ = ["DecodeStream"]


class Decodes(Protocol):
    """What of a `Tokenizer` is needed here."""

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
        """`ids` came before: they have an influence on the text that follows, and are not in it."""
        self._ids = [] if ids is None else list(arguments.ids(ids, "ids"))
        self._skips = arguments.flag(skip_special_tokens, "skip_special_tokens")
        self._text = ""
        self._shown = 0

    def step(self, tokenizer: Decodes, id: int | list[int]) -> str | None:
        """The text that is certain with this id, or these; None if there is none yet."""
        given = arguments.ids(id, "id") if isinstance(id, (list, tuple)) else arguments.ids([id], "id")
        # 1. What came before the first call.
        if not self._text and self._ids:
            self._keep(tokenizer, len(self._ids))
        # 2. The new ids are decoded with those before them that may have an influence.
        self._ids += given
        text = tokenizer.decode(self._ids, self._skips)
        if text.endswith("\ufffd") or len(text.encode()) <= len(self._text.encode()):
            return None
        if not text.startswith(self._text):
            raise ValueError(
                f"the text of the ids so far was {self._text!r}, and with the new ones it is {text!r}: what "
                f"has been returned cannot be taken back"
            )
        # 3. Of these, only the new ones matter from now on.
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
        new: Any = object.__new__(type(self))
        new.__dict__.update({**vars(self), "_ids": list(self._ids)})
        copied: DecodeStream = new
        return copied
