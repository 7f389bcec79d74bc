"""Writing a tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from cpbpe.model import validity
from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json import added
from cpbpe.model.formats.tokenizer_json.byte_level import content_of
from cpbpe.model.formats.tokenizer_json.merging import UNKNOWN, Merging, Names
from cpbpe.model.formats.tokenizer_json.steps import (
    HIDDEN,
    SPACE,
    by_metaspace,
    lost_accent,
    metaspace_of,
    normalizer_of,
    precompiled,
    sequence,
    splits_of,
)
from cpbpe.model.formats.values import TO_CONVERT, Difference, Written, refuse
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.utf8 import to_letters

_NONE = "there is no tokenizer.json that is exactly this model"


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the tokenizer.json of a model, with which `tokenizers` returns the ids that sentencepiece does.

    If the model carries the options `add_bos` or `add_eos`, a post-processor puts these pieces around every
    text. If some text would get other ids, or its ids would decode to another text, a ConversionError says
    why; with `allow_differences`, the file is made, and the result lists what differs.
    """
    validity.check(spec)
    if spec.alphabet == "bytes":
        return _write_byte_level(spec, allow_differences)
    names = Names(spec)
    merging = Merging(names)
    differences = [*merging.differences, *_other_differences(names, merging)]
    cuts = _cuts(merging, differences) if names.user_defined else {}
    refuse(differences, allow_differences, _NONE, TO_CONVERT)
    unknown = spec.unknown_id
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None if unknown is None else names.names[unknown],
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": spec.byte_fallback,
        "ignore_merges": bool(names.user_defined),
        "vocab": {**dict(zip(names.names, range(len(names.names)), strict=True)), **added.in_gaps(spec)},
        "merges": merging.pairs,
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added.added_tokens(names),
        "normalizer": _normalizer(spec),
        "pre_tokenizer": _pre_tokenizer(names, cuts),
        "post_processor": added.post_processor(spec, names.names),
        "decoder": names.decoder(),
        "model": model,
    }
    return Written(_dumped(content), tuple(differences), tuple(_notes(spec, names)))


def _write_byte_level(spec: ModelSpec, allow_differences: bool) -> Written:
    content, differences, notes = content_of(spec)
    refuse(differences, allow_differences, _NONE, TO_CONVERT)
    return Written(_dumped(content), tuple(differences), tuple(notes))


