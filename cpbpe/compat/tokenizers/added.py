"""The added tokens of a tokenizer: the class of a token, their table, and the search for them in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cpbpe.compat.tokenizers import arguments
from cpbpe.engine.choice import make_finder
from cpbpe.engine.protocol import Finder
from cpbpe.lazy import kept
from cpbpe.tokenizer.special_tokens import SPACES, is_of_word

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
"""The flags of an added token, in the order in which files have them."""


class AddedToken:
    """A token for `add_tokens` and `add_special_tokens`.

    - `single_word`: it is found only where no letter or digit is next to it.
    - `lstrip`, `rstrip`: it takes the whitespace in front of it, or after it.
    - `normalized`: it is searched for in normalized text; by default, if it is not special.
    - `special`: `decode` leaves it out, and `encode_special_tokens` makes it plain text.

    >>> AddedToken("<mask>", lstrip=True)
    AddedToken("<mask>", rstrip=False, lstrip=True, single_word=False, normalized=True, special=False)
    """

    def __init__(self, content: str | None = None, **flags: bool):
        unknown = flags.keys() - {*FLAGS}
        if unknown:
            raise TypeError(f"AddedToken has no flag {min(unknown)!r}; it has {', '.join(FLAGS)}")
        self._content = arguments.text("" if content is None else content, "content")
        self._flags = {name: arguments.flag(value, name) for name, value in flags.items()}

    @property
    def content(self) -> str:
        """The text of the token."""
        return self._content

    @content.setter
    def content(self, content: str) -> None:
        self._content = arguments.text(content, "content")

    @property
    def single_word(self) -> bool:
        """Whether it is found only where no letter or digit is next to it."""
        return self._flags.get("single_word", False)

    @property
    def lstrip(self) -> bool:
        """Whether it takes the whitespace in front of it."""
        return self._flags.get("lstrip", False)

    @property
    def rstrip(self) -> bool:
        """Whether it takes the whitespace after it."""
        return self._flags.get("rstrip", False)

    @property
    def normalized(self) -> bool:
        """Whether it is searched for in normalized text."""
        return self._flags.get("normalized", not self.special)

    @property
    def special(self) -> bool:
        """Whether decoding leaves it out."""
        return self._flags.get("special", False)

    @special.setter
    def special(self, special: bool) -> None:
        self._flags["special"] = arguments.flag(special, "special")

    def fixed(self) -> AddedToken:
        """A copy for which every flag is set."""
        return AddedToken(**self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self._content, **{name: getattr(self, name) for name in FLAGS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        flags = dict(state)
        self.__init__(flags.pop("content", None), **flags)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AddedToken):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self._content)

    def __str__(self) -> str:
        return self._content

    def __repr__(self) -> str:
        names = ("rstrip", "lstrip", "single_word", "normalized", "special")
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f'AddedToken("{self._content}", {shown})'


_SPACES = "".join(SPACES)


class Found(NamedTuple):
    """An added token where a text has it; the span includes the spaces that the token takes."""

    id: int
    begin: int
    end: int


@dataclass
class Search:
    """Tokens that are searched for together, and their finder."""

    tokens: list[tuple[str, int, AddedToken]]
    """The texts to search for, and the ids and tokens that they stand for."""

    @kept
    def _finder(self) -> Finder:
        return make_finder([key.encode() for key, _, _ in self.tokens])

    def find(self, text: str, is_skipped: Callable[[str], bool]) -> list[Found]:
        """The tokens in a text: at each place the longest, from left to right.

        A token that is skipped still hides others that overlap it.
        """
        parts = self._finder.split(text) if self.tokens else None
        if parts is None:
            return []
        found = []
        at, free = 0, 0
        for before, number in zip(parts[::2], parts[1::2], strict=False):
            begin = at + len(before)
            key, id, token = self.tokens[number]
            at = end = begin + len(key)
            beside = text[max(begin - 1, 0) : begin] + text[end : end + 1]
            if is_skipped(token.content) or (token.single_word and any(map(is_of_word, beside))):
                continue
            if token.lstrip:
                begin = max(len(text[:begin].rstrip(_SPACES)), free)
            if token.rstrip:
                end = len(text) - len(text[end:].lstrip(_SPACES))
            found.append(Found(id, begin, end))
            free = end
        return found


class AddedTokens:
    """The added tokens, and the ids and names of the model's own tokens."""

    def __init__(self, vocab: dict[str, int], normalize: Callable[[str], str] | None):
        """`normalize` is the normalizer of the file; None if it has none."""
        self._normalize = normalize or str
        self.is_normalizing = normalize is not None
        """Whether tokens with `normalized` are searched for in other texts than the rest, or only later."""
        self.vocab = vocab
        """The ids of the model's own tokens."""
        self.size = len(vocab)
        """How many these are."""
        self.by_id: dict[int, AddedToken] = {}
        """The added tokens, by id."""
        self.ids: dict[str, int] = {}
        """The ids of the added tokens, by text."""
        self.specials: set[str] = set()
        """The texts of tokens that are, or once were, special: tokenizers forgets none of them."""
        self.normalized_names: dict[int, str] = {}
        """Names in tokenizers of the tokens that are, or once were, searched for in normalized text."""
        self._searches: tuple[Search, Search] | None = None

    @kept
    def names(self) -> dict[int, str]:
        """The model's own tokens by their ids."""
        return {id: token for token, id in self.vocab.items()}

    def name(self, id: int) -> str | None:
        """The token of an id; None if the id is not in use."""
        return self.normalized_names.get(id) or (
            self.by_id[id].content if id in self.by_id else self.names.get(id)
        )

    def id_of(self, token: str) -> int | None:
        """The id of a token."""
        id = self.ids.get(token)
        return self.vocab.get(token) if id is None else id

    def add(self, tokens: Iterable[AddedToken]) -> int:
        """Add tokens, or change their flags. Return how many are new, or have other flags than before."""
        changed = 0
        for token in tokens:
            if token.special and token.content:
                self.specials.add(token.content)
            if not token.content or token in self.by_id.values():
                continue
            id = self.id_of(token.content)
            if id is None:
                id = max([self.size - 1, *self.by_id]) + 1
            if token.normalized:
                self.normalized_names[id] = self._normalize(token.content)
            self.ids[token.content] = id
            self.by_id[id] = token
            changed += 1
        self._searches = None
        return changed

    @property
    def searches(self) -> tuple[Search, Search]:
        """The tokens to search for in a text as it is, and then those with `normalized`."""
        if self._searches is None:
            plain: list[tuple[str, int, AddedToken]] = []
            normalized: dict[str, tuple[str, int, AddedToken]] = {}
            for id, token in self.by_id.items():
                if token.normalized:
                    key = self._normalize(token.content)
                    normalized.setdefault(key, (key, id, token))
                else:
                    plain.append((token.content, id, token))
            normalized.pop("", None)
            self._searches = Search(plain), Search(list(normalized.values()))
        return self._searches
