"""CpbpeTokenizer of a folder with a tokenizer.json: what that file says counts, as in transformers' own.

`AutoTokenizer` of the installed transformers, 4 or 5, is the oracle.
"""

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers import AddedToken, AutoTokenizer

from cpbpe.compat.transformers import CpbpeTokenizer
from cpbpe.errors import ModelError
from tests.support import json_files, json_tokenizers
from tests.support.json_files import added

IS_4 = transformers.__version__.startswith("4.")
TEXTS = ["", "a", " a", "the cat  sat", "a<s>b</s> <|end|> c", "é 日本\n 🦙 "]


def saved(folder: Path, content: Any, **config: Any) -> tuple[Any, Any]:
    """Ours and transformers' own of a folder with these two files."""
    data = content if isinstance(content, bytes) else json_files.dumped(content)
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_bytes(data)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return CpbpeTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def same_rows(ours: Any, theirs: Any) -> None:
    wanted: dict[str, Any] = {"return_special_tokens_mask": True, "return_token_type_ids": True}
    for text in TEXTS:
        for pair in (None, *TEXTS[1:4]):
            assert dict(ours(text, pair, **wanted)) == dict(theirs(text, pair, **wanted)), (text, pair)
        assert ours.encode(text, add_special_tokens=False) == theirs.encode(text, add_special_tokens=False)
    for both in (False, True):
        assert ours.num_special_tokens_to_add(both) == theirs.num_special_tokens_to_add(both)


def template(single: str, pair: str) -> Any:
    from tokenizers import processors

    tokens = [("<s>", 1), ("</s>", 2)]
    made = processors.TemplateProcessing(single=single, pair=pair, special_tokens=tokens)
    return json.loads(made.__getstate__())


# --- Around texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", json_tokenizers.BYTE_LEVEL)
def test_every_post_processor(name: str, tmp_path: Path) -> None:
    """RoBERTa puts two tokens between a pair, and gives all tokens one type; BERT does neither."""
    content = json_tokenizers.model(name, eos=True)
    for roles in ({"bos_token": "<s>", "eos_token": "<|end|>"}, {"bos_token": None}, {"eos_token": "<s>"}):
        ours, theirs = saved(tmp_path, content, add_prefix_space=name in ("RoBERTa", "BERT"), **roles)
        same_rows(ours, theirs)
        same_rows(pickle.loads(pickle.dumps(copy.deepcopy(ours))), theirs)


