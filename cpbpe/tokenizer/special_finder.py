"""Where a text holds special tokens and added tokens: `SpecialFinder`.

Of several tokens that begin at the same place the longest is found, and the search goes on after it. That is
all there is to most tokens. Files of transformers and tokenizers can also give tokens *flags*
(`Carried.tokens`), which mean what they mean there:

- `lstrip`, `rstrip`: the token takes the whitespace in front of it, or after it.
- `single_word`: it is found only where no letter, digit or mark is next to it.
- `late`: it is looked for between the others, after these were found.
- `normalized`: likewise, and in the text as the normalizer rewrites it. What a normalizer puts in front of
  every text (Llama's older files have one that does) then belongs to the token.
"""

# (The annotations of a NamedTuple are compiled if they are not evaluated, and the first compilation takes a
# tenth of the time of loading a model.)

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.lazy import imported, kept
from cpbpe.text.utf8 import SPACE, is_inside

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine, Finder, Text

SPACES = frozenset(
    map(chr, (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F))
) | {"\u205f", "\u3000"}
"""Unicode's whitespace, to which U+001C to U+001F do not belong, although Python strips them."""
_OTHER_LETTERS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Letters in circles and squares, which Unicode calls alphabetic, although they are symbols."""
_NONE: Collection[str] = ()


class FoundToken(NamedTuple):
    """A token in a text."""

    id: int
    """Its id."""
    taken: str | bytes
    """The part of the text that it stands for, which may have spaces around the token."""
    is_last: bool = False
    """Whether what follows was normalized together with it, so that no dummy prefix is put in front."""
    is_second: bool = False
    """Whether what precedes it gets no dummy prefix either: that was taken for the token's own space."""


Row = list["str | bytes | FoundToken"]
"""A text in segments, which may be empty, with tokens between them; it begins and ends with a segment."""


