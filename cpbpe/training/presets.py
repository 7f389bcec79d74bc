"""Which options a preset means: those of the SentencePiece family, or those of byte-level models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.spelling import given, named
from cpbpe.training.byte_level.options import BYTE_NAMES, BYTE_PRESETS, OTHER_NAMES, ByteTrainOptions
from cpbpe.training.options import NAMES, PRESETS, TrainOptions
from cpbpe.training.options_refused import FOREIGN, advice

AnyOptions = TrainOptions | ByteTrainOptions
"""The options of either family."""

ONLY_BYTES = frozenset(BYTE_NAMES) - frozenset(NAMES)
"""Options that only byte-level models have."""


def complete_options(preset: str | AnyOptions, changes: Mapping[str, Any]) -> AnyOptions:
    """A preset, by its name or as options, with some options changed.

    >>> complete_options("gpt2", {"vocab_size": 300}).pattern, complete_options("llama2", {}).vocab_size
    ('gpt2', 32000)
    >>> complete_options("llama9", {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: there is no preset 'llama9'; there are llama2, sentencepiece and lossless, ...
    """
    base = preset
    if isinstance(base, str):
        name = OTHER_NAMES.get(base, base)
        known: Mapping[str, AnyOptions] = {**PRESETS, **BYTE_PRESETS}
        if name not in known:
            raise TrainingError(
                f"there is no preset {base!r}; there are {_listed(PRESETS)}, and for byte-level models "
                f"{_listed(BYTE_PRESETS)}"
            )
        base = known[name]
    if isinstance(base, ByteTrainOptions):
        return base.replace(**changes)
    if not isinstance(base, TrainOptions):
        raise TypeError(f"{named('preset')} must be a name, TrainOptions or ByteTrainOptions, not {base!r}")
    for name in sorted(ONLY_BYTES & changes.keys()):
        way_out = advice(name, NAMES) if name in FOREIGN else "leave it out"
        raise TrainingError(
            f"{named(name)}: only byte-level models have it, such as those of {given('preset', 'gpt4')}; for "
            f"this one, {way_out}"
        )
    return base.replace(**changes)


def _listed(names: Mapping[str, Any]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
