"""`cpbpe edit` as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pytest

import cpbpe
from cpbpe.cli import main
from tests.support import corpus


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("\n".join(corpus.lines(300)), encoding="utf-8")
    Path("words.txt").write_text("zebra\n\n  giraffe \n", encoding="utf-8")
    cpbpe.train(Path("texts.txt"), vocab_size=750).tokenizer.save("old.model")


def test_everything_at_once_in_the_order_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--truncate", "720", "--words", "words.txt", "--word", "okapi", "--piece", "ff"]
    steps += ["--learn", "5", "--corpus", "texts.txt"]
    assert main(["edit", "old.model", "new/new.model", *steps, "--ids", "new/ids.npy"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("what was edited\n  ids           750 → ")
    places = [out.index(f"  {name} ") for name in ("truncate", "add", "from_corpus")]
    assert places == sorted(places)
    assert out.endswith("written       new/new.model\n")
    old, new = cpbpe.load("old.model"), cpbpe.load("new/new.model")
    assert {"▁zebra", "▁giraffe", "▁okapi", "ff"} <= new.get_vocab().keys()
    ids = np.load("new/ids.npy")
    assert len(ids) == len(old)
    assert (ids < 0).sum() == 30
    assert all(old.id_to_piece(at) == new.id_to_piece(int(id)) for at, id in enumerate(ids) if id >= 0)


def test_removing_pruning_and_merging(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", "old.model", "a.model", "--remove", "▁the", "--unused", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["name"] == "remove"
    assert (
        main(
            ["edit", "old.model", "b.model", "--prune", "--corpus", "words.txt", "--ids", "i.json", "--quiet"]
        )
        == 0
    )
    assert capsys.readouterr().out == ""
    assert len(json.loads(Path("i.json").read_text(encoding="utf-8"))) == 750
    cpbpe.train(["नमस्ते दुनिया"] * 9, vocab_size=290, hard_vocab_limit=False).tokenizer.save("hindi.model")
    assert main(["edit", "b.model", "c.model", "--merge", "hindi.model", "--only", "Devanagari"]) == 0
    assert cpbpe.load("c.model").encode_pieces("नमस्ते") == cpbpe.load("hindi.model").encode_pieces("नमस्ते")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("old.model", 2, "name the model and the file to write"),
        ("old.model new.model", 2, "there is nothing to do"),
        ("old.model new.model --learn 5", 2, "--learn needs a corpus"),
        ("old.model new.model --prune --size 600", 2, "--size needs a corpus"),
        ("old.model new.model --size 600 --corpus texts.txt", 2, "give --prune"),
        ("old.model new.model --corpus texts.txt", 2, "--corpus is for"),
        ("old.model new.model --prune --weights a.safetensors", 2, "go together"),
        ("old.model new.model --only Han", 2, "--only is for --merge"),
        ("old.model new.model --extend words.txt", 2, "it is --words FILE"),
        ("old.model old.model --prune", 1, "would be replaced"),
        ("old.model new.model --truncate 5", 1, "size must be"),
        ("old.model new.model --words none.txt", 1, "none.txt"),
        ("old.model new.model --words old.model", 1, "is not UTF-8"),
        ("none.model new.model --prune", 1, "none.model"),
    ],
)
def test_mistakes(arguments: str, code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", *arguments.split()]) == code
    assert message in capsys.readouterr().err
    assert not Path("new.model").exists()
