"""`cpbpe inspect` as a user runs it: on a terminal, into a pipe and a file, and with mistakes."""

import json
import os
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.text.drawn import width
from cpbpe.tools.vocabulary_file import read_json, read_tsv, rows
from tests.support import processes, zoo
from tests.support.drawings import WholePage, without_colours


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(zoo.model("llama"))
    return tmp_path


def run(*arguments: str, **variables: str) -> str:
    done = processes.run(
        "-m", "cpbpe", "inspect", *arguments, cwd=Path.cwd(), env=processes.environment(**variables)
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_page(folder: Path) -> None:
    text = run("m.model")
    for part in (
        "type          BPE, with byte fallback",
        "lossless      every text comes back from its ids",
        "special       unk 0, bos 1, eos 2, pad none; <s> 1, </s> 2",
        "pieces        700: 441 NORMAL, 1 UNKNOWN, 2 CONTROL, 256 BYTE",
        "settings, --settings shows them",
        "sample: The llama reads stories, читает слова и 喜欢面包 🙂!",
        "│",
        "… cpbpe show draws all of it",
    ):
        assert part in text
    assert "\x1b" not in text
    assert "vocab_size = 700" not in text
    settings = run("m.model", "--settings", COLUMNS="60")
    assert "vocab_size = 700" in settings
    assert "how many pieces were asked for, special pieces" in settings
    assert max(map(width, settings.split("\n"))) <= 60
    assert run(".") == text.replace("m.model", ".", 1)  # the folder that holds it
    narrow = run("m.model", COLUMNS="60")
    assert max(map(width, narrow.split("\n"))) <= 60
    run("m.model", "--out", "m.html")
    page = WholePage(Path("m.html").read_text(encoding="utf-8"))
    assert page.title == "m.model"
    assert "every text comes back from its ids" in page.text
    run("m.model", "--settings", "--out", "settings.html")
    assert "vocab_size = 700" in WholePage(Path("settings.html").read_text(encoding="utf-8")).text
    seen = cpbpe.load("m.model").inspect(sample="Hi")
    run("m.model", "--sample", "Hi", "--out", "m.json")
    assert json.loads(Path("m.json").read_text(encoding="utf-8")) == seen.to_dict()
    assert json.loads(run("m.model", "--json", "--sample", "Hi")) == seen.to_dict()
    assert json.loads(run("m.model", "--json", "--settings")) == seen.to_dict()["settings"]


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such terminals")
@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_of_60_columns(no_color: bool, folder: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = processes.environment(**({"NO_COLOR": "1"} if no_color else {}))
    for name in ("COLUMNS", *([] if no_color else ["NO_COLOR"])):
        environment.pop(name, None)
    with processes.start(
        "-m", "cpbpe", "inspect", "m.model", cwd=folder, stdout=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the terminal was closed
                break
            if not part:
                break
            written += part
        assert process.wait() == 0
    os.close(ours)
    text = written.decode().replace("\r\n", "\n")
    assert ("\x1b[1m" in text) != no_color
    assert ("\x1b" in text) != no_color
    assert max(map(width, without_colours(text).split("\n"))) <= 60


def test_pieces(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tok = cpbpe.load("m.model")
    id = next(id for id in range(len(tok)) if len(tok.vocab[id]) == 5 and tok.vocab[id][0] == "▁")
    piece = tok.vocab[id]
    assert main(["inspect", "m.model", "--piece", piece]) == 0
    text = capfd.readouterr().out
    assert f"begins as     {' '.join(piece)}" in text
    assert f"= {piece} (rank " in text
    assert main(["inspect", "m.model", "--id", str(id)]) == 0
    assert capfd.readouterr().out == text
    assert main(["inspect", "m.model", "--piece", piece, "--json"]) == 0
    built = json.loads(capfd.readouterr().out)
    assert (built["id"], built["is_made"], built["merges"][-1]["made"]) == (id, True, piece)
    assert main(["inspect", "m.model", "--piece", piece, "--out", "built.json"]) == 0
    assert json.loads(Path("built.json").read_text(encoding="utf-8")) == built
    capfd.readouterr()
    assert main(["inspect", "m.model", "--piece", f" {piece[1:]}"]) == 1
    assert f"did you mean {piece!r}?" in capfd.readouterr().err
    assert main(["inspect", "m.model", "--piece", "no such piece"]) == 1
    assert "the text is cut into these: ▁no " in capfd.readouterr().err


def test_search(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "m.model", "--search", "^<0x0[0-3]>$"]) == 0
    out = capfd.readouterr().out
    assert [line.split() for line in out.splitlines()] == [
        [str(3 + byte), "BYTE", "0", f"<0x0{byte}>"] for byte in range(4)
    ]
    assert main(["inspect", "m.model", "--search", "^<0x0[0-3]>$", "--json"]) == 0
    assert [row["id"] for row in json.loads(capfd.readouterr().out)] == [3, 4, 5, 6]
    assert main(["inspect", "m.model", "--search", "^<0x0[0-3]>$", "--out", "found.json"]) == 0
    assert [row["id"] for row in json.loads(Path("found.json").read_text())] == [3, 4, 5, 6]
    capfd.readouterr()
    assert main(["inspect", "m.model", "--search", "no such piece"]) == 0
    assert capfd.readouterr() == ("", "cpbpe: no piece matches 'no such piece'\n")
    assert main(["inspect", "m.model", "--search", "("]) == 1
    assert "is not a regular expression: missing )" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["llama", "broken-pieces"])
def test_export(name: str, folder: Path) -> None:
    Path("m.model").write_bytes(zoo.model(name))
    every = [row[:2] + row[3:] for row in rows(cpbpe.load("m.model"))]
    tsv = run("m.model", "--export", "tsv")
    assert [row[:2] + row[3:] for row in read_tsv(tsv.splitlines())] == every
    assert main(["inspect", "m.model", "--export", "tsv", "--out", "new/v.tsv"]) == 0
    assert Path("new/v.tsv").read_text() == tsv
    assert [row[:2] + row[3:] for row in read_json(run("m.model", "--export", "json"))] == every


def test_a_reader_that_stops(folder: Path) -> None:
    with processes.start(
        "-m", "cpbpe", "inspect", "m.model", "--export", "tsv", cwd=folder, stdout=PIPE, stderr=PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "MODEL"),
        (["no.model"], 1, "no.model: no such file or folder"),
        (["text"], 1, "not a SentencePiece model"),
        (["m.model", "--piece", "a", "--search", "a"], 2, "--piece and --search exclude each other"),
        (["m.model", "--id", "9999"], 1, "there is no piece with the id 9999; ids go from 0 to 699"),
        (["m.model", "--export", "csv"], 2, "'csv' is not one of tsv, json"),
        (["m.model", "--id", "3", "-o", "x.html"], 2, "--id is not written as a page; name another file"),
        (["m.model", "--id", "3", "--sample", "a"], 2, "--sample means nothing with --id; leave it out"),
        (["m.model", "--out", "m.model"], 1, "would be replaced"),
        (["m.model", "--json", "--export", "tsv"], 2, "--json and --export tsv exclude each other"),
        (
            ["m.model", "--json", "-o", "x.html"],
            2,
            "'x.html' is named as html, and this would be json",
        ),
        (["m.model", "--export", "tsv", "-o", "x.json"], 2, "named as json, and this would be tsv"),
        (["m.model", "--search", "a", "-o", "x.csv"], 2, "named as csv, and this would be plain text"),
        (
            ["m.model", "Hello world"],
            2,
            "'Hello world' is one argument too many; a text to encode",
        ),
        (["m.model", "Hello", "world"], 2, "comes after --sample, in quotes"),
        (["m.model", "--format", "json"], 2, "--json writes JSON"),
        (["m.model", "--serach", "a"], 2, "there is no option --serach; did you mean"),
    ],
)
def test_errors(
    arguments: list[str], code: int, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text").write_text("no model, but a text\n")
    assert main(["inspect", *arguments]) == code
    assert message in capsys.readouterr().err
    assert Path("m.model").read_bytes() == zoo.model("llama")
