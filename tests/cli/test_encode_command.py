"""`cpbpe encode` and `cpbpe decode` as people run them: in processes of their own, on files and in pipes."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.cli import main
from tests.conftest import CORE
from tests.support import processes, zoo
from tests.support.terminals import COLUMNS, run_on_terminal

TEXT = "Hello world\n\n  two  spaces \nÇa va? 你好 🦙 <s>\ttab\r\n\0the end".encode()
"""Nothing in it is lost by Mistral's model."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(zoo.model("tokenizer.model.v1"))
    Path("text.txt").write_bytes(TEXT.replace(b"\0", b""))


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return processes.run("-m", "cpbpe", *arguments, cwd=Path.cwd(), **options)


def output(*arguments: str, **options: object) -> bytes:
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout


# --- Files and pipes ------------------------------------------------------------------------------


def test_files_of_every_kind_and_the_standard_input() -> None:
    tok = cpbpe.load("m.model")
    ids = b" ".join(b"%d" % id for id in tok.encode("Hello world"))
    Path("a.jsonl.gz").write_bytes(gzip.compress(b'{"body": "Hello world"}\n'))
    Path("a.csv").write_text('id,body\n1,"Hello world"\n')
    Path("data").mkdir()
    Path("data/a.txt").write_text("Hello world\n")
    hello = b"Hello world\n"
    assert output("encode", "m.model", "a.jsonl.gz", "--field", "body") == ids + b"\n"
    assert output("encode", "m.model", "a.csv", "--column", "body") == ids + b"\n"
    assert output("encode", "m.model", "data") == output("encode", "m.model", "d*/*.txt") == ids + b"\n"
    assert output("encode", "m.model", input=hello) == output("encode", "m.model", "-", input=hello)
    assert output("encode", "m.model", "data/a.txt", "-", input=hello) == 2 * (ids + b"\n")
    assert output("encode", ".", "data", "--no_add_bos", "--add_eos=true") == ids + b" 2\n"
    assert output("encode", "m.model", "--input-format", "text", input=b"\0\n") == b"28705 3\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["ids", "pieces", "jsonl", "json"])
def test_a_file_comes_back(form: str) -> None:
    text = TEXT if form in ("ids", "pieces") else TEXT + b"\n"
    options = ("--format", form, "--threads", "3")
    lines = output("encode", "m.model", "--input-format", "text", *options, input=TEXT)
    assert output("decode", "m.model", *options, input=lines) == text
    Path("lines.gz").write_bytes(gzip.compress(lines))
    assert output("decode", "m.model", "lines.gz", *options) == text
    assert output("encode", "m.model", "text.txt", "--out", f"new/my.{form}", *options, "-q") == b""
    assert output("decode", "m.model", f"new/my.{form}", "-f", form) == text.replace(b"\0", b"")


def test_whole_files_and_offsets() -> None:
    lines = output("encode", "m.model", "text.txt", "--whole", "--format", "jsonl", "--offsets")
    record = json.loads(lines)
    aligned = cpbpe.load("m.model").align(TEXT.replace(b"\0", b"").decode())
    assert record == {"ids": aligned.ids, "offsets": [list(span) for span in aligned.offsets]}
    Path("lines.jsonl").write_bytes(lines)
    assert output("decode", "m.model", "lines.jsonl", "--whole") == TEXT.replace(b"\0", b"")


def test_options() -> None:
    tok = cpbpe.load("m.model")
    text = b"a </s> b\n"
    shown = output("encode", "m.model", "--allowed-special", "</s>,<s>", "-f", "pieces", input=text).decode()
    assert shown.split() == tok.encode_pieces("a </s> b", allowed_special="all")
    assert output("encode", "m.model", "--allowed-special", "all", input=text) == output(
        "encode", "m.model", "--allowed-special=</s>", input=text
    )
    sampled = output("encode", "m.model", "--alpha", "0.5", "--seed", "7", input=b"Hello world\nHello world")
    assert sampled.decode().split("\n") == [
        " ".join(map(str, tok.encode("Hello world", alpha=0.5, seed=seed))) for seed in (7, 8)
    ]
    ids = b"1 22557 1526 2\n"
    assert output("encode", "m.model", "--add-bos", "--add-eos", input=b"Hello world\n") == ids
    assert output("decode", "m.model", "--no-skip-special-tokens", input=ids) == b"<s>Hello world</s>\n"
    assert output("decode", "m.model", "--keep-prefix-space", input=ids) == b" Hello world\n"


