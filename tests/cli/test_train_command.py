"""The command: `cpbpe train`, `count`, `quickstart`, their exit codes, and what interrupting them leaves."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cpbpe
from cpbpe import train
from cpbpe.cli import main
from cpbpe.text.drawn import width
from tests.support import processes, tiers
from tests.support.corpus import lines
from tests.support.drawings import WholePage

TEXTS = lines(500)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("\n".join(TEXTS), newline="")
    Path("other.txt").write_text("\n".join(TEXTS[::2]), newline="")
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*tokenizer.model. was left out")
def test_a_corpus_beside_a_model_is_counted(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with a model in it is one, but with --out its texts are meant; text may be called a.bin."""
    Path("corpus.txt").rename("a.bin")
    Path("tokenizer.model").write_bytes(b"")
    assert main(["count", ".", "--out", "new/my.counts", "-q"]) == 0
    assert main(["count", "a.bin", "--out", "new/my.counts", "-q", "--input-format", "text"]) == 0
    assert main(["count", ".", "other.txt"]) == 2
    assert "to count tokens, type: cpbpe tokens . other.txt" in capsys.readouterr().err


def test_the_command(engine: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "corpus.txt", "--vocab-size", "800", "--out", "models/my", "--report", "r.json"]
    more = ["--preset", "sentencepiece", "--no-split-by-number", "--control-symbols", "<a>,<b>"]
    assert main([*arguments, *more, "--control-symbols", "<c>", "--character-coverage", "0.99"]) == 0
    expected = train(
        Path("corpus.txt"),
        vocab_size=800,
        preset="sentencepiece",
        split_by_number=False,
        control_symbols=["<a>", "<b>", "<c>"],
        character_coverage=0.99,
    )
    assert Path("models/my.model").read_bytes() == expected.model_bytes
    out, err = capsys.readouterr()
    assert err == ""
    assert "800: 6 special (<unk>, <s>, </s>, <a>, <b>, <c>), " in out
    assert "written       models/my.model, models/my.vocab" in out
    assert json.loads(Path("r.json").read_text())["tokens"] == expected.report.tokens
    assert main([*arguments, "--quiet"]) == 0
    assert main([*arguments[:-1], "r.html", "--quiet"]) == 0
    assert "What training did" in WholePage(Path("r.html").read_text(encoding="utf-8")).text
    assert capsys.readouterr() == ("", "")


@pytest.mark.filterwarnings("always")
def test_a_corpus_in_another_encoding(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("latin.txt").write_bytes("été\n".encode("latin-1") * 3)
    problem = "3 lines of latin.txt are not valid UTF-8, the first at latin.txt:1"
    train = ["train", "latin.txt", "--vocab-size", "262", "--no-hard-vocab-limit", "--out", "my"]
    for arguments, places in (
        (train, (1, 0)),
        ([*train, "-q"], (0, 1)),
        (["count", "latin.txt", "-o", "c"], (0, 1)),
    ):
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert (out.count(problem), err.count(problem)) == places, arguments
    Path("rows.json").write_text('{"text": "one"}\n')
    assert main(["train", "rows.json", "--out", "my"]) == 1
    assert (
        "give --input-format jsonl; the text is in the field 'text', or in the one" in capsys.readouterr().err
    )


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("name", "data", "code", "way_out"),
    [
        (
            "a.json",
            b'["text"]',
            1,
            "the field 'text' per line and name it *.jsonl, for example with 'jq -c .[]'; -",
        ),
        (
            "a.csv",
            b"id,text\n1,one\n",
            1,
            "only you know which column holds the texts; name it with --column COLUMN; --input-format",
        ),
        ("a.txt", "text".encode("utf-16"), 1, "for example with 'iconv -f utf-16 -t utf-8'\n"),
        ("a.txt", b"\x93NUMPY\1", 1, "is a numpy array; write its texts to a text file first\n"),
        ("a.txt", b"\xe9t\xe9\n", 0, "such as Latin-1, convert it (iconv -f latin1 -t utf-8)\n"),
        ("a.txt", b"\xef\xbb\xbfone\n", 0, "save it without one, for example with 'tail -c +4'\n"),
    ],
)
def test_ways_out_are_for_a_shell(
    corpus: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, code: int, way_out: str
) -> None:
    Path(name).write_bytes(data)
    options = ["--vocab-size", "270", "--no-hard-vocab-limit", "--out", "my"]
    assert main(["train", name, *options]) == code
    assert way_out in "".join(capsys.readouterr())


