"""Writing a folder that transformers loads with the ids of the model.

`PreTrainedTokenizerFast` is the class that uses a tokenizer.json as it is, in transformers 4 and 5. (The
LlamaTokenizer of version 5 takes only the vocabulary from it, and loses spaces at the beginning of a text.)
If there is no exact tokenizer.json, `BertGenerationTokenizer` is the class that gives every text to
sentencepiece as it is, in both versions. It never puts bos or eos around texts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from cpbpe.errors import ConversionError
from cpbpe.model.formats import sentencepiece, tokenizer_json
from cpbpe.model.formats.folder_reading import (
    ADDED,
    CONFIG,
    NAMED,
    TEMPLATE,
    TEMPLATES,
    TOKENIZER,
    TOKENS,
    json_head,
)
from cpbpe.model.formats.tokenizer_json.added import added_token, flagged_pieces
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import PLAIN, ModelSpec, PieceType
from cpbpe.spelling import given
from cpbpe.text.utf8 import is_valid_utf8

MODEL = "tokenizer.model"
MODEL_OF_BERT = "spiece.model"
"""The name under which BertGenerationTokenizer looks for the model."""

OURS = (MODEL, TOKENIZER, CONFIG, TOKENS, ADDED, TEMPLATE)
"""The files that a folder may hold. If some are left from another model, they are read with this one."""

_HUGE = 1000000000000000019884624838656
"""How transformers writes that the length of texts is not limited."""
_TEMPLATE_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class WrittenFolder:
    """The files of a folder, and how they differ from the model."""

    files: Mapping[str, bytes]
    """Their names and contents."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What is not kept, or done differently."""


def write(spec: ModelSpec, *, allow_differences: bool = False) -> WrittenFolder:
    """Return the files of a folder for a model.

    If no tokenizer.json is exactly this model, there is none, and transformers is told to use sentencepiece;
    with `allow_differences`, there is one, and what differs is listed in the result. A byte-level model is
    only written as a tokenizer.json, because sentencepiece cannot read it.
    """
    # 1. The model in both forms.
    byte_level = spec.alphabet == "bytes"
    files = {} if byte_level else {MODEL: sentencepiece.write(spec)}
    differences: tuple[Difference, ...] = ()
    notes: list[str] = []
    try:
        written = tokenizer_json.write(spec, allow_differences=allow_differences)
    except ConversionError as error:
        if byte_level:
            raise
        _refuse_slow(spec, error)
        files[MODEL_OF_BERT] = files[MODEL]
        notes += _without_json(spec, error)
        special = _special(spec)
    else:
        files[TOKENIZER] = written.data
        differences = written.differences
        notes += written.notes
        special = {
            token["id"]: token["content"] for token in json_head(BytesIO(written.data))["added_tokens"]
        }
    # 2. What the other files say. The special tokens that have no role are listed there, too.
    roles = _roles(spec, special)
    plain = {text for text, flags in spec.carried.tokens.items() if PLAIN in flags}
    plain_or_role = plain.union(roles.values())
    rest = [text for text in special.values() if text not in plain_or_role]
    extra = {"additional_special_tokens": rest} if rest else {}
    files[CONFIG] = _json({**_config(spec, roles, special, has_json=TOKENIZER in files), **extra})
    named = {f"{role}_token": text for role, text in roles.items() if text and role in NAMED}
    files[TOKENS] = _json({**named, **extra})
    if spec.added:
        files[ADDED] = _json({text.decode(): id for text, id in spec.added})
    for name, template in spec.carried.chat_templates.items():
        if name != "default" and (not _TEMPLATE_NAME.fullmatch(name) or name.startswith(".")):
            raise ConversionError(
                f"the chat template {name!r} cannot be a file of this name; give it another name, "
                f"of letters, digits, '_' and '-'"
            )
        files[TEMPLATE if name == "default" else f"{TEMPLATES}/{name}.jinja"] = template.encode()
    # 3. Notes about what no file says.
    if spec.carried.options.get("prefix_after_special") is False and TOKENIZER in files:
        notes.append(
            "the model asks for no dummy prefix after special tokens (prefix_after_special), and the "
            "tokenizer.json puts one there; cpbpe.compat.transformers does not"
        )
    stops = [text for role, text in spec.carried.roles.items() if role.partition("_")[0] == "stop"]
    if stops:
        notes.append(
            f"generation also ends with {', '.join(stops)}, which belongs into the model's "
            f"generation_config.json, as eos_token_id; it is not written"
        )
    return WrittenFolder(files, differences, tuple(notes))


