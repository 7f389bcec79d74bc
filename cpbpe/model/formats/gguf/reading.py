"""Reading the tokenizer of a GGUF file: the model that its producers had, not what llama.cpp makes of it."""

from __future__ import annotations

from array import array
from typing import Any

from cpbpe.model import validity
from cpbpe.model.formats.gguf import byte_level, keys
from cpbpe.model.formats.gguf.container import shown, values, wrong
from cpbpe.model.formats.gguf.typed import Typed
from cpbpe.model.formats.given import NOTHING, Given
from cpbpe.model.formats.values import ReadModel
from cpbpe.model.spec import Carried, ModelSpec, NormalizerSpec, Pieces, PieceType
from cpbpe.spelling import named
from cpbpe.text.utf8 import SPACE

_OURS = "llama"
_OTHERS = {
    "bert": "WordPiece (as in BERT)",
    "t5": "Unigram (as in T5)",
    "rwkv": "RWKV's",
    "plamo2": "PLaMo-2's",
    "gemma4": "Gemma 4's, BPE with a list of merges",
}
_NONE = ("no_vocab", "none", "")
_BYTES = dict.fromkeys(validity.BYTE_PIECES, PieceType.BYTE)
_DEFAULT_TYPES = {"unk": PieceType.UNKNOWN, "bos": PieceType.CONTROL, "eos": PieceType.CONTROL}
"""What a piece must be to have a part although the file does not say so."""


def read(data: bytes, *, allow_differences: bool = False, given: Given = NOTHING) -> ReadModel:
    """The model in a GGUF file, or in its beginning up to the tensors.

    Of a byte-level model, `given` may say how texts are cut. What llama.cpp does with a model in another way
    is for `llamacpp.differences`.
    """
    found = values(data, _is_wanted)
    if _kind(Typed(found)) == keys.BYTE_LEVEL:
        return byte_level.read(found, allow_differences=allow_differences, given=given)
    if given.name:
        raise ValueError(
            f"{named(given.name)} is for files of byte-level models, and this GGUF file holds SentencePiece "
            f"BPE, which says by itself what it needs"
        )
    return _Reader(found).read()


def _is_wanted(key: str) -> bool:
    return (
        key in _WANTED or key.startswith((keys.TEMPLATE + ".", keys.SPLIT_NUMBER, keys.SPLIT_COUNT))
    )  # fmt: skip


_WANTED = {
    *(keys.MODEL, keys.TOKENS, keys.SCORES, keys.TYPES, keys.ADD_BOS, keys.ADD_EOS, keys.ADD_PREFIX),
    *(keys.REMOVE_SPACES, keys.CHARSMAP, keys.TEMPLATE, keys.ARCHITECTURE),
    *(keys.PRE, keys.MERGES, keys.FORM, keys.PREFIX),
    *keys.ROLES.values(),
    *keys.OLD_ROLES.values(),
}


def _kind(file: Typed) -> str:
    """Which kind of tokenizer it is, of those that are read."""
    part = file.integer(keys.SPLIT_NUMBER, 0)
    if keys.MODEL not in file.values and part:
        wrong(
            f"it is part {part + 1} of a model in {file.integer(keys.SPLIT_COUNT, part + 1)} files, and "
            f"the tokenizer is in the first; give the path of that one (-00001-of-...)"
        )
    if keys.MODEL not in file.values:
        kind = file.text(keys.ARCHITECTURE, b"").decode(errors="replace")
        whose = f" (its architecture is {shown(kind)})" if kind else ""
        wrong(f"it holds no tokenizer{whose}: there is no {keys.MODEL}; give the file of the model itself")
    name = file.text(keys.MODEL, b"").decode(errors="replace")
    if name in _NONE:
        wrong(f"it holds no tokenizer: {keys.MODEL} is {name!r}")
    if name not in (_OURS, keys.BYTE_LEVEL):
        known = f", which is {_OTHERS[name]}" if name in _OTHERS else ""
        wrong(
            f"{keys.MODEL} is {shown(name)}{known}; cpbpe reads SentencePiece BPE, which is {_OURS!r} there, "
            f"and byte-level BPE, which is {keys.BYTE_LEVEL!r}"
        )
    return name


