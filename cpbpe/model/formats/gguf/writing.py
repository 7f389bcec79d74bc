"""Writing a GGUF file that holds a tokenizer and nothing else: no tensors, no sizes of a network."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable
from typing import Any

from cpbpe.errors import ConversionError
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import (
    ARRAY,
    BOOL,
    CODES,
    FLOAT32,
    INT32,
    MAGIC,
    STRING,
    UINT8,
    UINT32,
)
from cpbpe.model.formats.gguf.llamacpp import differences
from cpbpe.model.formats.values import Difference, Written, refuse
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.utf8 import SPACE

_VERSION = 3
_ALIGNMENT = 32
_ALLOW = "To convert it all the same, pass allow_differences=True, which lists them"
_ADDED_SCORE = -1000.0
"""What llama.cpp's own converter gives to tokens that were added to a model."""
_PAD_SCORE = -10000.0


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """A vocabulary-only file, with which llama.cpp gives the ids of sentencepiece, or a ConversionError.

    >>> from cpbpe.model.spec import Pieces
    >>> spec = ModelSpec(Pieces.of([(b"<unk>", 0, PieceType.UNKNOWN), (b"a", 0, PieceType.NORMAL)]))
    >>> write(spec, allow_differences=True).data[:4]
    b'GGUF'
    """
    if spec.alphabet == "bytes":
        raise ConversionError(
            "the GGUF files that cpbpe writes hold pieces of text, and this model is byte-level: save it as "
            "a folder, which llama.cpp's own converter (convert_hf_to_gguf.py) takes"
        )
    # 1. The columns: the pieces, and the added tokens after them.
    whole = _with_added(spec)
    found = differences(whole)
    if spec.denormalizer is not None:
        found.append(Difference("llama.cpp has no denormalizer, so that it decodes to other text"))
    if not allow_differences:
        refuse(found, "there is no GGUF file that llama.cpp uses exactly as this model", _ALLOW)
    texts = _texts(whole)
    values = _Values()
    values.text(keys.ARCHITECTURE, "llama")
    values.text("general.type", "model")
    values.text(keys.MODEL, "llama")
    values.text(keys.PRE, "default")
    values.texts(keys.TOKENS, texts)
    values.numbers(keys.SCORES, FLOAT32, array("f", whole.pieces.scores))
    values.numbers(keys.TYPES, INT32, array("i", list(whole.pieces.types)))
    # 2. The ids with a part, and the settings.
    roles = _roles(whole)
    for role, id in roles.items():
        values.number(keys.ROLES[role], UINT32, id)
    options = spec.carried.options
    values.number(keys.ADD_BOS, BOOL, bool(options.get("add_bos")))
    values.number(keys.ADD_EOS, BOOL, bool(options.get("add_eos")))
    values.number(keys.ADD_PREFIX, BOOL, spec.normalizer.add_dummy_prefix)
    values.number(keys.REMOVE_SPACES, BOOL, spec.normalizer.remove_extra_whitespaces)
    if spec.normalizer.charsmap:
        values.numbers(keys.CHARSMAP, UINT8, array("B", spec.normalizer.charsmap))
    templates = spec.carried.chat_templates
    if names := [name for name in templates if name != "default"]:
        values.texts(keys.TEMPLATES, [name.encode() for name in names])
    for name, template in templates.items():
        values.text(keys.TEMPLATE + ("" if name == "default" else f".{name}"), template)
    return Written(values.file(), tuple(found), tuple(_notes(spec, roles)))


def _with_added(spec: ModelSpec) -> ModelSpec:
    """The model with its added tokens among the pieces; ids that nothing has are filled up."""
    if not spec.added:
        return spec
    from dataclasses import replace

    from cpbpe.model.spec import Pieces

    added = {id: text for text, id in spec.added}
    if min(added) < len(spec.pieces):
        raise ConversionError("an added token has the id of a piece, which no GGUF file can say")
    texts = list(spec.pieces.texts)
    scores, types = list(spec.pieces.numbers()), bytearray(spec.pieces.types)
    for id in range(len(texts), max(added) + 1):
        texts.append(added.get(id, b"[PAD%d]" % id))
        scores.append(_ADDED_SCORE if id in added else _PAD_SCORE)
        types.append(PieceType.CONTROL if id in added else PieceType.UNUSED)
    return replace(spec, pieces=Pieces.of_lists(texts, scores, types), added=())


