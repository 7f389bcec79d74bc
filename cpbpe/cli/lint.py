"""``cpbpe lint``: what is wrong with models."""

from __future__ import annotations

import argparse
import json
import os
import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from cpbpe.cli.arguments import HELP, add_given, add_reading, documents_of, load
from cpbpe.cli.output import check_outputs, write_text
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser
from cpbpe.foreign import closest
from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.lint.findings import Lint

_DESCRIPTION = """\
Check models: pieces that no text can yield, with the reason; pieces that look
like special tokens; characters without a piece; special ids that do not fit;
settings that lose text; and more. With a corpus also pieces that are not used,
and with an embedding matrix rows that have learned nothing.

The exit code is 1 if something as bad as --fail-on was found.
"""

_EXAMPLES = """\
examples:
  cpbpe lint tokenizer.model
  cpbpe lint *.model --fail-on warning --ignore no-pad
  cpbpe lint tokenizer.model --corpus 'data/*.jsonl' --embeddings rows.npy
  cpbpe lint tokenizer.model --json | jq '.[].findings[].code'
"""

_WIDTH = 100
_SEVERITIES = ("note", "warning", "error", "never")


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe lint MODEL [MODEL ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {
            "model": "the models come first, without a name",
            **dict.fromkeys(("strict", "werror", "error"), "it is --fail-on warning"),
            **dict.fromkeys(("disable", "exclude", "skip"), "it is --ignore CODE"),
        },
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=HELP)
    what = parser.add_argument_group("what else to look at")
    what.add_argument(
        "--corpus",
        action="append",
        metavar="FILE",
        help="count the pieces of these texts: a file, a folder, or a pattern in quotes; may be given "
        "several times",
    )
    what.add_argument(
        "--embeddings", metavar="FILE", help="look at the rows of this matrix, a .npy or .safetensors file"
    )
    what.add_argument(
        "--tensor", metavar="NAME", help="the matrix in the .safetensors file, if that is not clear"
    )
    add_reading(what, "Parquet, Arrow, csv or tsv")
    add_given(parser)
    how = parser.add_argument_group("how")
    how.add_argument(
        "--fail-on",
        type=OneOf(_SEVERITIES),
        default="error",
        metavar="SEVERITY",
        help="end with the exit code 1 if there is a note, a warning or an error, or something worse "
        "(default: error); or never",
    )
    how.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="CODE",
        help="leave out findings with this code; may be given several times",
    )
    how.add_argument("--json", action="store_true", help="write JSON: a list with an object for each model")
    how.add_argument(
        "--out", "-o", metavar="FILE", help="write to this file, in UTF-8, instead of the standard output"
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Check the models."""
    if not arguments.models:
        raise NotUnderstoodError("there is no model; name one: cpbpe lint tokenizer.model")
    if arguments.tensor is not None and arguments.embeddings is None:
        raise NotUnderstoodError("--tensor names a matrix in the file of --embeddings; give that, too")
    if arguments.embeddings is not None and len(arguments.models) > 1:
        raise NotUnderstoodError("--embeddings is the matrix of one model; check the others without it")
    with importing:
        from cpbpe.lint.findings import CODES
    for code in arguments.ignore:
        if code not in CODES:
            raise NotUnderstoodError(_no_such_code(code, CODES))
    if arguments.out is not None:
        check_outputs([arguments.out], arguments.models)
    failed = False
    lines: list[str] = []
    reports: list[dict[str, Any]] = []
    for path in arguments.models:
        report = _report(arguments, path)
        failed = failed or (arguments.fail_on != "never" and report.fails(arguments.fail_on))
        if arguments.json:
            reports.append({"model": path, **report.to_dict()})
        else:
            lines += [*([""] if lines else []), *_page(arguments, report, path)]
    if arguments.json:
        with importing:
            from cpbpe.tools.vocabulary_file import visible
        lines = [visible(json.dumps(reports, ensure_ascii=False, indent=1))]
    write_text(arguments.out, (f"{line}\n" for line in lines))
    return int(failed)


def _report(arguments: argparse.Namespace, path: str) -> Lint:
    """The findings about one model. If it cannot be loaded, that is the only one."""
    with importing:
        from cpbpe.lint.findings import Finding, Lint
    try:
        tok = load(arguments, path)
    except ValueError as error:
        return Lint((Finding.of("not-loaded", error=error),), 0, 0)
    matrix = None
    if arguments.embeddings is not None:
        with importing:
            from cpbpe.lint.usage import read_embeddings
        matrix = read_embeddings(arguments.embeddings, arguments.tensor)
    texts = documents_of(arguments, arguments.corpus).texts() if arguments.corpus else None
    report = tok.lint(texts, embeddings=matrix)
    kept = tuple(finding for finding in report.findings if finding.code not in arguments.ignore)
    return Lint(kept, report.pieces, report.reachable, report.reach)


def _no_such_code(code: str, codes: Any) -> str:
    close = closest(code, codes, 0.6)
    hint = f"did you mean {close}?" if close else f"there are {', '.join(codes)}"
    return f"--ignore: there is no code {code!r}; {hint}"


def _page(arguments: argparse.Namespace, report: Lint, path: str) -> list[str]:
    with importing:
        from cpbpe.tools.reports import lint_lines
    terminal = arguments.out is None and sys.stdout is not None and sys.stdout.isatty()
    columns = get_terminal_size((_WIDTH, 24)).columns
    return lint_lines(report, path, columns, terminal and "NO_COLOR" not in os.environ)
