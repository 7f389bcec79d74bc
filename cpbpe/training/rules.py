"""The charsmaps of options: normalization rules that they give by name, as a file, or as pairs of text."""

from __future__ import annotations

from cpbpe.errors import TrainingError
from cpbpe.spelling import named
from cpbpe.training.options import Rules, TrainOptions


def charsmap_of(options: TrainOptions) -> bytes:
    """The charsmap of the normalizer; empty for the identity.

    >>> charsmap_of(TrainOptions())
    b''
    """
    if options.normalization_rules:
        return _from_pairs("normalization_rules", options.normalization_rules)
    if options.normalization_rule_tsv:
        return charsmap_of_file("normalization_rule_tsv", options.normalization_rule_tsv)
    if options.normalization_rule_name == "identity":
        return b""
    from cpbpe.text.rule_charsmaps import rule_charsmap

    return rule_charsmap(options.normalization_rule_name)


def denormalizer_charsmap_of(options: TrainOptions) -> bytes | None:
    """The charsmap of the denormalizer, or None if there is none."""
    if options.denormalization_rules:
        return _from_pairs("denormalization_rules", options.denormalization_rules)
    if options.denormalization_rule_tsv:
        return charsmap_of_file("denormalization_rule_tsv", options.denormalization_rule_tsv)
    return None


def charsmap_of_file(option: str, path: str) -> bytes:
    """The charsmap of the rules in a file. Errors name the file and the line."""
    from cpbpe.text.charsmap_build import charsmap_from_tsv

    with open(path, "rb") as file:
        data = file.read()
    try:
        # Rules are written in ASCII. Invalid UTF-8 does no harm in a comment, and is no rule elsewhere.
        return charsmap_from_tsv(data.decode(errors="replace"))
    except ValueError as error:
        hint = ""
        if b"\0" in data[:64]:
            hint = "; the file looks like UTF-16, so convert it to UTF-8 first"
        elif data.startswith(b"\xef\xbb\xbf"):
            hint = "; the file begins with a byte order mark, so save it without one"
        raise TrainingError(f"{named(option)}: {path}: {error}{hint}") from error


def _from_pairs(option: str, rules: Rules) -> bytes:
    from cpbpe.text.charsmap_build import charsmap_from_rules

    try:
        return charsmap_from_rules(dict(rules).items())
    except ValueError as error:
        raise TrainingError(f"{named(option)}: {error}") from error