def test_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "m.model", "text.txt", "--out", "my.ids"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("written       my.ids: 5 texts, 60 bytes, 28 tokens\n", "")
    assert main(["encode", "m.model", "text.txt", "--out", "my.ids", "--json", "-v"]) == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary.pop("seconds") >= 0
    assert summary == {"documents": 5, "bytes": 60, "tokens": 28, "out": "my.ids"}
    assert err == "cpbpe: reading text.txt\n"
    assert main(["decode", "m.model", "my.ids", "-o", "back.txt", "-v"]) == 0
    out, err = capsys.readouterr()
    assert out == "written       back.txt: 5 texts, 60 bytes, 28 tokens\n"
    assert "cpbpe: 5 texts, 60 bytes, 28 tokens, 2.143 bytes per token, in " in err
    assert main(["decode", "m.model", "my.ids", "-o", "back.txt"]) == 0
    assert "back.txt (replacing 1 file): " in capsys.readouterr().out
    Path("data").mkdir()
    Path("data/a.txt").write_bytes(b"\xef\xbb\xbfa\ncaf\xe9\n")
    Path("data/b.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    Path("data/c.jsonl").write_text('{"text": null}\n')
    assert main(["encode", "m.model", "data", "--out", "my.ids"]) == 0
    err = capsys.readouterr().err
    assert "data/b.png: was left out: it is not text" in err or "is an image" in err
    assert "data/a.txt: begins with a byte order mark" in err
    assert "data/a.txt:2: is not valid UTF-8; each byte that is wrong became U+FFFD" in err
    assert "1 record with null instead of a text became an empty line" in err
    assert main(["encode", "m.model", "data", "--out", "my.ids", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_what_the_file_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    tok = cpbpe.load("m.model").using(add_bos=True, prefix_after_special=False)
    tok.save("asks/")
    Path("a.txt").write_text("Hi</s>Hi\n")

    def ids(*options: str) -> tuple[str, str]:
        assert main(["encode", "asks", "a.txt", *options]) == 0
        out, err = capsys.readouterr()
        return out, err

    def line(**options: Any) -> str:
        return " ".join(map(str, tok.encode("Hi</s>Hi", **options))) + "\n"

    said = (
        "cpbpe: asks asks for {}, which is not done; give --file-options to do what the file asks for, or {} "
        "to go without it and this message\n"
    )
    assert ids() == (line(add_bos=False), said.format("--add-bos", "--no-add-bos"))
    assert ids("--no-add-bos") == ids("--quiet") == (line(add_bos=False), "")
    assert ids("--add-bos") == ids("--file-options") == (line(), "")
    assert ids("--file-options", "--no-add-bos", "--add-eos") == (line(add_bos=False, add_eos=True), "")
    special = ("--allowed-special", "all", "--add-bos")
    told = said.format("--no-prefix-after-special", "--prefix-after-special")
    assert ids(*special) == (line(allowed_special="all", prefix_after_special=True), told)
    assert ids(*special, "--file-options") == (line(allowed_special="all"), "")
    # A token that is not special is found in every text, and what comes after it may have a prefix.
    shown = json.loads(Path("asks/tokenizer.json").read_text())
    token = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    shown["added_tokens"].append({**token, "id": len(tok), "content": "<T>"})
    Path("plain.json").write_text(json.dumps(shown))
    Path("b.txt").write_text("Hi<T>Hi\n")
    outs = []
    for option in ("--prefix-after-special", "--no-prefix-after-special"):
        assert main(["encode", "plain.json", "b.txt", option, "--quiet"]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] != outs[1]
    assert main(["pack", "asks", "a.txt", "--out", "out", "--file-options"]) == 0
    assert [row.tolist() for row in cpbpe.PackedTokens("out")] == [tok.encode("Hi</s>Hi")]
    assert main(["pack", "asks", "a.txt", "--out", "without"]) == 0
    assert "asks for --add-bos, which is not done" in capsys.readouterr().err
    assert main(["inspect", "asks"]) == 0
    assert "the option --file-options does it" in " ".join(capsys.readouterr().out.split())


# --- What goes wrong ------------------------------------------------------------------------------

BAD: list[tuple[list[str], int, str]] = [
    (["encode"], 2, "there is no model; name one: cpbpe encode my.model corpus.txt"),
    (["decode"], 2, "there is no model"),
    (["encode", "none.model", "text.txt"], 1, "none.model: no such file or folder"),
    (
        ["encode", "text.txt", "m.model"],
        1,
        "text.txt: not a SentencePiece model: it is text",
    ),
    (
        ["tokenize", "m.model", "text.txt"],
        2,
        "there is no command 'tokenize'; did you mean 'encode' or 'show'?",
    ),
    (["count", "m.model", "text.txt"], 2, "type: cpbpe tokens m.model text.txt"),
    (["count", "m.model"], 2, "type: cpbpe tokens m.model corpus.txt"),
    (["count", "m.model", "text.txt", "--out", "a"], 2, "this counts the words of a corpus, for training"),
    (["encode", "m.model", "none.txt"], 1, "no such file or directory: 'none.txt'"),
    (["encode", "m.model", "Hello world"], 1, "type: cpbpe show m.model 'Some text'"),
    (["encode", "m.model", "text.txt", "--format", "csv"], 2, "files that are read is --input-format"),
    (["encode", "m.model", "none*"], 1, "no file matches 'none*'"),
    (["encode", "m.model", "text.txt", "--format", "xml"], 2, "--format: 'xml' is not one of ids, pieces"),
    (["encode", "m.model", "text.txt", "--offsets"], 2, "give --format jsonl"),
    (["encode", "m.model", "text.txt", "--json"], 2, "--json is about the summary, which --out FILE"),
    (["encode", "m.model", "text.txt", "--out", "a.gz"], 2, "nothing is compressed here"),
    (["encode", "m.model", "text.txt", "--out", "text.txt"], 1, "would be replaced"),
    (["encode", "m.model", "text.txt", "--out", "folder/"], 1, "is a folder"),
    (["encode", "m.model", "text.txt", "--add-bso"], 2, "no option --add-bso; did you mean --add-bos?"),
    (["encode", "m.model", "text.txt", "--bos"], 2, "no option --bos; it is --add-bos"),
    (["encode", "--model=m.model"], 2, "the model comes first, without a name"),
    (["encode", "m.model", "text.txt", "--alpha", "2"], 1, "alpha is the chance"),
    (["encode", "m.model", "text.txt", "--alpha", "x"], 2, "--alpha: 'x' is not a number"),
    (["encode", "m.model", "text.txt", "--threads", "0"], 1, "threads must be at least 1"),
    (["encode", "m.model", "text.txt", "--allowed-special", "<x>"], 1, "<x>"),
    (["encode", "m.model", "utf-16.txt"], 1, "utf-16.txt: the file is UTF-16; convert it to UTF-8"),
    (["encode", "m.model", "nul.txt"], 1, "it holds NUL bytes; --input-format text takes its lines"),
    (["encode", "m.model", "a.csv"], 1, "name it with --column COLUMN; --input-format text takes"),
    (["encode", "m.model", "a.jsonl"], 1, "a.jsonl:1: there is no field 'text' (there is 'body'); name it"),
    (["encode", "m.model", "a.jsonl", "--whole"], 1, "leave --whole out, or give --input-format text"),
    (["encode", "m.model", "cut.gz"], 1, "cut.gz: the compressed file is cut off"),
    (
        ["decode", "m.model", "text.txt"],
        1,
        "text.txt:1: 'Hello' is not an id; .* --input-format pieces)",
    ),
    (["decode", "m.model", "a.jsonl", "-f", "pieces"], 1, "a.jsonl:1: there is no piece"),
    (["decode", "m.model", "text.txt", "--format", "text"], 2, "--input-format: 'text' is not one of ids,"),
    (
        ["pack", "m.model", "text.txt", "--format", "npy"],
        2,
        "no option --format; --to is that of",
    ),
    (["lint", "m.model", "--format", "json"], 2, "--input-format is that of .* to write JSON, give --json"),
    (["train", "text.txt", "--format", "text"], 2, "no option --format; --input-format is that of the files"),
    (["decode", "m.model", "none.ids"], 1, "no such file or directory: 'none.ids'"),
    (["decode", "m.model", "-", "-"], 1, "the standard input ('-') can be read only once"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=lambda value: str(value)[:50])
def test_what_is_refused(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("utf-16.txt").write_text("text", encoding="utf-16")
    Path("nul.txt").write_bytes(b"a\0b\n")
    Path("a.csv").write_text("a,b\n")
    Path("a.jsonl").write_text('{"body": "a"}\n')
    Path("cut.gz").write_bytes(gzip.compress(TEXT * 50)[:-9])
    before = sorted(Path().rglob("*"))
    assert main(arguments) == code
    err = capsys.readouterr().err
    first, _, second = message.partition(".*")
    assert first in err
    assert second in err
    assert err.startswith("cpbpe: ")
    assert "Traceback" not in err
    assert sorted(Path().rglob("*")) == before


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").chmod(0)
    assert main(["encode", "m.model", "text.txt"]) == 1
    assert "the file 'text.txt' may not be read" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(
    ("closed", "message"), [("<&-", "input ('-') is"), (">&-", "output is"), ("2>&-", "")]
)
def test_closed_streams(closed: str, message: str) -> None:
    source = "-" if closed == "<&-" else "text.txt"
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cpbpe encode m.model {source} {closed}"],
        capture_output=True,
        env=processes.environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == (1 if message else 0)
    assert b"Traceback" not in done.stderr
    assert message in done.stderr.decode()


def large(size: int = 3_000_000) -> int:
    """Make a file that takes a while (the reference takes longer for less); returns how many lines it has."""
    count = size // (45 if CORE else 4500)
    Path("large.txt").write_bytes(b"The quick brown fox jumps over the lazy dog.\n" * count)
    return count


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("verb", ["encode", "decode"])
def test_a_reader_that_stops_early(verb: str) -> None:
    large()
    if verb == "decode":
        Path("large.txt").write_bytes(b"22557 1526\n" * (300_000 if CORE else 3_000))
    command = (
        f"{sys.executable} -m cpbpe {verb} m.model large.txt | head -n 2 | wc -l; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, env=processes.environment(), timeout=60, check=False
    )
    assert (done.stdout.split(), done.stderr) == ([b"2", b"0"], b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("out", [["--out", "my.ids"], []])
def test_interrupted(number: int, code: int, out: list[str]) -> None:
    process = processes.start(
        "-m", "cpbpe", "encode", "m.model", "-v", "-", *out, cwd=Path.cwd(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        assert process.stderr.readline() == b"cpbpe: reading the standard input\n"
        process.stdin.write(b"The quick brown fox\n" * 100_000)
        process.stdin.flush()
        time.sleep(0.3)
        process.send_signal(number)
        process.stdin.close()
        process.wait(10)
    finally:
        process.kill()
    message = process.stderr.read()
    for stream in (process.stderr, process.stdout):
        assert stream is not None
        stream.close()
    assert process.returncode == code
    if number == signal.SIGINT:
        kept = b"nothing was written" if out else b"the output is not complete"
        assert message == b"cpbpe: interrupted; " + kept + b"\n"
    assert not [path for path in Path().iterdir() if "my.ids" in path.name]


# --- Terminals ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize("rich", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_terminal_of_60_columns(rich: bool, quiet: bool) -> None:
    """The bar is on the terminal while the work goes on, fits, and leaves nothing behind in the output."""
    count = large(12_000_000)
    options = ["--out", "my.ids", *(["-q"] if quiet else [])]
    shown, out = run_on_terminal("encode", "m.model", "large.txt", *options, rich=rich)
    if quiet:
        assert (shown, out) == (b"", b"")
        return
    assert b"encoding" in shown
    assert b"\x1b[3" not in shown  # no colours
    if not rich:
        assert max(len(line.strip()) for line in shown.decode().split("\r")) < COLUMNS
    assert out.decode().startswith(f"written       my.ids: {count:,} texts")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_no_bar_where_it_disturbs() -> None:
    """Not between the lines of the result, nor over what the reader of a pipe shows, unless asked for."""
    large(9_000)  # which fits a pipe that nobody reads yet
    encode = ("encode", "m.model", "large.txt")
    for options, out, is_shown in (
        ((), "pipe", False),
        (("--progress",), "pipe", True),
        ((), "terminal", False),
        ((), "file", True),
    ):
        shown, _ = run_on_terminal(*encode, *options, rich=False, out=out)
        assert (b"encoding" in shown) == is_shown, (options, out)
    # Nor if the work is done before anyone wonders how long it takes.
    assert run_on_terminal(*encode, rich=False, before_bar=60)[0] == b""
    assert run(*encode, "--out", "my.ids").stderr == b""


# --- Memory ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not CORE, reason="the reference would take an hour")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
def test_memory_is_flat() -> None:
    """Five times as much text takes as much memory."""
    code = (
        "from cpbpe.cli import main; import sys, re; code = main(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    peaks = []
    for size in (45_000_000, 225_000_000):  # (with less, not all that is kept has been needed yet)
        large(size)
        done = processes.run("-c", code, "encode", "m.model", "large.txt", "--threads", "2",
                             cwd=Path.cwd(), stdout=subprocess.DEVNULL,
                             capture_output=False, stderr=subprocess.PIPE)  # fmt: skip
        assert done.returncode == 0
        peaks.append(int(done.stderr))
    assert peaks[1] < peaks[0] * 1.25, peaks
