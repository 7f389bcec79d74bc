"""What a model file records about its training: the options that were given, and the charsmaps of rules.

sentencepiece stores options as they were given. Equal options give an equal file, byte for byte. Paths are
recorded only if `record_paths` asks for them: they say more about a machine than most people mean to publish.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.lazy import importing
from cpbpe.model.spec import ModelSpec, Settings
from cpbpe.spelling import named
from cpbpe.training.corpus import Corpus
from cpbpe.training.options import TrainOptions

_NORMALIZER_FIELDS = ("add_dummy_prefix", "remove_extra_whitespaces", "normalization_rule_tsv")
"""Options that are stored with the normalizer, under these names."""


def settings_of(options: TrainOptions) -> Settings:
    """The settings of a model that was trained with these options. Files of rules are read only here.

    >>> settings_of(TrainOptions(vocab_size=500)).trainer["vocab_size"]
    500
    """
    trainer = options.sentencepiece_options()
    trainer.pop("normalization_rule_name", None)
    name, charsmap = "user_defined", _charsmap_of_rules(options, "normalization")
    if charsmap is None:
        name, charsmap = options.normalization_rule_name, b""
        if name != "identity":
            with importing:
                from cpbpe.text.charsmap import rule_charsmap
            charsmap = rule_charsmap(name)
    normalizer: dict[str, Any] = {"name": name, "precompiled_charsmap": charsmap}
    for option in _NORMALIZER_FIELDS:
        if option in trainer:
            normalizer[option] = trainer.pop(option)
    denormalizer = None
    charsmap = _charsmap_of_rules(options, "denormalization")
    if charsmap is not None:
        trainer.pop("denormalization_rule_tsv", None)
        denormalizer = denormalizer_settings(charsmap, options.denormalization_rule_tsv)
    return Settings(trainer, normalizer, denormalizer)


def denormalizer_settings(charsmap: bytes, tsv: str = "") -> dict[str, Any]:
    """The settings of a denormalizer with this charsmap; `tsv` is the file that its rules came from."""
    fields: dict[str, Any] = {
        "name": "user_defined",
        "precompiled_charsmap": charsmap,
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "escape_whitespaces": False,
    }
    return {**fields, "normalization_rule_tsv": tsv} if tsv else fields


def with_input(settings: Settings, corpus: Corpus) -> Settings:
    """The settings with the files of the corpus, as sentencepiece records its option input."""
    if not corpus.files or "-" in corpus.files:
        raise TrainingError(
            f"{named('record_paths')} needs a corpus of files, and this one has no paths; leave it out, or "
            f"give paths"
        )
    fields: dict[str, Any] = {"input": [_unicode(path) for path in corpus.files]}
    if all(corpus.format_of(path) == "tsv" for path in corpus.files):
        fields["input_format"] = "tsv"  # sentencepiece does not detect the format
    return replace(settings, trainer={**settings.trainer, **fields})


def with_prefix(spec: ModelSpec, prefix: str) -> ModelSpec:
    """The model with the name under which it is saved, as sentencepiece records its option model_prefix."""
    trainer = {**spec.settings.trainer, "model_prefix": _unicode(prefix)}
    return replace(spec, settings=replace(spec.settings, trainer=trainer))


def _unicode(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise TrainingError(
            f"{named('record_paths')}: the path {path!r} is not valid Unicode, so no model can record it; "
            f"rename it"
        ) from None
    return path


# --- Charsmaps ------------------------------------------------------------------------------------


def _charsmap_of_rules(options: TrainOptions, kind: str) -> bytes | None:
    """The charsmap of the rules that were given as pairs or as a file; None if there are none.

    `kind` is "normalization" or "denormalization".
    """
    if rules := getattr(options, f"{kind}_rules"):
        with importing:
            from cpbpe.text.charsmap_build import charsmap_from_rules
        try:
            return charsmap_from_rules(rules)
        except ValueError as error:
            raise TrainingError(f"{named(f'{kind}_rules')}: {error}") from error
    path = getattr(options, f"{kind}_rule_tsv")
    return charsmap_of_file(f"{kind}_rule_tsv", path) if path else None


def charsmap_of_file(option: str, path: str) -> bytes:
    """The charsmap of the rules in a file. Errors name the file and the line."""
    with importing:
        from cpbpe.text.charsmap_build import charsmap_from_tsv

    with open(path, "rb") as file:
        data = file.read()
    try:
        # Rules are written in ASCII. Invalid UTF-8 does no harm in a comment, and is an error elsewhere.
        return charsmap_from_tsv(data.decode(errors="replace"))
    except ValueError as error:
        hint = ""
        if b"\0" in data[:64]:
            hint = "; the file looks like UTF-16, so convert it to UTF-8 first"
        elif data.startswith(b"\xef\xbb\xbf"):
            hint = "; the file begins with a byte order mark, so save it without one"
        raise TrainingError(f"{named(option)}: {path}: {error}{hint}") from error
