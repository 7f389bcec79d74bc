"""Reading a file again before anyone gets it: what it says must be what was meant.

This guards against mistakes in a writer. What a format cannot hold has been refused before, or is listed.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cpbpe.errors import ConversionError, ModelError
from cpbpe.lazy import imported
from cpbpe.model.formats.values import Written
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType, Settings
from cpbpe.text.byte_letters import to_letters


def check(written: Written, spec: ModelSpec, format: str, read: Callable[[bytes], ModelSpec]) -> None:
    """Raise a ConversionError if a file of a format does not say what a model is."""
    if format == "tokenizer.json":
        wrong = _of_json(written.data, spec)
    elif format == "tiktoken":
        wrong = _of_ranks(written.data, spec)
    else:
        try:
            wrong = _PARTS[format](spec, read(written.data), bool(written.differences))
        except ModelError as error:
            wrong = f"it cannot be read: {error}"
    if wrong:
        raise ConversionError(
            f"nothing was written: the file was read again, and {wrong}; please report this, with the model"
        )


def _of_model(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    same = replace(spec, settings=Settings()) == replace(again, settings=Settings())
    return "" if same else "it is another model"


def _of_gguf(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    if spec.alphabet == "bytes":
        return _of_byte_level_gguf(spec, again, differs)
    size, pieces = len(spec.pieces), spec.pieces
    if len(again.pieces) != max([size, *(id + 1 for _, id in spec.added)]):
        return f"it has {len(again.pieces)} pieces, not {size}"
    if (
        differs
    ):  # a space in a USER_DEFINED piece, which sentencepiece cannot find, is read as one that it can
        texts = list(pieces.texts)
        for id, text in enumerate(texts):
            if pieces.types[id] == PieceType.USER_DEFINED and b" " in text:
                texts[id] = again.pieces.texts[id]
        pieces = Pieces.of_lists(texts, pieces.numbers(), pieces.types)
    if (again.pieces.texts[:size], again.pieces.scores[: 4 * size], again.pieces.types[:size]) != (
        pieces.texts,
        pieces.scores,
        pieces.types,
    ):
        return "its pieces are not the same"
    if any(again.pieces[id] != (text, -1000.0, PieceType.CONTROL) for text, id in spec.added):
        return "its added tokens are not the same"
    for role in ("bos_id", "eos_id", "pad_id"):
        if getattr(spec, role) not in (None, getattr(again, role)):
            return f"its {role} is {getattr(again, role)}, not {getattr(spec, role)}"
    asked = {name: on for name, on in spec.carried.options.items() if on and name in ("add_bos", "add_eos")}
    if asked != again.carried.options or spec.carried.chat_templates != again.carried.chat_templates:
        return "what it says beside the model is not the same"
    return _of_settings(spec, again, differs)


def _of_byte_level_gguf(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    """The pieces, the special tokens and the settings. That the merges are the same is proved."""
    if (again.pieces.texts, again.pieces.types) != (spec.pieces.texts, spec.pieces.types):
        return "its pieces are not the same"
    if sorted(again.added) != sorted(spec.added):
        return "its special tokens are not the same"
    for role in ("bos_id", "eos_id", "pad_id"):
        if getattr(spec, role) not in (None, getattr(again, role)):
            return f"its {role} is {getattr(again, role)}, not {getattr(spec, role)}"
    if spec.carried.chat_templates != again.carried.chat_templates:
        return "its chat templates are not the same"
    if differs:
        return ""
    if _without_name(spec.normalizer) != _without_name(again.normalizer):
        return "its settings are not the same"
    names = imported("cpbpe.model.formats.gguf.pre_names")
    if names.name_for(spec) is None:  # another pattern, which is proved to be the same for this model
        return "" if again.splitter == names.nearest(spec).splitter else "its pattern is not the same"
    patterns = {(model.splitter.pattern, *model.splitter.then) for model in (spec, again) if model.splitter}
    return "" if len(patterns) == 1 else "its pattern is not the same"


def _of_llama2c(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    if differs:
        return ""
    kept = [  # the names of others may be lost
        id for id, type in enumerate(spec.pieces.types) if type not in (PieceType.CONTROL, PieceType.UNKNOWN)
    ]
    old, new = spec.pieces.texts, again.pieces.texts
    if len(old) != len(new) or any(old[id] != new[id] for id in kept):
        return "its pieces are not the same"
    if spec.pieces.scores != again.pieces.scores:
        return "its scores are not the same"
    return _of_settings(spec, again, differs)


def _of_vocab(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    if not differs and spec.pieces != again.pieces:
        return "its pieces are not the same"
    return _of_settings(spec, again, differs)


def _of_settings(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    if differs:
        return ""
    same = _without_name(spec.normalizer) == _without_name(again.normalizer)
    return "" if same and spec.byte_fallback == again.byte_fallback else "its settings are not the same"


def _of_tekken(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    """Scores become ranks, in the same order."""
    if spec.pieces.texts != again.pieces.texts or spec.pieces.types != again.pieces.types:
        return "its pieces are not the same"
    patterns = {made.splitter.pattern if made.splitter else "" for made in (spec, again)}
    return "" if len(patterns) == 1 else "its pattern is not the same"


def _without_name(rules: NormalizerSpec) -> NormalizerSpec:
    return replace(rules, name="")


def _of_json(data: bytes, spec: ModelSpec) -> str:
    """Only the vocabulary: the merges are proved, and the library that it is for tries them."""
    content: Any = json.loads(data)
    vocab: dict[str, int] = content["model"]["vocab"]
    if spec.alphabet == "bytes":
        tokens = {**vocab, **{token["content"]: token["id"] for token in content["added_tokens"]}}
        rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
        meant = {
            text.decode() if type == PieceType.CONTROL else to_letters(text): id
            for id, (text, type) in enumerate(rows)
        }
        meant.update((text.decode(), id) for text, id in spec.added)
        return "" if tokens == meant else "its tokens are not the same"
    found = {id: token for token, id in vocab.items()}
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    same = all(found.pop(id, None) in _names(text.decode(), type) for id, (text, type) in enumerate(rows))
    others = {id: text.decode() for text, id in spec.added}
    return "" if same and found.items() <= others.items() else "its tokens are not the same"


def _names(text: str, type: int) -> tuple[str, ...]:
    """What a tokenizer.json may call a piece."""
    character = (chr(int(text[3:5], 16)),) if type == PieceType.BYTE else ()
    return (text, f"\0{text}", *character)


def _of_ranks(data: bytes, spec: ModelSpec) -> str:
    """Only the ranks: nothing else is in the file."""
    rows = (line.split() for line in data.splitlines())
    found = {b64decode(piece, validate=True): int(rank) for piece, rank in rows}
    meant = {
        piece: id for id, piece in enumerate(spec.pieces.texts) if spec.pieces.types[id] == PieceType.NORMAL
    }
    return "" if found == meant else "its ranks are not the same"


def _of_pairs(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    """The pieces, and the special tokens. That the pairs are the same merges is proved."""
    if differs:
        return ""
    size, pieces = len(spec.pieces), spec.pieces
    if (again.pieces.texts[:size], again.pieces.types[:size]) != (pieces.texts, pieces.types):
        return "its pieces are not the same"
    return "" if again.added == spec.added else "its special tokens are not the same"


def _of_minbpe(spec: ModelSpec, again: ModelSpec, differs: bool) -> str:
    patterns = [model.splitter.pattern if model.splitter is not None else "" for model in (spec, again)]
    return _of_pairs(spec, again, differs) or ("" if len({*patterns}) == 1 else "its pattern is not the same")


_PARTS: dict[str, Callable[[ModelSpec, ModelSpec, bool], str]] = {
    "model": _of_model,
    "gguf": _of_gguf,
    "tokenizer.bin": _of_llama2c,
    "vocab": _of_vocab,
    "gpt2": _of_pairs,
    "minbpe": _of_minbpe,
    "tekken.json": _of_tekken,
}
"""For each format: what is not the same in a model and in the one that was read again, or nothing."""
