"""Folders of transformers, written: its AutoTokenizer, of the installed version, gives our ids with them.

Two sides of the same texts: the class that transformers chooses, slow or fast, and the model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from transformers import AutoTokenizer

import cpbpe
from cpbpe import ConversionError, Tokenizer
from cpbpe.compat.transformers import CpbpeTokenizer
from cpbpe.model.formats.sentencepiece import write as model_file
from tests.support import budget, json_files, zoo

FILES = ["special_tokens_map.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"]

REFUSED = {
    "broken-pieces": "is not UTF-8, and a tokenizer.json can hold only text",
    "broken-pieces-no-fallback": "is not UTF-8, and a tokenizer.json can hold only text",
    "unused-no-fallback": "BertGenerationTokenizer finds the UNUSED piece '.+' in unknown text",
}
"""The models of the zoo that no class of transformers can use exactly."""


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def auto(folder: Path, **options: Any) -> Any:
    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **options)


def ids_of(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids


def texts_of(tok: Tokenizer, count: int) -> list[str]:
    """Texts that spell out no special token, nor the unknown one, which transformers finds everywhere."""
    special = {*tok.vocab.special_tokens, tok.id_to_piece(tok.unk_id or 0)}
    texts = [*json_files.texts_for(tok.spec, count), " a", "  two  spaces ", "", " ", "\t x\n", "é☃☃ 🦙"]
    return [text for text in texts if not any(token in tok.normalize(text) + text for token in special)]


def check_ids(folder: Path, tok: Tokenizer, count: int, fast: bool) -> None:
    loaded = auto(folder, use_fast=fast)
    for text in texts_of(tok, count):
        assert ids_of(loaded, text) == tok.encode(text), text
    assert len(loaded) == len(tok)
    for role in ("bos", "eos", "pad"):
        assert getattr(loaded, f"{role}_token_id") == getattr(tok, f"{role}_id"), role


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", ["llama", "special", *zoo.REAL[2:3]])
def test_transformers_gives_our_ids(tmp_path: Path, name: str, fast: bool) -> None:
    tok = Tokenizer.from_bytes(zoo.model(name))
    cpbpe.convert(write(tmp_path, tok), tmp_path / "folder", to="folder", add_bos=True)
    check_ids(tmp_path / "folder", tok, budget.examples(150), fast)
    if "tokenizer.json" in names(tmp_path / "folder"):
        loaded = auto(tmp_path / "folder", use_fast=fast)
        assert loaded.encode("Hi there") == tok.encode("Hi there", add_bos=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NAMES)
def test_every_model(tmp_path: Path, name: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model(name))
    if name in REFUSED:
        with pytest.raises(ConversionError, match=REFUSED[name]):
            cpbpe.convert(write(tmp_path, tok), tmp_path / "folder", to="folder")
        return
    cpbpe.convert(write(tmp_path, tok), tmp_path / "folder", to="folder")
    check_ids(tmp_path / "folder", tok, budget.examples(40), True)
    assert cpbpe.load(tmp_path / "folder") == tok


def write(folder: Path, tok: Tokenizer) -> Path:
    path = folder / "given.model"
    path.write_bytes(tok.to_bytes())
    return path


def test_the_files(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    folder = tmp_path / "new" / "folder"
    tok.save(f"{folder}/")
    assert names(folder) == FILES
    assert (folder / "tokenizer.model").read_bytes() == zoo.model("llama")
    sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert (config["bos_token"], config["add_bos_token"]) == ("<s>", False)
    again = cpbpe.load(folder)
    assert again == tok
    again.save(f"{folder}/")  # over itself
    assert cpbpe.load(folder) == tok


def test_everything_beside_the_model_comes_back(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["<|user|>", "<|end|>"])
    spec = tok.using(add_bos=True, add_eos=True, prefix_after_special=False).spec
    templates = {"default": "{{ bos_token }}é\n", "rag": "R"}
    source = write(tmp_path, Tokenizer.from_spec(spec))
    first = cpbpe.convert(
        source,
        f"{tmp_path}/one/",
        add_bos=True,
        add_eos=True,
        prefix_after_special=False,
        chat_template=templates,
    )
    assert first.is_exact
    assert any("asks for no dummy prefix after special tokens" in note for note in first.notes)
    assert names(tmp_path / "one") == [
        "added_tokens.json",
        "additional_chat_templates/rag.jinja",
        "chat_template.jinja",
        *FILES,
    ]
    loaded = cpbpe.load(tmp_path / "one")
    assert loaded.file_options == {"add_bos": True, "add_eos": True, "prefix_after_special": False}
    assert loaded.chat_templates == templates
    assert loaded.vocab.added_tokens == {"<|user|>": 700, "<|end|>": 701}
    # Round trips are fixed points, through every format that can hold it.
    cpbpe.convert(tmp_path / "one", tmp_path / "two.model")
    cpbpe.convert(tmp_path / "two.model", f"{tmp_path}/three/")
    assert names(tmp_path / "three") == names(tmp_path / "one")
    for name in names(tmp_path / "one"):
        assert (tmp_path / "three" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name
    assert cpbpe.load(tmp_path / "three") == loaded
    # transformers sees the same.
    theirs = auto(tmp_path / "one")
    assert theirs.encode("Hi") == tok.encode("Hi", add_bos=True, add_eos=True)
    assert theirs.convert_tokens_to_ids("<|end|>") == 701
    assert theirs.chat_template == templates
    ours = CpbpeTokenizer.from_pretrained(str(tmp_path / "one"))
    text = "Hi<|user|>you"
    expected = loaded.encode(text, allowed_special="all", **loaded.file_options)
    assert ours.encode(text) == expected
    assert ours.chat_template == templates


def test_options_that_are_bound_override_those_of_the_file(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    tok.using(add_bos=True).save(tmp_path / "asks.model")
    asks = cpbpe.load(tmp_path / "asks.model")
    assert asks.file_options == {"add_bos": True}
    assert asks.encode("Hi") == tok.encode("Hi")
    asks.save(tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "asks.model").read_bytes()
    asks.using(add_bos=False, add_eos=True).save(tmp_path / "other.model")
    assert cpbpe.load(tmp_path / "other.model").file_options == {"add_eos": True}
    with pytest.warns(UserWarning, match="has bound alpha"):  # other options are not those of files
        asks.using(alpha=0.1).save(f"{tmp_path}/folder/")
    assert cpbpe.load(tmp_path / "folder").file_options == {"add_bos": True}


@pytest.mark.parametrize("name", ["defaults", "tsv"])
def test_without_an_exact_tokenizer_json(tmp_path: Path, name: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model(name))
    source = write(tmp_path, tok)
    done = cpbpe.convert(source, f"{tmp_path}/folder/", add_bos=True)
    folder = tmp_path / "folder"
    assert names(folder) == ["special_tokens_map.json", "spiece.model", *FILES[2:]]
    assert done.is_exact
    assert "no tokenizer.json is written: there is no tokenizer.json that is" in done.notes[0]
    assert "ignores add_bos_token" in done.notes[1]
    for fast in (True, False):
        loaded = auto(folder, use_fast=fast)
        for text in texts_of(tok, 100):
            assert ids_of(loaded, text) == tok.encode(text), text
        assert loaded.pad_token is None
        assert len(loaded) == len(tok)
    assert cpbpe.load(folder).file_options == {"add_bos": True}
    assert CpbpeTokenizer.from_pretrained(str(folder)).encode("the") == tok.encode("the", add_bos=True)
    allowed = cpbpe.convert(source, f"{tmp_path}/other/", allow_differences=True)
    assert names(tmp_path / "other") == FILES
    assert not allowed.is_exact


def test_files_of_another_model_are_not_mixed_in(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    Tokenizer.from_bytes(zoo.model("llama")).save(f"{folder}/")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    other = Tokenizer.from_bytes(zoo.model("defaults"))
    before = {name: (folder / name).read_bytes() for name in names(folder)}
    with pytest.raises(FileExistsError, match=r"tokenizer\.json' is a file of another model"):
        other.save(f"{folder}/")
    assert {name: (folder / name).read_bytes() for name in names(folder)} == before
    (folder / "tokenizer.json").unlink()
    other.save(f"{folder}/")
    assert cpbpe.load(folder) == other
    assert (folder / "config.json").read_text() == '{"model_type": "llama"}'


def test_a_template_that_cannot_be_a_file(tmp_path: Path) -> None:
    source = write(tmp_path, Tokenizer.from_bytes(zoo.model("llama")))
    for name in ("../up", ".hidden", "a/b", ""):
        with pytest.raises(ConversionError, match="cannot be a file of this name"):
            cpbpe.convert(source, f"{tmp_path}/folder/", chat_template={name: "T"})
    assert not (tmp_path / "folder").exists()


def test_tokens_of_one_character_and_names_that_are_hidden(tmp_path: Path) -> None:
    spec = Tokenizer.from_bytes(zoo.model("control-characters")).spec
    source = tmp_path / "given.model"
    source.write_bytes(model_file(spec))
    tok = cpbpe.load(source)
    cpbpe.convert(source, f"{tmp_path}/folder/")
    assert cpbpe.load(tmp_path / "folder") == tok
    loaded = auto(tmp_path / "folder")
    for text in texts_of(tok, 60):
        assert ids_of(loaded, text) == tok.encode(text), text


def test_a_folder_with_a_tokenizer_json_alone_in_transformers(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    for add_bos in (True, False):
        tok.using(add_bos=add_bos).save(tmp_path / "tokenizer.json")
        ours = CpbpeTokenizer.from_pretrained(str(tmp_path))
        assert ours.encode("Hi there") == tok.encode("Hi there", add_bos=add_bos)
        assert len(ours) == 700
    saved = tmp_path / "saved"
    ours.save_pretrained(str(saved))
    assert CpbpeTokenizer.from_pretrained(str(saved)).encode("Hi") == tok.encode("Hi")


def test_a_folder_without_a_slash(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    with pytest.raises(IsADirectoryError, match="for a folder of transformers, end the name with a"):
        tok.save(tmp_path)
    tok.save(tmp_path / "new")  # a name like any other
    assert (tmp_path / "new").read_bytes() == tok.to_bytes()
