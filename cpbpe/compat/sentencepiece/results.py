r"""Results of encoding and decoding with details about every piece: messages and offset mappings.

A message is a SentencePieceText. It is written here byte by byte, with the same fields set as in
sentencepiece, so that the bytes are equal. (Protobuf's own classes would refuse a piece that is not UTF-8.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from cpbpe.engine.protocol import Aligned
from cpbpe.model.spec import ModelSpec
from cpbpe.reference.encoding import BYTE_PIECES, surfaces
from cpbpe.text.utf8 import character_length, character_positions

_BYTES = {piece: bytes([value]) for value, piece in enumerate(BYTE_PIECES)}
"""The byte that each BYTE piece stands for."""
_ONE_BYTE = [bytes([value]) for value in range(128)]
"""The numbers that protobuf writes as one byte."""


class Analysis:
    """A text and its pieces: what a SentencePieceText holds. All columns are of the same length."""

    def __init__(self, text: bytes, tokens: Aligned, surfaces: Sequence[bytes | None] | None = None):
        self.text = text
        """The text that was encoded, or the result of decoding."""
        self.ids, self.pieces, self.spans = tokens
        """Ids (-1 for unknown characters in a model without UNKNOWN), pieces, and their spans in the text."""
        self.surfaces = surfaces
        """The part of the text that a piece stands for; None if the message does not set it."""

    def serialized(self, in_parallel: bool = False) -> bytes:
        r"""The message.

        >>> Analysis(b"a", ([300], [b"a"], [(0, 1)])).serialized()
        b'\n\x01a\x12\r\n\x01a\x10\xac\x02\x1a\x01a \x00(\x01'
        """
        surfaces = self._surfaces(in_parallel) if self.surfaces is None else self.surfaces
        # 0x0A is the text, and each 0x12 a piece. Of a piece, 0x0A is the text, 0x10 the id, 0x1A the
        # surface, 0x20 the begin and 0x28 the end.
        written = [b"\x0a", varint(len(self.text)), self.text]
        heads: dict[tuple[int, bytes], bytes] = {}  # what was written for each piece seen
        for id, piece, surface, (begin, end) in zip(self.ids, self.pieces, surfaces, self.spans, strict=True):
            head = heads.get((id, piece))
            if head is None:
                head = b"\x0a" + varint(len(piece)) + piece + b"\x10" + varint(id & 0xFFFFFFFF)
                heads[id, piece] = head
            if surface is None:
                body = b"%b\x20%b\x28%b" % (head, varint(begin), varint(end))
            else:
                body = b"%b\x1a%b%b\x20%b\x28%b" % (
                    head,
                    varint(len(surface)),
                    surface,
                    varint(begin),
                    varint(end),
                )
            written += (b"\x12", varint(len(body)), body)
        return b"".join(written)

    def mapping(self, as_bytes: bool, with_text: bool) -> dict[str, Any]:
        """The dict for `return_type="offset_mapping"`, with offsets in bytes or in characters."""
        shown: Any = self.pieces
        spans = self.spans
        if not as_bytes:
            shown = [self._shown(piece, *span) for piece, span in zip(self.pieces, spans, strict=True)]
            if not self.text.isascii():
                positions = character_positions(self.text, by_first_byte=True)
                spans = [(positions[begin], positions[end]) for begin, end in spans]
        result: dict[str, Any] = {}
        if with_text:
            result["text"] = self.text if as_bytes else self.text.decode()
        result["ids"] = self.ids if min(self.ids, default=0) >= 0 else [id & 0xFFFFFFFF for id in self.ids]
        result["pieces"] = shown
        result["offsets"] = spans
        return result

    def _shown(self, piece: bytes, begin: int, end: int) -> str:
        """A piece as str; its span must be inside the text."""
        text = piece.decode()
        if max(begin, end) > len(self.text):
            raise ValueError(
                f"a piece is at the bytes {begin} to {end}, outside of the text of {len(self.text)} bytes, "
                f"which the model's denormalizer has made shorter; use return_bytes=True"
            )
        return text

    def _surfaces(self, in_parallel: bool) -> list[bytes | None]:
        """The surfaces of an encoded text.

        If a character is encoded as BYTE pieces, only the last of them has a surface. With `in_parallel`, it
        has none either if its surface would be empty, as in `parallel_encode`.
        """
        text = self.text
        surfaces: list[bytes | None] = [text[begin:end] for begin, end in self.spans]
        left = 0  # how many BYTE pieces of the current character follow
        for at, piece in enumerate(self.pieces):
            if piece not in _BYTES:
                left = 0
                continue
            left = (left or character_length(_BYTES[piece], 0)) - 1
            if not surfaces[at] and (left or in_parallel):
                surfaces[at] = None
            else:
                left = 0
        return surfaces


def of_decoded(spec: ModelSpec, text: bytes, pieces: list[bytes]) -> Analysis:
    """The analysis of a text that was decoded from pieces.

    A denormalizer has changed the text, but does not change the positions of pieces.
    """
    unknown = -1 if spec.unknown_id is None else spec.unknown_id
    ids = [spec.ids.get(piece, unknown) for piece in pieces]
    own = list(surfaces(spec, zip(pieces, ids, strict=True), listed=True))
    spans = list(pairwise(accumulate(map(len, own), initial=0)))
    return Analysis(b"".join(own) if spec.denormalizer is None else text, (ids, pieces, spans), own)


def varint(number: int) -> bytes:
    r"""A number as protobuf writes it: seven bits in each byte, the lowest first.

    >>> varint(5), varint(300)
    (b'\x05', b'\xac\x02')
    """
    if number < 128:
        return _ONE_BYTE[number]
    written = bytearray()
    while number >= 128:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
