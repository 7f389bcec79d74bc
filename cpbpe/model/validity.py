"""What makes a model invalid: everything that sentencepiece refuses. Errors name the piece."""

from __future__ import annotations

from cpbpe.errors import ModelError
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.charsmap import Charsmap

MAX_PIECE_BYTES = 8000
"""sentencepiece refuses pieces of this length and above."""

BYTE_PIECES = tuple(b"<0x%02X>" % byte for byte in range(256))
"""The texts of the BYTE pieces, by their bytes."""


def check(spec: ModelSpec) -> None:
    """Raise a ModelError if no engine can be built from this model.

    >>> from cpbpe.model.spec import Piece, Pieces
    >>> check(ModelSpec(Pieces.of([Piece(b"a"), Piece(b"a")])))
    Traceback (most recent call last):
    ...
    cpbpe.errors.ModelError: piece 1, 'a', occurs twice: it is also piece 0
    """
    _check_pieces(spec)
    if spec.normalizer.charsmap:
        Charsmap(spec.normalizer.charsmap, "normalizer_spec")
    if spec.denormalizer is not None and spec.denormalizer.charsmap:
        Charsmap(spec.denormalizer.charsmap, "denormalizer_spec")


def _check_pieces(spec: ModelSpec) -> None:
    pieces, types = spec.pieces.texts, spec.pieces.types

    def blame(id: int, reason: str) -> ModelError:
        piece = pieces[id]
        shown = piece if len(piece) <= 40 else piece[:40] + b"..."
        text = shown.decode(errors="backslashreplace")
        return ModelError(f"piece {id}, {text!r}, {reason}", piece=piece, id=id)

    if not pieces:
        raise ModelError("the model has no pieces")
    ids: dict[bytes, int] = {}
    unknown = None
    for id, (piece, type) in enumerate(zip(pieces, types, strict=True)):
        if len(piece) >= MAX_PIECE_BYTES:
            raise blame(id, f"is {len(piece)} bytes long; a piece has fewer than {MAX_PIECE_BYTES}")
        if not piece:
            raise blame(id, "is empty")
        if piece == b"\0" and type == PieceType.UNUSED:
            continue
        if b"\0" in piece:
            raise blame(id, "contains a NUL character (U+0000)")
        if ids.setdefault(piece, id) != id:
            raise blame(id, f"occurs twice: it is also piece {ids[piece]}")
        if type == PieceType.UNKNOWN:
            if unknown is not None:
                raise blame(
                    id, f"has the type UNKNOWN, and so has piece {unknown}; only one piece can have it"
                )
            unknown = id
        if type == PieceType.BYTE:
            if not spec.byte_fallback:
                raise blame(id, "has the type BYTE, but the model's byte_fallback is off")
            if piece not in BYTE_PIECES:
                raise blame(id, "has the type BYTE, but is not one of <0x00> to <0xFF>")
    if spec.byte_fallback:
        missing = [piece for piece in BYTE_PIECES if piece not in ids or types[ids[piece]] != PieceType.BYTE]
        if missing:
            names = ", ".join(piece.decode() for piece in missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise ModelError(
                f"byte_fallback is on, but {len(missing)} of the 256 BYTE pieces are missing: {names}"
            )
    elif unknown is None:
        raise ModelError("no piece has the type UNKNOWN and byte_fallback is off; one of the two is needed")
