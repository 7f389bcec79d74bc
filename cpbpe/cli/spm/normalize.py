"""``cpbpe spm normalize``: what spm_normalize does."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import Block, check_output, files_of, transformed, write
from cpbpe.lazy import imported
from cpbpe.tokenizer.loading import load

PROGRAM = Program(
    "normalize",
    "Normalizes lines, with the rules of a model, with named rules or with rules of a file. Without files "
    "it reads the standard input.",
    "normalize (--model=FILE | --normalization_rule_name=NAME) [FILE ...]",
    (
        Flag("model", "string", "", "the model"),
        Flag(
            "use_internal_normalization",
            "bool",
            False,
            "do all that happens to a text before it is cut into pieces: also write spaces as U+2581, and "
            "put one in front",
        ),
        Flag(
            "normalization_rule_name",
            "string",
            "",
            "the name of rules: identity, nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf",
        ),
        Flag("normalization_rule_tsv", "string", "", "a file of rules"),
        Flag("remove_extra_whitespaces", "bool", True, "drop spaces at the ends, and all but one of several"),
        Flag("decompile", "bool", False, "write the rules as such a file, instead"),
        Flag("input", "string", "", "the file to normalize; several are given as arguments, without a flag"),
        Flag("output", "string", "", "the file to write, instead of the standard output"),
    ),
    "Of a model, of a file of rules and of a name, the first that is given counts.\n",
)

_BREAKS = re.compile("[\b\v\f\n\r]")


def run(given: Given) -> None:
    """Normalize as the flags say."""
    flags = given.flags
    files = files_of(flags["input"], given.files)
    check_output(flags["output"], [flags["model"], flags["normalization_rule_tsv"], *files])
    try:
        normalizer = _normalizer(flags)
        if flags["decompile"]:
            write(flags["output"], [b"".join(map(_rule, normalizer.decompile()))])
            return
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    write(flags["output"], transformed(files, partial(_normalized, normalizer)))


def _normalizer(flags: Any) -> Any:
    source: dict[str, Any]
    if flags["model"]:
        source = {"model_proto": load(flags["model"]).to_bytes()}
    elif flags["normalization_rule_tsv"]:
        source = {"rule_tsv": flags["normalization_rule_tsv"]}
    elif flags["normalization_rule_name"]:
        source = {"rule_name": flags["normalization_rule_name"]}
    else:
        raise ValueError(
            "there are no rules; give --model, --normalization_rule_tsv or --normalization_rule_name"
        )
    if not flags["use_internal_normalization"]:
        source["add_dummy_prefix"] = source["escape_whitespaces"] = False
        source["remove_extra_whitespaces"] = flags["remove_extra_whitespaces"]
    return imported("cpbpe.compat.sentencepiece").SentencePieceNormalizer(**source)


def _normalized(normalizer: Any, block: Block) -> bytes:
    lines = normalizer.normalize(block.lines)
    lines.append(b"")
    return b"\n".join(lines)


def _rule(rule: tuple[str, str]) -> bytes:
    """A rule as a line: code points, and the characters in a comment."""
    points = (" ".join(f"{ord(character):X}" for character in text) for text in rule)
    line = "\t".join([*points, f"# {rule[0]} => {rule[1]}"])
    return f"{_BREAKS.sub(' ', line)}\n".encode()
