"""The same tokenizer.json in two libraries: `cpbpe.compat.tokenizers`, and `tokenizers`, the oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import tokenizers

from cpbpe.compat import tokenizers as ours
from cpbpe.model.formats.tokenizer_json import write
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


@cache
def model(name: str = "llama", bos: bool = True, eos: bool = False) -> bytes:
    """A model of the zoo as a file, with bos or eos around texts."""
    spec = json_files.spec_of(name)
    options = replace(spec.carried, options={"add_bos": bos, "add_eos": eos})
    return write(replace(spec, carried=options)).data


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
