"""Training gives sentencepiece's models, byte for byte: option sets on corpora, and random small cases.

`CPBPE_TRAIN=full` runs every option set on every corpus, up to 5 MB each (for the core; the reference takes
its time). `CPBPE_EXAMPLES` sets how many random cases there are.
"""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ENGINES
from tests.support import budget, tiers, train_corpora
from tests.support.train_cases import CHOICES, IDENTITY, LLAMA2, OPTIONS
from tests.support.train_parity import build_at, check, difference, ours, theirs

FULL = os.environ.get("CPBPE_TRAIN") == "full"
EXAMPLES = budget.examples(150)

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
        **{name: st.sampled_from(values) for name, values in CHOICES.items()},
        "required_chars": st.text("abя\x1f🦙", max_size=3),
        "user_defined_symbols": st.lists(st.text("ab▁c", min_size=1, max_size=3), max_size=3, unique=True),
        "control_symbols": st.lists(st.text("de<>", min_size=1, max_size=3), max_size=2, unique=True),
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
