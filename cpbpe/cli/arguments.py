"""The arguments that commands share: a model, how files are read, the options of encoding and decoding."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cpbpe.checks import checked_threads, cores
from cpbpe.cli.output import say, show_files
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, refuse
from cpbpe.corpus.documents import Documents
from cpbpe.corpus.find import FORMATS, Found, find, format_of, size_of
from cpbpe.lazy import importing
from cpbpe.spelling import given, listed
from cpbpe.tokenizer.options import DECODE, ENCODE

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer

# --- Models ------------------------------------------------------------------------------------------

HELP = "a model: a .model file, a tokenizer.json, a folder, a .gguf, a .tiktoken, ..."
"""What a model can be."""
OUT = "write to this file, in UTF-8, instead of the standard output"
"""What --out does in commands that show something."""


def add_given(parser: Parser) -> None:
    """Add options for what the file of a model does not say: its pattern and its special tokens."""
    parser.section("a model that does not say it (.tiktoken, vocab.json with merges.txt)")
    parser.add(
        "--pattern NAME",
        "how texts are cut before merging: gpt2, cl100k, o200k, llama3, qwen2, tekken, or a regular "
        "expression in quotes; '' for not at all",
    )
    parser.add(
        "--special-token TEXT=ID",
        "a special token and its id, such as '<|endoftext|>=100257'; may be given several times",
        action="append",
        type=_token,
    )


def given_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The values of these options, as arguments for `cpbpe.load`."""
    tokens: list[tuple[str, int]] | None = arguments.special_token
    if tokens is not None and len(dict(tokens)) < len(tokens):
        raise NotUnderstoodError("--special-token: a token is there twice; give each token once")
    return {"pattern": arguments.pattern, "special_tokens": None if tokens is None else dict(tokens)}


def incomplete(paths: list[str]) -> list[str]:
    """The models that --pattern and --special-token are meant for: those whose files do not say these.

    If there is no such model, all of them, so that loading them says why these options mean nothing.
    """
    surely = [path for path in paths if path.endswith((".tiktoken", "vocab.json"))]
    perhaps = [path for path in paths if path.endswith(".gguf") or os.path.isdir(path)]
    return surely or perhaps or paths


def load(arguments: argparse.Namespace, path: str | None = None, *, plain: bool = False) -> Tokenizer:
    """Load the model, or that of a path.

    `plain`: without the options of `add_given`, because they are about another model.
    """
    with importing:
        from cpbpe.tokenizer.tokenizer import load
    path = str(arguments.model) if path is None else path
    return load(path, **({} if plain else given_of(arguments)))


def _token(text: str) -> tuple[str, int]:
    token, equals, id = text.rpartition("=")
    if not token or not equals or not id.isdecimal() or not id.isascii() or len(id) > 9:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a token and its id with a '=' between them, as in '<|endoftext|>=100257'"
        )
    return token, int(id)


# --- Reading -----------------------------------------------------------------------------------------


def add_reading(parser: Parser, tables: str) -> None:
    """Add options for the format of files, and for the field or column of the text.

    `tables` names the formats with columns.
    """
    parser.add(
        "--input-format FORMAT",
        f"the format of all files that are read, whatever they are called: {listed(list(FORMATS))}",
        type=OneOf(FORMATS),
    )
    parser.guess("format", "--input-format is that of the files that are read; to write JSON, give --json")
    parser.add(
        "--field FIELD", "which field of a .jsonl file contains the text (default: text)", default="text"
    )
    parser.add(
        "--column COLUMN",
        f"which column of a {tables} file contains the text, by name or by number, from 1 (default: "
        "text; needed for .csv)",
    )


def refuse_reading(arguments: argparse.Namespace, why: str) -> None:
    """Refuse the options of reading where nothing is read."""
    refuse(arguments, {"input_format": None, "field": "text", "column": None, "whole": False}, why)


def check_columns(arguments: argparse.Namespace, corpus: Iterable[str]) -> None:
    """Refuse --field and --column if no file of a corpus has such."""
    if arguments.field == "text" and arguments.column is None:
        return
    formats = _formats_of(arguments, corpus)
    if "jsonl" not in formats:
        refuse(arguments, {"field": "text"}, "no file is read as jsonl; --input-format says so of all files")
    if formats <= {"text", "jsonl"}:
        refuse(arguments, {"column": None}, "no file is read as a table; --input-format says so of all files")


def _formats_of(arguments: argparse.Namespace, corpus: Iterable[str]) -> set[str]:
    """The formats in which the files of a corpus are read."""
    if arguments.input_format is not None:
        return {arguments.input_format}
    return {"text" if file == "-" else format_of(file) for file in files_of(arguments, corpus)}


def check_rereadable(arguments: argparse.Namespace, corpus: Iterable[str], why: str) -> None:
    """Refuse a corpus that is read more than once, as `why` says, if a part of it comes through a pipe."""
    if size_of(files_of(arguments, corpus)) is None:
        raise NotUnderstoodError(f"what comes through a pipe can be read only once, and {why}; give a file")


