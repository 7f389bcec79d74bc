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


def test_weights_that_do_not_fit_come_before_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    weights = (
        "edit old.model new.model --truncate 700 --weights w.safetensors --weights-out new/w.safetensors"
    )
    for name, code in (("other", 1), ("lm_head.weight", 0)):
        head = json.dumps({name: {"dtype": "F32", "shape": [750, 1], "data_offsets": [0, 3000]}}).encode()
        Path("w.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(3000))
        assert main(weights.split()) == code
        assert Path("new.model").exists() == Path("new/w.safetensors").exists() == (not code)
    assert "no tensor with a usual name has 750 rows or more" in capsys.readouterr().err


def test_what_a_file_cannot_say_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    train = "train texts.txt --preset gpt2 --vocab-size 300 --out a.tiktoken"
    edit = "edit a.tiktoken b.tiktoken --pattern gpt2 --piece <|x|> --kind control"
    for command, token in ((train, "<|endoftext|>=299"), (edit, "<|x|>=299")):
        assert main(command.split()) == 0
        assert capsys.readouterr().err.endswith(
            f"it is loaded with --pattern gpt2 --special-token '{token}'\n"
        )


def test_merging_models_that_need_the_same_pattern() -> None:
    for name, size in (("a", "300"), ("b", "320")):
        train = ["train", "texts.txt", "--preset", "gpt2", "--vocab-size", size, "--out", f"{name}.tiktoken"]
        assert main([*train, "--quiet"]) == 0
    assert (
        main(["edit", "a.tiktoken", "c.model", "--merge", "b.tiktoken", "--pattern", "gpt2", "--quiet"]) == 0
    )
    assert len(cpbpe.load("c.model")) == 319


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
        ("old.model new.model --truncate 5", 1, "--truncate must be"),
        ("old.model new.model --learn 0 --corpus texts.txt", 1, "--learn must be"),
        ("old.model new.model --prune --size 5 --corpus texts.txt", 1, "--size is 5, and"),
        ("old.model new.model --piece <s>", 1, "; --skip leaves out what cannot be added"),
        ("old.model new.model --words none.txt", 1, "none.txt"),
        ("old.model new.model --words old.model", 1, "is not UTF-8"),
        ("none.model new.model --prune", 1, "none.model"),
        ("old.model new.model --merge=", 1, "no such file or folder"),
    ],
)
def test_mistakes(arguments: str, code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", *arguments.split()]) == code
    assert message in capsys.readouterr().err
    assert not Path("new.model").exists()
