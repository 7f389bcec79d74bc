"""Special tokens: which there are, and where a text holds those that it may, or must not, hold.

They are the CONTROL pieces of the model (`<s>`, `[INST]`) and tokens that a user added. A text that spells
one out is ordinary text, unless the caller allows it: text comes from strangers, and control from programs.
What is done with them when encoding and decoding is the business of `cpbpe.tokenizer.special_text`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from operator import index
from typing import Any, Literal

from cpbpe.engine.choice import Engine, Splitter, make_finder
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import text_of

Allowed = Collection[str] | Literal["all"]
Disallowed = Collection[str] | Literal["raise"]

MAX_CHOICES = 32
"""So many choices of allowed and disallowed tokens are kept ready."""
MAX_TOKEN_BYTES = 256
"""No added token is longer."""
MAX_TOKENS = 1 << 20
"""More tokens than this cannot be added, nor ids this far behind the pieces be given."""


@dataclass(frozen=True)
class Special:
    """A special token as a part of what is encoded, whatever the texts around it hold.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> tok.encode([cpbpe.Special("<s>"), "Hi </s>", 13])
    [1, 15359, 1867, 28713, 28767, 13]
    """

    text: str
    """The text of the token, as `Tokenizer.special_tokens` has it."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a Special is a str, not {type(self.text).__name__}")


class SpecialTokens:
    """The special tokens of one tokenizer."""

    def __init__(self, engine: Engine, added: Mapping[str, int]):
        self._engine = engine
        self._scanners: dict[object, Scanner] = {}
        self.encoders: dict[object, Any] = {}
        """What `Tokenizer` made of a choice."""
        self.tables: dict[object, Any] = {}
        """What `cpbpe.tokenizer.facts` made of the model."""
        self.added = dict(added)
        self.texts = {id: text for text, id in self.added.items()}
        self.size = max(self.texts, default=engine.size - 1) + 1

    @kept
    def ids(self) -> dict[str, int]:
        """All of them. A CONTROL piece that is not UTF-8 has no name that text could have."""
        found: dict[str, int] = {}
        for id in range(self._engine.size):
            if self._engine.kind(id) == PieceType.CONTROL:
                piece = self._engine.piece(id)
                if text_of(piece).encode() == piece:
                    found[piece.decode()] = id
        return {**found, **self.added}

    @kept
    def hidden(self) -> frozenset[int]:
        """The ids of added tokens."""
        return frozenset(self.texts)

    @kept
    def shown(self) -> dict[int, str]:
        """The text of each id."""
        return {id: text for text, id in self.ids.items()}

    def id_of(self, special: Special) -> int:
        """The id of a special token."""
        id = self.ids.get(special.text)
        if id is None:
            raise ValueError(
                f"{special!r} is no special token of this tokenizer; {self._way_out(special.text)}"
            )
        return id

    def scanner(self, allowed: Allowed, disallowed: Disallowed) -> Scanner | None:
        """What finds tokens in text, made when a choice is first met; None if there is nothing to find."""
        if not allowed and not disallowed:
            return None
        key = (
            allowed if allowed == "all" else self._checked(allowed, "allowed_special", "all"),
            disallowed if disallowed == "raise" else self._checked(disallowed, "disallowed_special", "raise"),
        )
        found = self._scanners.get(key)
        if found is None:
            allowed_ids = self.ids if key[0] == "all" else {text: self.ids[text] for text in key[0]}
            refused = self.ids if key[1] == "raise" else key[1]
            words: dict[str, int | None] = {**dict.fromkeys(refused), **allowed_ids}
            if key[1] != "raise":
                if key[0] == "all":  # all but these
                    words.update(dict.fromkeys(refused))
                elif both := set(key[0]) & set(key[1]):
                    raise ValueError(
                        f"{min(both)!r} is in allowed_special and in disallowed_special; choose one"
                    )
            found = Scanner(words, make_finder(self._engine, list(words)))
            if len(self._scanners) >= MAX_CHOICES:
                del self._scanners[next(iter(self._scanners))]
            self._scanners[key] = found
        return found

    def _checked(self, given: Collection[str], option: str, word: str) -> frozenset[str]:
        if isinstance(given, (str, bytes)) or not isinstance(given, Collection) or hasattr(given, "dtype"):
            raise ValueError(f"{option} is {word!r} or a set of special tokens, not {given!r}")
        for text in given:
            if not isinstance(text, str):
                raise TypeError(f"{option} holds str, not {type(text).__name__}")
            if text not in self.ids:
                raise ValueError(
                    f"{option}: {text!r} is no special token of this tokenizer; {self._way_out(text)}"
                )
        return frozenset(given)

    def _way_out(self, text: str) -> str:
        id = self._engine.find(text.encode(errors="surrogatepass"))
        if id is not None:
            kind = PieceType(self._engine.kind(id)).name
            return f"it is piece {id}, of type {kind}, and only CONTROL pieces and added tokens are special"
        return "Tokenizer.special_tokens lists those there are, and with_special_tokens() adds to them"


