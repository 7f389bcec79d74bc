r"""Which characters a chunk of a byte-level model may have side by side: the pattern as an automaton.

>>> chunks = chunks_of(SplitSpec(r" ?\p{L}+|\p{N}|\s+(?!\S)|\s"))
>>> chunks.may_hold("the"), chunks.may_hold("a b"), chunks.may_hold("12"), chunks.may_hold(" ")
(True, False, False, True)

The answer no is certain: no chunk of any text has these characters side by side. The answer yes may be wrong,
because the automaton ignores lookaheads and the order of alternatives; then a piece only stays undecided.

Every class or single character in the pattern is a *place*, and `follow` says which places can come after
which (Glushkov's construction).

The engines may know different versions of Unicode, because the core has tables of its own and the reference
has those of the package regex. A character may be in a class if either engine says so; it certainly is if
both do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cpbpe.engine.choice import engine_name
from cpbpe.engine.cutting import Cutter
from cpbpe.lazy import kept
from cpbpe.model.spec import SplitSpec

_MOST_PLACES = 2000


def make_cutters(pattern: str) -> list[Cutter]:
    """A cutter for a pattern from the reference, and one from the core if that is in use.

    >>> {cutter.finds("12") for cutter in make_cutters("[a-z]+")}
    {False}
    """
    return [Cutter(pattern, engine) for engine in sorted({"reference", engine_name()})]


@dataclass
class _Part:
    """A part of a pattern: the places where its matches begin and end, and when it matches empty text."""

    first: set[int] = field(default_factory=set)
    """The places where a match can begin."""
    last: set[int] = field(default_factory=set)
    """The places where a match can end."""
    empty: bool = True
    """Whether it can match empty text."""
    always: bool = True
    """Whether it can match empty text anywhere, whatever is around it."""
    guards: frozenset[int] = frozenset()
    """It matches empty text only if none of these places matches the next character: it is possessive, and
    would take that character without giving it back."""
    simple: dict[int, frozenset[int]] = field(default_factory=dict)
    """Places where a single character is a match, whatever is around it, unless one of these guards matches
    the character."""


class Chunks:
    """The automaton of a pattern."""

    def __init__(self, atoms: list[str], follow: list[set[int]], simple: dict[int, frozenset[int]]):
        self._atoms = atoms
        self._follow = follow
        self._simple = simple
        self._known: dict[tuple[str, str], list[bool]] = {}

    @kept
    def _cutters(self) -> dict[str, list[Cutter]]:
        return {atom: make_cutters(atom) for atom in dict.fromkeys(self._atoms)}

    def _answers(self, atom: str, characters: str) -> list[bool]:
        """Whether a class contains any of some characters: an answer from each engine."""
        key = (atom, characters)
        if key not in self._known:
            answers = [cutter.finds(characters) for cutter in self._cutters[atom]]
            if len(characters) > 1:
                return answers
            self._known[key] = answers
        return self._known[key]

    def _at(self, places: Iterable[int], characters: str) -> set[int]:
        """Those of some places that may match one of these characters."""
        places = set(places)
        atoms = {self._atoms[place] for place in places}
        fits = {atom: any(self._answers(atom, characters)) for atom in atoms}
        return {place for place in places if fits[self._atoms[place]]}

    def may_hold(self, text: str, before: str = "", after: str = "") -> bool:
        """Whether a chunk may contain a text.

        If `before` or `after` is given, one of these characters must stand in front of the text or after it.
        """
        steps = ([before] if before else []) + list(text) + ([after] if after else [])
        if not steps or self._is_left_out(steps):
            return True
        places = self._at(range(len(self._atoms)), steps[0])
        for characters in steps[1:]:
            if not places:
                return False
            places = self._at(set().union(*(self._follow[place] for place in places)), characters)
        return bool(places)

    def _is_left_out(self, steps: list[str]) -> bool:
        """Whether all characters may lie between two matches of the pattern: such text can be a chunk, too.

        A character that is a match by itself never lies there.
        """
        return not any(
            any(
                all(self._answers(self._atoms[place], character)) and not self._at(guards, character)
                for place, guards in self._simple.items()
            )
            for character in steps
            if len(character) == 1
        )


def chunks_of(spec: SplitSpec | None) -> Chunks | None:
    """The automaton of the first pattern; None if there is none, or if it has unsupported parts.

    Patterns after the first only cut further.
    """
    if spec is None:
        return None
    reader = _Reader(spec.pattern)
    try:
        whole = reader.alternatives()
        if reader.at < len(reader.pattern):
            return None
    except (IndexError, ValueError):  # it has a part that the reader does not know
        return None
    return Chunks(reader.atoms, reader.follow, whole.simple)


class _Reader:
    """Parses a pattern from left to right; ValueError for what it does not know."""

    def __init__(self, pattern: str):
        self.pattern = pattern
        self.at = 0
        self.atoms: list[str] = []
        self.follow: list[set[int]] = []
        self._ignores_case = False

    def _next(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        return _Part(
            set().union(*(part.first for part in parts)),
            set().union(*(part.last for part in parts)),
            any(part.empty for part in parts),
            any(part.always for part in parts),
            frozenset().union(*(part.guards for part in parts)),
            {place: guards for part in parts for place, guards in part.simple.items()},
        )

    def _sequence(self) -> _Part:
        whole = _Part()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            whole = self._joined(whole, self._repeated())
        return whole

    def _joined(self, one: _Part, other: _Part) -> _Part:
        for place in one.last:
            self.follow[place] |= other.first
        simple = dict(one.simple) if other.always else {}
        if one.always:
            simple |= {place: guards | one.guards for place, guards in other.simple.items()}
        return _Part(
            one.first | other.first if one.empty else set(one.first),
            one.last | other.last if other.empty else set(other.last),
            one.empty and other.empty,
            one.always and other.always,
            one.guards | other.guards,
            simple,
        )

    def _repeated(self) -> _Part:
        """A part with its repeat. With counts such as {2,3}, the part is parsed again for each repetition."""
        begin = self.at
        part = self._one()
        end = self.at
        least, most = self._counts()
        after = self.at
        is_possessive = after > end and self._next("+")
        if after > end and not is_possessive:
            self._next("?")
        after = self.at
        whole = part
        for number in range(1, max(least, most or 1)):
            self.at = begin
            again = self._one()
            if number >= least:
                again.empty = again.always = True
            whole = self._joined(whole, again)
        self.at = after
        if most is None:
            for place in whole.last:
                self.follow[place] |= whole.first
        if least == 0:
            whole.empty = whole.always = True
            # (A possessive part may take the character that the next part needs.)
            whole.guards = frozenset(whole.first) if is_possessive else frozenset()
        return whole

    def _counts(self) -> tuple[int, int | None]:
        for sign, counts in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self._next(sign):
                return counts
        if self._next("{"):
            end = self.pattern.index("}", self.at)
            least, comma, most = self.pattern[self.at : end].partition(",")
            self.at = end + 1
            low = int(least or 0)
            high = (int(most) if most else None) if comma else low
            if high == 0 or max(low, high or 0) > 100:
                raise ValueError
            return low, high
        return 1, 1

    def _one(self) -> _Part:
        begin = self.at
        pattern = self.pattern
        if self._next("("):
            return self._group()
        if self._next("["):
            self._next("^")
            self._next("]")
            while pattern[self.at] != "]":
                if pattern[self.at] == "[" or pattern[self.at : self.at + 2] in ("&&", "||", "--", "~~"):
                    raise ValueError
                if pattern[self.at] == "\\":
                    self._escaped()
                else:
                    self.at += 1
            self.at += 1
            return self._place(pattern[begin : self.at])
        if pattern[self.at] in "^$":
            self.at += 1
            return _Part(always=False)
        if pattern[self.at] == "\\":
            self._escaped()
            source = pattern[begin : self.at]
            if source[1] in "bBAzZG":
                return _Part(always=False)
            if source[1] not in "pPdDsSwWrntfv" and source[1].isalnum():
                raise ValueError
            return self._place(source)
        if pattern[self.at] in "*+?{":
            raise ValueError
        self.at += 1
        return self._place(pattern[begin : self.at])

    def _escaped(self) -> None:
        kind = self.pattern[self.at + 1]
        self.at += 2
        if kind in "pP" and self._next("{"):
            self.at = self.pattern.index("}", self.at) + 1
        elif kind in "pP":
            self.at += 1
        elif kind in "xuUNkgX":
            raise ValueError

    def _place(self, atom: str) -> _Part:
        if len(self.atoms) >= _MOST_PLACES:
            raise ValueError
        place = len(self.atoms)
        self.atoms.append(f"(?i:{atom})" if self._ignores_case else atom)
        self.follow.append(set())
        return _Part({place}, {place}, False, False, simple={place: frozenset()})

    def _group(self) -> _Part:
        outside = self._ignores_case
        looks = any(self._next(sign) for sign in ("?=", "?!", "?<=", "?<!"))
        atomic = not looks and self._next("?>")
        if self._next("?i:"):
            self._ignores_case = True
        elif not looks and not atomic and not self._next("?:") and self._next("?"):
            raise ValueError
        places = len(self.atoms)
        part = self.alternatives()
        if not self._next(")"):
            raise ValueError
        self._ignores_case = outside
        if looks:
            # What a lookaround matches is not part of the match.
            del self.atoms[places:], self.follow[places:]
            return _Part(always=False)
        if atomic:
            part.simple, part.always = {}, False
        return part
