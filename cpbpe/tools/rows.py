"""The vocabulary of a model while it is edited: rows that are added, removed and moved, and new merges.

Two facts about BPE say what such changes do to texts. Merging always takes the best pair first.

**Pieces below all others leave the rest alone.** Give new pieces lower scores than every old one. Then a new
piece merges only when no old one can, and only where a text holds it letter by letter. So a text that holds
none of the new pieces has the same tokens as before, and in any other text, each token is an old one, or
several old ones joined. (Read backwards, this is what removing the lowest pieces does.)

**A piece that is not made leaves no trace.** Merging depends on a piece only at the moment when it is made.
So removing pieces changes nothing about texts in which none of them is made, not even on the way to a longer
piece. `cpbpe.model.pair_ranks` shows that the pieces on the way to a longer one are the same in every text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.lint.merging import Merging
from cpbpe.lint.sources import Undecided
from cpbpe.model.pair_ranks import Pair, by_text, merged, pairs_by_text
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.text.drawn import quoted
from cpbpe.text.utf8 import SPACE, from_letters, is_valid_utf8, text_of, to_letters
from cpbpe.tokenizer.facts import ModelFacts

Places = NDArray[np.int64]

_ROLES = ("unk", "bos", "eos", "pad")


class Rows:
    """The pieces and added tokens of a model, in lists that change."""

    def __init__(self, spec: ModelSpec):
        self._spec = spec
        self.texts = list(spec.pieces.texts)
        """The texts of the pieces, by id."""
        self.scores = list(spec.pieces.numbers())
        """Their scores."""
        self.types = bytearray(spec.pieces.types)
        """Their types."""
        self.added = {id: token for token, id in spec.added}
        """The added tokens by their ids."""
        self.normalizer = spec.normalizer
        """How text is rewritten."""
        self._flags = dict(spec.carried.tokens)
        self._roles = dict(spec.carried.roles)
        self._special = dict(zip(_ROLES, spec.special_pieces, strict=True))
        self._trainer = dict(spec.settings.trainer)
        self._origins = list(range(len(self.texts)))
        self._added_origins = dict(spec.added)
        self._falling = _is_falling(self.scores, self.types, spec.alphabet == "bytes")

    def append(self, text: bytes, score: float, type: PieceType = PieceType.NORMAL) -> None:
        """Add a piece with the next free id. An added token that has this id becomes a CONTROL piece."""
        self.adopt()
        self._put(text, score, type, -1)

    def adopt(self, wanted: bytes | None = None) -> bool:
        """Make CONTROL pieces of the added tokens that have the next ids. Whether one of them has this text.

        (Such a piece keeps its id and is decoded to its text as before, because it has an entry in
        `Carried.tokens`.)
        """
        found = False
        if wanted is None or wanted in self.added.values():
            while (token := self.added.pop(len(self.texts), None)) is not None:
                self._flags.setdefault(text_of(token), ())
                self._put(token, 0.0, PieceType.CONTROL, self._added_origins[token])
                found |= token == wanted
        return found

    def _put(self, text: bytes, score: float, type: PieceType, origin: int) -> None:
        self.texts.append(text)
        self.scores.append(score)
        self.types.append(type)
        self._origins.append(origin)

    def keep(self, kept: Sequence[bool]) -> None:
        """Remove the pieces for which this is false. Those after them, and added tokens, get lower ids."""
        ids = [id for id, keep in enumerate(kept) if keep]
        gone = len(self.texts) - len(ids)
        self.order(ids)
        self.added = {id - gone: token for id, token in self.added.items()}

    def order(self, ids: Sequence[int]) -> None:
        """Put the pieces with these ids in this order, and leave out the others.

        Scores that fall by one from piece to piece, as training makes them, do so afterwards as well.
        """
        self.texts = [self.texts[id] for id in ids]
        self.scores = [self.scores[id] for id in ids]
        self.types = bytearray(self.types[id] for id in ids)
        self._origins = [self._origins[id] for id in ids]
        if self._falling and all(a > b for a, b in pairwise(self._normal_scores())):
            self.scores = _falling(self.types, self._spec.alphabet == "bytes")

    def _normal_scores(self) -> list[float]:
        rows = zip(self.scores, self.types, strict=True)
        return [score for score, type in rows if type == PieceType.NORMAL]

    def rename(self, names: Mapping[str, str]) -> None:
        """Use these names instead of others in everything that names pieces."""
        coded = {before.encode(): after.encode() for before, after in names.items()}
        self._special = {role: coded.get(name, name) for role, name in self._special.items()}
        self._roles = {role: names.get(name, name) for role, name in self._roles.items()}
        self._flags = {names.get(name, name): flags for name, flags in self._flags.items()}
        for field in ("control_symbols", "user_defined_symbols"):
            if field in self._trainer:
                self._trainer[field] = [names.get(name, name) for name in self._trainer[field]]

    def set_role(self, role: str, name: str) -> None:
        """Say which piece is unk, bos, eos or pad."""
        self._special[role] = name.encode()
        if role in self._roles:
            self._roles[role] = name

    def origins(self) -> Places:
        """For each id, added tokens included, the id before the edit; -1 for a new piece or an unused id."""
        size = max([len(self.texts), *(id + 1 for id in self.added)])
        found = np.full(size, -1)
        found[: len(self.texts)] = self._origins
        for id, token in self.added.items():
            found[id] = self._added_origins[token]
        return found

    def scores_below(self) -> Iterator[float]:
        """Scores that are lower than all others: each is one less than the one before, if float32 can say so.

        Without a finite lowest score there are none.
        """
        lowest = np.float32(min(self.scores, default=0.0))
        if not np.isfinite(self.scores).all():
            raise ModelError(
                "a piece has a score that is infinite or not a number, so no score is below all others; "
                "tok.lint() names it"
            )
        while True:
            before, lowest = lowest, lowest - np.float32(1)
            if not lowest < before:
                lowest = np.nextafter(before, np.float32(-np.inf))
            yield float(lowest)

    def spec(self) -> ModelSpec:
        """The model with these rows."""
        old, trainer, special = self._spec, dict(self._trainer), self._special
        if "vocab_size" in trainer:
            trainer["vocab_size"] = len(self.texts)
        places = {text: id for id, text in enumerate(self.texts)}
        for role, name in special.items():
            if f"{role}_id" in trainer:
                trainer[f"{role}_id"] = places.get(name, -1)
            if f"{role}_piece" in trainer:
                trainer[f"{role}_piece"] = text_of(name)
        return replace(
            old,
            pieces=Pieces.of_lists(self.texts, self.scores, self.types),
            special_pieces=(special["unk"], special["bos"], special["eos"], special["pad"]),
            added=tuple((token, id) for id, token in sorted(self.added.items())),
            normalizer=self.normalizer,
            settings=replace(old.settings, trainer=trainer),
            carried=replace(old.carried, tokens=self._flags, roles=self._roles),
            file=None,
        )


def _falling(types: bytes | bytearray, by_id: bool) -> list[float]:
    """The scores that training gives: 0, -1, -2 and so on, or the negative ids; 0 for special pieces."""
    normal = [type == PieceType.NORMAL for type in types]
    places = range(len(types)) if by_id else accumulate(normal, initial=0)
    first = 0.0 if by_id else -0.0  # (as the first piece has it)
    return [first - place if is_normal else 0.0 for place, is_normal in zip(places, normal, strict=False)]


def _is_falling(scores: Sequence[float], types: bytes | bytearray, by_id: bool) -> bool:
    made = _falling(types, by_id)
    rows = zip(scores, made, types, strict=True)
    # (UNUSED pieces have places among the others, which training does not give them.)
    return PieceType.UNUSED not in types and all(
        score == own for score, own, type in rows if type == PieceType.NORMAL
    )


# --- Pieces that no text has ----------------------------------------------------------------------


def never_occurs(facts: ModelFacts, piece: bytes) -> str:
    """Why a piece is in no text that is merged, because the model rewrites it first; "" if it may be."""
    characters = facts.full_spec.alphabet == "characters"
    engine = facts.engine.variant(prefix=False)
    for part in piece.split(SPACE) if characters else [piece]:
        left = engine.normalize(part) if is_valid_utf8(part) else part
        # (Unicode normal forms, which byte-level models have, make no text that they would rewrite.)
        if left != part and not (characters and _is_made_of(facts, part)):
            name, new = quoted(text_of(piece)), quoted(text_of(left))
            return f"the piece {name} never occurs: the model rewrites it to {new} first; give that"
    return ""


def _is_made_of(facts: ModelFacts, part: bytes) -> bool:
    """Whether the normalizer may make this of other text, although it rewrites it."""
    try:
        return any(True for _ in facts.sources.of(part))
    except Undecided:
        return True


def never_found(spec: ModelSpec, piece: bytes) -> str:
    """Why a user-defined piece is never found, "" if it may be: rules leave it alone, but spaces become ▁."""
    if b" " not in piece or not spec.normalizer.escape_whitespaces:
        return ""
    name, new = quoted(text_of(piece)), quoted(text_of(piece.replace(b" ", SPACE)))
    return f"the piece {name} never occurs: the model rewrites it to {new} first; give that"


# --- How pieces are made --------------------------------------------------------------------------


class Ways:
    """By which merges the pieces of a model are made, and by which a new one could be."""

    def __init__(self, spec: ModelSpec):
        self._byte_level = spec.alphabet == "bytes"
        self._merging = Merging(spec)
        self._ranks: dict[str, float] = {
            self.spelled(text): rank
            for text, rank in self._merging.ranks.items()
            if self._byte_level or is_valid_utf8(text)
        }
        self._last = max(self._ranks.values(), default=0)
        self.taken = {**spec.ids, **dict(spec.added)}
        """The ids of all pieces and added tokens, whose texts no new piece can have."""

    def spelled(self, text: bytes) -> str:
        """A piece with a character for each of the symbols that texts begin as."""
        return to_letters(text) if self._byte_level else text_of(text)

    def bytes_of(self, text: str) -> bytes:
        """The piece that `spelled` spells so."""
        return from_letters(text) if self._byte_level else text.encode()

    def symbols(self, text: bytes) -> list[str]:
        """What a text becomes, spelled."""
        return merged(self.spelled(text), by_text(self._ranks))

    def found_first(self, text: bytes) -> bytes | None:
        """A user-defined piece in a text, which is found before anything merges; None if there is none."""
        symbols = self._merging.symbols(text)
        return next((text[s.begin : s.end] for s in symbols if s.is_user_defined), None)

    @kept
    def pairs(self) -> dict[str, Pair]:
        """The pair that makes each piece."""
        return pairs_by_text(self._ranks)

    def unmade(self) -> list[bytes]:
        """The pieces that nothing makes."""
        return [self.bytes_of(piece) for piece in self._ranks if piece not in self.pairs]

    def needed(self, texts: Iterable[bytes]) -> set[bytes]:
        """These pieces, and all that are made on the way to them."""
        found: set[str] = set()
        waiting = [self.spelled(text) for text in texts]
        while waiting:
            piece = waiting.pop()
            if piece not in found:
                found.add(piece)
                waiting += self.pairs.get(piece, ())
        return set(map(self.bytes_of, found))

    def extend(self, text: bytes, wanted: Callable[[bytes], bool] = bool) -> list[bytes]:
        """Make a piece of what its text becomes now: the pieces to add, the last of which is `text`.

        The first two symbols become a piece, that with the third one, and so on. This always makes `text`:
        whatever else merges, the first symbol is a beginning of the text, the next one continues it, and
        every longer beginning is a piece. It begins with the first symbol that is `wanted`, if there is one,
        so that what is true of a part of a piece, such as a character in it, is true of all new pieces. It is
        an error if the text of a new piece is taken, or if the piece is not wanted.

        The pieces are ranked below all others from now on, so later calls build on them.
        """
        symbols = self.symbols(text)
        begin = next((at for at, symbol in enumerate(symbols) if wanted(self.bytes_of(symbol))), 0)
        end = begin + 1
        new: list[str] = []
        while end - begin < len(symbols):
            begin, end = (begin, end + 1) if end < len(symbols) else (begin - 1, end)
            piece = "".join(symbols[begin:end])
            if piece not in self._ranks:
                self._last += 1
                self._ranks[piece] = self._last
                new.append(piece)
        made = list(map(self.bytes_of, new))
        left = self.symbols(text)
        known = next((piece for piece in made if piece in self.taken), None)
        other = next((piece for piece in made if not wanted(piece)), None)
        if len(left) == 1 and known is None and other is None:
            return made
        for piece in new:
            del self._ranks[piece]
        if known is not None:
            raise ModelError(
                f"{quoted(text_of(text))} would be made from {quoted(text_of(known))}, which is a piece of "
                f"another kind; choose another spelling"
            )
        if other is not None:
            raise ModelError(f"{quoted(text_of(text))} would be made from {quoted(text_of(other))}")
        shown = " ".join(quoted(text_of(self.bytes_of(symbol))) for symbol in left)
        raise ModelError(f"{quoted(text_of(text))} cannot be made: its symbols merge into {shown} first")
