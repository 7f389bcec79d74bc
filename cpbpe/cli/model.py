"""The model of a command, and what its file may not say: for every command that takes one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cpbpe.cli.parsing import Parser

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer

HELP = "a model: a .model file, a tokenizer.json, a folder, a .gguf, a .tiktoken, ..."
"""What a model can be."""
RENAMED = {"special_tokens": "special_token"}
"""Options that have another name in Python."""


def add_given(parser: Parser) -> None:
    """What a user says about a model whose file does not say it."""
    group = parser.add_argument_group("a model that does not say it (.tiktoken, vocab.json with merges.txt)")
    group.add_argument(
        "--pattern",
        metavar="NAME",
        help="how texts are cut before merging: gpt2, cl100k, o200k, llama3, qwen2, tekken, or a regular "
        "expression in quotes; '' for not at all",
    )
    group.add_argument(
        "--special-token",
        action="append",
        type=_token,
        metavar="TEXT=ID",
        help="a special token and its id, such as '<|endoftext|>=100257'; may be given several times",
    )


def given_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same as `cpbpe.load` takes it."""
    tokens: list[tuple[str, int]] | None = arguments.special_token
    return {"pattern": arguments.pattern, "special_tokens": None if tokens is None else dict(tokens)}


def load(arguments: argparse.Namespace) -> Tokenizer:
    """The model; errors name its file."""
    from cpbpe.errors import ModelError
    from cpbpe.tokenizer.loading import load

    path = arguments.model
    try:
        return load(path, **given_of(arguments))
    except ModelError as error:
        message = str(error)
        message = message if path in message else f"{path}: {message}"
        raise ModelError(message, library=error.library) from error


def _token(text: str) -> tuple[str, int]:
    token, equals, id = text.rpartition("=")
    if not token or not equals or not id.isdecimal() or not id.isascii() or len(id) > 9:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a token and its id with a '=' between them, as in '<|endoftext|>=100257'"
        )
    return token, int(id)