def _dumped(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def isolating(spec: ModelSpec) -> list[Json]:
    """Return the pre-tokenizers that isolate the USER_DEFINED pieces of a model."""
    names = Names(spec)
    return splits_of(names.user_defined, _cuts(Merging(names), []) if names.user_defined else {})


def pre_tokenizer(spec: ModelSpec) -> Json | None:
    """Return the pre-tokenizer of a model's file."""
    names = Names(spec)
    return _pre_tokenizer(names, _cuts(Merging(names), []) if names.user_defined else {})


def _pre_tokenizer(names: Names, cuts: dict[str, int]) -> Json | None:
    spec = names.spec
    steps = splits_of(names.user_defined, cuts)
    if by_metaspace(spec.normalizer):
        after_special = spec.carried.options.get("prefix_after_special", True)
        steps.insert(0, metaspace_of(after_special))
    return sequence("pretokenizers", steps)


def _normalizer(spec: ModelSpec) -> Json | None:
    spaces = normalizer_of(spec.normalizer)
    if not spec.normalizer.charsmap:
        return spaces
    steps: list[Any] = [precompiled(spec.normalizer.charsmap)]
    if spaces is not None:
        steps += spaces["normalizers"] if spaces["type"] == "Sequence" else [spaces]
    return sequence("normalizers", steps)


def _cuts(merging: Merging, differences: list[Difference]) -> dict[str, int]:
    """Return where to cut the texts of tokens that sentencepiece finds in no text.

    `steps` explains this in its section "User-defined pieces".
    """
    names = merging.names
    unfound = {
        name: symbols
        for name in names.names
        if len(name) > 1
        and names.can_be_found(name)
        and not names.holds_user_defined(name)
        and (symbols := merging.unfound(name))
    }
    # The other library finds special tokens anyway, and the text of the UNKNOWN token is unknown anyway.
    harmless = {*names.control}
    if names.spec.unknown_id is not None and not names.spec.byte_fallback:
        harmless.add(names.names[names.spec.unknown_id])
    cuts = {}
    for name, symbols in unfound.items():
        places = []
        at = 0
        for left, right in pairwise(symbols):
            at += 1 if left[0] == UNKNOWN else len(left)
            both_unknown = left[0] == right[0] == UNKNOWN and not names.spec.byte_fallback
            halves = name[:at], name[at:]
            if not both_unknown and not any(half in unfound for half in halves):
                places.append(at)
        if places:
            cuts[name] = places[0]
        elif name not in harmless:
            shown = f"{names.user_defined[0]}{name}{names.user_defined[0]}"
            differences.append(
                Difference(f"tokenizers takes {name!r} as a token between user-defined pieces", shown)
            )
    return cuts


def _other_differences(names: Names, merging: Merging) -> Iterator[Difference]:
    """Yield the differences that have nothing to do with merging."""
    spec = names.spec
    rules = spec.normalizer
    if rules.charsmap:
        text = lost_accent(rules.charsmap, names.characters)
        yield Difference(
            f"tokenizers applies the rules of the normalizer {rules.name!r} in another way", text
        )
    if spec.denormalizer is not None and spec.denormalizer.charsmap:
        yield Difference("the model rewrites decoded text by a denormalizer, and tokenizers has none")
    if rules.remove_extra_whitespaces:
        for text in [text for text in names.all_user_defined if "  " in text][:1]:
            seen = text if SPACE in names.characters else None
            yield Difference("user-defined pieces keep several spaces, which tokenizers makes one", seen)
        if spec.byte_fallback and SPACE not in names.characters:
            yield Difference(f"{SPACE!r} is no piece, and tokenizers decodes its bytes to a space", "a b")


def _notes(spec: ModelSpec, names: Names) -> Iterator[str]:
    tokens = [
        *(name for name in names.control if name[0] != HIDDEN),
        *(text.decode(errors="replace") for text, _ in spec.added),
    ]
    if tokens:
        shown = ", ".join(tokens[:3]) + (", ..." if len(tokens) > 3 else "")
        yield (
            f"tokenizers finds special tokens ({shown}) in every text, cpbpe only those that allowed_special "
            f"allows, and sentencepiece none"
        )
    if not spec.carried.options.get("prefix_after_special", True) and not by_metaspace(spec.normalizer):
        yield "tokenizers puts a space also in front of text after a special token"
    hidden = [name[1:] for name in names.control if name[0] == HIDDEN]
    if hidden:
        yield f"special tokens of one character ({', '.join(hidden[:3])}) are found only after a NUL"
    if spec.byte_fallback:
        yield (
            "ids that no text has may be decoded in another way: bytes that are not UTF-8, the byte of a "
            "space, an unknown token at the beginning"
        )
    if lost := added.lost_names(spec, names):
        yield f"the file does not say that {', '.join(lost)}"
    if spec.settings.trainer:
        yield "scores become the order of merges, and the settings of the training are not stored"


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with the tokens of a written file; "" if nothing is.

    (The merges are proved to be right, and tests try them with the other library.)
    """
    content: Any = json.loads(written.data)
    vocab: dict[str, int] = content["model"]["vocab"]
    rows = enumerate(zip(spec.pieces.texts, spec.pieces.types, strict=True))
    others = {text.decode(): id for text, id in spec.added}
    if spec.alphabet == "bytes":
        tokens = {**vocab, **{token["content"]: token["id"] for token in content["added_tokens"]}}
        meant = {
            text.decode() if type == PieceType.CONTROL else to_letters(text): id for id, (text, type) in rows
        }
        return "" if tokens == {**meant, **others} else "its tokens are not the same"
    found = {id: token for token, id in vocab.items()}
    same = all(found.pop(id, None) in _possible_names(text.decode(), type) for id, (text, type) in rows)
    is_rest = found.items() <= {id: text for text, id in others.items()}.items()
    return "" if same and is_rest else "its tokens are not the same"


def _possible_names(text: str, type: int) -> tuple[str, ...]:
    """Return the names that a piece may have in a file."""
    character = (chr(int(text[3:5], 16)),) if type == PieceType.BYTE else ()
    return (text, HIDDEN + text, *character)
