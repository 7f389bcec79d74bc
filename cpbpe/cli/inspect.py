"""``cpbpe inspect``: what a model is, how its pieces are built, and its vocabulary as a file."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import HELP, OUT, add_given, given_of, load
from cpbpe.cli.output import as_json, canvas, check_outputs, form_of, on_terminal, say, terminal, write_text
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, flag
from cpbpe.lazy import importing
from cpbpe.text.drawn import Lines, shown

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer
    from cpbpe.tools.built import Built

_DESCRIPTION = """\
Show what a model is, on one page: its pieces by type, script and length, its
special tokens, whether every text comes back from its ids, and a sentence,
encoded. --settings shows every setting that its file records.
"""

_EXAMPLES = """\
examples:
  cpbpe inspect tokenizer.model
  cpbpe inspect tokenizer.model --piece ▁token
  cpbpe inspect tokenizer.model --search '^▁[0-9]+$'
  cpbpe inspect folder --chat-template
  cpbpe inspect tokenizer.model --export tsv --out vocabulary.tsv
  cpbpe inspect tokenizer.model --json | jq .scripts
"""


def parser() -> Parser:
    """The command's arguments."""
    guessed = {
        "": "a text to encode as an example comes after --sample, in quotes",
        "format": "--json writes JSON, and --export all pieces as tsv or json",
    }
    parser = Parser("cpbpe inspect MODEL [options]", _DESCRIPTION, _EXAMPLES, guessed)
    parser.add_argument("model", metavar="MODEL", help=HELP)
    parser.section("what to show instead of the model")
    parser.add(
        "--settings",
        "every setting that the file records, and what it means; in byte-level models also the pattern",
    )
    parser.add("--piece PIECE", "how this piece is built, merge by merge")
    parser.add("--id N", "the same for the piece with this id")
    parser.add(
        "--search REGEX",
        "the pieces that a regular expression of Python finds something in; a space is ▁ in pieces, "
        "but a space in those of byte-level models",
    )
    parser.add(
        "--export FORMAT",
        "all pieces, as tsv or json; characters that are not visible are escaped",
        type=OneOf(("tsv", "json")),
    )
    parser.add(
        "--chat-template NAME",
        "the template of conversations that the file carries; of several, the one of this name",
        nargs="?",
        const="default",
    )
    add_given(parser)
    parser.section("how")
    parser.add("--sample TEXT", "the sentence to encode as an example")
    parser.add("--json", "write JSON")
    parser.add("--out -o FILE", f"{OUT}; .html and .json say the form")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show what was asked for."""
    asked = [
        name
        for name in ("piece", "id", "search", "export", "chat_template", "settings")
        if (value := getattr(arguments, name)) is not None and value is not False  # (0 is an id)
    ]
    if len(asked) > 1:
        raise NotUnderstoodError(
            f"{flag(asked[0])} and {flag(asked[1])} exclude each other; give one of them"
        )
    if arguments.sample is not None and asked:
        raise NotUnderstoodError(f"--sample means nothing with {flag(asked[0])}; leave it out")
    if arguments.json and arguments.export == "tsv":
        raise NotUnderstoodError("--json and --export tsv exclude each other; give one of them")
    form = form_of(arguments.out, "json" if arguments.json else arguments.export)
    if form == "html" and asked not in ([], ["settings"]):
        raise NotUnderstoodError(f"{flag(asked[0])} is not written as a page; name another file than .html")
    check_outputs([arguments.out], [arguments.model])
    tok = load(arguments)
    lines: Iterable[str]
    if arguments.export is not None:
        with importing:
            from cpbpe.tools.vocabulary_file import to_json, to_tsv
        lines = to_json(tok) if arguments.export == "json" else to_tsv(tok)
    elif arguments.search is not None:
        lines = _matching(tok, arguments, form)
    elif arguments.chat_template is not None:
        lines = _template(tok, arguments, form)
    elif asked and not arguments.settings:
        lines = _built(tok, arguments, form)
    else:
        lines = _page(tok, arguments, form)
    write_text(arguments.out, (f"{line}\n" for line in lines))
    return 0


def _page(tok: Tokenizer, arguments: argparse.Namespace, form: str) -> list[str]:
    with importing:
        from cpbpe.tools.reports import draw_settings
    seen = tok.inspect(sample=arguments.sample)
    if form == "json":
        return [as_json(seen.to_dict()["settings"] if arguments.settings else seen.to_dict())]
    on = canvas(arguments.out, form)
    if arguments.settings:
        draw_settings(seen, on, arguments.model)
    else:
        drawing = ""
        if isinstance(on, Lines):
            drawing = tok.show(seen.sample.text).text(columns=on.columns - 2, colours=on.bold)
        seen.draw(on, arguments.model, _notes(arguments), drawing.splitlines())
    return [on.document().removesuffix("\n")]


def _notes(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Notes about a folder: what in it is not kept, and which of its files contradict each other."""
    with importing:
        from cpbpe.model.files import folder_of
    folder = folder_of(arguments.model)
    if folder is None:
        return ()
    with importing:
        from cpbpe.model.formats.registry import Hints
        from cpbpe.tokenizer.folders import read_folder
    return read_folder(folder, closely=True, hints=Hints(**given_of(arguments))).notes


