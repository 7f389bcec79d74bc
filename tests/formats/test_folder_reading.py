"""Folders of transformers, read: what the files beside a model say, and what is wrong with them."""

import io
import json
import os
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers import AutoTokenizer

import cpbpe
from cpbpe import ModelError, Tokenizer
from cpbpe.model.formats import gpt2
from cpbpe.model.formats.folder_reading import json_head
from tests.support import json_files, zoo

Json = dict[str, Any]
IS_4 = transformers.__version__.startswith("4.")
SIZE = 700
"""How many pieces the model "llama" has."""


@pytest.fixture
def model() -> Tokenizer:
    return Tokenizer.from_bytes(zoo.model("llama"))


def made(folder: Path, config: Json | None = None, **files: Json | str | bytes) -> Path:
    """A folder with the model "llama", a tokenizer_config.json, and other files; "__" is a dot in names."""
    (folder / "tokenizer.model").write_bytes(zoo.model("llama"))
    if config is not None:
        files["tokenizer_config__json"] = config
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        data = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def token(content: str, **flags: bool) -> Json:
    usual = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    return {"content": content, **usual, **flags}


def notes(folder: Path) -> str:
    """What a conversion says of a folder."""
    (folder / "converted").mkdir(exist_ok=True)  # (a .model in the folder itself would be read the next time)
    return "\n".join(cpbpe.convert(folder, folder / "converted" / "a.model").notes)


# --- Which file is the model ----------------------------------------------------------------------


def test_names_with_a_version(tmp_path: Path, model: Tokenizer) -> None:
    """As transformers saves what it reads with mistral-common."""
    (tmp_path / "tokenizer.model.v3").write_bytes(zoo.model("llama"))
    assert cpbpe.load(tmp_path) == model
    (tmp_path / "tokenizer.model.v7m1").write_bytes(zoo.model("suffix"))
    several = r"several files of mistral-common: tokenizer.model.v3, tokenizer.model.v7m1; give the path"
    with pytest.raises(FileNotFoundError, match=several):
        cpbpe.load(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("llama"))
    assert cpbpe.load(tmp_path) == model


# --- What is said ---------------------------------------------------------------------------------


def test_a_folder_that_says_nothing_new_is_its_model(tmp_path: Path, model: Tokenizer) -> None:
    made(
        tmp_path,
        {
            "add_bos_token": False,
            "bos_token": "<s>",
            "eos_token": token("</s>"),
            "unk_token": "<unk>",
            "pad_token": None,
            "added_tokens_decoder": {"0": token("<unk>"), "1": token("<s>"), "2": token("</s>")},
            "legacy": True,
            "model_max_length": 10**30,
            "tokenizer_class": "LlamaTokenizer",
        },
        special_tokens_map__json={"bos_token": "<s>"},
        generation_config__json={"eos_token_id": 2, "temperature": 0.6},
    )
    tok = cpbpe.load(tmp_path)
    assert tok == model
    assert tok.to_bytes() == zoo.model("llama")
    assert not tok.file_options
    assert not tok.token_roles


def test_options_are_known_and_not_applied(tmp_path: Path, model: Tokenizer) -> None:
    made(tmp_path, {"add_bos_token": True, "add_eos_token": True, "legacy": False})
    tok = cpbpe.load(tmp_path)
    assert tok.file_options == {"add_bos": True, "add_eos": True, "prefix_after_special": False}
    assert tok.encode("Hi there") == model.encode("Hi there")
    asked = tok.using(**tok.file_options)
    expected = model.encode(
        "Hi</s>x", add_bos=True, add_eos=True, prefix_after_special=False, allowed_special="all"
    )
    assert asked.encode("Hi</s>x", allowed_special="all") == expected


def test_added_tokens_have_their_ids(tmp_path: Path, model: Tokenizer) -> None:
    decoder = {"2": token("</s>"), "700": token("<|a|>"), "705": token("<|b|>", special=False)}
    made(tmp_path, {"added_tokens_decoder": decoder, "additional_special_tokens": ["<|a|>", "<|new|>"]})
    tok = cpbpe.load(tmp_path)
    assert tok.vocab.added_tokens == {"<|a|>": 700, "<|b|>": 705, "<|new|>": 706}
    assert tok.encode("Hi<|b|><|a|>", allowed_special="all")[-2:] == [705, 700]
    assert tok.encode("Hi<|b|>")[-1] == 705  # it is not special
    assert tok.encode("Hi<|a|>") == model.encode("Hi<|a|>")
    again = Tokenizer.from_bytes(tok.to_bytes())
    assert again == tok
    assert again.vocab.added_tokens == tok.vocab.added_tokens


