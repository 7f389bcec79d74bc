"""Where the command writes: checked before the work; and outputs that are closed, full or read in part."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cpbpe import train
from cpbpe.cli import main
from cpbpe.cli.output import check_outputs
from cpbpe.text.drawn import width
from tests.support import processes, zoo
from tests.support.corpus import lines
from tests.support.terminals import COLUMNS, run_on_terminal

TRAIN = ["train", "corpus.txt", "--vocab-size", "700"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("\n".join(lines(200)), newline="")


# --- Before the work ------------------------------------------------------------------------------

REFUSED: list[tuple[list[str], str]] = [
    ([*TRAIN, "--out", "folder/"], "'folder/' is a folder; give a name in it, such as 'folder/my'"),
    ([*TRAIN, "--out", "taken"], "'taken.model' is a folder; choose another name"),
    ([*TRAIN, "--out", "taken.model"], "'taken.model' is a folder; choose another name"),
    ([*TRAIN, "--out", "corpus.txt/my"], "corpus.txt' is not a folder, so nothing can be written there"),
    ([*TRAIN, "--out", "corpus.txt/more/my"], "corpus.txt' is not a folder"),
    ([*TRAIN, "--out", "my", "--report", ""], "'' is a folder"),
    ([*TRAIN, "--out", "my", "--report", "corpus.txt"], "'corpus.txt' is read here, and would be replaced"),
    ([*TRAIN, "--out", "my", "--report", "my.model"], "'my.model' would be written twice"),
    ([*TRAIN, "--out", "my", "--report", "taken.model"], "'taken.model' is a folder"),
    (["count", "corpus.txt", "--out", "-"], "'-' would be a file: for the standard output, leave it out"),
    (["count", "corpus.txt", "--out", "corpus.txt"], "'corpus.txt' is read here, and would be replaced"),
    (["count", "corpus.txt", "--out", "link.txt"], "'link.txt' is read here, and would be replaced"),
    (["count", "texts", "--out", "texts/a.txt"], "'texts/a.txt' is read here, and would be replaced"),
    (["count", "texts/*", "--out", "texts/a.txt"], "'texts/a.txt' is read here, and would be replaced"),
    (["train", "texts", "--out", "my", "--report", "texts/a.txt"], "'texts/a.txt' is read here"),
    (["count", "corpus.txt", "--out", "taken.model"], "'taken.model' is a folder"),
    (["quickstart", "--out", "corpus.txt"], "corpus.txt' is not a folder"),
    (["train", "empty", "--out", "new/my"], "the directory 'empty' holds no text file"),
    (["train", "none.txt", "--out", "new/my"], "no such file or directory: 'none.txt'"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_cannot_be_written_is_found_before_the_work(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("cpbpe.training.train.learn", work)
    monkeypatch.setattr("cpbpe.training.word_counts.WordCounts.of", work)
    Path("taken.model").mkdir()
    Path("empty").mkdir()
    Path("link.txt").symlink_to("corpus.txt")
    Path("texts").mkdir()
    Path("texts/a.txt").write_text("a b\n")
    before = sorted(Path().rglob("*"))
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before


def test_what_is_read_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    model = zoo.model("llama")
    Path("texts").mkdir()
    for name, data in {"m.model": model, "n.model": model, "texts/a.txt": b"1 2\n", "w.txt": b"x\n"}.items():
        Path(name).write_bytes(data)
    assert main(["convert", "m.model", "folder/", "--quiet"]) == 0
    for command in (
        "encode m.model corpus.txt --out m.model",
        "decode m.model texts/a.txt --out m.model",
        "spm encode --model=m.model --output=m.model corpus.txt",
        "spm decode --model=m.model --output=m.model texts/a.txt",
        "diff m.model n.model texts --out texts/a.txt",
        "diff m.model n.model texts/*.txt --out texts/a.txt",
        "compare m.model texts --out texts/a.txt",
        "edit m.model n.model --merge n.model",
        "edit m.model w.txt --words w.txt",
        "encode folder corpus.txt --out folder/tokenizer.model",
        "edit folder folder/tokenizer.model --piece x",
        "inspect folder --json --out folder/tokenizer.json",
        "spm encode --model=folder/tokenizer.model --output=folder/tokenizer.model corpus.txt",
        "compare folder corpus.txt --out folder/tokenizer_config.json --format json",
    ):
        before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        assert main(command.split()) == (2 if command.startswith("diff") else 1), command
        assert "replace" in capsys.readouterr().err, command
        assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before, command


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    Path("closed").mkdir(0o500)
    assert main([*TRAIN, "--out", "closed/my"]) == 1
    assert "nothing can be written to the folder" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no such folder")
def test_a_folder_in_which_nobody_can_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--out", "/proc/my"]) == 1
    assert "nothing can be written to the folder '/proc'" in capsys.readouterr().err


def test_a_drive_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, nothing above a path may exist."""
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    with pytest.raises(NotADirectoryError, match="is not a folder, so nothing can be written there"):
        check_outputs(["q/my"], [])


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes have no such names")
@pytest.mark.parametrize("command", ["encode my.model corpus.txt", "lint my.model", "view my.model"])
def test_a_pipe_as_the_output(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As bash's `--out >(program)`."""
    assert main([*TRAIN, "--out", "my", "--quiet"]) == 0
    read, write = os.pipe()
    with open(read, "rb") as reader, ThreadPoolExecutor(1) as pool, open(write, "wb"):
        piped = pool.submit(reader.read)
        assert main([*command.split(), "--out", f"/dev/fd/{write}"]) == 0
    assert f"written       /dev/fd/{write}" in (said := capsys.readouterr().out)
    assert "replacing" not in said
    assert main([*command.split(), "--out", "file"]) == 0
    assert piped.result() == Path("file").read_bytes()


def test_files_that_exist_are_replaced_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--out", "new/folder/my"]) == 0
    assert capsys.readouterr().out.endswith("written       new/folder/my.model, new/folder/my.vocab\n")
    assert main([*TRAIN, "--out", "new/folder/my", "--byte-fallback"]) == 0
    assert capsys.readouterr().out.endswith("my.vocab (replacing 2 files)\n")
    assert Path("new/folder/my.model").read_bytes() == train("corpus.txt", vocab_size=700).model_bytes


def test_a_folder_is_not_made_for_nothing() -> None:
    assert main(["train", "corpus.txt", "--vocab-size", "9999", "--out", "new/my"]) == 1
    assert not Path("new").exists()


# --- Outputs --------------------------------------------------------------------------------------


def run(arguments: list[str], **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """The command. Its output is kept until it is flushed, as usual, whatever PYTHONUNBUFFERED says."""
    environment = processes.environment(PYTHONUNBUFFERED="")
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment, **streams}
    return processes.run("-m", "cpbpe", *arguments, cwd=Path.cwd(), capture_output=False, **given)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are another matter there")
def test_nobody_may_read_what_is_said_besides() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as closed:  # what it says of spm_train's defaults comes before the work
        flags = ["--input=corpus.txt", "--model_prefix=my", "--vocab_size=700"]
        assert run(["train", *flags], stderr=closed).returncode == 0
    assert Path("my.model").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
@pytest.mark.parametrize("arguments", [["--version"], ["train", "--help"]])
def test_a_full_disk(arguments: list[str]) -> None:
    """A short output fails when it is flushed, and a long one before."""
    with open("/dev/full", "wb") as full:
        done = run(arguments, stdout=full)
    message = b"the standard output: No space left on device; make room there, or choose another disk"
    assert (done.returncode, done.stderr) == (1, b"cpbpe: " + message + b"\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["diff", "m.model", "other.model"], 2),
        (["lint", "m.model"], 2),
        (["inspect", "m.model"], 1),
        (["encode", "m.model", "corpus.txt"], 1),
        (["train", "--help"], 1),
    ],
)
def test_room_for_half_of_the_output(arguments: list[str], code: int, unbuffered: str) -> None:
    """Without a buffer, Python would take no notice of the other half."""
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("other.model").write_bytes(zoo.model("nfkc"))
    whole = run(arguments).stdout
    most = len(whole) // 2
    limited = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, ({most},) * 2); "
    limited += f"import sys; sys.argv[1:] = {arguments}; runpy.run_module('cpbpe', run_name='__main__')"
    environment = processes.environment(PYTHONUNBUFFERED=unbuffered, PYTHONDONTWRITEBYTECODE="1")
    with open("out", "wb") as out:
        given = {"stdout": out, "stderr": subprocess.PIPE, "env": environment, "capture_output": False}
        done = processes.run("-c", limited, cwd=Path.cwd(), **given)
    message = b"cpbpe: the standard output: File too large; make room there, or choose another disk\n"
    assert (done.returncode, done.stderr) == (code, message)
    assert Path("out").read_bytes() == whole[:most]


