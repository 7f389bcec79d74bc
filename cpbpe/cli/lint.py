"""``cpbpe lint``: what is wrong with models."""

from __future__ import annotations

import argparse
from itertools import chain
from typing import TYPE_CHECKING, Any

from cpbpe.cli.arguments import (
    HELP,
    OUT,
    add_given,
    add_reading,
    check_columns,
    check_rereadable,
    documents_of,
    files_of,
    incomplete,
    load,
    refuse_reading,
)
from cpbpe.cli.output import as_json, canvas, check_outputs, form_of, say, write_text
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

_SEVERITIES = ("note", "warning", "error", "never")

FAILED = 2
"""The exit code if it fails: 1 means that something was found."""


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
    parser.section("what else to look at")
    parser.add(
        "--corpus FILE",
        "count the pieces of these texts: a file, a folder, or a pattern in quotes; may be given "
        "several times",
        action="append",
    )
    parser.add("--embeddings FILE", "look at the rows of this matrix, a .npy or .safetensors file")
    parser.add("--tensor NAME", "the matrix in the .safetensors file, if that is not clear")
    add_reading(parser, "Parquet, Arrow, csv or tsv")
    add_given(parser)
    parser.section("how")
    parser.add(
        "--fail-on SEVERITY",
        "end with the exit code 1 if there is a note, a warning or an error, or something worse "
        "(default: error); or never",
        type=OneOf(_SEVERITIES),
        default="error",
    )
    parser.add(
        "--ignore CODE",
        "leave out findings with this code; may be given several times",
        action="append",
        default=[],
    )
    parser.add("--json", "write JSON: a list with an object for each model")
    parser.add("--out -o FILE", f"{OUT}; .html and .json say the form")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Check the models."""
    if not arguments.models:
        raise NotUnderstoodError("there is no model; name one: cpbpe lint tokenizer.model")
    if arguments.tensor is not None and arguments.embeddings is None:
        raise NotUnderstoodError("--tensor names a matrix in the file of --embeddings; give that, too")
    if arguments.embeddings is not None and len(arguments.models) > 1:
        raise NotUnderstoodError("--embeddings is the matrix of one model; check the others without it")
    if not arguments.corpus:
        refuse_reading(arguments, "there is no --corpus")
    check_columns(arguments, arguments.corpus or [])
    if arguments.corpus and len(arguments.models) > 1:
        check_rereadable(arguments, arguments.corpus, "there are several models")
    with importing:
        from cpbpe.lint.findings import CODES
    for code in arguments.ignore:
        if code not in CODES:
            close = closest(code, CODES, 0.6)
            hint = f"did you mean {close}?" if close else f"there are {', '.join(CODES)}"
            raise NotUnderstoodError(f"--ignore: there is no code {code!r}; {hint}")
    form = form_of(arguments.out, "json" if arguments.json else None)
    inputs = [*arguments.models, *filter(None, [arguments.embeddings])]
    check_outputs([arguments.out], chain(inputs, files_of(arguments, arguments.corpus or [])))
    page = canvas(arguments.out, form)
    failed = False
    values: list[dict[str, Any]] = []
    for path in arguments.models:
        report = _report(arguments, path)
        if report is None:
            continue
        failed = failed or (arguments.fail_on != "never" and report.fails(arguments.fail_on))
        report.draw(page, path)
        values.append({"model": path, **report.to_dict()})
    write_text(arguments.out, [as_json(values) + "\n" if form == "json" else page.document()])
    return int(failed)


def _report(arguments: argparse.Namespace, path: str) -> Lint | None:
    """The findings about one model. If it cannot be loaded, that is the only one; None if it is ignored."""
    with importing:
        from cpbpe.lint.findings import Finding, Lint
    try:
        tok = load(arguments, path, plain=path not in incomplete(arguments.models))
    except ValueError as error:
        if "not-loaded" in arguments.ignore:
            say(f"{error}; the model was left out")
            return None
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
