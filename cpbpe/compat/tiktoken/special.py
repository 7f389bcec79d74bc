"""Special tokens in texts: which are refused, and which become ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Literal, NoReturn

from cpbpe.engine.protocol import Finder
from cpbpe.lazy import Kept

Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]
MakeFinder = Callable[[list[bytes]], Finder]
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

    def __init__(self, ids: Mapping[str, int], make_finder: MakeFinder):
        self.ids = ids
        self._make_finder = make_finder
        self.texts = frozenset(ids)
        if "" in ids:
            raise ValueError("a special token is empty, and every place of a text would be that token")
        self._finders: Kept[frozenset[str], Keys] = Kept()
        self.all = self.keys(self.texts)
        """What finds all of them."""

    def keys(self, texts: frozenset[str]) -> Keys:
        """What finds these."""
        found = self._finders.get(texts)
        if found is None:
            found = Keys(texts, self._make_finder)
            self._finders.keep(texts, found)
        return found

    def choice(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Keys, Keys]:
        """What finds those that become ids, and those that are refused.

        Tokens that are allowed are not refused by "all"; what is no special token can be refused, too.
        """
        allowed_set: AbstractSet[str]
        if isinstance(allowed, str) and allowed == "all":
            allowed_set = self.texts
        elif isinstance(allowed, AbstractSet):
            allowed_set = allowed
        else:
            raise TypeError(f'allowed_special must be "all" or a set of str, not {type(allowed).__name__}')
        if isinstance(disallowed, str) and disallowed == "all":
            refused = self.texts - allowed_set if allowed_set else self.texts
        else:
            refused = frozenset(disallowed)
        if not all(isinstance(text, str) for text in (*allowed_set, *refused)):
            raise TypeError("allowed_special and disallowed_special must hold str")
        return self.keys(self.texts & allowed_set if allowed_set else frozenset()), self.keys(refused)


class Keys:
    """Texts that are looked for: the longest at each place, from left to right."""

    def __init__(self, texts: frozenset[str], make_finder: MakeFinder):
        self.texts = sorted(texts - {""})
        keys = [text.encode(errors="surrogatepass") for text in self.texts]
        self.finder = make_finder(keys) if keys else None
        """None if there are none."""
        self._holds_empty = "" in texts

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
