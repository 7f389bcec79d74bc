"""Special tokens: which ones there are, and where a text holds those that it may, or must not, hold.

They are the CONTROL pieces of the model (`<s>`, `[INST]`) and the tokens that a user added. A text that
spells one out is plain text unless the caller allows it, because texts may come from strangers, and only
programs should control a model. How special tokens are encoded and decoded is in `special_text`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from operator import index
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ModelError
from cpbpe.lazy import Kept, kept
from cpbpe.model.piece_type import PieceType
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.options import AllowedSpecial, DisallowedSpecial

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine, Finder
    from cpbpe.tokenizer.special import Special

MAX_TOKEN_BYTES = 256
"""The longest that an added token can be."""
MAX_TOKENS = 1 << 20
"""How many tokens can be added, and how far above those of the pieces their ids can be."""


class SpecialTokens:
    """The special tokens of one tokenizer."""

    def __init__(self, engine: Engine, added: Mapping[str, int]):
        self._engine = engine
        self._finders: Kept[object, SpecialFinder] = Kept()
        self.added = dict(added)
        """The ids of added tokens, by their texts."""
        self.texts = {id: text for text, id in self.added.items()}
        """The texts of added tokens, by their ids."""
        self.size = max(self.texts, default=engine.size - 1) + 1
        """The highest id plus one."""

    @kept
    def ids(self) -> dict[str, int]:
        """All of them, except CONTROL pieces that are not UTF-8, which no text can spell."""
        ids: dict[str, int] = {}
        for id in range(self._engine.size):
            if self._engine.kind(id) == PieceType.CONTROL:
                piece = self._engine.piece(id)
                if text_of(piece).encode() == piece:
                    ids[piece.decode()] = id
        return {**ids, **self.added}

    @kept
    def shown(self) -> dict[int, str]:
        """The text of each id."""
        return {id: text for text, id in self.ids.items()}

    def find(self, token: bytes) -> int | None:
        """The id of an added token. Bytes that are not UTF-8 are never one, whatever they are read as."""
        text = text_of(token)
        return self.added.get(text) if text.encode() == token else None

    def id_of(self, special: Special) -> int:
        """The id of a special token."""
        id = self.ids.get(special.text)
        if id is None:
            raise ValueError(
                f"{special!r} is not a special token of this tokenizer; {self._way_out(special.text)}"
            )
        return id

    def finder(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> SpecialFinder | None:
        """The finder for a choice of tokens, made when that choice first occurs; None if it is empty."""
        key = (
            self._checked(allowed, "allowed_special", "all"),
            self._checked(disallowed, "disallowed_special", "raise"),
        )
        if not key[0] and not key[1]:
            return None
        made = self._finders.get(key)
        if made is None:
            allowed_ids = self.ids if key[0] == "all" else {text: self.ids[text] for text in key[0]}
            refused = self.ids if key[1] == "raise" else key[1]
            keys: dict[str, int | None] = {**dict.fromkeys(refused), **allowed_ids}
            if key[1] != "raise":
                if key[0] == "all":  # all but these
                    keys.update(dict.fromkeys(refused))
                elif both := set(key[0]) & set(key[1]):
                    raise ValueError(
                        f"{min(both)!r} is in allowed_special and in disallowed_special; choose one"
                    )
            made = SpecialFinder(self._engine, keys)
            self._finders.keep(key, made)
        return made

    def _checked(self, given: Collection[str], option: str, every: str) -> frozenset[str] | str:
        if isinstance(given, str) and given == every:
            return every
        if isinstance(given, (str, bytes)) or not isinstance(given, Collection) or hasattr(given, "dtype"):
            single = f"; put it into a set: {{{given!r}}}" if isinstance(given, str) else ""
            raise ValueError(f"{option} must be {every!r} or a set of special tokens, not {given!r}{single}")
        for text in given:
            if not isinstance(text, str):
                raise TypeError(f"{option} must hold str, not {type(text).__name__}")
            if text not in self.ids:
                raise ValueError(
                    f"{option}: {text!r} is not a special token of this tokenizer; {self._way_out(text)}"
                )
        return frozenset(given)

    def _way_out(self, text: str) -> str:
        id = self._engine.find(text.encode(errors="surrogatepass"))
        if id is not None:
            kind = PieceType(self._engine.kind(id)).name
            return f"it is piece {id}, of type {kind}, and only CONTROL pieces and added tokens are special"
        return "tok.vocab.special_tokens lists them, and with_special_tokens() adds to them"


def special_ids(engine: Engine, added: Mapping[str, int]) -> list[int | None]:
    """The ids of unk, bos, eos and pad.

    Engines know pieces. In a byte-level model, whose special tokens often have ids above a gap, the last
    three may be added tokens, too. In other models they are not, because in sentencepiece they cannot be.
    """
    ids = engine.specials
    if not added or engine.byte_level is None or None not in ids[1:]:
        return ids
    names = map(text_of, engine.columns()["special_pieces"])
    found = [added.get(name) if id is None else id for id, name in zip(ids, names, strict=True)]
    return [ids[0], *found[1:]]


class SpecialFinder:
    """Finds some special tokens in text: the longest one at a place, from left to right."""

    def __init__(self, engine: Engine, keys: Mapping[str, int | None]):
        """`keys` holds the id of each token, or None for one that the text must not hold."""
        self._keys = list(keys.items())
        self._engine = engine
        self.texts = {id: text for text, id in self._keys if id is not None}
        """The texts of the tokens that may be found, by their ids."""

    @kept
    def _finder(self) -> Finder:
        return self._engine.finder([text.encode() for text, _ in self._keys])

    @kept
    def ids(self) -> dict[bytes, int | None]:
        """The keys as bytes, for code that looks for them in another way."""
        return {text.encode(): id for text, id in self._keys}

    @kept
    def allowed(self) -> SpecialFinder:
        """The finder for a text in which no token is refused any more."""
        return SpecialFinder(self._engine, {text: id for text, id in self._keys if id is not None})

    def split(self, text: str | bytes) -> list[str | bytes | int] | None:
        """The text as segments, which may be empty, with ids between them; None if there are no ids.

        ValueError if the text holds a token that is refused.
        """
        parts = self._finder.split(text)
        if parts is None:
            return None
        position = 0
        for i in range(1, len(parts), 2):
            key, id = self._keys[parts[i]]
            position += len(parts[i - 1])
            if id is None:
                raise not_allowed(key, position)
            position += len(key if isinstance(text, str) else key.encode())
            parts[i] = id
        return parts


def not_allowed(token: str, position: int) -> ValueError:
    """The error for a text that holds a token which it must not hold."""
    return ValueError(
        f"the text holds the special token {token!r} at position {position}. To make it a token, "
        f"pass allowed_special={{{token!r}}}; to encode it as ordinary text, do not name it in "
        f'disallowed_special, which "raise" does'
    )


# --- Adding tokens --------------------------------------------------------------------------------


def checked_tokens(
    engine: Engine, special: SpecialTokens, tokens: Mapping[str, int] | Iterable[str]
) -> dict[str, int]:
    """New tokens with their ids. Raises an error that says what is wrong with a token."""
    if isinstance(tokens, (str, bytes, set, frozenset)) or not isinstance(tokens, Iterable):
        hint = ""
        if isinstance(tokens, (set, frozenset)):
            hint = ": without an order, they would have different ids each time"
        elif isinstance(tokens, str):
            hint = "; put it into a list: [token]"
        raise TypeError(
            f"tokens must be a list of str, or a dict from str to id, not {type(tokens).__name__}{hint}"
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
            raise TypeError(f"the id of {text!r} must be an integer, not {type(id).__name__}") from None
        reason = _wrong(engine, text, new_id)
        if text in new or text in special.added:
            reason = f"already has the id {special.added.get(text, new.get(text))}; leave it out"
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
    """The tokens that a model file says were added to it.

    What is wrong with them is an error here, although sentencepiece, for which there is no such field, loads
    the file: a tokenizer without a token that it should have would be worse than none.
    """
    checked: dict[str, int] = {}
    ids: set[int] = set()
    for text, id in added:
        name = text_of(text)
        if not text:  # also what cannot be read
            raise ModelError(
                f"the file's added token {len(checked)} (field 41700) is empty or damaged; copy the file "
                f"again, or add the tokens to the original model again",
                piece=text,
                id=id,
            )
        reason = "is not UTF-8" if name.encode() != text else _wrong(engine, name, id)
        if reason is None and (name in checked or id in ids):
            reason = "occurs twice" if name in checked else f"has the id {id}, and so has another one"
        if reason is not None:
            raise ModelError(f"the file's added token {name!r} {reason}", piece=text, id=id)
        checked[name] = id
        ids.add(id)
    return checked


def _wrong(engine: Engine, text: object, id: int) -> str | None:
    if not isinstance(text, str):
        raise TypeError(f"a special token must be a str, not {type(text).__name__}")
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
        return f"is already piece {piece} of the model, of type {kind}; {_HINTS.get(kind, _HINT)}"
    if not engine.size <= id < engine.size + MAX_TOKENS:
        return (
            f"cannot have the id {id}: ids of the model's pieces are 0 to {engine.size - 1}, and added "
            f"ones go on from {engine.size} (at most {MAX_TOKENS} of them)"
        )
    return None


_HINT = "choose another text"
_HINTS = {
    "CONTROL": "it need not be added: allowed_special and Special already know it",
    "USER_DEFINED": "every text yields it, without being asked",
}
