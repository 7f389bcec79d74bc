"""How one text becomes ids, step by step: what `ReferenceEngine.encode` does, for people to read.

Nothing is cut, remembered or kept in a heap here. After every merge all pairs are compared again. This is
what "merge the best pair, again and again" means; the engines avoid that work.

>>> from cpbpe.model.spec import Piece, Pieces
>>> texts = ["ab", "ra", "abra", "▁", "a", "b", "r"]
>>> toy = ModelSpec(Pieces.of(
...     [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
...     + [Piece(text.encode(), -rank) for rank, text in enumerate(texts)]
... ))
>>> for step in steps(toy, "abra!"):
...     print(step)
begin    ▁ a b r a !
merge    ▁ [a b] r a !      ab has the score 0.0, the highest; below it ra -1.0
merge    ▁ ab [r a] !       ra has the score -1.0, and there is no other pair
merge    ▁ [ab ra] !        abra has the score -2.0, and there is no other pair
unknown  ▁ abra [!]         ! is not a piece; it becomes <unk>
end      ▁ abra <unk>       the ids are 4, 3, 0
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.byte_level import replay as byte_level
from cpbpe.reference.byte_level.encoding import ByteLevel
from cpbpe.reference.encoding import (
    BYTE_PIECES,
    MAX_SPLIT_DEPTH,
    MAX_USER_DEFINED_MATCHES,
    MERGEABLE,
    Normalizer,
    score_key,
)
from cpbpe.reference.sequence import Steps
from cpbpe.reference.step import Pair, Step
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_length


class _HasSpec(Protocol):
    @property
    def spec(self) -> ModelSpec: ...


def steps(model: ModelSpec | ByteLevel | _HasSpec, text: str | bytes) -> Steps:
    """The steps from a text to its ids, to iterate over or to look at; the last step has the ids.

    `model` is a `ModelSpec`, a tokenizer, or a `ByteLevel`. The time is quadratic in the length of the text.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"steps() takes str or bytes, not {type(text).__name__}")
    if isinstance(model, ByteLevel):
        return Steps(byte_level.replay(model, text), _size(text))
    spec = model if isinstance(model, ModelSpec) else getattr(model, "spec", None)
    if not isinstance(spec, ModelSpec):
        raise TypeError(
            f"steps() takes a ModelSpec or a tokenizer, not {type(model).__name__}; "
            f"cpbpe.load(path) loads one"
        )
    if spec.alphabet == "bytes":
        return Steps(byte_level.replay(spec, text), _size(text))
    tables, data = _Replay(spec), text.encode() if isinstance(text, str) else text
    return Steps(partial(tables.steps, data), len(data))


def _size(text: str | bytes) -> int:
    return len(text.encode() if isinstance(text, str) else text)


