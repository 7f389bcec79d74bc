"""Special tokens: which ones there are, and which of them a text may, or must not, hold.

They are the CONTROL pieces of the model (`<s>`, `[INST]`) and the tokens that a user added. A text that
spells one out is plain text unless the caller allows it, because texts may come from strangers, and only
programs should control a model. How special tokens are encoded and decoded is in `special_text`.

A file of transformers or tokenizers can also have added tokens that are not special: words, or marks such as
`<tool_call>`. Here they are called *plain*. They control nothing, so every text that spells one out yields
it, as in those libraries, and decoding never leaves it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from operator import index
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ModelError
from cpbpe.lazy import Kept, kept
from cpbpe.model.piece_type import PLAIN, PieceType
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.options import AllowedSpecial, DisallowedSpecial
from cpbpe.tokenizer.special_finder import SpecialFinder, renamed

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.tokenizer.special import Special

MAX_TOKEN_BYTES = 256
"""The longest that an added token can be."""
MAX_TOKENS = 1 << 20
"""How many tokens can be added, and how far above those of the pieces their ids can be."""


class SpecialTokens:
    """The special tokens of one tokenizer."""

    def __init__(self, engine: Engine, added: Mapping[str, int], flags: Mapping[str, tuple[str, ...]]):
        """`flags` are those of `Carried.tokens`."""
        self._engine = engine
        self._finders: Kept[object, SpecialFinder] = Kept()
        self.added = dict(added)
        """The ids of added tokens, by their texts."""
        self.flags = dict(flags)
        """The flags of tokens that are not just special."""
        self.texts = {id: text for text, id in self.added.items()}
        """The texts of added tokens, by their ids."""
        self.size = max(self.texts, default=engine.size - 1) + 1
        """The highest id plus one."""

    @kept
    def plain(self) -> dict[str, int]:
        """The ids of the tokens that are not special, and that every text is searched for."""
        return {text: id for text, id in self._flagged.items() if PLAIN in self.flags[text]}

    @kept
    def _flagged(self) -> dict[str, int]:
        ids = {text: self.added.get(text, self._engine.find(text.encode())) for text in self.flags}
        return {text: id for text, id in ids.items() if id is not None}

    @kept
    def ids(self) -> dict[str, int]:
        """Those that are special, except CONTROL pieces that are not UTF-8, which no text can spell."""
        ids: dict[str, int] = {}
        for id in range(self._engine.size):
            if self._engine.kind(id) == PieceType.CONTROL:
                piece = self._engine.piece(id)
                if text_of(piece).encode() == piece:
                    ids[piece.decode()] = id
        ids.update(self.added, **self._flagged)
        return {text: id for text, id in ids.items() if text not in self.plain}

    @kept
    def shown(self) -> dict[int, str]:
        """The texts of all tokens by their ids."""
        return {id: text for text, id in {**self.plain, **self.ids}.items()}

    def shown_and_hidden(self, skip: bool | None) -> tuple[dict[int, str], dict[int, str]]:
        """The tokens that decoding shows by their texts, and those that it leaves out.

        `skip` is the option `skip_special_tokens`. The engine decodes the rest; it leaves out CONTROL pieces.
        """
        if not self.flags:
            return (self.shown, {}) if skip is False else ({}, self.texts) if skip else (self.texts, {})
        special = {text: id for text, id in self.ids.items() if text in self.added or text in self.flags}
        if skip is False:
            return self._by_text(self.ids, self.plain), {}
        if not skip:
            return self._by_text(special, self.plain), {}
        # tokenizers does not know those as special ones that its normalizer gives another name.
        renamed = {text: id for text, id in special.items() if text in self._names}
        hidden = {id: text for text, id in self.ids.items() if text not in self._names}
        return self._by_text(self.plain, renamed), hidden

    @kept
    def _names(self) -> dict[str, str]:
        """What tokens are decoded to, where that is not their text."""
        return renamed(self._engine, self.flags)

    @kept
    def shown_by_default(self) -> dict[int, str]:
        """Those that decoding shows if it is told nothing else."""
        return self.shown_and_hidden(None)[0]

    def _by_text(self, *tokens: Mapping[str, int]) -> dict[int, str]:
        """The texts of tokens, except for those that are pieces with a text that the engine decodes."""
        engine = self._engine
        rows = [row for some in tokens for row in some.items()]
        names = self._names
        return {
            id: names.get(text, text)
            for text, id in rows
            if id >= engine.size or engine.kind(id) == PieceType.CONTROL or text in names
        }

    def find(self, token: bytes) -> int | None:
        """The id of an added token. Bytes that are not UTF-8 are never one, whatever they are read as."""
        text = text_of(token)
        return self.added.get(text) if text.encode() == token else None

    def id_of(self, special: Special) -> int:
        """The id of a special token."""
        id = self.ids.get(special.text, self.plain.get(special.text))
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
        if not key[0] and not key[1] and not (self.flags and self.plain):
            return None
        made = self._finders.get(key)
        if made is None:
            all_ids = {**self.ids, **self.plain}
            allowed_ids = self.ids if key[0] == "all" else {text: all_ids[text] for text in key[0]}
            refused = self.ids if key[1] == "raise" else key[1]
            keys: dict[str, int | None] = {**self.plain, **dict.fromkeys(refused), **allowed_ids}
            if key[1] != "raise":
                if key[0] == "all":  # all but these
                    keys.update(dict.fromkeys(refused))
                elif both := set(key[0]) & set(key[1]):
                    raise ValueError(
                        f"{min(both)!r} is in allowed_special and in disallowed_special; choose one"
                    )
            made = SpecialFinder(self._engine, keys, self.flags)
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
            if text not in self.ids and text not in self.plain:
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


def check_added(
    engine: Engine, added: list[tuple[bytes, int]], flags: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """The tokens that a model file says were added to it. One with flags may have the text of a piece.

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
        reason = "is not UTF-8" if name.encode() != text else _wrong(engine, name, id, name in flags)
        if reason is None and (name in checked or id in ids):
            reason = "occurs twice" if name in checked else f"has the id {id}, and so has another one"
        if reason is not None:
            raise ModelError(f"the file's added token {name!r} {reason}", piece=text, id=id)
        checked[name] = id
        ids.add(id)
    return checked


def _wrong(engine: Engine, text: object, id: int, may_be_piece: bool = False) -> str | None:
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
    if piece is not None and not may_be_piece:
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
