r"""From which texts the normalizer makes a given text: the other way round.

The normalizer goes through a text from left to right. At each place it copies a user-defined piece, or
applies the longest rule, or copies a character. A source of a wanted text is found in the same way, from left
to right, by a search over states: how much of the wanted text is made, whether a space would be dropped now
(remove_extra_whitespaces), and which rules would apply after all if the source went on in a certain way.
There are finitely many states, so the search ends, and if it finds nothing, there is no source.

>>> from cpbpe.model.spec import NormalizerSpec, Piece, Pieces, PieceType
>>> from cpbpe.text.charsmap_build import charsmap_from_rules
>>> def sources(rules, wanted):
...     spec = ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"a")]),
...         NormalizerSpec(charsmap=charsmap_from_rules(rules)))
...     return sorted({source for source, _ in Sources(spec).of(wanted)})
>>> sources([("ab", "c"), ("x", "ab")], b"ab")          # 'ab' itself would become 'c'
['x']
>>> sources([("ab", "c")], b"ab"), sources([("ab", "c"), ("-", "")], b"ab")
([], ['a-b'])
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.charsmap import MAX_MATCHES, Charsmap
from cpbpe.text.utf8 import SPACE, character_length, is_valid_utf8

MOST_NODES = 1 << 21
"""A charsmap with more rules than that is not walked through."""
MOST_STATES = 20_000
"""This many states are looked at for one wanted text."""

Waiting = frozenset[tuple[bytes, bool]]
"""What the source ends with, from where something was copied or replaced on: more of it could be the key of
another rule, or, if the flag is set, only another user-defined piece."""


class _Token(NamedTuple):
    """Something that the normalizer does at one place."""

    source: bytes
    """What it takes from the text."""
    made: bytes
    """What it makes of it, spaces written as in pieces."""
    kind: str
    """"user-defined" if it copies such a piece, "rule", or "copy" of a character."""
    after_space: bool | None
    """Whether it makes this only after a space, or only elsewhere; None: it makes no difference."""
    ends_in_space: bool
    """Whether another space after it would be dropped."""


class Undecided(Exception):  # noqa: N818  # nothing went wrong
    """The rules are of a kind that is not gone through: not UTF-8, too many, or too many that begin alike."""


class Sources:
    """Finds sources for one model."""

    def __init__(self, spec: ModelSpec):
        rules = spec.normalizer
        self._squeeze = rules.remove_extra_whitespaces
        self._space = SPACE if rules.escape_whitespaces else b" "
        texts, types = spec.pieces.texts, spec.pieces.types
        self._user_defined = {
            text
            for text, type in zip(texts, types, strict=True)
            if type == PieceType.USER_DEFINED and text != b"\0"
        }
        self._charsmap = rules.charsmap
        self._problem = ""

    @kept
    def takes_characters_apart(self) -> bool:
        """Whether normalized text may not be UTF-8, because a replacement or a user-defined piece is not."""
        if not all(map(is_valid_utf8, self._user_defined)):
            return True
        if not self._charsmap:
            return False
        size = int.from_bytes(self._charsmap[:4], "little")
        units = np.frombuffer(self._charsmap, "<u4", size // 4, 4)
        replacements = self._charsmap[4 + size :]
        begins = np.frombuffer(replacements, np.uint8)[units[units >> 31 == 1] & 0x7FFFFFFF]
        return not is_valid_utf8(replacements) or bool((begins & 0xC0 == 0x80).any())

    @kept
    def _rules(self) -> dict[bytes, bytes]:
        """The rules; nothing if they are of a kind that is not gone through, which `_problem` then says."""
        rules: dict[bytes, bytes] = {}
        if self._charsmap:
            try:
                rules = dict(Charsmap(self._charsmap, trusted=True).rules(MOST_NODES))
            except ModelError as error:
                self._problem = str(error)
                return {}
        if not all(map(is_valid_utf8, (*rules, *rules.values(), *self._user_defined))):
            self._problem = "rules or user-defined pieces are not UTF-8"
            return {}
        for keys in (rules, self._user_defined):
            beginnings: list[bytes] = []
            for key in sorted(keys):
                while beginnings and not key.startswith(beginnings[-1]):
                    beginnings.pop()
                beginnings.append(key)
                if len(beginnings) > MAX_MATCHES:
                    self._problem = "too many rules or user-defined pieces begin alike"
                    return {}
        return rules

    @kept
    def _prefixes(self) -> tuple[set[bytes], set[bytes]]:
        """The beginnings of all keys, whole ones not included; and of user-defined pieces alone."""
        theirs = {key[:end] for key in self._user_defined for end in range(1, len(key))}
        return {key[:end] for key in self._rules for end in range(1, len(key))} | theirs, theirs

    def mentions(self, character: str) -> bool:
        """Whether a character is in the key of a rule or in a user-defined piece."""
        data = character.encode()
        return any(data in b"\xff".join(texts) for texts in (self._rules, self._user_defined))

    # --- What the normalizer may do -----------------------------------------------------------------

    def _tokens(self, source: bytes, value: bytes, kind: str) -> Iterator[_Token]:
        """What one rule or copy makes: after a space it may be something else."""
        ends = self._squeeze and value.endswith(b" ")
        starts = self._squeeze and value.startswith(b" ")
        made = value.replace(b" ", self._space)
        yield _Token(source, made, kind, False if starts else None, ends)
        if starts:
            less = value.lstrip(b" ")
            made = less.replace(b" ", self._space)
            yield _Token(source, made, kind, True, ends)

    @kept
    def _makers(self) -> tuple[dict[bytes, list[_Token]], dict[bytes, list[tuple[_Token, int]]]]:
        """Rules and user-defined pieces, by the first character of what they make (b"" for nothing); and by
        each other character of that, with its place.
        """
        first: dict[bytes, list[_Token]] = {}
        inside: dict[bytes, list[tuple[_Token, int]]] = {}
        actions = [(key, made, "rule") for key, made in self._rules.items() if key not in self._user_defined]
        actions += [(text, text, "user-defined") for text in self._user_defined]
        for token in (token for action in actions for token in self._tokens(*action)):
            at = character_length(token.made, 0) if token.made else 0
            first.setdefault(token.made[:at], []).append(token)
            while at < len(token.made):
                end = at + character_length(token.made, at)
                inside.setdefault(token.made[at:end], []).append((token, at))
                at = end
        return first, inside

    def _copies(self, character: bytes) -> Iterator[_Token]:
        """The copies of a character that make this one. (Keys are not copied: `_after` sees to that.)"""
        if character != b" " or self._space == b" ":
            yield from self._tokens(character, character, "copy")
        if character == self._space != b" ":
            yield from self._tokens(b" ", b" ", "copy")

    # --- The search ---------------------------------------------------------------------------------

    def of(self, wanted: bytes) -> Iterator[tuple[str, bool]]:
        """Yield sources, the shortest first; and whether each is to follow a space.

        What a source makes may go on at both ends of the wanted text. Undecided if the search gave up.
        """
        rules = self._rules
        if self._problem:
            raise Undecided(self._problem)
        by_first, inside = self._makers
        first = wanted[: character_length(wanted, 0)]
        waiting: list[tuple[int, int, bytes, int, bool, Waiting, bool]] = []
        seen: set[tuple[int, bool, Waiting]] = set()
        pushed = 0

        def push(token: _Token, source: bytes, made: int, active: Waiting, spaced: bool) -> None:
            nonlocal pushed
            after = self._after(active, token, rules)
            if after is None:
                return
            state = (min(made, len(wanted)), token.ends_in_space, after)
            if made >= len(wanted) or state not in seen:
                seen.add(state)
                pushed += 1
                heappush(
                    waiting,
                    (len(source), pushed, source, made, token.ends_in_space, after, spaced),
                )

        # 1. The first step may make more in front of the wanted text.
        none: Waiting = frozenset()
        for spaced in (False, True) if self._squeeze else (False,):
            for token in (*self._copies(first), *by_first.get(first, ())):
                if token.after_space in (None, spaced) and _fits(wanted, 0, token.made):
                    push(token, token.source, len(token.made), none, spaced)
            for token, at in inside.get(first, ()):
                if token.after_space in (None, spaced) and _fits(wanted, 0, token.made[at:]):
                    push(token, token.source, len(token.made) - at, none, spaced)
        # 2. The others go on from there.
        states = 0
        while waiting:
            _, _, source, made, dropping, active, spaced = heappop(waiting)
            if made >= len(wanted):
                yield source.decode(), spaced
                continue
            states += 1
            if states > MOST_STATES:
                raise Undecided("there are too many ways to make it")
            character = wanted[made : made + character_length(wanted, made)]
            for token in (*self._copies(character), *by_first.get(character, ())):
                if token.after_space in (None, dropping) and _fits(wanted, made, token.made):
                    push(token, source + token.source, made + len(token.made), active, spaced)
            for token in by_first.get(b"", ()):
                if token.after_space in (None, dropping):
                    kept_space = token._replace(ends_in_space=dropping)
                    push(kept_space, source + token.source, made, active, spaced)

    def _after(self, active: Waiting, token: _Token, rules: dict[bytes, bytes]) -> Waiting | None:
        """What is active after one more token; None if the normalizer would do something else."""
        every, theirs = self._prefixes
        source = token.source
        now = set()
        # 1. Something that was active may become a longer key.
        for begun, only_user_defined in active:
            for end in range(1, len(source) + 1):
                key = begun + source[:end]
                if key in self._user_defined or (not only_user_defined and key in rules):
                    return None
                if key not in (theirs if only_user_defined else every):
                    break
            else:
                now.add((key, only_user_defined))
        # 2. Here, a user-defined piece comes before a rule, and a rule before a copy.
        is_theirs = token.kind == "user-defined"
        ends = range(1, len(source) + 1)
        if not is_theirs and any(source[:end] in self._user_defined for end in ends):
            return None
        if token.kind == "copy" and any(source[:end] in rules for end in ends):
            return None
        if source in (theirs if is_theirs else every):
            now.add((source, is_theirs))
        return frozenset(now)


def _fits(wanted: bytes, at: int, made: bytes) -> bool:
    """Whether something that is made is what is wanted at a place, or more than that."""
    return bool(made) and (wanted.startswith(made, at) or made.startswith(wanted[at:]))
