r"""How spaces are written: the normalizer and the decoder of a tokenizer.json, from the options of a model.

The other library has no options for this, but a list of steps. They are made of four ideas:

- *Prepend* puts U+2581 in front of every text that is not empty, as sentencepiece does. The pre-tokenizer
  *Metaspace* does not, if a space is there already: it is for models with `prefix_before_space` off. Its
  scheme "first" leaves out the prefix after special tokens, "always" does not.
- *Replace* with a regular expression removes spaces at both ends, and makes one of several. sentencepiece
  looks for spaces at the beginning before it escapes them, and at the end afterwards. So at the end it also
  removes a U+2581 that was in the text itself.
- In the decoder, *Replace* sees one token after the other until *Fuse* joins them. So a U+2581 that is not
  the first character of its token can become a space before that; what is left afterwards at the beginning of
  the text is what decoding drops.
- A token whose name begins with NUL is one that must not be found in text (see `names`). The decoder removes
  the NUL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cpbpe.model.spec import NormalizerSpec

Json = dict[str, Any]

SPACE = "▁"
HIDDEN = "\0"
"""What the names of tokens that no text may find begin with."""

_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


def escaped(text: str) -> str:
    r"""A text as a regular expression of the other library.

    >>> escaped("a.b")
    'a\\.b'
    """
    return _META.sub(r"\\\g<0>", text)


def unescaped(pattern: str) -> str:
    r"""The inverse.

    >>> unescaped(escaped("a.\\n"))
    'a.\\n'
    """
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


# --- The normalizer -------------------------------------------------------------------------------


def normalizer_of(spec: NormalizerSpec) -> Json | None:
    """The normalizer for a model's options, without its charsmap; None if there is nothing to do.

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
        steps.append(replace(" ", SPACE))
    if spec.add_dummy_prefix and spec.suffix:
        steps.append(replace_regex(r"(?!\A)\z", space))
        if spec.remove_extra_whitespaces:
            steps.append(replace_regex(rf"{space}+(?={space}\z)", ""))
    elif spec.remove_extra_whitespaces:
        steps.append(replace_regex(rf"{space}+\z", ""))
    return sequence("normalizers", steps)


def by_metaspace(spec: NormalizerSpec) -> bool:
    """Whether the dummy prefix is what the pre-tokenizer Metaspace does."""
    prefix = spec.add_dummy_prefix and not spec.suffix
    return prefix and spec.escape_whitespaces and not spec.prefix_before_space


def metaspace_of(after_special: bool) -> Json:
    """The pre-tokenizer Metaspace, which escapes spaces, too. `after_special`: a prefix also after these."""
    scheme = "always" if after_special else "first"
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": False}


def normalized(spec: NormalizerSpec, text: str) -> str:
    """A text as sentencepiece rewrites it, if there is no charsmap and nothing user-defined in it.

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
    """The decoder. `surface` is the UNKNOWN token with its text; `unused` is a character of no token.

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
        steps += [replace(SPACE, " "), *fallback, fuse]
    elif byte_fallback and spec.escape_whitespaces and not spec.remove_extra_whitespaces:
        strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        steps += [replace(SPACE, " "), *fallback, fuse, strip]
    else:
        # With remove_extra_whitespaces, one is dropped from every token until there is text.
        dropped = rf"\A{SPACE}+" if spec.remove_extra_whitespaces else rf"\A{SPACE}"
        inner = replace_regex(rf"(?<!\A){SPACE}", " ")
        steps += [inner, *fallback, fuse, replace_regex(dropped, ""), replace(SPACE, " ")]
    if surface is not None and SPACE in surface[1]:
        steps.append(replace(unused, SPACE))
    return {"type": "Sequence", "decoders": steps}


# --- Steps ----------------------------------------------------------------------------------------


def replace(text: str, by: str) -> Json:
    """A step that replaces a text."""
    return {"type": "Replace", "pattern": {"String": text}, "content": by}


def replace_regex(pattern: str, by: str) -> Json:
    """A step that replaces what a regular expression matches."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": by}


def sequence(name: str, steps: Sequence[Json]) -> Json | None:
    """Several steps as one; a single one as it is."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", name: list(steps)}
