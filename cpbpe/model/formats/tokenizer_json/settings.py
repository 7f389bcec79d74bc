"""The settings of the model in a tokenizer.json: which kind it is, and whether each value has its type."""

from __future__ import annotations

from cpbpe.model.formats.tokenizer_json.checked import shown, typed, wrong
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.model.formats.values import Difference

_OTHERS = {
    "Unigram": "it is a Unigram model",
    "WordPiece": "it is a WordPiece model (as in BERT)",
    "WordLevel": "it is a WordLevel model (whole words)",
}
_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
_KINDS: dict[str, type] = {
    "type": str,
    **dict.fromkeys(_AFFIXES, str),
    "unk_token": str,
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), bool),
    "dropout": float,
    "vocab": dict,
    "merges": list,
}
"""What a BPE model has."""


def refuse_others(model: Json) -> None:
    """Raise a ModelError for other kinds of models, by name, and for a value of another type.

    A file without model.type is a BPE model only if everything fits one: with a single value that does not,
    the library takes it for a list of words, without an error.
    """
    kind = model.get("type")
    if kind is None and "vocab" not in model:
        wrong("model.type and model.vocab are missing")
    if kind is None:
        listed = isinstance(model.get("vocab"), list)
        words = "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"
        kind = "BPE" if "merges" in model else "Unigram" if listed else words
        others = sorted(model.keys() - _KINDS.keys())
        if kind == "BPE" and others:
            wrong(f"model.type is missing, and model has {shown(others[0])}, which no BPE model has")
    if isinstance(kind, str) and kind in _OTHERS:
        wrong(f"{_OTHERS[kind]}, and cpbpe reads BPE models only", "tokenizers")
    if kind != "BPE":
        wrong(f"model.type is {shown(kind)}, and cpbpe reads BPE models only")
    for name, expected in _KINDS.items():
        if expected is not float and model.get(name) is not None:
            typed(model[name], expected, f"model.{name}")
    for name in _AFFIXES:
        if model.get(name):
            wrong(f"model.{name} is {shown(model[name])}, and pieces of cpbpe have none")


def dropout_difference(model: Json) -> list[Difference]:
    """Merges that are skipped at random."""
    dropout = model.get("dropout")
    if dropout is None:
        return []
    if type(dropout) not in (int, float):
        wrong(f"model.dropout must be a number, and is {shown(dropout)}")
    if not 0 <= dropout <= 1:
        wrong(f"model.dropout must be from 0 to 1, and is {shown(dropout)}")
    return [Difference(f"it skips merges at random (dropout {dropout})")] if dropout else []
