"""`PackedTokens`: documents, slices, windows and batches of what `pack` wrote."""

import pickle
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe
from tests.support import zoo
from tests.support.budget import SEED, examples
from tests.support.corpus import lines

TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
TEXTS = lines(120)
ROWS = [TOK.encode(text, add_eos=True) for text in TEXTS]
FORMATS = ["npy", "megatron", "nanogpt", "datatrove", "dolma"]
SECOND = re.compile(r"\.(offsets|idx|ds\.index|csv\.gz)$")
"""How the names of the files end that say where documents begin."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    for to in FORMATS:
        cpbpe.pack(TOK, TEXTS, folder / to, to=to, add_eos=True)
        cpbpe.pack(TOK, TEXTS, folder / f"{to}-shards", to=to, add_eos=True, shard_size=500)
    return folder


@pytest.fixture(params=[*FORMATS, *(f"{to}-shards" for to in FORMATS)])
def packed(request: pytest.FixtureRequest, folder: Path) -> cpbpe.PackedTokens:
    # A name that ends with - or _ would be a prefix; this does not.
    return cpbpe.PackedTokens(folder / request.param)


def test_documents(packed: cpbpe.PackedTokens) -> None:
    assert len(packed) == packed.documents == len(ROWS)
    assert packed.tokens == sum(map(len, ROWS))
    assert [ids.tolist() for ids in packed] == ROWS
    assert [packed[i].tolist() for i in range(len(ROWS))] == ROWS
    assert packed[-1].tolist() == ROWS[-1]
    assert packed[np.int64(3)].tolist() == ROWS[3]
    assert packed[0].dtype == packed.dtype == np.uint16
    for wrong in (len(ROWS), -len(ROWS) - 1):
        with pytest.raises(IndexError, match=f"document {wrong} is out of range: there are 120"):
            packed[wrong]
    packed.check()


@pytest.mark.parametrize(
    "part",
    [slice(None), slice(3, 9), slice(50, 20), slice(None, None, 7), slice(90, None, -3), slice(115, 999)],
)
def test_slices(packed: cpbpe.PackedTokens, part: slice) -> None:
    rows = packed[part]
    assert isinstance(rows, cpbpe.Ragged)
    assert rows.tolist() == ROWS[part]
    assert rows.ids.dtype == np.uint32
    assert TOK.decode_batch(rows) == [TOK.decode(ids) for ids in ROWS[part]]


def test_ids(packed: cpbpe.PackedTokens) -> None:
    whole = [id for ids in ROWS for id in ids]
    assert packed.ids().tolist() == whole
    for begin, end in ((0, 0), (0, 1), (480, 1030), (5, -5), (len(whole) - 1, None)):
        assert packed.ids(begin, end).tolist() == whole[begin:end]


@pytest.mark.parametrize(("length", "stride"), [(1, None), (7, None), (16, 15), (64, 1000), (10**6, None)])
def test_windows(packed: cpbpe.PackedTokens, length: int, stride: int | None) -> None:
    whole = [id for ids in ROWS for id in ids]
    documents = [number for number, ids in enumerate(ROWS) for _ in ids]
    positions = [place for ids in ROWS for place in range(len(ids))]
    windows = packed.windows(length, stride=stride)
    begins = list(range(0, len(whole) - length + 1, stride or length))
    assert len(windows) == len(begins)
    for number in random.Random(length).sample(range(len(begins)), min(40, len(begins))):
        part = slice(begins[number], begins[number] + length)
        window = windows[number]
        assert window.ids.tolist() == whole[part]
        assert window.segments.tolist() == [document - documents[part][0] for document in documents[part]]
        assert window.positions.tolist() == positions[part]
        assert window.starts().tolist() == [place == 0 for place in positions[part]]
    if begins:
        assert windows[-1].ids.tolist() == windows[len(begins) - 1].ids.tolist()
    with pytest.raises(IndexError, match="is out of range"):
        windows[len(begins)]


def test_batches(packed: cpbpe.PackedTokens) -> None:
    windows = list(packed.windows(20))
    for drop_last in (True, False):
        batches = list(packed.batches(20, 6, drop_last=drop_last))
        rows = [row for batch in batches for row in batch.ids.tolist()]
        count = len(windows) // 6 * 6 if drop_last else len(windows)
        assert rows == [window.ids.tolist() for window in windows[:count]]
        assert batches[0].segments.shape == batches[0].positions.shape == (6, 20)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="length must be at least 1"):
            packed.windows(wrong)
    with pytest.raises(TypeError, match=r"size must be an integer, not 1\.5"):
        packed.batches(20, 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"x"])
def test_a_file_that_is_cut_off_later(content: bytes, tmp_path: Path) -> None:
    cpbpe.pack(TOK, TEXTS, tmp_path / "cut")
    packed = cpbpe.PackedTokens(tmp_path / "cut")
    path = tmp_path / "cut/train.offsets"
    for damaged in (content, path.read_bytes() + content + b"more"):
        path.write_bytes(damaged)
        with pytest.raises(cpbpe.CorpusError, match=r"train\.offsets' is damaged"):
            packed.check()


def test_pickles(packed: cpbpe.PackedTokens, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packed[0]
    data = pickle.dumps(packed)
    assert len(data) < 500  # no ids
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(data)[5].tolist() == ROWS[5]


def test_torch(folder: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    packed = cpbpe.PackedTokens(folder / "npy-shards")
    (batch,) = list(packed.batches(8, 4))[:1]
    tensors = batch.torch()
    assert tensors["ids"].dtype == torch.int64
    assert tensors["ids"].tolist() == batch.ids.tolist()
    loader = torch.utils.data.DataLoader(packed.windows(8), batch_size=None, num_workers=2)
    assert [window.ids.tolist() for window in loader] == [window.ids.tolist() for window in packed.windows(8)]


def test_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cpbpe.pack(TOK, TEXTS, "data_", validation=0.2)
    train, val = cpbpe.PackedTokens("data_"), cpbpe.PackedTokens("data_", "val")
    assert len(train) + len(val) == len(TEXTS)
    assert 10 < len(val) < 40
    with pytest.raises(ValueError, match="split must be one of train, val, not 'test'"):
        cpbpe.PackedTokens("data_", "test")
    cpbpe.pack(TOK, TEXTS, "data_/", validation=0.2)  # a folder
    assert len(cpbpe.PackedTokens("data_/")) == len(train)
    assert len(pickle.loads(pickle.dumps(cpbpe.PackedTokens("data_/")))) == len(train)


def test_the_process_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also out of a folder that, as a path, would be a prefix."""
    for name, texts in (("data_", TEXTS[:9]), ("other_", TEXTS[9:])):
        monkeypatch.chdir(tmp_path)
        cpbpe.pack(TOK, texts, name)
        cpbpe.pack(TOK, texts, f"{name}/", add_eos=True)
        cpbpe.pack(TOK, texts[:5], f"{name}/p-", add_eos=True)
    monkeypatch.chdir("data_")
    found = [cpbpe.PackedTokens(path) for path in (".", "p-", "../data_/", "../data_")]
    monkeypatch.chdir("../other_")
    for packed in [*found, *(pickle.loads(pickle.dumps(packed)) for packed in found)]:
        packed.check()
        rows = ROWS[: len(packed)]
        assert [
            [*ids.tolist(), TOK.eos_id][: len(row)] for ids, row in zip(packed, rows, strict=True)
        ] == rows
    assert [len(packed) for packed in found] == [9, 5, 9, 9]


