"""Counted corpora: parts that are merged are one run, on the disk or in memory, and files are checked."""

import errno
import json
import pickle
import random
import zlib
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpbpe import PRESETS, TrainingError, WordCounts, train
from cpbpe.reference.training_values import (
    Words,
)
from cpbpe.training import words_file
from cpbpe.training.words_file import Runs, join_words, merge_lists, read_words, slice_words, write_words
from tests.support import tiers
from tests.support.corpus import lines

TEXTS = lines(400)


def words_of(counted: dict[bytes, int]) -> Words:
    blob, ends, counts = b"", b"", b""
    for word in sorted(counted):
        blob += word
        ends += len(blob).to_bytes(8, "little")
        counts += counted[word].to_bytes(8, "little")
    return Words(blob, ends, counts)


def unpacked(words: Words) -> dict[bytes, int]:
    found, begin = {}, 0
    for at in range(0, len(words.ends), 8):
        end = int.from_bytes(words.ends[at : at + 8], "little")
        found[words.blob[begin:end]] = int.from_bytes(words.counts[at : at + 8], "little")
        begin = end
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_four_shards_are_one_run(engine: str, tmp_path: Path, preset: str) -> None:
    whole = WordCounts.build(TEXTS, preset=preset)
    parts = []
    for shard in range(4):
        path = tmp_path / f"{shard}.counts"
        WordCounts.build(TEXTS[shard::4], preset=preset).save(path)
        parts.append(WordCounts.load(path))
    merged = parts[2].merge(parts[0], parts[3], parts[1])
    assert merged == whole
    assert merged.reading.sentences == whole.reading.sentences == len(TEXTS)
    assert merged.reading.bytes == whole.reading.bytes
    one = train(TEXTS, vocab_size=700, preset=preset)
    two = train(merged, vocab_size=700, preset=preset)
    assert one.model_bytes == two.model_bytes
    assert one.report.tokens == two.report.tokens


def test_one_count_serves_many_trainings(engine: str) -> None:
    counts = WordCounts.build(TEXTS)
    for options in ({"vocab_size": 600}, {"vocab_size": 700, "character_coverage": 0.99}):
        assert train(counts, **options).model_bytes == train(TEXTS, **options).model_bytes


def test_characters_can_be_recovered() -> None:
    counts = WordCounts.build(["the cat", "a cat"])
    assert counts.characters() == {"▁": 4, "a": 3, "t": 3, "c": 2, "e": 1, "h": 1}
    assert list(counts.characters()) == ["▁", "a", "t", "c", "e", "h"]


@pytest.mark.parametrize("preset", PRESETS)
def test_spilling_changes_nothing(engine: str, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cpbpe.training.corpus._ITEMS", 16
    )  # small blocks, between which counts can be set aside
    monkeypatch.setattr(words_file, "BLOCK_WORDS", 10)
    whole = WordCounts.build(TEXTS, preset=preset)
    work = {"runs": 0}
    real = Runs.add

    def add(self: Runs, words: Words) -> None:
        work["runs"] += 1
        real(self, words)

    monkeypatch.setattr(Runs, "add", add)
    monkeypatch.setattr(
        "cpbpe.training.word_counts._SPILL_SHARE", 1 << 9
    )  # of 1 MiB, so that it is soon used up
    spilled = WordCounts.build(TEXTS, preset=preset, memory_limit=1 << 20)
    assert spilled == whole
    assert spilled.reading.spilled_runs == work["runs"] > 3
    assert spilled.reading.spilled_bytes > 0
    assert "on the disk" in "\n".join(spilled.reading.lines())


def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("cpbpe.training.corpus._ITEMS", 16)
    monkeypatch.setattr("cpbpe.training.word_counts._SPILL_SHARE", 1 << 9)
    assert WordCounts.build(TEXTS, memory_limit=1 << 20).reading.spilled_runs
    assert list(tmp_path.iterdir()) == []

    def failing() -> object:
        yield from TEXTS
        assert list(tmp_path.iterdir())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        WordCounts.build(failing(), memory_limit=1 << 20)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(40))
