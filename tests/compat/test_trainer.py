"""`cpbpe.compat.sentencepiece` takes sentencepiece's calls, as they are written, and writes its bytes."""

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from cpbpe.compat.sentencepiece import Error, SentencePieceTrainer
from tests.support import budget, tiers
from tests.support.corpus import lines

TEXTS = lines(500)
BASE: dict[str, Any] = {"model_type": "bpe", "minloglevel": 2}
FILES = ("my.model", "my.vocab")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("\n".join(TEXTS), newline="")
    Path("b.txt").write_text("\n".join(TEXTS[::3]) + "\nlast\r\n", newline="")
    Path("a,b.txt").write_text("\n".join(TEXTS[::2]), newline="")
    plain = [text.replace("\t", " ").replace("\n", " ") for text in TEXTS]
    counts = [f"{text}\t{1 + index % 7}" for index, text in enumerate(plain)]
    Path("a.tsv").write_text("\n".join(counts), newline="")
    Path("rules.tsv").write_text("41\t61\n61 62\t7A\n", newline="")


def made() -> dict[str, bytes]:
    found = {name: Path(name).read_bytes() for name in FILES if Path(name).exists()}
    for name in found:
        Path(name).unlink()
    return found


def both(run: Callable[[Any], object]) -> dict[str, bytes]:
    """The files that sentencepiece writes, which are those that this package writes."""
    run(sentencepiece.SentencePieceTrainer)
    theirs = made()
    run(SentencePieceTrainer)
    ours = made()
    assert set(ours) == set(FILES)
    assert ours == theirs
    return ours


CALLS: list[dict[str, Any]] = [
    {"input": "a.txt", "vocab_size": 800},
    {"input": "a.txt", "vocab_size": "800", "character_coverage": "0.99"},
    {"input": ["a.txt", "b.txt"], "vocab_size": 700, "normalization_rule_name": "identity"},
    {"input": "a.txt,b.txt", "vocab_size": 700, "normalization_rule_name": "nfkc"},
    {"input": ["a,b.txt", "b.txt"], "vocab_size": 700, "name": "nfkc_cf"},
    {"input": "a.tsv", "input_format": "tsv", "vocab_size": 700},
    {"input": "a.txt", "vocab_size": 700, "vocabulary_output_piece_score": False},
    {"input": "a.txt", "vocab_size": 90000, "hard_vocab_limit": False},
    {"input": "a.txt", "hard_vocab_limit": False, "byte_fallback": ""},
    {"input": "a.txt", "vocab_size": 900, "byte_fallback": True, "auto_character_coverage": "yes"},
    {"input": "a.txt", "vocab_size": 800, "num_threads": 3, "shrinking_factor": 0.8, "num_sub_iterations": 3},
    {
        "input": "a.txt",
        "vocab_size": 800,
        "seed_sentencepiece_size": 1000,
        "train_extremely_large_corpus": True,
    },
    {"input": "a.txt", "vocab_size": 800, "self_test_sample_size": 5, "accept_language": "en"},
    {"input": "a.txt", "vocab_size": 800, "unk_id": 3, "bos_id": -1, "eos_id": 0, "pad_id": 1},
    {"input": "a.txt", "vocab_size": 800, "control_symbols": ["<a>", "b,c", 'say "d"'], "unk_piece": "[U]"},
    {"input": "a.txt", "vocab_size": 800, "user_defined_symbols": "the,<s>,merge", "bos_piece": "<s>"},
    {"input": "a.txt", "vocab_size": 800, "required_chars": "ªǅ", "unk_surface": "?"},
    {"input": "a.txt", "vocab_size": 800, "add_dummy_prefix": False, "remove_extra_whitespaces": 0},
    {"input": "a.txt", "vocab_size": 800, "normalization_rule_tsv": "rules.tsv"},
    {"input": "a.txt", "vocab_size": 800, "denormalization_rule_tsv": "rules.tsv"},
    {"input": "a.txt", "vocab_size": 800, "split_by_whitespace": "no", "max_sentencepiece_length": 8},
    {"input": "a.txt", "vocab_size": 800, "treat_whitespace_as_suffix": "t", "split_by_number": "0"},
    {"input": "a.txt", "vocab_size": 800, "pretokenization_delimiter": "e", "max_sentence_length": 50},
    {"input": "a.txt", "vocab_size": 500, "input_sentence_size": 300, "shuffle_input_sentence": False},
    {"input": "a.txt", "vocab_size": 800, "input_sentence_size": 100000},
]


