"""Llama-style `.model` files: ModelProto messages, read into a `ModelSpec` and written from one.

Besides `cpbpe.compat`, this is the only place that uses protobuf. It is imported when it is first needed.
(Loading a model with the compiled core does not need it: the core reads ordinary files by itself, see
`cpbpe.engine.choice`.)
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from itertools import chain
from struct import iter_unpack
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.files import describe
from cpbpe.model.formats.registry import may_carry
from cpbpe.model.formats.values import Written, unlike
from cpbpe.model.spec import (
    TOKEN_FLAGS,
    Carried,
    ModelSpec,
    NormalizerSpec,
    Pieces,
    PieceType,
    Settings,
    SplitSpec,
)
from cpbpe.model.validity import hide_nul

if TYPE_CHECKING:
    from cpbpe.model.formats import model_pb2

_NAMES = ("unk_piece", "bos_piece", "eos_piece", "pad_piece")
_DEFAULT_NAMES = (b"<unk>", b"<s>", b"</s>", b"<pad>")


@cache
def messages() -> Any:
    """Return the message classes of a model file. The first call imports protobuf."""
    with importing:
        from cpbpe.model.formats import model_pb2
    return model_pb2


def is_parsed(message: Any, data: bytes) -> bool:
    """Read a message from bytes; whether they are such a message."""
    try:
        message.ParseFromString(data)
    except decode_error():
        # protobuf says the same if it has no memory for it; this then raises a MemoryError.
        bytearray(len(data) * 8 + (1 << 22))
        return False
    return True


@cache
def decode_error() -> type[Exception]:
    """Return the exception that protobuf raises for bytes that are not a message."""
    with importing:
        from google.protobuf.message import DecodeError
    return DecodeError


# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes) -> ModelSpec:
    """Return the model in a file. Raise a ModelError if it is not BPE. (`validity` checks the pieces.)"""
    proto = _parse(data)
    trainer = proto.trainer_spec
    model_type = type(trainer).ModelType.Name(trainer.model_type)
    if model_type != "BPE":
        stated = "is" if trainer.HasField("model_type") else "states no type, which makes it"
        truncated = "" if proto.HasField("trainer_spec") else "; it has no trainer_spec, is it cut off?"
        raise ModelError(
            f"the model {stated} {model_type}, and cpbpe reads BPE models only (those trained with "
            f"--model_type=bpe){truncated}",
            library="sentencepiece",
        )
    texts, types = [piece.piece for piece in proto.pieces], bytearray(piece.type for piece in proto.pieces)
    hide_nul(texts, types, trainer.byte_fallback)
    pieces = Pieces.of_lists(texts, (piece.score for piece in proto.pieces), types)
    return _spec(proto, pieces, data)


def read_settings(data: bytes) -> Settings:
    """Return the settings in a file that is known to be a model, without making values of its pieces."""
    return _settings(_parse(data))


def read_carried(data: bytes) -> Carried:
    """Return what a file that is known to be a model says in addition to the model."""
    return carried_of(_parse(data).Extensions[messages().carried]) if may_carry(data) else Carried()


def spec_of_settings(settings: Settings) -> ModelSpec:
    """Return the model, without pieces, that a file with these settings would describe."""
    proto = messages().ModelProto()
    _set(proto.trainer_spec, settings.trainer)
    _set(proto.normalizer_spec, settings.normalizer)
    if settings.denormalizer is not None:
        _set(proto.denormalizer_spec, settings.denormalizer)
    return replace(_spec(proto, Pieces.of([]), None), settings=settings)


def _spec(proto: model_pb2.ModelProto, pieces: Pieces, file: bytes | None) -> ModelSpec:
    trainer = proto.trainer_spec
    names = [getattr(trainer, name) or default for name, default in zip(_NAMES, _DEFAULT_NAMES, strict=True)]
    return ModelSpec(
        pieces=pieces,
        normalizer=replace(
            normalizer_of(proto.normalizer_spec, suffix=trainer.treat_whitespace_as_suffix),
            prefix_before_space=proto.Extensions[messages().prefix_before_space],
            unicode_form=proto.Extensions[messages().unicode_form].decode(errors="replace"),
        ),
        denormalizer=normalizer_of(proto.denormalizer_spec) if proto.HasField("denormalizer_spec") else None,
        byte_fallback=trainer.byte_fallback,
        unk_surface=trainer.unk_surface,
        special_pieces=(names[0], names[1], names[2], names[3]),
        added=tuple(map(_added_token, proto.Extensions[messages().added_tokens])),
        settings=_settings(proto),
        carried=carried_of(proto.Extensions[messages().carried]),
        file=file,
        **_byte_level_fields(proto),
    )


def _byte_level_fields(proto: model_pb2.ModelProto) -> dict[str, Any]:
    """Return the fields of a `ModelSpec` that only byte-level models have; none for other models."""
    extension = messages().byte_level
    if not proto.HasExtension(extension):
        return {}
    message = messages().ByteLevel()
    damaged = ModelError(
        "the file says that its model is byte-level, but the field that says how (41703) is damaged; copy "
        "the file again"
    )
    if not is_parsed(message, proto.Extensions[extension]):
        raise damaged
    try:
        pattern, name = message.pattern.decode(), message.name.decode()
        then = tuple(other.decode() for other in message.then)
    except UnicodeDecodeError as error:
        raise damaged from error
    splitter = SplitSpec(pattern, name, then) if pattern else None
    return {"alphabet": "bytes", "splitter": splitter, "whole": message.whole}


def _added_token(data: bytes) -> tuple[bytes, int]:
    """Return the text and the id of an added token. If it is damaged, the text is empty; no token has that.

    sentencepiece ignores this field. So it is no reason to refuse the file here if it is damaged. Code that
    uses the tokens refuses it.
    """
    token = messages().AddedToken()
    return (token.text, token.id) if is_parsed(token, data) else (b"", 0)


def _settings(proto: model_pb2.ModelProto) -> Settings:
    return Settings(
        trainer=fields_of(proto.trainer_spec),
        normalizer=fields_of(proto.normalizer_spec),
        denormalizer=fields_of(proto.denormalizer_spec) if proto.HasField("denormalizer_spec") else None,
    )


def fields_of(message: Any) -> dict[str, Any]:
    """Return the fields that are set in a message, with text as str. (Charsmaps stay bytes.)"""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name.lower()
    if isinstance(value, bytes):
        return value if field.name == "precompiled_charsmap" else _text(value)
    if isinstance(value, (int, float)):
        return value
    return [_text(item) if isinstance(item, bytes) else item for item in value]


def _text(value: bytes) -> str:
    """Decode bytes so that `_bytes` gives the same bytes back, even if they are not UTF-8."""
    return value.decode(errors="surrogateescape")


def normalizer_of(proto: model_pb2.NormalizerSpec, suffix: bool = False) -> NormalizerSpec:
    """Return a normalizer's options. `suffix` is passed in because the file has it in trainer_spec."""
    return NormalizerSpec(
        name=proto.name.decode(errors="replace"),
        charsmap=proto.precompiled_charsmap,
        add_dummy_prefix=proto.add_dummy_prefix,
        remove_extra_whitespaces=proto.remove_extra_whitespaces,
        escape_whitespaces=proto.escape_whitespaces,
        suffix=suffix,
    )


