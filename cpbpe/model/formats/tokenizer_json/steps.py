"""The normalizer, the pre-tokenizer and the decoder of a tokenizer.json, as options of a model.

What `spaces` and `user_defined` write is recognized by writing it again, for each combination of options. Of
what others write, those forms are known that do the same, or nearly: Llama's (Prepend and Replace), Mistral's
(Metaspace) and Gemma's (Replace, and a Split at spaces, of which none are left).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NoReturn

from cpbpe.model.formats.tokenizer_json.charsmaps import charsmap_of
from cpbpe.model.formats.tokenizer_json.checked import shown, steps_of, type_of, wrong
from cpbpe.model.formats.tokenizer_json.names import Names
from cpbpe.model.formats.tokenizer_json.spaces import (
    SPACE,
    Json,
    by_metaspace,
    decoder_of,
    drops_space,
    escaped,
    normalizer_of,
    replace_regex,
)
from cpbpe.model.formats.tokenizer_json.spaces import replace as replace_step
from cpbpe.model.formats.tokenizer_json.user_defined import pieces_of
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import KEEPS_SPACE, ModelSpec, NormalizerSpec
from cpbpe.text.unicode_forms import FORMS

_ESCAPE = replace_step(" ", SPACE)
_UNESCAPE = replace_step(SPACE, " ")
_DOUBLE = replace_regex(rf"\A{SPACE}", SPACE * 2)


@dataclass
class Steps:
    """What the steps of a file come to."""

    normalizer: NormalizerSpec
    """The options."""
    user_defined: frozenset[str] | None = None
    """The pieces that the pre-tokenizer isolates; None if it does not."""
    isolating: list[Json] = field(default_factory=list)
    """The steps that do so."""
    normalizes: bool = False
    """Whether the file has a normalizer, besides what its pre-tokenizer does."""
    in_two_steps: bool = False
    """Whether its normalizer and its pre-tokenizer put the prefix in front together."""
    splits: bool = False
    """Whether nothing is merged across the beginning of a U+2581."""
    options: dict[str, bool] = field(default_factory=dict)
    """What the file asks for, as `Carried.options`."""
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_steps(content: Json) -> Steps:
    """The normalizer and the pre-tokenizer of a file. Those that a model cannot have are a ModelError."""
    normalizers = steps_of(content.get("normalizer"), "normalizers", "normalizer")
    pre_tokenizers = steps_of(content.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer")
    charsmap = b""
    differences = []
    if normalizers and normalizers[0]["type"] == "Precompiled":
        charsmap = charsmap_of(normalizers.pop(0)) or wrong("its charsmap (Precompiled) cannot be read")
        differences.append(Difference("tokenizers applies the rules of a charsmap in another way"))
    splits = pre_tokenizers
    if pre_tokenizers and pre_tokenizers[0]["type"] == "Metaspace":
        found = _metaspace(normalizers, pre_tokenizers[0])
        splits = pre_tokenizers[1:]
    else:
        found = Steps(_spaces(normalizers))
    user_defined = None if found.splits else pieces_of(splits)
    if user_defined is not None:
        found.user_defined, found.isolating = frozenset(user_defined), splits
    elif splits and not (found.normalizer.escape_whitespaces and _splits_at_spaces(splits)):
        _cannot("pre-tokenizer", pre_tokenizers)
    found.normalizer = replace(
        found.normalizer, charsmap=charsmap, name="precompiled" if charsmap else "identity"
    )
    found.normalizes = bool(content.get("normalizer"))
    if drops_space(found.normalizer):  # the decoder sees all tokens of a text at once, special ones included
        found.options[KEEPS_SPACE] = True
    found.differences += differences
    return found


def _spaces(steps: list[Json]) -> NormalizerSpec:  # noqa: RET503 (`_cannot` raises an error)
    """The options of which the writer makes these steps."""
    given = steps
    prepend = {"type": "Prepend", "prepend": SPACE}
    if steps == [_ESCAPE, prepend]:  # the other way round is the same
        given = [prepend, _ESCAPE]
    for flags in product((False, True), repeat=5):
        prefix, remove, escape, suffix, before_space = flags
        spec = NormalizerSpec("", b"", prefix, remove, escape, suffix, before_space)
        means_nothing = (spec.suffix and not prefix) or (
            not spec.prefix_before_space and (spec.suffix or not prefix)
        )
        if means_nothing or by_metaspace(spec):
            continue
        if steps_of(normalizer_of(spec), "normalizers", "") == given:
            return spec
    _cannot("normalizer", steps)


def _metaspace(normalizers: list[Json], step: Json) -> Steps:
    """The pre-tokenizer Metaspace, which escapes spaces and puts a prefix in front, unless one is there."""
    if step.get("replacement") != SPACE:
        _cannot("pre-tokenizer", [step])
    scheme = step.get("prepend_scheme")
    if scheme is None:
        scheme = "always" if step.get("add_prefix_space", True) else "never"
    if scheme not in ("always", "first", "never"):
        wrong(f"pre_tokenizer.prepend_scheme must be always, first or never, and is {shown(scheme)}")
    # Two steps together do what sentencepiece does: a text that begins with a space gets a second one.
    is_doubled = scheme == "always" and normalizers[-1:] == [_DOUBLE]
    rules = _spaces((normalizers[:-1] if is_doubled else normalizers) or [_ESCAPE])
    if not rules.escape_whitespaces or rules.suffix:
        _cannot("normalizer (before Metaspace)", normalizers)
    found = Steps(rules, splits=step.get("split", True) is not False)
    if is_doubled and not rules.add_dummy_prefix:
        found.normalizer = replace(rules, add_dummy_prefix=True)
        found.in_two_steps = True
    elif scheme != "never" and not rules.add_dummy_prefix:
        found.normalizer = replace(rules, add_dummy_prefix=True, prefix_before_space=False)
        if scheme == "first":
            found.options["prefix_after_special"] = False
            found.notes.append(
                "text after a special token gets no prefix: pass prefix_after_special=False where one is "
                "allowed"
            )
    return found


def _splits_at_spaces(steps: Iterable[Json]) -> bool:
    return all(
        step.get("type") == "Split" and step.get("pattern") == {"String": " "} and not step.get("invert")
        for step in steps
    )


def _cannot(what: str, steps: list[Json]) -> NoReturn:
    named = ", ".join(step["type"] + _pattern(step) for step in steps) or "nothing"
    if any(step["type"] in FORMS for step in steps):
        wrong(
            f"its {what} is {named}, which brings any number of accents into order ('a\\u0301\\u0323' "
            f"becomes '\\u1ea1\\u0301'); a list of replacements, as models of characters have, cannot do that"
        )
    wrong(f"its {what} is {named}; SentencePiece BPE cannot do that")


def _pattern(step: Json) -> str:
    return f" of {shown(step['pattern'])}" if "pattern" in step else ""


# --- The decoder ----------------------------------------------------------------------------------


def unknown_surface(content: Json, unknown: str | None, is_special: bool, byte_fallback: bool) -> bytes:
    """The text that the UNKNOWN token is decoded to."""
    steps = steps_of(content.get("decoder"), "decoders", "decoder")
    pattern = {"Regex": rf"\A{escaped(unknown or '')}\z"}
    for step in steps:
        if step.get("type") == "Replace" and step.get("pattern") == pattern:
            text = str(step.get("content"))
            last = steps[-1]
            if last.get("type") == "Replace" and last.get("content") == SPACE:
                text = text.replace(str((last.get("pattern") or {}).get("String")), SPACE)
            return text.encode(errors="replace")
    if byte_fallback or unknown is None:
        return ModelSpec.unk_surface
    return b"" if is_special else unknown.encode(errors="replace")


def decoder_note(content: Json, spec: ModelSpec, names: Names) -> str | None:
    """What is different in decoding, or None."""
    steps = steps_of(content.get("decoder"), "decoders", "decoder")
    surface = None
    if spec.unknown_id is not None:
        surface = names.names[spec.unknown_id], spec.unk_surface.decode(errors="replace")
    own = decoder_of(spec.normalizer, spec.byte_fallback, surface, names.has_hidden, names.private)
    if steps == own["decoders"]:
        return None
    rules = spec.normalizer
    if not rules.remove_extra_whitespaces and not names.has_hidden and spec.byte_fallback:
        strip: list[Json] = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
        usual = [_UNESCAPE, {"type": "ByteFallback"}, {"type": "Fuse"}]
        if steps == usual + (strip if drops_space(rules) else []):
            return None
    named = ", ".join(type_of(step, "decoder") for step in steps) or "none"
    return f"decoding may differ in spaces at the beginning and in unknown characters: its decoder is {named}"
