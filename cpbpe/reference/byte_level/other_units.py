r"""Two tokenizers of a few lines, whose pieces are single characters, or whole words. Why nobody uses them.

Every tokenizer chooses a point between two ends. With characters as pieces, nothing is unknown that was
seen once and the vocabulary is small; but texts are long, and the model has to learn again and again that
c, a and t are a cat. With words as pieces, texts are short; but "cats" has nothing in common with "cat",
the vocabulary has no end, and what is not in it is lost. BPE starts at the first end, and goes as far
towards the second one as its vocabulary allows: frequent words are one piece, rare ones several, and none
is lost.

>>> corpus = "the cat sat on the mat"
>>> characters, words = CharacterLevel(corpus), WordLevel(corpus)
>>> len(characters.encode("the mat")), len(words.encode("the mat"))
(7, 2)
>>> characters.decode(characters.encode("the mats")), words.decode(words.encode("the mats"))
('the mats', 'the <unk>')
"""

from __future__ import annotations

from collections.abc import Iterable


class CharacterLevel:
    """One piece for each character of a corpus."""

    def __init__(self, corpus: str):
        self.pieces = sorted(set(corpus))
        self.ids = {piece: id for id, piece in enumerate(self.pieces)}

    def encode(self, text: str) -> list[int]:
        """The ids of a text. A character that the corpus does not have is an error: there is no id for it.

        >>> CharacterLevel("ab").encode("abc")
        Traceback (most recent call last):
        ...
        ValueError: 'c' is not in the vocabulary, which has 2 characters
        """
        unknown = [character for character in text if character not in self.ids]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not in the vocabulary, which has {len(self.pieces)} characters"
            )
        return [self.ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        return "".join([self.pieces[id] for id in ids])


class WordLevel:
    """One piece for each word of a corpus, and one for all other words."""

    def __init__(self, corpus: str):
        self.pieces = ["<unk>", *sorted(set(corpus.split()))]
        self.ids = {piece: id for id, piece in enumerate(self.pieces)}

    def encode(self, text: str) -> list[int]:
        """The ids of the words of a text."""
        return [self.ids.get(word, 0) for word in text.split()]

    def decode(self, ids: Iterable[int]) -> str:
        """The words of ids with spaces between them, whatever was there in the text."""
        return " ".join([self.pieces[id] for id in ids])