def test_a_terminal_without_most_characters() -> None:
    done = run(["quickstart"], env=processes.environment(PYTHONIOENCODING="ascii"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2581The" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
@pytest.mark.parametrize("close", [">&-", "2>&-", ">&- 2>&-"])
def test_a_failure_with_outputs_that_are_closed(close: str) -> None:
    """As a shell closes them. (`test_faults.py` closes those of every command.)"""
    failing = f'"$0" -m cpbpe train corpus.txt --vocab-size 9 --out my {close}'
    done = subprocess.run(
        ["sh", "-c", failing, sys.executable],
        env=processes.environment(),
        check=False,
        stdout=subprocess.PIPE,
    )
    assert (done.returncode, done.stdout) == (1, b"")  # what is wrong is not said where results are expected


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_long_lines_of_reports_go_on_below_their_texts(capsys: pytest.CaptureFixture[str]) -> None:
    shown, _ = run_on_terminal(*TRAIN, "--out", "my", rich=False, out="terminal", before_bar=60)
    lines = shown.decode().replace("\r\n", "\n").split("\n")
    assert max(map(width, lines)) <= COLUMNS
    first = next(place for place, line in enumerate(lines) if line.startswith("pieces        700: 3 special"))
    assert lines[first + 1].startswith(" " * 14)
    assert lines[first + 1].strip().endswith("characters")
    assert main([*TRAIN, "--out", "my"]) == 0  # whoever reads it as a program gets whole lines
    report = capsys.readouterr().out
    assert f"{lines[first]} {lines[first + 1].strip()}\n" in report


def test_reports_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--out", "my", "--json", "-v"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["vocab_size"] == 700
    assert "cpbpe: reading corpus.txt\n" in err
    assert main(["count", "corpus.txt", "--out", "my.counts", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["out"] == "my.counts"
    assert report["words"] > 10
    assert report["reading"]["sentences"] >= 200
