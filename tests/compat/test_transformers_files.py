"""CpbpeTokenizer in files and in copies, its chat templates, and what it refuses."""

import copy
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer
from tests.support import json_tokenizers, processes, tiers, zoo
from tests.support.json_files import added, dumped
from tests.support.llama_tokenizers import V1, load, ours, with_extra

pytestmark = pytest.mark.usefixtures("engine")

MADE: list[dict[str, Any]] = [
    {},
    {
        "legacy": False,
        "add_bos_token": False,
        "add_eos_token": True,
        "pad_token": "<pad!>",
        "padding_side": "left",
    },
    {"add_prefix_space": False, "model_max_length": 77, "bos_token": None, "add_bos_token": False},
]


def same(a: Any, b: Any) -> None:
    for name in (
        "legacy",
        "add_bos_token",
        "add_eos_token",
        "add_prefix_space",
        "padding_side",
        "model_max_length",
    ):
        assert getattr(a, name) == getattr(b, name), name
    assert a.cpbpe == b.cpbpe
    assert a.get_vocab() == b.get_vocab()
    assert a.special_tokens_map == b.special_tokens_map
    assert list(map(str, a.added_tokens_decoder.items())) == list(map(str, b.added_tokens_decoder.items()))
    for text in ("Hi </s> you<pad!>", "x<|x|>foobar", ""):
        ids = a.encode(text)
        assert ids == b.encode(text)
        for skip in (False, True):
            assert a.decode(ids, skip_special_tokens=skip) == b.decode(ids, skip_special_tokens=skip)


@tiers.slow_reference
@pytest.mark.parametrize("options", MADE)
def test_save_and_load(options: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = with_extra(ours(**options))
    tokenizer.add_tokens(["foobar"])
    files = tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == zoo.model(V1)
    assert str(tmp_path / "tokenizer.model") in files
    loaded = CpbpeTokenizer.from_pretrained(tmp_path)
    same(tokenizer, loaded)
    again = tmp_path / "again"
    loaded.save_pretrained(again)
    same(tokenizer, CpbpeTokenizer.from_pretrained(again))
    assert cpbpe.load(tmp_path / "tokenizer.model") == tokenizer.cpbpe
    tokenizer.save_pretrained(tmp_path, filename_prefix="other")
    assert (tmp_path / "other-tokenizer.model").read_bytes() == zoo.model(V1)


def test_save_and_load_with_the_models_own_added_tokens(tmp_path: Path) -> None:
    tok = load().with_special_tokens({"<|x|>": 32005})
    tokenizer = CpbpeTokenizer(tok)
    tokenizer.add_tokens(["foobar"])
    tokenizer.save_pretrained(tmp_path)
    loaded = CpbpeTokenizer.from_pretrained(tmp_path)
    same(tokenizer, loaded)
    assert loaded.convert_tokens_to_ids(["<|x|>", "foobar"]) == [32005, 32006]


@tiers.slow_reference
@pytest.mark.parametrize("options", MADE)
def test_copies(options: dict[str, Any]) -> None:
    tokenizer = with_extra(ours(**options))
    tokenizer.encode("used before<s>")
    same(tokenizer, pickle.loads(pickle.dumps(tokenizer)))
    copied = copy.deepcopy(tokenizer)
    same(tokenizer, copied)
    copied.add_tokens(["<new>"])
    assert tokenizer.encode("<new>") != copied.encode("<new>")
    # What a copy changes is not changed in the original.
    before = tokenizer.encode("Hi")
    copied = copy.copy(tokenizer)
    same(tokenizer, copied)
    copied.add_eos_token = not tokenizer.add_eos_token
    assert copied.encode("Hi") != before == tokenizer.encode("Hi")


def test_a_folder_from_a_hub(tmp_path: Path) -> None:
    """The folder of a Llama model, as they are published."""
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "add_bos_token": True,
        "add_eos_token": True,
        "added_tokens_decoder": {
            str(id): {"content": t, **token} for id, t in enumerate(["<unk>", "<s>", "</s>"])
        },
        "additional_special_tokens": [],
        "bos_token": {"__type": "AddedToken", "content": "<s>", **token},
        "clean_up_tokenization_spaces": False,
        "eos_token": "</s>",
        "legacy": False,
        "model_max_length": 4096,
        "pad_token": None,
        "padding_side": "right",
        "sp_model_kwargs": {},
        "spaces_between_special_tokens": False,
        "tokenizer_class": "LlamaTokenizer",
        "unk_token": "<unk>",
        "use_default_system_prompt": False,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.model").write_bytes(zoo.model(V1))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": []}))
    tokenizer = CpbpeTokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("<s>Hi") == [1, 1, 23809, 2]
    assert (tokenizer.model_max_length, tokenizer.pad_token) == (4096, None)
    assert CpbpeTokenizer.from_pretrained(tmp_path, add_eos_token=False, legacy=True).encode("<s>Hi") == [
        1,
        1,
        15359,
    ]


@pytest.mark.parametrize("eos", [None, False, True])
@pytest.mark.parametrize("bos", [None, False, True])
def test_a_tokenizer_json_says_what_arguments_do_not(tmp_path: Path, bos: Any, eos: Any) -> None:
    (tmp_path / "tokenizer.json").write_bytes(json_tokenizers.model("llama", bos=True, eos=True))
    ours = CpbpeTokenizer(tokenizer_file=tmp_path / "tokenizer.json", add_bos_token=bos, add_eos_token=eos)
    plain = ours.encode("a", add_special_tokens=False)
    assert ours.encode("a") == [1] * (bos is not False) + plain + [2] * (eos is not False)


