"""Cases for training: sets of options, random options and corpora, and what hypothesis draws them from."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from cpbpe.reference.training_values import PieceLimits
from tests.support.train_corpora import lines
from tests.support.varied import Varied


def piece_limits(lengths: Sequence[int]) -> st.SearchStrategy[PieceLimits]:
    """Which strings may become a piece: any choice of options, and one of some greatest lengths."""
    return st.builds(
        PieceLimits,
        max_sentencepiece_length=st.sampled_from(lengths),
        split_by_unicode_script=st.booleans(),
        split_by_number=st.booleans(),
        split_digits=st.booleans(),
        split_by_whitespace=st.booleans(),
        treat_whitespace_as_suffix=st.booleans(),
        allow_whitespace_only_pieces=st.booleans(),
    )


# --- Sets of options ------------------------------------------------------------------------------

LLAMA2: dict[str, Any] = {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "byte_fallback": True,
    "character_coverage": 0.99995,
    "split_digits": True,
    "allow_whitespace_only_pieces": True,
    "hard_vocab_limit": False,
}
IDENTITY: dict[str, Any] = {"normalization_rule_name": "identity", "hard_vocab_limit": False}

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {"hard_vocab_limit": False},
    "llama2": LLAMA2,
    "identity": IDENTITY,
    # normalization
    "nfkc": {"normalization_rule_name": "nfkc", "hard_vocab_limit": False},
    "nfkc_cf": {"normalization_rule_name": "nfkc_cf", "hard_vocab_limit": False},
    "nmt_nfkc_cf": {"normalization_rule_name": "nmt_nfkc_cf", "hard_vocab_limit": False},
    "no dummy prefix": {**IDENTITY, "add_dummy_prefix": False},
    "extra whitespace": {**IDENTITY, "remove_extra_whitespaces": False},
    "neither": {**IDENTITY, "remove_extra_whitespaces": False, "add_dummy_prefix": False},
    # what a piece may be
    "one character": {**IDENTITY, "max_sentencepiece_length": 1},
    "two characters": {**IDENTITY, "max_sentencepiece_length": 2},
    "five characters": {**IDENTITY, "max_sentencepiece_length": 5},
    "long pieces": {**IDENTITY, "max_sentencepiece_length": 100},
    "very long pieces": {**IDENTITY, "max_sentencepiece_length": 512, "split_by_whitespace": False},
    "any script": {**IDENTITY, "split_by_unicode_script": False},
    "numbers go along": {**IDENTITY, "split_by_number": False},
    "digits alone": {**IDENTITY, "split_digits": True},
    "digits alone, numbers go along": {**IDENTITY, "split_digits": True, "split_by_number": False},
    "any script, digits alone": {**IDENTITY, "split_digits": True, "split_by_unicode_script": False},
    "any script, numbers go along": {
        **IDENTITY,
        "split_by_number": False,
        "split_by_unicode_script": False,
    },
    "several words": {**IDENTITY, "split_by_whitespace": False},
    "several words, runs of spaces": {
        **IDENTITY,
        "split_by_whitespace": False,
        "allow_whitespace_only_pieces": True,
        "remove_extra_whitespaces": False,
    },
    "several words, any script": {
        **IDENTITY,
        "split_by_whitespace": False,
        "split_by_unicode_script": False,
    },
    "several words, suffix": {
        **IDENTITY,
        "split_by_whitespace": False,
        "treat_whitespace_as_suffix": True,
    },
    "several words, suffix, runs": {
        **IDENTITY,
        "split_by_whitespace": False,
        "treat_whitespace_as_suffix": True,
        "allow_whitespace_only_pieces": True,
        "remove_extra_whitespaces": False,
    },
    "suffix": {**IDENTITY, "treat_whitespace_as_suffix": True},
    "suffix, runs of spaces": {
        **IDENTITY,
        "treat_whitespace_as_suffix": True,
        "allow_whitespace_only_pieces": True,
        "remove_extra_whitespaces": False,
    },
    "suffix, no dummy": {**IDENTITY, "treat_whitespace_as_suffix": True, "add_dummy_prefix": False},
    "suffix, nmt_nfkc": {"treat_whitespace_as_suffix": True, "hard_vocab_limit": False},
    "runs of spaces": {
        **IDENTITY,
        "allow_whitespace_only_pieces": True,
        "remove_extra_whitespaces": False,
    },
    "runs of spaces, squeezed": {**IDENTITY, "allow_whitespace_only_pieces": True},
    # characters
    "98 % of characters": {**IDENTITY, "character_coverage": 0.98},
    "99 % of characters": {**IDENTITY, "character_coverage": 0.99},
    "all characters": {**IDENTITY, "character_coverage": 1.0},
    "99 %, bytes": {**IDENTITY, "character_coverage": 0.99, "byte_fallback": True},
    "required": {**IDENTITY, "character_coverage": 0.98, "required_chars": "xyzßЖ語🦙"},
    "required, all": {**IDENTITY, "character_coverage": 1.0, "required_chars": "aeiou語🦙\x1f"},
    "auto coverage": {**IDENTITY, "byte_fallback": True, "auto_character_coverage": True},
    "auto coverage, small": {
        **LLAMA2,
        "auto_character_coverage": True,
        "vocab_size": 400,
    },
    "auto coverage, several words": {
        **LLAMA2,
        "auto_character_coverage": True,
        "split_by_whitespace": False,
    },
    # special pieces
    "bytes": {**IDENTITY, "byte_fallback": True},
    "bytes, no unk": {**IDENTITY, "byte_fallback": True, "unk_id": -1},
    "pad": {**IDENTITY, "pad_id": 3},
    "ids elsewhere": {**IDENTITY, "unk_id": 5, "bos_id": 7, "eos_id": 300, "pad_id": 0, "vocab_size": 400},
    "no bos, no eos": {**IDENTITY, "bos_id": -1, "eos_id": -1},
    "names": {
        **IDENTITY,
        "pad_id": 3,
        "unk_piece": "[UNK]",
        "bos_piece": "[BOS]",
        "eos_piece": "[EOS]",
        "pad_piece": "[PAD]",
        "unk_surface": "?",
    },
    "control symbols": {**IDENTITY, "control_symbols": ["<sep>", "<cls>", "the"]},
    "user-defined symbols": {**IDENTITY, "user_defined_symbols": ["the", "th", "▁of", "e", "日本", "\t"]},
    "both kinds of symbols": {
        **LLAMA2,
        "control_symbols": ["<pad>", "return"],
        "user_defined_symbols": ["    ", "▁▁▁▁", "</s", "def"],
    },
    "bos is a symbol": {**IDENTITY, "user_defined_symbols": ["<s>", "x"], "control_symbols": ["</s>"]},
    "delimiter": {**IDENTITY, "pretokenization_delimiter": "e"},
    "delimiter of two": {**LLAMA2, "pretokenization_delimiter": "th"},
    "delimiter, auto coverage": {
        **LLAMA2,
        "auto_character_coverage": True,
        "pretokenization_delimiter": "▁",
    },
    # sizes
    "tiny": {**IDENTITY, "vocab_size": 120, "character_coverage": 0.98},
    "all there is": {**IDENTITY, "vocab_size": 50_000},
    "all there is, llama2": {**LLAMA2, "vocab_size": 50_000},
    "all there is, suffix": {
        **IDENTITY,
        "vocab_size": 50_000,
        "treat_whitespace_as_suffix": True,
        "allow_whitespace_only_pieces": True,
        "remove_extra_whitespaces": False,
    },
    "hard limit": {"normalization_rule_name": "identity", "character_coverage": 0.98},
    "short sentences only": {**IDENTITY, "max_sentence_length": 60},
    "long sentences too": {**IDENTITY, "max_sentence_length": 1 << 30},
    # what is only recorded
    "recorded": {
        **IDENTITY,
        "num_threads": 2,
        "seed_sentencepiece_size": 5,
        "shrinking_factor": 0.8,
        "num_sub_iterations": 1,
        "input_format": "text",
        "vocabulary_output_piece_score": False,
        "shuffle_input_sentence": False,
    },
}


# --- Random ones ----------------------------------------------------------------------------------

BOOLEANS = [False, True]
CHOICES: dict[str, list[Any]] = {
    "normalization_rule_name": ["identity", "identity", "nmt_nfkc", "nfkc", "nfkc_cf"],
    "add_dummy_prefix": BOOLEANS,
    "remove_extra_whitespaces": BOOLEANS,
    "max_sentencepiece_length": [1, 2, 3, 5, 30],
    "split_by_unicode_script": BOOLEANS,
    "split_by_number": BOOLEANS,
    "split_digits": BOOLEANS,
    "split_by_whitespace": BOOLEANS,
    "treat_whitespace_as_suffix": BOOLEANS,
    "allow_whitespace_only_pieces": BOOLEANS,
    "character_coverage": [0.98, 0.985, 0.99, 0.995, 1.0],
    "pretokenization_delimiter": ["a", "ab", "▁", "  "],
    "max_sentence_length": [10, 30, 4192],
    "pad_id": [-1, 3, 4],
    "bos_id": [-1, 1],
}
"""Values that options may have, whatever the others are."""
RARE = ("max_sentencepiece_length", "max_sentence_length", "pretokenization_delimiter")
"""Options that leave little to learn, if they are among the random ones of a large corpus."""


@cache
def invented() -> list[str]:
    """Words of several scripts, in which some syllables are frequent."""
    return [word for line in lines("mixed") for word in line.decode().split(" ") if word]


def random_options(chance: random.Random) -> dict[str, Any]:
    """One of the sets, or no set, and some options at random."""
    options = dict(chance.choice([{}, *OPTIONS.values()]))
    share = chance.choice((0.0, 0.1, 0.5))
    for name, values in CHOICES.items():
        if chance.random() < (share / 5 if name in RARE else share):
            options[name] = chance.choice(values)
    if chance.randrange(4) == 0:
        options["byte_fallback"] = True
    if chance.randrange(4) == 0:
        words = dict.fromkeys(chance.choices(invented(), k=5))
        options["user_defined_symbols"] = [w for w in words if w not in options.get("control_symbols", ())]
    options.setdefault("hard_vocab_limit", chance.randrange(20) == 0)
    options["vocab_size"] = chance.choice((700, 1000, 2000, 4000, 8000, 16_000, 32_000))
    return options


def random_sentences(chance: random.Random, texts: Varied) -> list[bytes]:
    """The lines of texts, of a thousand bytes to a million, more often of few."""
    size = int(1000 * 1000 ** chance.random())
    found: list[str] = []
    for text in texts.texts(size):
        found += text.split("\n")
        if sum(map(len, found)) > 2 * size:
            break
    # sentencepiece's Python package takes newlines off the end of a sentence
    return [line.encode().rstrip(b"\r\n") for line in found]