class Scanner:
    """Finds some special tokens in text: the longest one at a place, from left to right."""

    def __init__(self, words: Mapping[str, int | None], finder: Splitter):
        self._words = list(words.items())
        self._finder = finder
        self._texts = {id: text for text, id in self._words}

    def has(self, id: int) -> bool:
        """Whether a token may be found."""
        return id in self._texts

    def text_of(self, id: int) -> bytes:
        """The text of a token that may be found."""
        return self._texts[id].encode()

    def split(self, text: str | bytes) -> list[str | bytes | int] | None:
        """The parts of a text: stretches of it, which may be empty, with ids between them; None without ids.

        ValueError if one of the tokens is not allowed.
        """
        found = self._finder.split(text)
        if found is None:
            return None
        position = 0
        for i in range(1, len(found), 2):
            word, id = self._words[found[i]]
            position += len(found[i - 1])
            if id is None:
                raise ValueError(
                    f"the text holds the special token {word!r} at position {position}. To make it a token, "
                    f"pass allowed_special={{{word!r}}}; to encode it as ordinary text, do not name it in "
                    f'disallowed_special, which "raise" does'
                )
            position += len(word if isinstance(text, str) else word.encode())
            found[i] = id
        return found


# --- Adding tokens --------------------------------------------------------------------------------


def checked_tokens(
    engine: Engine, special: SpecialTokens, tokens: Mapping[str, int] | Iterable[str]
) -> dict[str, int]:
    """New tokens with their ids, or an error that says what is wrong with one."""
    if isinstance(tokens, (str, bytes, set, frozenset)) or not isinstance(tokens, Iterable):
        hint = (
            ": without an order their ids would be others each time"
            if isinstance(tokens, (set, frozenset))
            else ""
        )
        raise TypeError(
            f"tokens are a list of str, or a dict from str to id, not {type(tokens).__name__}{hint}"
        )
    given: Iterable[tuple[Any, Any]] = (
        tokens.items() if isinstance(tokens, Mapping) else zip(tokens, count(special.size), strict=False)
    )
    new: dict[str, int] = {}
    texts: dict[int, str] = {}
    for text, id in given:
        try:
            new_id = index(id)
        except TypeError:
            raise TypeError(f"the id of {text!r} is an integer, not {type(id).__name__}") from None
        reason = _wrong(engine, text, new_id)
        if text in new or text in special.added:
            reason = f"has the id {special.added.get(text, new.get(text))} already; leave it out"
        if reason is None and (new_id in special.texts or new_id in texts):
            taken = special.texts.get(new_id, texts.get(new_id))
            free = max([special.size - 1, *texts]) + 1
            reason = f"cannot have the id {new_id}, which is that of {taken!r}; {free} is free"
        if reason is not None:
            raise ValueError(f"special token {text!r} {reason}")
        new[text] = new_id
        texts[new_id] = text
    return new


def check_added(engine: Engine, added: list[tuple[bytes, int]]) -> dict[str, int]:
    """The tokens that a model file says were added to it."""
    found: dict[str, int] = {}
    ids: set[int] = set()
    for text, id in added:
        name = text_of(text)
        reason = "is not UTF-8" if name.encode() != text else _wrong(engine, name, id)
        if reason is None and (name in found or id in ids):
            reason = "is there twice" if name in found else f"has the id {id}, and so has another one"
        if reason is not None:
            raise ModelError(f"the file's added token {name!r} {reason}", piece=text, id=id)
        found[name] = id
        ids.add(id)
    return found


def _wrong(engine: Engine, text: object, id: int) -> str | None:
    if not isinstance(text, str):
        raise TypeError(f"a special token is a str, not {type(text).__name__}")
    if not text:
        return "is empty"
    if len(text.encode(errors="surrogatepass")) > MAX_TOKEN_BYTES:
        return f"is longer than {MAX_TOKEN_BYTES} bytes, and every place of a text would be compared with it"
    try:
        piece = engine.find(text.encode())
    except UnicodeEncodeError:
        return "holds a lone surrogate, which no text can hold"
    if piece is not None:
        kind = PieceType(engine.kind(piece)).name
        return f"is piece {piece} of the model already, of type {kind}; {_HINTS.get(kind, _HINT)}"
    if not engine.size <= id < engine.size + MAX_TOKENS:
        return (
            f"cannot have the id {id}: ids of the model's pieces are 0 to {engine.size - 1}, and added "
            f"ones go on from {engine.size} (at most {MAX_TOKENS} of them)"
        )
    return None


_HINT = "choose another text"
_HINTS = {
    "CONTROL": "it need not be added: allowed_special and Special know it",
    "USER_DEFINED": "text yields it without being asked",
}