def test_counting_in_parts(engine: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "corpus.txt", "--out", "one.counts", "--memory-limit", "100MB"]) == 0
    assert main(["count", "other.txt", "-q", "--out", "two.counts"]) == 0
    assert main(["train", "one.counts", "two.counts", "--vocab-size", "800", "-q", "-o", "parts"]) == 0
    assert main(["train", "corpus.txt", "other.txt", "--vocab-size", "800", "-q", "-o", "whole"]) == 0
    assert Path("parts.model").read_bytes() == Path("whole.model").read_bytes()
    assert main(["train", "*o.counts", "one.c*", "--vocab-size", "800", "-q", "-o", "matched"]) == 0
    assert Path("matched.model").read_bytes() == Path("whole.model").read_bytes()
    assert main(["train", "one.counts", "other.txt", "--vocab-size", "800", "-o", "x"]) == 1
    assert "other.txt does not; count that first" in capsys.readouterr().err
    assert main(["count", "one.counts", "two.counts", "-q", "--out", "both.counts"]) == 0
    assert main(["train", "both.counts", "--vocab-size", "800", "-q", "-o", "both"]) == 0
    assert Path("both.model").read_bytes() == Path("whole.model").read_bytes()
    for more in (["--input-format", "tsv"], ["--memory-limit", "1GB"]):
        assert main(["train", "one.counts", "--vocab-size", "800", "-o", "x", *more]) == 1
        assert main(["count", "one.counts", "--out", "x", *more]) == 2
    assert main(["count", "one.counts", "--out", "x", "--no-split-digits"]) == 2
    assert "--split-digits means nothing here" in capsys.readouterr().err
    assert main(["train", "one.counts", "--vocab-size", "800", "-o", "x", "--no-split-digits"]) == 1
    assert "these differ: --split-digits (yes and no)" in capsys.readouterr().err
    assert not Path("x").exists()
    assert not Path("x.model").exists()


