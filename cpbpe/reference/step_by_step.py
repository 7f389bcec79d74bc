r"""How one text becomes ids, step by step, for people to read: as lines, as a tree, and as HTML.

The pieces and scores are those of a `ReferenceEngine` or a `ByteLevel`, but this file needs no cuts between
characters, no cache and no heap: after every merge it compares all pairs again. That is what "merge the best
pair, again and again" means literally; the engines avoid that work.

>>> from cpbpe.model.spec import ModelSpec, Piece, PieceType, Pieces
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
>>> print(steps(toy, "abra").tree())
▁        4
abra     3
├─ ab    merge 1
│  ├─ a
│  └─ b
└─ ra    merge 2
   ├─ r
   └─ a

Byte-level models cut a text first, and their pieces have ranks instead of scores:

>>> from cpbpe.reference.byte_level import PATTERNS
>>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 256, b" h": 257, b"ll": 258, b"hell": 259}
>>> for step in steps(ByteLevel(ranks, PATTERNS["gpt2"]), "hello he"):
...     print(step)
begin    h e l l o | ␣ h e
merge    [h e] l l o | ␣ h e he has the rank 256, the lowest; above it ll 258
merge    he [l l] o | ␣ h e ll has the rank 258, and there is no other pair
merge    [he ll] o | ␣ h e  hell has the rank 259, and there is no other pair
merge    hell o | ␣ [h e]   he has the rank 256, the lowest; above it ␣h 257
end      hell o | ␣ he      the ids are 259, 111, 32, 256
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

from cpbpe.model.spec import ModelSpec
from cpbpe.reference.byte_level.encoding import BYTES, ByteLevel, ByteLevelEngine
from cpbpe.reference.encoding import BYTE_PIECES, ReferenceEngine, Splits
from cpbpe.text.drawn import (
    FONT,
    HTML_COLOURS,
    MORE,
    chip,
    direction,
    html_table,
    in_html,
    isolated,
    parts_of,
    spelled,
    width,
)
from cpbpe.text.utf8 import repair, text_of

MAX_BYTES = 400
"""A longer text is not drawn step by step: every step shows the whole text."""
MAX_STEPS = 100
"""This many steps are drawn, of a text that has more."""
MAX_SHOWN = 3
"""How many of the pairs that were not chosen are printed."""
_COLUMN = 28
"""Where the remarks of printed steps begin, if there is room."""


# --- One step -------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two neighbouring symbols whose joined text is a piece."""

    left: int
    """The place of the left symbol."""
    piece: bytes
    """The piece that they would become."""
    score: float
    """Its score. In byte-level models it is the rank with a minus sign, so that the best pair has the
    highest."""


