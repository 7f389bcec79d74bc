"""Corpora: every form text can have, and that reading in parts changes nothing."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from cpbpe import TrainingError
from cpbpe.corpus import files as corpus_files
from cpbpe.corpus.files import split_lines, whole_lines
from cpbpe.reference.training_values import CountSpec
from cpbpe.training.corpus import Corpus

LINES = ["first line", "", "zweite Zeile, länger", "三", "tab\tinside", "ends in return\r", "last"]
DATA = "\n".join(LINES).encode()


def zst(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.compress(data)
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zst,
}


def sentences(source: Any, keep_newlines: bool = False, **settings: Any) -> list[bytes]:
    corpus = Corpus(source, CountSpec(max_sentence_length=0, keep_newlines=keep_newlines), **settings)
    return [sentence for block in corpus.blocks() for sentence in block.as_sentences()]


EXPECTED = [line.encode() for line in LINES]


@pytest.fixture(params=[1, 3, 7, 8 << 20])
def part_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read in parts so small that every line is cut somewhere."""
    monkeypatch.setattr(corpus_files, "PART_BYTES", request.param)
    monkeypatch.setattr("cpbpe.training.corpus.PART_BYTES", request.param)
    size: int = request.param
    return size


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_text(tmp_path: Path, part_bytes: int, suffix: str, end: bytes) -> None:
    path = tmp_path / f"corpus.txt{suffix}"
    path.write_bytes(COMPRESS[suffix](DATA + end))
    assert sentences(path) == EXPECTED
    assert sentences(str(path)) == EXPECTED


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_several_compressed_members(tmp_path: Path, part_bytes: int, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(COMPRESS[suffix](b"one\ntw") + COMPRESS[suffix](b"o\nthree"))
    assert sentences(path) == [b"one", b"two", b"three"]
    # Members that are larger than what is decompressed at a time, because nothing makes them small.
    lines = [random.Random(number).randbytes(1500).hex().encode() for number in range(4)]
    path.write_bytes(b"".join(COMPRESS[suffix](line + b"\n") for line in lines))
    assert sentences(path) == lines


@pytest.mark.parametrize("suffix", COMPRESS)
def test_json_lines(tmp_path: Path, part_bytes: int, suffix: str) -> None:
    records = [{"n": 1, "body": "one\ntwo"}, {"body": None}, {"body": "drei 🦙"}, {"body": "four\n"}]
    path = tmp_path / f"corpus.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix]("\n".join(map(json.dumps, records)).encode()))
    corpus = Corpus(path, field="body")
    found = [sentence for block in corpus.blocks() for sentence in block.sentences]
    assert found == [b"one", b"two", "drei 🦙".encode(), b"four"]
    assert corpus.nulls == 1


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    values = ["one\ntwo", None, "drei 🦙", ""]
    types = [pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]
    for index, type in enumerate(types):
        path = tmp_path / f"{index}.parquet"
        column = pyarrow.array(values, pyarrow.string()).cast(type)
        parquet.write_table(pyarrow.table({"id": [1, 2, 3, 4], "body": column}), path)
        corpus = Corpus(path, column="body")
        found = [sentence for block in corpus.blocks() for sentence in block.as_sentences()]
        assert found == [b"one", b"two", "drei 🦙".encode()]
        assert corpus.nulls == 1
        assert corpus.read == corpus.total == path.stat().st_size


def test_tsv(tmp_path: Path, part_bytes: int) -> None:
    path = tmp_path / "counts.tsv"
    path.write_bytes(b"one\t1\ntwo words\t 22 \n\t3\nfour\t+4\r\n")
    blocks = list(Corpus(path).blocks())
    assert [s for block in blocks for s in block.sentences] == [b"one", b"two words", b"", b"four"]
    assert [c for block in blocks for c in block.counts or ()] == [1, 22, 3, 4]
    blocks = list(Corpus(iter(["a\t2", b"b\t3\r\n"]), format="tsv").blocks())
    assert [s for block in blocks for s in block.sentences] == [b"a", b"b"]
    assert [c for block in blocks for c in block.counts or ()] == [2, 3]


def test_texts_lose_newlines_at_their_ends_only() -> None:
    texts = ["one\n", b"two\r\n", "three\r", "\n four\nfive", "", bytearray(b"six"), " seven "]
    assert sentences(texts) == [b"one", b"two", b"three", b"\n four\nfive", b"", b"six", b" seven "]
    assert sentences(text for text in texts) == sentences(texts)


def test_counted_texts() -> None:
    block = next(Corpus({"one": 5, "two": 1 << 40}).blocks())
    assert (block.sentences, block.counts) == ([b"one", b"two"], [5, 1 << 40])


def test_open_files(tmp_path: Path, part_bytes: int) -> None:
    assert sentences(io.BytesIO(DATA)) == EXPECTED
    assert sentences(io.StringIO(DATA.decode(), newline="")) == EXPECTED
    path = tmp_path / "corpus.txt"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        assert sentences(file) == EXPECTED


def test_globs_directories_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "deep/er/c.txt", ".hidden", "deep/.git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "deep" / "picture.bin").write_bytes(b"\x89PNG\0\0\0")
    assert sentences("*.txt") == [b"a.txt", b"b.txt"]
    assert sentences("**/*.txt") == [b"a.txt", b"b.txt", b"deep/er/c.txt"]
    assert sentences(["b.txt", "a.txt"]) == [b"b.txt", b"a.txt"]
    assert sentences([Path("b.txt"), "deep/**/c*"]) == [b"b.txt", b"deep/er/c.txt"]
    corpus = Corpus(tmp_path)
    assert [os.path.relpath(file, tmp_path) for file in corpus.files] == ["a.txt", "b.txt", "deep/er/c.txt"]
    assert [os.path.relpath(file, tmp_path) for file in corpus.left_out] == ["deep/picture.bin"]
    # If most strings of a list are not files, none is treated as a path.
    assert sentences(["a.txt", "hello there", "what?"]) == [b"a.txt", b"hello there", b"what?"]


def test_progress_counts_what_lies_on_the_disk(tmp_path: Path) -> None:
    for suffix, compress in COMPRESS.items():
        path = tmp_path / f"corpus{suffix}"
        path.write_bytes(compress(DATA * 1000))
        corpus = Corpus(path)
        for _ in corpus.blocks():
            pass
        assert corpus.read == corpus.total == path.stat().st_size


@pytest.mark.parametrize("seed", range(30))
def test_parts_and_newlines(seed: int) -> None:
    rng = random.Random(seed)
    data = bytes(rng.choices(b"ab\n\n", k=rng.randint(0, 60)))
    cuts = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(0, 12)))
    chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    chunks = [chunk for chunk in chunks if chunk]
    for keep in (False, True):
        parts = list(whole_lines(chunks, keep))
        assert b"".join(parts) == data
        assert [s for part in parts for s in split_lines(part, keep)] == split_lines(data, keep)
    assert b"".join(split_lines(data, True)) == data
    assert all(s.strip(b"\n").count(b"\n") == 0 for s in split_lines(data, True))


