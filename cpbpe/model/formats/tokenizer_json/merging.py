"""Which pairs a tokenizer.json lists, and on which texts they are not what sentencepiece does.

`cpbpe.model.pair_ranks` says which pairs can be listed at all, and decides about equal scores. Two things
come on top:

**Characters that are no tokens.** sentencepiece merges the characters of a text whether they are pieces or
not. A pair of the other library consists of two tokens. So a piece with a character that is no token cannot
be listed. (Single bytes are tokens if there is byte fallback, see `names`.)

**UNUSED pieces** are merged, and at the end split again into the pair that made them. The list has no such
thing. If no other piece is made from an UNUSED one, it can be left out: what is never merged need not be
split. But meanwhile its two parts may be merged with their other neighbours. That cannot happen if nothing
else is left to merge when it is their turn, that is, if the scores of all UNUSED pieces are below all others.
Otherwise, as with equal scores, it is decided by the texts xyz such that (x, y) and (y, z) make pieces: if
the two libraries differ on any text, the same proof leads to one of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from cpbpe.model.formats.tokenizer_json.names import Names
from cpbpe.model.formats.tokenizer_json.spaces import normalized
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import (
    Pair,
    by_pair,
    by_text,
    candidates,
    differences,
    merged,
    ordered,
    pairs_that_make,
)

MAX_SPLIT_DEPTH = 100
"""sentencepiece splits no further."""
_EQUAL = "of merges with equal scores, tokenizers chooses another one"
_NO_TOKEN = "sentencepiece merges characters that are no pieces, and tokenizers cannot"
_UNUSED = "sentencepiece splits UNUSED pieces again, and tokenizers cannot"

UNKNOWN = "\0"
"""What stands for an unknown character when two results are compared."""


@dataclass
class Merging:
    """The pairs to list for a model."""

    names: Names
    made: dict[str, Pair] = field(init=False)
    """The pieces that can be made, with their pairs, in sentencepiece."""
    pairs: list[Pair] = field(init=False)
    """Those to list, in order."""
    differences: list[Difference] = field(init=False)
    """Why some texts are merged in another way."""

    def __post_init__(self) -> None:
        # 1. Left out are pieces that cannot be listed, and UNUSED ones that no other piece is made of.
        names, ranks = self.names, self.names.ranks
        self.made = made = pairs_that_make(ranks, by_text(ranks))
        parts: set[str] = set()
        if names.unused:
            parts.update(part for piece in made if piece not in names.unused for part in self._parts(piece))
        wanted = {piece: pair for piece, pair in made.items() if piece not in names.unused or piece in parts}
        known = names.characters
        listed = {
            piece: pair
            for piece, pair in wanted.items()
            if all(len(part) > 1 or part in known for part in pair)
        }
        # 2. The order, and what is wrong with any order.
        equal = candidates(listed, ranks)
        order = ordered(listed, ranks, equal)
        self.pairs = [listed[piece] for piece in order]
        self._theirs = by_pair({pair: place for place, pair in enumerate(self.pairs)})
        reasons: list[tuple[str, Iterable[str], bool]] = [
            (_EQUAL, differences(listed, ranks, order, equal), True),
            (_NO_TOKEN, _by_length(wanted.keys() - listed.keys()), True),
            (_UNUSED, self._unused_texts(wanted, listed), False),
        ]
        self.differences = []
        for reason, texts, is_certain in reasons:
            found = self._first(texts)
            if found is not None and (is_certain or found[1] is not None):
                self.differences.append(Difference(reason, found[1]))

    def _parts(self, piece: str) -> Iterator[str]:
        """All pieces that are made on the way to one."""
        waiting = [*self.made[piece]]
        while waiting:
            part = waiting.pop()
            if part in self.made:
                yield part
                waiting += self.made[part]

    # --- Texts that may differ --------------------------------------------------------------------

    def _unused_texts(self, wanted: dict[str, Pair], listed: dict[str, Pair]) -> Iterator[str]:
        """Texts that can show that UNUSED pieces are split in one library only, the shorter ones first."""
        made, ranks = self.made, self.names.ranks
        yield from _by_length(piece for piece in self.names.unused if piece in wanted)
        dropped = made.keys() - wanted.keys()
        depths: dict[str, int] = {}
        for piece in _by_length(dropped):
            depths[piece] = 1 + max(depths.get(part, 0) for part in made[piece])
            if depths[piece] > MAX_SPLIT_DEPTH:
                yield piece
        last = max(map(ranks.__getitem__, listed), default=float("-inf"))
        if all(ranks[piece] > last for piece in dropped):
            return
        beginning, ending = defaultdict(list), defaultdict(list)
        for piece, (x, y) in made.items():
            beginning[x].append(piece)
            ending[y].append(piece)
        for piece in _by_length(dropped):
            x, y = made[piece]
            texts = [x + right for right in beginning[y]] + [left + y for left in ending[x]]
            yield from _by_length(texts)

    def _first(self, texts: Iterable[str]) -> tuple[str, str | None] | None:
        """The first of some normalized texts that is part of one on which the libraries differ, and that one.

        If there is no such text, the first of them alone; None if there are none, or all hold a user-defined
        piece, which is never merged.
        """
        first = None
        for text in texts:
            if not self.names.holds_user_defined(text):
                if (shown := self.counter_example(text)) is not None:
                    return text, shown
                first = first or (text, None)
        return first

    def counter_example(self, text: str) -> str | None:
        """A text with this normalized one in it, on which the two libraries differ; None if none is found.

        What stands around it must not be merged with it. A character of no piece never is.
        """
        alone = self.names.absent
        tried = {
            f"{before}{inner}{after}": None
            for before in ("", alone)
            for after in ("", alone)
            for inner in (text.replace("▁", " "), text)
        }
        return next((given for given in sorted(tried, key=len) if self.differ(given)), None)

    # --- Both libraries on a text -----------------------------------------------------------------

    def differ(self, text: str) -> bool:
        """Whether a text has other ids in the other library.

        False also where user-defined pieces matter: in a text that holds one; and, if there are any, in one
        that is a token, which is not merged then.
        """
        rewritten = normalized(self.names.spec.normalizer, text)
        if self.names.user_defined and rewritten in self.names.all:
            return False
        if self.names.holds_user_defined(rewritten):
            return False
        return self._fused(self._ours(rewritten)) != self._fused(self._others(rewritten))

    def _ours(self, text: str) -> Iterator[str]:
        """The pieces of a text in sentencepiece; an unknown character has UNKNOWN in front."""
        names = self.names
        waiting = [(symbol, 0) for symbol in reversed(merged(text, by_text(names.ranks))[0])]
        while waiting:
            symbol, depth = waiting.pop()
            if symbol in names.unused and symbol in self.made and depth <= MAX_SPLIT_DEPTH:
                waiting += [(part, depth + 1) for part in reversed(self.made[symbol])]
            else:
                found = symbol in names.ranks and (symbol not in names.unused or depth > MAX_SPLIT_DEPTH)
                yield symbol if found or symbol in names.bytes else UNKNOWN + symbol

    def pieces_of(self, text: str) -> list[str]:
        """The pieces of a normalized text in sentencepiece; an unknown character has UNKNOWN in front."""
        return list(self._ours(text))

    def _others(self, text: str) -> Iterator[str]:
        """The same in the other library."""
        known = self.names.characters
        for symbol in merged(text, self._theirs)[0]:
            yield symbol if len(symbol) > 1 or symbol in known else UNKNOWN + symbol

    def _fused(self, symbols: Iterable[str]) -> list[str]:
        """The symbols as ids show them: without byte fallback, unknown characters together are one."""
        if self.names.spec.byte_fallback:
            return list(symbols)
        return [
            part
            for unknown, group in groupby(symbols, lambda symbol: symbol[0] == UNKNOWN)
            for part in ([UNKNOWN] if unknown else group)
        ]

    def unfound(self, name: str) -> list[str] | None:
        """What a token's text becomes in sentencepiece, if that is not the token itself."""
        if name in self.made and name not in self.names.unused:
            return None
        symbols = list(self._ours(name))
        return None if symbols == [name] else symbols


def _by_length(texts: Iterable[str]) -> list[str]:
    """The shortest first, and always in the same order."""
    return sorted(texts, key=lambda text: (len(text), text))
