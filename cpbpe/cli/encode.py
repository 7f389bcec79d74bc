"""``cpbpe encode``: files of text to lines of ids or pieces."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import (
    HELP,
    add_documents,
    add_encode_options,
    add_given,
    add_messages,
    check_columns,
    encode_options_of,
    load,
    progress_of,
    threads_of,
)
from cpbpe.cli.output import check_outputs, existing, print_report, say, show_files, write_parts
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, refuse
from cpbpe.corpus.documents import Documents
from cpbpe.lazy import importing
from cpbpe.spelling import counted, sized
from cpbpe.training.progress import Display

if TYPE_CHECKING:
    from cpbpe.packing.lines import Tally

Parts = Generator[bytes | memoryview, None, None]

GUESSED = {
    "model": "the model comes first, without a name",
    "input": "the files come after the model, without a name",
    **dict.fromkeys(("output", "outfile", "out-file"), "the file of the result is named with --out"),
    "extra-options": "they are options by themselves: --add-bos, --add-eos, --reverse; 'cpbpe spm' has "
    "sentencepiece's own flags",
    **dict.fromkeys(("bos", "eos"), "it is --add-bos or --add-eos"),
    **dict.fromkeys(("workers", "jobs", "num-workers", "processes"), "it is --threads"),
    "silent": "--quiet hides everything but errors",
    "encoding": "text is UTF-8; convert it first, for example with iconv",
    **dict.fromkeys(("force", "overwrite"), "files are replaced without asking; leave it out"),
}
"""Flags that people guess."""
FORMATS = ("ids", "pieces", "json", "jsonl")
_UNITS = ("char", "byte")

_DESCRIPTION = """\
Encode text: a line of ids for each line of text, in order, as spm_encode does.
A file of any size takes little memory. ('cpbpe tokens' only counts them, 'cpbpe
show' draws them, and 'cpbpe pack' writes the token files of trainers.)
"""

_EXAMPLES = """\
formats:
  ids      22557 1526
  pieces   \u2581Hello \u2581world
  jsonl    {"ids":[22557,1526]}, on a line of its own for each text
  json     one array of all these objects

examples:
  cpbpe encode my.model corpus.txt > corpus.ids
  cpbpe encode my.model 'data/*.jsonl.gz' --field content --out data.ids
  echo 'Hello world' | cpbpe encode my.model --format pieces
  cpbpe encode my.model article.txt --whole --format jsonl --offsets
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser("cpbpe encode MODEL [FILE ...] [options]", _DESCRIPTION, _EXAMPLES, GUESSED)
    parser.theirs = {"output-format": "format", "num-threads": "threads"}
    add_files(parser, "the text")
    parser.add(
        "--format -f FORMAT",
        "what to write: ids (the default), pieces, json or jsonl",
        type=OneOf(FORMATS, "; that of the files that are read is --input-format"),
        default="ids",
    )
    parser.add("--offsets", "with json or jsonl: where in its text each token begins and ends")
    parser.add(
        "--unit UNIT",
        "what offsets count: char (Unicode characters, the default) or byte",
        type=OneOf(_UNITS),
        default="char",
    )
    add_encode_options(parser)
    add_documents(parser)
    add_given(parser)
    add_output(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Encode as the arguments say."""
    with importing:
        from cpbpe.packing.lines import DocumentEncoder
    # 1. Checks that come before the work.
    check(arguments, "cpbpe encode my.model corpus.txt", "for ids as JSON, give --format jsonl")
    if arguments.offsets and arguments.format not in ("json", "jsonl"):
        raise NotUnderstoodError("--offsets have no room in lines of ids or pieces; give --format jsonl, too")
    if not arguments.offsets:
        refuse(arguments, {"unit": "char"}, "it is about --offsets")
    tokenizer = load(arguments)
    documents = documents_of_files(arguments)
    encoder = DocumentEncoder(
        tokenizer,
        arguments.format,
        offsets=arguments.offsets,
        unit=arguments.unit,
        threads=threads_of(arguments),
        **encode_options_of(arguments, tokenizer),
    )
    show_files(documents, arguments.verbose, arguments.quiet)

    # 2. The work.
    def parts(show: Callable[[int], object]) -> Parts:
        for part in encoder.encode(documents):
            yield part
            show(documents.read)

    code = work(arguments, "encoding", documents.files, documents.total, parts, lambda: encoder.tally)
    # 3. What the result does not show.
    if not arguments.quiet:
        say_remarks(documents, encoder.broken)
    return code


# --- What encoding, decoding and counting share -------------------------------------------------------


def add_files(parser: Parser, what: str) -> None:
    """Add the model and the files."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help=HELP)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"{what}: files, folders, or patterns in quotes such as 'data/**/*.txt'; - or nothing is the "
        f"standard input. Files named .gz, .xz, .bz2 or .zst are decompressed",
    )


def add_output(parser: Parser) -> None:
    """Add the options about the output and about messages."""
    parser.section("writing")
    parser.add(
        "--out -o FILE",
        "write to this file, which appears when it is complete (default: the standard output)",
    )
    parser.add("--threads -t N", "how many threads to use (default: one per processor)")
    add_messages(parser, "which files are read, and what was done")
    parser.add("--json", "with --out: print the summary as JSON")


def check(arguments: argparse.Namespace, example: str, option: str) -> None:
    """Refuse what makes no sense, before anything is read."""
    if arguments.model is None:
        raise NotUnderstoodError(f"there is no model; name one: {example}")
    if arguments.json and arguments.out is None:
        raise NotUnderstoodError(f"--json is about the summary, which --out FILE leaves room for; {option}")
    if arguments.out is not None and arguments.out.lower().endswith((".gz", ".xz", ".bz2", ".zst")):
        raise NotUnderstoodError(
            f"nothing is compressed here, so {arguments.out!r} would have the wrong name; leave --out out, "
            f"and pipe the output into a program that compresses"
        )


def files_of(arguments: argparse.Namespace) -> list[str]:
    """The files; the standard input if there are none."""
    if arguments.files:
        return list(arguments.files)
    if sys.stdin is not None and sys.stdin.isatty() and not arguments.quiet:
        say("reading from the keyboard; Ctrl-D on a new line ends the text")
    return ["-"]


def documents_of_files(arguments: argparse.Namespace) -> Documents:
    """The texts in the files."""
    try:
        files = files_of(arguments)
        check_columns(arguments, files)
        return Documents(
            files,
            format=arguments.input_format,
            field=arguments.field,
            column=arguments.column,
            whole=arguments.whole,
        )
    except FileNotFoundError as error:
        if any(" " in file for file in arguments.files):
            show = f"cpbpe show {arguments.model} 'Some text'"
            raise FileNotFoundError(f"{error}; for the tokens of a text, type: {show}") from None
        raise


def say_remarks(documents: Documents, broken: str | None) -> None:
    """Say what the result does not show; `broken` is the place of the first text that is not UTF-8."""
    for file in documents.marked:
        say(
            f"{file}: begins with a byte order mark, which is now part of its first text; save it "
            f"without one, for example with 'tail -c +4'"
        )
    if documents.nulls:
        say(f"{counted(documents.nulls, 'record')} with null instead of a text became an empty line")
    if broken is not None:
        say(
            f"{broken}: is not valid UTF-8; each byte that is wrong became U+FFFD, and decoding "
            f"does not bring it back. If the text is in another encoding, such as Latin-1, convert it "
            f"first (iconv -f latin1 -t utf-8)"
        )


def work(
    arguments: argparse.Namespace,
    phase: str,
    sources: Sequence[str],
    total: int | None,
    make: Callable[[Callable[[int], object]], Parts],
    tally: Callable[[], Tally],
) -> int:
    """Write all parts, with a bar on a terminal, and sum up. `make` takes a function that shows progress."""
    out = arguments.out
    check_outputs([out], [arguments.model, *sources])
    replaced = existing([out]) if out is not None else ""
    begun = time.perf_counter()
    try:
        with Display(progress_of(arguments), is_printed=out is None) as display:
            write_parts(out, lambda: make(lambda done: display.update(phase, done, total)))
    except KeyboardInterrupt:
        if out is not None:
            raise
        raise KeyboardInterrupt("the output is not complete") from None
    _summarize(arguments, tally(), time.perf_counter() - begun, replaced)
    return 0


def _summarize(arguments: argparse.Namespace, tally: Tally, seconds: float, replaced: str) -> None:
    if arguments.json:
        print(json.dumps({**vars(tally), "seconds": round(seconds, 3), "out": arguments.out}))
        return
    compression = f"{tally.bytes / tally.tokens:.3f} bytes per token" if tally.tokens else "no tokens"
    done = f"{counted(tally.documents, 'text')}, {sized(tally.bytes)}, {counted(tally.tokens, 'token')}"
    if arguments.out is not None and not arguments.quiet:
        print_report([f"written       {arguments.out}{replaced}: {done}"])
    if arguments.verbose:
        speed = tally.bytes / 1e6 / seconds if seconds else 0.0
        say(f"{done}, {compression}, in {seconds:.2f} s ({speed:,.1f} MB/s)")
