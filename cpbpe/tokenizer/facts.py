"""What each id adds to a text, as bytes; and which habits of a model decide what becomes of them.

`Tokenizer.id_to_bytes` and its neighbours give these tables to users; `cpbpe.tokenizer.streaming` is built on them.
None is made when a model is loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.engine.choice import Engine
from cpbpe.model.formats import sentencepiece as model
from cpbpe.model.spec import NormalizerSpec, PieceType
from cpbpe.text.utf8 import SPACE
from cpbpe.tokenizer.checks import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.tokenizer.vocabulary import Vocabulary


class Habits(NamedTuple):
    """What a model says of itself beside its pieces."""

    normalizer: NormalizerSpec
    """How text is rewritten before it is segmented."""
    denormalizes: bool
    """Whether text is rewritten after decoding."""
    unk_surface: bytes
    """What the UNKNOWN piece is decoded to."""


def cache_of(tok: Vocabulary) -> dict[object, Any]:
    """Where tables of a tokenizer are kept: with its special tokens, which no other tokenizer shares."""
    return tok._special.tables


def habits(tok: Vocabulary) -> Habits:
    """The habits of a model, read again from its file: an engine does not tell them."""
    cache = cache_of(tok)
    found: Habits | None = cache.get("habits")
    if found is None:
        proto = model.parse_proto(tok.to_bytes())
        found = cache["habits"] = Habits(
            model.normalizer_of(proto.normalizer_spec, suffix=proto.trainer_spec.treat_whitespace_as_suffix),
            bool(proto.denormalizer_spec.precompiled_charsmap),
            proto.trainer_spec.unk_surface,
        )
    return found


def kinds(engine: Engine) -> bytes:
    """The type of every piece, one byte each."""
    return bytes(map(engine.kind, range(engine.size)))


def bytes_of(tok: Vocabulary, id: int) -> bytes:
    """What an id, which is in use, adds in the middle of a text."""
    engine = tok._engine
    if id >= engine.size:
        return tok._special.texts[id].encode()
    return _spelled(tok, engine.kind(id), engine.piece(id))


def _spelled(tok: Vocabulary, kind: int, piece: bytes) -> bytes:
    if kind == PieceType.CONTROL:
        return b""
    if kind == PieceType.BYTE:
        return bytes((int(piece[3:5], 16),))
    if kind == PieceType.UNKNOWN:
        return habits(tok).unk_surface
    return piece.replace(SPACE, b" ")


_SPELLED = re.compile(b"[%c%c%c]" % (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE))


def all_bytes(tok: Vocabulary) -> list[bytes]:
    """The same for all ids; nothing for one that is not in use."""
    engine, special = tok._engine, tok._special
    pieces = list(map(engine.piece, range(engine.size)))
    # All at once, which is faster. No piece holds a NUL, unless it is one.
    table = b"\0".join(pieces).replace(SPACE, b" ").split(b"\0")
    if len(table) != len(pieces):
        table = [piece.replace(SPACE, b" ") for piece in pieces]
    for found in _SPELLED.finditer(kinds(engine)):
        id = found.start()
        table[id] = _spelled(tok, found[0][0], pieces[id])
    table += [special.texts.get(id, "").encode() for id in range(engine.size, special.size)]
    return table


def packed(table: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A table in one array, and where each entry begins, and the end.

    >>> data, offsets = packed([b"ab", b"", b"c"])
    >>> data.tobytes(), offsets.tolist()
    (b'abc', [0, 2, 2, 3])
    """
    np = numpy()
    offsets = np.zeros(len(table) + 1, np.int64)
    np.cumsum(list(map(len, table)), out=offsets[1:])
    return np.frombuffer(bytearray().join(table), np.uint8), offsets
