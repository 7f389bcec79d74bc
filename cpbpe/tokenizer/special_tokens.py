"""Special tokens: which there are, which of them a text may or must not hold, and where they are in a text.

They are the CONTROL pieces of the model (`<s>`, `[INST]`) and the tokens that a user added. A text that
spells one out is plain text unless the caller allows it, because texts may come from strangers, and only
programs should control a model. How special tokens are encoded and decoded is in `special_text`.

A file of transformers or tokenizers can also have added tokens that are not special: words, or marks such as
`<tool_call>`. Here they are called *plain*. They control nothing, so every text that spells one out yields
it, as in those libraries, and decoding never leaves it out.

If several tokens begin at the same place, the longest is found, and the search goes on after it. For most
tokens, this is the only rule. But the files of these libraries can also give tokens *flags*
(`Carried.tokens`), with the meaning that they have there:

- `lstrip`, `rstrip`: the token takes the whitespace in front of it, or after it.
- `single_word`: it is found only where no letter, digit or mark is next to it.
- `late`: it is looked for only after the tokens without this flag, in the text between those.
- `normalized`: like `late`, but it is looked for in the normalized text. If the normalizer puts a dummy
  prefix in front of every text, as in Llama's older files, then the prefix belongs to the token.
"""

# (This file does not import annotations from __future__. With that, NamedTuple compiles its annotations, and
# the first compilation takes a tenth of the time of loading a model.)

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.engine.choice import make_finder
from cpbpe.errors import ModelError
from cpbpe.lazy import Kept, importing, kept
from cpbpe.model.piece_type import PLAIN, PieceType
from cpbpe.text.finder import may_overlap
from cpbpe.text.utf8 import SPACE, is_inside, text_of
from cpbpe.tokenizer.options import AllowedSpecial, DisallowedSpecial

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine, Finder, Text