def _parse(data: bytes) -> model_pb2.ModelProto:
    """Return the message in a file, or raise a ModelError that says what the file is instead."""
    if not data:
        raise ModelError("not a SentencePiece model: the data is empty (0 bytes)")
    proto: model_pb2.ModelProto = messages().ModelProto()
    parsed = is_parsed(proto, data)
    if parsed and proto.pieces:
        return proto
    problem = describe(data)
    if problem is None and parsed:
        problem = "it is a valid protobuf message, but holds no pieces"
    elif problem is None:
        problem = _where_it_breaks(data)
    raise ModelError(f"not a SentencePiece model: {problem}")


def _where_it_breaks(data: bytes) -> str:
    """Return why a message could not be parsed: the file was cut off, or it never was a model."""
    at = 0
    while at < len(data) and data[at] in (0x0A, 0x12, 0x1A, 0x22, 0x2A):  # the fields of a ModelProto
        length = shift = 0
        end = at + 1
        while True:  # the length, seven bits per byte
            if end >= len(data):
                length = max(length, 1)  # cut off inside the length itself
                break
            length |= (data[end] & 0x7F) << shift
            end += 1
            shift += 7
            if data[end - 1] < 0x80 or shift > 28:
                break
        if end + length > len(data):
            return (
                f"it is truncated: the field at byte {at} needs {end + length - at} bytes and "
                f"{len(data) - at} are left; copy or download the file again"
            )
        at = end + length
    return "its bytes are not a protobuf message, nor any format that cpbpe knows"


