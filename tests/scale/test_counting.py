"""What workers do, without any: counting in parts, in every order, and encoding batches."""

import pickle
import random
from typing import Any

import pyarrow as pa
import pytest

import cpbpe
from cpbpe.errors import TrainingError
from cpbpe.scale import counting as scale
from cpbpe.scale.counting import Counting, counting, levels
from cpbpe.scale.encoding import encoding
from tests.bytes import models as byte_models
from tests.support import corpus, zoo
from tests.support.budget import SEED

TEXTS: list[str | None] = [*corpus.lines(120), None, "", "x" * 5000, "a\x00b", None]
PRESETS: list[dict[str, Any]] = [
    {},
    {"preset": "sentencepiece", "split_by_number": False},
    {"preset": "gpt2"},
]
OPTIONS = pytest.mark.parametrize("options", PRESETS, ids=lambda options: options.get("preset", "llama2"))


def make(preset: str = "llama2", **options: Any) -> Counting:
    return counting("text", preset, None, 1, options)


def whole(**options: Any) -> cpbpe.WordCounts:
    return cpbpe.WordCounts.build([text for text in TEXTS if text is not None], **options)


def in_parts(work: Counting, rng: random.Random) -> list[bytes]:
    """Rows of parts of the texts, cut and ordered at random, of chunked and other columns."""
    texts = TEXTS.copy()
    rng.shuffle(texts)
    rows: list[bytes] = []
    while texts:
        part = [texts.pop() for _ in range(min(len(texts), rng.randint(0, 40)))]
        at = rng.randint(0, len(part))
        split = [pa.array(part[:at], pa.string()), pa.array(part[at:], pa.string())]
        rows += work.count([pa.chunked_array(split)] if rng.random() < 0.5 else split)
    return rows


@OPTIONS
def test_parts_in_every_order(options: dict[str, Any], engine: str) -> None:
    work = pickle.loads(pickle.dumps(make(**options)))
    expected = whole(**options)
    rng = random.Random(SEED)
    readings = set()
    for _ in range(5):
        rows = in_parts(work, rng)
        while len(rows) > 1 and rng.random() < 0.8:  # trees of all shapes
            rng.shuffle(rows)
            cut = rng.randint(1, len(rows))
            rows = [*work.merge(rows[:cut]), *rows[cut:]]
        counts = work.result(rows, 1)
        assert counts == expected
        assert counts.reading.nulls == 2
        assert (counts.reading.sentences, counts.reading.bytes) == (
            expected.reading.sentences,
            expected.reading.bytes,
        )
        readings.add(str(counts.reading))
        left_out = {reason: skipped.sentences for reason, skipped in counts.reading.left_out.items()}
        wanted = {reason: skipped.sentences for reason, skipped in expected.reading.left_out.items()}
        assert left_out == wanted
        assert pickle.dumps(counts.reading.left_out) == pickle.dumps(counts.reading.left_out)
    assert len(readings) == 1


def test_the_same_model() -> None:
    texts = corpus.lines(200)
    expected = cpbpe.train(texts, vocab_size=700)
    work = make(vocab_size=700)
    rows = [row for at in range(0, 200, 30) for row in work.count([pa.array(texts[at : at + 30])])]
    counts = work.result(rows[::-1], 1)
    assert cpbpe.train(counts, vocab_size=700).tokenizer.to_bytes() == expected.tokenizer.to_bytes()


def test_many_words_are_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    work = make()
    monkeypatch.setattr(scale, "MOST_BYTES", 1000)
    rows = in_parts(work, random.Random(SEED))
    merged = work.merge(rows)
    assert len(merged) > 5
    assert max(map(len, merged)) < 5000
    assert work.result(merged, 1) == whole()
    assert work.result(work.merge(merged[::-1]), 1).reading == work.result(rows, 1).reading


def test_nothing() -> None:
    work = make()
    assert dict(work.result([], 1)) == {}
    assert dict(work.result(work.merge(work.count([pa.nulls(3, pa.string())])), 2)) == {}
    with pytest.raises(TrainingError, match="the corpus contains no text"):
        cpbpe.train(work.result([], 1))


def test_rare_words_are_left_out_only_when_asked() -> None:
    work = make()
    rows = in_parts(work, random.Random(SEED))
    full = dict(work.result(rows, 1))
    assert work.result(rows, 1).reading.warnings == ()
    for least in (2, 5, 10**9):
        counts = work.result(rows, least)
        assert dict(counts) == {word: count for word, count in full.items() if count >= least}
        rare = [count for count in full.values() if count < least]
        (warning,) = counts.reading.warnings
        assert warning == (
            f"{len(rare):,} distinct words with fewer than {least:,} occurrences ({sum(rare):,} in all) "
            "were left out, because of min_count"
        )


