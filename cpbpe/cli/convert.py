"""``cpbpe convert``: a model in another format."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import add_given, given_of
from cpbpe.cli.output import existing, make_folder, print_report, say
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser
from cpbpe.lazy import importing
from cpbpe.model.formats.registry import FORMATS
from cpbpe.spelling import sized

if TYPE_CHECKING:
    from cpbpe.tokenizer.converting import Conversion

_FOLDER = "folder"
_FORMATS = (*FORMATS, _FOLDER)

_DESCRIPTION = """\
Write a model in another format. Every text keeps its ids, or nothing is written
and a text is shown that would not. The end of the target's name says which
format: .json, .gguf, .bin, .vocab, .tiktoken, a slash for a folder that
transformers loads. Most other names mean a .model file.
"""

_EXAMPLES = """\
examples:
  cpbpe convert tokenizer.model tokenizer.json --add-bos
  cpbpe convert tokenizer.json tokenizer.model
  cpbpe convert my.model my-tokenizer/ --add-bos --chat-template chat.jinja
  cpbpe convert downloaded-folder my.model --verify corpus.txt
"""

_GUESSED = {
    **dict.fromkeys(("out", "output", "o"), "the target comes second, without a name"),
    **dict.fromkeys(("model", "input", "source"), "the source comes first, without a name"),
    **dict.fromkeys(("format", "output-format", "to-format"), "it is --to"),
    **dict.fromkeys(
        ("from", "input-format"), "the format of the source is told from its bytes; leave it out"
    ),
    **dict.fromkeys(("overwrite", "replace"), "files are replaced without asking; leave it out"),
    **dict.fromkeys(("bos", "eos"), "it is --add-bos or --add-eos"),
    **dict.fromkeys(("lossy", "inexact", "allow-lossy"), "it is --allow-differences"),
    **dict.fromkeys(("check", "test"), "it is --verify FILE"),
    "silent": "--quiet hides everything but errors",
}
"""Flags that people guess."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe convert SOURCE TARGET [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {**_GUESSED, "force": "files are replaced without asking; leave it out, or see --allow-differences"},
    )
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a model of any format, or its folder")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="the file or the folder to write")
    formats = ", ".join(_FORMATS)
    parser.add("--to FORMAT", f"the format, whatever the target is called: {formats}", type=OneOf(_FORMATS))
    parser.add("--allow-differences", "also convert if some texts get other ids, and list why")
    parser.section("what the file asks for (default: what the source asks for)")
    for end in ("bos", "eos"):
        parser.add(f"--[no-]add-{end}", f"whether {end} is put around every text")
    parser.add("--[no-]prefix-after-special", "whether text after a special token begins with a dummy prefix")
    parser.add(
        "--chat-template FILE",
        "a file with the template of conversations; with a name, NAME=FILE, one of several",
        action="append",
    )
    add_given(parser)
    parser.section("checking and reporting")
    parser.add(
        "--verify FILE",
        "encode every line of this file before anything is written, with the result and with the "
        "library whose format it is, if that is installed; the ids must be the same",
    )
    parser.add("--json", "print the summary as JSON")
    parser.add("--quiet -q", "print nothing but errors")
    parser.add("--verbose -v", "also name every file with its size")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Convert as the arguments say."""
    # 1. Checks that come before the work.
    source, target = arguments.source, arguments.target
    if source is None or target is None:
        missing = "no source" if source is None else "no target"
        raise NotUnderstoodError(
            f"there is {missing}; name both: cpbpe convert tokenizer.model tokenizer.json"
        )
    if os.path.isdir(target) and arguments.to is None and not target.endswith((os.sep, "/")):
        raise NotUnderstoodError(
            f"{target!r} is a folder; to write one for transformers, type {os.path.join(target, '')!r}; "
            f"for one file, give a name in it, such as {os.path.join(target, 'tokenizer.json')!r}"
        )
    templates = _templates(arguments.chat_template)
    # 2. The work.
    with importing:
        from cpbpe.tokenizer.converting import Asked, prepare
    replaced = existing([target]) if os.path.isfile(target) else ""
    asked = Asked(
        to=arguments.to,
        add_bos=arguments.add_bos,
        add_eos=arguments.add_eos,
        prefix_after_special=arguments.prefix_after_special,
        chat_template=templates,
        verify=arguments.verify,
        allow_differences=arguments.allow_differences,
        **given_of(arguments),
    )
    prepared = prepare(source, target, asked)
    make_folder(target)
    done = prepared.write()
    # 3. What it did.
    if arguments.json:
        differences = [{"reason": reason, "text": text} for reason, text in done.differences]
        summary = {**vars(done), "exact": done.is_exact, "differences": differences}
        print(json.dumps(summary, ensure_ascii=False))
    elif not arguments.quiet:
        print_report(f"{label:<14}{text}" for label, text in _lines(done, replaced))
    for path in done.files if arguments.verbose else ():
        say(f"{path}: {sized(os.path.getsize(path))}")
    return 0


def _templates(given: list[str] | None) -> dict[str, str] | None:
    """The templates in files, by name."""
    if given is None:
        return None
    templates = {}
    for item in given:
        name, equals, path = item.partition("=")
        if not equals or os.path.exists(item):
            name, path = "default", item
        if name in templates:
            raise NotUnderstoodError(f"--chat-template: two are called {name}; give each a name: NAME=FILE")
        with open(path, "rb") as file:
            data = file.read()
        try:
            templates[name] = data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: byte {error.start} is not UTF-8, and a chat template is text"
            ) from None
    return templates


def _lines(done: Conversion, replaced: str) -> list[tuple[str, str]]:
    written = f"{done.path}{replaced}"
    if done.path in done.files:
        written = ", ".join([written, *(path for path in done.files if path != done.path)])
    else:
        written += f": {', '.join(os.path.relpath(path, done.path) for path in done.files)}"
    lines = [("written", written)]
    if done.is_exact:
        lines.append(("exact", "every text keeps its ids"))
    for reason, text in done.differences:
        shown = "" if text is None else f" (for example in the text {text!r})"
        lines.append(("differs", f"{reason}{shown}"))
    if done.tried is not None:
        lines.append(("tried", done.tried))
    if done.verified is not None:
        lines.append(("verified", done.verified))
    return [*lines, *(("note", note) for note in done.notes)]
