"""``cpbpe decode``: lines of ids or pieces to text."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from cpbpe.cli.arguments import add_decode_options, add_given, decode_options_of, load, threads_of
from cpbpe.cli.encode import GUESSED, Parts, add_files, add_output, check, files_of, work
from cpbpe.cli.output import show_files
from cpbpe.cli.parsing import OneOf, Parser
from cpbpe.corpus.documents import Files
from cpbpe.lazy import importing

_FORMATS = ("ids", "pieces", "json", "jsonl")

_DESCRIPTION = """\
Decode ids or pieces: a line of text for each line, as spm_decode does. What
'cpbpe encode' wrote as ids or pieces becomes the file that it was, newline for
newline, if the model can say everything that is in it ('cpbpe help encode').
"""

_EXAMPLES = """\
examples:
  cpbpe decode my.model corpus.ids > corpus.txt
  echo '22557 1526' | cpbpe decode my.model
  cpbpe encode my.model a.txt | cpbpe decode my.model | cmp - a.txt
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser("cpbpe decode MODEL [FILE ...] [options]", _DESCRIPTION, _EXAMPLES, GUESSED)
    parser.theirs = {"format": "input-format", "num-threads": "threads"}
    add_files(parser, "what to decode")
    parser.add(
        "--input-format -f FORMAT",
        "what the lines hold: ids, pieces, json or jsonl, as 'cpbpe encode --format' writes them "
        "(default: as the file's name says, usually ids)",
        type=OneOf(_FORMATS),
    )
    parser.add("--whole", "each line is a whole file, without a newline after it")
    add_decode_options(parser)
    add_given(parser)
    add_output(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Decode as the arguments say."""
    with importing:
        from cpbpe.packing.lines import LineDecoder
    check(arguments, "cpbpe decode my.model corpus.ids", "leave it out")
    tokenizer = load(arguments)
    files = Files(files_of(arguments), format="text")
    decoder = LineDecoder(
        tokenizer,
        arguments.input_format,
        whole=arguments.whole,
        threads=threads_of(arguments),
        **decode_options_of(arguments),
    )
    show_files(files, arguments.verbose, arguments.quiet)

    def parts(show: Callable[[int], object]) -> Parts:
        read = 0

        def advanced(size: int) -> None:
            nonlocal read
            read += size

        for part in decoder.decode(files.files, advanced):
            yield part
            show(read)

    return work(arguments, "decoding", files.files, files.total, parts, lambda: decoder.tally)
