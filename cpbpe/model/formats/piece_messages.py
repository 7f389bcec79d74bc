"""The pieces of a model file as protobuf writes them: they are nearly all of the file.

Each is a field of the file that holds the text, the score and, if it is not NORMAL, the type. They are
written in columns. (With an object of protobuf for each piece, writing a model took twice as long.)
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from itertools import chain
from struct import iter_unpack

from cpbpe.model.spec import Pieces, PieceType

_ADDED, _ID = b"\xa2\xae\x14", b"\x10"
"""What begins the field of a file that is an added token (field 41700), and in it that of the id."""
_PIECE, _TEXT, _SCORE, _TYPE = b"\x0a", b"\x0a", b"\x15", b"\x18"
"""What begins the field of a file that is a piece (its length follows), and in it the fields of the text (its
length follows, too), the score (a float32) and the type (a number)."""
_SCORE_BYTES = 5
"""How many bytes the field of a score takes."""
_USUAL = 100
"""Texts of fewer bytes have their heads in a list."""


def piece_messages(pieces: Pieces) -> bytes:
    r"""The fields of a model file that hold its pieces.

    >>> piece_messages(Pieces.of([(b"<s>", 0, PieceType.CONTROL), (b"ab", -1, PieceType.NORMAL)]))
    b'\n\x0c\n\x03<s>\x15\x00\x00\x00\x00\x18\x03\n\t\n\x02ab\x15\x00\x00\x80\xbf'
    """
    texts, types = pieces.texts, pieces.types
    lengths = list(map(len, texts))
    # 1. What is before and after each text, as if all were short and NORMAL.
    longest = max(lengths, default=0)
    usual = [_head(length, _SCORE_BYTES) for length in range(min(longest + 1, _USUAL))]
    usual += usual[-1:] * (longest + 1 - len(usual))
    heads = list(map(usual.__getitem__, lengths))
    tails = list(chain.from_iterable(iter_unpack(f"{_SCORE_BYTES}s", _scores(pieces))))
    # 2. The others.
    normal = int(PieceType.NORMAL)
    unusual = {id for id, type in enumerate(types) if type != normal}
    if longest >= _USUAL:
        unusual.update(id for id, length in enumerate(lengths) if length >= _USUAL)
    for id in unusual:
        if types[id] != normal:
            tails[id] += _TYPE + _varint(types[id])
        heads[id] = _head(lengths[id], len(tails[id]))
    return b"".join(chain.from_iterable(zip(heads, texts, tails, strict=True)))


def added_messages(tokens: Iterable[tuple[bytes, int]]) -> bytes:
    r"""The same for added tokens, of which there may be thousands, too.

    >>> added_messages([(b"<x>", 300)])
    b'\xa2\xae\x14\x08\n\x03<x>\x10\xac\x02'
    """
    fields = []
    for text, id in tokens:
        token = _TEXT + _varint(len(text)) + text + _ID + _varint(id)
        fields += [_ADDED, _varint(len(token)), token]
    return b"".join(fields)


def _scores(pieces: Pieces) -> bytearray:
    """The field of every score, one after the other."""
    scores = array("f", pieces.scores)
    if sys.byteorder == "big":
        scores.byteswap()
    columns = scores.tobytes()
    fields = bytearray(_SCORE * (_SCORE_BYTES * len(pieces)))
    for at in range(4):
        fields[at + 1 :: _SCORE_BYTES] = columns[at::4]
    return fields


def _head(text: int, tail: int) -> bytes:
    """What comes before a text of this many bytes that has this many after it."""
    inner = _TEXT + _varint(text)
    return _PIECE + _varint(len(inner) + text + tail) + inner


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
