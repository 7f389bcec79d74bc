"""The readers of the formats themselves open what `pack` wrote, where they are installed.

They need nothing of cpbpe's test suite but pytest, so that they can be in an environment of their own:
`pip install pytest mosaicml-streaming megatron-core datatrove` (with PyTorch: gigabytes), and cpbpe beside
them.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe

TEXTS = [
    *(f"document {number} of these, with a number" for number in range(700)),
    "long " * 300,
    "e" * 70_000,
]


@pytest.fixture(scope="module")
def tok() -> cpbpe.Tokenizer:
    texts = [*TEXTS[:100], "the cat sat on the mat", "longer texts than these"]
    return cpbpe.train(texts, vocab_size=330, progress=False).tokenizer


@pytest.fixture(scope="module")
def rows(tok: cpbpe.Tokenizer) -> list[list[int]]:
    return [tok.encode(text, add_eos=True) for text in TEXTS]


def pack(tok: cpbpe.Tokenizer, out: Path, to: str, **options: Any) -> Any:
    return cpbpe.pack(tok, TEXTS, out, to=to, add_eos=True, **options)


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
@pytest.mark.filterwarnings("ignore")
def test_megatron(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path, dtype: str) -> None:
    megatron: Any = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    pack(tok, tmp_path, "megatron", dtype=dtype)
    prefix = str(tmp_path / "train_text_document")
    assert megatron.IndexedDataset.exists(prefix)
    dataset = megatron.IndexedDataset(prefix)
    assert dataset.index.dtype == np.dtype(dtype)
    assert [dataset[number].tolist() for number in range(len(dataset))] == rows
    assert dataset.document_indices.tolist() == list(range(len(rows) + 1))
    theirs = tmp_path / "theirs"
    builder = megatron.IndexedDatasetBuilder(str(theirs.with_suffix(".bin")), dtype=np.dtype(dtype).type)
    for ids in rows:
        builder.add_document(np.array(ids), [len(ids)])
    builder.finalize(str(theirs.with_suffix(".idx")))
    for suffix in (".bin", ".idx"):
        assert theirs.with_suffix(suffix).read_bytes() == Path(prefix + suffix).read_bytes()


def test_megatron_takes_int32_where_we_do() -> None:
    megatron: Any = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    from cpbpe.packing.formats import Megatron

    assert megatron.DType.optimal_dtype(Megatron.least_int32 - 1) is np.uint16
    assert megatron.DType.optimal_dtype(Megatron.least_int32) is np.int32


@pytest.mark.filterwarnings("ignore")
def test_datatrove(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    datasets: Any = pytest.importorskip("datatrove.utils.dataset")
    tokens: Any = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    whole = [id for ids in rows for id in ids]
    places = [place for ids in rows for place in range(len(ids))]
    for dtype, size in (("uint16", 2), ("uint32", 4)):
        out = tmp_path / dtype
        pack(tok, out, "datatrove", dtype=dtype)
        dataset = datasets.DatatroveFolderDataset(
            str(out / "train"),
            15,
            filename_pattern="*.ds",
            token_size=size,
            shuffle=False,
            return_positions=True,
        )
        assert len(dataset) == len(whole) // 16
        for number in range(len(dataset)):
            part = slice(number * 16, number * 16 + 16)
            assert dataset[number]["input_ids"].tolist() == whole[part]
        assert dataset[0]["positions"].tolist() == places[:16]
        theirs = tokens.TokenizedFile(
            str(tmp_path / f"theirs{size}"), "00000_tokens.ds", token_size=size, save_final_metadata=True
        )
        for ids in rows:
            theirs.write(ids, None)
        theirs.close()
        for suffix in ("", ".index"):
            name = f"00000_tokens.ds{suffix}"
            assert (tmp_path / f"theirs{size}" / name).read_bytes() == (out / "train" / name).read_bytes()
        metadata = (tmp_path / f"theirs{size}" / "00000_tokens.ds.metadata").read_text().split("\n")
        ours = (out / "train" / "00000_tokens.ds.metadata").read_text().split("\n")
        assert (metadata[0].split("|")[1], metadata[1:]) == (ours[0].split("|")[1], ours[1:])


def test_words_of_datatrove() -> None:
    humanize: Any = pytest.importorskip("humanize")
    from cpbpe.packing.formats import in_words

    for exponent in range(12):
        for digits in (1, 999, 1000, 1234, 4995, 5, 9949, 9995, 99949, 99951, 999499, 999500, 9999999):
            tokens = digits * 10**exponent
            assert in_words(tokens) == humanize.metric(tokens, unit="T"), tokens
    assert in_words(0) == humanize.metric(0, unit="T")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int32"])
def test_mds(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path, dtype: str) -> None:
    streaming: Any = pytest.importorskip("streaming")
    pack(tok, tmp_path / "ours", "mds", dtype=dtype, shard_size=20_000)
    # 1. Their reader.
    local = streaming.LocalDataset(str(tmp_path / "ours" / "train"))
    assert len(local) == len(rows)
    assert [local[number]["tokens"].tolist() for number in range(len(local))] == rows
    assert local[0]["tokens"].dtype == dtype
    dataset = streaming.StreamingDataset(local=str(tmp_path / "ours"), split="train", batch_size=1)
    assert [sample["tokens"].tolist() for sample in dataset] == rows
    # 2. Their writer, which cuts shards elsewhere: one shard at a time.
    at, place = 0, tmp_path / "ours" / "train"
    for number, shard in enumerate(local.shards):
        theirs = tmp_path / f"theirs{number}"
        with streaming.MDSWriter(out=str(theirs), columns={"tokens": f"ndarray:{dtype}"}) as writer:
            for ids in rows[at : at + shard.samples]:
                writer.write({"tokens": np.array(ids, dtype)})
        assert (theirs / "shard.00000.mds").read_bytes() == (place / f"shard.{number:05}.mds").read_bytes()
        at += shard.samples
    if number == 0:
        assert (theirs / "index.json").read_bytes() == (place / "index.json").read_bytes()


def test_mds_index(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path) -> None:
    streaming: Any = pytest.importorskip("streaming")
    pack(tok, tmp_path / "ours", "mds", dtype="uint16")
    with streaming.MDSWriter(out=str(tmp_path / "theirs"), columns={"tokens": "ndarray:uint16"}) as writer:
        for ids in rows:
            writer.write({"tokens": np.array(ids, "uint16")})
    for name in ("index.json", "shard.00000.mds"):
        assert (tmp_path / "theirs" / name).read_bytes() == (tmp_path / "ours" / "train" / name).read_bytes()


def test_numpy(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path) -> None:
    pack(tok, tmp_path, "npy")
    ids = np.load(tmp_path / "train.npy", mmap_mode="r")
    offsets = np.load(tmp_path / "train.offsets", mmap_mode="r")
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == rows
    theirs = tmp_path / "theirs.npy"
    np.save(theirs, np.array([id for row in rows for id in row], "uint16"))
    assert theirs.read_bytes() == (tmp_path / "train.npy").read_bytes()


def test_nanogpt(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path) -> None:
    """As nanoGPT's train.py maps it."""
    pack(tok, tmp_path, "nanogpt")
    data = np.memmap(tmp_path / "train.bin", dtype=np.uint16, mode="r")
    assert data.tolist() == [id for ids in rows for id in ids]


def test_arrow(tok: cpbpe.Tokenizer, rows: list[list[int]], tmp_path: Path) -> None:
    datasets: Any = pytest.importorskip("datasets")
    if sys.version_info >= (3, 14):
        pytest.skip("datasets does not work with Python 3.14 everywhere")
    for to in ("parquet", "arrow"):
        pack(tok, tmp_path / to, to, validation=0.2)
        files = {split: str(tmp_path / to / f"{split}-00000.{to}") for split in ("train", "val")}
        dataset = datasets.load_dataset(to, data_files=files, cache_dir=str(tmp_path / "cache"))
        assert len(dataset["train"]) + len(dataset["val"]) == len(rows)
        found = [*dataset["train"]["input_ids"], *dataset["val"]["input_ids"]]
        assert sorted(found) == sorted(rows)
