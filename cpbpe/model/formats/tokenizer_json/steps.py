r"""The steps by which a tokenizer.json of a model of characters rewrites text: made from options, and read.

The other library has no options for spaces, but a list of steps: a normalizer, pre-tokenizers, a decoder.
Steps that were written here are recognized by writing them again for each combination of options. Three forms
that other programs write do the same, or nearly, and are recognized, too: Llama's (Prepend and Replace),
Mistral's (Metaspace) and Gemma's (Replace, and then a Split at spaces, which never matches, because Replace
has left none).
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import Any, NoReturn

from cpbpe.errors import ConversionError
from cpbpe.model.formats.json_file import Json, JsonFile
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import KEEPS_SPACE, ModelSpec, NormalizerSpec
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.unicode_forms import FORMS

FILE = JsonFile("not a tokenizer.json that cpbpe can read")
member, typed, shown, wrong = FILE.member, FILE.typed, FILE.shown, FILE.wrong

SPACE = "▁"
HIDDEN = "\0"
"""The first character of the names of tokens that must not be found in texts."""

_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


def type_of(step: Any, where: str) -> str:
    """Return the type of a normalizer, a pre-tokenizer, a decoder or a post-processor."""
    return member(typed(step, dict, where), "type", str, where)


def steps_of(step: Any, name: str, where: str) -> list[Json]:
    """Return the steps of a sequence, even if nested; a single step as a list; an empty list for null."""
    if step is None:
        return []
    if type_of(step, where) != "Sequence":
        return [step]
    steps: list[Json] = []
    waiting = list(reversed(member(step, name, list, where)))
    while waiting:
        inner = waiting.pop()
        if type_of(inner, where) == "Sequence":
            waiting += reversed(member(inner, name, list, where))
        else:
            steps.append(inner)
    return steps


def replace_text(text: str, by: str) -> Json:
    """Return a step that replaces a text."""
    return {"type": "Replace", "pattern": {"String": text}, "content": by}


def replace_regex(pattern: str, by: str) -> Json:
    """Return a step that replaces what a regular expression matches."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": by}