def test_one_huge_line_is_read_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "PART_BYTES", 1 << 8)
    path = tmp_path / "one.txt"
    path.write_bytes(b"x" * (8 << 20))  # joined anew for each part it would be 128 GB
    begin = process_time()
    assert [len(sentence) for sentence in sentences(path)] == [8 << 20]
    assert process_time() - begin < 4  # it takes a tenth of a second
    monkeypatch.setattr(corpus_files, "PART_BYTES", 1 << 10)
    path.write_bytes(b"\n" * (8 << 20))
    assert sum(len(s) for s in sentences(path, keep_newlines=True)) == 8 << 20


def test_an_iterator_is_read_once() -> None:
    corpus = Corpus(iter(["one"]))
    assert len(list(corpus.blocks())) == 1
    with pytest.raises(TrainingError, match="has been read before"):
        list(corpus.blocks())
    again = Corpus(["one"])
    assert len(list(again.blocks())) == len(list(again.blocks())) == 1


def test_texts_that_begin_like_something_else(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    for text in (b"BZh is no word", b"PAR1 and PAR2", b"PK", b"\xef\xbb\xbfwith a mark"):
        path.write_bytes(text)
        assert sentences(path) == [text]


def test_where_a_sentence_stands() -> None:
    text = b"a\nb\n\nc\n"
    (block,) = Corpus(io.BytesIO(text)).blocks()
    assert [block.where(index) for index in range(4)] == ["file:1", "file:2", "file:3", "file:4"]
    block, last = Corpus(io.BytesIO(text), CountSpec(keep_newlines=True)).blocks()
    assert [block.where(0), block.where(1), last.where(0)] == ["file:1", "file:2", "file:4"]
    block, last = Corpus(io.BytesIO(b"a\n\nb\nc\n"), CountSpec(keep_newlines=True)).blocks()
    assert [block.where(0), block.where(1), last.where(0)] == ["file:1", "file:3", "file:4"]


def test_where_a_record_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text('{"text": "a\\nb"}\n{"text": null}\n{"text": "c"}\n')
    (block,) = Corpus("x.jsonl").blocks()
    assert [block.where(index) for index in range(3)] == ["x.jsonl:1", "x.jsonl:1", "x.jsonl:3"]
