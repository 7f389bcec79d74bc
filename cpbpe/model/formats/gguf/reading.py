"""Reading the tokenizer of a GGUF file: the model that its producers had, not what llama.cpp makes of it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from cpbpe.model import validity
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import Value, values, wrong
from cpbpe.model.formats.values import ReadModel
from cpbpe.model.spec import Carried, ModelSpec, NormalizerSpec, Pieces, PieceType
from cpbpe.text.utf8 import SPACE

_OURS = "llama"
_OTHERS = {
    "gpt2": "byte-level BPE (as in GPT-2, Llama 3 and Qwen)",
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
_TYPES = frozenset(map(int, PieceType))


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """The model in a GGUF file, or in its beginning up to the tensors.

    `allow_differences` changes nothing: the file has all that a model needs. What llama.cpp does with it in
    another way is for `llamacpp.differences`.
    """
    reader = _Reader(values(data, _is_wanted))
    return reader.read()


def _is_wanted(key: str) -> bool:
    return (
        key in _WANTED or key.startswith((keys.TEMPLATE + ".", keys.SPLIT_NUMBER, keys.SPLIT_COUNT))
    )  # fmt: skip


_WANTED = {
    *(keys.MODEL, keys.TOKENS, keys.SCORES, keys.TYPES, keys.ADD_BOS, keys.ADD_EOS, keys.ADD_PREFIX),
    *(keys.REMOVE_SPACES, keys.CHARSMAP, keys.TEMPLATE, keys.ARCHITECTURE),
    *keys.ROLES.values(),
    *keys.OLD_ROLES.values(),
}


@dataclass
class _Reader:
    """The values of a file, and what is to be said about them."""

    values: dict[str, Value]
    notes: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def read(self) -> ReadModel:
        """The model."""
        # 1. The columns.
        self._refuse_others()
        texts = self._texts()
        scores = self._scores(len(texts))
        types = self._types(texts)
        self._name_empty(texts, types)
        self._find_unknown(texts, types)
        self._spaces_of_user_defined(texts, types)
        # 2. The settings, and the ids that have a part.
        roles = self._roles(texts, types)
        charsmap = self._charsmap()
        prefix = self._flag(keys.ADD_PREFIX, True)
        spec = ModelSpec(
            Pieces.of_lists(texts, scores, types),
            NormalizerSpec(
                name="" if charsmap else "identity",
                charsmap=charsmap,
                add_dummy_prefix=prefix,
                remove_extra_whitespaces=self._flag(keys.REMOVE_SPACES, False),
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

    # --- Which tokenizer -------------------------------------------------------------------------

    def _refuse_others(self) -> None:
        part = self._integer(keys.SPLIT_NUMBER, 0)
        if keys.MODEL not in self.values and part:
            wrong(
                f"it is part {part + 1} of a model in {self._integer(keys.SPLIT_COUNT, part + 1)} files, and "
                f"the tokenizer is in the first; give the path of that one (-00001-of-...)"
            )
        if keys.MODEL not in self.values:
            kind = self._text(keys.ARCHITECTURE, b"").decode(errors="replace")
            shown = f" (its architecture is {kind!r})" if kind else ""
            wrong(
                f"it holds no tokenizer{shown}: there is no {keys.MODEL}; give the file of the model itself"
            )
        name = self._text(keys.MODEL, b"").decode(errors="replace")
        if name in _NONE:
            wrong(f"it holds no tokenizer: {keys.MODEL} is {name!r}")
        if name != _OURS:
            known = f", which is {_OTHERS[name]}" if name in _OTHERS else ""
            wrong(f"{keys.MODEL} is {name!r}{known}; cpbpe reads SentencePiece BPE, which is 'llama' there")

    # --- Columns ---------------------------------------------------------------------------------

    def _texts(self) -> list[bytes]:
        texts = self._array(keys.TOKENS, "array of string")
        if texts is None:
            wrong(f"it has a tokenizer without pieces: there is no {keys.TOKENS}")
        if not texts:
            wrong(f"{keys.TOKENS} is empty")
        return list(texts)

    def _scores(self, size: int) -> Any:
        """The scores. llama.cpp takes missing ones for equal, and so merges as nobody can have meant."""
        scores = self._array(keys.SCORES, "array of float32", "array of float64")
        if scores is None:
            wrong(f"it has no scores ({keys.SCORES}), which say what is merged first; convert the model anew")
        self._check_size(keys.SCORES, len(scores), size)
        return scores

    def _types(self, texts: list[bytes]) -> bytearray:
        """The types, or what the names of pieces tell."""
        given = self._array(
            keys.TYPES, *(f"array of {sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
        )
        if given is None:
            return self._types_by_name(texts)
        self._check_size(keys.TYPES, len(given), len(texts))
        undefined = given.count(0)
        if undefined:
            self.notes.append(f"{undefined} pieces have no type (0, UNDEFINED), which is read as NORMAL")
        for id, type in enumerate(given):
            if type and type not in _TYPES:
                wrong(f"{keys.TYPES}[{id}] is {type}, and types are 1 to 6")
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
        if PieceType.UNKNOWN not in types and named:
            name = self._set_special(texts, types, "unk", PieceType.UNKNOWN)
            if name and keys.TYPES in self.values:
                self.notes.append(
                    f"no piece has the type UNKNOWN; {name!r} gets it, which is called so elsewhere"
                )

    def _set_special(self, texts: list[bytes], types: bytearray, name: str, type: PieceType) -> str:
        """Give a type to the piece with a part, if it has one of the usual names; its text."""
        id = self._integer(keys.ROLES[name], keys.DEFAULT_ROLES[name])
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
                    shown = text.decode(errors="replace")
                    self.notes.append(f"the spaces of the USER_DEFINED piece {shown!r} are read as U+2581")

    # --- Settings --------------------------------------------------------------------------------

    def _charsmap(self) -> bytes:
        found = self._array(keys.CHARSMAP, "array of uint8", "array of int8")
        return b"" if found is None else array("B", found.tobytes()).tobytes()

    def _roles(self, texts: list[bytes], types: bytearray) -> dict[str, bytes]:
        roles = {}
        for role in keys.ROLES:
            key = keys.ROLES[role]
            if key not in self.values and role in keys.OLD_ROLES:
                key = keys.OLD_ROLES[role]
            id = self._integer(key, -1)
            if key not in self.values and role in keys.DEFAULT_ROLES:
                id = keys.DEFAULT_ROLES[role]
                if not (id < len(types) and types[id] == _DEFAULT_TYPES[role]):
                    continue
            if 0 <= id < len(texts):
                roles[role] = texts[id]
            elif key in self.values and id not in (-1, keys.NO_TOKEN):
                self.notes.append(f"{key} is {id}, which is the id of no piece; it is passed over")
        return roles

    def _carried(self, roles: dict[str, bytes]) -> Carried:
        templates = {}
        for key in sorted(self.values):
            if key == keys.TEMPLATE or key.startswith(keys.TEMPLATE + "."):
                name = key[len(keys.TEMPLATE) + 1 :] or "default"
                templates[name] = self._text(key, b"").decode(errors="replace")
        options = {"add_bos": self._flag(keys.ADD_BOS, True), "add_eos": self._flag(keys.ADD_EOS, False)}
        shown = {role: text.decode(errors="replace") for role, text in roles.items()}
        return Carried({name: True for name, on in options.items() if on}, shown, templates)

    # --- Values of the expected types --------------------------------------------------------------

    def _array(self, key: str, *types: str) -> Any:
        value = self.values.get(key)
        if value is None:
            return None
        if value.type not in types:
            wrong(f"{key} must be an {types[0]}, and is {value.type}")
        return value.content

    def _check_size(self, key: str, given: int, size: int) -> None:
        if given != size:
            wrong(f"{key} has {given:,} values, and there are {size:,} pieces")

    def _flag(self, key: str, default: bool) -> bool:
        return bool(self._single(key, default, bool, "a bool"))

    def _integer(self, key: str, default: int) -> int:
        return int(self._single(key, default, int, "an integer"))

    def _text(self, key: str, default: bytes) -> bytes:
        return bytes(self._single(key, default, bytes, "a string"))

    def _single(self, key: str, default: Any, kind: type, name: str) -> Any:
        value = self.values.get(key)
        if value is None:
            return default
        if type(value.content) is not kind:
            wrong(f"{key} must be {name}, and is {value.type}")
        return value.content
