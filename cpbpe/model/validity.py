"""Checks that a model is valid. Everything that sentencepiece refuses is invalid. Errors name the piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.unicode_forms import FORMS
from cpbpe.text.utf8 import NEVER_IN_UTF8

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
    check_alphabet(spec)
    _check_pieces(spec)
    if spec.alphabet == "bytes":
        _check_byte_level(spec)
        return
    if spec.normalizer.charsmap:
        Charsmap(spec.normalizer.charsmap, "normalizer_spec")
    if spec.denormalizer is not None and spec.denormalizer.charsmap:
        Charsmap(spec.denormalizer.charsmap, "denormalizer_spec")


def hide_nul(texts: Sequence[bytes], types: bytearray, byte_fallback: bool) -> None:
    """If there is byte fallback, give the piece that is one NUL character the type UNUSED.

    Some converted models hold such a piece. It does nothing: sentencepiece never finds it, and with byte
    fallback <0x00> stands for the character. With any other type, `check` would refuse it.
    """
    if byte_fallback and b"\0" in texts:
        for id, text in enumerate(texts):
            if text == b"\0":
                types[id] = PieceType.UNUSED


def check_alphabet(spec: ModelSpec) -> None:
    """Raise a ModelError if the alphabet of a spec does not fit its other fields.

    (This takes hardly any time, so it is done before every engine is built.)
    """
    if spec.alphabet not in ("characters", "bytes"):
        raise ModelError(f'the alphabet of a model is "characters" or "bytes", not {spec.alphabet!r}')
    form, denormalizer = spec.normalizer.unicode_form, spec.denormalizer
    if form and form not in FORMS:
        raise ModelError(f"unicode_form={form!r} is none of the Unicode normal forms, {', '.join(FORMS)}")
    if form and spec.alphabet == "characters":
        raise ModelError(
            f"unicode_form={form!r} is for byte-level models; other models have such rules in a charsmap, as "
            f'those that are trained with normalization_rule_name="nfkc"'
        )
    if denormalizer is not None and denormalizer.unicode_form:
        raise ModelError(
            f"unicode_form={denormalizer.unicode_form!r} is for the normalizer, not for the denormalizer"
        )
    if spec.alphabet == "characters":
        if spec.splitter is not None or spec.whole:
            raise ModelError('`splitter` and `whole` are for byte-level models; pass alphabet="bytes", too')
        return
    if spec.splitter is not None:
        if not spec.splitter.pattern:
            raise ModelError(
                "the pattern of a splitter is empty; for a text as one chunk leave out the splitter"
            )
        if not all(spec.splitter.then):
            raise ModelError("a pattern in the `then` of a splitter is empty; leave it out")
        with importing:
            from cpbpe.text.split_syntax import check_syntax
        for pattern in spec.patterns:
            check_syntax(pattern)
    if spec.byte_fallback:
        raise ModelError("a byte-level model needs no byte_fallback: leave it off")
    rules = spec.normalizer
    rewrites = rules.charsmap or rules.remove_extra_whitespaces or rules.escape_whitespaces or rules.suffix
    if rewrites or spec.denormalizer is not None:
        raise ModelError(
            "a byte-level model has no normalizer and no denormalizer, but for a unicode_form and a space in "
            "front (add_dummy_prefix): pass normalizer=NormalizerSpec(add_dummy_prefix=False, "
            "remove_extra_whitespaces=False, escape_whitespaces=False)"
        )


def _check_pieces(spec: ModelSpec) -> None:
    pieces, types = spec.pieces.texts, spec.pieces.types

    def blame(id: int, reason: str) -> ModelError:
        piece = pieces[id]
        shown = piece if len(piece) <= 40 else piece[:40] + b"..."
        text = shown.decode(errors="backslashreplace")
        return ModelError(f"piece {id}, {text!r}, {reason}", piece=piece, id=id)

    if not pieces:
        raise ModelError("the model has no pieces")
    byte_level = spec.alphabet == "bytes"
    ids: dict[bytes, int] = {}
    unknown = None
    for id, (piece, type) in enumerate(zip(pieces, types, strict=True)):
        if len(piece) >= MAX_PIECE_BYTES:
            raise blame(id, f"is {len(piece)} bytes long; a piece has fewer than {MAX_PIECE_BYTES}")
        if not piece:
            raise blame(id, "is empty")
        if byte_level and type not in (PieceType.NORMAL, PieceType.CONTROL):
            raise blame(
                id,
                f"has the type {PieceType(type).name}; those of a byte-level model are NORMAL or CONTROL",
            )
        if piece == b"\0" and type == PieceType.UNUSED:  # see `hide_nul`
            continue
        if b"\0" in piece and not byte_level:
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
    elif unknown is None and not byte_level:
        raise ModelError("no piece has the type UNKNOWN and byte_fallback is off; one of the two is needed")


def missing_bytes(pieces: Pieces) -> str:
    """For a message, say which bytes that occur in UTF-8 are no NORMAL pieces; "" if none is missing.

    >>> missing_bytes(Pieces.of((bytes([byte]), 0, PieceType.NORMAL) for byte in range(0xC0)))
    '51 of the 243 (0xC2, 0xC3, 0xC4, ...)'
    """
    known = {text for text, type in zip(pieces.texts, pieces.types, strict=True) if type == PieceType.NORMAL}
    wanted = [byte for byte in range(256) if byte not in NEVER_IN_UTF8]
    missing = [byte for byte in wanted if bytes([byte]) not in known]
    if not missing:
        return ""
    shown = ", ".join(f"0x{byte:02X}" for byte in missing[:3]) + (", ..." if len(missing) > 3 else "")
    return f"{len(missing)} of the {len(wanted)} ({shown})"


def _check_byte_level(spec: ModelSpec) -> None:
    """Check what is required of byte-level models only."""
    # 1. Every text must have ids.
    if missing := missing_bytes(spec.pieces):
        raise ModelError(
            f"in a byte-level model every byte of UTF-8 is a NORMAL piece, and {missing} are missing"
        )
    # 2. The patterns must be regular expressions.
    for pattern in spec.patterns:
        compiled(pattern)


def compiled(pattern: str) -> Any:
    """Compile a pattern. Raise a ModelError if it is not a regular expression."""
    with importing:
        import regex

        from cpbpe.text.split_syntax import for_regex
    try:
        return regex.compile(for_regex(pattern))
    except regex.error as error:
        raise ModelError(f"the pattern {pattern!r} is not a regular expression: {error}") from None