def _built(tok: Tokenizer, arguments: argparse.Namespace, form: str) -> Iterator[str]:
    with importing:
        from cpbpe.tools.built import built
        from cpbpe.tools.reports import built_lines
    id = arguments.id if arguments.piece is None else _id_of(tok, arguments.piece)
    if not 0 <= id < len(tok) or id not in tok.vocab:
        raise ValueError(f"there is no piece with the id {id}; ids go from 0 to {len(tok) - 1}")
    if id >= tok.vocab.piece_count:
        raise ValueError(
            f"{tok.vocab[id]!r} was added to the model, and is not built from parts: text yields it only "
            f"where it is allowed"
        )
    tree: Built = built(tok.facts.spec, id)
    if form == "json":
        yield as_json(tree.to_dict())
    else:
        yield from built_lines(tree, *terminal(arguments.out), spaces=tok.facts.is_byte_level)


def _template(tok: Tokenizer, arguments: argparse.Namespace, form: str) -> Iterator[str]:
    templates, name = tok.chat_templates, arguments.chat_template
    if name not in templates:
        there = f"; there are {', '.join(map(repr, templates))}" if templates else ""
        raise ValueError(f"{arguments.model} carries no chat template {name!r}{there}")
    if form == "json":
        yield as_json({name: templates[name]})
    else:
        for line in templates[name].split("\n"):
            yield shown(line) if on_terminal(arguments.out) else line


def _id_of(tok: Tokenizer, piece: str) -> int:
    try:
        given = os.fsencode(piece)  # as it was typed, even if it is not UTF-8
    except UnicodeEncodeError:
        given = piece.encode(errors="replace")
    id = tok.vocab.get(given)
    if id is not None:
        return id
    for other in (piece.replace(" ", "▁"), f"▁{piece.lstrip()}", piece.lstrip(" ▁")):
        if other != piece and tok.vocab.get(other) is not None:
            raise ValueError(f"there is no piece {piece!r}; did you mean {other!r}?")
    example = " ".join(tok.encode_pieces(given))
    raise ValueError(
        f"there is no piece {piece!r}; the text is cut into these: {example}; --search finds pieces"
    )


def _matching(tok: Tokenizer, arguments: argparse.Namespace, form: str) -> Iterator[str]:
    with importing:
        from cpbpe.tools.reports import piece_lines
        from cpbpe.tools.vocabulary_file import rows, to_json_rows
    try:
        matches = re.compile(arguments.search).search
    except re.error as error:
        raise ValueError(f"--search: {arguments.search!r} is not a regular expression: {error}") from None
    matching = [row for row in rows(tok) if matches(row.piece.decode(errors="replace"))]
    if not matching:
        say(f"no piece matches {arguments.search!r}")
    if form == "json":
        yield from to_json_rows(matching)
    else:
        columns = terminal(arguments.out)[0] if on_terminal(arguments.out) else None
        yield from piece_lines(matching, columns)
