"""Tables as text, with a text in one column: csv, whose cells can be in quotes, and tsv, whose cells cannot.

A column is named as the first line names it, or given as its number, from 1, if there is no line of names.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator

from cpbpe.corpus.lines import whole_lines
from cpbpe.errors import CorpusError
from cpbpe.spelling import given

_BOM = "\ufeff"
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 14


def read_table(
    name: str, file_parts: Iterable[bytes], format: str, column: str | int
) -> Iterator[list[bytes | None]]:
    r"""The texts of a table in batches; None for an empty line.

    >>> list(read_table("a.csv", [b'id,text\n1,"a, ', b'b"\n2,c\n'], "csv", "text"))
    [[b'a, b', b'c']]
    >>> list(read_table("a.tsv", [b'1\t"a\n2\tb\n'], "tsv", 2))
    [[b'"a', b'b']]
    """
    place = _number(column)
    texts: list[bytes | None] = []
    size = 0
    for line, row in (_quoted if format == "csv" else _plain)(name, _lines(file_parts)):
        if not row:
            if place is not None:
                texts.append(None)
            continue
        if place is None:
            place = _place(name, row, str(column))
            continue
        if place >= len(row):
            raise CorpusError(
                f"{name}:{line}: there is no column {place + 1} in this row, which has {len(row)}; complete "
                f"it, or correct the quotes before it"
            )
        texts.append(row[place].encode("utf-8", "surrogateescape"))
        size += len(row[place])
        if size >= _BATCH_BYTES or len(texts) >= _BATCH_ROWS:
            yield texts
            texts, size = [], 0
    if texts:
        yield texts


def _number(column: str | int) -> int | None:
    """The place of a column that is given by its number."""
    if isinstance(column, str) and not (column.isascii() and column.isdecimal()):
        return None
    if int(column) < 1:
        raise CorpusError(f"columns are numbered from 1, so there is no column {column}")
    return int(column) - 1


def _place(name: str, names: list[str], column: str) -> int:
    """The place of a column in the line of names."""
    if column not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        other = "; its columns seem to be separated by something else than its name says"
        raise CorpusError(
            f"{name}: there is no column {column!r} in its first line (there is {shown})"
            f"{other if len(names) == 1 and any(sign in names[0] for sign in ';,|') else ''}; name it with "
            f"{given('column', ...)}, or give its number, from 1, if the first line holds no names"
        )
    if names.count(column) > 1:
        raise CorpusError(f"{name}: there are {names.count(column)} columns {column!r}; rename one of them")
    return names.index(column)


def _lines(file_parts: Iterable[bytes]) -> Iterator[str]:
    """The lines of a file with their ends. Bytes that are not UTF-8 come through as half surrogates."""
    first = True
    for lines in whole_lines(file_parts):
        text = lines.decode("utf-8", "surrogateescape")
        yield from io.StringIO(text.removeprefix(_BOM) if first else text, newline="\n")
        first = False


def _plain(name: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.removesuffix("\n").removesuffix("\r")
        yield number, cells.split("\t") if cells else []


def _quoted(name: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    # The process has one limit, and another thread may be reading, too: so it is not lowered again.
    csv.field_size_limit((1 << 31) - 1 if sys.platform == "win32" else sys.maxsize)
    reader = csv.reader(lines, strict=True)
    while True:
        begun = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CorpusError(
                f"{name}:{begun}: not valid CSV: {error}; quotes inside of a quoted text must be doubled"
            ) from None
        yield begun, row
