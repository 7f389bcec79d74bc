"""Packing a dataset without a cluster: parts of every size give the files of one machine, and go on."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cpbpe
from cpbpe.errors import CorpusError
from cpbpe.packing.pack import PackReport
from cpbpe.packing.work import Writer
from cpbpe.scale.encoding import Dataset, checked_order, encoded_parts, packed, packing
from tests.scale.datasets import packed_files
from tests.support import corpus, zoo
from tests.support.budget import SEED

TEXTS: list[str | None] = ["", None, *corpus.lines(300), "\u2581", "", None, "the last one", None]
HOW: Any = {
    "to": "npy",
    "dtype": "auto",
    "shard_size": None,
    "shuffle_seed": None,
    "validation": 0.0,
    "validation_seed": 0,
    "progress": False,
}


def tokenizer(name: str = "llama") -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def parts(texts: list[str | None], tok: cpbpe.Tokenizer, seed: int, **options: Any) -> list[bytes]:
    """The parts of a dataset that is cut at random."""
    given: Any = options
    model = packing(tok, given)
    rng = random.Random(seed)
    made, at = [], 0
    while at < len(texts):
        chunks = []
        for _ in range(rng.randint(0, 3)):
            size = rng.randint(0, 20)
            chunks.append(pa.array(texts[at : at + size], pa.string()))
            at += size
        made += encoded_parts(model, pa.chunked_array(chunks, pa.string()) if len(chunks) != 1 else chunks[0])
    return made


def pack(
    data: list[bytes], tok: cpbpe.Tokenizer, out: Path, options: Any = None, order: Any = None, **how: Any
) -> PackReport:
    given: Any = {**HOW, **how, **(options or {})}
    return packed(Dataset(lambda: iter(data), "data"), tok, out, order or [], given)


RUNS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"add_bos": True, "add_eos": True}, {"shard_size": 1000, "to": "megatron"}),
    ({"add_eos": True}, {"shard_size": 700, "shuffle_seed": 3, "validation": 0.2, "validation_seed": 1}),
    ({"reverse": True}, {"to": "parquet", "dtype": "int32"}),  # (it says where documents come from)
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "how"), RUNS, ids=["plain", "megatron", "shuffled", "places"])
@pytest.mark.parametrize("model", ["llama", "defaults"])
def test_the_files_of_one_machine(
    model: str, options: Any, how: dict[str, Any], tmp_path: Path, engine: str
) -> None:
    tok = tokenizer(model)
    expected = cpbpe.pack(tok, TEXTS, tmp_path / "one", **how, **options)
    for seed in range(3):
        out = tmp_path / str(seed)
        report = pack(parts(TEXTS, tok, SEED + seed, **options), tok, out, options, **how)
        assert packed_files(out) == packed_files(tmp_path / "one")
        assert not (out / ".cpbpe-pack").exists()
        for name in (
            "documents",
            "tokens",
            "splits",
            "text_bytes",
            "byte_tokens",
            "skipped",
            "unknown_tokens",
        ):
            assert getattr(report, name) == getattr(expected, name), name


@pytest.mark.parametrize(("options", "how"), RUNS, ids=["plain", "megatron", "shuffled", "places"])
def test_an_interrupted_run_goes_on(options: Any, how: dict[str, Any], tmp_path: Path) -> None:
    """Also if the dataset is cut into other parts than before."""
    tok = tokenizer()
    cpbpe.pack(tok, TEXTS, tmp_path / "one", **how, **options)
    out = tmp_path / "out"
    rng = random.Random(SEED)
    for seed in range(6):
        data = parts(TEXTS, tok, SEED + seed, **options)
        stop = rng.randint(0, len(data) - 1)

        def failing(data: list[bytes] = data, stop: int = stop) -> Iterator[bytes]:
            yield from data[:stop]
            raise OSError("the cluster is gone")

        run: Any = {**HOW, **how, **options}
        with pytest.raises(OSError, match="the cluster is gone"):
            packed(Dataset(failing, "data"), tok, out, [], run)
    report = pack(parts(TEXTS, tok, 1, **options), tok, out, options, **how)
    assert report.resumed
    assert packed_files(out) == packed_files(tmp_path / "one")
    again = pack([], tok, out, options, **how)
    assert again.was_complete


def test_an_interrupted_run_goes_on_behind_rows_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it ended: such rows, and the end of the dataset, change nothing about the last document."""
    monkeypatch.setattr("cpbpe.packing.work.SECONDS_BETWEEN_STATES", 0.0)
    tok = tokenizer()
    model = packing(tok, {})
    columns: list[list[str | None]] = [[""], ["one"], [None, ""], ["two"], [""]]
    data = [part for column in columns for part in encoded_parts(model, pa.array(column, pa.string()))]
    take = Writer.take
    for last in range(1, len(data) + 2):
        left = [last]

        def killed(*arguments: Any, left: list[int] = left) -> None:
            take(*arguments)
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        monkeypatch.setattr(Writer, "take", killed)
        with pytest.raises(KeyboardInterrupt):
            pack(data, tok, tmp_path / str(last))
        monkeypatch.setattr(Writer, "take", take)
        assert pack(data, tok, tmp_path / str(last)).documents == 2, last


def test_other_texts_are_noticed(tmp_path: Path) -> None:
    tok = tokenizer()
    data = parts(TEXTS, tok, SEED)

    def failing() -> Iterator[bytes]:
        yield from data[: len(data) // 2]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        packed(Dataset(failing, "data"), tok, tmp_path / "out", [], HOW)
    with pytest.raises(
        CorpusError, match="the texts are not those of the run that was interrupted, or their order"
    ):
        pack(parts(TEXTS[::-1], tok, SEED), tok, tmp_path / "out")
    with pytest.raises(
        CorpusError, match=r"the dataset ends .* rows before the place where the run was interrupted"
    ):
        pack(data[:2], tok, tmp_path / "out")
    with pytest.raises(ValueError, match=r"holds a run with other options \(order was"):
        pack(data, tok, tmp_path / "out", order=["n"])
    pack(data, tok, tmp_path / "out")
    cpbpe.pack(tok, TEXTS, tmp_path / "one")
    assert packed_files(tmp_path / "out") == packed_files(tmp_path / "one")


def test_no_documents(tmp_path: Path) -> None:
    tok = tokenizer()
    for texts in ([], ["", None]):
        with pytest.raises(CorpusError, match="there is no document to pack"):
            pack(parts(texts, tok, SEED), tok, tmp_path / "out")


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"pack\(\) takes a Tokenizer after the dataset, not str"):
        packing("x", {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="alpha: sampling depends on the numbers"):
        packing(tokenizer(), {"alpha": 0.1})
    assert checked_order(None, ["a"]) == []
    assert checked_order("a", ["a"]) == ["a"]
    assert checked_order(["b", "a"], ["a", "b"]) == ["b", "a"]
    with pytest.raises(ValueError, match="order: the dataset has no column 'n'; it has a, b"):
        checked_order("n", ["a", "b"])
    for order in (3, [1], {"a": 1}):
        with pytest.raises(TypeError, match="order must be the name of a column, or a list of names, not"):
            checked_order(order, ["a"])
    with pytest.raises(ValueError, match="to must be one of"):
        pack([], tokenizer(), tmp_path / "out", to="zip")