def test_what_is_no_text_is_said() -> None:
    work = make()
    rows = work.count([pa.array([b"a\xff", b"ok"])]) + work.count([pa.array([b"\xfe\xff b"])])
    counts = work.result(rows, 1)
    assert counts.reading.not_utf8 == 2
    (warning,) = counts.reading.warnings
    assert warning.startswith("2 texts in the column 'text' are not valid UTF-8; ")


def test_memory_limit() -> None:
    """Counts of a part are moved to the disk."""
    rng = random.Random(SEED)
    texts = [" ".join("".join(rng.choices("abcdefgh", k=8)) for _ in range(300)) for _ in range(400)]
    limited = counting("text", "llama2", "1MiB", 1, {})
    counts = limited.result(limited.count([pa.array(texts)]), 1)
    assert counts.reading.spilled_runs > 0
    assert counts == cpbpe.WordCounts.build(texts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "gpt2", "ties": "minbpe"}, "ties is 'minbpe'.* order of the texts.*one machine"),
        (
            {"input_sentence_size": 500},
            "input_sentence_size chooses by the order.*take a sample of the dataset",
        ),
        ({"record_paths": True}, "record_paths: a dataset has no paths; leave it out"),
        ({"preset": "llama9"}, "there is no preset 'llama9'"),
        ({"memory_limit": 5}, "memory_limit must be a size"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_a_cluster_cannot_do(arguments: dict[str, Any], message: str) -> None:
    preset, limit = arguments.pop("preset", "llama2"), arguments.pop("memory_limit", None)
    with pytest.raises(TrainingError, match=message):
        counting("text", preset, limit, 1, arguments)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="column must be the name of a column, not 3"):
        counting(3, "llama2", None, 1, {})
    for number in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="min_count must be an integer, at least 1, not"):
            scale.checked_min_count(number)
    with pytest.raises(ValueError, match="the dataset has no column 'text'; it has a, b"):
        scale.check_column("text", ["a", "b"])


def test_levels() -> None:
    assert list(levels(0)) == list(levels(16)) == []
    assert list(levels(17)) == [2]
    assert list(levels(64_000)) == [4000, 250, 16]


# --- Encoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["sentencepiece", "byte-level"])
@pytest.mark.parametrize("signed", [False, True])
def test_encoding(signed: bool, family: str, engine: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    if family == "byte-level":
        tok = cpbpe.Tokenizer.from_spec(byte_models.model())
    tok = tok.using(add_eos=True)
    work = pickle.loads(pickle.dumps(encoding(tok, "text", "ids", signed, {"prefix_space": False})))
    texts = TEXTS[-30:]
    expected = [None if text is None else tok.encode(text, prefix_space=False) for text in texts]
    kinds = (pa.string(), pa.large_string())
    for table in [*(pa.table({"n": range(30), "text": pa.array(texts, kind)}) for kind in kinds)]:
        made = work.add(table)
        assert made.column_names == ["n", "text", "ids"]
        assert made["ids"].to_pylist() == expected
        assert made["ids"].type.value_type == (pa.int32() if signed else pa.uint32())
        assert [
            row for batch in table.to_batches(7) for row in work.add(batch)["ids"].to_pylist()
        ] == expected


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"tokenizer": "x"}, TypeError, "takes a Tokenizer after the dataset, not str; cpbpe.load"),
        ({"column": 1}, TypeError, "column must be the name of a column, not 1"),
        ({"output": None}, TypeError, "output must be the name of a column, not None"),
        ({"output": "text"}, ValueError, "column and output are both 'text'; the ids need"),
        ({"options": {"alpha": 0.1}}, ValueError, "alpha: sampling depends on the numbers"),
        ({"options": {"bos": True}}, TypeError, "has no option 'bos'"),
        ({"options": {"add_eos": 2}}, TypeError, "add_eos must be True or False"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_encoding(given: dict[str, Any], error: type[Exception], message: str) -> None:
    usual: dict[str, Any] = {
        "tokenizer": cpbpe.Tokenizer.from_bytes(zoo.model("llama")),
        "column": "text",
        "output": "ids",
        "signed": False,
        "options": {},
    }
    with pytest.raises(error, match=message):
        encoding(**{**usual, **given})
