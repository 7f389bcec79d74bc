"""The arguments that say how files are read, for every command that reads a corpus or documents."""

from __future__ import annotations

from typing import Any

from cpbpe.cli.parsing import OneOf
from cpbpe.corpus.find import FORMATS
from cpbpe.spelling import listed


def add_reading(group: Any, tables: str, format_flag: str = "--format", name: str = "format") -> None:
    """The format of files, which is parsed as `name`, and where the text is in those with fields or columns.

    `tables` names the formats with columns.
    """
    group.add_argument(
        format_flag,
        dest=name,
        metavar="FORMAT",
        type=OneOf(FORMATS),
        help=f"the format of all files, whatever they are called: {listed(list(FORMATS))}",
    )
    group.add_argument(
        "--field", default="text", help="which field of a .jsonl file contains the text (default: text)"
    )
    group.add_argument(
        "--column",
        help=f"which column of a {tables} file contains the text, by name or by number, from 1 (default: "
        "text; needed for .csv)",
    )
