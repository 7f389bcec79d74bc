"""Texts without end for long comparisons: parts of files, changed at random, the same for the same seed.

They must cost little beside a library that encodes 5 MB a second. So whatever is done to every character or
word is done by numpy or by a method of `str`. All chance comes from the bits of `random.Random`, which are
the same in every version of Python.
"""

from __future__ import annotations

import mmap
import random
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tests.support import corpus
from tests.support.texts import MARKS, PLANES, SPACES, SPECIALS

LENGTHS = (5,) * 60 + (40,) * 60 + (300,) * 100 + (2_000,) * 200 + (20_000,) * 30 + (200_000,)
"""In bytes. The longest ones, a sixth of all bytes, take sentencepiece twice as long a byte as others."""
AWKWARD = [*MARKS, *SPACES, *SPECIALS]
OWN = "tests/support/corpus.py"
"""The name of the texts that are used when no files are given."""


def sources(paths: Sequence[Path]) -> dict[str, Any]:
    """The bytes of files by their names, not read before they are needed."""
    found: dict[str, Any] = {}
    for path in paths:
        with path.open("rb") as file:
            found[path.name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert len(found) == len(paths), "two files have one name"
    return found or {OWN: "\n".join(corpus.lines()).encode()}


class Varied:
    """Makes texts for one model from a seed."""

    def __init__(self, seed: str, sources: Sequence[Any], pieces: Sequence[str]):
        self.chance = random.Random(seed)
        self.sources = sources
        self.pieces = pieces
        self.changes: list[Callable[[str], str]] = [
            str,
            str,
            self.shuffled,
            self.sprinkled,
            self.mingled,
            self.only_pieces,
            self.replaced,
            self.repeated,
            self.any_characters,
            self.other_forms,
        ]

    def texts(self, size: int) -> list[str]:
        """Texts of about this many bytes together."""
        found = []
        while size > 0:
            text = self.chance.choice(self.changes)(self.part())
            size -= len(text) + 1
            found.append(text)
        return found

    def broken(self, texts: list[str]) -> list[bytes]:
        """The texts as UTF-8, in some of which bytes were replaced or cut off."""
        found = []
        for text in texts:
            data = text.encode()
            if data and self.chance.random() < 0.5:
                array = np.frombuffer(data, np.uint8).copy()
                places = self.numbers(len(array) // self.chance.choice((10, 100, 1000)) + 1) % len(array)
                array[places] = np.frombuffer(self.chance.randbytes(len(places)), np.uint8)
                data = array.tobytes()[self.chance.randrange(3) :]
            found.append(data)
        return found

    def part(self) -> str:
        """A part of a source."""
        source = self.chance.choice(self.sources)
        length = self.chance.choice(LENGTHS)
        begin = self.chance.randrange(max(len(source) - length, 1))
        return bytes(source[begin : begin + length]).decode("utf-8", "ignore")

    # --- Chance for many things at once ---------------------------------------------------------------

    def numbers(self, count: int) -> Any:
        """Numbers of 32 bits."""
        return np.frombuffer(self.chance.randbytes(4 * count), "<u4").astype(np.int64)

    def some(self, items: Sequence[str], count: int) -> list[str]:
        """As many of them."""
        return list(map(items.__getitem__, (self.numbers(count) % len(items)).tolist()))

    # --- What is done to a text -----------------------------------------------------------------------

    def shuffled(self, text: str) -> str:
        """Its words in another order."""
        words = text.split(" ")
        order = self.numbers(len(words)).argsort(kind="stable").tolist()
        return " ".join(map(words.__getitem__, order))

    def sprinkled(self, text: str) -> str:
        """With pieces, marks and runs of them in between, or in the place of what was there."""
        count = len(text) // self.chance.choice((8, 30, 200)) + 1
        cuts = [0, *sorted((self.numbers(count) % (len(text) + 1)).tolist()), len(text)]
        added = self.some(self.pieces, count)
        added[::3] = self.some(AWKWARD, len(added[::3]))
        added[::20] = [piece * 30 for piece in added[::20]]
        drop = self.chance.randrange(3)
        parts = [text[begin + drop : end] for begin, end in pairwise(cuts)]
        return "".join([part for both in zip(parts, [*added, ""], strict=True) for part in both])

    def mingled(self, text: str) -> str:
        """Its characters and those of another text in turn."""
        return "".join(map("".join, zip(text, self.part(), strict=False)))

    def only_pieces(self, text: str) -> str:
        """Nothing but pieces."""
        return "".join(self.some(self.pieces, len(text) // 4 + 1))

    def replaced(self, text: str) -> str:
        """Without one of its characters, which becomes another, or nothing."""
        new = ["", "\u2581", "  ", "\0", "\U0010fffe", "\n", self.chance.choice(self.pieces)]
        return text.replace(self.chance.choice(text or " "), self.chance.choice(new))

    def repeated(self, text: str) -> str:
        """Some characters many times, some not at all."""
        most = self.chance.choice((2, 3, 40))
        codes = self._codes(text[:50_000])
        times = np.where(self.numbers(len(codes)) % 16 == 0, self.numbers(len(codes)) % most, 1)
        return self._text(codes.repeat(times))

    def any_characters(self, text: str) -> str:
        """Some characters become others, of all planes."""
        codes = self._codes(text)
        plane = self.chance.choice(PLANES)
        others = plane + self.numbers(len(codes)) % self.chance.choice((0x80, 0x3000, 0x10000))
        every = self.chance.choice((1, 4, 50))
        return self._text(np.where(self.numbers(len(codes)) % every == 0, others, codes))

    def other_forms(self, text: str) -> str:
        """In capital letters, and in one of Unicode's normal forms."""
        forms: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
        text = text.swapcase() if self.chance.randrange(2) else text
        return unicodedata.normalize(self.chance.choice(forms), text)

    def _codes(self, text: str) -> Any:
        """The numbers of the characters."""
        return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)

    def _text(self, codes: Any) -> str:
        """The characters with these numbers; U+FFFD for halves of a surrogate pair."""
        codes = np.where((codes >= 0xD800) & (codes < 0xE000), 0xFFFD, codes)
        data: bytes = codes.astype("<u4").tobytes()
        return data.decode("utf-32-le")