def test_merging_lists(engine: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(words_file, "BLOCK_WORDS", rng.randint(1, 5))
    alphabet = [b"a", b"b", b"ab", "é".encode(), "▁".encode()]
    lists = [
        {
            b"".join(rng.choices(alphabet, k=rng.randint(1, 4))): rng.randint(1, 9)
            for _ in range(rng.randint(0, 20))
        }
        for _ in range(rng.randint(0, 5))
    ]
    expected: Counter[bytes] = Counter()
    for counted in lists:
        expected.update(counted)
    blocks = []
    for counted in lists:
        words = words_of(counted)
        size = words_file.BLOCK_WORDS
        blocks.append(
            iter([slice_words(words, at, min(at + size, len(words))) for at in range(0, len(words), size)])
        )
    assert unpacked(join_words(merge_lists(blocks))) == dict(sorted(expected.items()))


def test_writing_and_reading_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_file, "BLOCK_WORDS", 3)
    words = words_of({b"%d" % number: number + 1 for number in range(10)})
    path = tmp_path / "words"
    with path.open("wb") as file:
        write_words(file, [words])
    with path.open("rb") as file:
        assert join_words(read_words(file.read, trusted=False)) == words


def test_a_saved_file_is_the_value(tmp_path: Path) -> None:
    counts = WordCounts.build([*TEXTS, "", "x" * 5000, "re▅served", "   "], preset="sentencepiece", seed=3)
    counts.save(tmp_path / "a")
    loaded = WordCounts.load(tmp_path / "a")
    assert loaded == counts
    assert hash(loaded) == hash(counts)
    assert loaded.reading == counts.reading
    assert counts.reading.sentences_left_out == 4
    assert list(loaded) == list(counts)
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert pickle.loads(pickle.dumps(counts)) == counts
    with pytest.raises(AttributeError, match="do not change"):
        counts.words = loaded.words


@tiers.slow
def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    WordCounts.build(["one two three"]).save(path)
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(TrainingError, match="not a file of word counts"):
            WordCounts.load(path)
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(TrainingError, match="not a file of word counts"):
            WordCounts.load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(TrainingError, match="checksum"):
        WordCounts.load(path)
    path.write_bytes(b"CPBPEWC2" + data[8:])
    with pytest.raises(TrainingError, match="version is '2'"):
        WordCounts.load(path)
    with pytest.raises(FileNotFoundError):
        WordCounts.load(tmp_path / "none")


def resealed(path: Path, data: bytes) -> None:
    """Write a file of counts with the checksum that fits what is in it."""
    path.write_bytes(data + zlib.crc32(data).to_bytes(4, "little"))


def with_header(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    size = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + size])
    change(header)
    new = json.dumps(header).encode()
    return data[:8] + len(new).to_bytes(8, "little") + new + data[16 + size : -4]


