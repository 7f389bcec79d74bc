r"""How a byte-level tokenizer.json cuts texts: its pre-tokenizers as patterns, and back.

The library's steps cut one after the other, as the patterns of a `SplitSpec` do. `ByteLevel` comes last: it
writes every byte as a letter (see `cpbpe.text.byte_letters`), and may cut by GPT-2's pattern itself.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

from cpbpe.errors import ConversionError
from cpbpe.lazy import imported
from cpbpe.model.formats.tokenizer_json.checked import member, shown, typed, wrong
from cpbpe.model.formats.tokenizer_json.patterns import (
    PatternError,
    escaped_character,
    from_theirs,
    to_theirs,
)
from cpbpe.model.formats.tokenizer_json.punctuation import punctuation
from cpbpe.model.formats.tokenizer_json.spaces import Json, escaped, sequence
from cpbpe.model.spec import ModelSpec, SplitSpec
from cpbpe.text.split_patterns import PATTERNS, name_of

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern that ByteLevel has, unless `use_regex` is off."""
_NUMBERS = r"\p{N}𑷠-𑷩𖿴-𖿶"
"""What Digits takes for numbers: two more sets of digits, which are new in Unicode 17."""
_OURS = MappingProxyType(
    {to_theirs(pattern): pattern for pattern in PATTERNS.values()} | {GPT2: PATTERNS["gpt2"]}
)
"""The named patterns by what they are in files."""
_TAKES_ALL = frozenset(_OURS)
"""Patterns that match every text from its beginning to its end."""


# --- Reading --------------------------------------------------------------------------------------


def splitter_of(steps: list[Json]) -> SplitSpec | None:
    """The patterns of pre-tokenizers, the last of which is ByteLevel."""
    patterns: list[str] = []
    for step in steps[:-1]:
        patterns += _patterns_of(step)
    if member(steps[-1], "use_regex", bool, "pre_tokenizer", True):
        patterns.append(PATTERNS["gpt2"])
    if not patterns:
        return None
    first, *then = patterns
    return SplitSpec(first, name_of(first), tuple(then))


def _patterns_of(step: Json) -> list[str]:  # noqa: RET503 (`wrong` raises an error)
    kind = step["type"]
    if kind == "Digits":
        each = member(step, "individual_digits", bool, "pre_tokenizer.Digits", False)
        return [f"[{_NUMBERS}]" if each else f"[{_NUMBERS}]+"]
    if kind == "Split":
        return [_split(step)]
    if kind == "Punctuation":
        behavior = member(step, "behavior", str, "pre_tokenizer.Punctuation", "Isolated")
        if behavior not in PUNCTUATION:
            wrong(
                f"its pre-tokenizer has Punctuation with the behavior {shown(behavior)}; cpbpe knows "
                f"{', '.join(PUNCTUATION)}"
            )
        return [_punctuation(behavior)]
    if kind == "ByteLevel":
        wrong("its pre-tokenizer has ByteLevel twice, or goes on after it, where bytes are letters already")
    wrong(
        f"its pre-tokenizer has {kind}, and cpbpe knows Split, Digits, Punctuation and ByteLevel in "
        f"byte-level models"
    )


def _split(step: Json) -> str:  # noqa: RET503 (likewise)
    """The pattern of a Split: its matches are chunks, and so is what is between them."""
    given = member(step, "pattern", dict, "pre_tokenizer.Split")
    behavior = member(step, "behavior", str, "pre_tokenizer.Split")
    inverted = member(step, "invert", bool, "pre_tokenizer.Split", False)
    if set(given) == {"String"}:
        text = typed(given["String"], str, "pre_tokenizer.Split.pattern.String")
        known, pattern = False, escaped(text)
    elif set(given) == {"Regex"}:
        text = typed(given["Regex"], str, "pre_tokenizer.Split.pattern.Regex")
        known = text in _TAKES_ALL
        pattern = _from_theirs(text) if text else ""
    else:
        wrong(f"the pattern of a Split must be a String or a Regex, and is {shown(given)}")
    if not pattern:
        wrong("the pattern of a Split is empty")
    if behavior == "Isolated" or (behavior == "Removed" and inverted and known):
        return pattern
    if behavior == "Removed":
        what = "between the matches" if inverted else "that matches"
        wrong(f"a Split of {shown(text)} removes what is {what} from texts, and byte-level models keep all")
    if "String" in given and not inverted:
        if len(text) == 1 and behavior in _MERGED:
            return _MERGED[behavior].format(escaped_character(text))
        if behavior in _MERGED_TEXTS:
            return _MERGED_TEXTS[behavior].format(pattern)
    wrong(f"a Split of {shown(text)} has the behavior {shown(behavior)}; cpbpe knows Isolated")


