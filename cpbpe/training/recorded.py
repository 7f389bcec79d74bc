"""What a model file records of its training, and the file itself.

sentencepiece stores the options that were given, as they were given. `Recorded` holds those, so that
equal options give an equal file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpbpe.engine.training import Learned
from cpbpe.training.model_build import Built, build
from cpbpe.training.options import TrainOptions
from cpbpe.training.rules import charsmap_of, denormalizer_charsmap_of

NORMALIZER_FIELDS = ("name", "add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
"""Options that are stored with the normalizer, under these names."""


@dataclass(frozen=True)
class Recorded:
    """The fields that a model file sets, by the names that they have there."""

    trainer: Mapping[str, Any] = field(default_factory=dict)
    """Those of trainer_spec; vocab_size is set anew for the model at hand."""
    normalizer: Mapping[str, Any] = field(default_factory=dict)
    """Those of normalizer_spec, with its name and its charsmap."""
    denormalizer: Mapping[str, Any] | None = None
    """Those of denormalizer_spec, if there is one."""

    @classmethod
    def of(cls, options: TrainOptions) -> Recorded:
        """What a model says that was trained with these options."""
        given = options.sentencepiece_options()
        rules = bool(options.normalization_rules or options.normalization_rule_tsv)
        given.pop("normalization_rule_name", None)
        normalizer: dict[str, Any] = {
            "name": "user_defined" if rules else options.normalization_rule_name,
            "precompiled_charsmap": charsmap_of(options),
        }
        for name in (*NORMALIZER_FIELDS, "normalization_rule_tsv"):
            if name in given:
                normalizer[name] = given.pop(name)
        denormalizer: dict[str, Any] | None = None
        charsmap = denormalizer_charsmap_of(options)
        if charsmap is not None:
            denormalizer = {
                "name": "user_defined",
                "precompiled_charsmap": charsmap,
                "add_dummy_prefix": False,
                "remove_extra_whitespaces": False,
                "escape_whitespaces": False,
            }
            if options.denormalization_rule_tsv:
                denormalizer["normalization_rule_tsv"] = given.pop("denormalization_rule_tsv")
        return cls(given, normalizer, denormalizer)


def build_model(options: TrainOptions, recorded: Recorded, learned: Learned) -> Built:
    """The model for what was learned, cut to the options' vocab_size."""
    trainer = dict(recorded.trainer)
    if "vocab_size" in trainer:
        trainer["vocab_size"] = options.vocab_size
    return build(
        learned,
        vocab_size=options.vocab_size,
        special_pieces=options.special_pieces(),
        trainer=trainer,
        normalizer=recorded.normalizer,
        denormalizer=recorded.denormalizer,
        auto_character_coverage=options.auto_character_coverage,
    )