def sequence(name: str, steps: Sequence[Json]) -> Json | None:
    """Return several steps as one sequence, a single step as it is, and None for none."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", name: list(steps)}


def escaped(text: str) -> str:
    r"""Return a regular expression of the other library that matches exactly a text.

    >>> escaped("a.b")
    'a\\.b'
    """
    return _META.sub(r"\\\g<0>", text)


def unescaped(pattern: str) -> str:
    r"""Return the text that `escaped` was given.

    >>> unescaped(escaped("a.\\n"))
    'a.\\n'
    """
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


# --- Spaces ---------------------------------------------------------------------------------------
#
# - *Prepend* puts U+2581 in front of every text that is not empty, as sentencepiece does. The pre-tokenizer
#   *Metaspace* does not if the text already begins with a space, so it is for models with
#   `prefix_before_space` off. With its scheme "first", text after a special token gets no prefix; with
#   "always" it does.
# - *Replace* with a regular expression removes spaces at both ends, and makes one space of several.
#   sentencepiece removes spaces at the beginning before it escapes them, and at the end afterwards. So at the
#   end it also removes a U+2581 that was in the text itself.
# - In the decoder, *Replace* sees one token at a time until *Fuse* joins them. So before Fuse, it can turn
#   each U+2581 that is not the first character of its token into a space. The U+2581 that is then at the
#   beginning of the whole text is the one that decoding drops.
# - If the name of a token begins with NUL, texts must not find the token (see `merging.Names`). The decoder
#   removes the NUL.


def normalizer_of(spec: NormalizerSpec) -> Json | None:
    """Return the normalizer for a model's options, without its charsmap; None if there is nothing to do.

    >>> normalizer_of(NormalizerSpec(add_dummy_prefix=False, remove_extra_whitespaces=False))
    {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}
    """
    space = SPACE if spec.escape_whitespaces else " "
    steps: list[Json] = []
    if spec.remove_extra_whitespaces:
        steps += [replace_regex(r"\A +", ""), replace_regex(" {2,}", " ")]
    if spec.add_dummy_prefix and not spec.suffix and not by_metaspace(spec):
        if spec.prefix_before_space:
            steps.append({"type": "Prepend", "prepend": space})
        else:
            steps.append(replace_regex(rf"\A(?=[^{space}])", space))
    if spec.escape_whitespaces and (spec.remove_extra_whitespaces or not by_metaspace(spec)):
        steps.append(replace_text(" ", SPACE))
    if spec.add_dummy_prefix and spec.suffix:
        steps.append(replace_regex(r"(?!\A)\z", space))
        if spec.remove_extra_whitespaces:
            steps.append(replace_regex(rf"{space}+(?={space}\z)", ""))
    elif spec.remove_extra_whitespaces:
        steps.append(replace_regex(rf"{space}+\z", ""))
    return sequence("normalizers", steps)


def by_metaspace(spec: NormalizerSpec) -> bool:
    """Whether the pre-tokenizer Metaspace puts the dummy prefix in front."""
    prefix = spec.add_dummy_prefix and not spec.suffix
    return prefix and spec.escape_whitespaces and not spec.prefix_before_space


def metaspace_of(after_special: bool) -> Json:
    """Return the pre-tokenizer Metaspace, which also escapes spaces.

    `after_special` says whether text after a special token gets a prefix.
    """
    scheme = "always" if after_special else "first"
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": False}


def normalized(spec: NormalizerSpec, text: str) -> str:
    """Return a text as sentencepiece rewrites it, if there is no charsmap and it has no user-defined pieces.

    >>> normalized(NormalizerSpec(), "  a   b ▁")
    '▁a▁b'
    """
    space = SPACE if spec.escape_whitespaces else " "
    if spec.remove_extra_whitespaces:
        text = re.sub(" {2,}", " ", text.lstrip(" "))
    if not text:
        return ""
    if spec.add_dummy_prefix and not spec.suffix:
        has_space = not spec.prefix_before_space and text.startswith((" ", space))
        text = text if has_space else " " + text
    text = text.replace(" ", space)
    if spec.remove_extra_whitespaces:
        text = text.rstrip(space)
    return text + space if spec.add_dummy_prefix and spec.suffix else text


# --- The decoder ----------------------------------------------------------------------------------


def drops_space(spec: NormalizerSpec) -> bool:
    """Whether decoding drops a space at the beginning."""
    return spec.add_dummy_prefix or spec.remove_extra_whitespaces


def decoder_of(
    spec: NormalizerSpec, byte_fallback: bool, surface: tuple[str, str] | None, has_hidden: bool, unused: str
) -> Json:
    """Return the decoder. `surface` is the name of the UNKNOWN token and the text that it is decoded to;
    `unused` is a character that no token contains.

    With byte fallback, this is the usual decoder of Llama's files, whose last step removes one space: the ids
    of a text with a dummy prefix always begin with a U+2581. Without byte fallback, they may begin with the
    text of the UNKNOWN token, from which nothing must be removed.
    """
    steps: list[Json] = []
    if has_hidden:
        steps.append(replace_regex(r"\A\x00", ""))
    if surface is not None:
        steps.append(replace_regex(rf"\A{escaped(surface[0])}\z", surface[1].replace(SPACE, unused)))
    fallback: list[Json] = [{"type": "ByteFallback"}] if byte_fallback else []
    fuse: Json = {"type": "Fuse"}
    if not drops_space(spec):
        steps += [replace_text(SPACE, " "), *fallback, fuse]
    elif byte_fallback and spec.escape_whitespaces and not spec.remove_extra_whitespaces:
        strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        steps += [replace_text(SPACE, " "), *fallback, fuse, strip]
    else:
        # With remove_extra_whitespaces, every token loses a space until there is text.
        dropped = rf"\A{SPACE}+" if spec.remove_extra_whitespaces else rf"\A{SPACE}"
        inner = replace_regex(rf"(?<!\A){SPACE}", " ")
        steps += [inner, *fallback, fuse, replace_regex(dropped, ""), replace_text(SPACE, " ")]
    if surface is not None and SPACE in surface[1]:
        steps.append(replace_text(unused, SPACE))
    return {"type": "Sequence", "decoders": steps}


# --- Charsmaps ------------------------------------------------------------------------------------
#
# sentencepiece replaces the longest text for which there is a rule. The other library goes from one
# user-perceived character to the next, and looks up each that has fewer than six bytes as a whole. If a rule
# matches only its beginning, all of it is replaced: an accent after a letter that has a rule is lost.

_ACCENT = "\u0323"
"""A combining mark that occurs in few rules: a dot below."""


def precompiled(charsmap: bytes) -> Json:
    """Return the step that holds a charsmap. The library cannot load one whose replacements are not UTF-8."""
    try:
        charsmap[4 + int.from_bytes(charsmap[:4], "little") :].decode()
    except UnicodeDecodeError:
        raise ConversionError(
            "some rules of the normalizer make text that is not UTF-8, which tokenizers cannot load; "
            "there is no tokenizer.json for this model"
        ) from None
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()}


def charsmap_of(step: Json) -> bytes | None:
    """Return the charsmap that a step holds, or None if it cannot be read."""
    try:
        return b64decode(step["precompiled_charsmap"], validate=True)
    except (Error, KeyError, TypeError, ValueError):
        return None


def lost_accent(blob: bytes, known: frozenset[str]) -> str | None:
    """Return a letter that has a rule, with an accent that the other library loses; None if there is none.

    The replacement of the letter must end in a character that is `known`. Otherwise the accent would not
    show, because two unknown characters side by side are one token.
    """
    charsmap = Charsmap(blob, trusted=True)
    accent = _ACCENT.encode()
    if charsmap.longest(accent, 0) is not None:
        return None
    for code in range(0xA0, 0x10000):
        letter = chr(code)
        if unicodedata.category(letter) not in ("Lu", "Ll", "Lo", "No") or 0x1100 <= code < 0x1200:
            continue
        data = letter.encode()
        rule = charsmap.longest(data + accent, 0)
        if rule is None or rule[1] != len(data):
            continue
        rewritten = rule[0].decode(errors="replace")
        if rewritten[-1:] in known and not rewritten[-1:].isspace():
            return letter + _ACCENT
    return None


# --- User-defined pieces --------------------------------------------------------------------------
#
# sentencepiece looks for these pieces in the normalized text, the longest first, and merges nothing across
# them. In the other library, `Split` cuts the normalized text, and with `ignore_merges` a part that is a
# token becomes that token. So a first Split isolates the pieces. (Added tokens would not do: they are looked
# for before the dummy prefix is there, or, if they are to be normalized, with a prefix of their own.)
#
# But with `ignore_merges`, other tokens that no merge makes, such as `<0x41>`, would become tokens, too, when
# their text stands alone between two user-defined pieces. So a second Split cuts such a text at a place where
# nothing is merged anyway.


def splits_of(pieces: Iterable[str], cuts: Mapping[str, int]) -> list[Json]:
    """Return the pre-tokenizers that isolate user-defined pieces, and that cut texts at the given places."""
    pieces = sorted(pieces)
    if not pieces:
        return []
    steps = [split_at(_alternatives(pieces))]
    if cuts:
        parts = (rf"{escaped(text[:at])}(?={escaped(text[at:])}\z)" for text, at in sorted(cuts.items()))
        steps.append(split_at(rf"\A(?:{'|'.join(parts)})"))
    return steps


def split_at(pattern: str) -> Json:
    """Return the pre-tokenizer that makes words of the matches of a pattern, and of the text between them."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _alternatives(words: list[str], depth: int = 0) -> str:
    r"""Return a regular expression that matches the longest of sorted words. It has common beginnings once:
    a plain list of 16,000 alternatives takes 85 times as long to search for.

    >>> _alternatives(["a.", "a.bc", "a.bd"])
    'a\\.(?:b(?:c|d))?'
    """
    if depth > _MOST_NESTED:
        raise ConversionError(
            f"there is no tokenizer.json for this model: more than {_MOST_NESTED} of its USER_DEFINED pieces "
            f"begin alike, each with a bit more than the one before"
        )
    first, last = words[0], words[-1]
    alike = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = first[:alike]
    rest = [word[len(start) :] for word in words if len(word) > len(start)]
    if not rest:
        return escaped(start)
    groups = [list(group) for _, group in groupby(rest, lambda word: word[0])]
    inner = "|".join(_alternatives(group, depth + 1) for group in groups)
    optional = "?" if len(rest) < len(words) else ""
    return f"{escaped(start)}(?:{inner}){optional}" if len(groups) > 1 or optional else escaped(start) + inner