class Engines:
    """What encodes the segments of a text."""

    __slots__ = ("first", "later")

    def __init__(self, first: "Engine", later: "Engine"):
        self.first = first
        """The one at the beginning of the text."""
        self.later = later
        """One after a token."""

    def at(self, row: Row, position: int) -> "Engine":
        """The engine for the segment at a position of a row."""
        engine = self.later if position else self.first
        before, after = (row[at] if 0 <= at < len(row) else None for at in (position - 1, position + 1))
        is_bare = (isinstance(before, FoundToken) and before.is_last) or (
            isinstance(after, FoundToken) and after.is_second
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
        """What is looked for, one after the other."""
        early: list[str] = []
        late: list[str] = []
        normalized: list[str] = []
        for text in self._keys:
            flags = self._flags.get(text, _NONE)
            (normalized if "normalized" in flags else late if "late" in flags else early).append(text)
        if late and not _may_overlap(late, early) and not self._decide(early, late):
            # Then it makes no difference which are looked for first.
            early, late = early + late, []
        searches = [_Search(self._engine, early, self._flags)] if early else []
        if late:
            searches.append(_Search(self._engine, late, self._flags))
        if normalized:
            searches.append(_NormalizedSearch(self._engine, normalized, self._flags))
        return searches

    def _decide(self, early: list[str], late: list[str]) -> bool:
        """Whether one of `early` may take whitespace of one of `late`, or end what is a word with it."""
        flags = {flag for text in early for flag in self._flags.get(text, _NONE)}
        strips = not flags.isdisjoint({"lstrip", "rstrip"}) and any(not SPACES.isdisjoint(t) for t in late)
        return strips or any("single_word" in self._flags.get(text, _NONE) for text in late)

    @kept
    def odd(self) -> str | None:
        """A token that is not simply found where the text spells it out; None if there is none."""
        searches = self._searches
        if len(searches) > 1 or any(type(search) is not _Search for search in searches):
            return searches[-1].texts[0]
        return next((text for search in searches for text in search.texts if search.flags_of(text)), None)

    @kept
    def ids(self) -> dict[bytes, int | None]:
        """The keys as bytes, for code that looks for them in another way."""
        return {text.encode(): id for text, id in self._keys.items()}

    @kept
    def allowed(self) -> "SpecialFinder":
        """The finder for a text in which no token is refused any more."""
        return SpecialFinder(
            self._engine, {text: id for text, id in self._keys.items() if id is not None}, self._flags
        )

    @kept
    def _simple(self) -> "tuple[Finder, list[FoundToken | None], list[FoundToken | None]]":
        """The finder of all keys; and what each of them is in a str and in bytes, None if it is refused."""
        keys = [(text, id, text.encode()) for text, id in self._keys.items()]
        return (
            self._engine.finder([data for _, _, data in keys]),
            [None if id is None else FoundToken(id, text) for text, id, _ in keys],
            [None if id is None else FoundToken(id, data) for _, id, data in keys],
        )

    def split(self, text: "Text", engines: Engines | None = None) -> Row | None:
        """The text in segments and tokens; None if there are no tokens.

        `engines` are those that will encode the segments: their normalizers decide what is found of tokens
        that are looked for in normalized text. ValueError if the text holds a token that is refused.
        """
        if self.odd is not None:
            return self._split(text, engines or Engines(self._engine, self._engine))
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

    def _split(self, text: "Text", engines: Engines) -> Row | None:
        """The same for tokens with flags: one search after the other, in what is between found tokens."""
        row: Row = [text.encode() if isinstance(text, str) else text]
        for search in self._searches:
            row = [*self._searched(search, row, engines, isinstance(text, str))]
        if len(row) == 1:
            return None
        if isinstance(text, bytes):
            return row
        return [
            part._replace(taken=part.taken.decode())
            if isinstance(part, FoundToken) and isinstance(part.taken, bytes)
            else part.decode()
            if isinstance(part, bytes)
            else part
            for part in row
        ]

    def _searched(self, search: "_Search", row: Row, engines: Engines, is_str: bool) -> Iterator[Any]:
        at = 0
        for position, part in enumerate(row):
            if isinstance(part, FoundToken):
                yield part
                at += len(part.taken)
                continue
            assert isinstance(part, bytes)
            done = 0
            for text, begin, end, is_second in search.find(part, engines.at(row, position)):
                id = self._keys[text]
                if id is None:
                    before = b"".join(map(_taken, row))[: at + begin]
                    raise not_allowed(text, len(before.decode()) if is_str else len(before))
                yield part[done:begin]
                yield FoundToken(id, part[begin:end], search.leaves_bare, is_second)
                done = end
            yield part[done:]
            at += len(part)


def _taken(part: str | bytes | FoundToken) -> bytes:
    """The part of a text that a part of a row stands for."""
    text = part.taken if isinstance(part, FoundToken) else part
    return text.encode() if isinstance(text, str) else text


class _Search:
    """Tokens that are looked for at once."""

    leaves_bare = False
    """Whether no dummy prefix is put in front of what follows a token."""

    def __init__(self, engine: "Engine", texts: list[str], flags: Mapping[str, Collection[str]]):
        self.texts = texts
        self._flags = flags
        self._engine = engine

    def flags_of(self, text: str) -> set[str]:
        """The flags that matter while it is looked for."""
        return {"lstrip", "rstrip", "single_word"} & {*self._flags.get(text, _NONE)}

    @kept
    def _finder(self) -> "Finder":
        return self._engine.finder([text.encode() for text in self.texts])

    def find(self, data: bytes, engine: "Engine") -> Iterator[tuple[str, int, int, bool]]:
        """The tokens in a segment, each with where it begins and ends, with the spaces that it takes.

        The last value is `FoundToken.is_second`.
        """
        parts = self._finder.split(data) or [data]
        at = free = 0
        last: tuple[str, int, int] | None = None  # which may take less: another may begin in its spaces
        for before, number in zip(parts[::2], parts[1::2], strict=False):
            begin = at + len(before)
            text = self.texts[number]
            at = end = begin + len(text.encode())
            flags = self._flags.get(text, _NONE)
            if "single_word" in flags and _is_inside_word(data, begin, end):
                continue
            if "rstrip" in flags:
                while (stop := _end_after(data, end)) is not None:
                    end = stop
            if "lstrip" in flags:
                begin = max(begin, free)
                while begin > free and (start := _start_before(data, begin)) is not None:
                    begin = start
                if begin >= end:  # all of it is spaces that the one before has taken
                    continue
            if last is not None:
                name, first, stop = last
                yield name, first, max(first, min(stop, begin)), False
            last = text, begin, end
            free = end
        if last is not None:
            yield (*last, False)


def prefix_is_a_rule(engine: "Engine") -> bool:
    """Whether the dummy prefix is put in front by the normalizer.

    One that is not put in front of a space comes later: in the other library, a pre-tokenizer does it.
    """
    rules = engine.columns()["normalizer"]
    return bool(rules[_PREFIX] and rules[_PREFIX_BEFORE_SPACE])


def renamed(engine: "Engine", flags: Mapping[str, Collection[str]]) -> dict[str, str]:
    """What tokens are decoded to that are looked for in normalized text, where that is not their text."""
    names = _normalized_names(engine, [text for text, own in flags.items() if "normalized" in own])
    return {text: name.replace("\u2581", " ") for text, name in names.items() if name != text}


def _normalized_names(engine: "Engine", texts: Collection[str]) -> dict[str, str]:
    """What tokens are called that are looked for in normalized text; `engine` is the model's own."""
    if not texts:
        return {}
    own = engine if prefix_is_a_rule(engine) else engine.variant(prefix=False)
    return {text: own.normalize(text).decode(errors="replace") for text in texts}


class _NormalizedSearch(_Search):
    """Tokens that are looked for in normalized text."""

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
            # In front of a token at the beginning there may be the prefix, and nothing of the text itself.
            # Then the text's own space is encoded there, and the token has the prefix.
            is_second = self.leaves_bare and bool(begin) and not origins[begin]
            first = origins[begin + len(SPACE)] if is_second else _place(data, normalized, origins, begin)
            yield self._names[key], first, _place(data, normalized, origins, end), is_second


def _place(data: bytes, normalized: bytes, origins: list[int], at: int) -> int:
    """Where a place in a normalized text is in the text, also within what a user-defined piece has kept."""
    origin, size = origins[at], 0
    while size < at and origins[at - size - 1] == origin:
        size += 1
    return origin + size if normalized[at - size : at] == data[origin : origin + size] else origin


_PREFIX, _PREFIX_BEFORE_SPACE = 2, 6
"""Where `Columns` has these fields of the normalizer."""


def _may_overlap(late: list[str], early: list[str]) -> bool:
    """Whether a text can hold one of `late` such that one of `early`, which comes first, takes a part of it.

    One that begins at the same place, or further in front, wins in either order.
    """
    begins = {text[:length] for text in early for length in range(1, len(text) + 1)}
    whole = {*early}
    return any(
        (at and text[at:] in begins) or any(text[at:end] in whole for end in range(at + 1, len(text) + 1))
        for text in late
        for at in range(len(text))
    )


def _start_before(data: bytes, at: int) -> int | None:
    """Where the character before a place begins, if it is a space."""
    start = at - 1
    while is_inside(data, start):
        start -= 1
    return start if data[start:at].decode(errors="replace") in SPACES else None


def _character(data: bytes, at: int) -> str:
    """The character at a place; nothing at the end."""
    stop = at + 1
    while is_inside(data, stop):
        stop += 1
    return data[at:stop].decode(errors="replace")


def _end_after(data: bytes, at: int) -> int | None:
    """Where the character at a place ends, if it is a space."""
    character = _character(data, at)
    return at + len(character.encode()) if character in SPACES else None


def _is_inside_word(data: bytes, begin: int, end: int) -> bool:
    """Whether a part of a text is a part of a word."""
    start = begin - 1
    while is_inside(data, start):
        start -= 1
    before = data[start:begin].decode(errors="replace") if begin else ""
    return any(map(is_of_word, before + _character(data, end)))


def is_of_word(character: str) -> bool:
    r"""Whether a character is one that regular expressions call \w: there, marks are, too."""
    category: str = imported("unicodedata").category(character)
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
        return True
    code = ord(character)
    return code in (0x200C, 0x200D) or any(first <= code <= last for first, last in _OTHER_LETTERS)


def not_allowed(token: str, position: int) -> ValueError:
    """The error for a text that holds a token which it must not hold."""
    return ValueError(
        f"the text holds the special token {token!r} at position {position}. To make it a token, "
        f"pass allowed_special={{{token!r}}}; to encode it as ordinary text, do not name it in "
        f'disallowed_special, which "raise" does'
    )
