"""Writing a GGUF file that holds a tokenizer and nothing else: no tensors, no sizes of a network."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace

from cpbpe.errors import ConversionError
from cpbpe.model.formats.gguf import byte_level_writing, keys
from cpbpe.model.formats.gguf.container import BOOL, FLOAT32, INT32, UINT8, UINT32
from cpbpe.model.formats.gguf.llamacpp import differences
from cpbpe.model.formats.gguf.storing import ValuesFile
from cpbpe.model.formats.values import Difference, Written, refuse
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.text.utf8 import SPACE

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
        values, made = byte_level_writing.write(spec, allow_differences=allow_differences)
        _add_settings(values, spec, roles := _roles(spec))
        return replace(made, data=values.file(), notes=(*made.notes, *_lost(spec, roles)))
    # 1. The columns: the pieces, and the added tokens after them.
    whole = _with_added(spec)
    found = differences(whole)
    if spec.denormalizer is not None:
        found.append(Difference("llama.cpp has no denormalizer, so that it decodes to other text"))
    if not allow_differences:
        refuse(found, "there is no GGUF file that llama.cpp uses exactly as this model", _ALLOW)
    texts = _texts(whole)
    values = ValuesFile()
    values.text(keys.ARCHITECTURE, "llama")
    values.text("general.type", "model")
    values.text(keys.MODEL, "llama")
    values.text(keys.PRE, "default")
    values.texts(keys.TOKENS, texts)
    values.numbers(keys.SCORES, FLOAT32, array("f", whole.pieces.scores))
    values.numbers(keys.TYPES, INT32, array("i", list(whole.pieces.types)))
    # 2. The ids with a part, and the settings.
    roles = _roles(whole)
    _add_settings(values, spec, roles)
    values.number(keys.ADD_PREFIX, BOOL, spec.normalizer.add_dummy_prefix)
    values.number(keys.REMOVE_SPACES, BOOL, spec.normalizer.remove_extra_whitespaces)
    if spec.normalizer.charsmap:
        values.numbers(keys.CHARSMAP, UINT8, array("B", spec.normalizer.charsmap))
    return Written(values.file(), tuple(found), tuple(_notes(spec, roles)))


def _add_settings(values: ValuesFile, spec: ModelSpec, roles: dict[str, int]) -> None:
    """Add the ids with a part, what is put around texts, and the templates."""
    for role, id in roles.items():
        values.number(keys.ROLES[role], UINT32, id)
    options = spec.carried.options
    values.number(keys.ADD_BOS, BOOL, bool(options.get("add_bos")))
    values.number(keys.ADD_EOS, BOOL, bool(options.get("add_eos")))
    templates = spec.carried.chat_templates
    if names := [name for name in templates if name != "default"]:
        values.texts(keys.TEMPLATES, [name.encode() for name in names])
    for name, template in templates.items():
        values.text(keys.TEMPLATE + ("" if name == "default" else f".{name}"), template)


def _with_added(spec: ModelSpec) -> ModelSpec:
    """The model with its added tokens among the pieces; ids that nothing has are filled up."""
    if not spec.added:
        return spec
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
    ids = spec.ids | dict(spec.added)
    carried = {
        role: ids.get(text.encode(errors="surrogateescape")) for role, text in spec.carried.roles.items()
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
    yield from _lost(spec, roles)
    if spec.unk_surface != ModelSpec(spec.pieces).unk_surface:
        yield "what an unknown token is decoded to is not stored"
    yield "the settings of the training are not stored"


def _lost(spec: ModelSpec, roles: dict[str, int]) -> Iterable[str]:
    if lost := [role for role in spec.carried.roles if role not in roles]:
        yield f"the format has no key for the part {', '.join(lost)}, or there is no such piece"