def test_what_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no cpbpe-pack\.json at 'none'"):
        cpbpe.PackedTokens("none")
    cpbpe.pack(TOK, TEXTS, "out", to="mds")
    with pytest.raises(
        ValueError, match="'out' holds mds, which has readers of its own; PackedTokens reads npy, "
    ):
        cpbpe.PackedTokens("out")
    Path("out/cpbpe-pack.json").write_text("{}")
    with pytest.raises(cpbpe.CorpusError, match="is not a manifest of cpbpe pack"):
        cpbpe.PackedTokens("out")


def test_damage(tmp_path: Path) -> None:
    cpbpe.pack(TOK, TEXTS, tmp_path)
    data = bytearray((tmp_path / "train.npy").read_bytes())
    data[-1] ^= 1
    (tmp_path / "train.npy").write_bytes(data)
    packed = cpbpe.PackedTokens(tmp_path)
    with pytest.raises(ValueError, match=r"train\.npy' is damaged"):
        packed.check()
    (tmp_path / "train.npy").write_bytes(data[:-2])
    with pytest.raises(cpbpe.CorpusError, match=r"had .* bytes when it was written, and has"):
        cpbpe.PackedTokens(tmp_path)


@pytest.mark.parametrize("to", FORMATS)
def test_damaged_offsets(to: str, folder: Path, tmp_path: Path) -> None:
    """Whatever is in the second file of a shard, a named error is all that comes of it."""

    def is_read() -> bool:
        packed = cpbpe.PackedTokens(tmp_path / "p")
        try:
            assert len(list(packed)) == len(packed[:]) == len(packed) == len(ROWS)
            assert all(len(window.segments) == 20 for window in packed.windows(20))
        except cpbpe.CorpusError as error:
            assert "' is damaged: it is not what was written" in str(error), error  # noqa: PT017
            return False
        return True

    shutil.copytree(folder / to, tmp_path / "p")
    path = next(path for path in sorted((tmp_path / "p").rglob("*")) if SECOND.search(path.name))
    whole, rng, read = path.read_bytes(), random.Random(SEED), []
    for _ in range(examples(50)):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(data))
            data[at : at + 1] = bytes([rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))])
        path.write_bytes(data)
        read.append(is_read())
    assert read.count(False) > 3


