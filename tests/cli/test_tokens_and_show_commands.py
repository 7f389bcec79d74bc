"""`cpbpe tokens` and `cpbpe show`: what they count and draw is what the library encodes."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.text.drawn import width
from tests.support import processes, zoo
from tests.support.drawings import SGR, without_colours

TEXT = "the cat 🦙\n\n  two\tspaces\r\nend"
LINES = [line.encode() for line in TEXT.split("\n")]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("a.txt").write_text(TEXT, newline="")
    Path("none.txt").write_bytes(b"")
    Path("b.jsonl").write_text('{"text": "the cat"}\n{"text": null}\n')


def piped(text: bytes, *arguments: str) -> tuple[str, str]:
    """What the command writes if a text is piped in."""
    done = processes.run("-m", "cpbpe", *arguments, cwd=Path.cwd(), input=text)
    assert done.returncode == 0
    return done.stdout.decode(), done.stderr.decode()


# --- tokens ---------------------------------------------------------------------------------------


def test_tokens_are_counted_as_wc_counts(capsys: pytest.CaptureFixture[str]) -> None:
    tok = cpbpe.load("m.model")
    text, record = sum(map(tok.count, LINES)), tok.count("the cat")
    files = ["m.model", "a.txt", "none.txt", "b.jsonl"]
    assert main(["tokens", *files]) == 0
    out, err = capsys.readouterr()
    assert out == f"{text} a.txt\n{0:>2} none.txt\n{record:>2} b.jsonl\n{text + record} total\n"
    assert err == "cpbpe: 1 record with null instead of a text became an empty line\n"
    assert main(["tokens", *files, "-lc", "-q"]) == 0
    size = sum(map(len, LINES))
    assert capsys.readouterr().out.split("\n")[:2] == [f"{text} 4 {size} a.txt", f"{0:>2} 0 {0:>2} none.txt"]
    assert main(["tokens", "m.model", "a.txt", "--whole", "--add-bos", "--json"]) == 0
    whole = {"documents": 1, "bytes": len(TEXT.encode()), "tokens": tok.count(TEXT, add_bos=True)}
    assert json.loads(capsys.readouterr().out) == {"files": [{"file": "a.txt", **whole}], "total": whole}
    assert main(["tokens", "m.model", "a.txt", "--json", "--lines"]) == 2
    assert "--lines means nothing here: --json prints all of it" in capsys.readouterr().err
    assert piped(TEXT.encode(), "tokens", "m.model") == (f"{text}\n", "")
    out, err = piped(b"caf\xe9", "tokens", "m.model", "-")
    assert out.endswith(" -\n")
    assert "stdin:1: is not valid UTF-8" in err


def test_options_change_the_count(capsys: pytest.CaptureFixture[str]) -> None:
    tok = cpbpe.load("m.model")
    Path("special.txt").write_text("a</s>b")
    counts = []
    for options in ([], ["--add-bos", "--add-eos"], ["--allowed-special", "all"]):
        assert main(["tokens", "m.model", "special.txt", *options]) == 0
        counts.append(int(capsys.readouterr().out.split()[0]))
    plain = tok.count("a</s>b")
    assert counts == [plain, plain + 2, tok.count("a</s>b", allowed_special="all")]
    assert main(["tokens", "m.model", "special.txt", "--disallowed-special", "raise"]) == 1
    assert "special.txt:1: " in capsys.readouterr().err


# --- show -----------------------------------------------------------------------------------------


def test_a_text_is_drawn_as_the_library_draws_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    tok = cpbpe.load("m.model")
    text = "The llama 🦙 reads\tstories and sells fresh bread"
    drawing = tok.show(text, add_bos=True).text(columns=40)
    assert main(["show", "m.model", *text.split(" "), "--add-bos"]) == 0
    out = capsys.readouterr().out
    assert out == f"{drawing}\n\n{tok.count(text, add_bos=True)} tokens\n"
    assert max(map(width, out.split("\n"))) <= 40
    assert "\x1b" not in out
    assert main(["show", "m.model", text, "--no-ids"]) == 0
    assert capsys.readouterr().out.startswith(tok.show(text).text(columns=40, ids=False) + "\n\n")
    if os.name == "posix":
        assert main(["show", "m.model", os.fsdecode(b"\xff")]) == 0
        assert capsys.readouterr().out.startswith(f"{tok.show(bytes([255]))}\n")


def test_each_line_of_a_file_is_a_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = cpbpe.load("m.model")
    drawings = "".join(f"{tok.show(line).text(columns=80)}\n\n" for line in LINES)
    expected = f"{drawings}4 texts, {sum(map(tok.count, LINES))} tokens\n"
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", "m.model", "--file", "a.txt"]) == 0
    assert capsys.readouterr() == (expected, "")
    for given in ([], ["-"]):
        assert piped(TEXT.encode(), "show", "m.model", *given) == (expected, "")
    assert main(["show", "m.model", "--file", "a.txt", "--whole"]) == 0
    assert capsys.readouterr().out == f"{tok.show(TEXT).text(columns=80)}\n\n{tok.count(TEXT)} tokens\n"
    sampled = ["show", "m.model", "--file", "a.txt", "--alpha", "0.9", "--seed", "3"]
    assert main(sampled) == 0
    drawn = tok.show(LINES[2], alpha=0.9, seed=5).text(columns=80)
    assert f"\n\n{drawn}\n\n" in capsys.readouterr().out


def test_colours_are_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["show", "m.model", "the cat"]) == 0
    out = capsys.readouterr().out
    assert SGR.search(out)
    assert re.fullmatch(r"▁the +▁c +at\n[0-9 ]+\n\n3 tokens\n", without_colours(out)), out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["show", "m.model", "the cat"]) == 0
    assert "\x1b" not in capsys.readouterr().out


# --- What does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tokens"], 2, "there is no model; name one: cpbpe tokens tokenizer.model corpus.txt"),
        (["tokens", "m.model", "Hello world"], 1, "type: cpbpe show m.model 'Some text'"),
        (["tokens", "m.model", "no.txt"], 1, "no such file or directory: 'no.txt'"),
        (["tokens", "m.model", "--words"], 2, "wc -w counts words, and this counts tokens"),
        (["show"], 2, "there is no model; name one: cpbpe show tokenizer.model 'Some text'"),
        (["show", "m.model", "a", "--file", "a.txt"], 2, "there are a text and --file; give one of them"),
        (["show", "m.model", "-", "--file", "a.txt"], 2, "there are a text and --file; give one of them"),
        (["show", "m.model", "--text", "a"], 2, "the text comes after the model, without a name"),
        (["show", "m.model", "a.txt"], 0, "a.txt is also a file; for what is in it, give --file a.txt"),
        (["show", "m.model", "a.txt", "-q"], 0, ""),
        (["count", "m.model", "a.txt"], 2, "to count tokens, type: cpbpe tokens m.model a.txt\n"),
        (["tokenize"], 2, "did you mean 'encode' or 'show'?"),
        (["wc"], 2, "did you mean 'tokens'?"),
    ],
)
def test_messages(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    err = capsys.readouterr().err
    assert message in err
    assert bool(message) == bool(err)