class _Reader(Typed):
    """The values of a file, and what is to be said about them."""

    def read(self) -> ReadModel:
        """The model."""
        # 1. The columns.
        texts = self.texts()
        scores = self._scores(len(texts))
        types = self._types_of(texts)
        self._name_empty(texts, types)
        self._find_unknown(texts, types)
        self._spaces_of_user_defined(texts, types)
        validity.hide_nul(texts, types, PieceType.BYTE in types)
        # 2. The settings, and the ids that have a part.
        roles = self._roles(texts, types)
        charsmap = self._charsmap()
        prefix = self.flag(keys.ADD_PREFIX, True)
        spec = ModelSpec(
            Pieces.of_lists(texts, scores, types),
            NormalizerSpec(
                name="" if charsmap else "identity",
                charsmap=charsmap,
                add_dummy_prefix=prefix,
                remove_extra_whitespaces=self.flag(keys.REMOVE_SPACES, False),
            ),
            byte_fallback=PieceType.BYTE in types,
            special_pieces=(
                next((text for text, type in zip(texts, types, strict=True) if type == 2), b"<unk>"),
                roles.get("bos", b"<s>"),
                roles.get("eos", b"</s>"),
                roles.get("pad", b"<pad>"),
            ),
            carried=self._carried(roles),
        )
        validity.check(spec)
        return ReadModel(spec, notes=tuple(self.notes), assumptions=tuple(self.assumptions))

    # --- Columns ---------------------------------------------------------------------------------

    def _scores(self, size: int) -> Any:
        """The scores. llama.cpp takes missing ones for equal, and so merges as nobody can have meant."""
        scores = self.array(keys.SCORES, "array of float32", "array of float64")
        if scores is None:
            wrong(f"it has no scores ({keys.SCORES}), which say what is merged first; convert the model anew")
        self.check_size(keys.SCORES, len(scores), size)
        return scores

    def _types_of(self, texts: list[bytes]) -> bytearray:
        """The types, or what the names of pieces tell."""
        given = self.types(len(texts))
        if given is None:
            return self._types_by_name(texts)
        return bytearray(type or PieceType.NORMAL for type in given)

    def _types_by_name(self, texts: list[bytes]) -> bytearray:
        self.assumptions.append(
            f"the file has no {keys.TYPES}: <0x00> to <0xFF> are taken for BYTE pieces if all are there, the "
            f"unknown token for UNKNOWN, bos and eos for CONTROL, and all others for NORMAL"
        )
        types = bytearray([PieceType.NORMAL]) * len(texts)
        if _BYTES.keys() <= set(texts):
            for id, text in enumerate(texts):
                types[id] = _BYTES.get(text, PieceType.NORMAL)
        for name in ("bos", "eos"):
            self._set_special(texts, types, name, PieceType.CONTROL)
        return types

    def _name_empty(self, texts: list[bytes], types: bytearray) -> None:
        """Pieces without a text get one, as in llama.cpp, and are found in no text."""
        for id, text in enumerate(texts):
            if not text:
                texts[id] = b"[EMPTY_%d]" % id
                types[id] = PieceType.UNUSED
                self.notes.append(f"piece {id} has no text; it is called '[EMPTY_{id}]' and UNUSED")

    def _find_unknown(self, texts: list[bytes], types: bytearray) -> None:
        named = keys.TYPES not in self.values or keys.ROLES["unk"] in self.values
        many = [id for id, type in enumerate(types) if type == PieceType.UNKNOWN]
        if len(many) > 1:
            # Fillers and others, to llama.cpp: found if special tokens are, like CONTROL ones.
            own = self.integer(keys.ROLES["unk"], keys.DEFAULT_ROLES["unk"])
            others = [id for id in many if id != own]
            for id in others:
                types[id] = PieceType.CONTROL
            self.notes.append(
                f"{len(others)} pieces beside the unknown token have the type UNKNOWN, for example "
                f"{shown(texts[others[0]].decode(errors='replace'))}; here they are CONTROL"
            )
        if PieceType.UNKNOWN not in types and named:
            name = self._set_special(texts, types, "unk", PieceType.UNKNOWN)
            if name and keys.TYPES in self.values:
                self.notes.append(
                    f"no piece has the type UNKNOWN; {name!r} gets it, which is called so elsewhere"
                )

    def _set_special(self, texts: list[bytes], types: bytearray, name: str, type: PieceType) -> str:
        """Give a type to the piece with a part, if it has one of the usual names; its text."""
        id = self.integer(keys.ROLES[name], keys.DEFAULT_ROLES[name])
        if not 0 <= id < len(texts) or types[id] != PieceType.NORMAL:
            return ""
        if not (texts[id].startswith(b"<") and texts[id].endswith(b">")):
            return ""
        types[id] = type
        return texts[id].decode(errors="replace")

    def _spaces_of_user_defined(self, texts: list[bytes], types: bytearray) -> None:
        """In these, a space may be written as a space: llama.cpp looks for them before it escapes spaces."""
        taken = None
        for id, type in enumerate(types):
            if type == PieceType.USER_DEFINED and b" " in texts[id]:
                taken = taken or set(texts)
                text = texts[id].replace(b" ", SPACE)
                if text not in taken:
                    taken.add(text)
                    texts[id] = text
                    written = text.decode(errors="replace")
                    self.notes.append(
                        f"the spaces of the USER_DEFINED piece {shown(written)} are read as U+2581"
                    )

    # --- Settings --------------------------------------------------------------------------------

    def _charsmap(self) -> bytes:
        found = self.array(keys.CHARSMAP, "array of uint8", "array of int8")
        return b"" if found is None else array("B", found.tobytes()).tobytes()

    def _roles(self, texts: list[bytes], types: bytearray) -> dict[str, bytes]:
        roles = {}
        for role in keys.ROLES:
            id = self.role(role, len(texts))
            unsaid = keys.ROLES[role] not in self.values and role in keys.DEFAULT_ROLES
            if unsaid:
                id = keys.DEFAULT_ROLES[role]
                if not (id < len(types) and types[id] == _DEFAULT_TYPES[role]):
                    continue
            if id is not None:
                roles[role] = texts[id]
        return roles

    def _carried(self, roles: dict[str, bytes]) -> Carried:
        options = {"add_bos": self.flag(keys.ADD_BOS, True), "add_eos": self.flag(keys.ADD_EOS, False)}
        texts = {role: text.decode(errors="replace") for role, text in roles.items()}
        return Carried({name: True for name, on in options.items() if on}, texts, self.templates())
