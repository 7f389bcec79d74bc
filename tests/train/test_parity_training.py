"""Training gives sentencepiece's models, byte for byte: option sets on corpora, and random small cases.

`CPBPE_TRAIN=full` runs every option set on every corpus, up to 5 MB each (for the core; the reference takes
its time). `CPBPE_EXAMPLES` sets how many random cases there are.
"""

import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpbpe.errors import TrainingError
from tests.conftest import ENGINES
from tests.support import budget, tiers, train_corpora
from tests.support.train_parity import (
    RefusedError,
    Trained,
    build_at,
    difference,
    ours,
    special_pieces,
    theirs,
)

FULL = os.environ.get("CPBPE_TRAIN") == "full"
EXAMPLES = budget.examples(150)

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


def check(options: Mapping[str, Any], sentences: list[bytes], threads: int = 1) -> Trained | None:
    """Train twice; None if both refuse."""
    options = {"vocab_size": 1000, **options}
    model = refusal = None
    try:
        model = theirs(sentences, options)
    except RefusedError as error:
        refusal = str(error)
    try:
        mine = ours(sentences, options, threads)
    except TrainingError:
        assert refusal, "sentencepiece trains"
        return None
    if model is None:
        assert reason(options, mine), f"sentencepiece refuses: {refusal}"
        return None
    assert mine.built.data == model, f"{options}: {difference(mine.built.data, model)}"
    return mine


def reason(options: Mapping[str, Any], mine: Trained) -> str:
    """Why sentencepiece had to refuse, judged by what was trained here."""
    if mine.built.size < options["vocab_size"] and options.get("hard_vocab_limit", True):
        return "too few pieces"
    if len(mine.learned.characters) + len(special_pieces(options)) > options["vocab_size"]:
        return "too many characters"
    if not sum(mine.learned.character_counts) + sum(mine.learned.dropped_counts):
        return "nothing to train on"
    if len(set(mine.built.spec.pieces.texts)) < mine.built.size:
        return "a special piece is a required character too"
    if mine.learned.boundaries and not mine.learned.characters:
        return "nothing but symbols"
    return ""


CORPORA = ["english", "japanese", "mixed", "code"]
DAILY = ["llama2", "nfkc", "several words", "suffix", "required", "both kinds of symbols", "delimiter of two"]


