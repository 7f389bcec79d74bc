r"""The whole vocabulary as a file: TSV or JSON, with escapes so that other programs cannot damage it.

In TSV, the first line has the names of the columns, and every other line is one piece, whatever its text:
id, type, score, piece. In the piece, a backslash is ``\\``; tabs, newlines, carriage returns and other
characters that are not visible are ``\t``, ``\n``, ``\r``, ``\uXXXX`` and ``\UXXXXXXXX``; and a byte that is
not UTF-8 is ``\xXX``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.tokenizer import Tokenizer

ADDED = "ADDED"
"""The type of a token that was added to the model."""
HEADER = "id\ttype\tscore\tpiece"
"""The first line of the TSV file."""

_ESCAPED = re.compile(r"\\(?:[\\tnr]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_NOT_ASCII = re.compile(r"[^ -~]")


class Row(NamedTuple):
    """An entry of the vocabulary."""

    id: int
    """Its id."""
    type: str
    """Its type, as `PieceType` names it, or ADDED."""
    score: float
    """Its score; 0 for an added token."""
    piece: bytes
    """Its text."""


def rows(tok: Tokenizer) -> Iterator[Row]:
    """All pieces in the order of their ids, then the added tokens."""
    pieces = tok.facts.spec.pieces
    names = {int(type): type.name for type in PieceType}
    for id, (piece, score, type) in enumerate(zip(pieces.texts, pieces.numbers(), pieces.types, strict=True)):
        yield Row(id, names[type], score, piece)
    for token, id in sorted(tok.vocab.added_tokens.items(), key=lambda item: item[1]):
        yield Row(id, ADDED, 0.0, token.encode())


def to_tsv(tok: Tokenizer) -> Iterator[str]:
    """The lines of the TSV file, without their ends."""
    yield HEADER
    for row in rows(tok):
        yield f"{row.id}\t{row.type}\t{_number(row.score)}\t{escaped(row.piece)}"


def to_json(tok: Tokenizer) -> Iterator[str]:
    """The lines of the JSON file, one for each piece. It is one array of objects.

    A piece that is not UTF-8 also has its bytes, in hexadecimal. A score that JSON has no number for is a
    text: "nan", "inf" or "-inf".
    """
    return to_json_rows(list(rows(tok)))


def to_json_rows(every: Sequence[Row]) -> Iterator[str]:
    """The lines of the JSON file, for any entries."""
    yield "["
    for place, row in enumerate(every, 1):
        text = row.piece.decode(errors="replace")
        number = _number(row.score)
        score: object = float(number) if abs(row.score) < float("inf") else number
        fields = {"id": row.id, "type": row.type, "score": score, "piece": text}
        if text.encode() != row.piece:
            fields["hex"] = row.piece.hex()
        yield visible(json.dumps(fields, ensure_ascii=False)) + ("," if place < len(every) else "")
    yield "]"


def read_tsv(lines: Iterable[str]) -> Iterator[Row]:
    """The rows of a TSV file that `to_tsv` made; ValueError for any other file."""
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\n")
        if number == 1:
            if line != HEADER:
                raise ValueError(f"line 1 is not {HEADER!r}, so cpbpe has not written this file")
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise ValueError(f"line {number} has {len(fields)} fields, not 4")
        yield Row(int(fields[0]), fields[1], float(fields[2]), unescaped(fields[3]))


def read_json(text: str) -> Iterator[Row]:
    """The rows of a JSON file that `to_json` made."""
    for entry in json.loads(text):
        piece = bytes.fromhex(entry["hex"]) if "hex" in entry else entry["piece"].encode()
        yield Row(entry["id"], entry["type"], float(entry["score"]), piece)


def escaped(piece: bytes) -> str:
    r"""A piece as visible text without tabs or line breaks.

    >>> escaped("▁a\tb\\".encode()), escaped(b"\xe2\x96"), escaped("\u202e\x00".encode())
    ('▁a\\tb\\\\', '\\xe2\\x96', '\\u202e\\u0000')
    """
    text = piece.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
    return text if text.isprintable() else _NOT_ASCII.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    r"""The escape of an invisible character, as in Python, but with \u00XX for \xXX, which is a byte here."""
    character = match[0]
    if character.isprintable():
        return character
    short = character in "\t\n\r" or character > "\xff"
    return ascii(character)[1:-1] if short else f"\\u{ord(character):04x}"


def unescaped(text: str) -> bytes:
    r"""The inverse of `escaped`.

    >>> unescaped("\\u202e\\xe2\\\\t")
    b'\xe2\x80\xae\xe2\\t'
    """

    def meant(match: re.Match[str]) -> str:
        escape = match[0]
        is_byte = escape[1] == "x"
        return chr(0xDC00 + int(escape[2:], 16)) if is_byte else escape.encode().decode("unicode_escape")

    return _ESCAPED.sub(meant, text).encode(errors="surrogateescape")


def visible(text: str) -> str:
    r"""Equivalent JSON, in which the characters that are not visible are escaped.

    >>> visible('["\u202e\x7f🦙"]')
    '["\\u202e\\u007f🦙"]'
    """

    def escape(match: re.Match[str]) -> str:
        character = match[0]
        if character.isprintable() or character == "\n":  # (a newline is between the values)
            return character
        return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]

    return text if text.isprintable() else _NOT_ASCII.sub(escape, text)


def _number(score: float) -> str:
    """The shortest number that is this score in 32 bits."""
    return str(np.float32(score)).removesuffix(".0")
