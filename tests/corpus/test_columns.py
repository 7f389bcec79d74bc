"""Texts of columns as lines, against the same texts one by one."""

import random
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from cpbpe import WordCounts
from cpbpe.corpus.files import split_lines
from cpbpe.corpus.records import as_a_line_each, as_lines, gathered, read_parquet
from cpbpe.scale.counting import ColumnCorpus, counting
from cpbpe.training.corpus import Block, Corpus
from cpbpe.training.families import family_of
from cpbpe.training.options import TrainOptions
from tests.support.budget import SEED, examples

TYPES = [
    pyarrow.binary(),
    pyarrow.large_binary(),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.binary()),
    pyarrow.binary_view(),
]


def texts(rng: random.Random) -> list[bytes | None]:
    """Short texts with many line breaks, some of them null, empty, or no UTF-8."""
    alphabet = rng.choice([b"ab", b"ab\n", b"a\r\n", b"a\n\xff\xe2\x96\x81", b"\n\r"])
    made = [bytes(rng.choices(alphabet, k=rng.randint(0, 6))) for _ in range(rng.randint(0, 8))]
    return [None if rng.random() < 0.1 else text for text in made]


def sentences(corpus: Corpus) -> list[bytes]:
    return [sentence for block in corpus.blocks() for sentence in block.as_sentences()]


def test_lines_of_documents() -> None:
    rng = random.Random(SEED)
    for _ in range(examples(2000)):
        made = texts(rng)
        lines, sizes = as_lines(pyarrow.array(made, pyarrow.large_binary()))
        each = [[] if text is None else split_lines(text, False) for text in made]
        assert split_lines(lines, False) == [line for some in each for line in some], made
        assert (sizes or [1] * len(made)) == [len(some) for some in each], made
        # A message says in which row a line is.
        for index in range(sum(map(len, each))):
            block = Block("f", 1, lines, sizes=sizes)
            assert block.where(index) == Block("f", 1, sizes=[len(some) for some in each]).where(index)


def test_a_line_each() -> None:
    rng = random.Random(SEED)
    found = 0
    for _ in range(examples(2000)):
        made = [text for text in texts(rng) if text is not None]
        lines = as_a_line_each(pyarrow.array(made, pyarrow.large_binary()))
        stripped = [text.rstrip(b"\r\n") for text in made]
        if any(b"\n" in text for text in stripped):
            assert lines is None, made
        else:
            assert lines is not None, made
            assert split_lines(lines, False) == stripped, made
            found += 1
    assert found


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_columns_and_files(kind: pyarrow.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the type, and however many rows are taken at once."""
    rng = random.Random(SEED)
    for _ in range(examples(40)):
        made = texts(rng) + texts(rng)
        monkeypatch.setattr("cpbpe.corpus.records.PART_BYTES", rng.choice([1, 30, 4 << 20]))
        monkeypatch.setattr("cpbpe.scale.counting.PART_BYTES", rng.choice([1, 30, 4 << 20]))
        column = pyarrow.array(made, pyarrow.binary()).cast(kind)
        corpus: Corpus = ColumnCorpus(
            [column, pyarrow.chunked_array([column, column])], family_of(TrainOptions())
        )
        items = [text.rstrip(b"\r\n") for text in made if text is not None]
        assert sentences(corpus) == items * 3, made
        assert corpus.nulls == made.count(None) * 3
        if kind in TYPES[:3]:
            path = tmp_path / "a.parquet"
            parquet.write_table(pyarrow.table({"text": column}), path, row_group_size=rng.choice([1, 3, 100]))
            corpus = Corpus(path)
            documents = [line for text in made if text is not None for line in split_lines(text, False)]
            assert sentences(corpus) == documents, made
            assert corpus.nulls == made.count(None)
            rows = [
                text
                for batch in gathered(column for column, _ in read_parquet(str(path), "text"))
                for text in batch.to_pylist()
            ]
            assert rows == made


def test_a_long_line_is_named_by_its_row(tmp_path: Path) -> None:
    made = ["a", None, "", "b\nc\n", "d\n" + "e" * 50]
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": made}), path)
    reading = WordCounts.build(path, max_sentence_length=20).reading
    assert (reading.sentences, reading.nulls) == (5, 1)
    assert [example.where for example in reading.left_out["too_long"].examples] == [f"{path}:5"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_words_as_from_items(threads: int) -> None:
    rng = random.Random(SEED)
    made = [" ".join(rng.choices(["the", "cat", "\xe4", "1", "\r"], k=9)) for _ in range(500)] + ["x\ny", ""]
    options = TrainOptions(max_sentence_length=25)
    rows = counting("text", options, None, 1, {}).count([pyarrow.array(made)], 1)
    counts = counting("text", options, None, 1, {}).result([row for _, row in rows])
    expected = WordCounts.build(made, threads=threads, max_sentence_length=25)
    assert dict(counts) == dict(expected)
    assert counts.reading.left_out.keys() == expected.reading.left_out.keys() == {"too_long", "empty"}
    assert counts.reading.sentences == expected.reading.sentences
    assert counts.reading.bytes == expected.reading.bytes
