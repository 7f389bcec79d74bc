"""What `pack` writes in each format, decoded by a few lines that share nothing with it."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from tests.pack.layouts import DECODE, DTYPES
from tests.support import zoo
from tests.support.budget import quick
from tests.support.corpus import SENTENCES, lines

TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
TEXTS = lines(300)

documents = st.lists(st.one_of(st.sampled_from([*SENTENCES, "", "a"]), st.text(max_size=12)), max_size=40)


def splitmix(state: int) -> int:
    """One number of SplitMix64, after Vigna's description."""
    mask = (1 << 64) - 1
    state = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ state >> 27) * 0x94D049BB133111EB) & mask
    return state ^ state >> 31


def key(number: int, seed: int, purpose: bytes) -> int:
    golden, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    begin = splitmix((seed * golden + int.from_bytes(purpose, "big")) & mask)
    return splitmix((number * golden + begin) & mask)


def expected(texts: list[str], split: str, options: dict[str, Any]) -> list[list[int]]:
    """The documents of a split, by the rules of the documentation."""
    rows = list(enumerate(TOK.encode(text, add_eos=options["add_eos"]) for text in texts if text))
    if (seed := options["shuffle_seed"]) is not None:
        rows.sort(key=lambda row: key(row[0], seed, b"order"))
    share = options["validation"]
    chosen = {
        number for number, _ in rows if key(number, options["validation_seed"], b"valid") < share * 2**64
    }
    return [ids for number, ids in rows if ids and (number in chosen) == (split == "val")]


