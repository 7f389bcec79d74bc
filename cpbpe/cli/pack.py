"""``cpbpe pack``: documents to the token files of a trainer."""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

from cpbpe.cli.flags import flag
from cpbpe.cli.output import say
from cpbpe.cli.parsing import NotUnderstoodError, Parser, number, one_of, whole_number
from cpbpe.spelling import Spelling, counted, spelled_as

_FORMATS = ("npy", "megatron", "nanogpt", "datatrove", "dolma", "mds", "parquet", "arrow")
_DTYPES = ("auto", "uint16", "uint32", "int32")
_EXAMPLE = "cpbpe pack tokenizer.model corpus.txt --out tokens --to npy"

_DESCRIPTION = """\
Encode documents, and write their ids to files as trainers read them. Run the
same command again after an interruption of any kind: it goes on where the
other ended, and the files are those of an undisturbed run.
"""

_EXAMPLES = """\
examples:
  cpbpe pack tokenizer.model corpus.txt --out tokens --to npy --eos
  cpbpe pack tokenizer.model 'data/*.jsonl.zst' --out tokens --to megatron --eos
  cpbpe pack tokenizer.model data --whole --out tokens --to nanogpt --eos \\
    --shuffle-seed 1 --validation 0.01
"""


class _Flags(Spelling):
    """The command's spelling: all options are flags."""

    def name(self, option: str) -> str:
        return flag(option)

    def given(self, option: str, value: object) -> str:
        if isinstance(value, bool):
            return flag(option if value else f"no_{option}")
        return f"{flag(option)} {option.upper() if value is ... else value}"

    def value(self, value: object) -> str:
        return "not given" if value is None else repr(value)

    def advice(self, python: str, command: str) -> str:
        return command


def parser() -> Parser:
    """The command's arguments."""
    keeps = (
        "a run is continued if it was interrupted, and its files are never replaced; remove the folder first"
    )
    parser = Parser(
        {
            **dict.fromkeys(("force", "overwrite", "resume"), keeps),
            **dict.fromkeys(("output-prefix", "output", "output-dir"), "the result is named with --out"),
            "append-eod": "--eos puts the model's eos id at the end of each document",
            "json-keys": "--field names the field of a .jsonl file that contains the text",
            "tokenizer-model": "the model comes first, without a name",
            "num-workers": "--threads says how many threads to use",
        },
        prog="cpbpe pack",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        usage="cpbpe pack MODEL CORPUS [CORPUS ...] --out FOLDER [options]",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a .model file, or the folder that holds it"
    )
    parser.add_argument(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="a file, a folder, or a pattern in quotes such as 'data/**/*.txt'; - is the standard input. "
        "Each line of a text file is a document, and each record of .jsonl, .csv, .tsv, .parquet and .arrow "
        "files; those that also end in .gz, .xz, .bz2 or .zst are decompressed",
    )
    _add_files(parser)
    _add_documents(parser)
    _add_encoding(parser)
    parser.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    return parser


def _add_files(parser: Parser) -> None:
    section = parser.add_argument_group("files")
    section.add_argument(
        "--out",
        "-o",
        metavar="FOLDER",
        help="where to write; if it ends with - or _, it is what the names of the files begin with",
    )
    section.add_argument(
        "--to", type=one_of(_FORMATS), default="npy", help=f"the format: {', '.join(_FORMATS)} (default: npy)"
    )
    section.add_argument(
        "--dtype",
        type=one_of(_DTYPES),
        default="auto",
        help="the type of ids: auto (the default: as the format's own tools choose), uint16, uint32 or int32",
    )
    section.add_argument(
        "--shard-size",
        metavar="SIZE",
        help="the most that a shard holds, in tokens (100M) or in bytes of ids (500MB); by default as usual "
        "for the format, which is everything in one file for most",
    )
    section.add_argument(
        "--shuffle-seed",
        type=whole_number,
        metavar="N",
        help="shuffle the documents; the same number gives the same order",
    )
    section.add_argument(
        "--validation",
        type=number,
        default=0.0,
        metavar="SHARE",
        help="the share of documents for a validation part with files of its own, such as 0.01",
    )
    section.add_argument(
        "--validation-seed",
        type=whole_number,
        default=0,
        metavar="N",
        help="what decides which documents these are (default: 0)",
    )