# --- Writing --------------------------------------------------------------------------------------


def write(spec: ModelSpec) -> bytes:
    r"""Return the file of a model: the one that it was read from, or a new one if the model has been changed.

    A new file holds what sentencepiece would write: the fields of `settings`, corrected where the spec
    differs from them, a score for every piece, and a type for each piece that is not NORMAL.

    >>> from cpbpe.model.spec import Piece, PieceType
    >>> spec = ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)]), unk_surface=b"?")
    >>> read(write(spec)).unk_surface
    b'?'
    """
    if spec.file is not None and read(spec.file) == spec:
        return spec.file
    proto = messages().ModelProto()
    trainer = proto.trainer_spec
    _set(trainer, spec.settings.trainer)
    _correct(trainer, "model_type", trainer.BPE)
    _correct(trainer, "byte_fallback", spec.byte_fallback)
    _correct(trainer, "treat_whitespace_as_suffix", spec.normalizer.suffix)
    _correct(trainer, "unk_surface", spec.unk_surface)
    for name, default, piece in zip(_NAMES, _DEFAULT_NAMES, spec.special_pieces, strict=True):
        if piece != (getattr(trainer, name) or default):
            setattr(trainer, name, piece)

    _set_normalizer(proto.normalizer_spec, spec.settings.normalizer, spec.normalizer)
    if spec.denormalizer is not None:
        _set_normalizer(proto.denormalizer_spec, spec.settings.denormalizer or {}, spec.denormalizer)
    # The fields of cpbpe come after the added tokens, in this order.
    own: dict[str, bytes | bool] = {}
    if spec.alphabet == "bytes":
        own["byte_level"] = _byte_level_bytes(spec)
    if carried := _carried_bytes(spec.carried):
        own["carried"] = carried
    if not spec.normalizer.prefix_before_space:
        own["prefix_before_space"] = False
    if spec.normalizer.unicode_form:
        own["unicode_form"] = spec.normalizer.unicode_form.encode()
    ours = b"".join(_own_field(name, value) for name, value in own.items())
    return piece_messages(spec.pieces) + _serialized(proto) + added_messages(spec.added) + ours


def _serialized(message: Any) -> bytes:
    """Return a message as bytes. If there is no memory, raise an error that says so; protobuf's does not."""
    with importing:
        from google.protobuf.message import EncodeError
    try:
        data: bytes = message.SerializeToString()
    except EncodeError as error:
        raise MemoryError(
            "the fields of a model are too large to be written, or there is no memory"
        ) from error
    return data


def _own_field(name: str, value: bytes | bool) -> bytes:
    """Return one field of cpbpe's as bytes.

    Each is written by itself, because protobuf's implementations put several into different orders: the one
    in C into the order in which they were set, the one in Python into that of their numbers.
    """
    proto = messages().ModelProto()
    proto.Extensions[getattr(messages(), name)] = value
    return _serialized(proto)


def _byte_level_bytes(spec: ModelSpec) -> bytes:
    splitter = spec.splitter or SplitSpec("")
    fields = {
        "pattern": splitter.pattern.encode(),
        "name": splitter.name.encode(),
        "whole": spec.whole,
        "then": [pattern.encode() for pattern in splitter.then],
    }
    message = messages().ByteLevel(**{name: value for name, value in fields.items() if value})
    return _serialized(message)