MAX_TOKEN_BYTES = 256
"""The most bytes that an added token can have."""
MAX_TOKENS = 1 << 20
"""How many tokens can be added, and how far above those of the pieces their ids can be."""
SPACES = frozenset(
    map(chr, (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F))
) | {"\u205f", "\u3000"}
"""Unicode's whitespace. U+001C to U+001F do not belong to it, although Python strips them."""
_OTHER_LETTERS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Letters in circles and squares, which Unicode calls alphabetic, although they are symbols."""
_NO_FLAGS: Collection[str] = ()
_CHOICES: dict[str | None, str] = {
    **dict.fromkeys((None, "", "none"), "; for none leave it out, or give ()"),
    **dict.fromkeys(
        ("raise", "none_raise"), "; disallowed_special='raise' raises for all that are not allowed"
    ),
    "all": "; all that are not allowed is 'raise'",
}
"""What tiktoken, minbpe and others write for these choices of special tokens, and how it is said here."""


class SpecialTokens:
    """The special tokens of one tokenizer."""

    def __init__(self, engine: "Engine", added: Mapping[str, int], flags: Mapping[str, tuple[str, ...]]):
        """`flags` are those of `Carried.tokens`."""
        self._engine = engine
        self._finders: Kept[object, SpecialFinder] = Kept()
        self.added = dict(added)
        """The ids of added tokens, by their texts."""
        self.flags = dict(flags)
        """The flags of the tokens that are not ordinary special tokens."""
        self.texts = {id: text for text, id in self.added.items()}
        """The texts of added tokens, by their ids."""
        self.size = max(self.texts, default=engine.size - 1) + 1
        """The highest id plus one."""

    @kept
    def plain(self) -> dict[str, int]:
        """The ids of the tokens that are not special. Every text is searched for them."""
        return {text: id for text, id in self._flagged.items() if PLAIN in self.flags[text]}

    @kept
    def _flagged(self) -> dict[str, int]:
        ids = {text: self.added.get(text, self._engine.find(text.encode())) for text in self.flags}
        return {text: id for text, id in ids.items() if id is not None}

    @kept
    def ids(self) -> dict[str, int]:
        """The ids of special tokens, except CONTROL pieces that are not UTF-8, which no text can spell."""
        ids: dict[str, int] = {}
        for id in range(self._engine.size):
            if self._engine.kind(id) == PieceType.CONTROL:
                piece = self._engine.piece(id)
                if text_of(piece).encode() == piece:
                    ids[piece.decode()] = id
        ids.update(self.added, **self._flagged)
        return {text: id for text, id in ids.items() if text not in self.plain}

    @kept
    def all_texts(self) -> dict[int, str]:
        """The texts of all tokens, plain ones included, by their ids."""
        return {id: text for text, id in {**self.plain, **self.ids}.items()}

    def shown_and_hidden(self, skip: bool | None) -> tuple[dict[int, str], dict[int, str]]:
        """The tokens that decoding shows by their texts, and those that it leaves out.

        `skip` is the option `skip_special_tokens`: None shows added tokens and tokens with flags, but no
        other CONTROL pieces. The engine decodes the rest; it leaves out CONTROL pieces.
        """
        if not self.flags:
            return (self.all_texts, {}) if skip is False else ({}, self.texts) if skip else (self.texts, {})
        special = {text: id for text, id in self.ids.items() if text in self.added or text in self.flags}
        if skip is False:
            return self._texts_by_id(self.ids, self.plain), {}
        if not skip:
            return self._texts_by_id(special, self.plain), {}
        # tokenizers does not skip a special token if its normalizer rewrites the text of that token.
        renamed = {text: id for text, id in special.items() if text in self._names}
        hidden = {id: text for text, id in self.ids.items() if text not in self._names}
        return self._texts_by_id(self.plain, renamed), hidden

    @kept
    def _names(self) -> dict[str, str]:
        """The tokens that are not decoded to their own text, and what they are decoded to."""
        return renamed(self._engine, self.flags)

    def _texts_by_id(self, *tokens: Mapping[str, int]) -> dict[int, str]:
        """The texts of tokens by their ids, except for pieces that the engine decodes to this text anyway."""
        engine = self._engine
        rows = [row for some in tokens for row in some.items()]
        names = self._names
        return {
            id: names.get(text, text)
            for text, id in rows
            if id >= engine.size or engine.kind(id) == PieceType.CONTROL or text in names
        }

    def id_of(self, text: str) -> int:
        """The id of a special token."""
        id = self.ids.get(text, self.plain.get(text))
        if id is None:
            raise ValueError(
                f"Special({text=}) is not a special token of this tokenizer; {self._way_out(text)}"
            )
        return id

    def finder(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> "SpecialFinder | None":
        """The finder for a choice of tokens, which is kept for later calls; None if no token is chosen."""
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
                if key[0] == "all":  # all except the refused ones
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
            hint = f"; put it into a set: {{{given!r}}}" if isinstance(given, str) else ""
            if given is None or isinstance(given, str):
                hint = _CHOICES.get(given, hint)
            raise ValueError(f"{option} must be {every!r} or a set of special tokens, not {given!r}{hint}")
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


def special_ids(engine: "Engine", added: Mapping[str, int]) -> list[int | None]:
    """The ids of unk, bos, eos and pad.

    Engines know only pieces. In a byte-level model the last three may also be added tokens, because its
    special tokens often have ids above a gap. In other models they may not: sentencepiece does not allow it.
    """
    ids = engine.specials
    if not added or engine.head["byte_level"] is None or None not in ids[1:]:
        return ids
    names = map(text_of, engine.head["special_pieces"])
    found = [added.get(name) if id is None else id for id, name in zip(ids, names, strict=True)]
    return [ids[0], *found[1:]]


# --- Where a text holds them ----------------------------------------------------------------------


class FoundToken(NamedTuple):
    """A token in a text."""

    id: int
    """Its id."""
    taken: str | bytes
    """The part of the text that it stands for, which may have spaces around the token."""
    bares_next: bool = False
    """Whether the text after it gets no dummy prefix, because it was normalized together with the token."""
    bares_previous: bool = False
    """Whether the text before it gets no dummy prefix, because the token has taken that as its own space."""


Row = list["str | bytes | FoundToken"]
"""A text in segments, which may be empty, with tokens between them; it begins and ends with a segment."""


def engine_at(row: Row, position: int, first: "Engine", later: "Engine") -> "Engine":
    """The engine for the segment at a position of a row: `later` if it comes after a token."""
    engine = later if position else first
    before, after = (row[at] if 0 <= at < len(row) else None for at in (position - 1, position + 1))
    is_bare = (isinstance(before, FoundToken) and before.bares_next) or (
        isinstance(after, FoundToken) and after.bares_previous
    )
    return engine.variant(prefix=False) if is_bare else engine


class SpecialFinder:
    """Finds some special tokens in text."""

    def __init__(
        self,
        engine: "Engine",
        keys: Mapping[str, int | None],
        flags: Mapping[str, Collection[str]] | None = None,
    ):
        """`keys` holds the id of each token, or None for one that the text must not hold."""
        self._engine = engine
        self._keys = dict(keys)
        self._flags = {text: flags[text] for text in keys if flags.get(text)} if flags else {}
        self.texts = {id: text for text, id in keys.items() if id is not None}
        """The texts of the tokens that may be found, by their ids."""

    @kept
    def _searches(self) -> "list[_Search]":
        """The searches to make, one after another."""
        early: list[str] = []
        late: list[str] = []
        normalized: list[str] = []
        for text in self._keys:
            flags = self._flags.get(text, _NO_FLAGS)
            (normalized if "normalized" in flags else late if "late" in flags else early).append(text)
        if late and not may_overlap(late, early) and not self._order_matters(early, late):
            # Neither kind affects where the other is found, so one search finds them all.
            early, late = early + late, []
        searches = [_Search(self._engine, early, self._flags)] if early else []
        if late:
            searches.append(_Search(self._engine, late, self._flags))
        if normalized:
            searches.append(_NormalizedSearch(self._engine, normalized, self._flags))
        return searches

    def _order_matters(self, early: list[str], late: list[str]) -> bool:
        """Whether it matters that late tokens are looked for only between the early ones.

        It may in three cases: an early token takes whitespace, and a late one contains some; a late token
        must be a word of its own, and an early one may be next to it; or an early token that must be a word
        of its own is found and then not taken, so that a late one that overlaps it can be.
        """
        flags = {flag for text in early for flag in self._flags.get(text, _NO_FLAGS)}
        strips = not flags.isdisjoint({"lstrip", "rstrip"}) and any(not SPACES.isdisjoint(t) for t in late)
        words = [text for text in (*early, *late) if "single_word" in self._flags.get(text, _NO_FLAGS)]
        return strips or not {*words}.isdisjoint(late) or may_overlap(words, late)

    @kept
    def odd(self) -> str | None:
        """A token whose flags matter, so that finding its text is not enough; None if there is none."""
        searches = self._searches
        if len(searches) > 1 or any(type(search) is not _Search for search in searches):
            return searches[-1].texts[0]
        return next((text for search in searches for text in search.texts if search.flags_of(text)), None)

    @kept
    def ids(self) -> dict[bytes, int | None]:
        """The keys as bytes, for code that has a search of its own."""
        return {text.encode(): id for text, id in self._keys.items()}

    @kept
    def allowed(self) -> "SpecialFinder":
        """The finder of the allowed tokens alone, for a text that was already searched for refused ones."""
        return SpecialFinder(
            self._engine, {text: id for text, id in self._keys.items() if id is not None}, self._flags
        )

    @kept
    def _simple(self) -> "tuple[Finder, list[FoundToken | None], list[FoundToken | None]]":
        """The finder of all keys, and the token of each key in a str and in bytes; None for a refused one."""
        keys = [(text, id, text.encode()) for text, id in self._keys.items()]
        return (
            make_finder([data for _, _, data in keys]),
            [None if id is None else FoundToken(id, text) for text, id, _ in keys],
            [None if id is None else FoundToken(id, data) for _, id, data in keys],
        )

    def split(self, text: "Text", first: "Engine", later: "Engine") -> Row | None:
        """The text in segments and tokens; None if there are no tokens.

        The engines are those that will encode the segments. Their normalizers are needed for tokens that are
        looked for in normalized text. Raise a ValueError if the text holds a token that is refused.
        """
        if self.odd is not None:
            return self._split(text, first, later)
        finder, in_str, in_bytes = self._simple
        parts = finder.split(text)
        if parts is None:
            return None
        tokens = in_str if isinstance(text, str) else in_bytes
        for i in range(1, len(parts), 2):
            token = tokens[parts[i]]
            if token is None:
                before = (part.taken if isinstance(part, FoundToken) else part for part in parts[:i])
                raise not_allowed([*self._keys][parts[i]], sum(map(len, before)))
            parts[i] = token
        return parts

    def _split(self, text: "Text", first: "Engine", later: "Engine") -> Row | None:
        """The same for tokens with flags: each search looks between the tokens that earlier ones found."""
        is_str = isinstance(text, str)
        row: Row = [text.encode() if isinstance(text, str) else text]
        for search in self._searches:
            new: Row = []
            at = 0
            for position, part in enumerate(row):
                if isinstance(part, FoundToken):
                    new.append(part)
                    at += len(part.taken)
                    continue
                assert isinstance(part, bytes)
                done = 0
                engine = engine_at(row, position, first, later)
                for name, begin, end, bares_previous in search.find(part, engine):
                    id = self._keys[name]
                    if id is None:
                        before = b"".join(map(as_bytes, row))[: at + begin]
                        raise not_allowed(name, len(before.decode()) if is_str else len(before))
                    new.append(part[done:begin])
                    new.append(FoundToken(id, part[begin:end], search.leaves_bare, bares_previous))
                    done = end
                new.append(part[done:])
                at += len(part)
            row = new
        if len(row) == 1:
            return None
        if not is_str:
            return row
        texts = (as_bytes(part).decode() for part in row)
        return [
            part._replace(taken=text) if isinstance(part, FoundToken) else text
            for part, text in zip(row, texts, strict=True)
        ]


def as_bytes(part: str | bytes | FoundToken) -> bytes:
    """The part of a text that a part of a row stands for."""
    text = part.taken if isinstance(part, FoundToken) else part
    return text.encode() if isinstance(text, str) else text


class _Search:
    """A search for several tokens at the same time."""

    leaves_bare = False
    """Whether no dummy prefix is put in front of what follows a token."""

    def __init__(self, engine: "Engine", texts: list[str], flags: Mapping[str, Collection[str]]):
        self.texts = texts
        self._flags = flags
        self._engine = engine

    def flags_of(self, text: str) -> set[str]:
        """The flags of a token that matter in this search."""
        return {"lstrip", "rstrip", "single_word"} & {*self._flags.get(text, _NO_FLAGS)}

    @kept
    def _finder(self) -> "Finder":
        return make_finder([text.encode() for text in self.texts])

    def find(self, data: bytes, engine: "Engine") -> Iterator[tuple[str, int, int, bool]]:
        """Yield the tokens in a segment, each with its begin and end, including the spaces that it takes.

        The last value is `FoundToken.bares_previous`.
        """
        parts = self._finder.split(data) or [data]
        at = free = 0  # where the last key ends; where the last token ends, with its spaces
        # The last token is not yielded yet, because the next one may begin within its spaces.
        last: tuple[str, int, int] | None = None
        for before, number in zip(parts[::2], parts[1::2], strict=False):
            begin = at + len(before)
            text = self.texts[number]
            at = end = begin + len(text.encode())
            flags = self._flags.get(text, _NO_FLAGS)
            if "single_word" in flags and any(map(is_of_word, _before(data, begin) + _after(data, end))):
                continue
            if "rstrip" in flags:
                while (space := _after(data, end)) in SPACES:
                    end += len(space.encode())
            if "lstrip" in flags:
                begin = max(begin, free)
                while begin > free and (space := _before(data, begin)) in SPACES:
                    begin -= len(space.encode())
                if begin >= end:  # it consists of spaces that the token before it has taken
                    continue
            if last is not None:
                name, first, stop = last
                yield name, first, max(first, min(stop, begin)), False
            last = text, begin, end
            free = end
        if last is not None:
            yield (*last, False)


def prefix_is_a_rule(engine: "Engine") -> bool:
    """Whether the normalizer puts the dummy prefix in front of texts.

    If not, a pre-tokenizer of tokenizers does it later, and puts no prefix in front of a space.
    """
    rules = engine.head["normalizer"]
    return rules["add_dummy_prefix"] and rules["prefix_before_space"]


def renamed(engine: "Engine", flags: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The `normalized` tokens that are not decoded to their own text, and what they are decoded to."""
    names = _normalized_names(engine, [text for text, own in flags.items() if "normalized" in own])
    return {text: name.replace("\u2581", " ") for text, name in names.items() if name != text}