@tiers.slow_reference
@pytest.mark.parametrize("call", tiers.some(CALLS, CALLS[:6:5]), ids=str)
def test_files(engine: str, call: dict[str, Any]) -> None:
    both(lambda trainer: trainer.train(model_prefix="my", **BASE, **call))


def test_both_names_of_train(engine: str) -> None:
    both(lambda trainer: trainer.Train(input="a.txt", model_prefix="my", vocab_size=800, **BASE))


def test_a_string_of_flags(engine: str) -> None:
    flags = (
        "--input=a.txt,b.txt --model_prefix=my --model_type=BPE --vocab_size=700 --minloglevel=2 "
        "--control_symbols=<a>,<b> --byte_fallback --vocab_size=800 --split_digits=true"
    )
    both(lambda trainer: trainer.train(flags))


def test_iterators_and_writers(engine: str) -> None:
    def run(trainer: Any) -> bytes:
        out = io.BytesIO()
        texts: Iterator[str | bytes] = iter(["crlf\r\n", b"bytes", "a\nb", *TEXTS, ""])
        trainer.train(sentence_iterator=texts, model_writer=out, vocab_size=700, **BASE)
        return out.getvalue()

    assert run(SentencePieceTrainer) == run(sentencepiece.SentencePieceTrainer)


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_an_open_file_is_an_iterator(engine: str, mode: str) -> None:
    Path("crlf.txt").write_bytes(b"one\rtwo\r\n" * 5 + "\n".join(TEXTS).encode())

    def run(trainer: Any) -> bytes:
        out = io.BytesIO()
        with open("crlf.txt", mode) as file:
            trainer.train(
                sentence_iterator=file,
                model_writer=out,
                vocab_size=700,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                **BASE,
            )
        return out.getvalue()

    assert run(SentencePieceTrainer) == run(sentencepiece.SentencePieceTrainer)


def test_an_iterator_to_files(engine: str) -> None:
    both(
        lambda trainer: trainer.train(
            sentence_iterator=iter(TEXTS), model_prefix="my", vocab_size=700, **BASE
        )
    )


def test_a_pretokenizer(engine: str) -> None:
    def cut(text: str) -> list[str]:
        return [part + "e" for part in text.split("e")[:-1]] + [text.split("e")[-1]]

    both(
        lambda trainer: trainer.train(
            input="a.txt", model_prefix="my", vocab_size=600, pretokenizer=cut, **BASE
        )
    )


def test_a_pretokenizer_is_asked_about_texts_of_which_nothing_is_left(engine: str) -> None:
    texts = [*[" ", "\0"] * 100, *TEXTS[:20], "", "x" * 5000, "a\u2585b"]
    for more in ([], ["x"], ["\u2581", "q"]):

        def cut(text: str, more: list[str] = more) -> list[str]:
            return [text[:2], text[2:], *more]

        def run(trainer: Any, cut: Callable[[str], list[str]] = cut) -> None:
            trainer.train(
                sentence_iterator=iter(texts),
                model_prefix="my",
                vocab_size=400,
                hard_vocab_limit=False,
                character_coverage=0.98,
                pretokenizer=cut,
                allow_inconsistent_pretokenization=True,
                **BASE,
            )

        both(run)


@pytest.mark.parametrize("first", ["name", "normalization_rule_name"])
def test_of_two_names_of_rules_the_first_counts(first: str) -> None:
    names = {first: "identity"}
    names.update((name, "nfkc") for name in ("name", "normalization_rule_name") if name != first)
    both(lambda trainer: trainer.train(input="a.txt", model_prefix="my", vocab_size=700, **names, **BASE))


@pytest.mark.parametrize("rule", ["nmt_nfkc_cf", "identity"])
def test_a_normalizer(engine: str, rule: str) -> None:
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule, add_dummy_prefix=False)
    both(
        lambda trainer: trainer.train(
            input="a.txt", model_prefix="my", vocab_size=700, normalizer=normalizer, **BASE
        )
    )


def test_the_log_gets_the_report() -> None:
    log = io.StringIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=io.BytesIO(), vocab_size=700, logstream=log, **BASE
    )
    assert "left out      " not in log.getvalue()
    assert "merges" in log.getvalue()