def pieces_of(steps: Sequence[Any]) -> list[str] | None:
    """Return the user-defined pieces that pre-tokenizers of `splits_of` isolate; None if they are others."""
    first = steps[0] if steps else None
    if not isinstance(first, dict) or first.get("type") != "Split":
        return None
    pattern = first["pattern"].get("Regex") if isinstance(first.get("pattern"), dict) else None
    if not isinstance(pattern, str):
        return None
    words = _words(pattern)
    return words if words and _alternatives(sorted(words)) == pattern else None


_WORD = re.compile(r"\(\?:|\||\)\??|(?:\\.|[^\\()|]|\((?!\?:))+", re.DOTALL)
"""A part of a pattern that `_alternatives` returns: a bracket, a bar, or text between them."""
_MOST_NESTED = 200
"""How deep its groups may be nested. (A piece with more others as its beginnings would never be found.)"""
_MOST_TEXT = 1 << 22
"""How many characters its words may have together."""


def _words(pattern: str) -> list[str] | None:
    """Return the words from which `_alternatives` makes this pattern; None if it makes no such pattern."""
    # The finished alternatives of the group that is open, and the one being read; those of the groups around.
    done: list[str] = []
    current = [""]
    around: list[tuple[list[str], list[str]]] = []
    for part in _WORD.findall(pattern):
        if part == "(?:":
            if len(around) == _MOST_NESTED:
                return None
            around.append((done, current))
            done, current = [], [""]
        elif part == "|":
            done += current
            current = [""]
        elif part[0] == ")":
            if not around:
                return None
            inner = done + current + [""] * (part == ")?")
            done, current = around.pop()
            if len(current) * sum(map(len, inner)) + len(inner) * sum(map(len, current)) > _MOST_TEXT:
                return None
            current = [word + tail for word in current for tail in inner]
        else:
            text = unescaped(part)
            current = [word + text for word in current]
    words = done + current
    return words if not around and "" not in words else None