PAIRS = [
    "<s> $A </s> $B </s>",
    "<s>:1 $A:2 </s>:3 </s> $B:1 </s>:4",
    "$B:1 <s> $A",
    "$A </s> </s> <s> <s> $B",
    "$A:0 $B:0",
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("single", ["$A", "<s> $A </s>", "$A:2 </s>:3"])
def test_templates(single: str, pair: str, tmp_path: Path) -> None:
    content = {**json_files.llama(), "post_processor": template(single, pair)}
    for roles in ({"bos_token": "<s>", "eos_token": "</s>"}, {"bos_token": "</s>", "eos_token": "<s>"}):
        same_rows(*saved(tmp_path, content, add_prefix_space=True, **roles))


def test_what_a_config_says_beside_it_does_not_count(tmp_path: Path) -> None:
    content = {**json_files.llama(), "post_processor": template("<s> $A", "<s> $A </s> $B")}
    for ends in ({"add_bos_token": False}, {"add_eos_token": True}, {"add_bos_token": True}):
        ours, theirs = saved(tmp_path / "given", content, bos_token="<s>", eos_token="</s>", **ends)
        same_rows(ours, theirs)
        # Another eos is for chats, and leaves texts as they are; it does so in a folder of our own, too.
        ours.eos_token = theirs.eos_token = "<unk>"
        same_rows(ours, theirs)
        ours.save_pretrained(tmp_path / "own")
        again = CpbpeTokenizer.from_pretrained(tmp_path / "own")
        assert again.eos_token == "<unk>"
        same_rows(again, theirs)


def test_who_sets_the_options_has_bos_and_eos(tmp_path: Path) -> None:
    content = {**json_files.llama(), "post_processor": template("<s> $A", "<s> $A </s> $B")}
    ours, theirs = saved(tmp_path, content, bos_token="<s>", eos_token="</s>")
    for tokenizer in (ours,) if IS_4 else (ours, theirs):  # version 4 has them in some classes only
        tokenizer.add_bos_token = tokenizer.add_eos_token = True
        ids = tokenizer("a", "b")["input_ids"]
        assert [ids[0], *ids[2:4], ids[-1]] == [1, 2, 1, 2]
    given = CpbpeTokenizer.from_pretrained(tmp_path, add_bos_token=True, add_eos_token=True)
    assert given("a", "b")["input_ids"] == ids
    given.save_pretrained(tmp_path / "own")
    again = CpbpeTokenizer.from_pretrained(tmp_path / "own")
    assert again("a", "b")["input_ids"] == ids
    again.add_eos_token = False
    assert again("a")["input_ids"] == [1, ids[1]]


@pytest.mark.parametrize("side", ["right", "left"])
def test_cut_rows(side: str, tmp_path: Path) -> None:
    """The longer of two texts loses tokens first; an error says that cutting one of them is not enough."""
    content = {**json_files.llama(), "post_processor": template("<s> $A", "<s> $A </s> $B </s>")}
    ours, theirs = saved(tmp_path, content, truncation_side=side, add_prefix_space=True)
    words = ["", "a", "a b", "a b c d e"]
    for text, pair in itertools.product(words, [None, *words[1:]]):
        for strategy in ("longest_first", "only_first", "only_second"):
            for size in range(1, 12):
                options: dict[str, Any] = {"truncation": strategy, "max_length": size}
                try:
                    row = theirs(text, pair, **options)["input_ids"]
                except Exception:  # its own type, of Rust
                    with pytest.raises(ValueError, match=r"text is too short|no second text"):
                        ours(text, pair, **options)
                    continue
                assert ours(text, pair, **options)["input_ids"] == row, (text, pair, options)


def test_an_empty_second_text(tmp_path: Path) -> None:
    ours, theirs = saved(tmp_path, json_tokenizers.model("RoBERTa"), add_prefix_space=True)
    for args in (("a", ""), (["a", "b"], ["", "c"]), ([("a", ""), ("", "")],)):
        assert ours(*args)["input_ids"] == theirs(*args)["input_ids"]


def test_legacy_beside_it_does_not_count(tmp_path: Path) -> None:
    for scheme in ("first", "always"):
        content = json_files.metaspace(scheme, split=False)
        ours, theirs = saved(tmp_path, content, legacy=scheme == "first", add_prefix_space=True)
        same_rows(ours, theirs)


# --- Tokens -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tokens",
    [
        {"905": "<new>"},
        {"905": "<new>", "2000": "<newer>", "903": "<newest>"},
        {"1": "<other>"},
        {"7": "<new>", "8": "</s>"},
        {"900": "the"},
    ],
)
@pytest.mark.parametrize("flags", [{}, {"lstrip": True}, {"single_word": True}, {"special": False}])
def test_tokens_of_a_config(tokens: dict[str, str], flags: dict[str, bool], tmp_path: Path) -> None:
    """The tokenizer.json has the ids of tokens. Those that it lacks come next, and flags are the config's."""
    usual = {**dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False), "special": True}
    decoder = {id: {**usual, "content": text, **flags} for id, text in tokens.items()}
    roles = {"unk_token": "<unk>", "eos_token": "</s>"}
    ours, theirs = saved(
        tmp_path, json_files.llama(), added_tokens_decoder=decoder, add_prefix_space=True, **roles
    )
    same_tokens(ours, theirs)
    ours.save_pretrained(tmp_path / "own")
    same_tokens(CpbpeTokenizer.from_pretrained(tmp_path / "own"), theirs)


def same_tokens(ours: Any, theirs: Any) -> None:
    assert len(ours) == len(theirs)
    shapes = ["{}", "a {} b", "a{}b", "{}{}", "({})"]
    for name in ("<new>", "<newer>", "<newest>", "<other>", "</s>", "the", "<s>"):
        assert ours.convert_tokens_to_ids(name) == theirs.convert_tokens_to_ids(name)
        for text in (shape.replace("{}", name) for shape in shapes):
            ids = theirs.encode(text)
            assert ours.encode(text) == ids, text
            for skip in (True, False):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(
                    ids, skip_special_tokens=skip
                )


def test_flags_of_a_token_that_it_has(tmp_path: Path) -> None:
    content = json_files.llama()
    content["added_tokens"] += [added(900, "<mask>", True)]
    flags = {**dict.fromkeys(("rstrip", "single_word", "normalized"), False), "lstrip": True}
    decoder = {"900": {"content": "<mask>", "special": True, **flags}}
    ours, theirs = saved(tmp_path, content, added_tokens_decoder=decoder, add_prefix_space=True)
    assert ours.encode("a  <mask> b") == theirs.encode("a  <mask> b")
    assert ours.added_tokens_decoder[900] == AddedToken("<mask>", special=True, **flags)


# --- Decoding ---------------------------------------------------------------------------------------

_REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
_BYTES = [_REPLACE, {"type": "ByteFallback"}, {"type": "Fuse"}]
_STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
DECODERS: list[Any] = [
    None,
    *({"type": "Sequence", "decoders": steps} for steps in ([*_BYTES], [*_BYTES, _STRIP], [_REPLACE])),
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False},
    {"type": "Sequence", "decoders": [*_BYTES, {**_STRIP, "start": 2}]},
    {"type": "Sequence", "decoders": [{**_REPLACE, "pattern": {"String": "a"}, "content": "<a>"}, *_BYTES]},
]
_LETTERS = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
LETTERS: list[Any] = [
    None,
    _LETTERS,
    {"type": "Sequence", "decoders": [_LETTERS, _STRIP]},
    {"type": "Sequence", "decoders": [_LETTERS, {**_REPLACE, "pattern": {"String": "a"}}]},
    {"type": "Fuse"},
]


@pytest.mark.parametrize("decoder", DECODERS)
def test_decoders(decoder: Any, tmp_path: Path) -> None:
    same_text(*saved(tmp_path, {**json_files.llama(), "decoder": decoder}, add_prefix_space=True))


@pytest.mark.parametrize("decoder", LETTERS)
def test_decoders_of_byte_level_files(decoder: Any, tmp_path: Path) -> None:
    content = {**json.loads(json_tokenizers.model("GPT-2")), "decoder": decoder}
    same_text(*saved(tmp_path, content))


def same_text(ours: Any, theirs: Any) -> None:
    rows = [theirs.encode(text) for text in [*TEXTS, "</s> a", "a </s> a a"]]
    for ids in rows:
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
        tokens = theirs.convert_ids_to_tokens(ids)
        assert ours.convert_ids_to_tokens(ids) == tokens
        assert ours.convert_tokens_to_string(tokens) == theirs.convert_tokens_to_string(tokens)
    assert ours.batch_decode(rows) == theirs.batch_decode(rows)


def test_a_decoder_that_is_not_possible(tmp_path: Path) -> None:
    ours, theirs = saved(
        tmp_path, {**json_files.llama(), "decoder": {"type": "BPEDecoder", "suffix": "</w>"}}
    )
    assert ours.encode("a") == theirs.encode("a")
    with pytest.raises(NotImplementedError, match=r"decoder is BPEDecoder.*AutoTokenizer"):
        ours.decode([5])


# --- Rows, and files that are damaged -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["LlamaTokenizer", "LlamaTokenizerFast", "DebertaTokenizer"])
def test_sides_and_names_are_those_of_the_class(name: str, tmp_path: Path) -> None:
    """Generation in batches goes wrong with padding on the other side."""
    byte_level = name[0] == "D"
    content = json_tokenizers.model("GPT-2") if byte_level else json_files.llama()
    for said in ({}, {"padding_side": "right"}, {"padding_side": "left", "truncation_side": "left"}):
        ours, theirs = saved(tmp_path, content, tokenizer_class=name, add_bos_token=True, **said)
        for option in ("padding_side", "truncation_side", "model_input_names"):
            assert getattr(ours, option) == getattr(theirs, option), option
        ours.save_pretrained(tmp_path / "own")
        assert CpbpeTokenizer.from_pretrained(tmp_path / "own").padding_side == ours.padding_side
    # The padding of a tokenizer.json comes first.
    padding = {"strategy": "BatchLongest", "pad_to_multiple_of": None, "pad_id": 1, "pad_token": "<s>"}
    padded = {**json_files.llama(), "padding": {**padding, "pad_type_id": 0, "direction": "Left"}}
    if not byte_level:
        for padded["padding"]["direction"] in ("Left", "Right"):
            ours, theirs = saved(tmp_path, padded, tokenizer_class=name, add_bos_token=True)
            assert ours.padding_side == theirs.padding_side
    for odd in ("None", "AutoModel", "NoTokenizer", "BertModel"):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": odd}))
        assert CpbpeTokenizer.from_pretrained(tmp_path).padding_side == "right"
    if not IS_4:  # which ignores that the class does not fit
        same_rows(*saved(tmp_path, json_tokenizers.model("GPT-2"), tokenizer_class="LlamaTokenizer"))
        assert saved(tmp_path, json_tokenizers.model("GPT-2"))[0].padding_side == "right"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"null", "must hold an object, not null"),
        (b"", "ends too early"),
        (b'{"a": [', "ends too early"),
        (b'{"a":' + b"[" * 200_000, "nested too deeply|ends too early"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "byte 0 is not UTF-8"),
        (b'{"added_tokens_decoder": null}', "must be an object"),
        (b'{"added_tokens_decoder": {"x": {}}}', '"x", which is no id'),
        (b'{"added_tokens_decoder": {"5": "</s>"}}', "must be an object"),
    ],
)
def test_damaged_configs(data: bytes, problem: str, tmp_path: Path) -> None:
    saved(tmp_path, json_files.llama())
    (tmp_path / "tokenizer_config.json").write_bytes(data)
    with pytest.raises(ModelError, match=rf"tokenizer_config\.json: .*({problem})"):
        CpbpeTokenizer.from_pretrained(tmp_path)