def _normalized_names(engine: "Engine", texts: Collection[str]) -> dict[str, str]:
    """The normalized texts of `normalized` tokens; `engine` is that of the model, not a variant of it."""
    if not texts:
        return {}
    own = engine if prefix_is_a_rule(engine) else engine.variant(prefix=False)
    return {text: own.normalize(text.encode()).decode(errors="replace") for text in texts}


class _NormalizedSearch(_Search):
    """A search for tokens in normalized text."""

    def __init__(self, engine: "Engine", texts: list[str], flags: Mapping[str, Collection[str]]):
        super().__init__(engine, texts, flags)
        self.leaves_bare = prefix_is_a_rule(engine)
        keys: dict[str, str] = {}
        for text, name in _normalized_names(engine, texts).items():
            keys.setdefault(name, text)
        keys.pop("", None)
        self._spelled = _Search(engine, list(keys), {key: flags[text] for key, text in keys.items()})
        self._names = keys

    def find(self, data: bytes, engine: "Engine") -> Iterator[tuple[str, int, int, bool]]:
        if not data:
            return
        own = engine if self.leaves_bare else engine.variant(prefix=False)
        normalized, origins = own.origins(data)
        for key, begin, end, _ in self._spelled.find(normalized, engine):
            # A normalized token begins with a space, the dummy prefix. In the text " <s>", normalized to
            # "▁▁<s>", the token "▁<s>" is found at the second ▁. But as in tokenizers, it takes the dummy
            # prefix of the text for its own ▁, and the text's own space becomes a segment in front of it.
            bares_previous = self.leaves_bare and bool(begin) and not origins[begin]
            at = origins[begin + len(SPACE)] if bares_previous else _place(data, normalized, origins, begin)
            yield self._names[key], at, _place(data, normalized, origins, end), bares_previous


