"""Small tokenizer.json files of every form, changed at random: what is read is what the library does.

A file that was changed is refused with one of two errors, or there is a tokenizer. If the library reads the
file, too, and nothing is said to differ, both give the same ids.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS
from tests.support import budget
from tests.support.json_files import BYTES, ESCAPE, PREFIX, Json, added, dumped, ids_of, theirs

TEXTS = [
    "",
    "a",
    " a",
    "ab",
    "abab b",
    "  a  ab ▁b",
    "a\tb",
    "xaéab",
    "a<x>b",
    "bab<0x41>",
    "▁",
    " ",
    "abba aab",
]


def plain(fallback: bool = False) -> Json:
    """A file of a few tokens, without byte fallback (as that has 256 tokens more)."""
    tokens = [
        "<unk>",
        *(BYTES if fallback else []),
        *"ab▁.",
        "ab",
        "▁a",
        "aba",
        "ba",
        "▁ab",
        "bb",
        "b.",
        "▁▁",
    ]
    merges = [
        ["a", "b"],
        ["▁", "a"],
        ["ab", "a"],
        ["b", "a"],
        ["▁", "ab"],
        ["▁a", "b"],
        ["b", "b"],
        ["▁", "▁"],
    ]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": fallback,
        "ignore_merges": False,
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": merges,
    }
    steps = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(0, "<unk>", True), added(len(tokens), "<x>", True, lstrip=True)],
        "normalizer": {"type": "Sequence", "normalizers": [PREFIX, ESCAPE]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": steps},
        "model": model,
    }


def metaspace() -> Json:
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    return {**plain(), "normalizer": None, "pre_tokenizer": step}


def gemma() -> Json:
    split = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    content = {**plain(), "normalizer": ESCAPE, "pre_tokenizer": split}
    content["added_tokens"] = [added(5, "ab", False), added(13, "a.", False), added(14, "x", False)]
    return content


def ours() -> Json:
    """A file of ours with user-defined pieces, and with spaces removed."""
    found: Json = json.loads(write(read(dumped(gemma())).spec).data)
    rules: list[Json] = [{"type": "Replace", "pattern": {"Regex": r"\A +"}, "content": ""}]
    rules += [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, PREFIX, ESCAPE]
    rules += [{"type": "Replace", "pattern": {"Regex": r"▁+\z"}, "content": ""}]
    return {**found, "normalizer": {"type": "Sequence", "normalizers": rules}}


def byte_level() -> Json:
    """A file in the form of GPT-2's, with one more pattern."""
    tokens = [LETTERS[byte] for byte in BYTE_ORDER]
    merges = [["a", "b"], ["Ġ", "a"], ["ab", "a"], ["b", "a"], ["Ġ", "ab"], ["b", "b"], ["Ã", "©"]]
    tokens += ["".join(pair) for pair in merges] + ["1xy", "<x>"]
    content = plain()
    split = {"type": "Split", "pattern": {"Regex": "b(?=a)|1+"}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content["normalizer"] = None
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level]}
    content["decoder"] = byte_level
    content["added_tokens"] = [added(264, "<x>", True), added(265, "<y>", True)]
    vocab = {token: id for id, token in enumerate(tokens)}
    content["model"].update(unk_token=None, fuse_unk=False, ignore_merges=True, vocab=vocab, merges=merges)
    return content


def prefixed() -> Json:
    """The same with a space in front of texts, and in a normal form."""
    step = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {**byte_level(), "normalizer": {"type": "NFC"}, "pre_tokenizer": step}


