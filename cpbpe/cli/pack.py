"""``cpbpe pack``: documents to the token files of a trainer."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from cpbpe.cli.arguments import (
    HELP,
    add_documents,
    add_encode_options,
    add_given,
    add_messages,
    encode_options_of,
    load,
    progress_of,
)
from cpbpe.cli.output import print_report, say, show_files
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, number, refuse
from cpbpe.corpus.find import Hidden
from cpbpe.lazy import importing
from cpbpe.packing.manifest import Manifest, Place
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.packing.pack import PackReport

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
  cpbpe pack tokenizer.model corpus.txt --out tokens --to npy --add-eos
  cpbpe pack tokenizer.model 'data/*.jsonl.zst' --out tokens --to megatron \\
    --add-eos
  cpbpe pack tokenizer.model data --whole --out tokens --to nanogpt --add-eos \\
    --shuffle-seed 1 --validation 0.01
"""


_RESUMING = (
    "a run that was interrupted goes on by itself, and its files are never replaced; to begin again, "
    "remove the folder"
)
_GUESSED = {
    **dict.fromkeys(("force", "overwrite", "resume"), _RESUMING),
    **dict.fromkeys(("output", "output-prefix", "output-dir"), "the result is named with --out"),
    **dict.fromkeys(("model", "tokenizer-model"), "the model comes first, without a name"),
    **dict.fromkeys(("input", "i"), "the files come after the model, without a name"),
    "append-eod": "it is --add-eos",
    "format": "--to is that of the files that are written, and --input-format that of those that are read",
    "json-keys": "--field names the field of a .jsonl file that contains the text",
    "shuffle": "--shuffle-seed N shuffles the documents",
}
"""Flags that people guess."""
_THEIRS = {
    "bos": "add-bos",
    "eos": "add-eos",
    "no-bos": "no-add-bos",
    "no-eos": "no-add-eos",
    **dict.fromkeys(("workers", "num-workers"), "threads"),
}
"""Flags of other programs that have another name but the same meaning here."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe pack MODEL CORPUS [CORPUS ...] --out FOLDER [options]", _DESCRIPTION, _EXAMPLES, _GUESSED
    )
    parser.theirs = _THEIRS
    parser.add_argument("model", nargs="?", metavar="MODEL", help=HELP)
    parser.add_argument(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="files, folders, or patterns in quotes such as 'data/**/*.txt'; - is the standard input. Each "
        "line of a text file is a document, and each record of other files",
    )
    parser.section("files")
    parser.add(
        "--out -o FOLDER",
        "where to write; if it ends with - or _, it is what the names of the files begin with",
    )
    formats = ", ".join(_FORMATS)
    parser.add("--to FORMAT", f"the format: {formats} (default: npy)", type=OneOf(_FORMATS), default="npy")
    parser.add(
        "--dtype DTYPE",
        "the type of ids: auto (the default: as the format's own tools choose), uint16, uint32 or int32",
        type=OneOf(_DTYPES),
        default="auto",
    )
    parser.add(
        "--shard-size SIZE",
        "the most that a shard holds, in tokens (100M) or in bytes of ids (500MB); by default as usual "
        "for the format, which is everything in one file for most",
    )
    parser.add("--shuffle-seed N", "shuffle the documents; the same number gives the same order")
    parser.add(
        "--validation SHARE",
        "the share of documents for a validation part with files of its own, such as 0.01",
        type=number,
        default=0.0,
    )
    parser.add("--validation-seed N", "what decides which documents these are (default: 0)", default=0)
    add_encode_options(parser)
    add_documents(parser)
    add_given(parser)
    parser.section("working")
    parser.add(
        "--threads -t N", "how many threads encode (default: one per processor); --workers is the same"
    )
    add_messages(parser, "which files are read")
    parser.add("--json", "print the summary as JSON")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Pack as the arguments say."""
    with importing:
        from cpbpe.corpus.documents import Documents
        from cpbpe.packing.pack import pack_source
        from cpbpe.packing.read import FileSource
    if arguments.model is None:
        raise NotUnderstoodError(f"there is no model; name one: {_EXAMPLE}")
    if not arguments.corpus:
        raise NotUnderstoodError(f"there is no corpus; name a file or a folder after the model: {_EXAMPLE}")
    if arguments.out is None:
        raise NotUnderstoodError(f"the result has no name; give one with --out: {_EXAMPLE}")
    if not arguments.validation:
        refuse(arguments, {"validation_seed": 0}, "it is about --validation SHARE")
    tokenizer = load(arguments)
    names = ("to", "dtype", "shard_size", "shuffle_seed", "validation", "validation_seed", "threads")
    options: Any = {name: getattr(arguments, name) for name in names}
    options |= {"progress": progress_of(arguments), **encode_options_of(arguments, tokenizer)}
    reading: dict[str, Any] = {name: getattr(arguments, name) for name in ("field", "column", "whole")}
    reading["format"] = arguments.input_format

    def open_source(hidden: Hidden) -> FileSource:
        documents = Documents(arguments.corpus, hidden=hidden, **reading)
        show_files(documents, arguments.verbose, quiet=True)
        return FileSource(documents)

    try:
        report = pack_source(tokenizer, open_source, arguments.out, reading, options)
        _show(report, arguments)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(arguments.out)) from None
    except SystemExit:  # it was terminated
        say(f"terminated; {_kept(arguments.out)}")
        raise
    except OSError as error:
        is_begun = os.path.isdir(Place(arguments.out).scratch())
        if isinstance(error, (FileExistsError, BlockingIOError)) or not is_begun:
            raise
        what = str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
        raise OSError(f"{what}; {_kept(arguments.out)}") from error
    return 0


def _show(report: PackReport, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(report.to_json(indent=1))
    elif not arguments.quiet:
        if report.was_complete:
            print(f"{arguments.out} is complete already, so there was nothing to do. It holds:")
        print_report(str(report).split("\n"))


def _kept(out: str) -> str:
    """A message about what is kept of a run that has ended early."""
    place = Place(out)
    if not place.exists():
        return "nothing was written"
    shards = Manifest.load(place).shards
    documents = counted(sum(shard["documents"] for shard in shards), "document")
    whole = (
        "no shard is whole yet" if not shards else f"{counted(len(shards), 'shard')} with {documents} kept"
    )
    return f"{whole}; the same command goes on where this ended"
