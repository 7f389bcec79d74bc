"""Texts for byte-level models, of every kind, and small vocabularies that show where a text was cut."""

import random
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import product

from hypothesis import strategies as st

from cpbpe.reference.byte_level.encoding import BYTES
from tests.support import corpus
from tests.support.budget import SEED
from tests.support.texts import TextMaker

_WORDS = "a s S \u017f t re LL V é ß Ω ω ǅ ʰ 中 あ ا \u0301 \u0903 1 42 ² Ⅳ ٣ ½ 一"
_MARKS = "' ’ . , ! / // _ - ( <| |> $ + 😀 👨‍👩‍👧 \u200d \0 \ufffd"
CLASSES = [
    *_WORDS.split(" "),
    *(" ", "  ", "\t", "\n", "\r", "\r\n", "\n\n", "\u0085", "\u2028", "\u00a0", "\u3000", "\x1c", "\x0b"),
    *_MARKS.split(" "),
]
"""At least one of each class of characters that the patterns tell apart, and what they look for."""


def known(text: str) -> str:
    """The text without characters on which versions of Unicode differ.

    The package regex and tiktoken have tables of different versions: of characters that a newer one has
    added, and of U+0295, which became a letter without case.
    """
    return "".join(c for c in text if unicodedata.category(c) not in ("Cn", "Cs") and c != "\u0295")


def texts(count: int, pieces: list[str], seed: int = SEED) -> Iterator[str]:
    """Texts from a seed: some of the characters that patterns look at, some of everything."""
    maker = TextMaker(seed, pieces, corpus.lines())
    rng = random.Random(seed)
    for number in range(count):
        if number % 2:
            yield known(maker.text())
        else:
            yield "".join(rng.choices(CLASSES, k=rng.randint(1, 14)))


any_text = st.lists(
    st.one_of(
        st.sampled_from(CLASSES), st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(known)
    ),
    max_size=14,
).map("".join)
"""The same for hypothesis."""


def decoded(pieces: Iterator[bytes] | list[bytes]) -> list[str]:
    """The pieces that are texts."""
    return [text for text in (piece.decode(errors="replace") for piece in pieces) if "\ufffd" not in text]


@cache
def pairs() -> dict[bytes, int]:
    """Ranks in which any two bytes are a piece, so that almost every cut changes the ids around it."""
    two = [left + right for left, right in product(BYTES, BYTES)]
    random.Random(1).shuffle(two)
    return {piece: rank for rank, piece in enumerate([*BYTES, *two])}
