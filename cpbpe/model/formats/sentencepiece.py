"""Model files: from the bytes of a ModelProto to a checked `ModelSpec`, or a message that helps.

The only file that knows protobuf, which is imported when the first model is loaded. It verifies
everything that makes a model invalid to sentencepiece, so that engines need not. What a file that
is no model might be instead is the business of `cpbpe.model.formats.sniff`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from cpbpe import lazy as late
from cpbpe.errors import ModelError
from cpbpe.model.formats.sniff import describe
from cpbpe.model.spec import ModelSpec, NormalizerSpec, PieceType

if TYPE_CHECKING:
    from cpbpe.model.formats import model_pb2

Source = str | os.PathLike[str] | BinaryIO

MAX_PIECE_BYTES = 8000
"""sentencepiece refuses pieces of this length and above."""

MAX_FILE_BYTES = (1 << 31) - 1
"""Protobuf reads no message beyond this."""

_HEAD_BYTES = 4096


def read_bytes(source: Source) -> bytes:
    """Everything in a file, by path or already open; a huge file that cannot be a model is not read."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return read_bytes(file)
    if not hasattr(source, "read"):
        raise TypeError(f"a model is loaded from a path or an open binary file, not {type(source).__name__}")
    head = source.read(_HEAD_BYTES)
    if not isinstance(head, bytes):
        raise TypeError(
            f"the model file must be opened in binary mode ('rb'), its read() gave {type(head).__name__}"
        )
    if describe(head, complete=False) is not None:
        return head
    data = bytearray(head)
    while len(data) <= MAX_FILE_BYTES:
        part = source.read(1 << 20)  # a pipe or a socket may give less, and more the next time
        if not part:
            return bytes(data)
        data += part
    raise ModelError("not a SentencePiece model: the file is larger than 2 GiB, the most that one can be")


def parse(data: bytes) -> ModelSpec:
    """Read and check a model. Raises ModelError for what cpbpe, or sentencepiece, cannot use."""
    proto = parse_proto(data)
    trainer = proto.trainer_spec
    model_type = type(trainer).ModelType.Name(trainer.model_type)
    if model_type != "BPE":
        stated = "is" if trainer.HasField("model_type") else "states no type, which makes it"
        truncated = "" if proto.HasField("trainer_spec") else "; it has no trainer_spec, is it cut off?"
        raise ModelError(
            f"the model {stated} {model_type}, and cpbpe reads BPE models only (those trained with "
            f"--model_type=bpe){truncated}"
        )

    pieces = tuple(piece.piece for piece in proto.pieces)
    types = [PieceType(piece.type) for piece in proto.pieces]
    if trainer.byte_fallback:
        # Converted models in circulation hold one NUL beside <0x00>. sentencepiece makes it UNUSED.
        types = [PieceType.UNUSED if p == b"\0" else t for p, t in zip(pieces, types, strict=True)]
    _check(pieces, types, trainer.byte_fallback)

    return ModelSpec(
        pieces=pieces,
        scores=tuple(piece.score for piece in proto.pieces),
        types=tuple(types),
        normalizer=normalizer_of(proto.normalizer_spec, suffix=trainer.treat_whitespace_as_suffix),
        denormalizer=normalizer_of(proto.denormalizer_spec) if proto.HasField("denormalizer_spec") else None,
        byte_fallback=trainer.byte_fallback,
        unk_surface=trainer.unk_surface,
        added=tuple((token.text, token.id) for token in proto.Extensions[_added()]),
        **_special_ids(pieces, types, trainer),
    )


def canonical(data: bytes) -> bytes:
    """The same model in the plainest form, for a reader that knows no more of protobuf than models need."""
    proto = parse_proto(data)
    proto.DiscardUnknownFields()
    return proto.SerializeToString()


def with_added(data: bytes, tokens: Mapping[str, int]) -> bytes:
    """The file with special tokens behind it: fields of one message may come in parts."""
    proto = late.model_pb2().ModelProto()
    for text, id in tokens.items():
        proto.Extensions[_added()].add(text=text.encode(), id=id)
    behind: bytes = proto.SerializeToString()
    return data + behind


def _added() -> Any:
    return late.model_pb2().added_tokens


def parse_proto(data: bytes) -> model_pb2.ModelProto:
    """The message in a file, which holds pieces, or an error that says what the file is."""
    if not data:
        raise ModelError("not a SentencePiece model: the data is empty (0 bytes)")
    proto: model_pb2.ModelProto = late.model_pb2().ModelProto()
    parsed = True
    try:
        proto.ParseFromString(data)
    except late.decode_error():
        parsed = False
    if parsed and proto.pieces:
        return proto
    found = describe(data)
    if found is None and parsed:
        found = "it is a valid protobuf message, but holds no pieces"
    elif found is None:
        found = _where_it_breaks(data)
    raise ModelError(f"not a SentencePiece model: {found}")