@dataclass(frozen=True)
class Step:
    """One step from a text to its ids."""

    kind: str
    """"begin", "whole", "merge", "split", "unknown" or "end"."""
    symbols: tuple[bytes, ...]
    """The symbols before this step."""
    begin: int
    """The place of the first symbol that it changes."""
    end: int
    """The place after the last one."""
    made: tuple[bytes, ...]
    """The symbols that replace them."""
    score: float | None = None
    """The score of the piece that a merge forms."""
    others: tuple[Pair, ...] = ()
    """The pairs that a merge was preferred to, the best first."""
    ids: tuple[int, ...] = ()
    """The ids of the symbols, at the end."""
    walls: tuple[int, ...] = ()
    """The place of the first symbol of every chunk but the first."""
    by_rank: bool = False
    """Whether pairs have ranks, as in byte-level models."""

    @property
    def after(self) -> tuple[bytes, ...]:
        """The symbols after this step."""
        return (*self.symbols[: self.begin], *self.made, *self.symbols[self.end :])

    def __str__(self) -> str:
        line = ""
        for place, symbol in enumerate(self.symbols):
            opened = "[" if place == self.begin < self.end else ""
            closed = "]" if self.begin < self.end == place + 1 else ""
            line += f"{self.between(place)}{opened}{self.show(symbol)}{closed}"
        line = f"{self.kind:<8}{line}"
        remark = self.explained()
        return f"{line:<{_COLUMN - 1}} {remark}" if remark else line

    def _repr_html_(self) -> str:
        """The step, for notebooks."""
        return _table([self], [""])

    @staticmethod
    def show(symbol: bytes) -> str:
        """A symbol as it is printed, with signs for invisible characters."""
        return isolated(spelled(symbol))

    def between(self, place: int) -> str:
        """What is printed before the symbol at a place."""
        return " | " if place in self.walls else " "

    def explained(self) -> str:
        """The remark after the symbols."""
        made = " ".join(map(self.show, self.made))
        old = "".join(map(self.show, self.symbols[self.begin : self.end]))
        if self.kind == "merge" and self.score is not None:
            name = "rank" if self.by_rank else "score"
            return f"{made} has the {name} {self._number(self.score)}, {self._compared()}"
        if self.kind == "whole":
            return f"{made} is a piece, so the chunk is taken whole"
        if self.kind == "split":
            return f"{old} is UNUSED, and taken apart again: {made}"
        if self.kind == "unknown":
            return f"{old} is not a piece; it becomes {made}"
        if self.kind == "end":
            return f"the ids are {', '.join(map(str, self.ids))}"
        return ""

    def _number(self, score: float) -> str:
        return f"{0 - score:.0f}" if self.by_rank else str(score)

    def _compared(self) -> str:
        if not self.others:
            return "and there is no other pair"
        listed = [f"{self.show(pair.piece)} {self._number(pair.score)}" for pair in self.others[:MAX_SHOWN]]
        more = len(self.others) - len(listed)
        best, next_ones = ("the lowest", "above it") if self.by_rank else ("the highest", "below it")
        if self.others[0].score == self.score:
            best, next_ones = f"{best}, and is the leftmost", "then"
        return f"{best}; {next_ones} {', '.join(listed)}{f' and {more} more' if more else ''}"


# --- All steps ------------------------------------------------------------------------------------


class _HasSpec(Protocol):
    @property
    def spec(self) -> ModelSpec: ...