# --- pack in Python ---------------------------------------------------------------------------------


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one\ntwo")
    expected = [TOK.encode(text) for text in ("one", "two")]
    sources: list[Any] = [
        "a.txt",
        Path("a.txt"),
        [Path("a.txt")],
        ["one", None, b"two", ""],
        iter(["one", "two"]),
    ]
    for number, source in enumerate(sources):
        report = cpbpe.pack(TOK, source, f"out{number}")
        assert [ids.tolist() for ids in cpbpe.PackedTokens(f"out{number}")] == expected
        assert report.text_bytes == 6
    assert cpbpe.pack(TOK, "a.txt", "whole", whole=True).documents == 1
    for wrong, error in (
        (b"one", "source is bytes; for one document give a list"),
        ([3], "source: item 1 is int, and documents are str or bytes"),
        ({"one"}, "source is a set, which has no order"),
        (3, "source must be a path, a list of Path objects or an iterable of texts, not int"),
    ):
        with pytest.raises(TypeError, match=error):
            cpbpe.pack(TOK, wrong, "wrong")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"'a\.txt' is a file; give Path objects for paths, or iter\(texts\)"
    ):
        cpbpe.pack(TOK, ["a.txt"], "wrong")
    with pytest.raises(ValueError, match="validation_seed means nothing without validation; give both"):
        cpbpe.pack(TOK, ["a"], "wrong", validation_seed=1)
    with pytest.raises(cpbpe.CorpusError, match="item 2 is not valid Unicode"):
        cpbpe.pack(TOK, ["a", "\ud800"], "half")


def test_options_of_encoding(tmp_path: Path) -> None:
    chat = TOK.with_special_tokens(["<|end|>"])
    texts = ["Hi<|end|>", "two words"] * 30
    for number, options in enumerate(
        ({"allowed_special": "all"}, {"prefix_space": False}, {"reverse": True, "add_bos": True})
    ):
        cpbpe.pack(chat, texts, tmp_path / str(number), **options)  # type: ignore[arg-type]
        packed = cpbpe.PackedTokens(tmp_path / str(number))
        assert [ids.tolist() for ids in packed] == chat.encode_batch(texts, **options)  # type: ignore[arg-type]
    bound = chat.using(add_eos=True)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    cpbpe.pack(bound, tmp_path / "texts.txt", tmp_path / "bound")
    assert [ids.tolist() for ids in cpbpe.PackedTokens(tmp_path / "bound")] == bound.encode_batch(texts)
    # An option that says the usual value says something where another one is bound.
    sampled = bound.using(alpha=0.5, seed=3, prefix_space=False)
    back: dict[str, Any] = {"add_eos": False, "alpha": 0.0, "prefix_space": None}
    cpbpe.pack(sampled, texts, tmp_path / "back", **back)
    assert [ids.tolist() for ids in cpbpe.PackedTokens(tmp_path / "back")] == chat.encode_batch(texts)
    with pytest.raises(TypeError, match=r"pack\(\) has no option 'add_eod'; .*add_eos"):
        cpbpe.pack(TOK, texts, tmp_path / "wrong", add_eod=True)  # type: ignore[call-arg]


def test_sampling_goes_by_the_number_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 1000)
    (tmp_path / "texts.txt").write_text("\n\n".join(TEXTS))
    texts = [line for line in "\n".join(TEXTS).split("\n") if line]
    cpbpe.pack(TOK, tmp_path / "texts.txt", tmp_path / "out", alpha=0.3, seed=5)
    expected = TOK.encode_batch(texts, alpha=0.3, seed=5)
    assert [ids.tolist() for ids in cpbpe.PackedTokens(tmp_path / "out")] == expected


def test_an_iterable_that_is_not_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is continued needs the same texts, which only the texts themselves can tell."""
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 400)

    def broken(count: int) -> Any:
        yield from TEXTS[:count]
        raise RuntimeError("the source is gone")

    for number, (again, error) in enumerate(
        ((TEXTS[:30], "the source ends .* records before the place"), (TEXTS[1:], "are not those of the run"))
    ):
        out = tmp_path / str(number)
        with pytest.raises(RuntimeError, match="the source is gone"):
            cpbpe.pack(TOK, broken(100), out)
        with pytest.raises(cpbpe.CorpusError, match=error):
            cpbpe.pack(TOK, iter(again), out)
        report = cpbpe.pack(TOK, iter(TEXTS), out)
        assert report.resumed
        assert report.new_tokens < report.tokens
        assert [ids.tolist() for ids in cpbpe.PackedTokens(out)] == [TOK.encode(text) for text in TEXTS]


def test_many_small_files(tmp_path: Path) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number:03}.txt").write_text(text)
    report = cpbpe.pack(TOK, tmp_path, tmp_path.with_name("small"), whole=True)
    assert report.documents == len(TEXTS)
    assert [ids.tolist() for ids in cpbpe.PackedTokens(tmp_path.with_name("small"))] == list(
        map(TOK.encode, TEXTS)
    )
