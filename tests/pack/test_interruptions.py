"""Runs that are killed, and continued: the files are those of an undisturbed run, byte for byte."""

import errno
import gzip
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cpbpe
from cpbpe.packing import work
from cpbpe.packing.pack import pack_source
from cpbpe.packing.read import source_of
from tests.support import processes, tiers, zoo
from tests.support.corpus import lines

TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))

RUN = """
import sys, json
import cpbpe
from cpbpe.corpus import files
from cpbpe.packing import read, work
files.PART_BYTES = read.BATCH_BYTES = 1 << 14  # so that there are many steps
work.SECONDS_BETWEEN_STATES = 0.003
options = json.loads(sys.argv[1])
print("begins", flush=True)
cpbpe.pack(cpbpe.load("tiny.model"), "texts.txt", sys.argv[2], threads=2, **options)
print("done", flush=True)
"""

CASES: list[dict[str, Any]] = [
    {"to": "npy", "shard_size": 40_000, "add_eos": True},
    {"to": "megatron", "validation": 0.1},
    {"to": "dolma", "shuffle_seed": 3, "shard_size": "60kB", "validation": 0.2},
    {"to": "mds", "shard_size": 30_000, "shuffle_seed": 1},
    {"to": "parquet", "shard_size": 30_000},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interruptions")
    (folder / "tiny.model").write_bytes(TOK.to_bytes())
    texts = lines(300)
    made = random.Random(1)
    (folder / "texts.txt").write_text("\n".join(made.choice(texts) for _ in range(20_000)))
    (folder / "run.py").write_text(RUN)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def killed_at_random(folder: Path, options: dict[str, Any], kills: int, seed: int) -> int:
    """Kill a run at random moments until it is complete; how often it was killed while it worked."""
    rng = random.Random(seed)
    arguments = ("run.py", json.dumps(options))
    begun = time.monotonic()
    assert processes.run(*arguments, "undisturbed", cwd=folder).returncode == 0
    longest = time.monotonic() - begun
    hit = 0
    for round_ in range(1000):
        process = processes.start(*arguments, "disturbed", cwd=folder, stdout=-1)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        if hit < kills:
            time.sleep(rng.uniform(0, longest) * rng.choice((0.1, 0.5, 1.0)))
            process.kill()
        out = process.communicate()[0]
        if process.returncode == 0:
            assert out == b"done\n"
            if hit >= kills or round_ > 4 * kills:
                break
            hit += 1  # complete too early: this round proves that nothing is done again
            continue
        assert process.returncode == -signal.SIGKILL
        hit += 1
    found, expected = (contents(folder / name) for name in ("disturbed", "undisturbed"))
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    for name in ("disturbed", "undisturbed"):
        for path in sorted((folder / name).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    return hit


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.parametrize("case", tiers.some(range(len(CASES)), [0, 2]))
def test_killed(case: int, folder: Path) -> None:
    assert killed_at_random(folder, CASES[case], 4, case) >= 4


def test_killed_at_the_very_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is only needed while a run goes on is removed by the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    cpbpe.pack(TOK, ["a"], "out")
    assert Path("out/.cpbpe-pack").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert cpbpe.pack(TOK, ["a"], "out").was_complete
    assert not Path("out/.cpbpe-pack").exists()


def test_a_complete_run_on_other_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known about an iterable, so it is read again."""
    monkeypatch.setattr("cpbpe.packing.read._ITEMS", 2)
    texts = ["one", None, "", "two", "three", ""]
    cpbpe.pack(TOK, texts, tmp_path / "out")
    assert cpbpe.pack(TOK, iter(texts), tmp_path / "out").was_complete
    for others in (texts[:-1], texts[:1], [], [*texts, "more"], ["One!", *texts[1:]], [*texts[:4], "there"]):
        with pytest.raises(cpbpe.CorpusError, match="the texts are not those of the run that is complete"):
            cpbpe.pack(TOK, iter(others), tmp_path / "out")


def test_what_is_left_of_a_run_whose_manifest_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rm out/*` leaves the scratch folder, whose name begins with a dot."""
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read._ITEMS", 1)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 0)
    take = work.Writer.take

    def killed(writer: work.Writer, *batch: Any) -> None:
        take(writer, *batch)
        if writer.read.number == 2:
            raise _Killed

    for shuffle_seed in (None, 1):
        out = tmp_path / str(shuffle_seed)
        monkeypatch.setattr(work.Writer, "take", killed)
        with pytest.raises(_Killed):
            cpbpe.pack(TOK, ["one", "two", "three"], out, shuffle_seed=shuffle_seed)
        monkeypatch.setattr(work.Writer, "take", take)
        (out / "cpbpe-pack.json").unlink()
        cpbpe.pack(TOK, ["one", "two", "three"], out, add_eos=True, shuffle_seed=shuffle_seed)
        found = sorted(ids.tolist() for ids in cpbpe.PackedTokens(out))
        assert found == sorted(TOK.encode(text, add_eos=True) for text in ("one", "two", "three"))


def test_another_process_was_faster(tmp_path: Path) -> None:
    """Between what is found in the folder and the lock, there may be time: files are looked at."""

    def opened(hidden: Any) -> Any:
        cpbpe.pack(TOK, ["a"], tmp_path / "out", to="megatron")
        return source_of(["b"])

    with pytest.raises(BlockingIOError, match="another process has packed into"):
        pack_source(TOK, opened, tmp_path / "out", {}, {"to": "npy"})
    assert [ids.tolist() for ids in cpbpe.PackedTokens(tmp_path / "out")] == [TOK.encode("a")]


def test_locks_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stub of the module that locks there."""
    locked: set[int] = set()

    def locking(descriptor: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        file = os.fstat(descriptor).st_ino
        if file in locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        locked.add(file)

    monkeypatch.setattr("cpbpe.packing.pack.HAS_LOCKS", False)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # no file that is open can be deleted there
    take = work.Writer.take

    def twice(*arguments: Any) -> None:
        with pytest.raises(BlockingIOError, match="another process is packing into"):
            cpbpe.pack(TOK, ["one"], tmp_path / "out")
        (tmp_path / "out/.cpbpe-pack/lock").touch()  # it can be deleted here, but not there
        take(*arguments)

    monkeypatch.setattr(work.Writer, "take", twice)
    cpbpe.pack(TOK, ["one"], tmp_path / "out")
    assert len(cpbpe.PackedTokens(tmp_path / "out")) == 1
    assert not (tmp_path / "out/.cpbpe-pack/lock").exists()


@pytest.mark.parametrize("nothing", [None, ""])
def test_other_texts_with_empty_ones(
    nothing: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 16)  # so the first batch ends with "cd"
    texts, take = ["four", "four", "four", "ab", nothing, "cd", "more"], work.Writer.take

    def killed(*arguments: Any) -> None:
        take(*arguments)
        raise _Killed

    monkeypatch.setattr(work.Writer, "take", killed)
    with pytest.raises(_Killed):
        cpbpe.pack(TOK, texts, tmp_path / "out")
    monkeypatch.setattr(work.Writer, "take", take)
    with pytest.raises(cpbpe.CorpusError, match="the texts are not those of the run that was interrupted"):
        cpbpe.pack(TOK, ["Four", "Four", "Four", "AB", nothing, "CD", "More"], tmp_path / "out")
    assert cpbpe.pack(TOK, texts, tmp_path / "out").resumed


@pytest.mark.skipif(os.name != "posix", reason="there are no named pipes")
def test_a_pipe_that_has_less_than_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be compared before it is read, and another file comes after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 0)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 4)
    os.mkfifo("pipe")
    Path("b.txt").write_text("last\n")
    take, taken = work.Writer.take, 0

    def packed(content: bytes) -> cpbpe.PackReport:
        writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content), daemon=True)
        writer.start()
        try:
            return cpbpe.pack(TOK, [Path("pipe"), Path("b.txt")], "out")
        finally:
            writer.join(5)

    def killed(*arguments: Any) -> None:
        nonlocal taken
        take(*arguments)
        taken += 1
        if taken == 3:
            raise _Killed

    monkeypatch.setattr(work.Writer, "take", killed)
    with pytest.raises(_Killed):
        packed(b"one\ntwo\nsix\n")
    monkeypatch.setattr(work.Writer, "take", take)
    with pytest.raises(cpbpe.CorpusError, match="the source ends 2 records before the place"):
        packed(b"one\n")
    assert packed(b"one\ntwo\nsix\n").resumed
    assert len(cpbpe.PackedTokens("out")) == 4


def test_what_other_runs_wrote_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if it looks like text, and whatever a file of that name holds besides."""
    monkeypatch.chdir(tmp_path)
    for folder, content in (("list", "[]"), ("number", '{"shards": [{"files": 5}]}'), ("text", "x")):
        Path("texts", folder).mkdir(parents=True)
        Path("texts", folder, "cpbpe-pack.json").write_text(content)
    Path("texts/a.txt").write_text("one\ntwo\n")
    formats = ("npy", "megatron", "nanogpt", "datatrove", "dolma", "mds")
    written = [file for to in formats for file in cpbpe.pack(TOK, ["abc"], f"texts/{to}_", to=to).files]
    report = cpbpe.pack(TOK, "texts", "out")
    assert report.documents == 2
    (said,) = report.warnings
    count = len({file for file in written if Path(file).exists()}) + len(formats) + 3
    assert said.startswith(f"{count} files in the folders were left out; the first, 'texts/datatrove_cpbpe-")


def test_marks_of_files_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on warns of what an earlier one has read."""
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 0)
    mark = b"\xef\xbb\xbf"
    for name, content in (
        ("a.txt", mark + b"a"),
        ("b.txt", b"b"),
        ("c.txt.gz", mark + b"c"),
        ("d.txt", b"d"),
    ):
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    files = sorted(tmp_path.glob("*.txt*"))
    expected = cpbpe.pack(TOK, files, tmp_path / "undisturbed").warnings
    assert len(expected) == 2
    for last in range(1, 5):
        left, take = last, work.Writer.take

        def killed(*arguments: Any, take: Any = take) -> None:
            nonlocal left
            take(*arguments)
            left -= 1
            if not left:
                raise _Killed

        monkeypatch.setattr(work.Writer, "take", killed)
        with pytest.raises(_Killed):
            cpbpe.pack(TOK, files, tmp_path / str(last))
        monkeypatch.setattr(work.Writer, "take", take)
        assert cpbpe.pack(TOK, files, tmp_path / str(last)).warnings == expected


class _Killed(BaseException):
    """Like a kill, but in this process: nothing may handle it."""


@pytest.mark.parametrize(
    ("to", "out", "source"),
    [
        ("datatrove", "texts/out", "texts"),
        ("npy", "texts/sub/out_", "texts/**"),
        ("dolma", "texts", "texts"),
        ("parquet", "texts/out_", "texts"),
        ("mds", "texts/sub/out", "texts/**"),
    ],
)
def test_into_a_folder_of_the_texts(
    to: str, out: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it is killed: what it has written is not taken for more texts."""
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 0)
    options: dict[str, Any] = {"to": to, "shard_size": 300, "validation": 0.3, "column": "text", "threads": 1}
    real_replace, steps, prefix = os.replace, 0, out if out.endswith("_") else f"{out}/"

    def replace(*paths: Any) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise _Killed
        real_replace(*paths)

    monkeypatch.setattr(os, "replace", replace)
    found = []
    for name, steps in (("undisturbed", 1 << 30), ("disturbed", 1)):
        (tmp_path / name / "texts/sub").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        for number in range(3):
            path = Path(f"texts/sub/{number}.txt")
            path.write_text("\n".join(lines(60)[20 * number : 20 * number + 20]))
            os.utime(path, ns=(1, 1))
        for attempt in range(100):
            try:
                report = cpbpe.pack(TOK, source, out, **options)
                break
            except _Killed:
                Path(f"{prefix}cpbpe-pack.json.{attempt:016x}.cpbpe.tmp").write_text("half")
                steps = 4 * attempt + 1
        steps = 1 << 30
        assert cpbpe.pack(TOK, source, out, **options).was_complete
        found.append({file: Path(file).read_bytes() for file in [*report.files, f"{prefix}cpbpe-pack.json"]})
    assert found[0] == found[1]


def test_killed_between_the_indexes_of_two_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"to": "mds", "validation": 0.3}
    cpbpe.pack(TOK, lines(50), tmp_path / "undisturbed", **options)
    real_replace = os.replace

    def replace(source: Any, target: Any) -> None:
        if os.path.join("val", "index.json") in str(target):
            raise _Killed
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(_Killed):
        cpbpe.pack(TOK, lines(50), tmp_path / "out", **options)
    monkeypatch.undo()
    report = cpbpe.pack(TOK, lines(50), tmp_path / "out", **options)
    assert len(report.files) == len(set(report.files)) == 4
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")


@pytest.mark.parametrize("options", CASES, ids=lambda case: case["to"])
def test_killed_at_every_step(
    options: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call that changes something on the disk is the last one, one after the other."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 1 << 14)
    monkeypatch.setattr("cpbpe.packing.read._FEW_BYTES", 1)
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    rng = random.Random(2)
    text = (folder / "texts.txt").read_bytes()[:150_000]
    source = tmp_path / "part.txt"
    source.write_bytes(text)
    options = {**options, "threads": 1}
    cpbpe.pack(TOK, source, tmp_path / "undisturbed", **options)
    expected = contents(tmp_path / "undisturbed")
    real_replace = os.replace
    steps = 0

    def replace(*paths: Any) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise _Killed
        real_replace(*paths)
        if steps == -1:
            raise _Killed

    monkeypatch.setattr(os, "replace", replace)
    for attempt in range(4):
        out = tmp_path / f"out{attempt}"
        for _ in range(60):
            steps = rng.randint(1, 9)
            try:
                cpbpe.pack(TOK, source, out, **options)
            except _Killed:
                continue
            break
        else:
            steps = 1 << 40
            cpbpe.pack(TOK, source, out, **options)
        assert contents(out) == expected, attempt
