r"""Words that end in `</w>`: the original form of BPE for text, and CLIP's, which does the same with bytes.

BPE came to language models in a paper on translation (Sennrich, Haddow and Birch, 2016). There, a text is a
list of words with spaces between them, and no piece contains a space. To tell where words end, the last
character of each is marked, so that `est</w>` in "lowest" is another piece than `est` in "estate". GPT-2
turned this round: the space is a part of the word after it (`patterns.py`), so text can be restored exactly.
With `</w>` it cannot: all whitespace becomes one space, and CLIP also turns everything into lower case.

>>> words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
>>> merges = learn_pairs(words, 6)
>>> merges
[('s', 't</w>'), ('e', 'st</w>'), ('l', 'o'), ('w', 'est</w>'), ('n', 'e'), ('ne', 'west</w>')]
>>> merge_word("lowest", {pair: rank for rank, pair in enumerate(merges)})
['lo', 'west</w>']

That is how the authors' program, subword-nmt, has done it since its version 0.2. In the paper itself, `</w>`
is a symbol of its own, and of equally frequent pairs the first is merged. So both `est` and `est</w>` are
learned:

>>> words = {"old": 7, "older": 3, "finest": 9, "lowest": 4}
>>> ["".join(pair) for pair in learn_pairs(words, 5, as_in_paper=True)]
['es', 'est', 'est</w>', 'ol', 'old']

The file ends with two tokenizers of a few lines, one whose pieces are single characters and one whose pieces
are whole words. Nobody uses them, but they show the two extremes between which every tokenizer chooses.

With characters as pieces, every character of the corpus is known and the vocabulary is small; but texts are
long, and the model has to learn again and again that c, a and t are a cat. With words as pieces, texts are
short; but "cats" has nothing in common with "cat", the vocabulary has no end, and what is not in it is lost.
BPE starts at the first extreme, and goes as far towards the second as its vocabulary allows: frequent words
are one piece, rare ones several, and none is lost.

>>> corpus = "the cat sat on the mat"
>>> characters, words = CharacterLevel(corpus), WordLevel(corpus)
>>> len(characters.encode("the mat")), len(words.encode("the mat"))
(7, 2)
>>> characters.decode(characters.encode("the mats")), words.decode(words.encode("the mats"))
('the mats', 'the <unk>')
"""

from __future__ import annotations

import html
import re
from collections import Counter as Multiset
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from cpbpe.errors import ModelError
from cpbpe.reference.byte_level.patterns import compiled
from cpbpe.reference.merging import merge
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS, from_letters, to_letters

END = "</w>"
CLIP_MERGES = 48894
CLIP_SPECIAL_TOKENS = ("<|startoftext|>", "<|endoftext|>")
CLIP_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"
"""No whitespace, which is dropped; one digit at a time."""

Pair = tuple[str, str]


def first_symbols(word: str, as_in_paper: bool = False) -> list[str]:
    """The symbols that a word starts as.

    >>> first_symbols("low"), first_symbols("low", as_in_paper=True)
    (['l', 'o', 'w</w>'], ['l', 'o', 'w', '</w>'])
    """
    if as_in_paper:
        return [*word, END]
    return [*word[:-1], word[-1] + END] if word else []


def merge_word(word: str, ranks: Mapping[Pair, int]) -> list[str]:
    """The final symbols of a word: the pair with the lowest rank is merged first."""

    def joined(left: str, right: str) -> tuple[int, str] | None:
        rank = ranks.get((left, right))
        return None if rank is None else (rank, left + right)

    return merge(first_symbols(word), joined)


def learn_pairs(words: Mapping[str, int], merges: int, as_in_paper: bool = False) -> list[Pair]:
    """The merges of counted words. After each, everything is counted anew.

    Of equally frequent pairs, the one that sorts last is merged, as by subword-nmt; with `as_in_paper`, the
    one that is counted first.
    """
    split = {word: first_symbols(word, as_in_paper) for word in words}
    learned: list[Pair] = []
    for _ in range(merges):
        counts: Multiset[Pair] = Multiset()
        for word, symbols in split.items():
            for pair in pairwise(symbols):
                counts[pair] += words[word]
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], () if as_in_paper else pair))
        learned.append(best)
        for word, symbols in split.items():
            split[word] = merge(symbols, lambda *pair: (0, "".join(pair)) if pair == best else None)  # noqa: B023
    return learned


class Clip:
    """CLIP's tokenizer, which many models that generate images from text use.

    Its vocabulary has the 256 bytes in GPT-2's letters, the same with `</w>`, the merges, and two special
    tokens.
    """

    def __init__(self, merges: Sequence[Pair], special_tokens: Sequence[str] = CLIP_SPECIAL_TOKENS):
        letters = [LETTERS[byte] for byte in BYTE_ORDER]
        pieces = [*letters, *(letter + END for letter in letters), *map("".join, merges), *special_tokens]
        self.ids = {piece: id for id, piece in enumerate(pieces)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.special_tokens = tuple(special_tokens)
        self._pieces = pieces

    @classmethod
    def read(cls, file: bytes, special_tokens: Sequence[str] = CLIP_SPECIAL_TOKENS) -> Clip:
        """The tokenizer of `bpe_simple_vocab_16e6.txt`, unpacked. It has more merges than CLIP uses."""
        lines = file.decode().split("\n")[1 : CLIP_MERGES + 1]
        pairs = [line.partition(" ")[::2] for line in lines]
        for number, (left, right) in enumerate(pairs, 2):
            if not left or not right:
                raise ModelError(f"line {number} of CLIP's merges is not a pair: {lines[number - 2]!r}")
        return cls(pairs, special_tokens)

    def clean(self, text: str) -> str:
        r"""The text as CLIP sees it. (CLIP also repairs wrong encodings, with the package ftfy.)

        >>> Clip([]).clean(" A &amp;amp; B\n")
        'a & b'
        """
        return " ".join(html.unescape(html.unescape(text)).split()).lower()

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without the special tokens that CLIP puts around it.

        >>> clip = Clip([("a", "t</w>"), ("c", "at</w>")])
        >>> clip.decode(clip.encode("A  Cat sat"))
        'a cat sat '
        """
        pattern = "|".join([*map(re.escape, self.special_tokens), CLIP_PATTERN])
        ids: list[int] = []
        for chunk in compiled(f"(?i:{pattern})").findall(self.clean(text)):
            if chunk in self.special_tokens:
                ids.append(self.ids[chunk])
            else:
                ids += [self.ids[piece] for piece in merge_word(to_letters(chunk.encode()), self.ranks)]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The words of ids, each with a space after it."""
        letters = "".join([self._pieces[id] for id in ids])
        return from_letters(letters).decode(errors="replace").replace(END, " ")


# --- Other units: characters and words ------------------------------------------------------------


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
    """One piece for each word of a corpus, and one for all other words. A punctuation mark is a word, too.

    >>> WordLevel("The dog. A dog").pieces
    ['<unk>', '.', 'A', 'The', 'dog']
    """

    def __init__(self, corpus: str):
        self.pieces = ["<unk>", *sorted(set(_words(corpus)))]
        self.ids = {piece: id for id, piece in enumerate(self.pieces)}

    def encode(self, text: str) -> list[int]:
        """The ids of the words of a text."""
        return [self.ids.get(word, 0) for word in _words(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The words of ids with spaces between them, whatever was there in the text."""
        return " ".join([self.pieces[id] for id in ids])


def _words(text: str) -> list[str]:
    """The words of a text, and the punctuation marks between them."""
    return re.findall(r"\w+|[^\w\s]", text)
