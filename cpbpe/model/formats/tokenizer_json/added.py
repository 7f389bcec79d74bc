"""The added tokens of a tokenizer.json: CONTROL pieces, USER_DEFINED pieces, or tokens with flags; and which
of them begin and end a text.

The other library looks for all of them in every text, before it does anything else. On request, it leaves
*special* ones out of decoded text. In cpbpe, a text yields special tokens only if the caller allows it.

A token that is not special becomes a USER_DEFINED piece if normalization does not change how it is written,
and if there is no dummy prefix (the library would put one in front of the text after the token). All other
tokens keep their flags, see `Carried.tokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json.steps import (
    FILE,
    Steps,
    member,
    shown,
    steps_of,
    type_of,
    typed,
    wrong,
)
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import PLAIN, TOKEN_FLAGS, ModelSpec
from cpbpe.text.finder import may_overlap

if TYPE_CHECKING:
    from cpbpe.model.formats.tokenizer_json.merging import Names

FLAGS = ("single_word", "lstrip", "rstrip")
BOS = (b"<s>", b"<bos>", b"<|begin_of_text|>", "<｜begin▁of▁sentence｜>".encode())
EOS = (b"</s>", b"<eos>", b"<|end_of_text|>", b"<|endoftext|>", "<｜end▁of▁sentence｜>".encode())
PAD = (b"<pad>", b"<PAD>", b"[PAD]")
"""The usual names of bos, eos and pad. No file says which tokens these are, so the first of these names that
a model has is taken."""


# --- Writing --------------------------------------------------------------------------------------


def added_tokens(names: Names) -> list[Json]:
    """Return the added tokens of the file. The UNKNOWN piece is not among them: if it were, every text that
    spells it out would contain it.
    """
    spec = names.spec
    tokens = dict(names.control)
    tokens.update((name, id) for id in flagged_pieces(spec) if (name := names.names[id]) not in tokens)
    tokens.update((text.decode(), id) for text, id in sorted(spec.added, key=lambda token: token[1]))
    return [added_token(name, id, spec.carried.tokens.get(name, ())) for name, id in tokens.items()]


def flagged_pieces(spec: ModelSpec) -> list[int]:
    """Return the ids of the pieces that texts are searched for as if they were added tokens."""
    added = {text for text, _ in spec.added}
    texts = (text.encode() for text in spec.carried.tokens)
    return sorted(spec.ids[text] for text in texts if text in spec.ids and text not in added)


def added_token(name: str, id: int, flags: Collection[str] = ()) -> Json:
    """Return an added token as JSON, with the flags that `Carried.tokens` has for it."""
    return {
        "id": id,
        "content": name,
        **{flag: flag in flags for flag in FLAGS},
        "normalized": "late" in flags or "normalized" in flags,
        "special": PLAIN not in flags,
    }


def flags_of(token: Json, normalizes: bool | None, where: str = "") -> tuple[str, ...]:
    """Return the flags of an added token, as `Carried.tokens` has them.

    `normalizes` says whether the normalizer of the file does anything. It is None if no token is ever looked
    for in normalized text, as in the classes of transformers that are written in Python.
    """
    flags = {flag for flag in FLAGS if member(token, flag, bool, where, False)}
    if not member(token, "special", bool, where, False):
        flags.add(PLAIN)
    if normalizes is not None and member(token, "normalized", bool, where, False):
        flags.add("normalized" if normalizes else "late")
    return tuple(flag for flag in TOKEN_FLAGS if flag in flags)


def in_gaps(spec: ModelSpec) -> dict[str, int]:
    """Return the added tokens if they have to be in the vocabulary because their ids have gaps.

    The library numbers added tokens that are not in the vocabulary without gaps.
    """
    size = len(spec.pieces)
    ids = sorted(id for _, id in spec.added)
    if ids == list(range(size, size + len(ids))):
        return {}
    return {text.decode(): id for text, id in spec.added}


def post_processor(spec: ModelSpec, names: Sequence[str] | Mapping[int, str]) -> Json | None:
    """Return the post-processor that puts bos and eos around a text, and around both texts of a pair.

    `names` are the names of the pieces in the file.
    """
    ids = []
    for id, name in ((spec.bos_id, "bos"), (spec.eos_id, "eos")):
        wanted = spec.carried.options.get(f"add_{name}", False)
        if wanted and id is None:
            raise ValueError(f"add_{name}=True, but this model defines no {name} piece of type CONTROL")
        ids.append(id if wanted else None)
    if ids == [None, None]:
        return None

    def around(sequence: str, type_id: int) -> list[Json]:
        front, back = (
            [] if id is None else [{"SpecialToken": {"id": names[id], "type_id": type_id}}] for id in ids
        )
        return [*front, {"Sequence": {"id": sequence, "type_id": type_id}}, *back]

    tokens = {names[id]: id for id in ids if id is not None}
    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in tokens.items()},
    }


def lost_roles(
    spec: ModelSpec, texts: Sequence[str] | Mapping[int, str], control: set[bytes]
) -> Iterator[tuple[str, str]]:
    """Yield those of bos, eos and pad that a reader cannot guess from the file, with their tokens.

    `texts` are the texts of the tokens by id; `control` are those that are special.
    """
    ids = {"bos": spec.bos_id, "eos": spec.eos_id, "pad": spec.pad_id}
    for (role, id), guessed in zip(ids.items(), guessed_names(control), strict=True):
        if id is not None and texts[id].encode() != guessed:
            yield role, texts[id]


def file_of(
    spec: ModelSpec,
    names: Sequence[str] | Mapping[int, str],
    tokens: list[Json],
    *,
    normalizer: Json | None,
    pre_tokenizer: Json | None,
    decoder: Json,
    **model: Any,
) -> Json:
    """Return the content of a file. `names` are the names of the pieces in it, `tokens` the added tokens, and
    `model` the members of the model that are not the usual ones.
    """
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor(spec, names),
        "decoder": decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": spec.byte_fallback,
            **model,
        },
    }


# --- Reading --------------------------------------------------------------------------------------


def guessed_names(control: set[bytes]) -> tuple[bytes, bytes, bytes]:
    """Return the names of bos, eos and pad: the usual ones, if possible among these CONTROL pieces."""
    bos, eos, pad = (next((name for name in names if name in control), names[0]) for names in (BOS, EOS, PAD))
    return bos, eos, pad


def special_pieces(
    unknown: bytes, control: set[bytes], ends: tuple[str | None, str | None]
) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the names of unk, bos, eos and pad in a model, from what goes around texts and what is usual."""
    bos, eos, pad = guessed_names(control)
    first, last = ends
    return unknown, first.encode() if first else bos, last.encode() if last else eos, pad


