r"""How one text becomes ids in a byte-level model, step by step, for people to read.

`cpbpe.reference.steps` calls this for a `ByteLevel`, and for models whose alphabet is bytes. As in
`cpbpe/reference/replay.py`, all pairs are compared again after every merge.

>>> from cpbpe.reference.byte_level.patterns import PATTERNS
>>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 256, b" h": 257, b"ll": 258, b"hell": 259}
>>> for step in replay(ByteLevel(ranks, PATTERNS["gpt2"]), "hello he")():
...     print(step)
begin    h e l l o | ␣ h e
merge    [h e] l l o | ␣ h e he has the rank 256, the lowest; above it ll 258
merge    he [l l] o | ␣ h e ll has the rank 258, and there is no other pair
merge    [he ll] o | ␣ h e  hell has the rank 259, and there is no other pair
merge    hell o | ␣ [h e]   he has the rank 256, the lowest; above it ␣h 257
end      hell o | ␣ he      the ids are 259, 111, 32, 256
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.byte_level.encoding import BYTES, ByteLevel
from cpbpe.reference.byte_level.patterns import cut
from cpbpe.reference.encoding import Normalizer
from cpbpe.reference.step import MAX_SHOWN, Pair, Step
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import repair


@dataclass(frozen=True)
class ByteStep(Step):
    """One step from a text to its ids in a byte-level model. Its kind can also be "whole".

    The score of a pair is its rank with a minus sign, so that the best pair has the highest score, as in
    other models.
    """

    walls: tuple[int, ...] = ()
    """The places of the symbols that a chunk begins with, without the first one."""

    def between(self, place: int) -> str:
        """What is printed before the symbol at a place."""
        return " | " if place in self.walls else " "

    def explained(self) -> str:
        """The remark after the symbols."""
        made = " ".join(map(self.show, self.made))
        if self.kind == "merge" and self.score is not None:
            reason = "and there is no other pair"
            if self.others:
                pairs = [f"{self.show(pair.piece)} {0 - pair.score:.0f}" for pair in self.others[:MAX_SHOWN]]
                more = f" and {len(self.others) - MAX_SHOWN} more" if len(self.others) > MAX_SHOWN else ""
                tie = self.others[0].score == self.score
                best = "the lowest, and is the leftmost; then" if tie else "the lowest; above it"
                reason = f"{best} {', '.join(pairs)}{more}"
            return f"{made} has the rank {0 - self.score:.0f}, {reason}"
        if self.kind == "whole":
            return f"{made} is a piece, so the chunk is taken whole"
        return super().explained()


def replay(model: ByteLevel | ModelSpec, text: str | bytes) -> Callable[[], Iterator[Step]]:
    """A function that makes the steps, in the order in which they happen."""
    if isinstance(model, ByteLevel):
        tables = _Replay(model.ranks, model.ranks, model.whole, model.chunks)
        return partial(tables.steps, repair(text).decode() if isinstance(text, bytes) else text)
    ids = {text: id for text, id in model.ids.items() if model.pieces.types[id] == PieceType.NORMAL}
    scores = model.pieces.numbers()
    splitter = model.splitter
    normalized = Normalizer(model.normalizer, Finder([])).normalize(
        text.encode() if isinstance(text, str) else text
    )[0]
    tables = _Replay(
        ids,
        {text: -scores[id] for text, id in ids.items()},
        model.whole,
        lambda text: cut(splitter.pattern, text) if splitter else [text] if text else [],
    )
    return partial(tables.steps, normalized.decode())


class _Replay:
    """The tables of one model."""

    def __init__(
        self,
        ids: Mapping[bytes, int],
        ranks: Mapping[bytes, float],
        whole: bool,
        chunks: Callable[[str], list[str]],
    ):
        self._ids = ids
        self._ranks = ranks
        self._whole = whole
        self._chunks = chunks

    def steps(self, text: str) -> Iterator[Step]:
        """The steps from a text to its ids."""
        # 1. Cut the text into chunks, and these into bytes.
        chunks = [[BYTES[byte] for byte in chunk.encode()] for chunk in self._chunks(text)]
        yield self._step("begin", chunks, 0, 0, 0, ())

        # 2. One chunk after the other: take it whole if it is a piece, or merge the pair with the lowest
        #    rank, the leftmost of equals, until none is left.
        for number, chunk in enumerate(chunks):
            whole = b"".join(chunk)
            if self._whole and len(chunk) > 1 and whole in self._ids:
                yield self._step("whole", chunks, number, 0, len(chunk), (whole,))
                chunk[:] = [whole]
            while pairs := self._pairs(chunk):
                best, *others = pairs
                at = best.left
                step = self._step("merge", chunks, number, at, at + 2, (best.piece,), best.score, others)
                yield step
                chunk[at : at + 2] = [best.piece]

        # 3. Each symbol has an id.
        ids = tuple(self._ids[symbol] for chunk in chunks for symbol in chunk)
        yield self._step("end", chunks, 0, 0, 0, (), ids=ids)

    def _pairs(self, symbols: list[bytes]) -> list[Pair]:
        """All pairs of a chunk that could merge, the next one to merge first."""
        joined = [left + right for left, right in pairwise(symbols)]
        pairs = [
            Pair(at, piece, -self._ranks[piece]) for at, piece in enumerate(joined) if piece in self._ranks
        ]
        return sorted(pairs, key=lambda pair: (-pair.score, pair.left))

    def _step(
        self,
        kind: str,
        chunks: list[list[bytes]],
        number: int,
        begin: int,
        end: int,
        made: tuple[bytes, ...],
        score: float | None = None,
        others: list[Pair] | None = None,
        ids: tuple[int, ...] = (),
    ) -> ByteStep:
        """A step that changes the symbols from `begin` to `end` of a chunk."""
        places = [0]
        for chunk in chunks:
            places.append(places[-1] + len(chunk))
        first = places[number]
        return ByteStep(
            kind,
            tuple(symbol for chunk in chunks for symbol in chunk),
            first + begin,
            first + end,
            made,
            score,
            tuple(pair._replace(left=first + pair.left) for pair in others or ()),
            ids,
            tuple(places[1:-1]),
        )
