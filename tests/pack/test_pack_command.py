"""`cpbpe pack` as a user runs it: in a process of its own, on real files."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import cpbpe
from cpbpe.cli import main
from tests.support import processes, zoo
from tests.support.corpus import lines
from tests.support.terminals import COLUMNS, run_on_terminal

TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
TEXTS = lines(200)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.model").write_bytes(TOK.to_bytes())
    Path("texts.txt").write_text("\n".join([*TEXTS, ""]))


def pack(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return processes.run("-m", "cpbpe", "pack", *arguments, cwd=Path.cwd(), **options)


def documents() -> list[list[int]]:
    return [TOK.encode(line) for line in Path("texts.txt").read_text().split("\n") if line]


def test_a_run() -> None:
    done = pack("my.model", "texts.txt", "--out", "out", "--to", "megatron", "--eos", "--validation", "0.1")
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [[*ids, TOK.eos_id] for ids in documents()]
    train, val = cpbpe.PackedTokens("out"), cpbpe.PackedTokens("out", "val")
    assert sorted([*(ids.tolist() for ids in train), *(ids.tolist() for ids in val)]) == sorted(rows)
    out = done.stdout.decode()
    assert f"documents     {len(rows):,}, " in out
    assert f"\ntrain         {len(train):,} documents, {train.tokens:,} tokens, 1 shard\n" in out
    assert f"\nval           {len(val):,} documents, " in out
    assert "\nbyte fallback " in out
    assert out.endswith("out/train_text_document.bin, out/train_text_document.idx, ... (4 files)\n")


def test_again() -> None:
    command = ("my.model", "texts.txt", "--out", "out", "--shuffle-seed", "7")
    assert pack(*command).returncode == 0
    before = {path: path.stat().st_mtime_ns for path in Path("out").iterdir()}
    again = pack(*command)
    assert again.returncode == 0
    assert again.stdout.startswith(b"out is complete already, so there was nothing to do. It holds:\n")
    assert {path: path.stat().st_mtime_ns for path in Path("out").iterdir()} == before
    Path("out/train.npy").write_bytes(b"")
    short = pack(*command)
    assert short.returncode == 1
    assert b"'out/train.npy' had" in short.stderr
    Path("out/train.npy").unlink()
    assert (
        b"'out/train.npy' was written by this run, and is gone; put it back, or remove"
        in pack(*command).stderr
    )


def test_json() -> None:
    done = pack("my.model", "texts.txt", "-o", "out", "--json", "--to", "npy", "--workers", "1")
    report = json.loads(done.stdout)
    assert report["documents"] == len(documents())
    assert report["tokens"] == sum(map(len, documents()))
    assert report["files"] == ["out/train.npy", "out/train.offsets"]
    assert pack("my.model", "texts.txt", "-o", "quiet", "-q").stdout == b""


def test_standard_input_and_a_prefix() -> None:
    done = processes.run(
        *("-m", "cpbpe", "pack", "my.model", "-", "--out", "in_", "--to", "nanogpt"),
        cwd=Path.cwd(),
        input=b"one\ntwo\n\nthree",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in Path().glob("in_*")) == [
        "in_cpbpe-pack.json",
        "in_train.bin",
        "in_train.offsets",
    ]
    packed = cpbpe.PackedTokens("in_")
    assert [ids.tolist() for ids in packed] == [TOK.encode(text) for text in ("one", "two", "three")]


@pytest.mark.parametrize("name", ["./-", "[-]"])
def test_a_file_with_the_name_of_the_standard_input(name: str) -> None:
    Path("-").write_text("one\n")
    assert pack("my.model", name, "--out", "out", stdin=subprocess.DEVNULL).returncode == 0
    assert [ids.tolist() for ids in cpbpe.PackedTokens("out")] == [TOK.encode("one")]


OTHER = [
    (
        ["--eos"],
        "other options (--add-eos was not given and is now yes); give the same ones to go on with it",
    ),
    (["--to", "dolma"], "--to was 'npy' and is now 'dolma'"),
    (["--validation", "0.5"], "--validation was 0.0 and is now 0.5"),
    (["--shard-size", "1MB"], "--shard-size was not given and is now '1000000 bytes'"),
]


@pytest.mark.parametrize(("more", "said"), OTHER)
def test_other_options(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pack", "my.model", "texts.txt", "--out", "out", "-q"]
    assert main(command) == 0
    assert main([*command, *more]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.endswith("or choose another folder, or remove 'out' to begin again\n")


def test_another_model_and_other_texts(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pack", "my.model", "texts.txt", "--out", "out", "-q"]
    assert main(command) == 0
    Path("my.model").write_bytes(zoo.model("defaults"))
    assert main(command) == 1
    assert "'out' holds a run with another tokenizer (" in capsys.readouterr().err
    Path("my.model").write_bytes(TOK.to_bytes())
    Path("texts.txt").write_text("changed\n")
    assert main(command) == 1
    assert "'out' holds a run on other texts: 'texts.txt' had " in capsys.readouterr().err
    Path("new.txt").write_text("new\n")
    assert main([*command, "new.txt"]) == 1
    assert "'new.txt' is new; choose another folder, or remove 'out'" in capsys.readouterr().err


BAD = [
    ([], 2, "there is no model; name one: cpbpe pack tokenizer.model corpus.txt --out"),
    (["my.model"], 2, "there is no corpus; name a file or a folder after the model"),
    (["my.model", "texts.txt"], 2, "the result has no name; give one with --out"),
    (["my.model", "", "-o", "out"], 1, "no such file or directory: ''"),
    (["my.model", "none.txt", "-o", "out"], 1, "no such file or directory: 'none.txt'"),
    (["none.model", "texts.txt", "-o", "out"], 1, "none.model: no such file or folder"),
    (["my.model", "texts.txt", "-o", "out", "--to", "tfrecord"], 2, "'tfrecord' is not one of npy, megatron"),
    (
        ["my.model", "texts.txt", "-o", "out", "--shard-size", "big"],
        1,
        "--shard-size must be a number of tokens",
    ),
    (
        ["my.model", "texts.txt", "-o", "out", "--validation", "1"],
        1,
        "--validation is the share of documents",
    ),
    (
        ["my.model", "texts.txt", "-o", "out", "--to", "megatron", "--dtype", "uint32"],
        1,
        "--dtype must be auto",
    ),
    (["my.model", "texts.txt", "-o", "out", "--alpha", "0.1"], 1, "--alpha needs a --seed here"),
    (["my.model", "texts.txt", "-o", "-"], 1, "--out is a folder; several files cannot be written to '-'"),
    (["my.model", "texts.txt", "-o", "texts.txt"], 1, "choose another folder for the result"),
    (
        ["my.model", "texts.txt", "-o", "out", "--overwrite"],
        2,
        "a run that was interrupted goes on by itself",
    ),
    (["my.model", "empty.txt", "-o", "out"], 1, "there is no document to pack: all 2 are empty"),
    (["my.model", "latin.npy", "-o", "out"], 1, "latin.npy: the file is a numpy array"),
    (["my.model", "a.jsonl", "-o", "out"], 1, "a.jsonl:2: there is no field 'text' (there is 'content')"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), BAD)
def test_mistakes(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.txt").write_text("\n\n")
    Path("latin.npy").write_bytes(b"\x93NUMPY\1\0")
    Path("a.jsonl").write_text('{"text": "a"}\n{"content": "b"}\n')
    assert main(["pack", *arguments]) == code
    assert said in capsys.readouterr().err


CORRECTED = [
    (["a.jsonl"], ["a.jsonl", "--field", "content"]),
    (["a.jsonl", "--shuffle-seed", "1"], ["a.jsonl", "--field", "content"]),
    (["null.jsonl", "a.jsonl"], ["a.jsonl", "--field", "content"]),
    (["a.csv", "--column", "body"], ["a.csv", "--column", "content"]),
    (["empty.txt"], ["a.jsonl", "--field", "content"]),
]


@pytest.mark.parametrize(("wrong", "right"), CORRECTED)
def test_nothing_is_kept_from_before_the_first_document(
    wrong: list[str], right: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long that took: the corrected command works in the same folder."""
    monkeypatch.setattr("cpbpe.packing.work.SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 0)
    Path("a.jsonl").write_text('{"content": "a"}\n{"content": "b"}\n')
    Path("null.jsonl").write_text('{"text": null}\n')
    Path("a.csv").write_text("content\na\nb\n")
    Path("empty.txt").write_text("\n\n")
    assert main(["pack", "my.model", *wrong, "--out", "out"]) == 1
    assert "there is no " in capsys.readouterr().err
    assert list(Path("out").iterdir()) == []
    assert main(["pack", "my.model", *right, "--out", "out"]) == 0
    assert [ids.tolist() for ids in cpbpe.PackedTokens("out")] == [TOK.encode("a"), TOK.encode("b")]


def test_texts_with_the_names_of_a_split_that_this_run_has_not() -> None:
    """No run has written them, so they are a part of the corpus."""
    Path("val").mkdir()
    for name, texts in {"val-00000.parquet": ["one", "two"], "other.parquet": ["three"]}.items():
        parquet.write_table(pyarrow.table({"text": texts}), f"val/{name}")
    assert main(["pack", "my.model", "val", "--out", "val", "--to", "parquet", "-q"]) == 0
    assert parquet.read_table("val/train-00000.parquet").num_rows == 3


def test_files_of_others_stay(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/train.bin").write_text("precious")
    assert main(["pack", "my.model", "texts.txt", "-o", "out", "--to", "nanogpt"]) == 1
    assert (
        "'out/train.bin' exists already, and no run of cpbpe pack has written it" in capsys.readouterr().err
    )
    assert [path.name for path in Path("out").iterdir()] == ["train.bin"]


@pytest.mark.parametrize("name", ["train-00001.npy", "train-00001.offsets"])
def test_files_of_others_stay_however_often_the_run_goes_on(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a file that is the same is this run's own, from just before it was interrupted."""
    command = ["pack", "my.model", "texts.txt", "-q", "--shard-size", "1000"]
    assert main([*command, "-o", "whole"]) == 0
    Path("out").mkdir()
    for precious in (b"precious", Path("whole", name).read_bytes() + b"more"):
        Path("out", name).write_bytes(precious)
        for _ in range(2):
            assert main([*command, "-o", "out"]) == 1
            error = capsys.readouterr().err
            assert f"'out/{name}' exists already, and no run of cpbpe pack has written it; choose" in error
            assert "goes on" not in error
            assert Path("out", name).read_bytes() == precious
    Path("out", name).write_bytes(Path("whole", name).read_bytes())
    assert main([*command, "-o", "out"]) == 0
    assert {path.name for path in Path("out").iterdir()} == {path.name for path in Path("whole").iterdir()}
    cpbpe.PackedTokens("out").check()


@pytest.mark.parametrize("out", ["texts/out", "texts/out_"])
def test_a_pattern_that_the_shell_expands(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the results, too, when the same command goes on."""
    Path("texts").mkdir()
    Path("texts.txt").rename("texts/texts.txt")

    def command() -> list[str]:
        return ["pack", "my.model", *map(str, sorted(Path("texts").glob("*"))), "-o", out, "-q"]

    from cpbpe.packing import work

    finish = work.Writer.finish

    def killed(writer: work.Writer) -> None:
        writer.save()
        raise KeyboardInterrupt

    monkeypatch.setattr(work.Writer, "finish", killed)
    assert main(command()) == 130
    monkeypatch.setattr(work.Writer, "finish", finish)
    assert main(command()) == 0
    assert main(command()) == 0
    assert [ids.tolist() for ids in cpbpe.PackedTokens(out)] == [
        TOK.encode(line) for line in Path("texts/texts.txt").read_text().split("\n") if line
    ]


def test_unreadable_out(capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    Path("out").mkdir(mode=0o500)
    assert main(["pack", "my.model", "texts.txt", "-o", "out"]) == 1
    assert "choose another folder for the result" in capsys.readouterr().err


def large(number: int = 60_000) -> None:
    rng = random.Random(3)
    Path("large.txt").write_text("\n".join(rng.choice(TEXTS) for _ in range(number)))


SLOW = """
import sys, time
from cpbpe.corpus import files
from cpbpe.packing import read, work
files.PART_BYTES = 1 << 16
work.SECONDS_BETWEEN_STATES = 0.01
take = work.Writer.take
def slowly(*arguments):
    take(*arguments)
    print("step", flush=True)
    time.sleep(0.05)
work.Writer.take = slowly
from cpbpe.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")]
)
def test_interrupted(number: signal.Signals, code: int, word: bytes) -> None:
    large()
    command = ("pack", "my.model", "large.txt", "--out", "out", "--shard-size", "100k")
    process = processes.start("-c", SLOW, *command, cwd=Path.cwd(), stdout=-1, stderr=-1)
    assert process.stdout is not None
    for _ in range(20):
        assert process.stdout.readline() == b"step\n"
    begun = time.monotonic()
    process.send_signal(number)
    error = process.communicate()[1]
    assert time.monotonic() - begun < 5
    assert process.returncode == code
    assert error.startswith(b"cpbpe: " + word + b"; ")
    assert b" documents kept; the same command goes on where this ended\n" in error
    shards = list(Path("out").glob("*.npy"))
    assert shards
    done = processes.run("-m", "cpbpe", *command, cwd=Path.cwd())
    assert b", after going on with an earlier run\n" in done.stdout
    assert main(["pack", "my.model", "large.txt", "--out", "other", "--shard-size", "100k", "-q"]) == 0
    for path in Path("other").iterdir():
        assert Path("out", path.name).read_bytes() == path.read_bytes()


def test_two_at_once() -> None:
    large()
    command = ("pack", "my.model", "large.txt", "--out", "out")
    process = processes.start("-c", SLOW, *command, cwd=Path.cwd(), stdout=-1, stderr=-1)
    assert process.stdout is not None
    process.stdout.readline()
    other = processes.run("-m", "cpbpe", *command, cwd=Path.cwd())
    process.kill()
    process.communicate()
    assert other.returncode == 1
    said = b"another process is packing into 'out' at this moment; wait for it, or choose another folder\n"
    assert other.stderr.endswith(said)


def test_source_that_changes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two runs, and during one."""
    from cpbpe.packing import work

    large(20_000)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 1 << 16)
    take = work.Writer.take

    def change(*arguments: Any) -> None:
        take(*arguments)
        os.utime("large.txt", ns=(1, 1))

    monkeypatch.setattr(work.Writer, "take", change)
    command = ["pack", "my.model", "large.txt", "--out", "out", "-q"]
    assert main(command) == 1
    assert (
        "large.txt: was changed while it was read; begin again in another folder" in capsys.readouterr().err
    )
    assert main(command) == 1
    assert (
        "'out' holds a run on other texts: 'large.txt' was changed in the meantime" in capsys.readouterr().err
    )


def test_interrupted_while_it_waits_for_text() -> None:
    process = processes.start(
        *("-m", "cpbpe", "pack", "my.model", "-", "--out", "out"), cwd=Path.cwd(), stdin=-1, stderr=-1
    )
    deadline = time.monotonic() + 60
    while not Path("out/.cpbpe-pack").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert process.wait(30) == 130
    assert time.monotonic() - begun < 5
    assert process.stderr is not None
    assert b"interrupted; nothing was written" in process.stderr.read()
    assert process.stdin is not None
    process.stdin.close()
    process.stderr.close()


def test_verbose_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "my.model", "texts.txt", "-o", "out", "-v"]) == 0
    assert capsys.readouterr().err == "cpbpe: reading texts.txt\n"  # no bar: this is no terminal
    Path("folder").mkdir()
    Path("folder/a.txt").write_text("one\n")
    Path("folder/a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert main(["pack", "my.model", "folder", "-o", "folder/out", "-v"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "cpbpe: reading folder/a.txt\n"
    assert "1 files in the folders were left out; the first, 'folder/a.png', is an image" in shown.out
    seen: list[Any] = []
    cpbpe.pack(TOK, "texts.txt", "other", shuffle_seed=1, progress=seen.append)
    assert {step.phase for step in seen} == {"reading", "shuffling"}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no terminals of this kind")
@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_of_60_columns(quiet: bool) -> None:
    """The bar fits, is on the terminal only, and has no colours if they are not wanted."""
    large(300_000)
    options = ["--out", "out", *(["-q"] if quiet else [])]
    shown, out = run_on_terminal("pack", "my.model", "large.txt", *options, rich=False)
    if quiet:
        assert (shown, out) == (b"", b"")
        return
    assert b"reading" in shown
    assert b"\x1b[3" not in shown
    assert max(len(line.strip()) for line in shown.decode().split("\r")) < COLUMNS
    count = len(list(filter(None, Path("large.txt").read_text().split("\n"))))
    assert out.decode().startswith(f"documents     {count:,}, ")


def test_help_is_quick() -> None:
    """150 ms on a quiet machine; here only that nothing large is imported."""
    done = processes.run("-X", "importtime", "-m", "cpbpe", "pack", "--help")
    assert b"--shuffle-seed N" in done.stdout
    for module in (b" numpy", b" cpbpe._core", b" google.protobuf", b" pyarrow"):
        assert module not in done.stderr
