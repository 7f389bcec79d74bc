"""Broken and hostile tokenizer.json files: an error that says what is wrong and where, and no other."""

import copy
import json
import random
from typing import Any

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.formats.tokenizer_json import read
from tests.support import budget
from tests.support.json_files import Json, added, dumped, llama, with_model


def small(**model: Any) -> Json:
    """A small file that is right, but for these settings of its model."""
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4}
    settings = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "vocab": vocab, "merges": [["a", "b"]]}
    return {"version": "1.0", "added_tokens": [], "model": {**settings, **model}}


def vocab(**more: Any) -> Json:
    return {**small()["model"]["vocab"], **more}


def without_type(**model: Any) -> Json:
    content = small(**model)
    del content["model"]["type"]
    return content


FLAT = b'{"added_tokens": [], "model": '
BROKEN: dict[str, tuple[bytes, str]] = {
    "cut off": (dumped(small())[:90], "it ends too early (line 1, column"),
    "cut off in a text": (dumped(small())[:-40], "it ends too early"),
    "cut off in a character": (dumped(small())[:90] + "é".encode()[:1], "it ends too early (byte 90); copy"),
    "not UTF-8": (dumped(small()) + b"\xff", "byte"),
    "a comma too many": (FLAT + b"{,}}", "it is not valid JSON (line 1, column 32"),
    "nested": (FLAT + b"[" * 200_000, "nested too deeply"),
    "nested objects": (FLAT + b'{"a":' * 200_000, "nested too deeply"),
    "a long number": (FLAT + b"9" * 5000 + b"}", "not a tokenizer.json that cpbpe can read"),
    "no model": (b'{"added_tokens": []}', "model must be an object, and is missing"),
    "no vocabulary": (dumped(small(vocab=None)), "model.vocab must be an object, and is missing"),
    "empty vocabulary": (dumped(small(vocab={}, unk_token=None, byte_fallback=True, merges=[])), "model.vocab is empty"),
    "a list": (b'["added_tokens"]', "it is JSON"),
    "vocabulary as a list": (dumped(small(vocab=[1])), "model.vocab must be an object, and is a list, [1]"),
    "an id as text": (dumped(small(vocab=vocab(x="5"))), "the id of 'x' in model.vocab must be an integer, and is a text, '5'"),
    "an id as truth": (dumped(small(vocab=vocab(x=True))), "must be an integer, and is true or false, True"),
    "an id below 0": (dumped(small(vocab=vocab(x=-1))), "the id of 'x' is -1, below 0"),
    "an id twice": (dumped(small(vocab=vocab(x=3))), "'ab' and 'x' have the same id, 3"),
    "a gap": (dumped(small(vocab=vocab(x=6))), "no token has the id 5"),
    "a huge id": (dumped(small(vocab=vocab(x=10**30))), "no token has the id 5"),
    "a token twice": (dumped(small()).replace(b'"b": 2', b'"a": 2'), "'a' occurs twice in one object"),
    "an empty token": (dumped(small(vocab={**vocab(), "": 5})), "token 5 is empty"),
    "a NUL in a token": (dumped(small(vocab={**vocab(), "a\0": 5})), "contains a NUL"),
    "half a surrogate pair": (dumped(small(vocab={**vocab(), "\ud800": 5})), "half of a surrogate pair"),
    "merges as an object": (dumped(small(merges={})), "model.merges must be a list, and is an object"),
    "a merge of three": (dumped(small(merges=["a b", "a b a"])), "model.merges[1] must be two tokens, and is 'a b a'"),
    "a merge of numbers": (dumped(small(merges=[[1, 2]])), "model.merges[0] must be two tokens, and is [1, 2]"),
    "a merge of unknown parts": (dumped(small(merges=[["a", "c"]])), "model.merges[0] is ['a', 'c'], and 'c' is no token"),
    "a merge of no token": (dumped(small(merges=[["b", "a"]])), "and 'ba' is no token"),
    "an unknown token": (dumped(small(unk_token="<x>")), "model.unk_token is '<x>', which is no token"),
    "flags as text": (dumped(small(byte_fallback="no")), "model.byte_fallback must be true or false, and is a text, 'no'"),
    "dropout as text": (dumped(small(dropout="")), "model.dropout must be a number, and is ''"),
    "dropout as truth": (dumped(small(dropout=False)), "model.dropout must be a number, and is False"),
    "dropout above 1": (dumped(small(dropout=1.5)), "model.dropout must be from 0 to 1, and is 1.5"),
    "no type, and an affix that is no text": (dumped(without_type(continuing_subword_prefix=False)), "model.continuing_subword_prefix must be a text, and is true or false, False"),
    "no type, and a flag that is no flag": (dumped(without_type(ignore_merges=0)), "model.ignore_merges must be true or false, and is an integer, 0"),
    "merges of two forms": (dumped(small(merges=["a b", ["a", "b"]])), "all of them must be texts, or all of them lists"),
    "no type, and more than a BPE model has": (dumped(without_type(words=1)), "model.type is missing, and model has 'words', which no BPE"),
    "missing bytes": (dumped(small(byte_fallback=True)), "256 of the 256 BYTE pieces are missing"),
    "added tokens as text": (dumped({**small(), "added_tokens": "x"}), "added_tokens must be a list"),
    "an added token as text": (dumped({**small(), "added_tokens": ["x"]}), "added_tokens[0] must be an object"),
    "an added token of nothing": (dumped({**small(), "added_tokens": [{}]}), "added_tokens[0].content must be a text, and is missing"),
    "an added token elsewhere": (dumped({**small(), "added_tokens": [added(9, "<x>", True)]}), "added_tokens[0], '<x>', has the id 9, and tokenizers would give it 5"),
    "a normalizer as text": (dumped({**small(), "normalizer": "NFC"}), "normalizer must be an object, and is a text, 'NFC'"),
    "a normalizer without a type": (dumped({**small(), "normalizer": {}}), "normalizer.type must be a text, and is missing"),
    "steps as text": (dumped({**small(), "normalizer": {"type": "Sequence", "normalizers": "x"}}), "normalizer.normalizers must be a list"),
    "a charsmap that is none": (dumped({**small(), "normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}}), "its charsmap (Precompiled) cannot be read"),
    "metaspace of nothing": (dumped({**small(), "pre_tokenizer": {"type": "Metaspace", "replacement": 5}}), "its pre-tokenizer is Metaspace"),
    "a template of nothing": (dumped({**small(), "post_processor": {"type": "TemplateProcessing"}}), "post-processor is TemplateProcessing"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_error_says_what_and_where(name: str) -> None:
    data, message = BROKEN[name]
    with pytest.raises((cpbpe.ModelError, cpbpe.ConversionError)) as caught:
        Tokenizer.from_bytes(data)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_small_file_is_right() -> None:
    for content in (without_type(), small()):
        with pytest.warns(UserWarning, match="its decoder is none"):
            assert Tokenizer.from_bytes(dumped(content)).encode("abba") == [3, 2, 1]


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    10**20,
    1.5,
    "",
    "x",
    "▁",
    [],
    [[]],
    {},
    {"type": "Sequence"},
    {"type": "BPE"},
    "\0",
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_anything_may_be_wrong(seed: int) -> None:
    """Any value of a file is replaced by another: there is a tokenizer, or one of the two errors."""
    chance = random.Random(f"{budget.SEED} {seed}")
    content = with_model(llama(), merges=llama()["model"]["merges"][:20])
    text = json.dumps(content)
    for _ in range(budget.examples(100)):
        broken = json.loads(text)
        for _ in range(chance.choice([1, 1, 2])):
            holder: Any = broken
            while True:
                key: Any = chance.choice([*holder] if isinstance(holder, dict) else [*range(len(holder))])
                inner = holder[key]
                if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.2:
                    break
                holder = inner
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        _either_way(dumped(broken))


@pytest.mark.parametrize("seed", range(4))
def test_any_byte_may_be_wrong(seed: int) -> None:
    chance = random.Random(f"{budget.SEED} {seed}")
    data = dumped(with_model(llama(), merges=llama()["model"]["merges"][:20]))
    for _ in range(budget.examples(100)):
        at = chance.randrange(len(data))
        changed = chance.choice([data[:at], data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]])
        _either_way(changed)


def _either_way(data: bytes) -> None:
    for allow in (False, True):
        try:
            found = read(data, allow_differences=allow)
        except (cpbpe.ModelError, cpbpe.ConversionError):
            continue
        tok = Tokenizer.from_spec(found.spec)
        tok.decode(tok.encode("Hi <s> ▁x\0"))
