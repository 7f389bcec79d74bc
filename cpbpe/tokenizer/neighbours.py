r"""Which symbols can stand side by side after merging: the pair rule, for all right neighbours at once.

Two symbols x and y are *stable* if the text xy merges into just these two. **A sequence of symbols is what
its text merges into if and only if each two neighbours are stable.** One direction is what `pair_ranks.py`
says: as long as no merge has crossed the ends of a span, the merges inside it are those of the span alone.
For the other, suppose that all neighbours are stable, and look at the first merge that crosses a border
between two of them. Until then none has crossed a border, so it joins an end of x with a beginning of y, and
happens in the text xy alone, too: they are not stable. Equal scores change nothing. Among equals the leftmost
pair merges, and which of two pairs is further left is the same in the span and in the text.

To know all y that are not stable beside x, look at what merges across the border:

- Every piece w that merging makes is made by one pair, its *left part* and its *right part*, in every text
  (`pair_ranks.py`). So a merge crosses the border of xy only if it makes a piece w whose left part is an end
  of x (x, the right part of x, the right part of that, ...), and whose right part is a beginning of y (y,
  the left part of y, ...).
- Suppose that no piece has a better rank than one of its parts. Then merges happen in the order of their
  ranks. An end of x is there until the merge that takes it up, which makes the next longer end, and so is a
  beginning of y. So w is made if its rank comes before that of both of these merges. Among equals, the merges
  within x come first, then w, then those within y.
- Let y's left part be the parent of y. That makes a tree, in which the y that begin with some symbol r are
  the subtree of r. Put the children of each symbol in the order of their ranks, the last first, and the
  symbols in preorder. Then the y in which r is there when w would be made are one interval, from r to the
  end of the last child that comes after w. It depends on w alone.

So the y that are not stable beside x are the union of a few intervals for each end of x.

Published models do have pieces with a better rank than one of their parts (81 of Llama 3's 128,000). Such a
piece is made as soon as both parts are there, so the highest rank of its parts counts instead of its own. A
symbol that has such a piece inside is *odd*: for an odd x or y, the texts xy are merged one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from cpbpe.lazy import Kept
from cpbpe.model.pair_ranks import by_text, merged, pairs_that_make, steps

Bools = NDArray[np.bool_]
Places = NDArray[np.int64]

_NEVER = 1 << 62


class Neighbours:
    """The symbols of a model, and which of them can stand side by side.

    >>> beside = Neighbours({"ab": 1, "bc": 2, "abc": 3}, "abcd")
    >>> beside.texts
    ['a', 'ab', 'abc', 'b', 'bc', 'c', 'd']
    >>> [beside.texts[place] for place in beside.after("ab").nonzero()[0]]
    ['a', 'ab', 'abc', 'b', 'bc', 'd']
    """

    def __init__(self, ranks: Mapping[str, int], letters: Iterable[str]):
        """`ranks`: the pieces of several letters; the lowest merges first. `letters`: their letters."""
        self._ranks = ranks
        self._rank = by_text(ranks)
        self._pairs = pairs = pairs_that_make(ranks, self._rank)
        # 1. The rank that counts: the highest of a piece and of all that is inside it.
        self._times: dict[str, int] = {}
        odd: set[str] = set()
        for text in sorted(pairs, key=len):
            left, right = pairs[text]
            inner = max(self._times.get(left, -1), self._times.get(right, -1))
            self._times[text] = max(ranks[text], inner)
            if inner > ranks[text] or left in odd or right in odd:
                odd.add(text)
        if odd and len({ranks[text] for text in pairs}) < len(pairs):
            odd.update(pairs)  # (what is said above about odd pieces holds for ranks that differ)
        # 2. The symbols in preorder.
        children: dict[str, list[str]] = {letter: [] for letter in sorted({*letters, *"".join(ranks)})}
        roots = list(children)
        for text in sorted(pairs, key=self._times.__getitem__, reverse=True):
            children.setdefault(pairs[text][0], []).append(text)
        self.texts: list[str] = []
        """The symbols. Their indexes here are their *places*."""
        ends: dict[str, int] = {}
        waiting: list[tuple[str, bool]] = [(root, False) for root in reversed(roots)]
        while waiting:
            text, is_done = waiting.pop()
            if is_done:
                ends[text] = len(self.texts)
                continue
            self.texts.append(text)
            waiting.append((text, True))
            waiting += ((child, False) for child in reversed(children.get(text, ())))
        self.places = {text: place for place, text in enumerate(self.texts)}
        """The place of each symbol."""
        # 3. For each piece, the interval of right neighbours beside which it is made. Pieces are grouped by
        #    their left parts, and in each group sorted by rank.
        rows = []
        late = {text: [-self._times[child] for child in made] for text, made in children.items() if made}
        for text, (left, right) in pairs.items():
            time, begin, end = self._times[text], self.places[right], self.places[right] + 1
            count = bisect_right(late.get(right, ()), -time)
            if count:
                end = ends[children[right][count - 1]]
            rows.append((self.places[left], time, begin, end, ends[right]))
        rows.sort()
        table = np.array(rows, np.int64).reshape(-1, 5)
        self._groups: Places = np.searchsorted(table[:, 0], np.arange(len(self.texts) + 1))
        self._made_at, self._begins, self._ends, self._ends_of_all = table[:, 1:].T.copy()
        # 4. The same intervals among the odd symbols alone; and the rows of pieces that are odd.
        self._odd = odd
        self._odd_places = np.array(sorted(map(self.places.__getitem__, odd)), np.int64)
        self._first_odd = np.searchsorted(self._odd_places, self._begins)
        self._last_odd = np.searchsorted(self._odd_places, self._ends_of_all)
        self._rows_of_odd: dict[str, list[int]] = {}
        for number, (place, _, begin, _, _) in enumerate(rows):
            if self.texts[place] + self.texts[begin] in odd:
                self._rows_of_odd.setdefault(self.texts[place], []).append(number)
        self._known: Kept[str, Bools] = Kept()
        self._slow: Kept[str, Bools] = Kept()

    def after(self, text: str) -> Bools:
        """For each symbol whether it can follow this one."""
        found = self._known.get(text)
        if found is None:
            found = self._slow.get(text)
        if found is None:
            found, is_slow = self._found_after(text)
            found.setflags(write=False)
            (self._slow if is_slow else self._known).keep(text, found)
        return found

    def _found_after(self, text: str) -> tuple[Bools, bool]:
        """The same, and whether it took long."""
        # 1. The pieces that a merge across the border can make.
        is_odd = text in self._odd
        groups, rare = [], []
        end: str | None = text
        until = _NEVER
        taken = self._taken_up(text) if is_odd else self._times
        while end is not None:
            place = self.places[end]
            low, high = self._groups[place], self._groups[place + 1]
            groups.append(np.arange(low, low + np.searchsorted(self._made_at[low:high], until)))
            rare += self._rows_of_odd.get(end, [])
            until = taken.get(end, _NEVER)
            end = self._pairs[end][1] if end in self._pairs else None
        rows = np.concatenate(groups)
        is_slow = is_odd or len(rows) > len(self.texts) >> 3
        stable = ~self._union(self._begins[rows], self._ends[rows])
        # 2. Beside odd symbols, the times do not decide: what might merge at some time is tried.
        tried: set[int] = {*np.flatnonzero(~stable).tolist()} if is_odd else set()
        if self._odd:
            rows = np.concatenate([rows, np.array(rare, np.int64)])
            if is_odd and rare:
                tried.update(
                    np.flatnonzero(self._union(self._begins[rare], self._ends_of_all[rare])).tolist()
                )
            rows = rows[self._first_odd[rows] < self._last_odd[rows]]
            spans = zip(self._first_odd[rows].tolist(), self._last_odd[rows].tolist(), strict=True)
            tried.update(place for low, high in spans for place in self._odd_places[low:high].tolist())
            stable[self._odd_places] = True
        for place in tried:
            stable[place] = merged(text + self.texts[place], self._rank) == [text, self.texts[place]]
        return stable, is_slow

    def _taken_up(self, text: str) -> dict[str, int]:
        """For each longer end of a symbol, the highest rank of all merges up to the one that makes it."""
        found, most = {}, 0
        for at, left, right in steps(text, self._rank):
            most = max(most, self._ranks[left + right])
            if at + len(left + right) == len(text):
                found[left + right] = most
        return found

    def _union(self, begins: Places, ends: Places) -> Bools:
        """The places that lie in one of some intervals."""
        size = len(self.texts)
        if len(begins) > size >> 3:
            more, less = np.bincount(begins, minlength=size + 1), np.bincount(ends, minlength=size + 1)
            return (more - less).cumsum()[:-1] > 0
        order = np.argsort(begins)
        begins, reached = begins[order], np.maximum.accumulate(ends[order])
        is_new = np.append(True, begins[1:] > reached[:-1])[: len(begins)]
        borders = np.stack((begins[is_new], reached[np.append(is_new[1:], True)[: len(begins)]]), 1).ravel()
        lengths = np.diff(np.concatenate(([0], borders, [size])))
        return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)

    def is_stable(self, left: str, right: str) -> bool:
        """Whether two symbols can stand side by side."""
        if left in self._odd or right in self._odd:
            return merged(left + right, self._rank) == [left, right]
        begin: str | None = right
        beginnings: list[tuple[str, int]] = []
        until = _NEVER
        while begin is not None:
            beginnings.append((begin, until))
            until = self._times.get(begin, _NEVER)
            begin = self._pairs[begin][0] if begin in self._pairs else None
        end: str | None = left
        until = _NEVER
        while end is not None:
            for begin, other in beginnings:
                if self._pairs.get(end + begin) == (end, begin):
                    time = self._times[end + begin]
                    if time < until and time <= other:
                        return False
            until = self._times.get(end, _NEVER)
            end = self._pairs[end][1] if end in self._pairs else None
        return True

    def parts(self, text: str) -> tuple[str, str] | None:
        """The two symbols that make one; None for a letter."""
        return self._pairs.get(text)