def left_behind(folder: str, files: Collection[str]) -> list[str]:
    """Return the files in a folder that would be read with a model but are not among its own files."""
    others = [os.path.join(folder, name) for name in OURS]
    templates = os.path.join(folder, TEMPLATES)
    if os.path.isdir(templates):
        others += [os.path.join(templates, name) for name in os.listdir(templates) if name.endswith(".jinja")]
    return [path for path in others if os.path.isfile(path) and path not in files]


def _refuse_slow(spec: ModelSpec, error: ConversionError) -> None:
    """Raise the error if the class that uses sentencepiece would give other ids, too.

    This class (the slow tokenizer) asks sentencepiece for pieces as text, and looks up their ids. So, if
    unknown text is spelled like a piece, it gets the id of that piece, which sentencepiece itself would never
    give it. (This is so for CONTROL pieces, too, but the class finds these in every text anyway.)
    """
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    unused = [text for text, type in rows if type == PieceType.UNUSED and not spec.byte_fallback]
    if not all(map(is_valid_utf8, spec.pieces.texts)):
        raise error
    if unused:
        text = min(unused, key=len).decode()
        shown = text if len(text) == 1 else None
        reason = f"BertGenerationTokenizer finds the UNUSED piece {text!r} in unknown text"
        raise ConversionError(
            f"{str(error).partition('. To convert')[0]}; and {reason}, so that transformers cannot use "
            f"sentencepiece instead. To write a tokenizer.json all the same, pass "
            f"{given('allow_differences', True)}",
            differences=[*error.differences, Difference(reason, shown)],
        ) from None


def _without_json(spec: ModelSpec, error: ConversionError) -> list[str]:
    """Return notes that say why there is no tokenizer.json, and what is used instead."""
    why = str(error).partition(". To convert")[0]
    notes = [
        f"no {TOKENIZER} is written: {why}. transformers encodes with sentencepiece instead "
        f"(BertGenerationTokenizer, which looks for the model under the name {MODEL_OF_BERT})"
    ]
    asked = [f"{name}_token" for name in ("add_bos", "add_eos") if spec.carried.options.get(name)]
    if asked:
        notes.append(
            f"this class ignores {' and '.join(asked)}, which cpbpe.compat.transformers follows; or add "
            f"the ids yourself"
        )
    return notes


def _special(spec: ModelSpec) -> dict[int, str]:
    """Return the special tokens by their ids, except for pieces that are not UTF-8."""
    control = (
        (id, text) for id, text in enumerate(spec.pieces.texts) if spec.pieces.types[id] == PieceType.CONTROL
    )
    found = {id: text.decode(errors="replace") for id, text in control if is_valid_utf8(text)}
    found.update((id, spec.pieces.texts[id].decode()) for id in flagged_pieces(spec))
    return {**found, **{id: text.decode() for text, id in spec.added}}


def _roles(spec: ModelSpec, special: Mapping[int, str]) -> dict[str, str]:
    """Return the token for each role."""
    found = {}
    for role, id in (("bos", spec.bos_id), ("eos", spec.eos_id), ("pad", spec.pad_id)):
        if id is not None and id in special:
            found[role] = special[id]
    unknown = spec.unknown_id
    if unknown is not None and is_valid_utf8(text := spec.pieces.texts[unknown]) and len(text.decode()) > 1:
        found["unk"] = text.decode()
    others = {role: text for role, text in spec.carried.roles.items() if role.partition("_")[0] != "stop"}
    return {**found, **others}


def _config(
    spec: ModelSpec, roles: Mapping[str, str], special: Mapping[int, str], *, has_json: bool
) -> dict[str, Any]:
    options = spec.carried.options
    config: dict[str, Any] = {
        "add_bos_token": options.get("add_bos", False),
        "add_eos_token": options.get("add_eos", False),
        "added_tokens_decoder": {
            str(id): {
                name: value
                for name, value in added_token(text, id, spec.carried.tokens.get(text, ())).items()
                if name != "id"
            }
            for id, text in sorted(special.items())
        },
        **{f"{role}_token": text or None for role, text in roles.items()},
        "clean_up_tokenization_spaces": False,
        "model_max_length": _HUGE,
        "tokenizer_class": "PreTrainedTokenizerFast" if has_json else "BertGenerationTokenizer",
    }
    if not has_json:  # without these, the class adds tokens of its own
        config = {"pad_token": None, "sep_token": None, "bos_token": None, "eos_token": None, **config}
    elif options.get("prefix_after_special") is False:
        config["legacy"] = False
    return config


def _json(content: object) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