@pytest.mark.slow
@pytest.mark.parametrize("to", DECODE)
@quick(10, 12)
@given(data=st.data())
def test_layout(to: str, data: st.DataObject) -> None:
    texts = data.draw(documents)
    dtype = data.draw(st.sampled_from(DTYPES[to]))
    size = data.draw(st.sampled_from([None, 1, 7, 60, "200B"]))
    options: dict[str, Any] = {
        "add_eos": data.draw(st.booleans()),
        "shuffle_seed": data.draw(st.none() | st.integers(0, 2**64 - 1)),
        "validation": data.draw(st.sampled_from([0.0, 0.3])),
        "validation_seed": data.draw(st.integers(0, 3)),
    }
    if not options["validation"]:
        options["validation_seed"] = 0  # (another is refused)
    rows = {split: expected(texts, split, options) for split in ("train", "val")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        if not any(rows.values()):
            with pytest.raises(cpbpe.CorpusError, match="there is no document to pack"):
                cpbpe.pack(TOK, iter(texts), out, to=to, dtype=dtype, shard_size=size, **options)
            assert not any(out.iterdir())
            return
        report = cpbpe.pack(TOK, iter(texts), out, to=to, dtype=dtype, shard_size=size, **options)
        assert report.dtype == dtype
        most = 200 // np.dtype(dtype).itemsize if size == "200B" else size
        for split in ("train", "val"):
            shards = list(DECODE[to](out, split, dtype))
            assert [ids for shard in shards for ids in shard] == rows[split]
            for shard in shards:
                assert len(shard) == 1 or not isinstance(most, int) or sum(map(len, shard)) <= most
            for shard, after in pairwise(shards):
                assert isinstance(most, int)
                assert sum(map(len, shard)) + len(after[0]) > most
        assert report.documents == sum(map(len, rows.values()))
        assert report.tokens == sum(len(ids) for split in rows.values() for ids in split)
        assert report.skipped["empty"] == texts.count("")
        assert {path for path in out.rglob("*") if path.is_file()} == {
            out / "cpbpe-pack.json",
            *map(Path, report.files),
        }


@pytest.mark.parametrize("to", DECODE)
def test_both_engines_write_the_same(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.txt").write_text("\n".join([*TEXTS[:60], "", "last"]))
    found = []
    for engine in ("core", "reference"):
        monkeypatch.setenv("CPBPE_ENGINE", engine)
        try:
            tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
        except (ImportError, ValueError):
            pytest.skip("the compiled core is not there")
        out = tmp_path / engine
        cpbpe.pack(tok, tmp_path / "texts.txt", out, to=to, validation=0.2, add_bos=True, shard_size=300)
        found.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")})
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_how_it_is_read_changes_nothing(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither threads, nor the size of batches, nor whether lines are in a list."""
    monkeypatch.chdir(tmp_path)
    texts = [*TEXTS, "", "x" * 3000, "", ""] * 3
    data = "\n".join(texts).encode()  # there is no line after the last newline
    Path("texts.txt").write_bytes(data)
    options: dict[str, Any] = {"shuffle_seed": 5, "validation": 0.1, "shard_size": 4000, "add_eos": True}
    base = cpbpe.pack(TOK, "texts.txt", "base", to="dolma", **options)
    for name, batch, few in (("small", 1000, 1 << 18), ("lines", 1000, 1)):
        monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", batch)
        monkeypatch.setattr("cpbpe.packing.read._FEW_BYTES", few)
        monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 700)
        monkeypatch.setattr("cpbpe.packing.shuffle._PENDING_TOKENS", 100)
        report = cpbpe.pack(TOK, "texts.txt", name, to="dolma", threads=threads, **options)
        assert report.skipped == base.skipped == {"empty": 8, "absent": 0, "without_tokens": 0}
        assert report.text_bytes == base.text_bytes == len(b"".join(data.split(b"\n")))
        for path in Path("base").rglob("*.*"):
            assert Path(name, path.relative_to("base")).read_bytes() == path.read_bytes(), path


def test_usual_types_of_ids(tmp_path: Path) -> None:
    found = {}
    for to in DECODE:
        for size in (65_499, 65_500, 65_536, 65_537):
            added = TOK.with_special_tokens({"<last>": size - 1})
            assert added.vocab_size == size
            try:
                found[to, size] = cpbpe.pack(added, ["a"], tmp_path / f"{to}{size}", to=to).dtype
            except ValueError as error:
                found[to, size] = str(error)
    for to in ("npy", "datatrove", "dolma", "nanogpt"):
        assert [found[to, size] for size in (65_499, 65_500, 65_536)] == ["uint16"] * 3
        assert (found[to, 65_537] == "uint32") != (to == "nanogpt")
    assert [found["megatron", size] for size in (65_499, 65_500)] == ["uint16", "int32"]
    assert {found[to, 65_499] for to in ("mds", "parquet", "arrow")} == {"int32"}
    assert found["nanogpt", 65_537].startswith(
        "nanoGPT reads ids as uint16, and the model has 65,537; give to="
    )


def test_places_of_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dolma and the tables say where documents come from: the line or the record, empty ones counted."""
    import csv
    import gzip

    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one\n\ntwo")
    Path("b.jsonl").write_text('{"text": "three"}\n\n{"text": null}\n{"text": "four"}\n')
    report = cpbpe.pack(TOK, [Path("a.txt"), Path("b.jsonl")], "out", to="dolma")
    with gzip.open("out/train.csv.gz", "rt", newline="") as file:
        rows = list(csv.reader(file))
    assert [row[2:] for row in rows] == [
        ["a.txt:1", "a.txt", "1"],
        ["a.txt:3", "a.txt", "3"],
        ["b.jsonl:1", "b.jsonl", "1"],
        ["b.jsonl:4", "b.jsonl", "4"],
    ]
    assert report.skipped == {"empty": 1, "absent": 2, "without_tokens": 0}
    cpbpe.pack(TOK, [Path("a.txt"), Path("b.jsonl")], "table", to="parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table("table/train-00000.parquet").to_pydict()
    assert table["source"] == ["a.txt", "a.txt", "b.jsonl", "b.jsonl"]
    assert table["record"] == [1, 3, 1, 4]