def added_fields(tokens: Mapping[str, int]) -> bytes:
    """Return added tokens as bytes to append to a file. (In protobuf, joined messages are one message.)"""
    return added_messages((text.encode(), id) for text, id in tokens.items())


def carried_field(carried: Carried) -> bytes:
    """Return what a model carries as bytes to append to its file."""
    return _own_field("carried", _carried_bytes(carried))


def changed_fields(names: Mapping[str, bytes], add_dummy_prefix: bool | None) -> bytes:
    """Return changes as bytes to append to a file.

    `names` are the new names of special pieces ("bos", "eos", "pad"). `add_dummy_prefix` is None if it stays
    as it is.
    """
    proto = messages().ModelProto()
    for role, piece in names.items():
        setattr(proto.trainer_spec, f"{role}_piece", piece)
    if add_dummy_prefix is not None:
        proto.normalizer_spec.add_dummy_prefix = add_dummy_prefix
    return _serialized(proto)


def _set_normalizer(message: Any, fields: Mapping[str, Any], spec: NormalizerSpec) -> None:
    _set(message, fields)
    _correct(message, "name", spec.name.encode())
    _correct(message, "precompiled_charsmap", spec.charsmap)
    _correct(message, "add_dummy_prefix", spec.add_dummy_prefix)
    _correct(message, "remove_extra_whitespaces", spec.remove_extra_whitespaces)
    _correct(message, "escape_whitespaces", spec.escape_whitespaces)


def _correct(message: Any, name: str, value: object) -> None:
    """Set a field, unless it has this value already because it is set to it or because it is the default."""
    if getattr(message, name) != value:
        setattr(message, name, value)


