"""`cpbpe.scale.ray` on a Ray of this machine with two workers."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cpbpe
from cpbpe.scale import ray as scale
from tests.scale import datasets
from tests.scale.datasets import PARTS, TEXTS, TRAIN, DiesOnce, ids_of, packed_files, present, tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    module = import_module("ray")
    root = str(Path(datasets.__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    module.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    import_module("ray.data").DataContext.get_current().enable_progress_bars = False
    yield module
    module.shutdown()


@pytest.fixture(scope="module")
def dataset(ray: Any) -> Any:
    table = pa.table({"text": pa.array(TEXTS, pa.string()), "n": range(len(TEXTS))})
    return ray.data.from_arrow(table).repartition(PARTS).materialize()


def ids_by_number(dataset: Any, name: str = "ids") -> list[list[int] | None]:
    rows = sorted(dataset.take_all(), key=lambda row: row["n"])
    return [None if row[name] is None else list(row[name]) for row in rows]


def test_counts_and_training(dataset: Any) -> None:
    counts = scale.count(dataset)
    assert counts == cpbpe.WordCounts.build(present())
    assert (counts.reading.sentences, counts.reading.nulls) == (len(present()), 2)
    model = scale.train(dataset, **TRAIN).tokenizer.to_bytes()
    assert model == cpbpe.train(present(), **TRAIN).tokenizer.to_bytes()


def test_buckets_are_merged_by_workers(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this all counts are little, which the process that calls puts together by itself."""
    monkeypatch.setattr(scale, "LITTLE", 0)
    counts = scale.count(dataset)
    assert counts == cpbpe.WordCounts.build(present())
    assert (counts.reading.sentences, counts.reading.nulls) == (len(present()), 2)


def test_byte_level(dataset: Any) -> None:
    result = scale.train(dataset, preset="gpt2", vocab_size=500)
    assert result.tokenizer == cpbpe.train(present(), preset="gpt2", vocab_size=500).tokenizer


def test_encoding(dataset: Any) -> None:
    tok = tokenizer()
    made = scale.encode(dataset, tok, add_bos=True)
    assert made.columns() == ["text", "n", "ids"]
    assert ids_by_number(made) == ids_of(tok, add_bos=True)


def test_spans(dataset: Any) -> None:
    tok = tokenizer()
    made = scale.encode(dataset, tok, spans="where")
    assert made.columns() == ["text", "n", "ids", "where"]
    rows = sorted(made.take_all(), key=lambda row: row["n"])
    found = [None if row["where"] is None else [tuple(span) for span in row["where"]] for row in rows]
    assert found == [None if text is None else tok.align(text).offsets for text in TEXTS]
    with pytest.raises(ValueError, match="has a column 'n' already; give another name as spans"):
        scale.encode(dataset, tok, spans="n")


def test_packing(dataset: Any, tmp_path: Path) -> None:
    """In the order of the blocks, and in that of a column when they have been shuffled."""
    tok = tokenizer()
    cpbpe.pack(tok, TEXTS, tmp_path / "one", shard_size=3000, shuffle_seed=1)
    options: dict[str, Any] = {"shard_size": 3000, "shuffle_seed": 1, "progress": False}
    assert scale.pack(dataset, tok, tmp_path / "blocks", **options).documents > 500
    shuffled = dataset.random_shuffle(seed=5)
    assert [row["n"] for row in shuffled.take(20)] != list(range(20))
    scale.pack(shuffled, tok, tmp_path / "order", order="n", **options)
    for name in ("blocks", "order"):
        assert packed_files(tmp_path / name) == packed_files(tmp_path / "one"), name
    with pytest.raises(ValueError, match="order: the dataset has no column 'number'; it has text, n"):
        scale.pack(dataset, tok, tmp_path / "x", order="number")


def test_a_killed_worker_changes_nothing(dataset: Any, tmp_path: Path) -> None:
    """The process dies in the task that counts, because Ray does both steps in one."""
    flag = tmp_path / "counting"
    dying = dataset.map_batches(DiesOnce(flag), batch_format="pyarrow", batch_size=None)
    assert scale.count(dying) == cpbpe.WordCounts.build(present())
    assert flag.exists()
    flag = tmp_path / "encoding"
    dying = scale.encode(dataset, tokenizer()).map_batches(
        DiesOnce(flag), batch_format="pyarrow", batch_size=None
    )
    assert ids_by_number(dying) == ids_of(tokenizer())
    assert flag.exists()
    flag = tmp_path / "packing"
    dying = dataset.map_batches(DiesOnce(flag), batch_format="pyarrow", batch_size=None)
    scale.pack(dying, tokenizer(), tmp_path / "packed", order="n", progress=False)
    assert flag.exists()
    cpbpe.pack(tokenizer(), TEXTS, tmp_path / "one")
    assert packed_files(tmp_path / "packed") == packed_files(tmp_path / "one")


def test_wrong_datasets(dataset: Any) -> None:
    with pytest.raises(
        TypeError, match=r"count\(\) takes a dataset of Ray first, not list; ray.data.from_arrow"
    ):
        scale.count(TEXTS)
    with pytest.raises(ValueError, match="the dataset has no column 'body'; it has text, n"):
        scale.count(dataset, "body")
    with pytest.raises(ValueError, match="has a column 'n' already; give another name as output"):
        scale.encode(dataset, tokenizer(), output="n")
    with pytest.raises(TypeError, match="takes a column of strings or bytes, not of int64"):
        scale.count(dataset, "n")
