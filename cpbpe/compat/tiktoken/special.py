"""Special tokens in texts: which are refused, and which become ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NoReturn

from cpbpe.engine.choice import make_finder
from cpbpe.lazy import Kept

Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]
NONE: AbstractSet[str] = frozenset()
"""No tokens."""


def raise_disallowed_special_token(token: str) -> NoReturn:
    """The error for a text that has a token which it must not have."""
    raise ValueError(
        f"Encountered text corresponding to disallowed special token {token!r}.\n"
        f"To make it this token, allow it: allowed_special={{{token!r}, ...}}.\n"
        f"To encode it as ordinary text, leave it out of those that are refused: "
        f"disallowed_special=(enc.special_tokens_set - {{{token!r}}}).\n"
        "To encode all of them as ordinary text, refuse none: disallowed_special=().\n"
    )


class SpecialTokens:
    """The special tokens of an encoding, and the finders for choices of them."""

    def __init__(self, ids: Mapping[str, int]):
        self.texts = frozenset(ids)
        if "" in ids:
            raise ValueError("a special token is empty, and every place of a text would be that token")
        self._choices: Kept[tuple[object, object], tuple[Keys, Keys]] = Kept()
        self.all = Keys(self.texts)
        """What finds all of them."""

    def choice(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Keys, Keys]:
        """What finds those that become ids, and those that are refused.

        Tokens that are allowed are not refused by "all"; what is no special token can be refused, too.
        """
        key = (
            allowed if isinstance(allowed, str) else frozenset(allowed),
            disallowed if isinstance(disallowed, str) else frozenset(disallowed),
        )
        found = self._choices.get(key)
        if found is None or not isinstance(allowed, (str, AbstractSet)):
            found = self._choice(allowed, disallowed)
            self._choices.keep(key, found)
        return found

    def _choice(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Keys, Keys]:
        if isinstance(allowed, str) and allowed == "all":
            allowed = self.texts
        if not isinstance(allowed, AbstractSet):
            raise TypeError(f'allowed_special must be "all" or a set of str, not {type(allowed).__name__}')
        if isinstance(disallowed, str) and disallowed == "all":
            disallowed = self.texts - allowed
        refused = frozenset(disallowed)
        if not all(isinstance(text, str) for text in (*allowed, *refused)):
            raise TypeError("allowed_special and disallowed_special must hold str")
        return Keys(self.texts & allowed), Keys(refused)


class Keys:
    """Texts that are looked for: the longest at each place, from left to right."""

    def __init__(self, texts: frozenset[str]):
        self.texts = sorted(texts - {""})
        keys = [text.encode(errors="surrogatepass") for text in self.texts]
        self.finder = make_finder(keys) if keys else None
        """None if there are none."""
        self._holds_empty = "" in texts
        self.find: Callable[[str], list[Any] | None] = self.finder.split if self.finder else _nothing
        """The text in parts, with the numbers of the texts between them; None if there is none."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return self.finder is None

    def may_be_in(self, text: str) -> bool:
        """Whether a text has one of them, or has to be repaired first."""
        try:
            return self.find(text) is not None
        except UnicodeEncodeError:
            return True

    def refuse(self, text: str) -> None:
        """ValueError if the text has one of them."""
        if self._holds_empty:
            raise_disallowed_special_token("")
        if self.finder is None:
            return
        try:
            parts = self.finder.split(text)
        except UnicodeEncodeError:  # half of a surrogate pair, which is repaired only later
            longest = sorted(self.texts, key=len, reverse=True)
            found = re.search("|".join(map(re.escape, longest)), text)
            parts = found and ["", self.texts.index(found.group())]
        if parts is not None:
            raise_disallowed_special_token(self.texts[parts[1]])


def _nothing(text: str) -> None:
    """The same without texts to look for."""