def _set(message: Any, fields: Mapping[str, Any]) -> None:
    """Set fields, even to their defaults. The message is written even if no field is set."""
    message.SetInParent()
    for name, value in fields.items():
        if name == "model_type" and isinstance(value, str):
            value = type(message).ModelType.Value(value.upper())
        elif isinstance(value, str):
            value = _bytes(value)
        if isinstance(value, (list, tuple)):
            getattr(message, name).extend(_bytes(item) if isinstance(item, str) else item for item in value)
        else:
            setattr(message, name, value)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is."""
    return unlike(spec, read(written.data), "all")


# --- What is carried in addition to the model -----------------------------------------------------


def _carried_bytes(carried: Carried) -> bytes:
    """Return the content of the field; empty if nothing is carried.

    >>> _carried_bytes(Carried({"add_bos": True}))
    b'{"options":{"add_bos":true}}'
    >>> carried_of(_carried_bytes(Carried({"add_bos": True}))).options
    {'add_bos': True}
    """
    content = {name: dict(sorted(values.items())) for name, values in asdict(carried).items() if values}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() if content else b""


def carried_of(data: bytes) -> Carried:
    """Read the content of the field.

    A damaged part is ignored, because sentencepiece ignores the whole field, and no id depends on it. Only
    damaged `tokens` are an error, because texts are searched for these.
    """
    try:
        content = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        content = {}
    values: dict[str, Any] = {}
    for field in fields(Carried):
        given = content.get(field.name) if isinstance(content, dict) else None
        if field.name == "tokens" and given is not None:
            values[field.name] = _tokens(given)
        elif isinstance(given, dict) and all(type(value) is _KINDS[field.name] for value in given.values()):
            values[field.name] = given
    return Carried(**values)


_KINDS: dict[str, type] = {"options": bool, "roles": str, "chat_templates": str}
"""The type of the values in each part."""


def _tokens(given: Any) -> dict[str, tuple[str, ...]]:
    """Return the flags of tokens. Raise a ModelError if `_carried_bytes` cannot have written them."""
    right = isinstance(given, dict) and all(
        # (A token has characters, and no half of a surrogate pair.)
        text.encode(errors="ignore").decode() == text != ""
        and isinstance(flags, list)
        and all(flag in (*TOKEN_FLAGS,) for flag in flags)
        for text, flags in given.items()
    )
    if not right:
        raise ModelError(
            "the file's list of tokens with flags, such as added tokens that are not special (in field "
            "41701), is damaged; copy the file again, or convert the original again"
        )
    return {text: tuple(flags) for text, flags in given.items()}


# --- The pieces, which are nearly all of a file ---------------------------------------------------
#
# Each piece is a field of the file. It holds the text, the score and, if it is not NORMAL, the type. What is
# written for all pieces is made in columns, which are then put together. (With an object of protobuf for each
# piece, writing a model took twice as long.)

_ADDED, _ID = b"\xa2\xae\x14", b"\x10"
"""The tags of an added token in a file (field 41700), and of the id in it."""
_PIECE, _TEXT, _SCORE, _TYPE = b"\x0a", b"\x0a", b"\x15", b"\x18"
"""The tags of a piece in a file (its length follows), and in it, of the text (its length follows, too), the
score (a float32) and the type (a number)."""
_SCORE_BYTES = 5
"""How many bytes the field of a score takes."""
_SHORT = 100
"""What comes before a text of fewer bytes is computed only once for each length."""


def piece_messages(pieces: Pieces) -> bytes:
    r"""Return the fields of a model file that hold its pieces.

    >>> piece_messages(Pieces.of([(b"<s>", 0, PieceType.CONTROL), (b"ab", -1, PieceType.NORMAL)]))
    b'\n\x0c\n\x03<s>\x15\x00\x00\x00\x00\x18\x03\n\t\n\x02ab\x15\x00\x00\x80\xbf'
    """
    texts, types = pieces.texts, pieces.types
    lengths = list(map(len, texts))
    # 1. What comes before and after each text, as if all texts were short and all pieces NORMAL.
    longest = max(lengths, default=0)
    by_length = [_head(length, _SCORE_BYTES) for length in range(min(longest + 1, _SHORT))]
    by_length += by_length[-1:] * (longest + 1 - len(by_length))  # (these are corrected below)
    heads = list(map(by_length.__getitem__, lengths))
    tails = list(chain.from_iterable(iter_unpack(f"{_SCORE_BYTES}s", _scores(pieces))))
    # 2. Correct the others.
    normal = int(PieceType.NORMAL)
    unusual = {id for id, type in enumerate(types) if type != normal}
    if longest >= _SHORT:
        unusual.update(id for id, length in enumerate(lengths) if length >= _SHORT)
    for id in unusual:
        if types[id] != normal:
            tails[id] += _TYPE + _varint(types[id])
        heads[id] = _head(lengths[id], len(tails[id]))
    return b"".join(chain.from_iterable(zip(heads, texts, tails, strict=True)))


def added_messages(tokens: Iterable[tuple[bytes, int]]) -> bytes:
    r"""Return the fields of a model file that hold its added tokens. (There may be thousands of these, too.)

    >>> added_messages([(b"<x>", 300)])
    b'\xa2\xae\x14\x08\n\x03<x>\x10\xac\x02'
    """
    fields = []
    for text, id in tokens:
        token = _TEXT + _varint(len(text)) + text + _ID + _varint(id)
        fields += [_ADDED, _varint(len(token)), token]
    return b"".join(fields)


def _scores(pieces: Pieces) -> bytearray:
    """Return the fields of all scores, one after the other."""
    scores = array("f", pieces.scores)
    if sys.byteorder == "big":
        scores.byteswap()
    columns = scores.tobytes()
    fields = bytearray(_SCORE * (_SCORE_BYTES * len(pieces)))
    for at in range(4):
        fields[at + 1 :: _SCORE_BYTES] = columns[at::4]
    return fields


def _head(length: int, tail: int) -> bytes:
    """Return what comes before a text of `length` bytes in its piece, if `tail` bytes follow it."""
    inner = _TEXT + _varint(length)
    return _PIECE + _varint(len(inner) + length + tail) + inner


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it: seven bits per byte, the lowest first."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
