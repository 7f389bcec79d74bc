r"""Results of encoding and decoding with details about every piece: messages and offset mappings.

A message is a SentencePieceText. It is written here byte by byte, with the same fields set as in
sentencepiece, so that the bytes are equal. (Protobuf's own classes would refuse a piece that is not UTF-8.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cpbpe.engine.protocol import Aligned
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import BYTE_PIECES, MAX_USER_DEFINED_MATCHES, Normalizer
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import REPLACEMENT, SPACE, character_length, character_positions, valid_character

_BYTES = {piece: bytes([value]) for value, piece in enumerate(BYTE_PIECES)}
_SMALL = [bytes([value]) for value in range(128)]


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
        written = [b"\x0a", varint(len(self.text)), self.text]
        heads: dict[tuple[int, bytes], bytes] = {}
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

        Only the last byte of an unknown character has one. With `in_parallel`, empty ones are left out, too,
        as `parallel_encode` does.
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


class Decoder:
    """The parts of a model that `of_decoded` needs."""

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        self.ids = spec.ids
        self.unknown = -1 if spec.unknown_id is None else spec.unknown_id
        self.normalizer = Normalizer(
            spec.normalizer,
            Finder(
                (piece for piece, id in self.ids.items() if spec.pieces.types[id] == PieceType.USER_DEFINED),
                MAX_USER_DEFINED_MATCHES,
            ),
        )
        self.denormalizer: Normalizer | None = None
        if spec.denormalizer is not None and spec.denormalizer.charsmap:
            self.denormalizer = Normalizer(spec.denormalizer, Finder([]), "denormalizer_spec")


def of_decoded(decoder: Decoder, pieces: Iterable[bytes]) -> Analysis:
    """The analysis of a text that is decoded from pieces.

    It does what `ReferenceEngine.decode_ids` does (see there), and records the position of each piece in the
    text. A denormalizer changes the text, but not these positions.
    """
    spec = decoder.spec
    drops_space = spec.normalizer.add_dummy_prefix or spec.normalizer.remove_extra_whitespaces
    at_beginning, dropped = True, False
    text = bytearray()
    tokens: Aligned = ([], [], [])
    surfaces: list[bytes] = []
    run: list[tuple[int, bytes]] = []  # BYTE pieces that wait for the end of their run

    def add(id: int, piece: bytes, surface: bytes) -> None:
        tokens[0].append(id)
        tokens[1].append(piece)
        tokens[2].append((len(text), len(text) + len(surface)))
        surfaces.append(surface)
        text.extend(surface)

    def end_run() -> None:
        values = b"".join(_BYTES[piece] for _, piece in run)
        at = 0
        while at < len(values):
            character = valid_character(values, at)
            surfaces = [REPLACEMENT] if character is None else [b""] * (len(character) - 1) + [character]
            for surface in surfaces:
                add(*run[at], surface)
                at += 1
        run.clear()

    for piece in pieces:
        id = decoder.ids.get(piece, decoder.unknown)
        type = spec.pieces.types[id] if id >= 0 else PieceType.UNKNOWN
        if type == PieceType.BYTE:
            run.append((id, piece))
            continue
        end_run()
        at_beginning = at_beginning and not dropped and not text
        dropped = False
        surface = piece
        if type == PieceType.CONTROL:
            surface = b""
        elif type == PieceType.UNKNOWN:
            if id >= 0 and piece == spec.pieces.texts[id]:
                surface = spec.unk_surface
        else:
            if at_beginning and drops_space and piece.startswith(SPACE):
                surface = piece[len(SPACE) :]
                dropped = not spec.normalizer.remove_extra_whitespaces
            surface = surface.replace(SPACE, b" ")
        add(id, piece, surface)
    end_run()
    result = bytes(text)
    if decoder.denormalizer is not None:
        result = decoder.denormalizer.normalize(result)[0]
    return Analysis(result, tokens, surfaces)


def varint(number: int) -> bytes:
    r"""A number as protobuf writes it: seven bits in each byte, the lowest first.

    >>> varint(5), varint(300)
    (b'\x05', b'\xac\x02')
    """
    if number < 128:
        return _SMALL[number]
    written = bytearray()
    while number >= 128:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