def test_quickstart(
    engine: str, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cpbpe.cli import quickstart

    before = set(corpus.iterdir())
    assert main(["quickstart"]) == 0
    assert set(corpus.iterdir()) - before == {corpus / "cpbpe-quickstart"}
    out, err = capsys.readouterr()
    assert err == ""
    assert "Trained 1,000 pieces" in out
    assert "The pieces: 3 special (<unk>, <s>, </s>), 256 bytes, " in out
    assert f"Decoded again: {quickstart.TEXT} (the same text)." in " ".join(out.split())
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["quickstart"]) == 0
    narrow = capsys.readouterr().out
    assert max(width(line) for line in narrow.split("\n") if "cpbpe train" not in line) <= 60
    assert narrow.split()[:5] == out.split()[:5]
    tokenizer = cpbpe.load("cpbpe-quickstart")
    assert tokenizer == cpbpe.load("cpbpe-quickstart/tokenizer.model")
    assert tokenizer.vocab_size == 1000
    ids = tokenizer.encode(quickstart.TEXT)
    shown = [word for line in out.splitlines() for word in line.replace("│", " ").split() if line[:2] == "  "]
    for id in ids:
        assert str(id) in shown
        assert tokenizer.id_to_piece(id) in shown
    assert "\x1b[" not in out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["quickstart", "Ein Satz 🦙 mit ▁", "--out", "other"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[30;48;5;152m▁E" in out
    assert "which is not the same text" in " ".join(out.split())
    assert cpbpe.load("other") == tokenizer


def test_what_quickstart_says_to_type_works(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--out", "my folder"]) == 0
    typed = [line[4:] for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    python, command = "\n".join(typed[:-1]), typed[-1]
    assert python.startswith("import cpbpe\n")
    exec(python, {})
    program, *arguments = shlex.split(command)
    assert program == "cpbpe"
    assert main([*arguments, "--quiet"]) == 0
    assert Path("my.model").read_bytes() == Path("my folder/tokenizer.model").read_bytes()


def test_quickstart_replaces_no_file_of_anybody_else(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quickstart"]) == 0
    assert main(["quickstart"]) == 0  # its own files
    capsys.readouterr()
    Path("cpbpe-quickstart/corpus.txt").write_text("mine")
    Path("cpbpe-quickstart/tokenizer.model").unlink()
    assert main(["quickstart"]) == 1
    assert "corpus.txt' exists already, with other contents; choose another folder" in capsys.readouterr().err
    assert Path("cpbpe-quickstart/corpus.txt").read_text() == "mine"
    assert not Path("cpbpe-quickstart/tokenizer.model").exists()
    assert main(["quickstart", "--out", "corpus.txt"]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_every_option_has_a_flag() -> None:
    from cpbpe.cli.train import parser
    from cpbpe.training.options import NAMES

    functions = {"pretokenizer", "allow_inconsistent_pretokenization"}
    pairs = {"normalization_rules", "denormalization_rules"}
    assert set(NAMES) - set(parser().flags()) == functions | pairs


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, ""),
        (["trian"], 2, "there is no command 'trian'; did you mean 'train'?"),
        (["corpus.txt"], 2, "to train on these files, type: cpbpe train corpus.txt --out my"),
        (["normalize", "Hello"], 2, "for Python, where cpbpe.load('my.model') has methods"),
        (["version"], 2, "there is no command 'version'; did you mean '--version'?"),
        (["-v"], 0, ""),
        (["fit", "corpus.txt"], 2, "did you mean 'train'?"),
        (["tour"], 2, "did you mean 'quickstart'?"),
        (
            ["convert", "tokenizer.json"],
            2,
            "there is no target; name both: cpbpe convert",
        ),
        (
            ["download", "mistral"],
            2,
            "cpbpe downloads nothing",
        ),
        (
            ["quickstart", "a", "sentence"],
            2,
            "'sentence' is one argument too many; put a sentence into quotes",
        ),
        (["quickstart", "--text", "a"], 2, "the sentence is given without a name: cpbpe quickstart '"),
        (
            ["count", "corpus.txt", "--model", "my.model"],
            2,
            "'cpbpe tokens MODEL FILE' counts tokens",
        ),
        (["train", "corpus.txt,corpus.txt", "--out", "my"], 1, "for several files put spaces between them\n"),
        (["train", "https://example.com/a.txt", "--out", "my"], 1, "cpbpe downloads nothing, give a file\n"),
        (["--vocab-size", "5"], 2, "the command comes first"),
        (["--versoin"], 2, "there is no option --versoin; did you mean --version?"),
        (
            ["train", "the cat sat on the mat", "--out", "my"],
            1,
            "write it to a file, or pipe it in and give -\n",
        ),
        (["train"], 2, "there is no corpus; name a file or a folder"),
        (["train", "corpus.txt"], 2, "the model has no name; give one with --out"),
        (["count", "corpus.txt"], 2, "the counts of words, which are for training, have no name; give"),
        (["train", "none.txt"], 1, "cpbpe: no such file or directory: 'none.txt'"),
        (["train", "corpus.txt", "--input=none*"], 1, "cpbpe: no file matches 'none*'"),
        (["count", "none.txt"], 1, "cpbpe: no such file or directory: 'none.txt'"),
        (["train", "-"], 2, "the model has no name; give one with --out"),
        (["train", "corpus.txt", "--out", "my", "--no-such-option"], 2, "no option --no-such-option"),
        (["train", "corpus.txt", "--out", "my", "--vocab", "5"], 2, "no option --vocab; give --vocab-size"),
        (
            ["train", "corpus.txt", "--out", "my", "--memory-limit", "lots"],
            2,
            "--memory-limit must be a size such",
        ),
        (["train", "corpus.txt", "--out", "my", "--vocab-size", "32k"], 2, "whole number; write 32000"),
        (["train", "corpus.txt", "--out", "my", "--vocab-size"], 2, "--vocab-size needs a value"),
        (["train", "corpus.txt", "--out", "my", "--preset", "llama9"], 2, "one of llama2, sentencepiece,"),
        (["train", "corpus.txt", "--out", "my", "--character-coverage", "0,99"], 2, "write it with a point"),
        (["train", "none.txt", "--out", "my"], 1, "cpbpe: no such file or directory: 'none.txt'"),
        (["train", "corpus.txt", "--out", "my", "--vocab-size", "9"], 1, "cpbpe: --vocab-size is 9, but"),
        (["train", "corpus.txt", "--out", "my", "--vocab-size", "90000"], 1, "choose a size in this range"),
        (["train", "corpus.txt", "--out", "folder/"], 1, "'folder/' is a folder"),
        (["train", "corpus.txt", "--out", ".model"], 1, "'.model' has no name before .model; give one"),
        (["train", "corpus.txt", "--out", "my", "--input-format", "tsv"], 1, "corpus.txt:1: a line of tsv"),
        (["--help"], 0, ""),
        (["train", "--help"], 0, ""),
        (["count", "--help"], 0, ""),
        (["quickstart", "--help"], 0, ""),
        (["help"], 0, ""),
        (["help", "train"], 0, ""),
        (["--version"], 0, ""),
    ],
)
def test_exit_codes(
    corpus: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    before = {path.name for path in corpus.iterdir()}
    assert main(arguments) == code
    assert message in capsys.readouterr().err
    assert {path.name for path in corpus.iterdir()} - before <= {"folder"}


def test_standard_input(corpus: Path) -> None:
    arguments = ["-m", "cpbpe", "train", "-", "--vocab-size", "800", "--out", "piped"]
    processes.output(*arguments, cwd=corpus, input=Path("corpus.txt").read_bytes())
    assert Path("piped.model").read_bytes() == train(Path("corpus.txt"), vocab_size=800).model_bytes


# --- Interruptions ---------------------------------------------------------------------------------

TELLING = """
import sys
from cpbpe.cli import main
from cpbpe.training.progress import Display

def update(self, phase, done, total):
    if phase in ("characters", "pairs", "merges"):
        print("merging", file=sys.stderr, flush=True)

Display.update = update
print("ready", file=sys.stderr, flush=True)
sys.exit(main(sys.argv[1:]))
"""
"""The command, which says when it has begun to merge."""


SIGNALS = [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=tiers.slow)]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
@pytest.mark.parametrize("phase", ["reading", "merging"])
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_ctrl_c(engine: str, tmp_path: Path, phase: str, number: int, code: int) -> None:
    corpus = tmp_path / "corpus"
    if phase == "reading":
        os.mkfifo(corpus)
        pipe = open(os.open(corpus, os.O_RDWR), "wb", buffering=0)  # noqa: SIM115  # this never waits
        pipe.write(b"some lines\n" * 1000)
    else:  # all different words and no end of merges: seconds of work
        many = 1_000_000 if engine == "core" else 30_000
        words = (f"{index * 2654435761 % (1 << 40):x}" for index in range(many))
        corpus.write_text(" ".join(words).translate(str.maketrans("0123456789", "ghijklmnop")))
    out = tmp_path / "out"
    out.mkdir()
    (out / "my.model").write_bytes(b"the model that was there before")
    command = ["-c", TELLING, "train", str(corpus), "--out", str(out / "my")]
    command += ["--vocab-size", "200000", "--max-sentence-length", "0"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = processes.environment(CPBPE_ENGINE=engine, TMPDIR=str(temporary))
    process = processes.start(*command, stderr=subprocess.PIPE, env=environment, cwd=tmp_path)
    assert process.stderr is not None
    try:
        awaited = b"ready\n" if phase == "reading" else b"merging\n"
        said = next((line for line in process.stderr if line == awaited), None)
        assert said is not None, "it ended before it could be interrupted"
        time.sleep(0.5 if phase == "reading" else 0)
        begun = time.monotonic()
        process.send_signal(number)
        process.wait(10)
        took = time.monotonic() - begun
    finally:
        process.kill()
        if phase == "reading":
            pipe.close()
    message = process.stderr.read()
    process.stderr.close()
    assert process.returncode == code, message
    assert took < 3  # a second is what is promised; the rest is for a machine that is busy with other tests
    assert b"Traceback" not in message
    if number == signal.SIGINT:
        assert b"cpbpe: interrupted; nothing was written\n" in message
    assert [path.name for path in out.iterdir()] == ["my.model"]
    assert (out / "my.model").read_bytes() == b"the model that was there before"
    assert list(temporary.iterdir()) == []
