"""Choosing some sentences of a corpus: the first ones, or a sample of all.

sentencepiece draws a new sample in every run. This one depends only on the corpus and the seed.
"""

from __future__ import annotations

from random import Random


class Sample:
    """Up to `size` of all sentences that are offered, each with the same chance (reservoir sampling).

    Without `shuffle` the sample is the first ones.

    >>> sample = Sample(3, shuffle=True, seed=1)
    >>> for number in range(100):
    ...     _ = sample.offer(b"%d" % number, 1)
    >>> len(sample.sentences), sample.offered
    (3, 100)
    """

    def __init__(self, size: int, shuffle: bool, seed: int):
        self._size = size
        self._shuffle = shuffle
        self._random = Random(seed).random  # the same numbers on every machine and in every Python
        self.sentences: list[bytes] = []
        """The sentences chosen so far."""
        self.counts: list[int] = []
        """How many times each of them counts."""
        self.offered = 0
        """How many sentences there were to choose from."""

    def offer(self, sentence: bytes, count: int) -> bool:
        """Take the sentence, or not. False if all later ones would be refused, so reading can end."""
        self.offered += 1
        if len(self.sentences) < self._size:
            self.sentences.append(sentence)
            self.counts.append(count)
            return self._shuffle or len(self.sentences) < self._size
        if self._shuffle:
            place = int(self._random() * self.offered)
            if place < self._size:
                self.sentences[place] = sentence
                self.counts[place] = count
        return self._shuffle
