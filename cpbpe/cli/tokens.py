"""``cpbpe tokens``: how many tokens files have, as wc counts words."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import (
    add_documents,
    add_encode_options,
    add_given,
    add_messages,
    encode_options_of,
    load,
    progress_of,
    threads_of,
)
from cpbpe.cli.encode import GUESSED, add_files, documents_of_files, say_remarks
from cpbpe.cli.output import show_files
from cpbpe.cli.parsing import NotUnderstoodError, Parser, refuse
from cpbpe.lazy import importing
from cpbpe.text.drawn import shown
from cpbpe.training.progress import Display

if TYPE_CHECKING:
    from cpbpe.packing.lines import Tally

_DESCRIPTION = """\
Count the tokens of files, as wc counts words: a line for each file, and one
for all of them. Each line of a text file is a text of its own, as for 'cpbpe
encode'.
"""

_EXAMPLES = """\
examples:
  cpbpe tokens tokenizer.model corpus.txt
  cpbpe tokens tokenizer.model 'data/*.jsonl.gz' --field content --add-bos
  git diff | cpbpe tokens tokenizer.model --whole
"""


def parser() -> Parser:
    """The command's arguments."""
    guessed = {**GUESSED, "words": "wc -w counts words, and this counts tokens; leave it out"}
    parser = Parser("cpbpe tokens MODEL [FILE ...] [options]", _DESCRIPTION, _EXAMPLES, guessed)
    add_files(parser, "the text")
    parser.section("what to print")
    parser.add("--lines -l", "after the tokens, the number of texts: of lines, or of records")
    parser.add("--bytes -c", "after these, the number of bytes in them, without newlines between lines")
    parser.add("--json", "print all of it as JSON")
    add_encode_options(parser)
    add_documents(parser)
    add_given(parser)
    parser.section("working")
    parser.add("--threads -t N", "how many threads to use (default: one per processor)")
    add_messages(parser, "which files are read")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Count."""
    if arguments.model is None:
        raise NotUnderstoodError("there is no model; name one: cpbpe tokens tokenizer.model corpus.txt")
    if arguments.json:
        refuse(arguments, {"lines": False, "bytes": False}, "--json prints all of it")
    with importing:
        from cpbpe.packing.lines import DocumentEncoder, Tally
    tokenizer = load(arguments)
    documents = documents_of_files(arguments)
    options = encode_options_of(arguments, tokenizer)
    encoder = DocumentEncoder(tokenizer, threads=threads_of(arguments), **options)
    show_files(documents, arguments.verbose, arguments.quiet)
    tallies = [Tally() for _ in documents.files]
    with Display(progress_of(arguments)) as display:
        for file, tally in encoder.count(documents):
            tallies[file].add(tally)
            display.update("encoding", documents.read, documents.total)
    if arguments.json:
        files = [{"file": file, **vars(tally)} for file, tally in zip(documents.files, tallies, strict=True)]
        print(json.dumps({"files": files, "total": vars(encoder.tally)}))
    else:
        names = map(shown, documents.files if arguments.files else [""])
        rows = list(zip(names, tallies, strict=True))
        if len(rows) > 1:
            rows.append(("total", encoder.tally))
        print("\n".join(_lines(arguments, rows)))
    if not arguments.quiet:
        say_remarks(documents, encoder.broken)
    return 0


def _lines(arguments: argparse.Namespace, rows: Sequence[tuple[str, Tally]]) -> Iterator[str]:
    """A line for each row: the numbers that were asked for, in columns, and the name."""
    asked = {"tokens": True, "documents": arguments.lines, "bytes": arguments.bytes}
    kinds = [kind for kind, is_asked in asked.items() if is_asked]
    sizes = {kind: len(str(getattr(rows[-1][1], kind))) for kind in kinds}  # the last number is the largest
    for name, tally in rows:
        numbers = (f"{getattr(tally, kind):>{size}}" for kind, size in sizes.items())
        yield " ".join([*numbers, name]).rstrip()