def found_of(arguments: argparse.Namespace, corpus: Iterable[str]) -> Found:
    """The files that are read for a corpus."""
    return find(corpus, arguments.input_format is not None, arguments.column is not None)


def files_of(arguments: argparse.Namespace, corpus: Iterable[str]) -> Iterator[str]:
    """Yield these files. They are looked for when the first of them is wanted."""
    yield from found_of(arguments, corpus).files


def documents_of(arguments: argparse.Namespace, files: Iterable[str]) -> Documents:
    """The documents of files, read as the arguments say. Messages name files that are left out.

    The field and the column may be about other files only; `check_columns` has seen all of them.
    """
    files = list(files)
    formats = _formats_of(arguments, files)
    documents = Documents(
        files,
        format=arguments.input_format,
        field=arguments.field if "jsonl" in formats else "text",
        column=arguments.column if formats & {*Documents.tables} else None,
    )
    show_files(documents)
    return documents


# --- Messages ----------------------------------------------------------------------------------------


def add_messages(parser: Parser, what: str) -> None:
    """Add the options about messages and progress; `what` is what is said with --verbose."""
    parser.add("--quiet -q", "print nothing but warnings and errors: no summary, no progress bar")
    parser.add("--verbose -v", f"also say {what}")
    parser.add("--progress", "show a progress bar, even if the output goes into a pipe")


def progress_of(arguments: argparse.Namespace) -> bool | None:
    """Whether there is a progress bar; None if that depends on where the outputs go."""
    return False if arguments.quiet else arguments.progress or None


# --- Encoding and decoding ---------------------------------------------------------------------------

_MEANINGS = {
    "allowed_special": "special tokens that become ids where the text spells them out, with commas between "
    "them, or 'all'. Otherwise they are plain text. The longest wins",
    "disallowed_special": "special tokens that the text must not contain, with commas between them, or "
    "'raise': any that is not allowed",
    "alpha": "the chance that a merge is skipped (BPE-dropout)",
    "seed": "with --alpha: equal seeds give equal results. The first text is sampled with this number, the "
    "next with the number after it, and so on",
    "prefix_space": "whether a dummy prefix is put in front of each text; otherwise it is as the model says",
    "prefix_after_special": "whether there is a dummy prefix after a special token, too (default: yes)",
    "skip_special_tokens": "whether special tokens decode to nothing. Otherwise CONTROL pieces do, and added "
    "tokens are shown",
}
"""Meanings that need other words in a shell than in Python."""


def add_encode_options(parser: Parser) -> None:
    """Add every option of encoding."""
    parser.section("encoding")
    parser.add(
        "--file-options",
        "also what the file of the model asks for: bos, eos, no dummy prefix after special tokens",
    )
    for name, option in ENCODE.items():
        parser.add_option(name, option.annotation, _MEANINGS.get(name, option.meaning))


def add_decode_options(parser: Parser) -> None:
    """Add every option of decoding."""
    parser.section("decoding")
    for name, option in DECODE.items():
        parser.add_option(name, option.annotation, _MEANINGS.get(name, option.meaning))


def encode_options_of(arguments: argparse.Namespace, tokenizer: Tokenizer) -> dict[str, Any]:
    """The options of encoding that were given. A message says if the file asks for others."""
    options = {name: getattr(arguments, name) for name in ENCODE if hasattr(arguments, name)}
    if "alpha" not in options:
        refuse(arguments, {"seed": None}, "only --alpha samples")
    # (Tokens that are not special are found in every text.)
    finds_tokens = "allowed_special" in options or bool(tokenizer.facts.special.plain)
    if not finds_tokens:
        refuse(
            arguments, {"prefix_after_special": None}, "there are no special tokens without --allowed-special"
        )
    for name, word in (("allowed_special", "all"), ("disallowed_special", "raise")):
        if name in options:
            options[name] = word if options[name] == [word] else tuple(options[name])
    asked: dict[str, Any] = {
        name: value
        for name, value in tokenizer.file_options.items()
        if value != ENCODE[name].default and name not in options
    }
    if arguments.file_options:
        return {**asked, **options}
    if not finds_tokens:  # then there is nothing that a prefix could come after
        asked.pop("prefix_after_special", None)
    if asked and not arguments.quiet:
        flags = listed([given(name, value) for name, value in asked.items()])
        without = " ".join(given(name, not value) for name, value in asked.items())
        say(
            f"{arguments.model} asks for {flags}, which is not done; give --file-options to do what the file "
            f"asks for, or {without} to go without it and this message"
        )
    return options


def decode_options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of decoding that were given."""
    return {name: getattr(arguments, name) for name in DECODE if hasattr(arguments, name)}


def add_documents(parser: Parser) -> None:
    """Add the options that say how documents are read."""
    parser.section("reading")
    add_reading(parser, ".parquet, .arrow, .tsv or .csv")
    parser.add("--whole", "take each text file as one text, newlines included")


def threads_of(arguments: argparse.Namespace) -> int:
    """How many threads to use."""
    return cores() if arguments.threads is None else checked_threads(arguments.threads)
