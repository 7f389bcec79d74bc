"""Texts for tests: every awkward kind, made fast from a seed, or drawn and shrunk by hypothesis."""

import random
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import strategies as st

PLANES = [0x0000, 0x0000, 0x0000, 0x10000, 0x10000, 0x20000, 0x30000, 0xE0000, 0x100000]
SPECIALS = ["<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0xE2>", "[INST]", "<|im_start|>", "<cls>", "[UNK]"]
MARKS = [
    "▁",
    "▅",
    "\u001f",
    "\0",
    "\ufffd",
    "\ufeff",
    "\u200d",
    "\u0301",
    "\u202e",
    "\n",
    "\r",
    "\t",
    "\u00a0",
]
SPACES = [" ", "  ", "   ", " " * 20, "▁", "▁▁", " ▁ ", "\u3000", "\t", "\n\n"]
INVALID = [
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x96",
    b"\x81",
    b"\xf0\x9f",
    b"\xc3",
]
COMBINING = [chr(c) for c in range(0x300, 0x370)] + [
    "\u0903",
    "\u093f",
    "\u0e31",
    "\u3099",
    "\u1161",
    "\u11a8",
]
BIDI = ["\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u2066", "\u2069", "א", "ب", "ש", "ي"]


class TextMaker:
    """Makes texts from a seed: about 20 kinds of fragments, put together at random."""

    def __init__(self, seed: int, pieces: list[str], sentences: list[str]):
        self.rng = random.Random(seed)
        self.pieces = pieces
        self.words = [word for sentence in sentences for word in sentence.split(" ")]
        self.alphabet = sorted({character for piece in pieces for character in piece})
        self.kinds: list[Callable[[], str]] = [
            lambda: self.rng.choice(self.words),
            lambda: self.rng.choice(self.words) + " " + self.rng.choice(self.words),
            lambda: self.rng.choice(self.pieces),
            lambda: "".join(self.rng.choices(self.pieces, k=self.rng.randint(1, 4))),
            lambda: "".join(self.rng.choices(self.pieces, k=3)).replace("▁", " "),
            lambda: "".join(self.rng.choices(self.alphabet, k=self.rng.randint(1, 8))),
            lambda: self.rng.choice(SPACES),
            lambda: self.rng.choice(SPACES),
            lambda: self.rng.choice(MARKS),
            lambda: self.rng.choice(SPECIALS),
            lambda: self.rng.choice(self.alphabet + MARKS) * self.rng.choice([2, 3, 7, 40]),
            self.any_character,
            lambda: "".join(self.any_character() for _ in range(self.rng.randint(1, 5))),
            lambda: "".join(self.rng.choices("abcdz=x -~\u00e9\0", k=self.rng.randint(1, 12))),
            lambda: self.rng.choice(self.words) + "".join(self.rng.choices(COMBINING, k=2)),
            lambda: "".join(self.rng.choices(BIDI, k=self.rng.randint(1, 5))),
            lambda: str(self.rng.randint(0, 10**6)),
            lambda: self.rng.choice(self.words)[: self.rng.randint(0, 3)],
            lambda: unicodedata.normalize(self.rng.choice(["NFD", "NFKC"]), self.rng.choice(self.words)),
            lambda: self.rng.choice("z=x") * self.rng.randint(1, 140),
        ]

    def any_character(self) -> str:
        """A character of any plane, assigned or not, but no surrogate."""
        code = self.rng.choice(PLANES) + self.rng.randrange(0x10000)
        if self.rng.random() < 0.4:
            code = self.rng.randrange(0x3000)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def text(self) -> str:
        return "".join(self.rng.choice(self.kinds)() for _ in range(self.rng.choice([0, 1, 1, 2, 3, 5, 9])))

    def broken(self) -> bytes:
        """Bytes that are mostly text and somewhere invalid."""
        data = bytearray(self.text().encode())
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randint(0, len(data))
            if self.rng.random() < 0.5:
                data[at:at] = self.rng.choice(INVALID)
            else:
                del data[at : at + self.rng.randint(1, 3)]
        return bytes(data)


CHARACTERS = st.characters(exclude_categories=["Cs"])


def texts(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """The same ideas for hypothesis, which shrinks what fails to the smallest text that still does."""
    return _texts(tuple(pieces))


def broken(pieces: Sequence[str]) -> st.SearchStrategy[bytes]:
    """Bytes that need not be valid UTF-8."""
    return _broken(tuple(pieces))


# What is drawn from is kept, which takes as long to make as some draws.


@cache
def _texts(pieces: tuple[str, ...]) -> st.SearchStrategy[str]:
    fragments = st.one_of(
        st.text(CHARACTERS, max_size=8),
        st.sampled_from(pieces),
        st.sampled_from(pieces).map(lambda piece: piece.replace("▁", " ")),
        st.sampled_from(SPACES + MARKS + SPECIALS + BIDI),
        st.text(st.sampled_from("abcdz=x \u00e9▁"), max_size=12),
        st.builds(lambda character, count: character * count, CHARACTERS, st.integers(2, 60)),
        st.text(st.sampled_from(COMBINING), max_size=3),
    )
    return st.lists(fragments, max_size=8).map("".join)


@cache
def _broken(pieces: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    fragments = st.one_of(st.binary(max_size=6), st.sampled_from(INVALID), _texts(pieces).map(str.encode))
    return st.lists(fragments, max_size=4).map(b"".join)