_MERGED = {
    "MergedWithPrevious": "[^{0}]+[{0}]?|[{0}]",
    "MergedWithNext": "[{0}]?[^{0}]+|[{0}]",
    "Contiguous": "[{0}]+",
}
"""What a behavior is for a single character, or for one of several."""
_MERGED_TEXTS = {
    "MergedWithPrevious": r"(?:(?!{0})[\s\S])+(?:{0})?|{0}",
    "MergedWithNext": r"(?:{0})?(?:(?!{0})[\s\S])+|{0}",
    "Contiguous": "(?:{0})+",
}
"""What it is for a text of several."""
PUNCTUATION = ("Isolated", *_MERGED)
"""The behaviors of Punctuation that keep all."""


@cache
def _punctuation(behavior: str) -> str:
    """The pattern of Punctuation."""
    return _MERGED.get(behavior, "[{0}]").format(punctuation())


def is_one_chunk(splitter: SplitSpec | None, text: str) -> bool:
    """Whether a text is not cut."""
    if splitter is None:
        return True
    regex = imported("regex")
    for pattern in (splitter.pattern, *splitter.then):
        found = regex.search(pattern, text)
        if found and found.group() not in ("", text):
            return False
    return True


def _from_theirs(text: str) -> str:
    if text in _OURS:
        return _OURS[text]
    try:
        return from_theirs(text)
    except PatternError as error:
        wrong(f"the pattern {shown(text)} of its pre-tokenizer has {error}")


# --- Writing --------------------------------------------------------------------------------------


def is_only_step(splitter: SplitSpec | None) -> bool:
    """Whether ByteLevel cuts texts alone."""
    return splitter is None or (not splitter.then and splitter.pattern in (PATTERNS["gpt2"], GPT2))


def pre_tokenizer_of(spec: ModelSpec) -> Json:
    """The pre-tokenizers of a byte-level model. A pattern that cannot be written is a ConversionError."""
    splitter, prefix = spec.splitter, spec.normalizer.add_dummy_prefix
    patterns = () if splitter is None else (splitter.pattern, *splitter.then)
    steps: list[Json] = []
    uses_gpt2 = bool(patterns) and patterns[-1] in (PATTERNS["gpt2"], GPT2)
    for pattern in patterns[: len(patterns) - uses_gpt2]:
        digits = {f"[{_NUMBERS}]": True, f"[{_NUMBERS}]+": False}.get(pattern)
        if digits is not None:
            steps.append({"type": "Digits", "individual_digits": digits})
            continue
        behavior = next((name for name in PUNCTUATION if pattern == _punctuation(name)), None)
        if behavior is not None:
            steps.append({"type": "Punctuation", "behavior": behavior})
            continue
        regex = {"Regex": _to_theirs(pattern)}
        steps.append({"type": "Split", "pattern": regex, "behavior": "Isolated", "invert": False})
    steps.append(
        {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": uses_gpt2}
    )
    made = sequence("pretokenizers", steps)
    assert made is not None
    return made


def _to_theirs(pattern: str) -> str:
    try:
        return to_theirs(pattern)
    except PatternError as error:
        raise ConversionError(
            f"there is no tokenizer.json for this model: its pattern {shown(pattern)} has {error}"
        ) from None
