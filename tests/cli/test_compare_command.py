"""`cpbpe compare` as a user runs it."""

import csv
import io
import json
from pathlib import Path

import pytest

from cpbpe.cli import main
from cpbpe.cli.compare import is_model
from cpbpe.model.formats import model_pb2
from tests.support import zoo


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.model", "folder/tokenizer.model", "odd.name"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(zoo.model("llama"))
    Path("manual.txt").write_text("hello world\nsecond line\n", encoding="utf-8")
    Path("handbuch.txt").write_text("Hallo Welt\nzweite Zeile\n", encoding="utf-8")
    unigram = zoo.parse(zoo.model("llama"))
    unigram.trainer_spec.model_type = model_pb2.TrainerSpec.UNIGRAM
    Path("unigram.model").write_bytes(unigram.SerializeToString())
    Path("data.json").write_text('[{"body": 1}]', encoding="utf-8")
    Path("data.jsonl").write_text('{"body": "one"}\n{"body": "two"}\n', encoding="utf-8")


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compare", "a.model", "folder", "en=manual.txt", "de=handbuch.txt", "--rounds", "1"]
    assert main([*given, "--base", "en"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("What texts cost with a.model and folder\n  - all models need the same")
    assert "Tokens, and × en" in page
    assert "Tokens for each word" in page
    assert "JSON, indented" in page
    assert max(map(len, page.splitlines())) <= 100


def test_the_other_forms(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compare", "a.model", "manual.txt", "handbuch.txt", "--rounds", "0", "--base", "manual"]
    assert main([*given, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["base"], [text["name"] for text in found["texts"]]) == ("manual", ["manual", "handbuch"])
    assert main([*given, "--format", "csv", "--no-probes"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["text"] for row in rows] == ["manual", "handbuch"]
    for ending, begins in (
        ("html", "<!doctype html>"),
        ("json", "{"),
        ("csv", "model,text"),
        ("txt", "What texts cost with a.model\n"),
    ):
        assert main([*given, "--out", f"new/out.{ending}"]) == 0
        assert Path(f"new/out.{ending}").read_text(encoding="utf-8").startswith(begins)
        assert capsys.readouterr().out == f"written       new/out.{ending}\n"
    assert main([*given, "--out", "new/out.csv"]) == 0
    assert capsys.readouterr().out == "written       new/out.csv (replacing 1 file)\n"


def test_what_is_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert [is_model(name) for name in ("folder", "sentencepiece:a.model", "b.gguf", "x/tokenizer.json")] == [
        True
    ] * 4
    assert [is_model(name) for name in (".", "manual.txt", "en=manual.txt", "data.json", "odd.name")] == [
        False
    ] * 5
    given = ["compare", "--model", "odd.name", "--text", "x=manual.txt", "--rounds", "0", "--format", "csv"]
    assert main(given) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("odd.name,x,")


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A name may stand before a model, too; files with the same name are one text."""
    given = ["compare", "old=a.model", "new=folder", "en=manual.txt", "de=handbuch.txt", "en=data.jsonl"]
    assert main([*given, "--field", "body", "--rounds", "0", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [model["name"] for model in found["models"]] == ["old", "new"]
    assert [(text["name"], text["documents"]) for text in found["texts"]] == [("en", 4), ("de", 2)]
    assert is_model("tekken_240911.json")
    Path("lang=en").mkdir()
    Path("lang=en/a.txt").write_text("a", encoding="utf-8")
    assert main(["compare", "a.model", "lang=en/a.txt", "--rounds", "0", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("a.model,a,")


def test_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["compare", "a.model", "data.jsonl", "--field", "body", "--rounds", "0", "--format", "json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["texts"][0]["documents"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["manual.txt"], 2, "there is no model; name one"),
        (["a.model"], 2, "there is no text; name one"),
        (["a.model", "manual.txt", "--base", "fr"], 2, "--base must be one of the texts (manual), not fr"),
        (["a.model", "manual.txt", "--rounds", "-1"], 2, "--rounds must be 0 or more"),
        (["a.model", "manual.txt", "--format", "xml"], 2, "xml"),
        (
            ["a.model", "manual.txt", "manual.txt"],
            2,
            "two texts are called manual.txt",
        ),
        (["x=a.model", "x=folder", "manual.txt"], 2, "two models are called x"),
        (["a.model", "data.json"], 2, "--model data.json or --text data.json"),
        (["a.model", "--text", "data.json"], 1, "--input-format text takes its lines as they are"),
        (["a.model", "manual.txt", "--json"], 2, "it is --format json"),
        (["unigram.model", "manual.txt"], 1, "sentencepiece:unigram.model compares it"),
        (["a.model", "none.txt"], 1, "none.txt"),
        (["none.model", "manual.txt"], 1, "none.model"),
        (["a.model", "manual.txt", "--out", "manual.txt"], 1, "choose another name for the result"),
        (["a.model", "manual.txt", "--threads", "4"], 2, "every library uses one thread"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *arguments]) == code
    assert message in capsys.readouterr().err
