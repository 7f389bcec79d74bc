"""Writing a GGUF file that holds a tokenizer and nothing else: no tensors, no sizes of a network.

In a GGUF file, every id below the highest has a token. So fillers are written for unused ids.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cpbpe.errors import ConversionError
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import BOOL, FLOAT32, INT32, UINT8, UINT32, ValuesFile
from cpbpe.model.formats.gguf.llamacpp import KNOWN, LlamaCppBytes, PreName, differences, name_for
from cpbpe.model.formats.gguf.reading import read
from cpbpe.model.formats.values import TO_CONVERT, Difference, Written, refuse, unlike
from cpbpe.model.spec import PLAIN, ModelSpec, Pieces, PieceType
from cpbpe.text.utf8 import SPACE, to_letters

_ADDED_SCORE = -1000.0
"""The score that llama.cpp's own converter gives to tokens that were added to a model."""
_PAD_SCORE = -10000.0
"""The score of fillers."""
_NO_SUCH_FILE = "there is no GGUF file that llama.cpp uses exactly as this model"
_MOST_FILLED = 1 << 20
"""At most this many unused ids get fillers; more must be a mistake."""
_DEFAULT_BOS = 11
"""The id that llama.cpp takes for bos and eos of a byte-level model if the file does not say."""


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return a vocabulary-only file with which llama.cpp gives the ids of sentencepiece, or raise an error.

    >>> from cpbpe.model.spec import Pieces
    >>> spec = ModelSpec(Pieces.of([(b"<unk>", 0, PieceType.UNKNOWN), (b"a", 0, PieceType.NORMAL)]))
    >>> write(spec, allow_differences=True).data[:4]
    b'GGUF'
    """
    if spec.alphabet == "bytes":
        return _write_byte_level(spec, allow_differences)
    # 1. The columns: the pieces, and the added tokens after them.
    whole = _with_added(spec)
    found = differences(whole)
    if spec.denormalizer is not None:
        found.append(Difference("llama.cpp has no denormalizer, so that it decodes to other text"))
    refuse(found, allow_differences, _NO_SUCH_FILE, TO_CONVERT)
    values = _begun("llama", "default", _texts(whole))
    values.numbers(keys.SCORES, FLOAT32, array("f", whole.pieces.scores))
    values.numbers(keys.TYPES, INT32, array("i", list(whole.pieces.types)))
    # 2. The ids with a role, and the settings.
    roles = _roles(whole)
    _add_settings(values, spec, roles)
    values.number(keys.ADD_PREFIX, BOOL, spec.normalizer.add_dummy_prefix)
    values.number(keys.REMOVE_SPACES, BOOL, spec.normalizer.remove_extra_whitespaces)
    if spec.normalizer.charsmap:
        values.numbers(keys.CHARSMAP, UINT8, array("B", spec.normalizer.charsmap))
    return Written(values.file(), tuple(found), tuple(_notes(spec, roles)))


def _begun(model: str, pre: str, texts: list[bytes]) -> ValuesFile:
    """Return the beginning of a file: what it is, and its tokens."""
    values = ValuesFile()
    values.text(keys.ARCHITECTURE, "llama")
    values.text("general.type", "model")
    values.text(keys.MODEL, model)
    values.text(keys.PRE, pre)
    values.texts(keys.TOKENS, texts)
    return values


def _add_settings(values: ValuesFile, spec: ModelSpec, roles: dict[str, int]) -> None:
    """Add the ids with a role, which tokens go around texts, and the chat templates."""
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
    """Return the model with its added tokens as pieces, and with fillers for unused ids."""
    if not spec.added:
        return spec
    added, size = {id: text for text, id in spec.added}, len(spec.pieces)
    if min(added) < size:
        raise ConversionError("an added token has the id of a piece, which no GGUF file can say")
    if (unused := max(added) + 1 - size - len(added)) > _MOST_FILLED:
        raise ConversionError(
            f"the highest id is {max(added):,}, and a GGUF file has a token for every id; nothing has "
            f"{unused:,} of these"
        )
    texts = list(spec.pieces.texts)
    scores, types = list(spec.pieces.numbers()), bytearray(spec.pieces.types)
    for id in range(size, max(added) + 1):
        texts.append(added.get(id, b"[PAD%d]" % id))
        scores.append(_ADDED_SCORE if id in added else _PAD_SCORE)
        types.append(PieceType.CONTROL if id in added else PieceType.UNUSED)
    return replace(spec, pieces=Pieces.of_lists(texts, scores, types), added=())


def _texts(spec: ModelSpec) -> list[bytes]:
    """Return the texts of the pieces as the file has them.

    USER_DEFINED pieces are written with spaces instead of U+2581, because llama.cpp searches for them in text
    that is not escaped yet.
    """
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
    """Return the ids with a role: those of the model, and those from the file that it was read from."""
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
    if spec.carried.options.get("prefix_after_special") is False and spec.normalizer.add_dummy_prefix:
        yield "llama.cpp puts a space also in front of text after a special token"
    if spec.added:
        yield "added tokens become CONTROL pieces"
    yield from _lost(spec, roles)
    if spec.unk_surface != ModelSpec(spec.pieces).unk_surface:
        yield "what an unknown token is decoded to is not stored"
    yield "the settings of the training are not stored"


def _lost(spec: ModelSpec, roles: dict[str, int]) -> Iterable[str]:
    """Yield a note if some roles cannot be stored."""
    if lost := [role for role, text in spec.carried.roles.items() if text and role not in roles]:
        yield f"the format has no key for the part {', '.join(lost)}, or there is no such piece"


# --- Byte-level models ----------------------------------------------------------------------------


def _write_byte_level(spec: ModelSpec, allow_differences: bool) -> Written:
    # 1. The differences in llama.cpp.
    pre = name_for(spec)
    if pre is None:
        raise ConversionError(_nameless(spec))
    model = LlamaCppBytes(spec, pre)
    found = list(model.differences())
    refuse(found, allow_differences, _NO_SUCH_FILE, TO_CONVERT)
    # 2. The columns.
    texts, types = _tokens(spec)
    values = _begun(keys.BYTE_LEVEL, pre.name, texts)
    values.numbers(keys.TYPES, INT32, array("i", types))
    values.texts(keys.MERGES, [" ".join(pair).encode() for pair in model.listed.pairs.values()])
    values.text(keys.FORM, spec.normalizer.unicode_form)
    if spec.normalizer.add_dummy_prefix:
        values.number(keys.PREFIX, BOOL, True)
    # 3. The ids with a role, and the settings.
    roles = _roles(spec)
    _add_settings(values, spec, roles)
    notes = (*_byte_level_notes(spec, pre, texts), *_lost(spec, roles))
    return Written(values.file(), tuple(found), notes)


def _nameless(spec: ModelSpec) -> str:
    if spec.splitter is None:
        return (
            "a GGUF file names the pattern by which texts are cut, and this model cuts none: llama.cpp has "
            "no name for that. A tokenizer.json can hold it"
        )
    shown = " and then ".join((spec.splitter.name or spec.splitter.pattern, *spec.splitter.then))
    return (
        f"a GGUF file names the pattern by which texts are cut, and llama.cpp has no name for this one: "
        f"{shown}. It has names for the patterns of {', '.join(KNOWN)}. A tokenizer.json can hold any"
    )


def _tokens(spec: ModelSpec) -> tuple[list[bytes], list[int]]:
    """Return the tokens as the file spells them, and their types, with fillers for unused ids."""
    pieces = _with_added(spec).pieces
    types = list(pieces.types)
    texts = [
        to_letters(text).encode() if type == PieceType.NORMAL else text
        for text, type in zip(pieces.texts, types, strict=True)
    ]
    for id, text in enumerate(texts):  # llama.cpp finds USER_DEFINED tokens in every text
        if types[id] == PieceType.CONTROL and PLAIN in spec.carried.tokens.get(
            text.decode(errors="replace"), ()
        ):
            types[id] = PieceType.USER_DEFINED
    seen: dict[bytes, int] = {}
    for id, text in enumerate(texts):
        if text.decode(errors="replace").encode() != text:
            raise ConversionError(
                f"the special token {id}, {text!r}, is not UTF-8, and a GGUF file holds text. Give it "
                f"another text first (tok.spec, cpbpe.Tokenizer.from_spec)"
            )
        other = seen.setdefault(text, id)
        if other != id:
            raise ConversionError(
                f"the token {text.decode()!r} is spelled like a piece in a GGUF file, where each byte is a "
                f"letter: {other} and {id} would be one token. Give it another text first"
            )
    return texts, types


def _byte_level_notes(spec: ModelSpec, pre: PreName, texts: list[bytes]) -> Iterator[str]:
    yield (
        "llama.cpp finds special tokens in texts if it is told to, the longest first; cpbpe those that "
        "allowed_special allows"
    )
    if spec.bos_id is None and len(texts) > _DEFAULT_BOS:
        name = texts[_DEFAULT_BOS].decode()
        yield f"the model has no bos, and llama.cpp takes the token {_DEFAULT_BOS}, {name!r}, for it"
    if pre.adds_bos and not spec.carried.options.get("add_bos"):
        yield f"the file asks for no bos around texts; models of {pre.name} need it: pass add_bos=True"
    if len(texts) > len(spec.pieces) + len(spec.added):
        yield "ids that nothing has are filled with UNUSED tokens"
    yield "scores become the order of merges, and the settings of the training are not stored"


# --- Reading the file again -----------------------------------------------------------------------


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is.

    (The merges of byte-level models are not compared: `LlamaCppBytes` has proved that they are the same.)
    """
    again, differs = read(written.data, allow_differences=True).spec, bool(written.differences)
    if spec.alphabet == "bytes":
        parts = () if differs else ("settings",)
        wrong = unlike(spec, again, "pieces", "special tokens", "roles", "chat templates", *parts)
        # (The file may name another pattern, one that is proved to be the same for this model.)
        pre = name_for(spec)
        same_cuts = differs or (pre is not None and again.patterns == pre.splitter.patterns)
        return wrong or ("" if same_cuts else "its pattern is not the same")
    size, pieces = len(spec.pieces), spec.pieces
    if len(again.pieces) != max([size, *(id + 1 for _, id in spec.added)]):
        return f"it has {len(again.pieces)} pieces, not {size}"
    if differs:
        # A space in a USER_DEFINED piece is read again as U+2581. (sentencepiece finds no piece with a space,
        # so this is one of the differences.)
        texts = list(pieces.texts)
        for id, text in enumerate(texts):
            if pieces.types[id] == PieceType.USER_DEFINED and b" " in text:
                texts[id] = again.pieces.texts[id]
        pieces = Pieces.of_lists(texts, pieces.numbers(), pieces.types)
    columns = again.pieces.texts[:size], again.pieces.scores[: 4 * size], again.pieces.types[:size]
    if columns != (pieces.texts, pieces.scores, pieces.types):
        return "its pieces are not the same"
    if any(again.pieces[id] != (text, _ADDED_SCORE, PieceType.CONTROL) for text, id in spec.added):
        return "its added tokens are not the same"
    if wrong := unlike(spec, again, "roles"):
        return wrong
    asked = {name: on for name, on in spec.carried.options.items() if on and name in ("add_bos", "add_eos")}
    if asked != again.carried.options or spec.carried.chat_templates != again.carried.chat_templates:
        return "what it says beside the model is not the same"
    return "" if differs else unlike(spec, again, "settings")
