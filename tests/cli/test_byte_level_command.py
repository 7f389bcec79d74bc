"""The command on byte-level models: what a file of ranks does not say, files of ids, and what is shown."""

import json
from pathlib import Path

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.cli.completion import verbs
from cpbpe.model.formats import gpt2, tiktoken
from tests.bytes.models import made, ranks
from tests.support import processes, zoo

TEXT = b"the cat\n\n  sat on\tthe mat<|end|>\r\n\xe6\x97\xa5\xe6\x9c\xac, don't"
GIVEN = ["--pattern", "cl100k", "--special-token", "<|end|>=700", "--special-token=<|a=b|>=702"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tiktoken").write_bytes(tiktoken.write_ranks(ranks()))
    Path("text.txt").write_bytes(TEXT)
    Path("two").mkdir()
    for path, data in gpt2.files("two", gpt2.write(made()).data).items():
        Path(path).write_bytes(data)


def loaded() -> cpbpe.Tokenizer:
    return cpbpe.load("my.tiktoken", pattern="cl100k", special_tokens={"<|end|>": 700, "<|a=b|>": 702})


def test_encoding_and_decoding(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    tok = loaded()
    assert main(["encode", "my.tiktoken", "text.txt", *GIVEN, "--allowed-special", "all"]) == 0
    ids = capfdbinary.readouterr().out
    lines = TEXT.decode().split("\n")
    assert [[int(id) for id in line.split()] for line in ids.decode().split("\n")] == [
        tok.encode(line, allowed_special="all") for line in lines
    ]
    Path("text.ids").write_bytes(ids)
    assert main(["decode", "my.tiktoken", "text.ids", *GIVEN, "--no-skip-special-tokens"]) == 0
    assert capfdbinary.readouterr().out == TEXT
    assert (
        main(["encode", "my.tiktoken", "text.txt", *GIVEN, "--format", "jsonl", "--offsets", "--whole"]) == 0
    )
    found = json.loads(capfdbinary.readouterr().out)
    assert (found["ids"], found["offsets"][0]) == (tok.encode(TEXT), [0, 3])


def test_in_a_process_of_its_own() -> None:
    done = processes.run("-m", "cpbpe", "encode", "two", "--quiet", input=b"the cat", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert [int(id) for id in done.stdout.split()] == cpbpe.load("two").encode("the cat")


def test_packing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "my.tiktoken", "text.txt", "--out", "tokens", "--add-eos", *GIVEN]) == 1
    assert "add_eos" in capsys.readouterr().err.replace("--add-eos", "add_eos")
    given = [word.replace("<|end|>", "<|endoftext|>") for word in GIVEN]
    assert main(["pack", "my.tiktoken", "text.txt", "--out", "tokens", "--add-eos", *given]) == 0
    assert "3 documents" in capsys.readouterr().out


def test_converting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "my.tiktoken", "my.model", *GIVEN]) == 0
    assert cpbpe.load("my.model") == loaded()
    assert main(["convert", "two", "again", "--to", "gpt2"]) == 0
    assert "written       again: vocab.json, merges.txt" in capsys.readouterr().out
    assert Path("again/merges.txt").read_bytes() == Path("two/merges.txt").read_bytes()
    assert main(["convert", "two", "new.tiktoken"]) == 0
    out = capsys.readouterr().out
    assert "it is loaded with --pattern gpt2 --special-token '<|end|>=" in out
    assert main(["convert", "my.model", "x", "--to", "gpt2"]) == 1
    assert "use 'cpbpe convert' with --allow-differences" in capsys.readouterr().err
    assert main(["convert", "two", "lecture.model", "--to", "minbpe", "--allow-differences"]) in (0, 1)


def test_comparing(capsys: pytest.CaptureFixture[str]) -> None:
    """What is said about a file of ranks is not said about the other models."""
    Path("sp.model").write_bytes(zoo.model("llama"))
    more = ["text.txt", "--rounds", "0", "--format", "json", "--no-probes"]
    assert main(["compare", "sp.model", "two", "my.tiktoken", *more, *GIVEN]) == 0
    tokens = {row["model"]: row["tokens"] for row in json.loads(capsys.readouterr().out)["rows"]}
    toks = {"sp.model": cpbpe.load("sp.model"), "two": cpbpe.load("two"), "my.tiktoken": loaded()}
    lines = TEXT.decode().split("\n")
    assert tokens == {name: sum(map(tok.count, lines)) for name, tok in toks.items()}
    assert main(["compare", "sp.model", *more, *GIVEN]) == 1
    assert "--pattern is for files that say neither" in capsys.readouterr().err


def test_inspecting(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["inspect", "my.tiktoken", *GIVEN])
        == main(["inspect", "my.tiktoken", "--settings", *GIVEN])
        == 0
    )
    page = capsys.readouterr().out
    for part in (
        "text is cut   by the pattern cl100k\n",
        "a chunk       that is a piece is taken whole, even if no merges make it",
        "  \\p{N}{1,3}+\n      a number of one to three digits",
        "  ␣?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+\n      marks and symbols, and the space in front",
        "<|end|> 700",
    ):
        assert part in page, part
    assert "add_dummy_prefix" not in page
    assert main(["inspect", "two", "--search", "^ [a-z]{2}$"]) == 0
    assert "  ␣" in capsys.readouterr().out
    piece = next(
        piece.text.decode() for piece in made().pieces if piece.text.startswith(b" ") and len(piece.text) > 1
    )
    assert main(["inspect", "two", "--piece", piece]) == 0
    assert f"␣{piece[1:]}\n  id" in capsys.readouterr().out
    assert main(["inspect", "my.tiktoken", *GIVEN, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["whole"], found["splitter"]["name"]) == (True, "cl100k")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["encode", "my.tiktoken"], 1, "--pattern cl100k --special-token '<|endoftext|>=100257'"),
        (["decode", "my.tiktoken", "--special-token", "<|end|>=700"], 1, "does not say how texts are cut"),
        (["inspect", "my.tiktoken", "--pattern", "gpt5"], 1, "there is no published pattern 'gpt5'"),
        (["pack", "my.tiktoken", "text.txt", "--out", "x", "--special-token", "a"], 2, "'a' is not a token"),
        (["encode", "my.tiktoken", "--pattern=gpt2", "--special-token=<x>=3"], 1, "cannot have the id 3"),
        (["encode", "my.tiktoken", *GIVEN, "--special-token=<|end|>=701"], 2, "give each token once"),
        (["encode", "my.model", "--pattern", "gpt2"], 1, "--pattern is for files that say neither"),
        (["encode", "my.model", "--special-token", "<x>=900"], 1, "--special-token is for files that say"),
        (["encode", "my.tiktoken", "--pattern", "gpt2", "--format", "pieces"], 1, "use --format ids"),
    ],
)  # fmt: skip
def test_mistakes(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    loaded().save("my.model")
    assert main(arguments) == code
    assert message in capsys.readouterr().err


MODELS = {
    "encode",
    "decode",
    "inspect",
    "convert",
    "lint",
    "compare",
    "diff",
    "edit",
    "view",
    "pack",
    "tokens",
    "show",
}
"""The commands that take models."""


def test_completion_knows_the_options() -> None:
    for name, verb in verbs().items():
        takes_a_model = name in MODELS
        assert ("--pattern" in verb.flags and "--special-token" in verb.flags) == takes_a_model, name
