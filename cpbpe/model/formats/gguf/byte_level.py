"""Reading the byte-level model in a GGUF file: tokens in GPT-2's letters, a list of merges, and a name.

The name (`tokenizer.ggml.pre`) stands for how texts are cut, see `pre_names`. As with other models, what is
read does what the model's own tokenizer does, even where llama.cpp does not.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

from cpbpe.model import validity
from cpbpe.model.byte_level import assembled, known_patterns, splitter_of
from cpbpe.model.byte_pairs import scores_of
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import Value, shown, wrong
from cpbpe.model.formats.gguf.pre_names import KNOWN
from cpbpe.model.formats.gguf.typed import Typed
from cpbpe.model.formats.given import Given
from cpbpe.model.formats.values import Difference, ReadModel, refuse
from cpbpe.model.pair_ranks import Pair
from cpbpe.model.spec import PLAIN, Carried, PieceType, SplitSpec
from cpbpe.spelling import advised, named
from cpbpe.spelling import given as spelled
from cpbpe.text.byte_letters import LETTERS, all_from_letters, is_spelled
from cpbpe.text.unicode_forms import FORMS

_ALLOW = "To read it all the same, use cpbpe.convert with allow_differences=True, which lists them"
_MOST_EXACT = 1 << 24
"""Ids up to here are numbers that a score can be."""
_IN_TEXT = frozenset([PieceType.CONTROL, PieceType.USER_DEFINED, PieceType.UNKNOWN])
"""What llama.cpp looks for in a text."""


def read(values: dict[str, Value], *, allow_differences: bool, given: Given) -> ReadModel:
    """The model in a file with these values."""
    return _Reader(values).read(allow_differences, given)


class _Cutting(NamedTuple):
    """What stands for the name in the file."""

    splitter: SplitSpec | None
    whole: bool
    form: str
    adds_bos: bool


class _Reader(Typed):
    """The values of a file, and what is to be said about them."""

    def read(self, allow_differences: bool, given: Given) -> ReadModel:
        """The model."""
        # 1. How texts are cut, the tokens, and what merges.
        cutting = self._cutting(given)
        texts = self._tokens()
        pairs = self._pairs()
        types = self._types(texts, pairs)
        # 2. Scores, and all other tokens.
        ordinary = {texts[id]: id for id, type in enumerate(types) if type == PieceType.NORMAL}
        self._check_pairs(pairs, ordinary)
        scores, differences = _scores(ordinary, pairs)
        spelled = list(ordinary)
        rows = {
            ordinary[token]: (piece, scores[token])
            for token, piece in zip(spelled, all_from_letters(spelled), strict=True)
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
        if not allow_differences:
            refuse(differences, "no model of cpbpe is exactly this GGUF file", _ALLOW)
        # 3. The settings, and the ids that have a part.
        roles = self._roles(texts)
        prefix = self.flag(keys.PREFIX, False)
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
            carried=replace(self._carried(roles, cutting), tokens=flags),
        )
        validity.check(spec)
        return ReadModel(spec, tuple(differences), tuple(self.notes), tuple(self.assumptions))

    # --- How texts are cut -----------------------------------------------------------------------

    def _cutting(self, given: Given) -> _Cutting:
        """What the name in the file stands for, or what a user says instead."""
        name = self.text(keys.PRE, b"").decode(errors="replace")
        known = KNOWN.get(name)
        if given.special_tokens is not None:
            advice = advised("; with_special_tokens() adds tokens", "")
            raise ValueError(
                f"{named('special_tokens')} is for files that do not say which there are, and a GGUF file "
                f"does{advice}"
            )
        form = self._form()
        if given.pattern is not None:
            splitter = splitter_of(given.pattern)
            if known is None:  # those that have the pattern say whether a chunk is taken whole
                rows = [row for row in KNOWN.values() if row.splitter == splitter]
                whole = bool(rows) and rows[0].whole
            else:
                whole = known.whole
            return _Cutting(splitter, whole, form or "", known is not None and known.adds_bos)
        if known is None:
            self._refuse_name(name)
            raise AssertionError
        if form is None and known.form:
            self.notes.append(
                f"{name} stands for models whose own tokenizers bring texts into {known.form}, and so does "
                f"this one; llama.cpp does not"
            )
        return _Cutting(known.splitter, known.whole, known.form if form is None else form, known.adds_bos)

    def _refuse_name(self, name: str) -> None:
        says = f"{keys.PRE} is {shown(name)}, and" if name else f"there is no {keys.PRE}, so"
        wrong(
            f"{says} cpbpe does not know for certain how the model cuts texts; if you do, say it: "
            f"{spelled('pattern', 'gpt2')}. {known_patterns()}. It knows the names {', '.join(KNOWN)}"
        )

    def _form(self) -> str | None:
        """The Unicode normal form that the file names; None if it says nothing about it."""
        if keys.FORM not in self.values:
            return None
        form = self.text(keys.FORM, b"").decode(errors="replace")
        if form and form not in FORMS:
            wrong(f"{keys.FORM} is {shown(form)}, which is none of {', '.join(FORMS)}")
        return form

    # --- Tokens ----------------------------------------------------------------------------------

    def _tokens(self) -> list[str]:
        """The tokens as the file spells them. Those without a text get one, as in llama.cpp."""
        found = _decoded(keys.TOKENS, self.texts())
        for id, text in enumerate(found):
            if not text:
                found[id] = f"[EMPTY_{id}]"
                self.notes.append(f"token {id} has no text; it is called '[EMPTY_{id}]'")
        if len(set(found)) < len(found):
            seen: dict[str, int] = {}
            for id, text in enumerate(found):
                other = seen.setdefault(text, id)
                if other != id:
                    wrong(f"{keys.TOKENS} has {shown(text)} twice, as {other} and as {id}")
        return found

    def _types(self, texts: list[str], pairs: list[Pair]) -> list[int]:
        """The type of each token; NORMAL for what merges make of letters, and nothing else."""
        given = self.types(len(texts))
        made = {left + right for left, right in pairs}
        letters = set(LETTERS.values())
        if given is None:
            self.assumptions.append(
                f"the file has no {keys.TYPES}: tokens that no merges make are taken for CONTROL"
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
        parts = {self.role(role, len(texts)) for role in ("bos", "eos", "pad", "eot")}
        for id in sorted(id for id in parts if id is not None):
            text = texts[id]
            if types[id] == PieceType.NORMAL and text not in made and text not in letters:
                types[id] = PieceType.CONTROL
                self.notes.append(f"{shown(text)}, which no merges make, is a special token: it has a part")
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
        """The tokens that no text becomes. `last` is the highest id of a piece.

        Converters fill ids that a model does not have with UNUSED tokens, and so these are left out; but an
        id below those of pieces must be something.
        """
        special, left_out = {}, 0
        for id, type in enumerate(types):
            if type in _IN_TEXT or (type == PieceType.UNUSED and id < last):
                special[texts[id]] = id
            elif type == PieceType.UNUSED:
                left_out += 1
        if left_out:
            self.notes.append(f"{left_out:,} UNUSED tokens are left out: ids that the model does not have")
        if PieceType.CONTROL in types or PieceType.UNKNOWN in types:
            self.notes.append(
                "llama.cpp finds special tokens in texts if it is told to, cpbpe those that allowed_special "
                "allows"
            )
        return special

    def _refuse_twins(self, pieces: dict[bytes, int], special: dict[str, int], last: int) -> None:
        """A special token may have the text of a piece if its id comes after all pieces."""
        for token, id in special.items():
            other = pieces.get(token.encode())
            if other is not None and id < last:
                wrong(
                    f"the tokens {other} and {id} have the same text, {shown(token)}: one is made of "
                    f"letters that stand for bytes, the other is looked for in texts, and its id is among "
                    f"those of pieces; cpbpe has no two pieces of one text"
                )

    # --- Merges ----------------------------------------------------------------------------------

    def _pairs(self) -> list[Pair]:
        """The merges, which are two tokens with a space between them."""
        lines = self.array(keys.MERGES, "array of string")
        if lines is None:
            wrong(f"it has no merges ({keys.MERGES}), which say what is merged first; convert the model anew")
        pairs: list[Pair] = []
        for place, line in enumerate(_decoded(keys.MERGES, lines)):
            left, _, right = line.partition(" ")
            if not left or not right or " " in right:
                wrong(f"{keys.MERGES}[{place}] is {shown(line)}, and must be two tokens with a space between")
            pairs.append((left, right))
        if len(set(pairs)) < len(pairs):
            seen: dict[Pair, int] = {}
            for place, pair in enumerate(pairs):
                other = seen.setdefault(pair, place)
                if other != place:
                    wrong(f"{keys.MERGES} has {shown(' '.join(pair))} twice, as {other} and as {place}")
        return pairs

    def _check_pairs(self, pairs: list[Pair], ordinary: dict[str, int]) -> None:
        """Refuse merges of, or to, what is no token of text."""
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

    # --- Settings --------------------------------------------------------------------------------

    def _roles(self, texts: list[str]) -> dict[str, str]:
        found = {role: self.role(role, len(texts)) for role in keys.ROLES}
        return {role: texts[id] for role, id in found.items() if id is not None}

    def _carried(self, roles: dict[str, str], cutting: _Cutting) -> Carried:
        asked = {
            "add_bos": self.flag(keys.ADD_BOS, cutting.adds_bos) and "bos" in roles,
            "add_eos": self.flag(keys.ADD_EOS, False) and "eos" in roles,
        }
        if self.flag(keys.ADD_PREFIX, False):
            self.notes.append("the file asks for a space in front of texts, which llama.cpp puts before none")
        return Carried({name: True for name, on in asked.items() if on}, roles, self.templates())


def _scores(ordinary: dict[str, int], pairs: list[Pair]) -> tuple[dict[str, float], list[Difference]]:
    """The scores of all tokens of text: their ids, if these are in the order of the merges, as nearly always.

    A token that no merges make may then have any score: two neighbours never become it, because at no time
    its text is two symbols, see `byte_pairs.scores_of`. The others are what is listed.
    """
    scores, differences = scores_of(ordinary, pairs)
    lowest = float(-256 - len(pairs))
    made = sorted(
        (token for token, score in scores.items() if len(token) > 1 and score > lowest),
        key=lambda token: -scores[token],
    )
    in_order = all(ordinary[first] < ordinary[second] for first, second in pairwise(made))
    if in_order and not differences and max(ordinary.values(), default=0) < _MOST_EXACT:
        return {token: float(-id) for token, id in ordinary.items()}, []
    return scores, differences


def _decoded(key: str, texts: list[bytes]) -> list[str]:
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError:
        for place, text in enumerate(texts):
            if text.decode(errors="replace").encode() != text:
                wrong(f"{key}[{place}] is {text[:40]!r}, which is not UTF-8")
        raise