def ends_around(
    post_processor: Any,
    ids: Mapping[str, int],
    simplified: Callable[[Any], Any] = lambda processor: processor,
) -> tuple[str | None, str | None]:
    """Return the tokens that a post-processor puts before and after a text, or raise a ModelError.

    `simplified` rewrites the post-processor first.
    """
    ends = ends_of(simplified(post_processor), ids)
    if ends is None:
        wrong(
            f"its post-processor is {type_of(post_processor, 'post_processor')}, and does more than to put "
            f"one token in front and one at the end"
        )
    return ends


def ends_of(post_processor: Any, ids: Mapping[str, int]) -> tuple[str | None, str | None] | None:
    """Return the tokens that a post-processor puts before and after a text; None if it does anything else.

    `ids` are the ids of all tokens. A post-processor lists ids of its own, which must be the same.
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


def pair_notes(post_processor: Any, ends: tuple[str | None, str | None]) -> list[str]:
    """Return a note if a post-processor joins two texts otherwise than a file that is written here does."""
    front, back = ([] if end is None else [end] for end in ends)
    usual = [*front, "A", *back, *front, "B", *back]
    for step in steps_of(post_processor, "processors", "post_processor"):
        pair = usual
        if step["type"] == "RobertaProcessing":
            pair = [*front, "A", *back, *back, "B", *back]
        elif step["type"] == "BertProcessing":
            pair = [*front, "A", *back, "B", *back]
        elif step["type"] == "TemplateProcessing" and isinstance(step.get("pair"), list):
            pair = [_named(part) for part in step["pair"]]
        if pair != usual:
            return [
                f"its post-processor makes {' '.join(pair)} of two texts A and B, and cpbpe writes one that "
                f"makes {' '.join(usual)} of them"
            ]
    return []


def _named(part: Any) -> str:
    """Return the token or the sequence that a part of a template stands for."""
    inner = [*part.values(), None][0] if isinstance(part, dict) else None
    return str(inner.get("id")) if isinstance(inner, dict) else shown(part)


def listed(given: Any, vocab: Mapping[str, int]) -> Collection[tuple[str, Json, str, int]]:
    """Return the added tokens of a file: its place, for errors, the token, its text and its id.

    Their ids are those in the vocabulary, or come after all others. Of several with the same text, the last
    one counts. (If only one of them is special or normalized, tokenizers follows the one in some things and
    the other in others.)
    """
    ids: dict[str, int] = {}
    found: dict[str, tuple[str, Json, str, int]] = {}
    for place, token in enumerate(typed([] if given is None else given, list, "added_tokens")):
        where = f"added_tokens[{place}]"
        text, id = member(typed(token, dict, where), "content", str, where), member(token, "id", int, where)
        if not text:
            wrong(f"{where} is empty")
        FILE.valid(text, f"{where}, {shown(text)},")
        expected = vocab[text] if text in vocab else ids.setdefault(text, len(vocab) + len(ids))
        if id != expected:
            wrong(f"{where}, {shown(text)}, has the id {id}, and tokenizers would give it {expected}")
        before = found.get(text, (where, token))[1]
        for flag in ("special", "normalized"):
            if before.get(flag, False) != token.get(flag, False):
                wrong(f"its added token {shown(text)} is listed twice, and {flag} only once")
        found[text] = where, token, text, id
    return found.values()


def with_entries(own: list[Json], entries: Mapping[int, Json]) -> list[Json]:
    """Return added tokens as transformers changes them for those that a tokenizer_config.json lists by id.

    It looks them up by their texts, whatever their ids. If a file has such a token, that token gets the flags
    of the list; it stays special, if it was. The other tokens of the list come after all others, here with
    -1 for their id.
    """
    merged = {token["content"]: token for token in own}
    for _, entry in sorted(entries.items()):
        special = bool(entry.get("special"))
        usual = {"id": -1, "content": "", **dict.fromkeys(FLAGS, False), "normalized": not special}
        token = {**usual, **{key: entry[key] for key in usual if entry.get(key) is not None}}
        old = merged.get(entry["content"], {"id": -1})
        was_special = bool(old.get("special"))
        merged[entry["content"]] = {**token, "special": special or was_special, "id": old["id"]}
    return [*merged.values()]


# --- Added tokens of models of characters ---------------------------------------------------------


@dataclass
class Added:
    """The added tokens of a file."""

    control: set[str] = field(default_factory=set)
    """Those that become CONTROL pieces, or special tokens with ids above the pieces."""
    user_defined: set[str] = field(default_factory=set)
    """Those that become USER_DEFINED pieces."""
    special: set[str] = field(default_factory=set)
    """Those that the file calls special."""
    flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The flags of those that are not ordinary special tokens, as in `Carried.tokens`."""
    pieces: list[str] = field(default_factory=list)
    """All tokens of the file that become pieces, by id."""
    beyond: tuple[tuple[bytes, int], ...] = ()
    """All other tokens of the file, with their ids."""
    notes: list[str] = field(default_factory=list)


