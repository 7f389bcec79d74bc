"""The arguments that commands share that encode: every option of encoding, from its table."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Collection
from typing import Any

from cpbpe.cli.flags import flag
from cpbpe.cli.parsing import Parser, number, whole_number
from cpbpe.cli.reading import add_reading
from cpbpe.tokenizer.options import DECODE, ENCODE

_MEANINGS = {
    "allowed_special": "special tokens that become ids where the text spells them out, with commas between "
    "them, or 'all'. Otherwise they are plain text. The longest wins",
    "disallowed_special": "special tokens that the text must not contain, with commas between them, or "
    "'raise': any that is not allowed",
    "alpha": "the chance that a merge is skipped (BPE-dropout)",
    "seed": "with --alpha: equal seeds give equal results. The first text is sampled with this number, the "
    "next with the number after it, and so on",
    "prefix_space": "whether a dummy prefix is put in front of each text; otherwise it is as the model says",
    "prefix_after_special": "whether there is a dummy prefix after a special token, too (default: yes)",
    "skip_special_tokens": "whether special tokens decode to nothing. Otherwise CONTROL pieces do, and added "
    "tokens are shown",
}
"""Meanings that a shell needs in other words than Python does."""


def add_encode_options(parser: Parser, without: Collection[str] = ()) -> None:
    """Every option of encoding, except these."""
    _add(
        parser.add_argument_group("encoding"), {name: ENCODE[name] for name in ENCODE if name not in without}
    )


def add_decode_options(parser: Parser) -> None:
    """Every option of decoding."""
    _add(parser.add_argument_group("decoding"), DECODE)


def encode_options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of encoding that were given."""
    options = {name: getattr(arguments, name) for name in ENCODE if hasattr(arguments, name)}
    for name, word in (("allowed_special", "all"), ("disallowed_special", "raise")):
        if name in options:
            options[name] = word if options[name] == [word] else tuple(options[name])
    return options


def decode_options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of decoding that were given."""
    return {name: getattr(arguments, name) for name in DECODE if hasattr(arguments, name)}


def add_documents(parser: Parser, format_flag: str = "--input-format") -> None:
    """How documents are read."""
    reading = parser.add_argument_group("reading")
    add_reading(reading, ".parquet, .arrow, .tsv or .csv", format_flag, "input_format")
    reading.add_argument(
        "--whole", action="store_true", help="take each text file as one text, newlines included"
    )


def threads_of(arguments: argparse.Namespace) -> int:
    """How many threads to use."""
    from cpbpe.checks import checked_threads, cores

    return cores() if arguments.threads is None else checked_threads(arguments.threads)


def _add(group: Any, table: Any) -> None:
    for name, option in table.items():
        text = _MEANINGS.get(name, option.meaning).replace("%", "%%")
        settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
        if option.annotation.startswith("bool"):
            settings["action"] = argparse.BooleanOptionalAction
        elif option.annotation.startswith("Collection"):
            settings |= {"type": _tokens, "action": "extend", "metavar": "A,B"}
        else:
            settings |= (
                {"type": number, "metavar": "X"}
                if name == "alpha"
                else {"type": whole_number, "metavar": "N"}
            )
        group.add_argument(flag(name), **settings)


def _tokens(text: str) -> list[str]:
    return next(csv.reader([text])) if text else []
