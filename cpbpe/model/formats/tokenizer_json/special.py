"""Special tokens in a tokenizer.json: CONTROL pieces and added tokens, and which begin and end a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cpbpe.model.formats.tokenizer_json.checked import member, steps_of
from cpbpe.model.formats.tokenizer_json.names import Names
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.model.spec import PLAIN, TOKEN_FLAGS, ModelSpec

_FLAGS = ("single_word", "lstrip", "rstrip")
BOS = (b"<s>", b"<bos>", b"<|begin_of_text|>", "<｜begin▁of▁sentence｜>".encode())
EOS = (b"</s>", b"<eos>", b"<|end_of_text|>", b"<|endoftext|>", "<｜end▁of▁sentence｜>".encode())
PAD = (b"<pad>", b"<PAD>", b"[PAD]")
"""The names that are taken for bos, eos and pad, which no file says; the first one that a model has."""


# --- Writing --------------------------------------------------------------------------------------


def added_tokens(names: Names) -> list[Json]:
    """The special tokens. The UNKNOWN piece is none: then every text that spells it out would hold it."""
    spec = names.spec
    tokens = dict(names.control)
    tokens.update((name, id) for id in flagged_pieces(spec) if (name := names.names[id]) not in tokens)
    tokens.update((text.decode(), id) for text, id in sorted(spec.added, key=lambda token: token[1]))
    return [added_token(name, id, spec.carried.tokens.get(name, ())) for name, id in tokens.items()]


def flagged_pieces(spec: ModelSpec) -> list[int]:
    """The ids of pieces that texts are searched for as if they were added tokens."""
    added = {text for text, _ in spec.added}
    texts = (text.encode() for text in spec.carried.tokens)
    return sorted(spec.ids[text] for text in texts if text in spec.ids and text not in added)


def added_token(name: str, id: int, flags: Collection[str] = ()) -> Json:
    """An added token, with the flags that `Carried.tokens` has for it."""
    return {
        "id": id,
        "content": name,
        **{flag: flag in flags for flag in _FLAGS},
        "normalized": "late" in flags or "normalized" in flags,
        "special": PLAIN not in flags,
    }


def flags_of(token: Json, normalizes: bool | None, where: str = "") -> tuple[str, ...]:
    """The flags of an added token, as `Carried.tokens` has them.

    `normalizes`: whether the normalizer of the file does anything, and None if no token is looked for in
    normalized text, as in the classes of transformers that are written in Python.
    """
    flags = {flag for flag in _FLAGS if member(token, flag, bool, where, False)}
    if not member(token, "special", bool, where, False):
        flags.add(PLAIN)
    if normalizes is not None and member(token, "normalized", bool, where, False):
        flags.add("normalized" if normalizes else "late")
    return tuple(flag for flag in TOKEN_FLAGS if flag in flags)


def in_gaps(spec: ModelSpec) -> dict[str, int]:
    """Added tokens that have to be in the vocabulary: the library numbers all others without a gap."""
    size = len(spec.pieces)
    ids = sorted(id for _, id in spec.added)
    if ids == list(range(size, size + len(ids))):
        return {}
    return {text.decode(): id for text, id in spec.added}


def post_processor(spec: ModelSpec, names: Sequence[str] | Mapping[int, str]) -> Json | None:
    """What puts bos and eos around a text, and around each of a pair. `names`: what pieces are called."""
    ids = []
    for id, name in ((spec.bos_id, "bos"), (spec.eos_id, "eos")):
        wanted = spec.carried.options.get(f"add_{name}", False)
        if wanted and id is None:
            raise ValueError(f"add_{name}=True, but this model defines no {name} piece of type CONTROL")
        ids.append(id if wanted else None)
    if ids == [None, None]:
        return None

    def around(sequence: str, type_id: int) -> list[Json]:
        front, back = ([] if id is None else [_special_token(names[id], type_id)] for id in ids)
        return [*front, {"Sequence": {"id": sequence, "type_id": type_id}}, *back]

    tokens = {names[id]: id for id in ids if id is not None}
    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in tokens.items()},
    }


def _special_token(name: str, type_id: int) -> Json:
    return {"SpecialToken": {"id": name, "type_id": type_id}}


def lost_names(spec: ModelSpec, names: Names) -> list[str]:
    """Which of bos, eos and pad cannot be told from the file."""
    guessed = guessed_names({names.texts[id].encode() for id in names.control.values()})
    return [
        f"{names.texts[id]} is {kind}"
        for kind, id, name in zip(
            ("bos", "eos", "pad"), (spec.bos_id, spec.eos_id, spec.pad_id), guessed, strict=True
        )
        if id is not None and names.texts[id].encode() != name
    ]


# --- Reading --------------------------------------------------------------------------------------


def guessed_names(control: set[bytes]) -> tuple[bytes, bytes, bytes]:
    """Bos, eos and pad by their names, of these CONTROL pieces."""
    bos, eos, pad = (next((name for name in names if name in control), names[0]) for names in (BOS, EOS, PAD))
    return bos, eos, pad


def ends_of(post_processor: Any, ids: Mapping[str, int]) -> tuple[str | None, str | None] | None:
    """The tokens that a post-processor puts before and after a text; None if it does anything else.

    `ids` are those of all tokens: a post-processor has ids of its own.
    """
    steps = steps_of(post_processor, "processors", "post_processor")
    if not steps:
        return None, None
    if len(steps) > 1 or steps[0].get("type") != "TemplateProcessing":
        return None
    single = steps[0].get("single")
    tokens = steps[0].get("special_tokens")
    if not isinstance(single, list) or not isinstance(tokens, dict):
        return None
    ends: list[list[str]] = [[], []]
    place = 0
    for part in single:
        if not isinstance(part, dict):
            return None
        if "Sequence" in part:
            place += 1
            continue
        token = part.get("SpecialToken")
        name = token.get("id") if isinstance(token, dict) else None
        known = tokens.get(name) if isinstance(name, str) else None
        if place > 1 or not isinstance(name, str) or not isinstance(known, dict):
            return None
        if known.get("tokens") != [name] or known.get("ids") != [ids.get(name)]:
            return None
        ends[place].append(name)
    if place != 1 or max(map(len, ends)) > 1:
        return None
    return ends[0][0] if ends[0] else None, ends[1][0] if ends[1] else None