@pytest.mark.parametrize("corpus", tiers.some(CORPORA, ["mixed"]))
@pytest.mark.parametrize("name", tiers.some(OPTIONS, DAILY))
def test_matrix(name: str, corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option set on every corpus, with the core if it is there."""
    monkeypatch.setenv("CPBPE_ENGINE", ENGINES[0])
    options = OPTIONS[name]
    sentences = train_corpora.lines(corpus, FULL)
    # 8,000 pieces for large corpora, even where an option set asks for fewer than they have characters; where
    # the small corpora stand in for large ones, 8,000 may be too many.
    attempts = (
        [{"vocab_size": 8000, **options}, {**options, "vocab_size": 8000}, options] if FULL else [options]
    )
    assert any(check(attempt, sentences, threads=2) is not None for attempt in attempts)


@pytest.mark.parametrize("name", tiers.some(OPTIONS, DAILY))
def test_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option set on one small corpus, with the reference."""
    monkeypatch.setenv("CPBPE_ENGINE", "reference")
    assert check(OPTIONS[name], train_corpora.lines(CORPORA[len(name) % 4])) is not None


@pytest.mark.skipif(not FULL, reason="CPBPE_TRAIN=full")
@pytest.mark.parametrize("path", train_corpora.large(), ids=lambda path: path.stem)
@pytest.mark.parametrize("vocab_size", [32_000, 128_000])
def test_large(path: Path, vocab_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Llama 2's settings, and a file of any size."""
    from sentencepiece import SentencePieceTrainer

    monkeypatch.setenv("CPBPE_ENGINE", ENGINES[0])
    prefix = tmp_path / "model"
    options = {**LLAMA2, "vocab_size": vocab_size, "input": str(path), "model_prefix": str(prefix)}
    SentencePieceTrainer.train(model_type="bpe", minloglevel=4, **options)
    mine = ours(path, {**options, "input": [str(path)]}, threads=2)
    assert mine.built.data == prefix.with_suffix(".model").read_bytes()
    assert mine.vocab == prefix.with_suffix(".vocab").read_bytes()


def test_vocab_file_and_paths(tmp_path: Path, engine: str) -> None:
    """The two files as sentencepiece writes them, from a file, with the names of both in the model."""
    from sentencepiece import SentencePieceTrainer

    corpus, prefix = tmp_path / "corpus.txt", tmp_path / "model"
    corpus.write_bytes(b"\n".join(train_corpora.lines("mixed")))
    for scores in (True, False):
        options: dict[str, Any] = {
            "input": str(corpus),
            "model_prefix": str(prefix),
            "vocab_size": 700,
            "vocabulary_output_piece_score": scores,
            **LLAMA2,
        }
        SentencePieceTrainer.train(model_type="bpe", minloglevel=4, **options)
        mine = ours(corpus.read_bytes().split(b"\n"), {**options, "input": [str(corpus)]})
        assert mine.built.data == prefix.with_suffix(".model").read_bytes()
        assert mine.vocab == prefix.with_suffix(".vocab").read_bytes()


@pytest.mark.parametrize(
    ("coverage", "counts"),
    [
        # 0.99989999 is less than 0.9999, but as float32, in which sentencepiece compares, it is not
        (0.9999, {"a": 99_989_999, "b": 10_001}),
        (0.9999, {"a": 99_989_990, "b": 10_010}),
        (0.98, {"ab": 1 << 40, "abc": 3 << 33, "bcd": 1 << 35, "d d": 5}),
        (1.0, {"abab": 1 << 52, "baba": 1, "aab": (1 << 52) + 1, "c" * 9: 7}),
    ],
)
def test_sentences_with_counts(coverage: float, counts: dict[str, int], tmp_path: Path, engine: str) -> None:
    """A TSV file, with counts that need 64 bits."""
    import io

    from sentencepiece import SentencePieceTrainer

    corpus, model = tmp_path / "corpus.tsv", io.BytesIO()
    corpus.write_text("".join(f"{sentence}\t{count}\n" for sentence, count in counts.items()))
    options: dict[str, Any] = {**IDENTITY, "add_dummy_prefix": False, "character_coverage": coverage}
    options.update(input=str(corpus), input_format="tsv")
    SentencePieceTrainer.train(model_type="bpe", minloglevel=4, model_writer=model, **options)
    stored = {**options, "input": [str(corpus)]}
    mine = ours([sentence.encode() for sentence in counts], stored, counts=list(counts.values()))
    assert mine.built.data == model.getvalue(), difference(mine.built.data, model.getvalue())


def test_rules_from_a_file(tmp_path: Path, engine: str) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("41\t61\n42\t62 62\t# comment\n  43 43\tU+0063\nAD\n3042\t3044 20\n0x44\t65\r\n")
    options = {**IDENTITY, "normalization_rule_tsv": str(rules)}
    del options["normalization_rule_name"]
    sentences = [b"ABC CC CCC D\xc2\xad", "あの あい B".encode(), b"AB AB aab"]
    assert check(options, sentences) is not None


def test_smaller_vocabularies(engine: str) -> None:
    """One run gives the model of every smaller vocabulary."""
    sentences = train_corpora.lines("mixed")
    for options in (LLAMA2, {**LLAMA2, "auto_character_coverage": True}):
        largest = ours(sentences, {**options, "vocab_size": 1500})
        for size in (700, 701, 850, 999, 1000, 1499):
            smaller = {**options, "vocab_size": size}
            built = build_at(largest.learned, smaller, size)
            assert built.data == theirs(sentences, smaller), size


# --- Random cases ---------------------------------------------------------------------------------

ALPHABETS = [
    "a",
    "ab",
    "abc ",
    "aab b  ",
    "abAB01 .",
    "a▁ b\u0301я",
    "01２３a. ",
    "日本にカーｶ語a ",
    "a\u0301\u0308я\u200d1",
    "\x1fa\0b c▅",
    "<s>a</unk> e",
    "🦙a\ufffdé\u2028ａ Ａ",
    "\t\r\na  b",
]

sentences_of = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.lists(st.text(st.sampled_from(alphabet), max_size=40), min_size=1, max_size=12)
)
broken = st.lists(st.binary(max_size=20), min_size=1, max_size=5)


@st.composite
def corpora(draw: st.DrawFn) -> list[bytes]:
    lines = [line.encode() for line in draw(sentences_of)]
    if draw(st.booleans()):
        lines += [line.encode() for line in draw(sentences_of)]
    if draw(st.integers(0, 4)) == 0:
        lines += draw(broken)
    if draw(st.booleans()):  # repeat some, so that counts differ
        lines += lines[: draw(st.integers(1, len(lines)))] * draw(st.integers(1, 5))
    # the iterator of sentencepiece's Python package takes newlines off the end
    return [line.rstrip(b"\r\n") for line in lines]


booleans = st.booleans()
random_options = st.fixed_dictionaries(
    {"vocab_size": st.integers(5, 90), "hard_vocab_limit": st.sampled_from([False, False, False, True])},
    optional={
        "normalization_rule_name": st.sampled_from(["identity", "identity", "nmt_nfkc", "nfkc", "nfkc_cf"]),
        "add_dummy_prefix": booleans,
        "remove_extra_whitespaces": booleans,
        "max_sentencepiece_length": st.sampled_from([1, 2, 3, 5, 30]),
        "split_by_unicode_script": booleans,
        "split_by_number": booleans,
        "split_digits": booleans,
        "split_by_whitespace": booleans,
        "treat_whitespace_as_suffix": booleans,
        "allow_whitespace_only_pieces": booleans,
        "character_coverage": st.sampled_from([0.98, 0.985, 0.99, 0.995, 1.0]),
        "required_chars": st.text("abя\x1f🦙", max_size=3),
        "user_defined_symbols": st.lists(st.text("ab▁c", min_size=1, max_size=3), max_size=3, unique=True),
        "control_symbols": st.lists(st.text("de<>", min_size=1, max_size=3), max_size=2, unique=True),
        "pretokenization_delimiter": st.sampled_from(["a", "ab", "▁", "  "]),
        "max_sentence_length": st.sampled_from([10, 30, 4192]),
        "pad_id": st.sampled_from([-1, 3, 4]),
        "bos_id": st.sampled_from([-1, 1]),
    },
)


@st.composite
def options_with_bytes(draw: st.DrawFn) -> dict[str, Any]:
    options: dict[str, Any] = draw(random_options)
    if draw(st.integers(0, 2)) == 0:
        options["byte_fallback"] = True
        options["vocab_size"] += 256
        if draw(booleans):
            options["auto_character_coverage"] = True
            options.pop("required_chars", None)
    return options


@tiers.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(corpora(), options_with_bytes())
def test_random(engine: str, sentences: list[bytes], options: dict[str, Any]) -> None:
    check(options, sentences)


@pytest.mark.parametrize("seed", tiers.some(range(4), [0]))
def test_random_words(seed: int, engine: str) -> None:
    """Few letters and many repetitions: pieces that overlap with themselves, equal frequencies, none left."""
    chance = random.Random(seed)
    for _ in range(max(10, EXAMPLES // 4)):
        letters = chance.choice(["a", "ab", "ab", "abc", "abcde"])
        sentences = []
        for _ in range(chance.randint(1, 30)):
            words = ["".join(chance.choices(letters, k=chance.randint(1, 14))) for _ in range(3)]
            sentences.append(" ".join(words).encode())
        check({**IDENTITY, "character_coverage": 1.0, "vocab_size": chance.randint(15, 150)}, sentences)
