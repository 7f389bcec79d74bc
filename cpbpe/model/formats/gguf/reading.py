"""Reading the tokenizer of a GGUF file: the original model, not what llama.cpp makes of it.

A model of characters has scores. A byte-level model has tokens in GPT-2's letters, a list of merges, and a
name (`tokenizer.ggml.pre`) that stands for how texts are cut, see `llamacpp`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from cpbpe.model import validity
from cpbpe.model.byte_level import assembled, differences_of, known_patterns, scores_of, splitter_of
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import shown, values, wrong
from cpbpe.model.formats.gguf.llamacpp import KNOWN
from cpbpe.model.formats.registry import NO_HINTS, Hints
from cpbpe.model.formats.values import TO_READ, ReadModel, refuse
from cpbpe.model.pair_ranks import Pair
from cpbpe.model.spec import PLAIN, ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.spelling import advised, counted, given, named
from cpbpe.text.unicode_forms import FORMS
from cpbpe.text.utf8 import LETTERS, SPACE, all_from_letters, is_spelled

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
"""The type that a piece must have to get a role by default, if the file does not say who has the role."""
_IN_TEXT = frozenset([PieceType.CONTROL, PieceType.USER_DEFINED, PieceType.UNKNOWN])
"""The types of pieces that llama.cpp searches texts for."""


def read(data: bytes, *, allow_differences: bool = False, hints: Hints = NO_HINTS) -> ReadModel:
    """Return the model in a GGUF file, or in its beginning up to the tensors.

    For a byte-level model, `hints` may say how texts are cut. What llama.cpp does differently is not reported
    here, but by `llamacpp.differences`.
    """
    found = values(data, _is_wanted)
    if _kind(keys.TypedValues(found)) == keys.BYTE_LEVEL:
        return _ByteLevelReader(found).read(allow_differences, hints)
    if hints.name:
        raise ValueError(
            f"{named(hints.name)} is for files of byte-level models, and this GGUF file holds SentencePiece "
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


def _kind(file: keys.TypedValues) -> str:
    """Return the kind of tokenizer, or raise a ModelError if cpbpe does not read this kind."""
    part = file.one(keys.SPLIT_NUMBER, 0)
    if keys.MODEL not in file.values and part:
        wrong(
            f"it is part {part + 1} of a model in {file.one(keys.SPLIT_COUNT, part + 1)} files, and "
            f"the tokenizer is in the first; give the path of that one (-00001-of-...)"
        )
    if keys.MODEL not in file.values:
        kind = file.one(keys.ARCHITECTURE, b"").decode(errors="replace")
        whose = f" (its architecture is {shown(kind)})" if kind else ""
        wrong(f"it holds no tokenizer{whose}: there is no {keys.MODEL}; give the file of the model itself")
    name = file.one(keys.MODEL, b"").decode(errors="replace")
    if name in _NONE:
        wrong(f"it holds no tokenizer: {keys.MODEL} is {name!r}")
    if name not in (_OURS, keys.BYTE_LEVEL):
        known = f", which is {_OTHERS[name]}" if name in _OTHERS else ""
        wrong(
            f"{keys.MODEL} is {shown(name)}{known}; cpbpe reads SentencePiece BPE, which is {_OURS!r} there, "
            f"and byte-level BPE, which is {keys.BYTE_LEVEL!r}"
        )
    return name


class _Reader(keys.TypedValues):
    """The values of a file that holds a model of characters, with notes about them for the user."""

    def read(self) -> ReadModel:
        """The model."""
        # 1. The columns.
        texts = self.texts()
        scores = self._scores(len(texts))
        given = self.types(len(texts))
        types = self._types_by_name(texts) if given is None else bytearray(type or 1 for type in given)
        self._name_empty(texts, types)
        self._find_unknown(texts, types)
        self._spaces_of_user_defined(texts, types)
        validity.hide_nul(texts, types, PieceType.BYTE in types)
        # 2. The settings, and the ids that have a role.
        roles = self._roles(texts, types)
        stored = self.array(keys.CHARSMAP, "array of uint8", "array of int8")
        charsmap = b"" if stored is None else stored.tobytes()
        prefix = self.one(keys.ADD_PREFIX, True)
        spec = ModelSpec(
            Pieces.of_lists(texts, scores, types),
            NormalizerSpec(
                name="" if charsmap else "identity",
                charsmap=charsmap,
                add_dummy_prefix=prefix,
                remove_extra_whitespaces=self.one(keys.REMOVE_SPACES, False),
            ),
            byte_fallback=PieceType.BYTE in types,
            special_pieces=(
                next((text for text, type in zip(texts, types, strict=True) if type == 2), b"<unk>"),
                roles.get("bos", b"<s>"),
                roles.get("eos", b"</s>"),
                roles.get("pad", b"<pad>"),
            ),
            carried=self.carried({role: text.decode(errors="replace") for role, text in roles.items()}, True),
        )
        validity.check(spec)
        return ReadModel(spec, notes=tuple(self.notes), assumptions=tuple(self.assumptions))

    # --- Columns ---------------------------------------------------------------------------------

    def _scores(self, size: int) -> Any:
        """Return the scores. A file without any is refused: llama.cpp would take all scores for equal, and
        merge as nobody can have meant.
        """
        scores = self.array(keys.SCORES, "array of float32", "array of float64")
        if scores is None:
            wrong(f"it has no scores ({keys.SCORES}), which say what is merged first; convert the model anew")
        self.check_size(keys.SCORES, len(scores), size)
        return scores

    def _types_by_name(self, texts: list[bytes]) -> bytearray:
        """Return the types that the names of pieces suggest."""
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
        """Give pieces without a text a name, as llama.cpp does, and a type with which no text yields them."""
        for id, text in enumerate(texts):
            if not text:
                texts[id] = b"[EMPTY_%d]" % id
                types[id] = PieceType.UNUSED
                self.notes.append(f"piece {id} has no text; it is called '[EMPTY_{id}]' and UNUSED")

    def _find_unknown(self, texts: list[bytes], types: bytearray) -> None:
        named = keys.TYPES not in self.values or keys.ROLES["unk"] in self.values
        many = [id for id, type in enumerate(types) if type == PieceType.UNKNOWN]
        if len(many) > 1:
            # These are fillers and the like. llama.cpp finds them if it finds special tokens, so: CONTROL.
            own = self.one(keys.ROLES["unk"], keys.DEFAULT_ROLES["unk"])
            own = own if own in many or keys.ROLES["unk"] in self.values else many[0]
            others = [id for id in many if id != own]
            for id in others:
                types[id] = PieceType.CONTROL
            self.notes.append(
                f"besides the unknown token, {counted(len(others), 'piece')} with the type UNKNOWN became "
                f"CONTROL here, for example {shown(texts[others[0]].decode(errors='replace'))}"
            )
        if PieceType.UNKNOWN not in types and named:
            name = self._set_special(texts, types, "unk", PieceType.UNKNOWN)
            if name and keys.TYPES in self.values:
                self.notes.append(
                    f"no piece has the type UNKNOWN; {name!r} gets it, because {keys.ROLES['unk']} names it"
                )

    def _set_special(self, texts: list[bytes], types: bytearray, name: str, type: PieceType) -> str:
        """Give a type to the piece with a role if its name is like `<s>`. Return its text, or else ""."""
        id = self.one(keys.ROLES[name], keys.DEFAULT_ROLES[name])
        if not 0 <= id < len(texts) or types[id] != PieceType.NORMAL:
            return ""
        if not (texts[id].startswith(b"<") and texts[id].endswith(b">")):
            return ""
        types[id] = type
        return texts[id].decode(errors="replace")

    def _spaces_of_user_defined(self, texts: list[bytes], types: bytearray) -> None:
        """Escape the spaces in USER_DEFINED pieces. Files may have them unescaped, because llama.cpp looks
        for these pieces before it escapes the text.
        """
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

    def _roles(self, texts: list[bytes], types: bytearray) -> dict[str, bytes]:
        roles = {}
        for role in keys.ROLES:
            id = self.role(role, len(texts))
            if keys.ROLES[role] not in self.values and role in keys.DEFAULT_ROLES:
                id = keys.DEFAULT_ROLES[role]
                if not (id < len(types) and types[id] == _DEFAULT_TYPES[role]):
                    continue
            if id is not None:
                roles[role] = texts[id]
        return roles


# --- Byte-level models ----------------------------------------------------------------------------


class _Cutting(NamedTuple):
    """What the name in the file stands for."""

    splitter: SplitSpec | None
    whole: bool
    form: str
    adds_bos: bool


class _ByteLevelReader(keys.TypedValues):
    """The values of a file that holds a byte-level model, with notes about them for the user."""

    def read(self, allow_differences: bool, hints: Hints) -> ReadModel:
        """The model."""
        # 1. How texts are cut, the tokens, and what merges.
        cutting = self._cutting(hints)
        texts = self._tokens()
        pairs = self._pairs()
        types = self._types(texts, pairs)
        # 2. Scores, and all other tokens.
        ordinary = {texts[id]: id for id, type in enumerate(types) if type == PieceType.NORMAL}
        self._check_pairs(pairs, ordinary)
        scores, unlike = scores_of(ordinary, {pair: place for place, pair in enumerate(pairs)})
        differences = differences_of(unlike)
        spelled = all_from_letters(list(ordinary))
        rows = {
            id: (piece, scores[token]) for (token, id), piece in zip(ordinary.items(), spelled, strict=True)
        }
        last = max(rows, default=-1)
        special = self._special(texts, types, last)
        pieces = {piece: id for id, (piece, _) in rows.items()}
        self._refuse_twins(pieces, special, last)
        flags: dict[str, tuple[str, ...]] = {
            text: (PLAIN,) if types[id] == PieceType.USER_DEFINED else ()
            for text, id in special.items()
            if types[id] == PieceType.USER_DEFINED or text.encode() in pieces
        }
        refuse(differences, allow_differences, "no model of cpbpe is exactly this GGUF file", TO_READ)
        # 3. The settings, and the ids that have a role.
        found = {role: self.role(role, len(texts)) for role in keys.ROLES}
        roles = {role: texts[id] for role, id in found.items() if id is not None}
        if self.one(keys.ADD_PREFIX, False):
            self.notes.append("the file asks for a space in front of texts, but llama.cpp never puts one")
        carried = self.carried(roles, cutting.adds_bos)
        options = {name: on for name, on in carried.options.items() if name.removeprefix("add_") in roles}
        prefix = self.one(keys.PREFIX, False)
        spec = assembled(rows, special, splitter=cutting.splitter, whole=cutting.whole)
        usual = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}
        unk, bos, eos, pad = (roles.get(role, name) for role, name in usual.items())
        spec = replace(
            spec,
            special_pieces=(unk.encode(), bos.encode(), eos.encode(), pad.encode()),
            normalizer=replace(
                spec.normalizer,
                unicode_form=cutting.form,
                add_dummy_prefix=prefix,
                prefix_before_space=not prefix,
            ),
            carried=replace(carried, options=options, tokens=flags),
        )
        validity.check(spec)
        return ReadModel(spec, tuple(differences), tuple(self.notes), tuple(self.assumptions))

    # --- How texts are cut -----------------------------------------------------------------------

    def _cutting(self, hints: Hints) -> _Cutting:
        """Return what the name in the file stands for, or what a user says instead."""
        name = self.one(keys.PRE, b"").decode(errors="replace")
        known = KNOWN.get(name)
        if hints.special_tokens is not None:
            advice = advised("; with_special_tokens() adds tokens", "")
            raise ValueError(
                f"{named('special_tokens')} is for files that do not say which there are, and a GGUF file "
                f"does{advice}"
            )
        form = self._form()
        if hints.pattern is not None:
            splitter = splitter_of(hints.pattern)
            if known is None:  # known models with this pattern decide whether a chunk is taken whole
                rows = [row for row in KNOWN.values() if row.splitter == splitter]
                whole = bool(rows) and rows[0].whole
                if len({row.whole for row in rows}) != 1:
                    taken = "made without merging" if whole else "merged like any other"
                    self.assumptions.append(
                        f"the file does not say if a token that is a whole chunk is made without merging; "
                        f"it is {taken}. To change this, set whole={not whole} (tok.spec, from_spec)"
                    )
            else:
                whole = known.whole
            return _Cutting(splitter, whole, form or "", known is not None and known.adds_bos)
        if known is None:
            says = f"{keys.PRE} is {shown(name)}, and" if name else f"there is no {keys.PRE}, so"
            wrong(
                f"{says} cpbpe does not know for certain how the model cuts texts; if you do, say it: "
                f"{given('pattern', 'gpt2')}. {known_patterns()}. It knows the names {', '.join(KNOWN)}"
            )
        if form is None and known.form:
            self.notes.append(
                f"{name} stands for models whose own tokenizers bring texts into {known.form}, and so does "
                f"this one; llama.cpp does not"
            )
        return _Cutting(known.splitter, known.whole, known.form if form is None else form, known.adds_bos)

    def _form(self) -> str | None:
        """Return the Unicode normal form that the file names; None if it says nothing about it."""
        if keys.FORM not in self.values:
            return None
        form = self.one(keys.FORM, b"").decode(errors="replace")
        if form and form not in FORMS:
            wrong(f"{keys.FORM} is {shown(form)}, which is none of {', '.join(FORMS)}")
        return form

    # --- Tokens ----------------------------------------------------------------------------------

    def _tokens(self) -> list[str]:
        """Return the tokens as the file spells them. Tokens without a text get one, as in llama.cpp."""
        found = _decoded(keys.TOKENS, self.texts())
        for id, text in enumerate(found):
            if not text:
                found[id] = f"[EMPTY_{id}]"
                self.notes.append(f"token {id} has no text; it is called '[EMPTY_{id}]'")
        _refuse_twice(keys.TOKENS, found)
        return found

    def _types(self, texts: list[str], pairs: list[Pair]) -> list[int]:
        """Return the type of each token. If one is missing or cannot be right, merges and letters decide."""
        given = self.types(len(texts))
        made = {left + right for left, right in pairs}
        letters = set(LETTERS.values())
        if given is None:
            self.assumptions.append(
                f"the file has no {keys.TYPES}: tokens that no merges make are taken for CONTROL, except the "
                f"letters that stand for bytes"
            )
            return [
                PieceType.NORMAL if text in made or text in letters else PieceType.CONTROL for text in texts
            ]
        types = [type or PieceType.NORMAL for type in given]
        if PieceType.BYTE in types:
            id = types.index(PieceType.BYTE)
            wrong(f"token {id}, {shown(texts[id])}, has the type BYTE, and here letters stand for bytes")
        for id, text in enumerate(texts):
            if text == f"[EMPTY_{id}]" and types[id] == PieceType.NORMAL and text not in made:
                types[id] = PieceType.UNUSED
        # Old converters gave every token the type NORMAL.
        roles = {self.role(role, len(texts)) for role in ("bos", "eos", "pad", "eot")}
        for id in sorted(id for id in roles if id is not None):
            text = texts[id]
            if types[id] == PieceType.NORMAL and text not in made and text not in letters:
                types[id] = PieceType.CONTROL
                self.notes.append(f"{shown(text)}, which no merges make, is a special token: it has a role")
        ordinary = [text for text, type in zip(texts, types, strict=True) if type == PieceType.NORMAL]
        if not is_spelled("".join(ordinary)):
            for id, text in enumerate(texts):
                if types[id] == PieceType.NORMAL and not is_spelled(text):
                    types[id] = PieceType.CONTROL
                    self.notes.append(
                        f"{shown(text)} has characters that stand for no byte, so no text becomes it; here "
                        f"it is a special token"
                    )
        return types

    def _special(self, texts: list[str], types: list[int], last: int) -> dict[str, int]:
        """Return the special tokens. `last` is the highest id of a piece.

        Converters fill ids that a model does not have with UNUSED tokens. So UNUSED tokens are left out,
        except below the last piece, where every id must have a token.
        """
        special, left_out = {}, 0
        for id, type in enumerate(types):
            if type in _IN_TEXT or (type == PieceType.UNUSED and id < last):
                special[texts[id]] = id
            elif type == PieceType.UNUSED:
                left_out += 1
        if left_out:
            self.notes.append(f"UNUSED tokens are left out ({left_out:,}): ids that the model does not have")
        if PieceType.CONTROL in types or PieceType.UNKNOWN in types:
            self.notes.append(
                "llama.cpp finds special tokens in texts if it is told to, cpbpe those that allowed_special "
                "allows"
            )
        return special

    def _refuse_twins(self, pieces: dict[bytes, int], special: dict[str, int], last: int) -> None:
        """Refuse a special token with the text of a piece, unless its id comes after those of all pieces."""
        for token, id in special.items():
            other = pieces.get(token.encode())
            if other is not None and id < last:
                wrong(
                    f"the tokens {other} and {id} have the same text, {shown(token)}: one is made of "
                    f"letters that stand for bytes, the other is looked for in texts, and its id is among "
                    f"those of pieces; in cpbpe no two pieces can have the same text"
                )

    # --- Merges ----------------------------------------------------------------------------------

    def _pairs(self) -> list[Pair]:
        """Return the merges. Each is two tokens with a space between them."""
        lines = self.array(keys.MERGES, "array of string")
        if lines is None:
            wrong(f"it has no merges ({keys.MERGES}), which say what is merged first; convert the model anew")
        pairs: list[Pair] = []
        texts = _decoded(keys.MERGES, lines)
        for place, line in enumerate(texts):
            left, _, right = line.partition(" ")
            if not left or not right or " " in right:
                wrong(f"{keys.MERGES}[{place}] is {shown(line)}, and must be two tokens with a space between")
            pairs.append((left, right))
        _refuse_twice(keys.MERGES, texts)
        return pairs

    def _check_pairs(self, pairs: list[Pair], ordinary: dict[str, int]) -> None:
        """Refuse merges that use or make anything but a token of the type NORMAL."""
        used = set(chain.from_iterable(pairs)) | {left + right for left, right in pairs}
        if used <= ordinary.keys():
            return
        for place, (left, right) in enumerate(pairs):
            for token in (left, right, left + right):
                if token not in ordinary:
                    wrong(
                        f"{keys.MERGES}[{place}] is {shown(f'{left} {right}')}, and {shown(token)} is no "
                        f"token of the type NORMAL"
                    )


def _refuse_twice(key: str, texts: list[str]) -> None:
    if len(set(texts)) < len(texts):
        places: dict[str, int] = {}
        for place, text in enumerate(texts):
            if (other := places.setdefault(text, place)) != place:
                wrong(f"{key} has {shown(text)} twice, as {other} and as {place}")


def _decoded(key: str, texts: list[bytes]) -> list[str]:
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError:
        for place, text in enumerate(texts):
            if text.decode(errors="replace").encode() != text:
                wrong(f"{key}[{place}] is {text[:40]!r}, which is not UTF-8")
        raise