def test_tokens_without_ids_get_the_next_ones_in_the_order_of_transformers(tmp_path: Path) -> None:
    made(
        tmp_path,
        {"added_tokens_decoder": {"700": token("<x>")}, "mask_token": "<mask>", "pad_token": "[PAD]"},
    )
    tok = cpbpe.load(tmp_path)
    assert tok.vocab.added_tokens == {"<x>": 700, "[PAD]": 701, "<mask>": 702}
    assert tok.token_roles == {"mask": "<mask>", "pad": "[PAD]"}
    assert tok.pad_id is None  # it is no piece


def test_files_of_older_versions(tmp_path: Path) -> None:
    made(
        tmp_path,
        {"bos_token": "<s>"},
        added_tokens__json={"<|user|>": 701, "<|end|>": 700},
        special_tokens_map__json={"pad_token": token("<|end|>"), "additional_special_tokens": ["<|user|>"]},
    )
    tok = cpbpe.load(tmp_path)
    assert tok.vocab.added_tokens == {"<|end|>": 700, "<|user|>": 701}
    assert tok.token_roles == {"pad": "<|end|>"}
    made(tmp_path, {"added_tokens_decoder": {}})  # then these files are not read
    assert cpbpe.load(tmp_path).vocab.added_tokens == {}


def test_pieces_that_are_bos_eos_and_pad(tmp_path: Path, model: Tokenizer) -> None:
    made(tmp_path, {"pad_token": "</s>", "eos_token": "<s>", "add_eos_token": True})
    tok = cpbpe.load(tmp_path)
    assert (tok.bos_id, tok.eos_id, tok.pad_id) == (1, 1, 2)
    assert tok.encode("Hi", add_eos=True) == [*model.encode("Hi"), 1]
    assert tok.file_options == {"add_eos": True}
    assert Tokenizer.from_bytes(tok.to_bytes()).pad_id == 2
    made(tmp_path, {"eos_token": "<|end|>", "add_eos_token": True})
    with pytest.warns(
        UserWarning,
        match="puts '<|end|>' at the end of texts, and that is no CONTROL piece".replace("|", r"\|"),
    ):
        tok = cpbpe.load(tmp_path)  # an added token cannot be eos
    assert tok.token_roles == {"eos": "<|end|>"}
    assert tok.eos_id == 2
    assert not tok.file_options
    assert "add_eos cannot do that, encode_parts can" in notes(tmp_path)


def test_no_prefix(tmp_path: Path, model: Tokenizer) -> None:
    made(tmp_path, {"add_prefix_space": False})
    tok = cpbpe.load(tmp_path)
    assert tok.encode("Hi there") == model.encode("Hi there", prefix_space=False)
    assert tok.spec.normalizer.add_dummy_prefix is False
    assert tok.inspect().to_dict()["prefix"] == "none"
    made(tmp_path, {"add_prefix_space": True})
    assert cpbpe.load(tmp_path) == model


def test_chat_templates_and_which_comes_first(tmp_path: Path) -> None:
    def templates() -> Any:
        return cpbpe.load(tmp_path).chat_templates

    made(tmp_path, chat_template__json={"chat_template": "of the processor"})
    assert templates() == {"default": "of the processor"}
    made(tmp_path, {"chat_template": "one\r\n"})
    assert templates() == {"default": "one\r\n"}
    made(tmp_path, {"chat_template": [{"name": "a", "template": "A"}, {"name": "b", "template": "B"}]})
    assert templates() == {"a": "A", "b": "B"}
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("R")
    (tmp_path / "chat_template.jinja").write_text("{{ 'é' }}", encoding="utf-8")
    assert templates() == {"default": "{{ 'é' }}", "rag": "R"}
    saved = tmp_path / "saved.model"
    cpbpe.load(tmp_path).save(saved)
    assert cpbpe.load(saved).chat_templates == templates()