def _add_documents(parser: Parser) -> None:
    from cpbpe.corpus.kinds import FORMATS

    section = parser.add_argument_group("documents")
    section.add_argument(
        "--format", type=one_of(FORMATS), help=f"the format of all files: {', '.join(FORMATS)}"
    )
    section.add_argument("--field", default="text", help="the field of .jsonl with the text (default: text)")
    section.add_argument(
        "--column",
        type=_column,
        help="the column of a table with the text, by name or number (default: text)",
    )
    section.add_argument("--whole", action="store_true", help="a text file is one document")
    section.add_argument(
        "--threads",
        "--workers",
        type=whole_number,
        metavar="N",
        help="how many threads encode (default: one per processor)",
    )


def _add_encoding(parser: Parser) -> None:
    from cpbpe.tokenizer.options import ENCODE

    section = parser.add_argument_group("encoding")
    short = {"add_bos": ["--bos"], "add_eos": ["--eos"]}
    for name, option in ENCODE.items():
        settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": option.meaning}
        if option.annotation.startswith("bool"):
            settings["action"] = argparse.BooleanOptionalAction
        elif name in ("alpha", "seed"):
            settings |= {"type": number if name == "alpha" else whole_number, "metavar": "N"}
        else:
            settings |= {"type": _tokens, "metavar": "A,B"}
        section.add_argument(flag(name), *short.get(name, []), **settings)


def _column(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _tokens(text: str) -> str | list[str]:
    return text if text in ("all", "raise") else next(csv.reader([text]), [])


def run(arguments: argparse.Namespace) -> int:
    """Pack as the arguments say."""
    with spelled_as(_Flags()):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from cpbpe.packing.pack import pack
    from cpbpe.tokenizer.options import ENCODE
    from cpbpe.tokenizer.tokenizer import load

    if arguments.model is None:
        raise NotUnderstoodError(f"there is no model; name one: {_EXAMPLE}")
    if not arguments.corpus:
        raise NotUnderstoodError(f"there is no corpus; name a file or a folder after the model: {_EXAMPLE}")
    if arguments.out is None:
        raise NotUnderstoodError(f"the result has no name; give one with --out: {_EXAMPLE}")
    tokenizer = load(arguments.model)
    names = ("to", "dtype", "shard_size", "shuffle_seed", "validation", "validation_seed", "threads")
    options = {name: getattr(arguments, name) for name in (*names, "format", "field", "column", "whole")}
    encoding = {name: getattr(arguments, name) for name in ENCODE if hasattr(arguments, name)}
    try:
        report = pack(
            tokenizer,
            list(map(Path, arguments.corpus)),
            arguments.out,
            progress=False if arguments.quiet else None,
            **options,
            **encoding,
        )
    except (KeyboardInterrupt, SystemExit) as ended:
        say(f"interrupted; {_kept(arguments.out)}")
        return ended.code if isinstance(ended, SystemExit) and isinstance(ended.code, int) else 130
    except OSError as error:
        if error.errno is not None and _has_begun(arguments.out):
            say(_kept(arguments.out))
        raise
    if arguments.json:
        print(report.to_json(indent=1))
    elif not arguments.quiet:
        if report.was_complete:
            print(f"{arguments.out} is complete already, so there was nothing to do. It has:")
        print(report)
    return 0


def _has_begun(out: str) -> bool:
    from cpbpe.packing.place import Place

    return Place(out).exists()


def _kept(out: str) -> str:
    """What is there after a run has ended early."""
    from cpbpe.packing.manifest import Manifest
    from cpbpe.packing.place import Place

    place = Place(out)
    if not place.exists():
        return "nothing was written"
    shards = Manifest.load(place).shards
    documents = sum(shard["documents"] for shard in shards)
    whole = f"{counted(len(shards), 'shard')} with {counted(documents, 'document')}" if shards else "no shard"
    begun = "" if not os.path.isdir(place.scratch()) else ", and what was begun is kept"
    return (
        f"{whole} is whole{begun}; the same command goes on from there"
        if len(shards) < 2
        else (f"{whole} are whole{begun}; the same command goes on from there")
    )
