"""What workers do, without any: counting in parts, in every order, and encoding batches."""

import pickle
import random
from array import array
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest

import cpbpe
from cpbpe.engine.training import merge_words
from cpbpe.errors import TrainingError
from cpbpe.reference.training_values import Words
from cpbpe.scale import counting as scale
from cpbpe.scale.counting import BUCKETS, Counting, Row, by_bucket, counting
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


def parts_of(rows: list[Row]) -> list[bytes]:
    return [part for _, part in rows]


def in_parts(work: Counting, rng: random.Random) -> list[Row]:
    """Rows of parts of the texts, cut and ordered at random, of chunked and other columns."""
    texts = TEXTS.copy()
    rng.shuffle(texts)
    rows: list[Row] = []
    buckets = rng.choice((1, 2, BUCKETS))
    while texts:
        part = [texts.pop() for _ in range(min(len(texts), rng.randint(0, 40)))]
        at = rng.randint(0, len(part))
        split = [pa.array(part[:at], pa.string()), pa.array(part[at:], pa.string())]
        rows += work.count([pa.chunked_array(split)] if rng.random() < 0.5 else split, buckets)
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
        counts = work.result(parts_of(rows))
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
    counts = work.result(parts_of(rows[::-1]))
    assert cpbpe.train(counts, vocab_size=700).tokenizer.to_bytes() == expected.tokenizer.to_bytes()


def test_many_words_are_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    work = make()
    monkeypatch.setattr(scale, "MOST_BYTES", 1000)
    rows = in_parts(work, random.Random(SEED))
    merged = work.merge(rows)
    assert max(len(part) for _, part in merged) < 5000
    assert work.result(parts_of(merged)) == whole()
    readings = [work.result(parts_of(some)).reading for some in (rows, work.merge(merged[::-1]))]
    assert readings[0] == readings[1]


def test_a_word_has_one_bucket() -> None:
    """What a bucket holds is sorted, together it is everything, and other words have no say in it."""
    words = whole().words
    parts = by_bucket(words, BUCKETS)
    assert len(parts) > BUCKETS // 2
    assert merge_words([part for _, part in parts]) == words
    bucket_of = {word: bucket for bucket, part in parts for word in listed(part)}
    assert sorted(bucket_of) == listed(words)
    rng = random.Random(SEED)
    for _ in range(20):
        some = sorted(rng.sample(listed(words), 5))
        ends = array("Q", accumulate(map(len, some))).tobytes()
        chosen = Words(b"".join(some), ends, array("Q", [3] * 5).tobytes())
        found = by_bucket(chosen, BUCKETS)
        assert {word: bucket for bucket, part in found for word in listed(part)} == {
            word: bucket_of[word] for word in some
        }
    assert by_bucket(words, 1) == [(0, words)]
    assert by_bucket(Words(b"", b"", b""), BUCKETS) == []


def test_a_bucket_is_merged_with_few_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    work = make()
    rows = [row for text in TEXTS[:60] for row in work.count([pa.array([text])], 2)]
    most = 0

    def merged(parts: list[Words]) -> Words:
        nonlocal most
        most = max(most, len(parts))
        return merge_words(parts)

    monkeypatch.setattr(scale, "merge_words", merged)
    made = work.merge(rows)
    assert [bucket for bucket, _ in made] == [0, 1]
    assert most == scale.FAN_IN


def listed(words: Words) -> list[bytes]:
    ends = [0, *array("Q", words.ends)]
    return [words.blob[begin:end] for begin, end in pairwise(ends)]


def test_nothing() -> None:
    work = make()
    assert dict(work.result([])) == {}
    rows = work.merge(work.count([pa.nulls(3, pa.string())]))
    assert dict(replace(work, min_count=2).result(parts_of(rows))) == {}
    with pytest.raises(TrainingError, match="the corpus contains no text"):
        cpbpe.train(work.result([]))


def test_rare_words_are_left_out_only_when_asked() -> None:
    work = make()
    rows = parts_of(in_parts(work, random.Random(SEED)))
    full = dict(work.result(rows))
    assert work.result(rows).reading.warnings == ()
    for least in (2, 5, 10**9):
        counts = replace(work, min_count=least).result(rows)
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
    counts = work.result(parts_of(rows))
    assert counts.reading.not_utf8 == 2
    (warning,) = counts.reading.warnings
    assert warning.startswith("2 texts in the column 'text' are not valid UTF-8; ")


def test_memory_limit() -> None:
    """Counts of a part are moved to the disk."""
    rng = random.Random(SEED)
    texts = [" ".join("".join(rng.choices("abcdefgh", k=8)) for _ in range(300)) for _ in range(400)]
    limited = counting("text", "llama2", "1MiB", 1, {})
    counts = limited.result(parts_of(limited.count([pa.array(texts)])))
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
            counting("text", "llama2", None, number, {})


# --- Encoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["sentencepiece", "byte-level"])
@pytest.mark.parametrize("signed", [False, True])
def test_encoding(signed: bool, family: str, engine: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    if family == "byte-level":
        tok = cpbpe.Tokenizer.from_spec(byte_models.model())
    tok = tok.using(add_eos=True)
    work = pickle.loads(pickle.dumps(encoding(tok, "text", "ids", None, signed, {"prefix_space": False})))
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


@pytest.mark.parametrize("signed", [False, True])
def test_encoding_with_spans(signed: bool, engine: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    work = pickle.loads(pickle.dumps(encoding(tok, "text", "ids", "where", signed, {"add_bos": True})))
    texts = [None, *TEXTS[-30:], "Größe\u3042"]
    expected = [None if text is None else tok.align(text, add_bos=True, unit="char") for text in texts]
    for kind in (pa.string(), pa.large_string()):
        made = work.add(
            pa.table({"text": pa.chunked_array([pa.array(texts[:7], kind), pa.array(texts[7:], kind)])})
        )
        assert made.column_names == ["text", "ids", "where"]
        found = [*zip(made["ids"].to_pylist(), made["where"].to_pylist(), strict=True)]
        assert found == [
            (None, None) if row is None else (list(row.ids), [list(span) for span in row.offsets])
            for row in expected
        ]
        assert made["ids"].type.value_type == (pa.int32() if signed else pa.uint32())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"tokenizer": "x"}, TypeError, "takes a Tokenizer after the dataset, not str; cpbpe.load"),
        ({"column": 1}, TypeError, "column must be the name of a column, not 1"),
        ({"output": None}, TypeError, "output must be the name of a column, not None"),
        ({"output": "text"}, ValueError, "column and output are both 'text'; output needs"),
        ({"spans": 1}, TypeError, "spans must be the name of a column, not 1"),
        ({"spans": "ids"}, ValueError, "output and spans are both 'ids'; spans needs"),
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
        "spans": None,
        "signed": False,
        "options": {},
    }
    with pytest.raises(error, match=message):
        encoding(**{**usual, **given})
