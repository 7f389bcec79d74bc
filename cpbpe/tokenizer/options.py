"""The options that ways of encoding share, and ways of decoding. What they mean is told by `Tokenizer`.

They are passed on as they came (`**options`), because Python looks up the default of every keyword-only
parameter in every call, and so many of them took a third of the time of a short text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from cpbpe.tokenizer.checks import Random, checked_random
from cpbpe.tokenizer.special_tokens import Allowed, Disallowed


class StretchOptions(TypedDict, total=False):
    """What every way of encoding takes."""

    prefix_space: bool | None
    allowed_special: Allowed
    disallowed_special: Disallowed
    prefix_after_special: bool


class EncodeOptions(StretchOptions, total=False):
    """And what those take that give ids in one sequence."""

    add_bos: bool
    add_eos: bool
    reverse: bool


class SampleOptions(EncodeOptions, total=False):
    """And those that can sample."""

    alpha: float
    seed: int | None


class DecodeOptions(TypedDict, total=False):
    """What every way of decoding takes."""

    skip_special_tokens: bool | None
    keep_prefix_space: bool
    prefix_after_special: bool


STRETCH = ("prefix_space", "allowed_special", "disallowed_special", "prefix_after_special")
ENCODE = ("add_bos", "add_eos", "reverse", *STRETCH)
SAMPLE = (*ENCODE, "alpha", "seed")
DECODE = ("skip_special_tokens", "keep_prefix_space", "prefix_after_special")


def check_names(options: Mapping[str, object], method: str, known: tuple[str, ...]) -> None:
    """Refuse what is no option, as Python does with other parameters."""
    for name in options:
        if name not in known:
            raise TypeError(f"{method}() has no option {name!r}; it has {', '.join(known)}")


def random_of(options: SampleOptions) -> Random | None:
    """How to sample, if that is wanted."""
    alpha = options.get("alpha", 0.0)
    return checked_random(alpha, options.get("seed")) if alpha else None