def read_added(
    given: Any, vocab: dict[str, int], steps: Steps, unknown: str | None, made: Container[str]
) -> Added:
    """Read the added tokens, and decide which tokens become pieces. `made` are those that merges make."""
    # 1. The tokens of the file.
    found = Added()
    ids: dict[str, int] = {}
    kind: bool | None = None  # whether the USER_DEFINED ones are looked for in normalized text
    overlaps = _overlap(given if isinstance(given, list) else [])
    for where, token, text, id in listed(given, vocab):
        ids[text] = id
        is_special = member(token, "special", bool, where, False)
        if is_special:
            found.special.add(text)
        flags = flags_of(token, steps.normalizes, where)
        is_plain = not is_special and {*flags} <= {PLAIN, "late", "normalized"}
        if is_plain and not overlaps and _can_be_user_defined(text, steps):
            # The library looks for tokens that are to be normalized only in the text between the others.
            # cpbpe looks for all USER_DEFINED pieces at once, so only one of these kinds can become that.
            normalized = member(token, "normalized", bool, where, False)
            kind = normalized if kind is None else kind
            if normalized == kind:
                found.user_defined.add(text)
                continue
        is_piece = text in made or (len(text) == 1 and text in vocab) or text in (steps.user_defined or ())
        if not is_piece:
            found.control.add(text)
        if flags or is_piece:
            found.flags[text] = flags
    if kind is False and any(not {"late", "normalized"}.isdisjoint(flags) for flags in found.flags.values()):
        # Texts are searched for tokens with these flags before USER_DEFINED pieces are looked for, and the
        # library finds the latter first. So search for these as well.
        found.flags.update(dict.fromkeys(found.user_defined, (PLAIN,)))
    if unknown in found.control:
        found.control.discard(unknown)
        found.notes.append(f"tokenizers finds the unknown token {unknown} in every text that spells it out")
    # 2. All tokens are pieces up to the last one that must be (it is in the vocabulary only, or
    #    USER_DEFINED). If the ids have no gap, the whole vocabulary is.
    tokens = {id: text for text, id in {**vocab, **ids}.items()}
    size = next(id for id in range(len(tokens) + 1) if id not in tokens)
    own = {id for text, id in vocab.items() if text not in ids}
    needed = max([-1, *own, *(ids[text] for text in found.user_defined)]) + 1
    if needed > size:
        wrong(f"no token has the id {size}, and ids of pieces have no gaps")
    size = needed if size < len(tokens) else max(needed, len(vocab))
    found.pieces = [tokens[id] for id in range(size)]
    beyond = sorted(id for id in tokens if id >= size)
    found.beyond = tuple((tokens[id].encode(errors="replace"), id) for id in beyond)
    found.flags.pop(unknown or "", None)
    between = next((text for text, flags in found.flags.items() if "normalized" in flags), None)
    if between is not None and steps.in_two_steps:
        reason = f"text after {shown(between)} gets another prefix than text at the beginning (normalized)"
        steps.differences.append(Difference(reason, f"{between}a"))
    elif between is not None and steps.normalizer.remove_extra_whitespaces:
        reason = f"a text is normalized before {shown(between)} is looked for, and not again after it"
        steps.differences.append(Difference(reason, f"{between} a"))
    takes = next((text for text, flags in found.flags.items() if {"lstrip", "normalized"} <= {*flags}), None)
    if takes is not None and steps.normalizer.add_dummy_prefix and steps.normalizer.prefix_before_space:
        found.notes.append(
            f"tokenizers takes a tab at the beginning of a text as a part of {shown(takes)} (lstrip), and "
            f"cpbpe encodes it if there is a space between them"
        )
    if (spaced := next((text for text in ids if "▁" in text), None)) is not None:
        found.notes.append(
            f"tokenizers decodes {shown(spaced)} with a space for ▁, and cpbpe as it is written"
        )
    if found.special:
        found.notes.append(
            "tokenizers finds special tokens in every text, and cpbpe only those that allowed_special allows"
        )
    return found


def _overlap(given: list[Any]) -> bool:
    """Whether tokens that are special, or have flags, may overlap others.

    Where two tokens share characters of a text, or one takes spaces that belong to the other, the library
    takes the one that begins first. cpbpe looks for USER_DEFINED pieces only in the text between the others.
    """
    flagged: set[str] = set()
    plain: set[str] = set()
    strips = False
    for token in given:
        if isinstance(token, dict) and isinstance(text := token.get("content"), str):
            flags = {name for name in ("special", "single_word", "lstrip", "rstrip") if token.get(name)}
            strips = strips or "lstrip" in flags or "rstrip" in flags
            (flagged if flags else plain).add(text)
    spaced = strips and any(character.isspace() for text in plain for character in text)
    return spaced or may_overlap(plain, flagged) or may_overlap(flagged, plain)


def _can_be_user_defined(text: str, steps: Steps) -> bool:
    """Whether a token, as a USER_DEFINED piece, is found in the same texts, and the text around it gets the
    same ids.
    """
    rules = steps.normalizer
    plain = not (rules.add_dummy_prefix or rules.remove_extra_whitespaces or rules.charsmap)
    return plain and steps.user_defined is None and not {" ", "▁"} & {*text}
