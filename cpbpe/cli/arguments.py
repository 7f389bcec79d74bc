"""The arguments that commands share: the corpus, and every option of training, grouped for people."""

from __future__ import annotations

import argparse
import csv
import re
from dataclasses import fields
from typing import Any

from cpbpe.training.options import PRESETS, RULE_NAMES, TrainOptions, preset

GROUPS: dict[str, dict[str, str]] = {
    "vocabulary": {
        "hard_vocab_limit": "it is an error when the corpus gives fewer pieces than --vocab-size",
        "character_coverage": "share of the corpus that the vocabulary's characters cover, 0.98 to 1",
        "auto_character_coverage": "choose characters and merges together, for the fewest tokens",
        "required_chars": "characters that are in the vocabulary however rare they are",
        "byte_fallback": "hold the 256 bytes as pieces; characters without a piece become those",
        "control_symbols": "pieces that a program adds, separated by commas, as in '<sep>,<cls>'",
        "user_defined_symbols": "pieces that are always kept whole in text, separated by commas",
    },
    "special pieces": {
        "unk_id": "id of the unknown piece; -1 for none, here and below",
        "bos_id": "id of the piece that begins a text",
        "eos_id": "id of the piece that ends a text",
        "pad_id": "id of the piece that fills a batch",
        "unk_piece": "text of the unknown piece",
        "bos_piece": "text of the piece that begins a text",
        "eos_piece": "text of the piece that ends a text",
        "pad_piece": "text of the piece that fills a batch",
        "unk_surface": "what the unknown piece is decoded to",
    },
    "what a piece may be": {
        "max_sentencepiece_length": "most characters of a piece, 1 to 512",
        "split_by_whitespace": "no piece goes on after a space",
        "split_by_unicode_script": "no piece mixes scripts",
        "split_by_number": "digits are a script of their own",
        "split_digits": "every digit is a piece alone",
        "treat_whitespace_as_suffix": "a space belongs to the word before it",
        "allow_whitespace_only_pieces": "runs of spaces can be pieces",
        "pretokenization_delimiter": "a text that no piece crosses; it disappears in training",
    },
    "normalization": {
        "normalization_rule_name": f"rules by which text is rewritten: {', '.join(RULE_NAMES)}",
        "normalization_rule_tsv": "file with rules instead",
        "denormalization_rule_tsv": "file with rules for decoded text",
        "add_dummy_prefix": "put a space in front of every text",
        "remove_extra_whitespaces": "drop spaces at both ends, and make runs of spaces one",
    },
    "which sentences": {
        "max_sentence_length": "sentences of more bytes are skipped; 0 for no limit",
        "input_sentence_size": "train on this many sentences, more than 100; 0 for all",
        "shuffle_input_sentence": "with --input-sentence-size: sample from all, or take the first",
        "seed": "another number gives another sample",
        "keep_newlines": "the newlines after a line are part of its sentence",
        "keep_reserved": "keep sentences that hold U+2585",
    },
    "files": {
        "vocabulary_output_piece_score": "write scores into the .vocab file",
    },
}
"""The options by group, each with its help."""


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """The corpus, and how it is read."""
    parser.add_argument(
        "corpus",
        nargs="+",
        metavar="CORPUS",
        help="files, directories or globs in quotes; - is the standard input. Names that end in .tsv, .jsonl "
        "or .parquet tell the format; those that end in .gz, .xz, .bz2 or .zst are decompressed",
    )
    reading = parser.add_argument_group("reading")
    reading.add_argument("--format", choices=["text", "tsv", "jsonl", "parquet"], help="format of all files")
    reading.add_argument("--field", default="text", help="field of JSON Lines with the text (default: text)")
    reading.add_argument("--column", default="text", help="column of Parquet with the text (default: text)")
    reading.add_argument(
        "--threads", type=int, metavar="N", help="how many threads to use (default: one for each processor)"
    )
    reading.add_argument(
        "--memory-limit",
        type=_size,
        metavar="SIZE",
        help="what the counts may take in memory, such as 500MB or 4GB; beyond it they go to the disk",
    )
    reading.add_argument(
        "--quiet", "-q", action="store_true", help="print nothing but errors: no progress bar, no report"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """The preset, and every option of `TrainOptions`."""
    parser.add_argument(
        "--preset",
        choices=list(PRESETS),
        default="llama2",
        help="the defaults of the options (default: llama2)",
    )
    kinds = {item.name: str(item.type) for item in fields(TrainOptions)}
    for title, names in GROUPS.items():
        group = parser.add_argument_group(title)
        for name, text in names.items():
            flag = "--" + name.replace("_", "-")
            kind = kinds[name]
            defaults = ", ".join(f"{key}: {_shown(getattr(PRESETS[key], name))}" for key in PRESETS)
            same = len({getattr(options, name) for options in PRESETS.values()}) == 1
            default = f"default: {_shown(getattr(PRESETS['llama2'], name))}" if same else defaults
            shown = f"{text} ({default})".replace("%", "%%")
            settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": shown}
            if kind == "bool":
                group.add_argument(flag, action=argparse.BooleanOptionalAction, **settings)
            elif kind == "Sequence[str]":
                group.add_argument(flag, type=_list, action="extend", metavar="A,B", **settings)
            elif kind == "int":
                group.add_argument(flag, type=int, metavar="N", **settings)
            elif kind == "float":
                group.add_argument(flag, type=float, metavar="X", **settings)
            else:
                group.add_argument(flag, metavar="FILE" if name.endswith("tsv") else "TEXT", **settings)


def options_of(arguments: argparse.Namespace) -> TrainOptions:
    """The options that the arguments stand for."""
    names = [name for group in GROUPS.values() for name in group]
    changes = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    if getattr(arguments, "vocab_size", None) is not None:
        changes["vocab_size"] = arguments.vocab_size
    return preset(arguments.preset).replace(**changes)


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]?)(i?)b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; give one such as 500MB or 4GB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " kmgt".index(match[2] or " "))


def _list(text: str) -> list[str]:
    return next(csv.reader([text])) if text else []


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(value) if value else "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)


def source_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `cpbpe.train` and `WordCounts.build` that say how to read a corpus."""
    return {
        "threads": arguments.threads,
        "progress": False if arguments.quiet else None,
        "memory_limit": arguments.memory_limit,
        "format": arguments.format,
        "field": arguments.field,
        "column": arguments.column,
    }
