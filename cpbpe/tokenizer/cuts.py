r"""Where a pattern cuts a text that is not finished, and what is found in it before anything merges.

What follows a text may move its last cuts: in `a  b` the second space belongs to the `b`, in `a  ` to the
first one. So whoever builds a text piece by piece has to *assume* at each place whether it will be a cut, and
needs to know whether there is a text to follow with which all assumptions come true. A **state** is all that
matters for that. A character leads from one state to another, either with a cut in front of it or without.

Nobody has written these automata down. They are found by asking the pattern itself:

- Characters around which a pattern cuts alike are one *class*. (`_FRAMES` shows whether they are.)
- Patterns do not look back. So of a text only the part after the last certain cut matters, and which of its
  places are assumed to be cuts.
- Two such parts are one state if the assumptions come true with the same texts after them, and if they are
  then cut in the same way. The short texts that `split_probes.py` lists, and a few more, stand for all texts.
  (So nothing is ever taken off the front of a text: what is before a certain cut makes no difference, and the
  texts with and without it are one state.)

This holds for the published patterns, whose lookahead is known. (The tests go through all texts of a few
classes, and compare.)

Before a pattern cuts, tokens are found in a text, and before merging user-defined pieces. Other symbols never
spell one of these `Keys`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.engine.choice import engine_name
from cpbpe.engine.cutting import Cutter
from cpbpe.text.split_probes import PROBES

_LETTERS = "xstdmrevlaſSTDMREVLA" + "Xǅʰ中\u0301\U000104d81²\U0001e950 \t\n\r'/.\U00010b3f"
"""At least one character of each class."""
_SIDES = (
    "",
    "x",
    "X",
    "中",
    "\u0301",
    "8",
    "88",
    ".",
    " ",
    "  ",
    "\n",
    "'",
    "/",
    "./",
    ".\n",
    "x'",
    "Xx",
    "xX",
)
_FRAMES = (
    *product(_SIDES, ("", "x", "X", "Xx", "8", ".", " ", " x", "\n", "'", "/", "\u0301", "中")),
    *product(("'", "x'", "'l", "'r", "'v", "x'r", "x'l", "x'v"), ("x", "ex", "lx")),
    *product(("", "x", ".", " "), ("sx", "rex", "llx", "ſx", "S")),
)
"""What is put around a character to find out its class."""
_CLASSES = {
    r"\p{Ll}": "x",
    r"[\p{Lu}\p{Lt}]": "X",
    r"[\p{Lm}\p{Lo}]": "中",
    r"\p{M}": "\u0301",
    r"\p{N}": "1",
    r"\s": "\t",
}
"""The classes of characters that patterns name as such, each with one of them. All others are like a dot."""
DEAD = -1
_LONGER = ("111", "rex", "lex", "llx", "REx", "LLx")
_Framed = tuple[tuple[int, ...], ...]


class _Assumed(NamedTuple):
    """A part of a text, in letters of `_LETTERS`, and what is assumed about it."""

    text: str
    cuts: tuple[int, ...]
    """Where it will be cut; nowhere else within it."""


class Cuts:
    """The automaton of a pattern. Its states are numbers; 0 is the beginning of a text, and of a chunk."""

    def __init__(self, pattern: str, engine: str):
        self._spans = Cutter(pattern, engine).spans
        # 1. The classes.
        kinds: dict[_Framed, str] = {}
        one = {letter: kinds.setdefault(self._in_frames(letter), letter) for letter in _LETTERS}
        self.letters = [*kinds.values()]
        """A character of each class."""
        self.classes: NDArray[np.uint8] = np.full(0x110000, self.letters.index(one["."]), np.uint8)
        """The class of each character, by its code."""
        for letter, codes in _members(engine).items():
            self.classes[codes] = self.letters.index(one[letter])
        for letter, first in one.items():
            self.classes[ord(letter)] = self.letters.index(first)
        # 2. The texts that stand for all that can follow.
        probes = (*PROBES, *map("".join, product(self.letters, repeat=2)), *_LONGER)
        self._probes = tuple(dict.fromkeys("".join(map(one.__getitem__, probe)) for probe in probes))
        # 3. The states, beginning with that of no text.
        self._states: list[_Assumed] = []
        self._known: dict[tuple[tuple[int, ...] | None, ...], int] = {}
        self.accepts: list[bool] = []
        """For each state whether the text can end there."""
        self.steps: list[list[tuple[int, int]]] = []
        """For each state and class, the next state: without a cut in front of the character, and with one."""
        # (Its futures are made up. Others have one for each probe, so no other state is the same.)
        self._state(((0,),), _Assumed("", ()))
        at = 0
        while at < len(self._states):
            self.steps.append([self._step(self._states[at], letter) for letter in self.letters])
            at += 1

    def _in_frames(self, letter: str) -> _Framed:
        """Where texts are cut that have a character in them, as if it were one byte long."""
        more = len(letter.encode()) - 1
        return tuple(
            tuple(
                at - more if at > len(before.encode()) else at
                for at in self._borders(before + letter + after)
            )
            for before, after in _FRAMES
        )

    def _borders(self, text: str) -> list[int]:
        """Where a text is cut, and its ends, in bytes."""
        return sorted({0, len(text.encode())}.union(*self._spans(text)))

    def _step(self, before: _Assumed, letter: str) -> tuple[int, int]:
        """The next states: without a cut in front of the letter, and with one."""
        text, at = before.text + letter, len(before.text.encode())
        size = len(text.encode())
        ways = [before.cuts, (*before.cuts, at)] if at else [(), ()]
        futures: list[list[tuple[int, ...] | None]] = [[], []]
        for probe in self._probes:
            borders = self._borders(text + probe)
            inner = tuple(place for place in borders if 0 < place < size)
            after = tuple(place - size for place in borders if place >= size)
            for way, found in zip(ways, futures, strict=True):
                found.append(after if inner == way else None)
        # (A text begins with a cut.)
        without, with_cut = (
            self._state(tuple(found), _Assumed(text, way)) for way, found in zip(ways, futures, strict=True)
        )
        return without if at else DEAD, with_cut

    def _state(self, futures: tuple[tuple[int, ...] | None, ...], assumed: _Assumed) -> int:
        """The number of a state; DEAD if nothing that follows makes the assumptions true.

        `futures`: for each probe, where the text after the state is cut if the probe follows; None if the
        assumptions are then false. The first probe is empty, so its future says whether the text can end.
        """
        if not any(futures):
            return DEAD
        if futures not in self._known:
            self._known[futures] = len(self._states)
            self.accepts.append(futures[0] is not None)
            self._states.append(assumed)
        return self._known[futures]


@lru_cache(maxsize=2)
def _members(engine: str) -> dict[str, NDArray[np.int64]]:
    """The codes of the characters in each of `_CLASSES`, as an engine sees it."""
    codes = np.concatenate((np.arange(0xD800), np.arange(0xE000, 0x110000)))
    text = codes.astype("<u4").tobytes().decode("utf-32-le")
    lengths = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    places = np.concatenate(([0], np.cumsum(lengths)))
    found = {}
    for members, letter in _CLASSES.items():
        spans = np.searchsorted(places, np.array(Cutter(f"{members}+", engine).spans(text)).reshape(-1, 2))
        found[letter] = np.concatenate([codes[begin:end] for begin, end in spans])
    return found


@lru_cache(maxsize=8)
def cuts_of(pattern: str) -> Cuts:
    """The automaton of a pattern, by the best available engine."""
    return Cuts(pattern, engine_name())


# --- What is found in a text before anything merges -----------------------------------------------

Begun = frozenset[tuple[str, int]]
"""Beginnings of keys: of tokens (0), and of user-defined pieces (1)."""


class Keys:
    """Texts that are found in a text before anything merges, so that no other symbols can spell one."""

    def __init__(self, tokens: Collection[str], pieces: Collection[str] = ()):
        """`tokens` are found everywhere; `pieces`, the user-defined ones, not within each other."""
        self._keys = (frozenset(tokens), frozenset(pieces))
        self._begins = (_beginnings(tokens), _beginnings(pieces))
        self._token, self._any = _any_of(tokens), _any_of({*tokens, *pieces})

    def are_in(self, text: str, is_piece: bool = False) -> bool:
        """Whether a symbol has one inside."""
        return (self._token if is_piece else self._any).search(text) is not None

    def begun(self, before: Begun, text: str, is_piece: bool = False) -> Begun | None:
        """The beginnings of keys at the end of a text after one more symbol; None if it completes one.

        `before`: those at the end of the text before. The symbol itself has no key inside.
        """
        if not any(self._keys):
            return before
        found = set()
        for kind, begins in enumerate(self._begins):
            places = range(1 if kind and is_piece else len(text))
            found |= {(text[at:], kind) for at in places if text[at:] in begins}
        for begin, kind in before:
            whole = begin + text
            if any(whole[:end] in self._keys[kind] for end in range(len(begin) + 1, len(whole) + 1)):
                return None
            if whole in self._begins[kind]:
                found.add((whole, kind))
        return frozenset(found)

    def rests(self, begun: Begun) -> set[str]:
        """What would complete a key."""
        return {
            key[len(begin) :] for begin, kind in begun for key in self._keys[kind] if key.startswith(begin)
        } - {""}


def _beginnings(texts: Iterable[str]) -> set[str]:
    """What texts begin with, shorter than they are."""
    return {text[:end] for text in texts for end in range(1, len(text))}


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


class Ordered:
    """Texts in their order, to find those with some beginning. Each has a number."""

    def __init__(self, texts: Iterable[tuple[str, int]]):
        rows = sorted(texts)
        self._texts = [text for text, _ in rows]
        self._numbers = np.array([number for _, number in rows], np.int64)

    def beginning_with(self, begin: str) -> NDArray[np.int64]:
        """The numbers of those that begin like this."""
        low = bisect_left(self._texts, begin)
        return self._numbers[low : bisect_right(self._texts, begin, low, key=lambda text: text[: len(begin)])]
