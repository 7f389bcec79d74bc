"""Formats of a corpus in which a file holds records: counted texts (tsv) and JSON Lines.

Every error names the file and the line or row. A record whose text is null becomes None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cpbpe.errors import CorpusError
from cpbpe.spelling import given

_COUNT = re.compile(rb"[ \t\r\v\f]*\+?0*([0-9]{1,19})[ \t\r\v\f]*")


def parse_tsv(lines: Sequence[bytes], where: Callable[[int], str]) -> tuple[list[bytes], list[int]]:
    """The texts of tsv lines and their counts; `where` names the place of a line, given its index."""
    sentences: list[bytes] = []
    counts: list[int] = []
    for index, line in enumerate(lines):
        columns = line.split(b"\t")
        if len(columns) != 2:
            raise CorpusError(
                f"{where(index)}: a line of tsv is text, one tab and a count, and this has "
                f"{len(columns) - 1} tabs; give {given('format', 'text')} if the file is something else"
            )
        count = _COUNT.fullmatch(columns[1])
        if count is None or not 1 <= int(count[1]) < 1 << 63:
            shown = columns[1][:40].decode(errors="backslashreplace")
            raise CorpusError(
                f"{where(index)}: the count must be an integer from 1 to 2**63 - 1, not {shown!r}"
            )
        sentences.append(columns[0])
        counts.append(int(count[1]))
    return sentences, counts


def parse_json(lines: Sequence[bytes], field: str, where: Callable[[int], str]) -> Iterator[bytes | None]:
    """The texts of lines; each line holds a JSON object with the text in one field."""
    for index, line in enumerate(lines):
        if not line or line.isspace():
            yield b""
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            hint = "; each line holds one JSON object" if isinstance(error, json.JSONDecodeError) else ""
            raise CorpusError(f"{where(index)}: not valid JSON: {error}{hint}") from None
        except RecursionError:
            raise CorpusError(f"{where(index)}: the JSON is nested too deeply") from None
        if not isinstance(record, dict) or field not in record:
            fields = ", ".join(map(repr, list(record)[:10])) if isinstance(record, dict) else "no object"
            raise CorpusError(
                f"{where(index)}: there is no field {field!r} (there is {fields or 'none'}); "
                f"name it with {given('field', ...)}"
            )
        text = record[field]
        if text is not None and not isinstance(text, str):
            raise CorpusError(f"{where(index)}: the field {field!r} is {type(text).__name__}, not text")
        yield None if text is None else encoded(text, partial(_field, where, index, field))


def _field(where: Callable[[int], str], index: int, field: str) -> str:
    return f"{where(index)}: the field {field!r}"


def encoded(text: str, where: Callable[[], str]) -> bytes:
    """Text in UTF-8. Half of a surrogate pair is not a character: it is refused, whatever the source."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where()} is not valid Unicode: {error}; correct it, or give the texts as bytes, as in "
            f"text.encode(errors='replace')"
        ) from None
