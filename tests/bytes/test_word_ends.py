"""Words that end in `</w>`, against the plainest form of the algorithm and a pipeline of tokenizers."""

import gzip
import json
import random
from functools import cache
from itertools import pairwise

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from cpbpe.errors import ModelError
from cpbpe.reference.byte_level.word_ends import (
    CLIP_MERGES,
    CLIP_PATTERN,
    CharacterLevel,
    Clip,
    WordLevel,
    learn_pairs,
    merge_word,
)
from tests.bytes.making import texts
from tests.support import corpus, wheels
from tests.support.budget import SEED, examples

DIFFERENT = frozenset("&İ\u0345\x1c\x1d\x1e\x1f")
"""What the pipeline below treats in another way than CLIP does: an entity; a capital whose small form is
two characters; a mark whose capital is a letter, which CLIP's pattern loses because it ignores case; and
spaces for `str.split` only."""


@cache
def clip() -> Clip:
    return Clip.read(gzip.decompress(wheels.content("clip")))


@cache
def pipeline() -> tokenizers.Tokenizer:
    """CLIP out of the parts of tokenizers."""
    made = clip()
    model = models.BPE(made.ids, list(made.ranks), end_of_word_suffix="</w>")
    tok = tokenizers.Tokenizer(model)
    tok.normalizer = normalizers.Lowercase()
    pattern = tokenizers.Regex(CLIP_PATTERN)
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tok


@pytest.mark.slow
def test_clip_is_what_tokenizers_makes_of_it() -> None:
    assert len(clip().ids) == 49_408
    tried = 0
    for text in texts(examples(1500), corpus.lines()[:300]):
        if DIFFERENT.isdisjoint(text):
            tried += 1
            assert clip().encode(text) == pipeline().encode(text).ids, text
    assert tried > 500


@pytest.mark.slow
def test_clip() -> None:
    ids = clip().encode(" A photo of\n a&nbsp;cat, 2024 &lt;3!  ")
    assert clip().decode(ids) == "a photo of a cat , 2 0 2 4 < 3 ! "
    assert clip().encode("<|startoftext|>A cat<|EndOfText|>")[::3] == [49_406, 49_407]
    assert clip().encode("") == []
    assert clip().encode("a\u0345 b") == clip().encode("a b")
    assert len(clip().ranks) == CLIP_MERGES
    with pytest.raises(ModelError, match="line 3 of CLIP's merges is not a pair: 'ab'"):
        Clip.read(b"version\na b\nab\n")


def oracle(words: dict[str, int], merges: int) -> list[tuple[str, str]]:
    """The algorithm of the paper, with lists of symbols that are joined and replaced as strings."""
    split = {" ".join([*word[:-1], word[-1] + "</w>"]): count for word, count in words.items()}
    learned: list[tuple[str, str]] = []
    for _ in range(merges):
        counts: dict[tuple[str, str], int] = {}
        for text, count in split.items():
            symbols = text.split(" ")
            for pair in pairwise(symbols):
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            break
        best = sorted(counts, key=lambda pair: (counts[pair], pair))[-1]
        learned.append(best)
        after = {}
        for text, count in split.items():
            symbols, at = text.split(" "), 0
            while at < len(symbols) - 1:
                if (symbols[at], symbols[at + 1]) == best:
                    symbols[at : at + 2] = ["".join(best)]
                at += 1
            after[" ".join(symbols)] = count
        split = after
    return learned


def test_pairs_of_words() -> None:
    rng = random.Random(SEED)
    for _ in range(examples(200)):
        letters = rng.choice(["ab", "abc", "aé你"])
        words = {"".join(rng.choices(letters, k=rng.randint(1, 8))): rng.randint(1, 5) for _ in range(8)}
        merges = rng.randint(0, 25)
        learned = learn_pairs(words, merges)
        assert learned == oracle(words, merges)
        ranks = {pair: rank for rank, pair in enumerate(learned)}
        for word in words:
            assert "".join(merge_word(word, ranks)) == word + "</w>"
    assert merge_word("", {}) == []


def test_tokenizers_of_other_units() -> None:
    text = "the cat sat on the mat"
    characters, words = CharacterLevel(text), WordLevel(text)
    assert characters.decode(characters.encode(text)) == text
    assert words.decode(words.encode(text)) == text
    assert len(characters.pieces) == len(set(text))
    assert words.pieces == ["<unk>", "cat", "mat", "on", "sat", "the"]
    assert words.encode("a cat") == [0, 1]
    assert WordLevel("The dog. A dog").encode("A dog.") == [2, 4, 1]
    assert json.dumps(characters.encode("cat"))
    with pytest.raises(ValueError, match="'z' is not in the vocabulary, which has 10 characters"):
        characters.encode("cz")