def steps(model: ModelSpec | ByteLevel | _HasSpec, text: str | bytes, *, whole: bool = True) -> Steps:
    """The steps from a text to its ids, to iterate over or to look at; the last step has the ids.

    `model` is a `ModelSpec`, a tokenizer, or a `ByteLevel`. Some models take a chunk whole if it is a piece:
    with ``whole=False`` it is merged all the same, to see how it is made. The time is quadratic in the length
    of the text.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"steps() takes str or bytes, not {type(text).__name__}")
    data = text.encode() if isinstance(text, str) else text
    if isinstance(model, ByteLevel):
        return Steps(_ByteLevelReplay(model, data, whole), len(data))
    spec = model if isinstance(model, ModelSpec) else getattr(model, "spec", None)
    if not isinstance(spec, ModelSpec):
        raise TypeError(
            f"steps() takes a ModelSpec or a tokenizer, not {type(model).__name__}; "
            f"cpbpe.load(path) loads one"
        )
    return Steps(_Replay(spec, data, whole), len(data))


class _Replay:
    """The steps from a text to its ids with an engine's tables."""

    def __init__(self, spec: ModelSpec, text: bytes, whole: bool):
        self._engine = ByteLevelEngine(spec) if spec.alphabet == "bytes" else ReferenceEngine(spec)
        self._text, self._whole = text, whole
        self._spec, self._ids, self._fallback = spec, spec.ids, spec.byte_fallback
        self._scores = spec.pieces.numbers()
        self._unknown = -1 if spec.unknown_id is None else spec.unknown_id
        self._by_rank = spec.alphabet == "bytes"

    def chunks(self) -> list[list[bytes]]:
        """The symbols that the text starts as, in chunks that are merged by themselves."""
        return self._engine.symbols(self._engine.normalize(self._text))

    def is_whole(self, chunk: bytes) -> bool:
        """Whether a chunk is taken whole."""
        return self._whole and self._engine.is_whole(chunk)

    def join(self, left: bytes, right: bytes, splits: Splits) -> tuple[int, bytes] | None:
        """The rank of what two symbols become, and that symbol; None if it is not a piece."""
        return self._engine.join(left, right, splits)

    def score(self, piece: bytes) -> float:
        """The score of a piece."""
        return self._scores[self._ids[piece]]

    def split(self, symbol: bytes, splits: Splits) -> list[tuple[bytes, int]]:
        """A symbol with its id; or, if it is UNUSED, the symbols that it is split into, with theirs."""
        return list(self._engine.split(symbol, splits))

    def __call__(self) -> Iterator[Step]:
        """The steps, in the order in which they happen."""
        # 1. The text as symbols. A user-defined piece is one symbol, and never merges. Byte-level models cut
        #    the text into chunks first.
        chunks = self.chunks()
        yield self._step("begin", chunks)

        # 2. One chunk after another: take it whole if the model does that, or merge the best pair, the
        #    leftmost of equals, until none is left. For each UNUSED piece, record a pair that makes it.
        splits: Splits = {}
        for number, chunk in enumerate(chunks):
            if len(chunk) > 1 and self.is_whole(whole := b"".join(chunk)):
                yield self._step("whole", chunks, number, (0, len(chunk)), (whole,))
                chunk[:] = [whole]
            while pairs := self._pairs(chunk, splits):
                best, *others = pairs
                at = best.left
                yield self._step("merge", chunks, number, (at, at + 2), (best.piece,), best.score, others)
                chunk[at : at + 2] = [best.piece]

        # 3. Split UNUSED pieces.
        ids: list[int] = []
        for number, chunk in enumerate(chunks):
            at = 0
            while at < len(chunk):
                parts = self.split(chunk[at], splits)
                made = tuple(part for part, _ in parts)
                if len(made) > 1:
                    yield self._step("split", chunks, number, (at, at + 1), made)
                chunk[at : at + 1] = made
                ids += [id for _, id in parts]
                at += len(made)

        # 4. A symbol that is not a piece becomes bytes. Without byte_fallback a run of such symbols becomes
        #    the UNKNOWN piece. (All of this is in the first chunk: byte-level models have no such symbols,
        #    and other models have only one chunk.)
        at = 0
        while at < len(ids):
            end = at + 1
            if ids[at] == self._unknown:
                chunk = chunks[0]
                while not self._fallback and end < len(ids) and ids[end] == self._unknown:
                    end += 1
                pieces, piece_ids = [self._spec.pieces.texts[self._unknown]], [self._unknown]
                if self._fallback:
                    pieces = [BYTE_PIECES[byte] for byte in chunk[at]]
                    piece_ids = [self._ids[piece] for piece in pieces]
                yield self._step("unknown", chunks, 0, (at, end), tuple(pieces))
                chunk[at:end], ids[at:end] = pieces, piece_ids
                end = at + len(pieces)
            at = end
        yield self._step("end", chunks, ids=tuple(ids))

    def _pairs(self, symbols: list[bytes], splits: Splits) -> list[Pair]:
        """All pairs of a chunk that could merge, the next one to merge first."""
        ranked = []
        for at, (left, right) in enumerate(pairwise(symbols)):
            joined = self.join(left, right, splits)
            if joined is not None:
                ranked.append((joined[0], Pair(at, joined[1], self.score(joined[1]))))
        return [pair for _, pair in sorted(ranked, key=lambda row: (row[0], row[1].left))]

    def _step(
        self,
        kind: str,
        chunks: list[list[bytes]],
        number: int = 0,
        changed: tuple[int, int] = (0, 0),
        made: tuple[bytes, ...] = (),
        score: float | None = None,
        others: Sequence[Pair] = (),
        ids: tuple[int, ...] = (),
    ) -> Step:
        """A step that changes some symbols of a chunk."""
        places = list(accumulate(map(len, chunks), initial=0))
        first = places[number]
        return Step(
            kind,
            tuple(bytes(symbol) for chunk in chunks for symbol in chunk),
            first + changed[0],
            first + changed[1],
            made,
            score,
            tuple(pair._replace(left=first + pair.left) for pair in others),
            ids,
            tuple(places[1:-1]),
            self._by_rank,
        )


class _ByteLevelReplay(_Replay):
    """The same for a `ByteLevel`, whose ids are its ranks."""

    _by_rank, _fallback, _unknown = True, False, -1

    def __init__(self, model: ByteLevel, text: bytes, whole: bool):
        self._model = model
        self._text, self._whole = text, whole

    def chunks(self) -> list[list[bytes]]:
        texts = self._model.chunks(repair(self._text).decode())
        return [[BYTES[byte] for byte in text.encode()] for text in texts]

    def is_whole(self, chunk: bytes) -> bool:
        return self._whole and self._model.whole and chunk in self._model.ranks

    def join(self, left: bytes, right: bytes, splits: Splits) -> tuple[int, bytes] | None:
        return self._model.join(left, right)

    def score(self, piece: bytes) -> float:
        return -self._model.ranks[piece]

    def split(self, symbol: bytes, splits: Splits) -> list[tuple[bytes, int]]:
        return [(symbol, self._model.ranks[symbol])]


