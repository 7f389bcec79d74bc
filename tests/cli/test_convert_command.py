"""`cpbpe convert` as a user runs it, and the other verbs with models of other formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cpbpe
from cpbpe.cli import main
from tests.support import zoo


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("d.model").write_bytes(zoo.model("defaults"))
    Path("lines.txt").write_text("the cat\n  sat  \n\nÄ 朝\n", encoding="utf-8")
    return tmp_path


def test_from_a_model_to_every_format_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok = cpbpe.load("m.model")
    for target in ("t.json", "new/t.model", "t/", "x/y/"):
        assert main(["convert", "m.model", target, "--add-bos"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"written       {target}")
        assert "\nexact         every text keeps its ids\n" in out
        made = cpbpe.load(target)
        assert made.encode("Hi there") == tok.encode("Hi there")
        assert made.file_options == {"add_bos": True}
        assert main(["convert", target, "back.model", "--no-add-bos"]) == 0
        assert not cpbpe.load("back.model").file_options
        capsys.readouterr()
    assert Path("back.model").read_bytes() == zoo.model("llama")


def test_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "m.model", "t.json", "--verify", "lines.txt", "-v"]) == 0
    out, err = capsys.readouterr()
    assert "tried         300 texts with tokenizers" in out
    assert "verified      4 texts, with cpbpe, tokenizers" in out
    assert "note          tokenizers finds special tokens (<s>, </s>) in every text" in out
    assert err.startswith("cpbpe: t.json: ")
    assert main(["convert", "m.model", "t.json", "-v", "--json"]) == 0
    assert capsys.readouterr().err.startswith("cpbpe: t.json: ")
    assert main(["convert", "m.model", "t.json", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["convert", "m.model", "t.json"]) == 0
    assert "t.json (replacing 1 file)" in capsys.readouterr().out
    assert main(["convert", "m.model", "t/", "--json", "--verify", "lines.txt"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["exact"] is True
    assert said["files"][0] == "t/tokenizer.model"
    assert "sentencepiece 0.2.3" in said["verified"]
    assert set(said) == {"path", "files", "exact", "differences", "tried", "verified", "notes"}


def test_gguf_is_verified_as_source_and_as_target(folder: Path) -> None:
    texts = ["the cat", "<|x|> 1234"]
    byte_level = cpbpe.train(["the cat sat"] * 9, preset="gpt4", vocab_size=263).tokenizer
    byte_level.with_special_tokens(["<|x|>"]).save("b.json")
    for source in ("m.model", "b.json"):
        assert "2 texts, with cpbpe" in str(cpbpe.convert(source, "t.gguf", verify=texts).verified)
        assert "2 texts, with cpbpe" in str(cpbpe.convert("t.gguf", "t.json", verify=texts).verified)


def test_refused_with_a_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "d.model", "new/d.json"]) == 1
    err = capsys.readouterr().err
    assert "there is no tokenizer.json that is exactly this model" in err
    assert "(for example in the text " in err
    assert "To convert it all the same, pass --allow-differences, which lists them" in err
    assert not Path("new").exists()
    assert main(["convert", "d.model", "d.json", "--allow-differences", "--verify", "lines.txt"]) == 0
    out = capsys.readouterr().out
    assert "\ndiffers       tokenizers applies the rules" in out
    assert "exact" not in out


def test_texts_of_ones_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def verify(*texts: str) -> cpbpe.Conversion:
        return cpbpe.convert("d.model", "d.json", verify=texts, allow_differences=True)

    assert verify("the cat", "x").verified == verify("the cat", "x").verified
    assert str(verify("the cat", "x").verified).startswith("2 texts, with cpbpe")
    text = next(text for reason, text in verify("the").differences if text is not None)
    found = verify("the", f"the {text}", text).differences
    assert any("gives other ids for 2 of 3 texts" in reason for reason, _ in found)
    assert found[-1][1] == text
    Path("empty.txt").write_bytes(b"")
    Path("latin.txt").write_bytes(b"a\n\xe9\n")
    for file, message in (
        ("empty.txt", "--verify holds no texts"),
        ("latin.txt", "latin.txt:2: is not UTF-8"),
    ):
        assert main(["convert", "m.model", "t.json", "--verify", file]) == 1
        assert message in capsys.readouterr().err
        assert not Path("t.json").exists()
    with pytest.raises(TypeError, match="verify holds texts"):
        cpbpe.convert("m.model", "t.json", verify=[1])  # type: ignore[list-item]


def test_a_library_that_gives_other_ids_stops_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sentencepiece

    real = sentencepiece.SentencePieceProcessor

    class Wrong:
        def __init__(self, model_proto: bytes):
            self.right = real(model_proto=model_proto)

        def encode(self, text: str) -> list[int]:
            return [3] if "cat" in text else list(self.right.encode(text))

    monkeypatch.setattr(sentencepiece, "SentencePieceProcessor", Wrong)
    with pytest.raises(
        cpbpe.ConversionError, match=r"text 1 gets other ids with sentencepiece .*: 'the cat'"
    ):
        cpbpe.convert("m.model", "t.model", verify="lines.txt")
    assert not Path("t.model").exists()


def test_without_the_other_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cpbpe.tokenizer import verifying

    monkeypatch.setattr(verifying, "_version", lambda library: "")
    done = cpbpe.convert("m.model", "t.json", verify="lines.txt")
    assert done.verified == "4 texts, with cpbpe (tokenizers and sentencepiece is not installed)"


def test_chat_templates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("chat.jinja").write_text("{{ é }}\n", encoding="utf-8")
    Path("rag.jinja").write_text("R")
    arguments = ["--chat-template", "chat.jinja", "--chat-template", "rag=rag.jinja"]
    assert main(["convert", "m.model", "t/", *arguments]) == 0
    assert cpbpe.load("t").chat_templates == {"default": "{{ é }}\n", "rag": "R"}
    capsys.readouterr()
    assert main(["inspect", "t", "--chat-template"]) == 0
    assert capsys.readouterr().out == "{{ é }}\n\n"
    assert main(["inspect", "t", "--chat-template", "rag", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rag": "R"}
    assert main(["inspect", "t", "--chat-template", "none"]) == 1
    assert "carries no chat template 'none'; there are 'default', 'rag'" in capsys.readouterr().err
    assert main(["convert", "t", "t.json"]) == 0
    assert "note          tokenizer.json has no place for chat templates" in capsys.readouterr().out
    assert main(["inspect", "m.model", "--chat-template"]) == 1
    assert "m.model carries no chat template 'default'" in capsys.readouterr().err
    assert main(["inspect", "m.model", "--chat-template", "--id", "3"]) == 2
    Path("broken.jinja").write_bytes(b"\xff")
    assert main(["convert", "m.model", "u/", "--chat-template", "broken.jinja"]) == 1
    assert "broken.jinja: byte 0 is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "there is no source; name both: cpbpe convert"),
        (["m.model"], 2, "there is no target; name both: cpbpe convert"),
        (
            ["m.model", "existing"],
            2,
            "to write one for transformers, type 'existing/'",
        ),
        (["m.model", "t.json", "--to", "gguff"], 2, "--to: 'gguff' is not one of model"),
        (
            ["m.model", "t.json", "--force"],
            2,
            "no option --force; files are replaced without asking",
        ),
        (["m.model", "--out", "t.json"], 2, "there is no option --out; the target comes second"),
        (
            ["m.model", "t.json", *["--chat-template", "lines.txt"] * 2],
            2,
            "two are called default; give each",
        ),
        (
            ["m.model", "t.json", "--chat-template", "lines.txt"],
            1,
            "tokenizer.json has no place for chat templ",
        ),
        (["none.model", "t.json"], 1, "none.model: no such file or folder"),
        (["lines.txt", "t.json"], 1, "lines.txt: not a SentencePiece model: it is text"),
        (["m.model", "t.json", "--verify", "none.txt"], 1, "none.txt: No such file or directory"),
        (["m.model", "t.json", "--chat-template", "none.jinja"], 1, "none.jinja: No such file or directory"),
    ],
)
def test_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    Path("existing").mkdir()
    assert main(["convert", *arguments]) == code
    assert message in capsys.readouterr().err
    assert not Path("t.json").exists()


def test_options_that_the_model_cannot_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("n.model").write_bytes(zoo.model("no-bos-empty-surface"))
    assert main(["convert", "n.model", "t.model", "--add-bos"]) == 1
    assert "--add-bos, but this model defines no bos piece of type CONTROL" in capsys.readouterr().err
    with pytest.raises(ValueError, match="add_bos=True, but this model defines no bos piece"):
        cpbpe.convert("n.model", "t.model", add_bos=True)
    with pytest.raises(ValueError, match=r"to must be one of model, .* and folder, not 'gugu'"):
        cpbpe.convert("m.model", "t.model", to="gugu")


@pytest.mark.parametrize("model", ["t.json", "t", "only"])
def test_every_verb_takes_every_format(folder: Path, capsys: pytest.CaptureFixture[str], model: str) -> None:
    """The result is that of the `.model`."""
    assert main(["convert", "m.model", "t.json", "-q"]) == 0
    assert main(["convert", "m.model", "t/", "-q"]) == 0
    Path("only").mkdir()
    Path("only/tokenizer.json").write_bytes(Path("t.json").read_bytes())
    for verb in (
        ["encode", "MODEL", "lines.txt"],
        ["encode", "MODEL", "lines.txt", "--format", "pieces"],
        ["decode", "MODEL", "lines.ids"],
        ["inspect", "MODEL", "--search", "^▁th"],
        ["inspect", "MODEL", "--piece", "▁the"],
        ["pack", "MODEL", "lines.txt", "--out", "packed-MODEL", "--to", "npy", "--json"],
    ):
        assert main(["encode", "m.model", "lines.txt", "--out", "lines.ids", "-q"]) == 0
        results = []
        for name in ("m.model", model):
            assert main([part.replace("MODEL", name) for part in verb]) == 0, verb
            results.append(capsys.readouterr().out)
        if verb[0] in ("encode", "decode"):
            assert results[0] == results[1]
        elif verb[0] == "pack":
            packed = [Path(f"packed-{name}/train.npy").read_bytes() for name in ("m.model", model)]
            assert packed[0] == packed[1]
        else:  # scores are those of the format
            assert results[1].startswith(results[0][:20])


def test_what_a_file_carries_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"mask_token": "<mask>", "add_bos_token": True, "legacy": False, "chat_template": "T" * 1234}
    Path("tokenizer.model").write_bytes(zoo.model("llama"))
    Path("tokenizer_config.json").write_text(json.dumps(config))
    assert main(["inspect", "."]) == 0
    out = capsys.readouterr().out
    for part in (
        "prefix        a space is put in front of a text, but not after special tokens, as the file asks",
        "add_bos=True, prefix_after_special=False; the option --file-options does it",
        "mask          <mask>",
        "chat template default, 1,234 characters",
    ):
        assert " ".join(part.split()) in " ".join(out.split())
    seen = cpbpe.load(".").inspect().to_dict()
    assert seen["file_options"] == {"add_bos": True, "prefix_after_special": False}
    assert seen["token_roles"] == {"mask": "<mask>"}
    assert seen["chat_templates"] == {"default": "T" * 1234}
    assert seen["prefix"] == "front"
    config |= {"padding_side": "left", "add_prefix_space": False}
    Path("tokenizer_config.json").write_text(json.dumps(config))
    assert main(["inspect", "."]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert 'note tokenizer_config.json also says padding_side ("left"), which is not kept' in out
    assert "prefix no space is put in front of a text" in out
    with pytest.raises(AttributeError, match="use chat_templates"):
        _ = cpbpe.load(".").chat_template  # type: ignore[attr-defined]


def test_the_source_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the new file leaves out would be gone."""
    monkeypatch.chdir(tmp_path)
    cpbpe.train(["hello world"] * 9, vocab_size=275, hard_vocab_limit=False).save("a")
    cpbpe.convert("a.model", "folder/")
    Path("link.model").symlink_to("a.model")
    Path("link").symlink_to("folder")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for source, target, to in (
        ("a.model", "a.model", None),
        ("a.model", "./link.model", "tokenizer.json"),
        (Path("link.model"), Path("a.model"), None),
        ("folder", "folder/", None),
        ("folder", "link/", None),
        ("folder/tokenizer.json", "folder/", None),
        ("link", "folder/tokenizer.json", None),
    ):
        with pytest.raises(ValueError, match="is read here, and would be replaced; choose another name"):
            cpbpe.convert(source, target, to=to)
    assert before == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    cpbpe.convert("folder", "folder/other.model")