def _where_it_breaks(data: bytes) -> str:
    """Tell a model that was cut off from bytes that never were one."""
    for begin, end, known in _fields(data):
        if not known:
            break
        if end > len(data):
            return (
                f"it is truncated: the field at byte {begin} needs {end - begin} bytes and "
                f"{len(data) - begin} are left; copy or download the file again"
            )
    return "its bytes are no protobuf message, nor any format that cpbpe knows"


def _fields(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield the begin and end of each top-level field, and whether a ModelProto has such a field."""
    at = 0
    while at < len(data):
        length = shift = 0
        end = at + 1
        while True:  # the length, seven bits a byte
            if end >= len(data):
                length = max(length, 1)  # cut off inside the length itself
                break
            length |= (data[end] & 0x7F) << shift
            end += 1
            shift += 7
            if data[end - 1] < 0x80 or shift > 28:
                break
        yield at, end + length, data[at] in (0x0A, 0x12, 0x1A, 0x22, 0x2A)
        at = end + length


def normalizer_of(proto: model_pb2.NormalizerSpec, suffix: bool = False) -> NormalizerSpec:
    """A normalizer's options. Where the space goes, `suffix`, is an option of the trainer's."""
    return NormalizerSpec(
        name=proto.name.decode(errors="replace"),
        charsmap=proto.precompiled_charsmap,
        add_dummy_prefix=proto.add_dummy_prefix,
        remove_extra_whitespaces=proto.remove_extra_whitespaces,
        escape_whitespaces=proto.escape_whitespaces,
        suffix=suffix,
    )


def _check(pieces: tuple[bytes, ...], types: list[PieceType], byte_fallback: bool) -> None:
    """Refuse what sentencepiece refuses, naming the piece to blame."""

    def blame(id: int, reason: str) -> ModelError:
        piece = pieces[id]
        shown = piece if len(piece) <= 40 else piece[:40] + b"..."
        text = shown.decode(errors="backslashreplace")
        return ModelError(f"piece {id}, {text!r}, {reason}", piece=piece, id=id)

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
            raise blame(id, f"is there twice: it is piece {ids[piece]} as well")
        if type == PieceType.UNKNOWN:
            if unknown is not None:
                raise blame(id, f"has the type UNKNOWN, and so has piece {unknown}; there can be one only")
            unknown = id
        if type == PieceType.BYTE:
            if not byte_fallback:
                raise blame(id, "has the type BYTE, but the model's byte_fallback is off")
            if piece not in _BYTE_PIECES:
                raise blame(id, "has the type BYTE, but is not one of <0x00> to <0xFF>")
    if byte_fallback:
        missing = [piece for piece in _BYTE_PIECES if piece not in ids or types[ids[piece]] != PieceType.BYTE]
        if missing:
            names = ", ".join(piece.decode() for piece in missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise ModelError(
                f"byte_fallback is on, but {len(missing)} of the 256 BYTE pieces are missing: {names}"
            )
    elif unknown is None:
        raise ModelError("no piece has the type UNKNOWN and byte_fallback is off; one of the two is needed")


_BYTE_PIECES = tuple(b"<0x%02X>" % byte for byte in range(256))


def _special_ids(
    pieces: tuple[bytes, ...], types: list[PieceType], trainer: model_pb2.TrainerSpec
) -> dict[str, int | None]:
    """The ids of unk, bos, eos and pad: by the text of the piece, not by `trainer_spec.unk_id`.

    unk has a way of its own: when no piece has the name of unk, the UNKNOWN piece is meant,
    whatever it is called.
    """
    ids = {piece: id for id, piece in enumerate(pieces) if piece != b"\0"}
    unknown = types.index(PieceType.UNKNOWN) if PieceType.UNKNOWN in types else None

    def find(name: bytes, type: PieceType) -> int | None:
        id = ids.get(name, unknown)
        return id if id is not None and types[id] == type else None

    return {
        "unk_id": find(trainer.unk_piece or b"<unk>", PieceType.UNKNOWN),
        "bos_id": find(trainer.bos_piece or b"<s>", PieceType.CONTROL),
        "eos_id": find(trainer.eos_piece or b"</s>", PieceType.CONTROL),
        "pad_id": find(trainer.pad_piece or b"<pad>", PieceType.CONTROL),
    }