# Calls that sentencepiece refuses too, unless said otherwise.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "unigram"}, "model_type is unigram, and cpbpe trains BPE models only"),  # theirs does
    ({"model_type": "word"}, "model_type is word, and cpbpe"),  # theirs does
    ({"model_type": "char"}, "model_type is char, and cpbpe"),  # theirs does
    ({"model_type": "bqe"}, "there is no 'bqe'"),
    ({"input": ""}, "either input, .* or sentence_iterator"),
    ({"sentence_iterator": iter(TEXTS)}, "either input, .* or sentence_iterator"),
    ({"model_writer": io.BytesIO()}, "either model_prefix, for files, or model_writer"),
    ({"model_prefix": ""}, "either model_prefix, for files, or model_writer"),
    ({"input_format": "csv"}, "input_format must be text or tsv, not 'csv'"),
    ({"input_format": "tsv"}, "a line of tsv is text, one tab and a count"),
    ({"vocab_size": "many"}, "vocab_size: 'many' is not an integer of 32 bits"),
    ({"vocab_size": 1.5}, "vocab_size: '1.5' is not an integer"),
    ({"vocab_size": 1 << 31}, "not an integer of 32 bits"),
    ({"vocab_size": None}, "vocab_size: 'None' is not an integer"),
    ({"input_sentence_size": -1}, "not an integer of 64 bits"),
    ({"character_coverage": "all"}, "character_coverage: 'all' is not a number"),
    ({"byte_fallback": "maybe"}, "byte_fallback: 'maybe' is neither true nor false"),
    ({"character_coverage": 0.5}, "character_coverage must be 0.98 to 1.0"),
    ({"max_sentence_length": 0}, "max_sentence_length must be from 10 to 1073741824, not 0"),
    ({"num_threads": 0}, "num_threads must be from 1 to 1024, not 0"),
    ({"num_sub_iterations": 11}, "num_sub_iterations must be from 1 to 10"),
    ({"shrinking_factor": 0.4}, "shrinking_factor must be from 0.5 to 0.95"),
    ({"use_all_vocab": True}, "use_all_vocab is for word and character models"),
    ({"seed_sentencepieces_file": "a.txt"}, "seed_sentencepieces_file is for unigram models"),
    ({"escape_whitespaces": False}, "escape_whitespaces=false"),
    ({"normalization_rule_name": "nfd"}, "there are no normalization rules 'nfd'"),
    ({"precompiled_charsmap": "x"}, "rules are malformed"),
    ({"no_such_option": 1}, "there is no option 'no_such_option' in sentencepiece 0.2.3"),
    ({"vocab_size": 100000}, "choose a size in this range"),
    ({"vocab_size": 10}, "choose a larger size"),
    ({"control_symbols": ["<unk>"]}, "is the unknown piece"),
    ({"auto_character_coverage": True}, "needs byte_fallback"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused(change: dict[str, Any], message: str) -> None:
    call = {"input": "a.txt", "model_prefix": "my", "vocab_size": 800, **BASE, **change}
    with pytest.raises(Error, match=message):
        SentencePieceTrainer.train(**call)
    assert made() == {}
    if not any(f"model_type': '{kind}" in str(change) for kind in ("unigram", "word", "char")):
        with pytest.raises((RuntimeError, ValueError)):
            sentencepiece.SentencePieceTrainer.train(**call)


def test_unigram_is_the_default_there() -> None:
    with pytest.raises(
        RuntimeError, match="model_type is unigram by default, and cpbpe trains BPE models only"
    ):
        SentencePieceTrainer.train(input="a.txt", model_prefix="my")


def test_other_errors() -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        SentencePieceTrainer.train(input="none.txt", model_prefix="my", **BASE)
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        SentencePieceTrainer.train(input="a.txt", model_prefix="none/my", **BASE)
    with pytest.raises(TypeError, match=r"iter\(\.\.\.\) makes one"):
        SentencePieceTrainer.train(sentence_iterator=TEXTS, model_prefix="my", **BASE)
    with pytest.raises(TypeError, match="string of flags or keyword arguments"):
        SentencePieceTrainer.train(5)  # type: ignore[arg-type]
    with pytest.raises(Error, match="vocab_size is ignored"):
        SentencePieceTrainer.train("--input=a.txt", vocab_size=5)
    with pytest.raises(Error, match="item 2 is int"):
        SentencePieceTrainer.train(sentence_iterator=iter(["a", 5]), model_prefix="my", **BASE)


CAUGHT: list[tuple[type[Exception], dict[str, Any]]] = [
    (RuntimeError, {"input": "none.txt"}),
    (RuntimeError, {"input": "a.txt", "model_prefix": "none/my"}),
    (RuntimeError, {"input": "."}),
    (RuntimeError, {"input": "a.txt", "no_such_option": 1}),
    (RuntimeError, {"input": "a.txt", "character_coverage": 0.5}),
    (RuntimeError, {}),
    (TypeError, {"sentence_iterator": ["a list"]}),
    (ValueError, {"sentence_iterator": iter([5])}),
    (AttributeError, {"input": "a.txt", "model_prefix": "", "model_writer": 5}),
]


@pytest.mark.parametrize(("kind", "call"), CAUGHT, ids=[str(i) for i in range(len(CAUGHT))])
def test_except_clauses_for_sentencepiece_catch_ours(kind: type[Exception], call: dict[str, Any]) -> None:
    """But for callbacks: what they raise comes through here, and is a RuntimeError there."""
    given = {"model_prefix": "my", "vocab_size": 800, **BASE, **call}
    given = {name: value for name, value in given.items() if value != ""}
    for trainer in (sentencepiece.SentencePieceTrainer, SentencePieceTrainer):
        with pytest.raises(kind):
            trainer.train(**given)


# --- Random calls ----------------------------------------------------------------------------------

ODD = ["<s>", "a<sep>b", "▁", "▅x", "\x1f", "x" * 60, "\0nul", "ａ１２", "  lead", "trail  ", ""]
VALUES: dict[str, list[Any]] = {
    "vocab_size": [10, 256, 259, 300, 600, 1000, 3000, "700", 0],
    "character_coverage": [0.98, 1.0, 0.9995, 0.97, "0.995"],
    "byte_fallback": [True, False, "true", "0", ""],
    "hard_vocab_limit": [False, False, True],
    "control_symbols": ["<a>,<b>", ["<a>", "b,c"], "<s>", "<unk>", "<a>,<a>", "", [], '"x""y",z', "▁the"],
    "user_defined_symbols": ["<u>,the", ["the", "e"], "<s>", "<pad>", "<0x41>", "▁", "0", ["▁a", "a b"]],
    "unk_id": [0, 3, -1, 5, 300],
    "bos_id": [1, -1, 0, 4],
    "eos_id": [2, -1, 1],
    "pad_id": [-1, 3, 0, 900],
    "unk_piece": ["<unk>", "[U]", "", "<s>"],
    "bos_piece": ["<s>", "<unk>", "B"],
    "unk_surface": [" ? ", ""],
    "max_sentencepiece_length": [1, 2, 3, 512, 0],
    "split_by_whitespace": [True, False],
    "split_by_unicode_script": [True, False],
    "split_by_number": [True, False],
    "split_digits": [True, False],
    "treat_whitespace_as_suffix": [True, False],
    "allow_whitespace_only_pieces": [True, False],
    "pretokenization_delimiter": ["e", "▁", "ab", ""],
    "normalization_rule_name": ["identity", "nfkc", "none"],
    "add_dummy_prefix": [True, False],
    "remove_extra_whitespaces": [True, False],
    "escape_whitespaces": [True, True, False],
    "max_sentence_length": [10, 30, 4192, 9],
    "input_sentence_size": [0, 101, 50],
    "required_chars": ["xyz", "é日", "a b", "▅", "\x1f", "Ω"],
    "auto_character_coverage": [True, False],
    "num_threads": [1, 16, 0],
    "use_all_vocab": [False, True],
    "input_format": ["text", "tsv"],
}


@tiers.slow_reference
@pytest.mark.parametrize("seed", tiers.some(range(max(budget.examples(100) // 10, 1)), range(2)))
def test_random_calls(engine: str, seed: int) -> None:
    """Ten random calls: both write the same model, or both refuse."""
    rng = random.Random(seed)
    for _ in range(10):
        call: dict[str, Any] = {**BASE, "normalization_rule_name": "identity"}
        call["vocab_size"] = rng.choice([300, 400, 600, 800])
        for name in rng.sample(sorted(VALUES), rng.choice([0, 1, 2, 3, 5])):
            call[name] = rng.choice(VALUES[name])
        call["shuffle_input_sentence"] = False
        texts = rng.choices([*TEXTS[:200], *ODD], k=rng.choice([1, 5, 30, 150]))
        if call.get("input_format") == "tsv":
            texts = [f"{text}\t{rng.randint(1, 9)}" for text in texts]

        def run(trainer: Any, call: dict[str, Any] = call, texts: list[str] = texts) -> bytes | None:
            out = io.BytesIO()
            try:
                trainer.train(sentence_iterator=iter(texts), model_writer=out, **call)
            except (RuntimeError, ValueError):
                return None
            return out.getvalue()

        assert run(SentencePieceTrainer) == run(sentencepiece.SentencePieceTrainer), (call, texts)
