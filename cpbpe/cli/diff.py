"""``cpbpe diff``: what is different between two models."""

from __future__ import annotations

import argparse
from shutil import get_terminal_size

from cpbpe.cli.arguments import HELP, add_given, add_reading, documents_of, load
from cpbpe.cli.output import check_outputs, write_text
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.lazy import importing

_DESCRIPTION = """\
Show what is different between two models, of whatever kinds: pieces that were
added, removed, moved to another id, rescored or retyped; settings; the shortest
text whose tokens differ; and on a corpus, how many documents do.
"""

_EXAMPLES = """\
examples:
  cpbpe diff old.model new.model
  cpbpe diff tokenizer.model tokenizer.json corpus.txt
  cpbpe diff a.model b.model --exit-code --quiet || echo "they differ"
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe diff OLD NEW [FILE ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {"old": "the models come first, without names", "new": "the models come first, without names"},
    )
    parser.add_argument("models", nargs="*", metavar="OLD NEW FILE", help=f"{HELP}; twice; then a corpus")
    how = parser.add_argument_group("how")
    how.add_argument("--no-search", action="store_true", help="do not look for a text whose tokens differ")
    how.add_argument(
        "--limit", type=int, default=8, metavar="N", help="show so many pieces of a kind (default: 8)"
    )
    how.add_argument("--json", action="store_true", help="write JSON, with all pieces")
    how.add_argument(
        "--out", "-o", metavar="FILE", help="write to this file, in UTF-8, instead of the standard output"
    )
    how.add_argument(
        "--exit-code", action="store_true", help="end with the exit code 1 if anything is different"
    )
    how.add_argument("--quiet", "-q", action="store_true", help="write nothing")
    add_reading(how, "Parquet, Arrow, csv or tsv")
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show the difference."""
    if len(arguments.models) < 2:
        raise NotUnderstoodError("two models are needed: cpbpe diff old.model new.model")
    if arguments.limit < 0:
        raise NotUnderstoodError("--limit must be 0 or more")
    old, new, *files = arguments.models
    if arguments.out is not None:
        check_outputs([arguments.out], arguments.models)
    first, second = (load(arguments, path) for path in (old, new))
    with importing:
        from cpbpe.tools.diff import diff
    corpus = documents_of(arguments, files) if files else None
    difference = diff(first, second, corpus, search=not arguments.no_search)
    if not arguments.quiet:
        if arguments.json:
            with importing:
                from cpbpe.tools.vocabulary_file import visible
            text = visible(difference.to_json()) + "\n"
        else:
            columns = get_terminal_size((100, 24)).columns
            text = "".join(f"{line}\n" for line in difference.lines(columns, arguments.limit))
        write_text(arguments.out, [text])
    return int(arguments.exit_code and bool(difference))
