"""The same tokenizer.json in two libraries: `cpbpe.compat.tokenizers`, and `tokenizers`, the oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import tokenizers

from cpbpe import ModelSpec
from cpbpe.compat import tokenizers as ours
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes import models as byte_models
from tests.support import json_files
from tests.support.json_files import Json

COLUMNS = (
    *("ids", "tokens", "offsets", "word_ids", "sequence_ids", "type_ids", "special_tokens_mask"),
    *("attention_mask", "n_sequences"),
)
"""The attributes of an encoding, besides what overflows."""


def both(content: Json | bytes) -> tuple[ours.Tokenizer, Any]:
    """A file in both libraries."""
    data = content if isinstance(content, bytes) else json_files.dumped(content)
    return ours.Tokenizer.from_str(data.decode()), tokenizers.Tokenizer.from_str(data.decode())


def _byte_level(trims: bool, keeps: bool) -> Json:
    return {"type": "ByteLevel", "trim_offsets": trims, "add_prefix_space": keeps, "use_regex": True}


BYTE_LEVEL: dict[str, tuple[str, bool, str | None, bool, list[Json]]] = {
    "GPT-2": ("gpt2", False, None, False, [_byte_level(False, True)]),
    "Qwen": ("qwen2", True, "NFC", False, [_byte_level(True, False)]),
    "Llama 3": ("llama3", True, None, False, [_byte_level(True, True), {"type": "Template"}]),
    "RoBERTa": (
        *("gpt2", False, None, True),
        [{"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": True}],
    ),
    "BERT": ("gpt2", False, "NFKC", True, [{"type": "BertProcessing"}]),
    "none": ("llama3", False, "NFKD", False, []),
    "template": ("o200k", True, "NFD", False, [{"type": "Template"}]),
}
"""Byte-level files: the pattern, whether chunks are taken whole, the normal form, whether a space is put in
front, and what happens around texts."""


def _byte_level_model(name: str, bos: bool, eos: bool) -> bytes:
    pattern, whole, form, prefix, after = BYTE_LEVEL[name]
    content = json.loads(write(replace(byte_models.made(pattern), whole=whole)).data)
    end = content["added_tokens"][0]["id"]
    ids = {"<s>": end + 1, "<|end|>": end}
    content["added_tokens"].append(json_files.added(end + 1, "<s>", special=True))
    content["normalizer"] = {"type": form} if form else None
    last = {**_byte_level(True, False), "add_prefix_space": prefix, "use_regex": pattern == "gpt2"}
    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERNS[pattern]},
        "behavior": "Isolated",
        "invert": False,
    }
    steps = [last] if pattern == "gpt2" else [split, last]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    after = [
        _template(ids, bos, eos) if step["type"] == "Template" else {**step, **_ends(step, ids)}
        for step in after
    ]
    content["post_processor"] = {"type": "Sequence", "processors": after} if len(after) != 1 else after[0]
    return json_files.dumped(content)


def _ends(step: Json, ids: dict[str, int]) -> Json:
    if step["type"] not in ("BertProcessing", "RobertaProcessing"):
        return {}
    return {key: [text, id] for key, (text, id) in zip(("cls", "sep"), ids.items(), strict=True)}


def _template(ids: dict[str, int], bos: bool, eos: bool) -> Json:
    front, back = (
        [{"SpecialToken": {"id": text, "type_id": 0}}] * wanted
        for text, wanted in zip(ids, (bos, eos), strict=True)
    )
    single, second = ([*front, {"Sequence": {"id": "AB"[at], "type_id": at}}, *back] for at in range(2))
    tokens = {text: {"id": text, "ids": [id], "tokens": [text]} for text, id in ids.items()}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *second],
        "special_tokens": tokens,
    }


@cache
def model(name: str = "llama", bos: bool = True, eos: bool = False) -> bytes:
    """A model of the zoo, or one of `BYTE_LEVEL`, as a file, with bos or eos around texts."""
    if name in BYTE_LEVEL:
        return _byte_level_model(name, bos, eos)
    spec = json_files.spec_of(name)
    options = replace(spec.carried, options={"add_bos": bos, "add_eos": eos})
    return write(replace(spec, carried=options)).data


def spec(name: str) -> ModelSpec:
    """One of these models as a value."""
    return read(model(name, bos=False)).spec if name in BYTE_LEVEL else json_files.spec_of(name)


def columns(encoding: Any) -> Json:
    """Everything that an encoding says."""
    found = {name: getattr(encoding, name) for name in COLUMNS}
    return {**found, "overflowing": [columns(other) for other in encoding.overflowing]}


def translated(value: Any) -> Any:
    """Our values as those of the other library, as far as arguments have them."""
    if isinstance(value, ours.AddedToken):
        return tokenizers.AddedToken(value.content, **value._flags)  # only those that were given
    if isinstance(value, list):
        return [translated(item) for item in value]
    return value


def shown(value: Any) -> Any:
    """A result as something that can be compared between the libraries."""
    if hasattr(value, "special_tokens_mask"):
        return columns(value)
    if hasattr(value, "single_word"):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    return value


def outcome(target: Any, call: str, *args: Any, **kwargs: Any) -> tuple[str, Any]:
    """What a call returns, or the type of its error.

    Where the other library panics or raises a mere Exception, ours raises a ValueError.
    """
    try:
        return "result", shown(getattr(target, call)(*args, **kwargs))
    except Exception as error:
        return "error", ValueError if type(error) is Exception else type(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return "error", ValueError