class _Replay:
    """The tables of one model."""

    def __init__(self, spec: ModelSpec):
        self._spec = spec
        self._ids = spec.ids
        self._scores = spec.pieces.numbers()
        self._types = spec.pieces.types
        user_defined = (piece for piece, id in spec.ids.items() if self._types[id] == PieceType.USER_DEFINED)
        self._user_defined = Finder(user_defined, MAX_USER_DEFINED_MATCHES)
        self._normalizer = Normalizer(spec.normalizer, self._user_defined)

    def steps(self, text: bytes) -> Iterator[Step]:
        """The steps, in the order in which they happen."""
        # 1. The normalized text as single characters. A user-defined piece is one symbol, and never merges.
        symbols, frozen = self._symbols(self._normalizer.normalize(text)[0])
        yield Step("begin", tuple(symbols), 0, 0, ())

        # 2. Merge the pair with the highest score, the leftmost of equals, until none is left. For each
        #    UNUSED piece remember the last pair that was seen to form it.
        seen: dict[bytes, tuple[bytes, bytes]] = {}
        self._look_at(symbols, frozen, range(len(symbols) - 1), seen)
        while pairs := self._pairs(symbols, frozen):
            best, *others = pairs
            at = best.left
            yield Step("merge", tuple(symbols), at, at + 2, (best.piece,), best.score, tuple(others))
            symbols[at : at + 2] = [best.piece]
            del frozen[at + 1]
            self._look_at(symbols, frozen, (at - 1, at), seen)

        # 3. Take UNUSED pieces apart.
        unknown = -1 if self._spec.unknown_id is None else self._spec.unknown_id
        ids: list[int] = []
        while len(ids) < len(symbols):
            at = len(ids)
            split = self._split(symbols[at], seen, unknown)
            parts = [part for part, _ in split]
            if len(parts) > 1:
                yield Step("split", tuple(symbols), at, at + 1, tuple(parts))
            symbols[at : at + 1] = parts
            ids += [id for _, id in split]

        # 4. A symbol that is not a piece becomes bytes. Without byte_fallback a run of such symbols becomes
        #    the UNKNOWN piece.
        at = 0
        while at < len(symbols):
            end = at + 1
            if ids[at] == unknown:
                while not self._spec.byte_fallback and end < len(symbols) and ids[end] == unknown:
                    end += 1
                made, made_ids = self._unknown(b"".join(symbols[at:end]), unknown)
                yield Step("unknown", tuple(symbols), at, end, tuple(made))
                symbols[at:end], ids[at:end] = made, made_ids
                end = at + len(made)
            at = end
        yield Step("end", tuple(symbols), 0, 0, (), ids=tuple(ids))

    def _symbols(self, text: bytes) -> tuple[list[bytes], list[bool]]:
        """The symbols that a normalized text begins as, and whether each is frozen."""
        symbols: list[bytes] = []
        frozen: list[bool] = []
        at = 0
        while at < len(text):
            length = self._user_defined.longest(text, at)
            frozen.append(bool(length))
            symbols.append(text[at : at + (length or character_length(text, at))])
            at += len(symbols[-1])
        return symbols, frozen

    def _is(self, symbol: bytes, types: tuple[PieceType, ...]) -> bool:
        """Whether a symbol is a piece of one of some types."""
        id = self._ids.get(symbol)
        return id is not None and self._types[id] in types

    def _pairs(self, symbols: list[bytes], frozen: list[bool]) -> list[Pair]:
        """All pairs that could merge, the next one to merge first."""
        pairs = []
        for at in range(len(symbols) - 1):
            joined = symbols[at] + symbols[at + 1]
            if not frozen[at] and not frozen[at + 1] and self._is(joined, MERGEABLE):
                pairs.append(Pair(at, joined, self._scores[self._ids[joined]]))
        return sorted(pairs, key=lambda pair: (-score_key(pair.score), pair.left))

    def _look_at(
        self,
        symbols: list[bytes],
        frozen: list[bool],
        places: range | tuple[int, int],
        seen: dict[bytes, tuple[bytes, bytes]],
    ) -> None:
        """Of pairs that have just become neighbours, remember those that would form an UNUSED piece."""
        for at in places:
            if 0 <= at < len(symbols) - 1 and not frozen[at] and not frozen[at + 1]:
                joined = symbols[at] + symbols[at + 1]
                if self._is(joined, (PieceType.UNUSED,)):
                    seen[joined] = symbols[at], symbols[at + 1]

    def _split(
        self, symbol: bytes, seen: dict[bytes, tuple[bytes, bytes]], unknown: int, depth: int = 0
    ) -> list[tuple[bytes, int]]:
        """A symbol with its id; or, if it is UNUSED, the pair that was seen to form it, split again."""
        if depth > MAX_SPLIT_DEPTH:
            return [(symbol, self._ids.get(symbol, unknown))]
        if symbol in seen:
            return [part for half in seen[symbol] for part in self._split(half, seen, unknown, depth + 1)]
        is_piece = self._is(symbol, (PieceType.NORMAL, PieceType.USER_DEFINED))
        return [(symbol, self._ids[symbol] if is_piece else unknown)]

    def _unknown(self, symbol: bytes, unknown: int) -> tuple[list[bytes], list[int]]:
        """The pieces for an unknown symbol, and their ids."""
        if not self._spec.byte_fallback:
            return [self._spec.pieces.texts[unknown]], [unknown]
        made = [BYTE_PIECES[byte] for byte in symbol]
        return made, [self._ids[piece] for piece in made]
