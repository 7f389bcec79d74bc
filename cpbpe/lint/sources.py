r"""The inverse of the normalizer: which texts, called sources, it turns into a given text.

The normalizer goes through a text from left to right. At each place it copies a user-defined piece, or
applies the longest rule, or copies a character. The search builds a source in the same order. Its states say
how much of the wanted text is made, whether a space would be dropped now (remove_extra_whitespaces), and
which longer keys the end of the source might still become. There are finitely many states, so the search
ends; if it finds nothing, there is no source.

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
"""Listing the rules of a charsmap fails if it visits more nodes of the trie than this."""
MOST_STATES = 20_000
"""The search for the sources of one text gives up after this many states."""

Waiting = frozenset[tuple[bytes, bool]]
"""Ends of the source that may turn out to be the beginning of a longer key, which the normalizer would prefer
over the step that it took there: the key of a rule or a user-defined piece, or, if the flag is set, only a
user-defined piece."""


class _Step(NamedTuple):
    """A step of the normalizer: what it does at one place."""

    source: bytes
    """The text that it consumes."""
    made: bytes
    """What it turns that into, with spaces written as in pieces."""
    kind: str
    """"user-defined" if it copies such a piece, "rule", or "copy" of a character."""
    after_space: bool | None
    """True if it does this only after a space, False if only elsewhere, None if always."""
    ends_in_space: bool
    """Whether another space after it would be dropped."""


class Undecided(Exception):  # noqa: N818  # nothing went wrong
    """The search cannot decide: rules are not UTF-8, or too many, or too many begin alike, or it gave up."""


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
        """Whether normalized text may be invalid UTF-8, because a replacement or a user-defined piece is."""
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
        """The rules; none if the search cannot use them, and then `_problem` says why."""
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
        """The proper prefixes of all keys, and those of user-defined pieces only."""
        user_defined_prefixes = {key[:end] for key in self._user_defined for end in range(1, len(key))}
        rule_prefixes = {key[:end] for key in self._rules for end in range(1, len(key))}
        return rule_prefixes | user_defined_prefixes, user_defined_prefixes

    def mentions(self, character: str) -> bool:
        """Whether a character is in the key of a rule or in a user-defined piece."""
        data = character.encode()
        return any(data in b"\xff".join(texts) for texts in (self._rules, self._user_defined))

    # --- What the normalizer may do -----------------------------------------------------------------

    def _steps(self, source: bytes, value: bytes, kind: str) -> Iterator[_Step]:
        """The steps of one rule or copy: two if it does something else after a space, otherwise one."""
        ends = self._squeeze and value.endswith(b" ")
        starts = self._squeeze and value.startswith(b" ")
        made = value.replace(b" ", self._space)
        yield _Step(source, made, kind, False if starts else None, ends)
        if starts:
            less = value.lstrip(b" ")
            made = less.replace(b" ", self._space)
            yield _Step(source, made, kind, True, ends)

    @kept
    def _makers(self) -> tuple[dict[bytes, list[_Step]], dict[bytes, list[tuple[_Step, int]]]]:
        """The steps of rules and user-defined pieces: by the first character that they make (b"" if they make
        nothing), and by each later one, together with its position.
        """
        first: dict[bytes, list[_Step]] = {}
        inside: dict[bytes, list[tuple[_Step, int]]] = {}
        actions = [(key, made, "rule") for key, made in self._rules.items() if key not in self._user_defined]
        actions += [(text, text, "user-defined") for text in self._user_defined]
        for step in (step for action in actions for step in self._steps(*action)):
            at = character_length(step.made, 0) if step.made else 0
            first.setdefault(step.made[:at], []).append(step)
            while at < len(step.made):
                end = at + character_length(step.made, at)
                inside.setdefault(step.made[at:end], []).append((step, at))
                at = end
        return first, inside

    def _copies(self, character: bytes) -> Iterator[_Step]:
        """The steps that copy a character and make this one. (`_after` rejects those that begin a key.)"""
        if character != b" " or self._space == b" ":
            yield from self._steps(character, character, "copy")
        if character == self._space != b" ":
            yield from self._steps(b" ", b" ", "copy")

    # --- The search ---------------------------------------------------------------------------------

    def of(self, wanted: bytes) -> Iterator[tuple[str, bool]]:
        """Yield sources, the shortest first, and whether each must come after a space.

        What the normalizer makes of a source contains the wanted text, and may have more on both sides.
        Raises `Undecided` if the search gives up.
        """
        rules = self._rules
        if self._problem:
            raise Undecided(self._problem)
        by_first, inside = self._makers
        first = wanted[: character_length(wanted, 0)]
        queue: list[tuple[int, int, bytes, int, bool, Waiting, bool]] = []
        seen: set[tuple[int, bool, Waiting]] = set()
        pushed = 0

        def push(step: _Step, source: bytes, made: int, active: Waiting, spaced: bool) -> None:
            nonlocal pushed
            after = self._after(active, step, rules)
            if after is None:
                return
            state = (min(made, len(wanted)), step.ends_in_space, after)
            if made >= len(wanted) or state not in seen:
                seen.add(state)
                pushed += 1
                heappush(
                    queue,
                    (len(source), pushed, source, made, step.ends_in_space, after, spaced),
                )

        # 1. What the first step makes may begin before the wanted text.
        none: Waiting = frozenset()
        for spaced in (False, True) if self._squeeze else (False,):
            for step in (*self._copies(first), *by_first.get(first, ())):
                if step.after_space in (None, spaced) and _fits(wanted, 0, step.made):
                    push(step, step.source, len(step.made), none, spaced)
            for step, at in inside.get(first, ()):
                if step.after_space in (None, spaced) and _fits(wanted, 0, step.made[at:]):
                    push(step, step.source, len(step.made) - at, none, spaced)
        # 2. All other steps continue a source.
        states = 0
        while queue:
            _, _, source, made, dropping, active, spaced = heappop(queue)
            if made >= len(wanted):
                yield source.decode(), spaced
                continue
            states += 1
            if states > MOST_STATES:
                raise Undecided("there are too many ways to make it")
            character = wanted[made : made + character_length(wanted, made)]
            for step in (*self._copies(character), *by_first.get(character, ())):
                if step.after_space in (None, dropping) and _fits(wanted, made, step.made):
                    push(step, source + step.source, made + len(step.made), active, spaced)
            for step in by_first.get(b"", ()):
                if step.after_space in (None, dropping):
                    kept_space = step._replace(ends_in_space=dropping)
                    push(kept_space, source + step.source, made, active, spaced)

    def _after(self, active: Waiting, step: _Step, rules: dict[bytes, bytes]) -> Waiting | None:
        """What is active after one more step; None if the normalizer would do something else."""
        prefixes, user_defined_prefixes = self._prefixes
        source = step.source
        now = set()
        # 1. What was active may become a longer key.
        for begun, only_user_defined in active:
            for end in range(1, len(source) + 1):
                key = begun + source[:end]
                if key in self._user_defined or (not only_user_defined and key in rules):
                    return None
                if key not in (user_defined_prefixes if only_user_defined else prefixes):
                    break
            else:
                now.add((key, only_user_defined))
        # 2. At this place, a user-defined piece takes precedence over a rule, and a rule over a copy.
        is_user_defined = step.kind == "user-defined"
        ends = range(1, len(source) + 1)
        if not is_user_defined and any(source[:end] in self._user_defined for end in ends):
            return None
        if step.kind == "copy" and any(source[:end] in rules for end in ends):
            return None
        if source in (user_defined_prefixes if is_user_defined else prefixes):
            now.add((source, is_user_defined))
        return frozenset(now)


def _fits(wanted: bytes, at: int, made: bytes) -> bool:
    """Whether what is made agrees with the wanted text from a place on; it may go beyond its end."""
    return bool(made) and (wanted.startswith(made, at) or made.startswith(wanted[at:]))
