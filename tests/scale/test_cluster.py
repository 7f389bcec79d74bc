"""The calls that Ray and Spark share, on a cluster that is a list of tables in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cpbpe
from cpbpe.scale.cluster import Cluster
from cpbpe.scale.counting import Counting
from cpbpe.scale.encoding import Encoding, encoded_parts
from tests.scale.datasets import TEXTS, TRAIN, ids_of, packed_files, present, tokenizer


class Tables(Cluster):
    _kind = "a list of tables"
    _way_out = "[table] makes one"
    _signed = False

    def _columns(self, dataset: Any, column: str, call: str) -> list[str] | None:
        return list(dataset[0].column_names) if isinstance(dataset[0], pa.Table) else None

    def _counted(self, dataset: Any, work: Counting) -> Iterator[bytes]:
        rows = [row for table in dataset for row in work.count([table.column(work.column)])]
        return (part for _, part in work.merge(rows))

    def _encoded(self, dataset: Any, work: Encoding) -> Any:
        return [work.add(table) for table in dataset]

    def _packed(self, dataset: Any, column: str, order: list[str], model: bytes) -> Iterator[bytes]:
        table = pa.concat_tables(dataset)
        whole = table.sort_by([(name, "ascending") for name in order]) if order else table
        yield from encoded_parts(model, whole.column(column))


scale = Tables()
ALL = pa.table({"text": pa.array(TEXTS, pa.string()), "n": range(len(TEXTS))})
DATASET = [ALL.slice(begin, 100) for begin in range(0, len(TEXTS), 100)]


def test_counts_and_training() -> None:
    counts = scale.count(DATASET)
    assert counts == cpbpe.WordCounts.build(present())
    assert (counts.reading.sentences, counts.reading.nulls) == (len(present()), 2)
    with pytest.warns(UserWarning, match="distinct words with fewer than 3 occurrences"):
        few = scale.count(DATASET, min_count=3)
    assert dict(few) == {word: count for word, count in counts if count >= 3}
    model = scale.train(DATASET, **TRAIN).tokenizer.to_bytes()
    assert model == cpbpe.train(present(), **TRAIN).tokenizer.to_bytes()
    tok = scale.train(DATASET, preset="gpt2", vocab_size=500).tokenizer
    assert tok == cpbpe.train(present(), preset="gpt2", vocab_size=500).tokenizer


def test_encoding() -> None:
    made = pa.concat_tables(scale.encode(DATASET, tokenizer(), spans="where", add_bos=True))
    assert made.column_names == ["text", "n", "ids", "where"]
    assert made["ids"].to_pylist() == ids_of(tokenizer(), add_bos=True)


def test_packing(tmp_path: Path) -> None:
    tok = tokenizer()
    cpbpe.pack(tok, TEXTS, tmp_path / "one", shard_size=3000)
    options: dict[str, Any] = {"shard_size": 3000, "progress": False}
    scale.pack(DATASET, tok, tmp_path / "parts", **options)
    scale.pack(DATASET[::-1], tok, tmp_path / "order", order="n", **options)
    for name in ("parts", "order"):
        assert packed_files(tmp_path / name) == packed_files(tmp_path / "one"), name


def test_wrong_datasets(tmp_path: Path) -> None:
    tok = tokenizer()
    for call in (scale.count, scale.train):
        with pytest.raises(TypeError, match=r"count\(\) takes a list of tables first, not list; \[table\]"):
            call([1])
    for wrong in (lambda: scale.count(DATASET, "body"), lambda: scale.pack(DATASET, tok, tmp_path, "body")):
        with pytest.raises(ValueError, match="the dataset has no column 'body'; it has text, n"):
            wrong()
    for name in ("output", "spans"):
        new: Any = {name: "n"}
        with pytest.raises(ValueError, match=f"has a column 'n' already; give another name as {name}"):
            scale.encode(DATASET, tok, **new)
    with pytest.raises(ValueError, match="order: the dataset has no column 'number'; it has text, n"):
        scale.pack(DATASET, tok, tmp_path, order="number")