# --- Reading --------------------------------------------------------------------------------------

_ESCAPE = replace_text(" ", SPACE)
UNESCAPE = replace_text(SPACE, " ")
_DOUBLE = replace_regex(rf"\A{SPACE}", SPACE * 2)


@dataclass
class Steps:
    """The normalizer and pre-tokenizer of a file, as options."""

    normalizer: NormalizerSpec
    """The options."""
    user_defined: frozenset[str] | None = None
    """The pieces that the pre-tokenizer isolates; None if it isolates none."""
    isolating: list[Json] = field(default_factory=list)
    """The steps that isolate them."""
    normalizes: bool = False
    """Whether the file has a normalizer. (Its pre-tokenizer may rewrite text, too.)"""
    in_two_steps: bool = False
    """Whether its normalizer and its pre-tokenizer each do a part of putting the prefix in front."""
    splits: bool = False
    """Whether the file cuts texts before every U+2581, so that nothing is merged across this place."""
    options: dict[str, bool] = field(default_factory=dict)
    """The options that the file asks for, as in `Carried.options`."""
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_steps(content: Json) -> Steps:
    """Read the normalizer and the pre-tokenizer of a file; a ModelError if a model cannot have them."""
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
    elif splits:
        at_spaces = all(  # of which there are none any more if they are escaped
            step.get("type") == "Split" and step.get("pattern") == {"String": " "} and not step.get("invert")
            for step in splits
        )
        if not at_spaces or not found.normalizer.escape_whitespaces:
            _cannot("pre-tokenizer", pre_tokenizers)
    found.normalizer = replace(
        found.normalizer, charsmap=charsmap, name="precompiled" if charsmap else "identity"
    )
    found.normalizes = bool(content.get("normalizer"))
    # The decoder joins all tokens, special ones too, so it drops a space only at the very beginning.
    if drops_space(found.normalizer):
        found.options[KEEPS_SPACE] = True
    found.differences += differences
    return found


def _spaces(steps: list[Json]) -> NormalizerSpec:  # noqa: RET503 (`_cannot` raises an error)
    """Return the options for which `normalizer_of` returns these steps."""
    given = steps
    prepend = {"type": "Prepend", "prepend": SPACE}
    if steps == [_ESCAPE, prepend]:  # the order of these two makes no difference
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
    """Read the pre-tokenizer Metaspace. It escapes spaces, and puts a prefix in front unless one is there."""
    if step.get("replacement") != SPACE:
        _cannot("pre-tokenizer", [step])
    scheme = step.get("prepend_scheme")
    if scheme is None:
        scheme = "always" if step.get("add_prefix_space", True) else "never"
    if scheme not in ("always", "first", "never"):
        wrong(f"pre_tokenizer.prepend_scheme must be always, first or never, and is {shown(scheme)}")
    # A normalizer that doubles the first space, and then Metaspace, together do what sentencepiece does: a
    # text that begins with a space gets a second one.
    is_doubled = scheme == "always" and normalizers[-1:] == [_DOUBLE]
    rules = _spaces((normalizers[:-1] if is_doubled else normalizers) or [_ESCAPE])
    if not rules.escape_whitespaces or rules.suffix or (is_doubled and rules.add_dummy_prefix):
        _cannot("normalizer (before Metaspace)", normalizers)
    found = Steps(rules, splits=step.get("split", True) is not False)
    if is_doubled:
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
    elif scheme == "always":
        # Prepend and Metaspace together put one prefix in front of a text. But Metaspace also puts one after
        # each token that is looked for in normalized text.
        found.in_two_steps = True
    return found


def _cannot(what: str, steps: list[Json]) -> NoReturn:
    patterns = (f" of {shown(step['pattern'])}" if "pattern" in step else "" for step in steps)
    named = ", ".join(step["type"] + pattern for step, pattern in zip(steps, patterns, strict=True))
    named = named or "nothing"
    if any(step["type"] in FORMS for step in steps):
        wrong(
            f"its {what} is {named}, which brings any number of accents into order ('a\\u0301\\u0323' "
            f"becomes '\\u1ea1\\u0301'); a list of replacements, as models of characters have, cannot do that"
        )
    wrong(f"its {what} is {named}; SentencePiece BPE cannot do that")


def unknown_surface(content: Json, unknown: str | None, is_special: bool, byte_fallback: bool) -> bytes:
    """Return the text that the UNKNOWN token is decoded to."""
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