@pytest.mark.parametrize("name", ["LlamaTokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("said", [{}, {"bos_token": None}, {"bos_token": None, "unk_token": "<unk>"}])
def test_templates_know_only_the_tokens_that_transformers_knows(
    tmp_path: Path, name: str, said: Json, model: Tokenizer
) -> None:
    """A class may have names of its own; a token that is null has none. Both are kept in a .model, too."""
    template = "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}"
    config = {"tokenizer_class": name, "add_bos_token": False, "chat_template": template, **said}
    model.save(f"{tmp_path}/json/")
    (tmp_path / "json" / "special_tokens_map.json").unlink()
    (tmp_path / "json" / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = AutoTokenizer.from_pretrained(tmp_path / "json")
    chat = [{"role": "user", "content": "Hi"}]
    expected = theirs.apply_chat_template(chat, tokenize=False)
    tok = cpbpe.load(tmp_path / "json")
    assert tok.apply_chat_template(chat).text == expected
    assert tok.bos_id == 1  # the model has it all the same
    assert "" not in [*tok.token_roles.values(), *tok.inspect().token_roles.values()]
    for again in ("again.model", "again/"):
        tok.save(tmp_path / again if "." in again else f"{tmp_path}/{again}")
        assert cpbpe.load(tmp_path / again).apply_chat_template(chat).text == expected, again


def test_other_parts_and_ends_of_generation(tmp_path: Path) -> None:
    made(
        tmp_path,
        {
            "added_tokens_decoder": {"700": token("<eot>")},
            "eot_token": "<eot>",
            "model_specific_special_tokens": {"image_token": "<img>"},
        },
        generation_config__json={"eos_token_id": [2, 700, 1]},
    )
    tok = cpbpe.load(tmp_path)
    assert tok.token_roles == {"eot": "<eot>", "image": "<img>", "stop": "<eot>", "stop_2": "<s>"}
    assert tok.vocab.added_tokens == {"<eot>": 700, "<img>": 701}
    assert "which is not kept" not in notes(tmp_path)


def test_a_tokenizer_json_beside_the_model(tmp_path: Path, model: Tokenizer) -> None:
    made(tmp_path, {"add_bos_token": False})
    extra = model.with_special_tokens(["<|x|>"])
    extra.using(add_bos=True).save(tmp_path / "tokenizer.json")
    tok = cpbpe.load(tmp_path)
    assert tok.vocab.added_tokens == {"<|x|>": 700}
    assert tok.file_options == {"add_bos": True}
    assert tok.settings == model.settings
    assert "add_bos_token=False, and tokenizer.json, which transformers 5 follows, adds it" in notes(tmp_path)


def test_a_tokenizer_json_of_another_vocabulary_is_noticed(tmp_path: Path, model: Tokenizer) -> None:
    made(tmp_path)
    model.save(tmp_path / "tokenizer.json")
    assert "another vocabulary" not in notes(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_bytes())
    vocab = content["model"]["vocab"]
    one, two = model.id_to_piece(300), model.id_to_piece(301)
    vocab[one], vocab[two] = 301, 300
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert cpbpe.load(tmp_path).encode("Hi there") == model.encode("Hi there")
    assert f"is another vocabulary: 300 is {two!r} there, and {one!r}" in notes(tmp_path)
    del vocab[one]
    del vocab[two]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert f"has no {one!r} (300); the model is read" in notes(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}')
    assert "is not one of a BPE model" in notes(tmp_path)


def test_a_folder_with_a_tokenizer_json_alone(tmp_path: Path, model: Tokenizer) -> None:
    model.using(add_bos=True).save(tmp_path / "tokenizer.json")
    (tmp_path / "chat_template.jinja").write_text("T")
    config = {"added_tokens_decoder": {"700": token("<|x|>")}, "add_prefix_space": False, "pad_token": "</s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = cpbpe.load(tmp_path)
    assert tok.encode("Hi there") == model.encode("Hi there")
    assert (tok.pad_id, tok.file_options, tok.chat_templates) == (2, {"add_bos": True}, {"default": "T"})
    assert tok.vocab.added_tokens == {"<|x|>": 700}
    assert "add_prefix_space is ignored" in notes(tmp_path)


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("said", [True, False, None])
def test_what_a_tokenizer_json_puts_around_texts(tmp_path: Path, wanted: bool, said: bool | None) -> None:
    """It is followed, whatever tokenizer_config.json says, as in transformers 5."""
    Tokenizer.from_bytes(zoo.model("llama")).using(add_bos=wanted).save(tmp_path / "tokenizer.json")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "add_bos_token": said}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = cpbpe.load(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert theirs("Hi").input_ids == tok.encode("Hi", **tok.file_options)
    assert tok.file_options == ({"add_bos": True} if wanted else {})
    assert ("which transformers 5 follows" in notes(tmp_path)) == (said is not None and said != wanted)


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    decoder = {
        "3": token("<renamed>"),
        "300": token(Tokenizer.from_bytes(zoo.model("llama")).id_to_piece(300)),
        "700": token("<x>", rstrip=True, single_word=True),
        "701": token("</s>"),
        "702": token("<x>"),
    }
    made(
        tmp_path,
        {
            "added_tokens_decoder": decoder,
            "sp_model_kwargs": {"enable_sampling": True},
            "padding_side": "left",
            "model_max_length": 4096,
        },
    )
    with pytest.warns(
        UserWarning, match="piece 3 is '<0x00>' in the model, .*; the model is followed"
    ) as seen:
        assert cpbpe.load(tmp_path).vocab.added_tokens == {"<x>": 700}
    assert [warning.filename for warning in seen] == [__file__]
    said = notes(tmp_path)
    for part in (
        "piece 3 is '<0x00>' in the model, and '<renamed>' in files",
        "give '</s>' the id 701, and it is piece 2",
        "give '<x>' the id 702; one of the two is taken",
        'asks sentencepiece for {"enable_sampling": true}',
        'also says padding_side ("left"), model_max_length (4096), which is not kept',
    ):
        assert part in said


def test_control_pieces_that_got_another_name(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("special"))
    model = cpbpe.load(tmp_path)
    ids = {name: model.vocab[name] for name in ("<cls>", "[E]")}
    decoder = {str(ids["<cls>"]): token("<|im_start|>"), str(ids["[E]"]): token("<|im_end|>")}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    tok = cpbpe.load(tmp_path)
    assert tok.encode("Hi<|im_start|>", allowed_special="all")[-1] == ids["<cls>"]
    assert tok.eos_id == ids["[E]"] == tok.vocab["<|im_end|>"]
    assert "<cls>" not in tok.vocab
    assert tok.encode("the abc <cls>") == model.encode("the abc <cls>")
    assert "'<cls>' in the model, is called '<|im_start|>', as in the files beside it" in notes(tmp_path)
    assert Tokenizer.from_bytes(tok.to_bytes()) == tok


def test_a_prefix_space_for_a_model_that_is_no_tokenizer_json(tmp_path: Path) -> None:
    """The note names no file that is not there."""
    cpbpe.Tokenizer.from_bytes(zoo.model("llama")).save(tmp_path / "model.gguf")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": False}))
    assert "add_prefix_space is ignored: the file of the model says" in notes(tmp_path)


def test_two_control_pieces_that_got_one_name(tmp_path: Path) -> None:
    """Then neither is renamed, and the notes do not say that one was."""
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("special"))
    ids = [cpbpe.load(tmp_path).vocab[name] for name in ("<cls>", "[E]")]
    decoder = {str(id): token("<x>") for id in ids}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    said = notes(tmp_path)
    assert "'<cls>' in the model, and '<x>' in files beside it" in said
    assert "is called" not in said


def test_notes_of_a_plain_folder_are_few(tmp_path: Path) -> None:
    made(tmp_path, {"bos_token": "<s>", "model_max_length": 10**30})
    assert notes(tmp_path) == ""


# --- What transformers puts around texts ----------------------------------------------------------


@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize("eos", ["</s>", "<|im_end|>", "<s>", None])
@pytest.mark.parametrize("bos", ["<s>", "</s>"])
def test_the_tokens_around_texts_are_those_of_the_tokenizer_json(
    tmp_path: Path, bos: str, eos: str | None, with_model: bool, model: Tokenizer
) -> None:
    """Chat models have another eos. What cannot be done is left out, and a warning says which token it is."""
    given = model.with_special_tokens(["<|im_end|>"]).using(add_bos=True, add_eos=True)
    given.save(tmp_path / "tokenizer.json")
    if with_model:
        given.save(tmp_path / "tokenizer.model")
    roles = {"bos_token": bos, "eos_token": eos, "unk_token": "<unk>"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **roles}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True).encode("Hi")
    assert theirs == [1, *model.encode("Hi"), 2]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tok = cpbpe.load(tmp_path)
    said = "".join(str(warning.message) for warning in seen)
    for end, place, id in (("bos", "in front", 1), ("eos", "at the end", 2)):
        if f"add_{end}" in tok.file_options:
            assert getattr(tok, f"{end}_id") == id
        else:
            name, other = (model.id_to_piece(at) for at in (id, 3 - id))
            assert f"puts {name!r} {place} of texts, and {end} is {other!r}; add_{end} cannot" in said
            theirs.remove(id)
    assert tok.encode("Hi", **tok.file_options) == theirs
    assert ("add_bos" in tok.file_options, "add_eos" in tok.file_options) == (bos == "<s>", eos != "<s>")
    # Nothing else is put there after a conversion.
    done = cpbpe.convert(tmp_path, f"{tmp_path}/new/")
    assert all(part in "; ".join(done.notes) for part in said.partition(": ")[2].split("; ")[:-1])
    assert AutoTokenizer.from_pretrained(tmp_path / "new", local_files_only=True).encode("Hi") == theirs


def test_another_template_for_two_texts_is_said(tmp_path: Path, model: Tokenizer) -> None:
    model.using(add_bos=True, add_eos=True).save(tmp_path / "tokenizer.json")
    content = json.loads((tmp_path / "tokenizer.json").read_bytes())
    assert "two texts" not in notes(tmp_path)
    pair = content["post_processor"]["pair"]
    pair[3] = pair[2]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    said = (
        "makes <s> A </s> </s> B </s> of two texts A and B, and cpbpe writes one that makes <s> A </s> <s> B"
    )
    assert said in notes(tmp_path)
    model.save(tmp_path / "tokenizer.model")
    assert said in notes(tmp_path)


# --- Models of two files --------------------------------------------------------------------------

SPECIAL = ["<s>", "</s>", "<mask>", "<pad>", "<unk>", "[CLS]", "[SEP]", "<|endoftext|>"]


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with vocab.json and merges.txt for each pattern."""
    texts, folder = (
        ["the cat sat on the mat", "ab aba don't 123", "é日本"] * 4,
        tmp_path_factory.mktemp("halves"),
    )
    for pattern in ("gpt2", "qwen2"):
        options: Json = {"special_tokens": SPECIAL, "eos_piece": "</s>", "pattern": pattern}
        tok = cpbpe.train(texts, preset="gpt4", vocab_size=285, **options).tokenizer
        files = gpt2.files(str(folder / pattern), gpt2.write(tok.spec, allow_differences=True).data)
        (folder / pattern).mkdir()
        for path, data in files.items():
            Path(path).write_bytes(data)
    return {pattern: folder / pattern for pattern in ("gpt2", "qwen2")}


@pytest.mark.parametrize(
    "said", [{}, {"add_bos_token": True}, {"add_prefix_space": True}, {"bos_token": "</s>"}]
)
@pytest.mark.parametrize(
    "name",
    [
        *("GPT2Tokenizer", "GPT2TokenizerFast", "Qwen2Tokenizer", "RobertaTokenizer", "BartTokenizer"),
        *("LEDTokenizerFast", "LongformerTokenizer", "MvpTokenizer", "DebertaTokenizer"),
        *([] if IS_4 else ["gpt2", "qwen3", "roberta", "bart"]),  # kinds of models, without a class
    ],
)
def test_classes_of_two_files(tmp_path: Path, halves: dict[str, Path], name: str, said: Json) -> None:
    folder = shutil.copytree(halves["qwen2" if name.lower().startswith("qwen") else "gpt2"], tmp_path / "a")
    mask = {"__type": "AddedToken", **token("<mask>", lstrip=True)}
    named = {} if name.lower().startswith(("gpt2", "qwen")) else {"mask_token": mask}
    config = {"additional_special_tokens": SPECIAL, **named, **said}
    if name.islower():
        (folder / "config.json").write_text(json.dumps({"model_type": name}))
    else:
        config["tokenizer_class"] = name
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if name.lower().startswith("qwen") and "add_prefix_space" in said:
        with pytest.raises(ModelError, match="makes Qwen2Tokenizer put a space in front of each part"):
            cpbpe.load(folder)
        return
    theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tok = cpbpe.load(folder)
    for text in ("the cat", " the cat don't", "ab</s>b<mask> e\u0301", "12345 日本"):
        expected = theirs.encode(text)
        found = tok.encode(text, allowed_special="all", **tok.file_options)
        if seen:  # bos is not the token around texts, and a warning says so
            assert "in front of texts, and bos is '</s>'; add_bos cannot" in str(seen[0].message)
            expected = expected[1:]
        assert found == expected, text
    assert bool(seen) == (bool(named) and "bos_token" in said)
    assert tok.eos_id == theirs.eos_token_id


@pytest.mark.parametrize(
    "name", ["GPTNeoXTokenizer", "CohereTokenizerFast", "WhisperTokenizer", "MyTokenizer"]
)
def test_other_classes_of_two_files_are_refused(tmp_path: Path, halves: dict[str, Path], name: str) -> None:
    folder = shutil.copytree(halves["gpt2"], tmp_path / "a")
    plain = cpbpe.load(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    with pytest.raises(ModelError, match=f"for the class {name.removesuffix('Fast')} of .* Or give pattern"):
        cpbpe.load(folder)
    assert cpbpe.load(folder, pattern="gpt2").encode("the cat") == plain.encode("the cat")


# --- Classes of transformers that do something else -----------------------------------------------


def test_code_llama_has_no_prefix_after_special_tokens(tmp_path: Path) -> None:
    made(tmp_path, {"tokenizer_class": "CodeLlamaTokenizer"})
    tok = cpbpe.load(tmp_path)
    assert tok.file_options == {"prefix_after_special": False}
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True, use_fast=False)
    options: Json = {"add_bos": True, "allowed_special": "all", **tok.file_options}
    for text in ("a</s>b", "a</s> b"):
        assert tok.encode(text, **options) == theirs.encode(text)


@pytest.mark.skipif(IS_4, reason="the class of version 4 follows add_bos_token")
@pytest.mark.parametrize("said", [{}, {"add_bos_token": False, "add_eos_token": True}])
@pytest.mark.parametrize("ends", [(False, False), (True, False), (True, True)])
def test_code_llama_has_bos_in_front(
    tmp_path: Path, ends: tuple[bool, bool], said: Json, model: Tokenizer
) -> None:
    """And nothing at the end: its class follows neither the tokenizer.json nor the file beside it."""
    given = tmp_path / "tokenizer.json"
    model.using(add_bos=ends[0], add_eos=ends[1]).save(given)
    around = json.loads(given.read_text())["post_processor"]
    given.write_text(json.dumps(json_files.metaspace("first", False) | {"post_processor": around}))
    config = {"tokenizer_class": "CodeLlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", **said}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True).encode("Hi")
    tok = cpbpe.load(tmp_path)
    assert tok.encode("Hi", **tok.file_options) == theirs == [1, *tok.encode("Hi")]


@pytest.mark.skipif(IS_4, reason="the classes of version 4 follow the file")
@pytest.mark.parametrize(
    "name",
    [
        *("LlamaTokenizerFast", "CodeLlamaTokenizer", "PreTrainedTokenizerFast", "GemmaTokenizerFast"),
        *("GPT2Tokenizer", "NllbTokenizer"),
    ],
)
@pytest.mark.parametrize("form", ["prepend", "first", "always", "never"])
def test_classes_that_make_metaspace_anew(tmp_path: Path, name: str, form: str) -> None:
    """A folder without a `.model`: ids are those of AutoTokenizer, or a warning says that they may differ."""
    content = json_files.llama() if form == "prepend" else json_files.metaspace(form, False)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    ends = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    said: Json
    for said in ({}, {"legacy": False}, {"legacy": True}, {"add_prefix_space": False}):
        config = {"tokenizer_class": name, **ends, **said}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        for kind in (None, "llama", "mistral"):
            other = {} if kind is None else {"model_type": kind}
            (tmp_path / "config.json").write_text(json.dumps(other))
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                tok = cpbpe.load(tmp_path)
            warned = any("tokenizer.json is followed, but the class" in str(one.message) for one in seen)
            theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
            options: Json = {"allowed_special": "all", **tok.file_options, "add_bos": False, "add_eos": False}
            texts = ("a", " a", "  a", "a  b", "\n a", "a</s>b", "a</s> b", "▁a")
            ids = [theirs.encode(text, add_special_tokens=False) for text in texts]
            follows = kind == "mistral" or name == "PreTrainedTokenizerFast"
            assert warned or [tok.encode(text, **options) for text in texts] == ids, (said, kind)
            metaspace = "Llama" in name and form in ("first", "always") and "add_prefix_space" not in said
            gemma = name.startswith("Gemma") and form == "never"
            assert not (warned and (follows or metaspace or gemma))


@pytest.mark.parametrize(
    ("form", "legacy", "text"),
    [
        ("prepend", True, None),
        ("prepend", False, "'a<s>a'"),
        ("first", False, "' a'"),
        ("always", True, "' a'"),
    ],
)
def test_a_tokenizer_json_beside_the_model_that_encodes_otherwise(
    tmp_path: Path, form: str, legacy: bool, text: str | None
) -> None:
    """AutoTokenizer takes that file, and cpbpe the model; with which text they differ is said."""
    made(tmp_path)
    (tmp_path / "converted").mkdir()
    converted = tmp_path / "converted/tokenizer.json"
    cpbpe.convert(tmp_path / "tokenizer.model", converted)
    content = json.loads(converted.read_text())
    if form != "prepend":
        content["normalizer"] = None
        content["pre_tokenizer"] = json_files.metaspace(form, False)["pre_tokenizer"]
    config: Json = {"tokenizer_class": "PreTrainedTokenizerFast", "legacy": legacy, "unk_token": "<unk>"}
    made(tmp_path, config, tokenizer__json=content)
    said = notes(tmp_path)
    if text is None:
        assert "the tokenizer.json beside" not in said
    else:
        assert f"which AutoTokenizer of transformers takes, gives {text} other ids than the model" in said
    config["tokenizer_class"] = "LlamaTokenizer"
    made(tmp_path, config)
    makes_anew = "not the tokenizer.json beside it; the class LlamaTokenizer of transformers 5 makes"
    assert (makes_anew in notes(tmp_path)) == (form == "prepend")


@pytest.mark.parametrize("name", ["NllbTokenizer", "MBart50TokenizerFast", "CamembertTokenizer"])
def test_classes_with_other_ids_than_their_model(tmp_path: Path, name: str, model: Tokenizer) -> None:
    (tmp_path / "sentencepiece.bpe.model").write_bytes(zoo.model("llama"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    named = name.removesuffix("Fast")
    with pytest.raises(ModelError, match=f"{named} of transformers does not give the ids of this model"):
        cpbpe.load(tmp_path)
    assert cpbpe.load(tmp_path / "sentencepiece.bpe.model") == model


# --- What is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer_config.json", b"{", "it ends too early .line 1, column 2"),
        ("tokenizer_config.json", b"[]", r"it must hold an object, not \[\]"),
        ("tokenizer_config.json", b"\xff{}", "byte 0 is not UTF-8"),
        ("tokenizer_config.json", b"[" * 100_000, "nested too deeply|not valid JSON"),
        (
            "tokenizer_config.json",
            b'{"add_bos_token": "yes"}',
            'add_bos_token must be true, false or null, not "yes"',
        ),
        ("tokenizer_config.json", b'{"legacy": 0}', "legacy must be true, false or null, not 0"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": []}', "added_tokens_decoder must be an object"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"x": "a"}}', 'has the key "x", which is no id'),
        (
            "tokenizer_config.json",
            b'{"added_tokens_decoder": {"700": 3}}',
            r"\['700'\] must be a token, and is 3",
        ),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"700": {"content": ""}}}', "must be a token"),
        ("tokenizer_config.json", b'{"pad_token": {"text": "<pad>"}}', "pad_token must be a token, and is"),
        ("tokenizer_config.json", b'{"pad_token": "\\ud800"}', "half of a surrogate pair"),
        (
            "tokenizer_config.json",
            b'{"additional_special_tokens": "<a>"}',
            "additional_special_tokens must be a list",
        ),
        (
            "tokenizer_config.json",
            b'{"additional_special_tokens": [1]}',
            r"tokens\[0\] must be a token, and is 1",
        ),
        (
            "tokenizer_config.json",
            b'{"added_tokens_decoder": {"' + b"7" * 5000 + b'": "a"}}',
            "which is no id",
        ),
        ("tokenizer_config.json", b'{"extra_special_tokens": {"add_bos": "a"}}', "the name of a setting"),
        (
            "tokenizer_config.json",
            b'{"chat_template": 3}',
            "chat_template must be a text, an object of texts or a list",
        ),
        ("tokenizer_config.json", b'{"chat_template": [{"name": "a"}]}', 'and "a" has none'),
        ("special_tokens_map.json", b'{"pad_token": {}}', "pad_token must be a token"),
        ("added_tokens.json", b'{"<a>": "700"}', 'the id of "<a>" must be a number from 0, not "700"'),
        ("added_tokens.json", b'{"<a>": 99999999}', "its special token '<a>' cannot have the id 99999999"),
        ("generation_config.json", b'{"eos_token_id": "2"}', "eos_token_id must be an id or a list of ids"),
        (
            "tokenizer.json",
            b'{"added_tokens": [{"id": "x"}]}',
            r"added_tokens\[0\] must be an object with an id",
        ),
        ("tokenizer.json", b'{"added_tokens": [{"id": -1, "content": "a"}]}', "must be an object with an id"),
        ("tokenizer.json", b'{"added_tokens": [', "not valid JSON .it ends too early"),
        ("tokenizer.json", b'{"added_tokens" 3}', "not valid JSON"),
        ("tokenizer.json", b"\xff", "not valid JSON"),
        ("chat_template.jinja", b"\xff", "byte 0 is not UTF-8"),
        ("chat_template.json", b"{3", "not valid JSON"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    made(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        cpbpe.load(tmp_path)
    where = str(tmp_path) if "cannot have the id" in message else os.path.join(str(tmp_path), name)
    assert str(caught.value).startswith(where)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are not bytes elsewhere")
def test_a_template_whose_name_is_not_utf8(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "additional_chat_templates").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "additional_chat_templates") + b"/\xff.jinja")).touch()
    with pytest.raises(ModelError, match=r"the name '\\udcff.jinja' holds half of a surrogate pair"):
        cpbpe.load(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["vocab.json", "vocab.bpe"], "vocab.json is one half of a model, and the other half is missing"),
        (["vocab.txt", "tokenizer_config.json"], "vocab.txt is a WordPiece model"),
    ],
)
def test_folders_of_other_kinds(tmp_path: Path, files: list[str], message: str) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(FileNotFoundError, match=message):
        cpbpe.load(tmp_path)


def test_a_folder_with_a_model_that_is_not_bpe(tmp_path: Path) -> None:
    proto = zoo.parse(zoo.model("llama"))
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    (tmp_path / "spiece.model").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="UNIGRAM"):
        cpbpe.load(tmp_path)
    (tmp_path / "spiece.model").unlink()
    content = json_files.llama()
    content["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match="byte-level"):
        cpbpe.load(tmp_path)


# --- The head of a tokenizer.json -----------------------------------------------------------------


def test_the_head_is_read_without_the_vocabulary() -> None:
    tokens = [{"id": id, "content": f"<é{id}>"} for id in range(20_000)]
    head = {"version": "1.0", "added_tokens": tokens, "post_processor": None, "number": 12345}
    text = json.dumps({**head, "model": {"vocab": {}}}, ensure_ascii=False)
    for ending in ("", '{"broken": '):
        file = io.BytesIO(text.replace('"model": {', '"model": {' + ending).encode() + b" " * (1 << 22))
        assert json_head(file) == head
        assert file.tell() < len(text.encode()) + (1 << 21)
    assert json_head(io.BytesIO(b"\xef\xbb\xbf { } ")) == {}
    # With sorted members, what counts comes after the vocabulary.
    later = json.dumps(
        {"added_tokens": [], "model": {"vocab": {str(id): id for id in range(20_000)}}, "post_processor": 2}
    )
    assert json_head(io.BytesIO(later.encode())) == {"added_tokens": [], "post_processor": 2}
    assert json_head(io.BytesIO(json.dumps({"model": 1, "later": 2}).encode())) == {"later": 2}


def test_a_folder_loads_nearly_as_fast_as_its_model(tmp_path: Path) -> None:
    """What is said beside a model does not cost a second look at its pieces."""
    real = zoo.real_path(zoo.REAL[0])
    (tmp_path / "tokenizer.model").write_bytes(real.read_bytes())
    config = {"add_bos_token": True, "added_tokens_decoder": {"32000": token("<|x|>")}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = cpbpe.load(tmp_path)
    assert tok.vocab.added_tokens == {"<|x|>": 32000}
    assert "spec" not in vars(tok.facts)  # it was not made
    assert tok.to_bytes().startswith(real.read_bytes())


def test_many_special_tokens_take_no_longer_each(tmp_path: Path) -> None:
    """20,000 took 4 s, four times as long as 10,000."""
    seconds = []
    for count in (4_000, 16_000):
        made(tmp_path, {"additional_special_tokens": [f"<extra_{number}>" for number in range(count)]})
        begun = time.process_time()
        assert len(cpbpe.load(tmp_path).vocab.added_tokens) == count
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 4 * 2 * seconds[0] + 0.5
