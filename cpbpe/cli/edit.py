"""``cpbpe edit``: a model with pieces added, learned, removed or merged, and what that changes."""

from __future__ import annotations

import argparse
import os
from itertools import chain
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import (
    HELP,
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
from cpbpe.cli.output import (
    as_json,
    check_outputs,
    existing,
    make_folder,
    print_report,
    say,
    terminal,
    write_parts,
)
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, refuse
from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.tools.edit import Edit

_DESCRIPTION = """\
Write a model with another vocabulary: words added, pieces learned from a
corpus, unused ones removed, another model merged in. It says what is promised
about texts, and where every id went. What is asked for is done in the order in
which the help lists it; for another order, edit twice, or use Python.
"""

_EXAMPLES = """\
examples:
  cpbpe edit llama.model medical.model --words terms.txt
  cpbpe edit llama.model hindi.model --learn 8000 --corpus 'hindi/*.txt'
  cpbpe edit gemma.model small.model --prune --corpus english.txt --ids ids.npy
  cpbpe edit my.model smaller.model --truncate 16000
"""

_ORDER = ("remove", "truncate", "prune", "merge", "add", "learn")
"""The steps, in the order in which they are done."""
COVERAGE = 0.9995
"""How much of a corpus characters with a piece must cover, unless something else is asked for."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe edit MODEL TARGET [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {
            **dict.fromkeys(("out", "output", "o"), "the target comes second, without a name"),
            **dict.fromkeys(("extend", "add-words", "add-tokens"), "it is --words FILE or --piece TEXT"),
            **dict.fromkeys(("vocab-size", "n", "number"), "it is --learn N, --truncate N or --size N"),
        },
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help=HELP)
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="the file to write; its name says the format"
    )
    parser.section("what to do, in this order")
    several = {"action": "append", "default": []}
    parser.add("--remove TEXT", "remove a piece, and what is made from it; may be repeated", **several)
    parser.add("--truncate N", "remove what merges last, until N pieces are left")
    parser.add("--prune", "remove pieces that no text can yield; with --corpus, those that it does not use")
    parser.add("--size N", "with --prune and --corpus, how many pieces stay")
    parser.add("--merge MODEL", "add the pieces of another model below all others")
    parser.add(
        "--only WHAT",
        "with --merge, only pieces with a character that has no piece (new_characters), or with one of a "
        "script (Han, Devanagari, ...)",
    )
    parser.add(
        "--word TEXT",
        "add a word, with a space before it if it is a normal piece; may be repeated",
        **several,
    )
    parser.add("--words FILE", "add the words in the lines of a file")
    parser.add("--piece TEXT", "add a piece exactly as it is; may be repeated", **several)
    parser.add(
        "--kind KIND",
        "what --word, --words and --piece add: normal (default), user_defined or control",
        type=OneOf(("normal", "user_defined", "control")),
        default="normal",
    )
    parser.add("--skip", "leave out words that can never be one token, instead of an error")
    parser.add("--unused", "let the pieces between be UNUSED, and those that --remove names stay so")
    parser.add("--learn N", "learn N pieces from --corpus, as training would")
    parser.add(
        "--character-coverage X",
        "with --learn, how much of it characters with a piece must cover",
        default=COVERAGE,
    )
    parser.section("the corpus")
    parser.add("--corpus FILE", "a file, a folder or a pattern in quotes; may be repeated", **several)
    add_reading(parser, "Parquet, Arrow, csv or tsv")
    parser.section("results")
    parser.add("--ids FILE", "write the new id of each old id, -1 for none: a .npy file, or JSON")
    parser.add("--weights FILE", "a .safetensors file of the network, whose tables follow the ids")
    parser.add("--weights-out FILE", "where to write it with the new rows")
    parser.add("--multiple N", "with --weights, the number of rows becomes a multiple of N", default=1)
    parser.add("--json", "print the report as JSON")
    parser.add("--quiet -q", "print nothing but errors")
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Edit as the arguments say."""
    # 1. Checks that come before the work.
    model, target = arguments.model, arguments.target
    if model is None or target is None:
        raise NotUnderstoodError(
            "name the model and the file to write: cpbpe edit old.model new.model --words FILE"
        )
    _check(arguments)
    named = filter(None, [model, arguments.merge, arguments.words, arguments.weights])
    inputs = chain(named, files_of(arguments, arguments.corpus))
    check_outputs([target, arguments.ids, arguments.weights_out], inputs)
    # 2. The work.
    with importing:
        from cpbpe.tokenizer.converting import save
        from cpbpe.tools.edit import edit
    needing = incomplete([model, arguments.merge or model])
    edited = edit(load(arguments, model, plain=model not in needing))
    for step in _ORDER:
        edited = _done(edited, step, arguments)
    if not edited.steps:
        raise NotUnderstoodError("there is nothing to do; 'cpbpe help edit' lists what can be done")
    # 3. The results. (The weights come first: they may have no table that fits.)
    if arguments.weights is not None:
        make_folder(arguments.weights_out)
        edited.resize(arguments.weights, arguments.weights_out, multiple=arguments.multiple)
    replaced = existing([target])
    make_folder(target)
    notes = save(edited.tokenizer.facts, edited.tokenizer.bound_options, target)
    if arguments.ids is not None:
        _write_ids(edited, arguments.ids)
    report = edited.report()
    if arguments.json:
        print(as_json(report.to_dict()))
    elif not arguments.quiet:
        columns, colours = terminal(None)
        print("\n".join(report.lines(columns, colours)))
        print_report([f"written       {target}{replaced}"])
    for note in notes if not arguments.quiet else ():
        say(f"{target}: {note}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that need others."""
    needs_corpus = {"--learn": arguments.learn is not None, "--size": arguments.size is not None}
    for name, given in needs_corpus.items():
        if given and not arguments.corpus:
            raise NotUnderstoodError(f"{name} needs a corpus: --corpus FILE")
    if arguments.size is not None and not arguments.prune:
        raise NotUnderstoodError("--size says how many pieces --prune leaves; give --prune, or --truncate N")
    if arguments.corpus and not (arguments.prune or arguments.learn is not None):
        raise NotUnderstoodError("--corpus is for --learn N and --prune; give one of them")
    if not arguments.corpus:
        refuse_reading(arguments, "there is no --corpus")
    check_columns(arguments, arguments.corpus)
    if arguments.corpus and arguments.prune and arguments.learn is not None:
        check_rereadable(arguments, arguments.corpus, "--prune and --learn each read the corpus")
    if arguments.learn is None:
        refuse(arguments, {"character_coverage": COVERAGE}, "it is about --learn N")
    if (arguments.weights is None) != (arguments.weights_out is None):
        raise NotUnderstoodError("--weights and --weights-out go together")
    if arguments.weights is None:
        refuse(arguments, {"multiple": 1}, "it is about --weights FILE")
    if arguments.multiple < 1:
        raise NotUnderstoodError("--multiple must be 1 or more")
    adds = bool(arguments.word or arguments.words or arguments.piece)
    if not adds and (arguments.kind != "normal" or arguments.skip):
        raise NotUnderstoodError(
            "--kind and --skip are about words and pieces; give --words FILE or --piece TEXT"
        )
    if arguments.unused and not arguments.remove and not (adds and arguments.kind == "normal"):
        raise NotUnderstoodError("--unused is about normal words and pieces, and --remove; give one of them")
    if arguments.weights is not None:
        with importing:
            from cpbpe.lint.usage import safetensors_head
        safetensors_head(arguments.weights)  # (before the work: errors name the file)
    if arguments.only is not None and arguments.merge is None:
        raise NotUnderstoodError("--only is for --merge MODEL")


def _done(edited: Edit, step: str, arguments: argparse.Namespace) -> Edit:
    """The edit with one more step, if it was asked for."""
    if step == "remove" and arguments.remove:
        return edited.remove(arguments.remove, leave="unused" if arguments.unused else "nothing")
    if step == "truncate" and arguments.truncate is not None:
        return edited.truncate(arguments.truncate)
    if step == "prune" and arguments.prune:
        texts = documents_of(arguments, arguments.corpus).texts() if arguments.corpus else None
        return edited.prune(texts, size=arguments.size)
    if step == "merge" and arguments.merge is not None:
        needs = arguments.merge in incomplete([arguments.model, arguments.merge])
        other = load(arguments, arguments.merge, plain=not needs)
        return edited.merge(other, only=arguments.only)
    if step == "add":
        words = [*arguments.word, *_lines(arguments.words)]
        if words or arguments.piece:
            has_between = arguments.unused and arguments.kind == "normal"
            return edited.add(
                words,
                pieces=arguments.piece,
                kind=arguments.kind,
                between="unused" if has_between else "normal",
                skip=arguments.skip,
            )
    if step == "learn" and arguments.learn is not None:
        with importing:
            from pathlib import Path
        return edited.from_corpus(
            [Path(path) for path in arguments.corpus],
            arguments.learn,
            character_coverage=arguments.character_coverage,
            format=arguments.input_format,
            field=arguments.field,
            column=arguments.column,
        )
    return edited


def _lines(path: str | None) -> list[str]:
    """The words in the lines of a file; empty lines are left out."""
    if path is None:
        return []
    with open(path, "rb") as file:
        data = file.read()
    try:
        return [line.strip() for line in data.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8, and words are text") from None


def _write_ids(edited: Edit, path: str) -> None:
    ids = edited.ids
    if os.path.splitext(path)[1] == ".npy":
        with importing:
            import io

            import numpy as np
        data = io.BytesIO()
        np.save(data, ids)
        write_parts(path, lambda: (part for part in [data.getvalue()]))
    else:
        write_parts(path, lambda: (part for part in [as_json(ids.tolist()).encode()]))
