"""The arguments that commands share: the corpus, how it is read, and every option of training."""

from __future__ import annotations

import argparse
import csv
import os
import re
from dataclasses import fields
from textwrap import wrap
from typing import Any

from cpbpe.cli.flags import flag
from cpbpe.cli.output import show_files
from cpbpe.cli.parsing import NotUnderstoodError, Parser, number, one_of, whole_number
from cpbpe.cli.reading import add_reading
from cpbpe.cli.train_flags import OPTIONS
from cpbpe.spelling import spelled
from cpbpe.training.arguments import checked_memory_limit
from cpbpe.training.option_table import BYTE_MEANINGS, GROUPS
from cpbpe.training.options import (
    BYTE_NAMES,
    BYTE_PRESETS,
    ONLY_BYTES,
    OTHER_NAMES,
    PRESETS,
    AnyOptions,
    ByteTrainOptions,
    TrainOptions,
    complete_options,
)


def add_corpus(parser: Parser) -> None:
    """The corpus, and how it is read."""
    parser.add_argument(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="a file, a folder, or a pattern in quotes such as 'data/**/*.txt'; - is the standard input. "
        "Each line is a text of its own. Files named .tsv (a text, a tab, a count), .jsonl, .parquet and "
        ".arrow are read as such, and .csv with --column; those that also end in .gz, .xz, .bz2 or .zst are "
        "decompressed",
    )
    parser.add_argument("--input", action="append", type=_list, help=argparse.SUPPRESS)
    parser.add_argument("--model-type", help=argparse.SUPPRESS)
    reading = parser.add_argument_group("reading")
    add_reading(reading, ".parquet, .arrow or .csv")
    reading.add_argument(
        "--threads",
        type=whole_number,
        metavar="N",
        help="how many threads to use (default: one per processor)",
    )
    reading.add_argument(
        "--memory-limit",
        type=_memory,
        metavar="SIZE",
        help="how much memory the counts may take, such as 500MB or 4GB; the rest goes to temporary files",
    )
    reading.add_argument(
        "--quiet", "-q", action="store_true", help="print nothing but errors: no progress bar, no report"
    )
    reading.add_argument(
        "--verbose", "-v", action="store_true", help="also say which files are read, and which are not"
    )
    reading.add_argument("--json", action="store_true", help="print the report as JSON")


def add_options(parser: Parser) -> None:
    """The preset, and every option of `TrainOptions` that is not a function."""
    parser.add_argument(
        "--preset",
        type=one_of([*PRESETS, *BYTE_PRESETS, *OTHER_NAMES]),
        metavar="NAME",
        help="where the options that are not given come from: llama2 (the default), sentencepiece (the "
        "defaults of spm_train) or lossless (decoding gives back every text); for a byte-level model: "
        f"{', '.join(BYTE_PRESETS)}",
    )
    kinds = {item.name: str(item.type) for item in fields(TrainOptions)}
    for title, group in GROUPS.items():
        section = parser.add_argument_group(title)
        for name, (meaning, _) in group.items():
            if name in OPTIONS:
                text = f"{spelled(meaning)} (default: {_default(name)})".replace("%", "%%")
                kind = kinds[name]
                settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
                settings |= _KINDS[kind]
                if kind != "bool":
                    settings["metavar"] = "FILE" if name.endswith("tsv") else _METAVARS[kind]
                section.add_argument(flag(name), **settings)
    _add_byte_options(parser)


def _add_byte_options(parser: Parser) -> None:
    """The options that only byte-level models have."""
    kinds = {item.name: str(item.type) for item in fields(ByteTrainOptions)}
    about = (
        f"Options of the presets {', '.join(BYTE_PRESETS)}. They have these of those above, too: "
        f"{', '.join(flag(name) for name in BYTE_NAMES if name not in ONLY_BYTES)}. A text file is one text "
        f"there."
    )
    section = parser.add_argument_group("byte-level models", "\n  ".join(wrap(about, 75)))
    for name in (name for name in BYTE_NAMES if name in ONLY_BYTES):
        values = [getattr(options, name) for options in BYTE_PRESETS.values()]
        same = all(value == values[0] for value in values)
        usual = f"default: {_shown(values[0])}" if same else "the default depends on the preset"
        text = f"{spelled(BYTE_MEANINGS[name].meaning)} ({usual})".replace("%", "%%")
        settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
        settings |= _KINDS[kinds[name]]
        if kinds[name] != "bool":
            settings["metavar"] = _METAVARS[kinds[name]]
        section.add_argument(flag(name), **settings)


def corpus_of(arguments: argparse.Namespace, example: str, no_name: str) -> list[str]:
    """The corpus, named as for this command or as for spm_train. `no_name` is said if there is no --out."""
    paths: list[str] = [*arguments.corpus, *(path for paths in arguments.input or [] for path in paths)]
    if not paths:
        raise NotUnderstoodError(f"there is no corpus; name a file or a folder: {example}")
    for path in paths:
        if (way_out := _no_path(path)) and not os.path.lexists(path):
            raise NotUnderstoodError(f"there is no file {path!r}; {way_out}")
    if arguments.out is None:
        from cpbpe.corpus.find import find

        # A corpus that is not there is what has to be mended first.
        find([path for path in paths if not os.path.isdir(path)], any_text=True)
        raise NotUnderstoodError(f"{no_name}; give one with --out: {example}")
    return paths


def show_corpus(arguments: argparse.Namespace, corpus: list[str]) -> None:
    """With --verbose, the files of the corpus. (The report names those that are left out.)"""
    if arguments.verbose:
        from cpbpe.corpus.find import find

        found = find(corpus, arguments.format is not None, arguments.column is not None)
        show_files(True, False, found.files, found.left_out, found.again)


def _no_path(given: str) -> str | None:
    """What to say about what was probably meant as the value of the option before it."""
    if given.lower() in ("true", "false"):
        return f"the value of a switch comes after a '=', as in --byte-fallback={given}"
    if re.fullmatch("<.+>", given):
        return "several symbols have commas between them, as in --control-symbols '<a>,<b>'"
    return None


def options_of(arguments: argparse.Namespace) -> AnyOptions:
    """The options that the arguments ask for."""
    kind = arguments.model_type
    if kind is not None and kind.lower() != "bpe":
        raise NotUnderstoodError(f"--model-type: cpbpe trains bpe only, not {kind!r}; leave it out")
    names = (*OPTIONS, *(name for name in BYTE_NAMES if name in ONLY_BYTES))
    changes = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    return complete_options(arguments.preset or "llama2", changes)


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


def _memory(text: str) -> int | None:
    try:
        return checked_memory_limit(int(text) if text.isdecimal() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _list(text: str) -> list[str]:
    return next(csv.reader([text])) if text else []


_KINDS: dict[str, dict[str, Any]] = {
    "bool": {"action": argparse.BooleanOptionalAction},
    "int": {"type": whole_number},
    "float": {"type": number},
    "str": {},
    "Sequence[str]": {"type": _list, "action": "extend"},
}
_METAVARS = {"int": "N", "float": "X", "str": "TEXT", "Sequence[str]": "A,B"}


def _default(name: str) -> str:
    """The default in all presets: one value, or one for each preset that differs."""
    values = {key: _shown(getattr(options, name)) for key, options in PRESETS.items()}
    first = values["llama2"]
    return "; ".join([first, *(f"{key}: {value}" for key, value in values.items() if value != first)])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(value) if value else "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)
