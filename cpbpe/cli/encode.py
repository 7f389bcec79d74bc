"""``cpbpe encode``: files of text to lines of ids or pieces."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from cpbpe.cli.encoding import add_documents, add_encode_options, encode_options_of, threads_of
from cpbpe.cli.flags import Flags
from cpbpe.cli.lines import GUESSED, Parts, add_files, add_output, check, files_of, work
from cpbpe.cli.model import RENAMED, add_given, load
from cpbpe.cli.output import say, show_files
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser
from cpbpe.spelling import counted

SPELLING = Flags(renamed={"format": "input_format", **RENAMED})
"""How messages spell options: --format is that of the output here."""

_FORMATS = ("ids", "pieces", "json", "jsonl")
_UNITS = ("char", "byte")

_DESCRIPTION = """\
Encode text: a line of ids for each line of text, in order, as spm_encode does.
A file of any size takes little memory.
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
    parser = Parser(
        GUESSED,
        prog="cpbpe encode",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        usage="cpbpe encode MODEL [FILE ...] [options]",
    )
    parser.theirs = {"output-format": "format", "num-threads": "threads"}
    add_files(parser, "the text")
    parser.add_argument(
        "--format",
        "-f",
        type=OneOf(_FORMATS, "; that of the files that are read is --input-format"),
        default="ids",
        metavar="FORMAT",
        help="what to write: ids (the default), pieces, json or jsonl",
    )
    parser.add_argument(
        "--offsets",
        action="store_true",
        help="with json or jsonl: where in its text each token begins and ends",
    )
    parser.add_argument(
        "--unit",
        type=OneOf(_UNITS),
        default="char",
        metavar="UNIT",
        help="what offsets count: char (Unicode characters, the default) or byte",
    )
    add_encode_options(parser)
    add_documents(parser)
    add_given(parser)
    add_output(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Encode as the arguments say."""
    from cpbpe.corpus.documents import Documents
    from cpbpe.packing.lines import DocumentEncoder

    # 1. Checks that come before the work.
    check(arguments, "cpbpe encode my.model corpus.txt", "for ids as JSON, give --format jsonl")
    if arguments.offsets and arguments.format not in ("json", "jsonl"):
        raise NotUnderstoodError("--offsets have no room in lines of ids or pieces; give --format jsonl, too")
    tokenizer = load(arguments)
    try:
        documents = Documents(
            files_of(arguments),
            format=arguments.input_format,
            field=arguments.field,
            column=arguments.column,
            whole=arguments.whole,
        )
    except FileNotFoundError as error:
        if any(" " in file for file in arguments.files):
            pipe = f"echo 'Some text' | cpbpe encode {arguments.model}"
            raise FileNotFoundError(f"{error}; a text is piped in: {pipe}") from None
        raise
    encoder = DocumentEncoder(
        tokenizer,
        arguments.format,
        offsets=arguments.offsets,
        unit=arguments.unit,
        threads=threads_of(arguments),
        **encode_options_of(arguments),
    )
    show_files(arguments.verbose, arguments.quiet, documents.files, documents.left_out, documents.again)

    # 2. The work.
    def parts(show: Callable[[int], object]) -> Parts:
        for part in encoder.encode(documents):
            yield part
            show(documents.read)

    code = work(arguments, "encoding", documents.files, documents.total, parts, lambda: encoder.tally)
    # 3. What the result does not show.
    if not arguments.quiet:
        for file in documents.marked:
            say(
                f"{file}: begins with a byte order mark, which is now part of its first text; save it "
                f"without one, for example with 'tail -c +4'"
            )
        if documents.nulls:
            say(f"{counted(documents.nulls, 'record')} with null instead of a text became an empty line")
        if encoder.broken is not None:
            say(
                f"{encoder.broken}: is not valid UTF-8; each byte that is wrong became U+FFFD, and decoding "
                f"does not bring it back. If the text is in another encoding, such as Latin-1, convert it "
                f"first (iconv -f latin1 -t utf-8)"
            )
    return code