def test_broken_files_with_a_right_checksum(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    WordCounts.build(["né two three"]).save(path)
    data = path.read_bytes()
    resealed(path, data[:-4])
    assert len(WordCounts.load(path)) == 3
    nested = b"[" * 100_000
    for broken, message in [
        (data[:-4].replace("é".encode(), b"e\xc3"), "its words are not UTF-8"),
        (data[:8] + len(nested).to_bytes(8, "little") + nested, "nested too deeply|Expecting value"),
        (with_header(data, lambda header: header.pop("setup")), "its header lacks 'setup'"),
        (
            with_header(data, lambda header: header["setup"]["spec"].update(max_sentence_length="x")),
            "its max_s",
        ),
        (
            with_header(data, lambda header: header["setup"]["spec"]["limits"].update(split_digits=0)),
            "its split_d",
        ),
        (with_header(data, lambda header: header["setup"].update(pretokenizer=5)), "its pretokenizer is 5"),
        (with_header(data, lambda header: header["setup"].update(sample=[1])), "its sample is not"),
        (
            with_header(data, lambda header: header["reading"].update(sentences=None)),
            "its number of sentences",
        ),
        (with_header(data, lambda header: header["reading"].update(left_out={"x": {}})), "an unknown reason"),
    ]:
        resealed(path, broken)
        with pytest.raises(TrainingError, match=f"counts: not a file of word counts: .*({message})"):
            WordCounts.load(path)
    # Words that are UTF-8 together, but not each by itself.
    blob, ends = "né".encode(), array("Q", [2, 3]).tobytes()
    with path.open("wb") as file:
        write_words(file, [Words(blob, ends, array("Q", [1, 1]).tobytes())])
    with path.open("rb") as file, pytest.raises(ValueError, match="begins inside a character"):
        list(read_words(file.read, trusted=False))


def test_more_runs_than_there_may_be_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(words_file, "MOST_RUNS", 4)
    monkeypatch.setattr(words_file, "BLOCK_WORDS", 3)
    most = 0
    real = words_file.merge_lists

    def merge(lists: Any) -> Any:
        nonlocal most
        most = max(most, len(lists))
        return real(lists)

    monkeypatch.setattr(words_file, "merge_lists", merge)
    expected: Counter[bytes] = Counter()
    with Runs() as runs:
        for number in range(70):
            counted = {b"%d" % (number * step % 23): number + 1 for step in range(1, 9)}
            expected.update(counted)
            runs.add(words_of(counted))
            assert len(runs) == number + 1
        assert (
            len(list(tmp_path.glob("*/*"))) == 1 + 0 + 1 + 2
        )  # 70 in the system of numbers with base 4: 1012
        words = runs.merge(words_of({b"0": 1}), lambda number: None)
    expected[b"0"] += 1
    assert unpacked(words) == dict(sorted(expected.items()))
    assert most < 10


def test_a_full_disk_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, parts: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(words_file, "write_words", full)
    with Runs() as runs, pytest.raises(OSError, match=r"no room for counts .*; set TMPDIR"):
        runs.add(words_of({b"a": 1}))


DIFFERENT: dict[str, dict[str, Any]] = {
    "split_digits": {"split_digits": False},
    "max_sentencepiece_length": {"max_sentencepiece_length": 5},
    "the special pieces": {"control_symbols": ["<sep>"]},
    "pretokenization_delimiter": {"pretokenization_delimiter": "|"},
    "pretokenizer": {"pretokenizer": str.split, "allow_inconsistent_pretokenization": True},
    "add_dummy_prefix": {"add_dummy_prefix": False},
    "max_sentence_length": {"max_sentence_length": 100},
    "keep_newlines": {"keep_newlines": True},
    "keep_reserved": {"keep_reserved": True},
    "input_sentence_size": {"input_sentence_size": 101},
    "the normalization rules": {"normalization_rules": {"a": "b"}},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_counts_made_under_different_options(name: str) -> None:
    one = WordCounts.build(["one two"])
    two = WordCounts.build(["one two"], **DIFFERENT[name])
    with pytest.raises(TrainingError, match=f"these differ: .*{name}"):
        one.merge(two)
    with pytest.raises(TrainingError, match=f"these differ: .*{name}"):
        train(two, vocab_size=300)


def test_merging_what_is_no_counts() -> None:
    with pytest.raises(TypeError, match="takes WordCounts"):
        WordCounts.build(["one"]).merge({"one": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, 1000, "lots", "1kB", 1.5, float("nan"), float("inf"), True])
def test_bad_memory_limits(limit: object) -> None:
    with pytest.raises(TrainingError, match="memory_limit"):
        WordCounts.build(["one"], memory_limit=limit)  # type: ignore[arg-type]


def test_counts_that_are_too_large(engine: str) -> None:
    huge = (1 << 63) - 1
    with pytest.raises(TrainingError, match="2\\*\\*63"):
        train({"ab": huge, "abc": huge}, vocab_size=300)
    one = WordCounts.build({"ab": huge})
    with pytest.raises(TrainingError, match="2\\*\\*63"):
        one.merge(one)


@pytest.mark.parametrize(
    "option", [{"format": "text"}, {"memory_limit": "1GB"}, {"field": "body"}, {"column": "body"}]
)
def test_counts_are_not_read_again(option: dict[str, Any]) -> None:
    counts = WordCounts.build(["hello hello"])
    with pytest.raises(TrainingError, match=f"^{next(iter(option))} means nothing here"):
        train(counts, vocab_size=270, **option)