def _place(data: bytes, normalized: bytes, origins: list[int], at: int) -> int:
    """Return the place in a text that a place in its normalized text came from.

    All bytes of a user-defined piece have the origin of the first one. Within such a piece, which is copied
    unchanged, the bytes from its beginning are counted.
    """
    origin, size = origins[at], 0
    while size < at and origins[at - size - 1] == origin:
        size += 1
    return origin + size if normalized[at - size : at] == data[origin : origin + size] else origin


def _before(data: bytes, at: int) -> str:
    """The character before a place; nothing at the beginning."""
    start = at - 1
    while is_inside(data, start):
        start -= 1
    return data[start:at].decode(errors="replace") if at else ""


def _after(data: bytes, at: int) -> str:
    """The character at a place; nothing at the end."""
    stop = at + 1
    while is_inside(data, stop):
        stop += 1
    return data[at:stop].decode(errors="replace")


def is_of_word(character: str) -> bool:
    r"""Whether a character matches \w in the regular expressions of tokenizers, which also matches marks."""
    with importing:
        import unicodedata
    category = unicodedata.category(character)
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
        return True
    code = ord(character)
    return code in (0x200C, 0x200D) or any(first <= code <= last for first, last in _OTHER_LETTERS)


def not_allowed(token: str, position: int) -> ValueError:
    """The error for a text that holds a token that is not allowed."""
    return ValueError(
        f"the text holds the special token {token!r} at position {position}. To make it a token, "
        f"pass allowed_special={{{token!r}}}; to encode it as ordinary text, leave it out of "
        f'disallowed_special ("raise" names every token that is not allowed)'
    )


# --- Adding tokens --------------------------------------------------------------------------------


def checked_tokens(
    engine: "Engine", special: SpecialTokens, tokens: Mapping[str, int] | Iterable[str]
) -> dict[str, int]:
    """New tokens with their ids. Raise an error that says why if one of them cannot be added."""
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
    engine: "Engine", added: list[tuple[bytes, int]], flags: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """The tokens that a model file says were added to it. One with flags may have the text of a piece.

    If one of them is invalid, this is an error, although sentencepiece, which does not know the field, loads
    the file: a tokenizer that lacks one of its tokens would be worse than none.
    """
    checked: dict[str, int] = {}
    ids: set[int] = set()
    for text, id in added:
        name = text_of(text)
        if not text:  # it is also empty if it could not be read
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


def _wrong(engine: "Engine", text: object, id: int, may_be_piece: bool = False) -> str | None:
    """Why a token cannot be added, as the end of a message; None if it can."""
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
