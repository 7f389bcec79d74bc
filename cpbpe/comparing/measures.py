"""What is counted of a text: bytes, characters, words; and of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from cpbpe.comparing.subjects import BYTE, UNKNOWN, Subject
from cpbpe.lazy import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALPHA = 2.5
"""The order of the Rényi entropy that Zouhar et al., "Tokenization and the Noiseless Channel" (2023), found
to go together with the quality of translations."""


def words_in(text: str) -> int:
    """How many words a text has: runs of characters that are not white space.

    >>> words_in("two  words"), words_in("日本語の文"), words_in(" ")
    (2, 1, 0)
    """
    return len(text.split())


def renyi_efficiency(counts: NDArray[np.int64], size: int) -> float | None:
    """How evenly tokens are used: the Rényi entropy of their frequencies, of what `size` ids can have.

    1 if all ids are equally frequent, near 0 if a few make up the text; None if there is no choice.

    >>> import numpy as np
    >>> renyi_efficiency(np.array([5, 5, 5, 5]), 4), round(renyi_efficiency(np.array([97, 1, 1, 1]), 4), 3)
    (1.0, 0.037)
    """
    np = numpy()
    total = int(counts.sum())
    if total == 0 or size < 2:
        return None
    shares = counts[counts > 0] / total
    entropy = np.log2(np.sum(shares**ALPHA)) / (1 - ALPHA)
    return float(entropy / np.log2(size))


class Tally:
    """The tokens of a text with one model, counted block by block."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.counts: NDArray[np.int64] = numpy().zeros(subject.size, numpy().int64)
        self.changed = 0
        """Texts that decoding does not give back, among those that were tried."""
        self.example: str | None = None
        """One of them."""

    def add(self, texts: Sequence[str], check: bool) -> None:
        """Count the tokens of some texts; look whether decoding gives them back."""
        np = numpy()
        encoded = self.subject.encode(list(texts))
        every = np.fromiter(chain.from_iterable(encoded), np.int64, sum(map(len, encoded)))
        self.counts += np.bincount(every, minlength=len(self.counts))
        if check:
            for text, ids in zip(texts, encoded, strict=True):
                if self.subject.decode(ids) != text:
                    self.changed += 1
                    if self.example is None or len(text) < len(self.example):
                        self.example = text

    @property
    def tokens(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def of_kind(self, kind: int) -> int:
        """How many are of a kind."""
        return int(self.counts[self.subject.kinds == kind].sum())

    @property
    def bytes(self) -> int:
        """Tokens that are bytes, or parts of characters."""
        return self.of_kind(BYTE)

    @property
    def unknown(self) -> int:
        """Tokens for what the model does not know."""
        return self.of_kind(UNKNOWN)
