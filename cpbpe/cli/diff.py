"""``cpbpe diff``: what is different between two models."""

from __future__ import annotations

import argparse
from itertools import chain

from cpbpe.cli.arguments import (
    HELP,
    OUT,
    add_given,
    add_reading,
    check_columns,
    documents_of,
    files_of,
    incomplete,
    load,
    refuse_reading,
)
from cpbpe.cli.output import as_json, canvas, check_outputs, form_of, write_text
from cpbpe.cli.parsing import NotUnderstoodError, Parser, refuse
from cpbpe.lazy import importing

_LIMIT = 8

_DESCRIPTION = """\
Show what is different between two models, of whatever kinds: whether ids that
were stored mean the same; the shortest text whose tokens differ, and on a
corpus, how many documents have other tokens or ids; pieces that were added,
removed, moved to another id, rescored or retyped; and settings.
"""

_EXAMPLES = """\
examples:
  cpbpe diff old.model new.model
  cpbpe diff tokenizer.model tokenizer.json corpus.txt
  cpbpe diff a.model b.model --exit-code --quiet || echo "they differ"
"""

FAILED = 2
"""The exit code if it fails: 1 means that something was found."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe diff OLD NEW [FILE ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {"old": "the models come first, without names", "new": "the models come first, without names"},
    )
    parser.add_argument("models", nargs="*", metavar="OLD NEW FILE", help=f"{HELP}; twice; then a corpus")
    parser.section("how")
    parser.add("--no-search", "do not look for a text whose tokens differ")
    parser.add("--limit N", "show this many pieces of a kind (default: 8)", default=_LIMIT)
    parser.add("--json", "write JSON, with all pieces")
    parser.add("--out -o FILE", f"{OUT}; .html and .json say the form")
    parser.add("--exit-code", "end with the exit code 1 if anything is different")
    parser.add("--quiet -q", "write nothing")
    add_reading(parser, "Parquet, Arrow, csv or tsv")
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show the difference."""
    if len(arguments.models) < 2:
        raise NotUnderstoodError("two models are needed: cpbpe diff old.model new.model")
    if arguments.limit < 0:
        raise NotUnderstoodError("--limit must be 0 or more")
    old, new, *files = arguments.models
    if not files:
        refuse_reading(arguments, "there is no corpus")
    check_columns(arguments, files)
    if arguments.quiet:
        refuse(arguments, {"json": False, "out": None, "limit": _LIMIT}, "--quiet writes nothing")
    form = form_of(arguments.out, "json" if arguments.json else None)
    if form == "json":
        refuse(arguments, {"limit": _LIMIT}, "JSON has all pieces")
    check_outputs([arguments.out], chain((old, new), files_of(arguments, files)))
    needing = incomplete([old, new])
    first, second = (load(arguments, path, plain=path not in needing) for path in (old, new))
    with importing:
        from cpbpe.tools.diff import diff
    corpus = documents_of(arguments, files) if files else None
    difference = diff(first, second, corpus, search=not arguments.no_search)
    if not arguments.quiet:
        page = canvas(arguments.out, form)
        difference.draw(page, (old, new), arguments.limit)
        text = as_json(difference.to_dict()) + "\n" if form == "json" else page.document()
        write_text(arguments.out, [text])
    return int(arguments.exit_code and bool(difference))
