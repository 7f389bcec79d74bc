"""``cpbpe diff``: what is different between two models."""

from __future__ import annotations

import argparse
import sys
from shutil import get_terminal_size
from typing import Any

from cpbpe.cli.flags import Flags
from cpbpe.cli.model import HELP, RENAMED, add_given, load
from cpbpe.cli.output import check_outputs, make_folder, say
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.cli.reading import add_reading

SPELLING = Flags(renamed=RENAMED)
"""How messages spell options."""

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
        {"old": "the models come first, without names", "new": "the models come first, without names"},
        prog="cpbpe diff",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        usage="cpbpe diff OLD NEW [FILE ...] [options]",
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
    first, second = (load(argparse.Namespace(**{**vars(arguments), "model": path})) for path in (old, new))
    from cpbpe.tools.diff import diff

    found = diff(first, second, _documents(arguments, files), search=not arguments.no_search)
    if not arguments.quiet:
        if arguments.json:
            from cpbpe.tools.vocabulary_file import visible

            text = visible(found.to_json()) + "\n"
        else:
            columns = get_terminal_size((100, 24)).columns
            text = "".join(f"{line}\n" for line in found.lines(columns, arguments.limit))
        _write(arguments.out, text)
    return int(arguments.exit_code and bool(found))


def _documents(arguments: argparse.Namespace, files: list[str]) -> Any:
    if not files:
        return None
    from cpbpe.corpus.documents import Documents

    documents = Documents(files, format=arguments.format, field=arguments.field, column=arguments.column)
    for file, what in documents.left_out.items():
        say(f"{file}: was left out: it {what}")
    return documents


def _write(path: str | None, text: str) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    from cpbpe.model.writing import write_all

    make_folder(path)
    write_all({path: text.encode()})