class Steps:
    """The steps from a text to its ids, computed anew for each iteration.

    (They are not stored: each step holds all symbols, so together they would take quadratic memory.)
    """

    def __init__(self, make: Callable[[], Iterator[Step]], size: int):
        self._make = make
        self._size = size

    def __iter__(self) -> Iterator[Step]:
        return self._make()

    def __str__(self) -> str:
        steps, more = self.drawn()
        if not steps:
            return more
        lines = [str(step) for step in steps]
        return "\n".join([*lines[:-1], *([more] if more else []), lines[-1]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The steps and the tree, for notebooks."""
        steps, more = self.drawn()
        if not steps:
            return f"<div>{escape(more)}</div>"
        if more:
            table = _table(steps[:-1], list(map(str, range(len(steps) - 1))))
            table += f"<div>{escape(more)}</div>" + _table(steps[-1:], [""])
        else:
            table = _table(steps, list(map(str, range(len(steps)))))
        roots = zip(roots_of(self), steps[-1].ids, strict=True)
        trees = "".join(_tree(root, str(id)) for root, id in roots)
        if not trees:
            return f"<div>{table}</div>"
        style = f"{FONT};overflow-x:auto;white-space:nowrap;margin-top:.7em"
        role = 'role="group" aria-label="how the symbols merged, and the ids"'
        return f'<div>{table}<div {role} dir="{_direction_of(steps[0])}" style="{style}">{trees}</div></div>'

    def tree(self) -> str:
        """Each final symbol with its id, and below it the symbols that merged into it, as lines."""
        if self._size > MAX_BYTES:
            return self._too_long()
        steps = list(self)
        return "\n".join(tree_lines(roots_of(steps), steps[-1].ids))

    def drawn(self) -> tuple[list[Step], str]:
        """The steps that are drawn, and a line about those that are left out before the last one."""
        if self._size > MAX_BYTES:
            return [], self._too_long()
        steps = list(self)
        if len(steps) <= MAX_STEPS:
            return steps, ""
        more = len(steps) - MAX_STEPS
        return (
            [*steps[: MAX_STEPS - 1], steps[-1]],
            f"... {more:,} more steps; `for step in steps: print(step)` prints all",
        )

    def _too_long(self) -> str:
        return (
            f"(a text of {self._size:,} bytes; those of up to {MAX_BYTES} are drawn, and "
            f"`for step in steps: print(step)` prints the steps of any)"
        )


# --- The tree ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A symbol, and what it was made of."""

    symbol: bytes
    """The symbol."""
    parts: tuple[Node, ...] = ()
    """The symbols that merged into it; none for a symbol that the text started as."""
    number: int = 0
    """The number of the step that made it; 0 for a symbol that the text started as."""
    why: str = ""
    """Why that step was taken."""


def roots_of(steps: Iterable[Step]) -> list[Node]:
    """A node for each final symbol, in their order."""
    nodes: list[Node] = []
    for number, step in enumerate(steps):
        if step.kind == "begin":
            nodes = [Node(symbol) for symbol in step.symbols]
        elif step.kind == "split":
            nodes[step.begin : step.end] = _taken_apart(nodes[step.begin], step.made)
        elif step.made:  # a merge; or a chunk that is taken whole; or the pieces for an unknown symbol
            old = tuple(nodes[step.begin : step.end]) if step.kind == "merge" else ()
            nodes[step.begin : step.end] = [
                Node(symbol, old, number, step.explained()) for symbol in step.made
            ]
    return nodes


def _taken_apart(node: Node, made: Sequence[bytes]) -> list[Node]:
    """The nodes of the symbols that an UNUSED piece is split into, with their parts."""
    nodes: list[Node] = []
    waiting = [node]
    for symbol in made:
        while waiting and len(waiting[0].symbol) > len(symbol) and waiting[0].parts:
            waiting[:1] = waiting[0].parts
        if waiting and waiting[0].symbol == symbol:
            nodes.append(waiting.pop(0))
        else:  # (Only one pair makes a piece, see `split` in `encoding.py`, so this is not expected.)
            return [Node(symbol) for symbol in made]
    return nodes


def tree_lines(roots: Sequence[Node], ids: Sequence[int]) -> list[str]:
    """The trees as lines: each node below the one that it became part of, and the ids of the roots."""
    rows: list[tuple[str, str]] = []
    for root, id in zip(roots, ids, strict=True):
        rows.append((Step.show(root.symbol), str(id)))
        waiting = [(part, "", part is root.parts[-1]) for part in reversed(root.parts)]
        while waiting:
            node, indent, is_last = waiting.pop()
            remark = f"merge {node.number}" if node.parts else ""
            rows.append((f"{indent}{'└' if is_last else '├'}─ {Step.show(node.symbol)}", remark))
            below = f"{indent}{' ' if is_last else '│'}  "
            waiting += [(part, below, part is node.parts[-1]) for part in reversed(node.parts)]
    column = max((width(line) for line, _ in rows), default=0)
    return [f"{line}{' ' * (column - width(line))}  {remark}".rstrip() for line, remark in rows]


# --- As HTML, for notebooks: no scripts and no style sheets --------------------------------------

_MOST_SYMBOLS = 60
"""If a text has more symbols than this, only those near the place of the step are drawn."""
_CHOSEN = f"background-color:{HTML_COLOURS[1]};border-radius:3px;padding:0 2px;white-space:nowrap"
_MAX_DEPTH = 50
"""A deeper tree is cut: nobody can read it, and browsers are slow with it."""
_NODE = "display:inline-block;vertical-align:bottom;text-align:center"
_BOX = "display:block;margin:1px;padding:0 3px;border-radius:3px"


def _direction_of(step: Step) -> str:
    """The direction in which the text of a step is read."""
    return direction(text_of(b"".join(step.symbols))) or "ltr"


def _table(steps: Sequence[Step], numbers: Sequence[str]) -> str:
    """The steps: the number of each, its kind, the symbols before it, and the reason."""
    rows = (
        [
            number,
            step.kind,
            f'<div dir="{_direction_of(step)}" style="{FONT}">{_symbols(step)}</div>',
            f"<bdi>{escape(step.explained())}</bdi>",
        ]
        for step, number in zip(steps, numbers, strict=True)
    )
    return html_table(("", "step", "symbols", "why"), rows)


def _symbols(step: Step) -> str:
    """The symbols before a step, those that it changes marked."""
    first, last = 0, len(step.symbols)
    if last > _MOST_SYMBOLS:
        first = max(0, min(step.begin - _MOST_SYMBOLS // 2, last - _MOST_SYMBOLS))
        last = first + _MOST_SYMBOLS
    line = MORE if first else ""
    for place in range(first, last):
        symbol = f"<bdi>{in_html(parts_of(step.symbols[place]))}</bdi>"
        opened = f'<mark style="{_CHOSEN};color:inherit">' if place == step.begin < step.end else ""
        closed = "</mark>" if step.begin < step.end == place + 1 else ""
        line += f"{step.between(place)}{opened}{symbol}{closed}"
    return line + (f" {MORE}" if last < len(step.symbols) else "")


def _tree(node: Node, id: str = "", depth: int = 0) -> str:
    """A symbol above the symbols that it was made of; a final symbol has its id above it."""
    colour = HTML_COLOURS[node.number % len(HTML_COLOURS)]
    made = node.number > 0
    style = f"{_BOX};background-color:{colour}" if made else f"{_BOX};outline:1px solid {HTML_COLOURS[0]}"
    title = f"{node.number}: {node.why}" if made else "a symbol at the beginning"
    head = f'<small style="display:block;opacity:.7">{id}</small>' if id else ""
    number = f"<small>&nbsp;{node.number}</small>" if made else ""
    if depth < _MAX_DEPTH:
        parts = "".join(_tree(part, "", depth + 1) for part in node.parts)
    else:
        parts = MORE if node.parts else ""
    box = chip(parts_of(node.symbol), style, title, "bdi", number)
    return f'<span style="{_NODE}{";margin:0 .3em" if id else ""}">{head}{box}{parts}</span>'
