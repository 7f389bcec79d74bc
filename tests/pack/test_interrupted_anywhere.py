"""Runs that end at any line of cpbpe/packing, by Ctrl-C or a kill, and go on: the files are the same."""

from __future__ import annotations

import gc
import itertools
import linecache
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cpbpe
import cpbpe.packing
from cpbpe.packing import work
from tests.support import budget, tiers, zoo
from tests.support.corpus import lines

pytestmark = [  # what was interrupted is left to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
ROOM = os.path.dirname(cpbpe.packing.__file__)
CASES: list[dict[str, Any]] = [
    {"to": "npy", "shuffle_seed": 1},
    {"to": "npy", "shuffle_seed": 1, "shard_size": 900, "validation": 0.3},
    {"to": "npy", "shard_size": 900},
    {"to": "megatron", "validation": 0.3},
    {"to": "dolma", "shuffle_seed": 2, "validation": 0.3},
    {"to": "mds", "shuffle_seed": 2, "shard_size": 900},
    {"to": "parquet", "shard_size": 900, "threads": 2},
    {"to": "nanogpt"},
    {"to": "datatrove", "shuffle_seed": 4},
    {"to": "arrow", "validation": 0.3},
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What was interrupted leaves open files, of which no later test is to hear."""
    yield
    gc.collect()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 1 << 11)
    monkeypatch.setattr("cpbpe.packing.read._FEW_BYTES", 1)
    monkeypatch.setattr("cpbpe.packing.shuffle._USUAL_BITS", 2)
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    made = random.Random(3)
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(f"{at} {made.choice(lines(50))[:60]}" for at in range(160)))
    return path


@contextmanager
def at_line(number: int, act: Callable[[], None], *, threads: bool) -> Iterator[list[int]]:
    """Do something before a line of packing runs, counted from 0; in the main thread, or in every one."""
    count = itertools.count()
    seen = [0]

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        # Not where a lock is about to be released. No signal arrives there, only a trace function does, and
        # the lock would then be kept forever.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and line != "with importing:":
            seen[0] = next(count)
            if seen[0] == number:
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    if threads:
        threading.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)
        threading.settrace(None)


def interrupt() -> None:
    raise KeyboardInterrupt


def kill() -> None:
    os._exit(9)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lines_of(source: Path, out: Path, options: dict[str, Any], *, threads: bool) -> int:
    with at_line(-1, interrupt, threads=threads) as seen:
        cpbpe.pack(TOK, source, out, **options)
    shutil.rmtree(out)
    return seen[0]


def moments(count: int, share: int, seed: int) -> list[int]:
    """Some of all moments; with a larger budget more."""
    return sorted(random.Random(seed).sample(range(count), min(budget.examples(share), count)))


def check(source: Path, out: Path, options: dict[str, Any], expected: Any, where: object) -> None:
    """What the same call gives now."""
    report = cpbpe.pack(TOK, source, out, **options)
    assert contents(out) == expected[0], where
    assert (report.documents, report.tokens, report.splits) == expected[1], where
    shutil.rmtree(out)


def undisturbed(source: Path, out: Path, options: dict[str, Any]) -> Any:
    report = cpbpe.pack(TOK, source, out, **options)
    return contents(out), (report.documents, report.tokens, report.splits)


@pytest.mark.parametrize("options", tiers.some(CASES, CASES[:1]), ids=str)
def test_interrupted_at_any_line(options: dict[str, Any], source: Path, tmp_path: Path) -> None:
    """Once; and a second time while the run goes on."""
    expected = undisturbed(source, tmp_path / "expected", options)
    out = tmp_path / "out"
    count = lines_of(source, out, options, threads=False)
    for number in moments(count, 8, 1):
        for again in (None, number % 97 * count // 97):
            with pytest.raises(KeyboardInterrupt), at_line(number, interrupt, threads=False):
                cpbpe.pack(TOK, source, out, **options)
            if again is not None:
                try:
                    with at_line(again, interrupt, threads=False):
                        cpbpe.pack(TOK, source, out, **options)
                except KeyboardInterrupt:
                    pass
            check(source, out, options, expected, (number, again))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("options", tiers.some(CASES, CASES[1:2]), ids=str)
def test_killed_at_any_line(options: dict[str, Any], source: Path, tmp_path: Path) -> None:
    """Any thread may be at the line: what is in buffers is lost, as with SIGKILL."""
    expected = undisturbed(source, tmp_path / "expected", options)
    out = tmp_path / "out"
    count = lines_of(source, out, options, threads=True)
    for number in moments(count, 8, 2):
        child = os.fork()
        if not child:
            with at_line(number, kill, threads=True):
                cpbpe.pack(TOK, source, out, **options)
            os._exit(0)
        os.waitpid(child, 0)
        check(source, out, options, expected, number)


def test_nothing_is_left_before_the_first_document(tmp_path: Path) -> None:
    """A run that fails at once does not refuse the corrected call."""
    source = tmp_path / "texts.jsonl"
    source.write_text('{"content": "the cat"}\n')
    with pytest.raises(cpbpe.CorpusError, match="text"):
        cpbpe.pack(TOK, source, tmp_path / "out")
    assert contents(tmp_path / "out") == {}
    assert cpbpe.pack(TOK, source, tmp_path / "out", field="content").documents == 1