def punctuated() -> Json:
    """The same with other steps that cut."""
    split = {
        "type": "Split",
        "pattern": {"String": "ab"},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    marks = {"type": "Punctuation", "behavior": "Contiguous"}
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    steps = [split, marks, {"type": "Digits", "individual_digits": True}, step]
    return {**byte_level(), "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


FORMS: dict[str, Callable[[], Json]] = {
    "plain": plain,
    "metaspace": metaspace,
    "gemma": gemma,
    "ours": ours,
    "byte fallback": lambda: plain(fallback=True),
    "byte level": byte_level,
    "prefixed": prefixed,
    "punctuated": punctuated,
}
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    10**20,
    1.5,
    "",
    "x",
    "a",
    "ab",
    "▁",
    " ",
    "\0",
    [],
    {},
    "<x>",
]
VALUES += [
    ["a", "b"],
    ["a", "▁"],
    "always",
    "never",
    "first",
    ESCAPE,
    PREFIX,
    {"type": "Fuse"},
    {"type": "Strip"},
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_changed_values(form: str) -> None:
    chance = random.Random(f"{budget.SEED} {form}")
    text = json.dumps(FORMS[form]())
    outcomes = {"refused": 0, "exact": 0, "different": 0}
    for _ in range(budget.examples(40 if form == "punctuated" else 300)):
        content = json.loads(text)
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            change(content, chance)
        outcomes[_tried(dumped(content))] += 1
    assert outcomes["refused"] > 0 < outcomes["exact"], outcomes


@pytest.mark.parametrize("form", FORMS)
def test_changed_bytes(form: str) -> None:
    chance = random.Random(f"{budget.SEED} {form} bytes")
    data = dumped(FORMS[form]())
    for _ in range(budget.examples(200)):
        at = chance.randrange(len(data))
        end = at + chance.choice([0, 1, 1, 1, 2, 20])
        new = bytes(chance.choices(b'01259,:[]{}"\\ aebx\xe2\x96\x81u', k=chance.choice([0, 1, 1, 1, 3])))
        _tried(data[:at] + new + data[end:] if chance.random() < 0.95 else data[:at])


def change(content: Json, chance: random.Random) -> None:
    """Replace, remove, move or copy one value, at any depth."""
    holder: Any = content
    while True:
        keys: list[Any] = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
        if not keys:
            return
        key = chance.choice(keys)
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.15:
            break
        holder = inner
    kind = chance.random()
    if kind < 0.5:
        holder[key] = copy.deepcopy(chance.choice(VALUES))
    elif kind < 0.65:
        del holder[key]
    elif kind < 0.8:
        other = chance.choice(keys)
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif isinstance(holder[key], (bool, int)):
        holder[key] = not holder[key] if isinstance(holder[key], bool) else chance.choice([0, 1, 2, 7])
    else:
        holder[chance.choice(["a", "b", "bab", "type", "content", "▁b", "a b"])] = holder.pop(key)


def _tried(data: bytes) -> str:
    """What became of a file. Where the two libraries differ without a word, this fails."""
    try:
        found = read(data)
    except cpbpe.ConversionError:
        return _tried_anyway(data)
    except cpbpe.ModelError:
        return "refused"
    tok = Tokenizer.from_spec(found.spec)
    try:
        other = theirs(data)
    except Exception:
        return "exact"  # the library refuses more than is needed to understand a file
    added_tokens = json.loads(data.decode("utf-8-sig")).get("added_tokens") or []
    spelled = [token["content"] for token in added_tokens]
    spelled = [token for token in spelled if token.encode() not in user_defined(tok)]
    for text in TEXTS:
        if not any(token in text for token in spelled):
            assert tok.encode(text) == ids_of(other, text), (text, data)
    return "exact"


def user_defined(tok: Tokenizer) -> set[bytes]:
    return {text for text, _, type in tok.spec.pieces if type == cpbpe.PieceType.USER_DEFINED}


def _tried_anyway(data: bytes) -> str:
    """Files that are not exact are read if one wants it; the texts in the error differ where both can say."""
    found = read(data, allow_differences=True)
    tok = Tokenizer.from_spec(found.spec)
    try:
        other = theirs(data)
    except Exception:
        return "different"
    for _, text in found.differences:
        if text is not None:
            assert tok.encode(text) != ids_of(other, text), (text, data)
    return "different"