def _texts(spec: ModelSpec) -> list[bytes]:
    """The texts, those of USER_DEFINED pieces with spaces: llama.cpp looks for them in unescaped text."""
    texts = list(spec.pieces.texts)
    for id, type in enumerate(spec.pieces.types):
        if type == PieceType.USER_DEFINED and SPACE in texts[id]:
            text = texts[id].replace(SPACE, b" ")
            if text in spec.ids:
                shown, other = texts[id].decode(errors="replace"), text.decode(errors="replace")
                raise ConversionError(
                    f"the USER_DEFINED piece {shown!r} is written with spaces in a GGUF file, and there is a "
                    f"piece {other!r} already. Give one of them another text first (tok.spec, "
                    f"cpbpe.Tokenizer.from_spec)"
                )
            texts[id] = text
    return texts


def _roles(spec: ModelSpec) -> dict[str, int]:
    """The ids with a part: those of the model, and what the file that was read says beside it."""
    own = {"bos": spec.bos_id, "eos": spec.eos_id, "unk": spec.unk_id, "pad": spec.pad_id}
    carried = {
        role: spec.ids.get(text.encode(errors="surrogateescape")) for role, text in spec.carried.roles.items()
    }
    known = {**carried, **{role: id for role, id in own.items() if id is not None}}
    return {role: id for role in keys.ROLES if (id := known.get(role)) is not None}


def _notes(spec: ModelSpec, roles: dict[str, int]) -> Iterable[str]:
    if not spec.carried.options.get("add_bos") and "bos" in roles:
        yield "the file asks for no bos around texts; most models need it: pass add_bos=True"
    for role, id in keys.DEFAULT_ROLES.items():
        if role not in roles and id < len(spec.pieces):
            name = spec.pieces.texts[id].decode(errors="replace")
            yield f"the model has no {role}, and llama.cpp takes the piece {id}, {name!r}, for it"
    if spec.added:
        yield "added tokens become CONTROL pieces"
    if lost := [role for role in spec.carried.roles if role not in roles]:
        yield f"the format has no key for the part {', '.join(lost)}, or there is no such piece"
    if spec.unk_surface != ModelSpec(spec.pieces).unk_surface:
        yield "what an unknown token is decoded to is not stored"
    yield "the settings of the training are not stored"


class _Values:
    """The values of a file, as bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def _begin(self, key: str, type: int) -> None:
        self._count += 1
        self._parts += [_text(key.encode()), struct.pack("<I", type)]

    def number(self, key: str, type: int, value: Any) -> None:
        """One number or bool."""
        self._begin(key, type)
        self._parts.append(struct.pack("<" + CODES[type], value))

    def text(self, key: str, value: str) -> None:
        """One text."""
        self._begin(key, STRING)
        self._parts.append(_text(value.encode(errors="replace")))

    def texts(self, key: str, values: list[bytes]) -> None:
        """An array of texts."""
        self._begin(key, ARRAY)
        self._parts.append(struct.pack("<IQ", STRING, len(values)))
        self._parts += map(_text, values)

    def numbers(self, key: str, type: int, values: array[Any]) -> None:
        """An array of numbers."""
        self._begin(key, ARRAY)
        if sys.byteorder == "big":
            values = values[:]
            values.byteswap()
        self._parts += [struct.pack("<IQ", type, len(values)), values.tobytes()]

    def file(self) -> bytes:
        """The file: no tensors, and filled up as if there were some."""
        data = b"".join([MAGIC, struct.pack("<IQQ", _VERSION, 0, self._count), *self._parts])
        return data + bytes(-len(data) % _ALIGNMENT)


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text
