"""``cpbpe show``: the tokens of a text, drawn in colours."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import (
    HELP,
    add_documents,
    add_encode_options,
    add_given,
    encode_options_of,
    load,
    refuse_reading,
)
from cpbpe.cli.encode import documents_of_files
from cpbpe.cli.output import say, show_files, terminal, write_text
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer

_DESCRIPTION = """\
Draw the tokens of a text: in colours on a terminal, with their ids below them.
Spaces, other invisible characters and parts of characters have signs. (For a
page in the browser, see 'cpbpe view'.)
"""

_EXAMPLES = """\
examples:
  cpbpe show tokenizer.model Hello world
  cpbpe show tokenizer.model 'two  spaces' --add-bos --no-ids
  cpbpe show tokenizer.model --file letter.txt --whole
  git log -1 | cpbpe show tokenizer.model
"""


def parser() -> Parser:
    """The command's arguments."""
    nameless = "the text comes after the model, without a name"
    parser = Parser(
        "cpbpe show MODEL [TEXT ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {
            "model": "the model comes first, without a name",
            **dict.fromkeys(("text", "sample", "sentence"), nameless),
            **dict.fromkeys(("input", "files"), "it is --file FILE"),
            **dict.fromkeys(("color", "colour", "colors", "colours"), "a terminal has them without asking"),
            **dict.fromkeys(
                ("out", "html", "output"), "'cpbpe view MODEL --text FILE --out FILE' writes HTML"
            ),
        },
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help=HELP)
    parser.add_argument(
        "text",
        nargs="*",
        metavar="TEXT",
        help="the text; several words are one text, with a space between them; - or nothing is the standard "
        "input",
    )
    parser.section("what to show")
    parser.add(
        "--file FILE", "the texts of a file, or of several: each line is one", action="append", dest="files"
    )
    parser.add("--[no-]ids", "whether there are ids below the tokens (default: yes)")
    parser.add("--quiet -q", "print nothing but the drawing and errors")
    add_encode_options(parser)
    add_documents(parser)
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Draw."""
    if arguments.model is None:
        raise NotUnderstoodError("there is no model; name one: cpbpe show tokenizer.model 'Some text'")
    given = [] if arguments.text == ["-"] else arguments.text
    if arguments.text and arguments.files:
        raise NotUnderstoodError("there are a text and --file; give one of them")
    if given:
        refuse_reading(arguments, "the text is given, and no file is read")
    tok = load(arguments)
    texts: Iterable[bytes]
    if given:
        texts = [os.fsencode(" ".join(given))]  # as it was typed, even if it is not UTF-8
        if len(given) == 1 and os.path.isfile(given[0]) and not arguments.quiet:
            say(f"{given[0]} is also a file; for what is in it, give --file {given[0]}")
    else:
        documents = documents_of_files(arguments)
        show_files(documents, quiet=arguments.quiet)
        texts = documents.texts()
    write_text(None, _drawings(tok, texts, arguments))
    return 0


def _drawings(tok: Tokenizer, texts: Iterable[bytes], arguments: argparse.Namespace) -> Iterator[str]:
    """The drawing of each text, and how many tokens there are in all."""
    columns, colours = terminal(None)
    options = encode_options_of(arguments, tok)
    seed = options.pop("seed", None)
    number = tokens = 0
    for number, text in enumerate(texts, 1):
        sampled = {} if seed is None else {"seed": seed + number - 1}
        drawing = tok.show(text, limit=None, **options, **sampled)
        tokens += len(drawing)
        yield drawing.text(colours=colours, columns=columns, ids=arguments.ids is not False) + "\n"
        yield "\n"
    several = f"{counted(number, 'text')}, " if number != 1 else ""
    yield f"{several}{counted(tokens, 'token')}\n"
