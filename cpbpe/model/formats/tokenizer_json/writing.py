"""Writing a tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from cpbpe.model import validity
from cpbpe.model.byte_level import spelled
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

_NONE = "there is no tokenizer.json that is exactly this model"


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the tokenizer.json of a model, with which `tokenizers` returns the ids that sentencepiece does.

    If the model carries the options `add_bos` or `add_eos`, a post-processor puts these pieces around every
    text. If some text would get other ids, or its ids would decode to another text, a ConversionError says
    why; with `allow_differences`, the file is made, and the result lists what differs.
    """
    validity.check(spec)
    if spec.alphabet == "bytes":
        content, found, notes = content_of(spec)
        refuse(found, allow_differences, _NONE, TO_CONVERT)
        return Written(_dumped(content), tuple(found), tuple(notes))
    names = Names(spec)
    merging = Merging(names)
    differences = [*merging.differences, *_other_differences(names, merging)]
    splits = isolating(names, merging, differences)
    refuse(differences, allow_differences, _NONE, TO_CONVERT)
    unknown = spec.unknown_id
    content = added.file_of(
        spec,
        names.names,
        added.added_tokens(names),
        normalizer=_normalizer(spec),
        pre_tokenizer=_pre_tokenizer(names, splits),
        decoder=names.decoder(),
        unk_token=None if unknown is None else names.names[unknown],
        fuse_unk=True,
        ignore_merges=bool(names.user_defined),
        vocab={**dict(zip(names.names, range(len(names.names)), strict=True)), **added.in_gaps(spec)},
        merges=merging.pairs,
    )
    return Written(_dumped(content), tuple(differences), tuple(_notes(spec, names)))


def _dumped(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def pre_tokenizer(spec: ModelSpec) -> Json | None:
    """Return the pre-tokenizer of a model's file."""
    names = Names(spec)
    return _pre_tokenizer(names, isolating(names))


def _pre_tokenizer(names: Names, steps: list[Json]) -> Json | None:
    spec = names.spec
    if by_metaspace(spec.normalizer):
        after_special = spec.carried.options.get("prefix_after_special", True)
        steps = [metaspace_of(after_special), *steps]
    return sequence("pretokenizers", steps)


def _normalizer(spec: ModelSpec) -> Json | None:
    spaces = normalizer_of(spec.normalizer)
    if not spec.normalizer.charsmap:
        return spaces
    steps: list[Any] = [precompiled(spec.normalizer.charsmap)]
    if spaces is not None:
        steps += spaces["normalizers"] if spaces["type"] == "Sequence" else [spaces]
    return sequence("normalizers", steps)


def isolating(
    names: Names, merging: Merging | None = None, differences: list[Difference] | None = None
) -> list[Json]:
    """Return the pre-tokenizers that isolate the USER_DEFINED pieces of a model, and that cut the texts of
    tokens that sentencepiece finds in no text. What this makes different is added to `differences`.

    `steps` explains this in its section "User-defined pieces".
    """
    if not names.user_defined:
        return []
    merging = merging or Merging(names)
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
        elif name not in harmless and differences is not None:
            shown = f"{names.user_defined[0]}{name}{names.user_defined[0]}"
            differences.append(
                Difference(f"tokenizers takes {name!r} as a token between user-defined pieces", shown)
            )
    return splits_of(names.user_defined, cuts)


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
    control = {names.texts[id].encode() for id in names.control.values()}
    if lost := [f"{text} is {role}" for role, text in added.lost_roles(spec, names.texts, control)]:
        yield f"the file does not say that {', '.join(lost)}"
    if spec.settings.trainer:
        yield "scores become the order of merges, and the settings of the training are not stored"


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with the tokens of a written file; "" if nothing is.

    (The merges are proved to be right, and tests try them with the other library.)
    """
    content: Any = json.loads(written.data)
    vocab: dict[str, int] = content["model"]["vocab"]
    if spec.alphabet == "bytes":
        tokens = {**vocab, **{token["content"]: token["id"] for token in content["added_tokens"]}}
        meant = {name: id for id, name in spelled(spec).items()}
        return "" if tokens == meant else "its tokens are not the same"
    found = {id: token for token, id in vocab.items()}
    same = all(vocab.get(token["content"], token["id"]) == token["id"] for token in content["added_tokens"])
    for id, (data, type) in enumerate(zip(spec.pieces.texts, spec.pieces.types, strict=True)):
        text = data.decode()
        character = chr(int(text[3:5], 16)) if type == PieceType.BYTE else text
        same = same and found.pop(id, None) in (text, HIDDEN + text, character)
    is_rest = found.items() <= {id: text.decode() for text, id in spec.added}.items()
    return "" if same and is_rest else "its tokens are not the same"