def test_a_tokenizer_json_is_saved_as_one(tmp_path: Path) -> None:
    """A folder has the same rules again, and those of fast tokenizers."""
    content = json.loads(json_tokenizers.model("llama", bos=True))
    free = max(content["model"]["vocab"].values()) + 1
    free = max([free, *(token["id"] + 1 for token in content["added_tokens"])])
    content["added_tokens"].append(added(free, "<a>", False, normalized=True))
    strategy = {"strategy": "BatchLongest", "pad_to_multiple_of": None}
    content["padding"] = {**strategy, "direction": "Left", "pad_id": 2, "pad_type_id": 0, "pad_token": "</s>"}
    (tmp_path / "tokenizer.json").write_bytes(dumped(content))
    one = CpbpeTokenizer(tokenizer_file=tmp_path / "tokenizer.json", model_max_length=512)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert one.padding_side == theirs.padding_side == "left"
    assert one.pad_token == theirs.pad_token == "</s>"
    files = one.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "tokenizer.json").read_bytes() == dumped(content)
    assert not any("tokenizer.model" in file for file in files)
    again = CpbpeTokenizer.from_pretrained(tmp_path / "saved")
    same(one, again)
    for text in ["<a>ab", "ab<a> c", "ab</s> c"]:
        ids = theirs.encode(text)
        assert ids == one.encode(text) == again.encode(text)
        assert one.decode(ids) == again.decode(ids)  # (older versions of tokenizers decode `<a>` otherwise)


def test_what_the_file_of_a_model_asks_for(tmp_path: Path) -> None:
    """It is the default. sentencepiece's files ask for nothing, and then bos is put in front, as in Llama."""
    tok = load()
    path = str(tmp_path / "a.model")
    tok.using(add_eos=True).save(path)
    asked = CpbpeTokenizer(path)
    assert asked("Hi").input_ids == [*tok.encode("Hi"), tok.eos_id]
    assert CpbpeTokenizer(path, add_bos_token=True)("Hi").input_ids[0] == tok.bos_id
    assert CpbpeTokenizer(path, add_eos_token=False)("Hi").input_ids == tok.encode("Hi")
    tok.using(prefix_after_special=False).save(path)
    assert (CpbpeTokenizer(path).legacy, CpbpeTokenizer(path, legacy=True).legacy) == (False, True)
    tok.save(path)
    assert CpbpeTokenizer(path)("Hi").input_ids == [tok.bos_id, *tok.encode("Hi")]


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "some.model"
    path.write_bytes(zoo.model(V1))
    assert CpbpeTokenizer(path).encode("Hi") == CpbpeTokenizer(str(path)).encode("Hi") == [1, 15359]
    with pytest.raises(ValueError, match=r"needs the file of a model .* 'tokenizer.model'"):
        CpbpeTokenizer()
    with pytest.raises(FileNotFoundError):
        CpbpeTokenizer(tmp_path / "none")


def test_chat_template() -> None:
    tokenizer = ours("mistral_instruct_tokenizer_240323.model.v3", legacy=False)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[INST]", "[/INST]"]})
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}[INST] {{ m.content }}[/INST]{% endfor %}"
    )
    chat = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)
    assert text == "<s>[INST] Hi[/INST]"
    ids = tokenizer.apply_chat_template(chat, tokenize=True)
    ids = ids if isinstance(ids, list) else ids["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", "[INST]", "▁Hi", "[/INST]"]


@pytest.mark.skipif(
    "sanitize_control_tokens" not in inspect.signature(PreTrainedTokenizer.apply_chat_template).parameters,
    reason="this version of transformers has no such option",
)
def test_control_tokens_in_what_users_say() -> None:
    """The rows of a batch are encoded as one row is."""
    tokenizer = ours(legacy=False)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}</s>{% endfor %}"
    chats = [[{"role": "user", "content": text}] for text in ("a</s>b", "Hi")]
    for safely, count in ((False, 2), (True, 1)):
        rows = tokenizer.apply_chat_template(chats, sanitize_control_tokens=safely)["input_ids"]
        assert rows[0].count(2) == count
        single = [tokenizer.apply_chat_template(chat, sanitize_control_tokens=safely) for chat in chats]
        assert rows == [row["input_ids"] for row in single]


# --- What is refused ------------------------------------------------------------------------------


def test_refused() -> None:
    tokenizer = ours()
    with pytest.raises(NotImplementedError, match="align"):
        tokenizer("Hi", return_offsets_mapping=True)
    with pytest.raises(NotImplementedError, match="align"):
        tokenizer(["Hi"], return_offsets_mapping=True)
    with pytest.raises(ValueError, match="no sentencepiece runs here"):
        ours(sp_model_kwargs={"enable_sampling": True})
    with pytest.raises(ValueError, match=r"^add_eos, alpha: options that using\(\) has bound have no effect"):
        CpbpeTokenizer(load().using(add_eos=True, alpha=0.1))
    with pytest.raises(UnicodeEncodeError):
        tokenizer("\ud800")
    with pytest.raises(ValueError, match=r"(?i)input"):
        tokenizer(5)
    with pytest.raises(ValueError, match="pad"):
        tokenizer(["Hi"], padding=True)


def test_it_is_one_of_theirs() -> None:
    tokenizer = ours()
    assert isinstance(tokenizer, PreTrainedTokenizer)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    assert not tokenizer.is_fast
    assert "CpbpeTokenizer(" in repr(tokenizer)


def test_without_transformers() -> None:
    """The error says what is missing, and how to get it."""
    code = """
import sys
sys.modules["transformers"] = None
try:
    import cpbpe.compat.transformers
except ImportError as error:
    print(error)
"""
    assert "or newer: pip install transformers\n" in processes.output("-c", code)
