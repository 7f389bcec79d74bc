r"""Which symbols can stand side by side after merging, for all right neighbours of a symbol at once.

Two neighbours x and y are *stable* if the text xy merges into just these two symbols. The *pair rule* says:
**a sequence of symbols is what its text merges into if and only if each two neighbours in it are stable.**

- If the sequence is what its text merges into, no merge has crossed the ends of any two neighbours. As long
  as none has, the merges inside a span are those of the span alone (`pair_ranks.py`). So the two are stable.
- Conversely, suppose that all neighbours are stable, but that some merge crosses a border between two of
  them, x and y. The first such merge joins an end of x with a beginning of y. No merge before it has crossed
  a border, so it happens in the text xy alone, too, and x and y are not stable: a contradiction.

Equal scores change nothing. Among equals the leftmost pair merges, and which of two pairs is further left is
the same in the span and in the text.

To know all y that are not stable beside x, look at what merges across the border:

- Every piece w that merging makes is made by one pair, its *left part* and its *right part*, in every text
  (`pair_ranks.py`). So a merge crosses the border of xy only if it makes a piece w whose left part is an end
  of x (x, the right part of x, the right part of that, ...), and whose right part is a beginning of y (y,
  the left part of y, ...).
- Suppose that no piece has a better rank than one of its parts. Then merges happen in the order of their
  ranks. An end of x is there until some merge within x takes it up, which makes the next longer end of x. The
  same holds for a beginning of y. So w is made if its rank comes before the ranks of both of these merges.
  Among equals, the merges within x come first, then w, then those within y.
- Let y's left part be the parent of y. That makes a tree. The y that have the symbol r as a beginning are the
  subtree of r. Sort the children of each symbol by rank, those that merge last first, and number all symbols
  in preorder. Let r be the right part of w. It is still there when w would be made if y is r itself, or a
  child of r that merges no earlier than w, or lies below such a child. Those y are one
  interval: from r to the end of the subtree of the last such child. It depends on w alone.

So the y that are not stable beside x are the union of a few intervals for each end of x.

Published models do have pieces with a better rank than one of their parts (81 of Llama 3's 128,000). Such a
piece is made as soon as both parts are there, so the highest rank of its parts counts instead of its own. A
symbol that is such a piece, or has one inside, is *odd*: for an odd x or y, those texts xy in which a merge
might cross the border are merged one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from cpbpe.lazy import Kept
from cpbpe.model.pair_ranks import by_text, made_at_once, merged, steps

Bools = NDArray[np.bool_]
Places = NDArray[np.int64]

_NEVER = 1 << 62
_NONE = -1


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
        self._rank = by_text(ranks)
        # 1. The symbols: letters, then the pieces that merging makes, the shortest first.
        roots = sorted({*letters, *"".join(ranks)})
        texts, left, right, rank = made_at_once(ranks, roots)
        count, size = len(roots), len(texts)
        starts = np.unique(np.fromiter(map(len, texts[count:]), np.int64), return_index=True)[1] + count
        levels = [*map(slice, starts.tolist(), [*starts[1:].tolist(), size])]
        # 2. The rank that counts (`times`): the highest of a piece and of all that is inside it.
        times, odd = rank.copy(), np.zeros(size, np.bool_)
        for level in levels:
            inner = np.maximum(times[left[level]], times[right[level]])
            times[level] = np.maximum(rank[level], inner)
            odd[level] = (inner > rank[level]) | odd[left[level]] | odd[right[level]]
        if odd.any() and len(np.unique(rank[count:])) < size - count:
            odd[count:] = True  # (the rank that counts is only right if all ranks differ, so try everything)
        # 3. The symbols in preorder: behind its parent, each comes after its siblings that are made later.
        #    (`until_end` is 0 for the symbol that is made last, so sorting by it puts that one first.)
        sizes = np.ones(size, np.int64)
        for level in reversed(levels):
            np.add.at(sizes, left[level], sizes[level])
        until_end = times.max(initial=0) - times
        children = np.lexsort((until_end[count:], left[count:])) + count
        parents = left[children]
        ends = np.cumsum(sizes[children])
        first = ends - sizes[children]
        place = np.concatenate((np.cumsum(sizes[:count]) - sizes[:count], np.zeros(size - count, np.int64)))
        # (A child's place, counted from its parent: after the subtrees of the siblings before it.)
        place[children] = 1 + first - first[np.searchsorted(parents, parents)]
        for level in levels:
            place[level] += place[left[level]]
        end_of = place + sizes
        by_place = np.argsort(place)
        self.texts = [texts[number] for number in by_place.tolist()]
        """The symbols. Their indexes here are their *places*."""
        self.places = {text: place for place, text in enumerate(self.texts)}
        """The place of each symbol."""
        place_of = np.append(place, _NONE)  # (so that the parts of a letter have no place)
        self._left: list[int] = place_of[left[by_place]].tolist()
        self._right: list[int] = place_of[right[by_place]].tolist()
        self._ranks: list[int] = rank[by_place].tolist()
        self._times: list[int] = times[by_place].tolist()
        self._odd = frozenset(place[odd].tolist())
        # 4. For each piece, the interval of right neighbours beside which it is made, `_begins` to `_ends`;
        #    and `_ends_of_all`, the end of the whole subtree of its right part. Pieces are grouped by their
        #    left parts, and in each group sorted by rank.
        step = until_end.max(initial=0) + 1
        rows = np.lexsort((times[count:], place[left[count:]])) + count
        group, beginning = place[left[rows]], right[rows]
        # (`last`: the last child of the right part that is made no earlier than the piece. Children are
        # sorted by their parents, then by `until_end`, so search for these two as one number.)
        keys, wanted = parents * step + until_end[children], beginning * step + until_end[rows]
        last = np.searchsorted(keys, wanted, "right") - 1
        has_some = (last >= 0) & (parents[last] == beginning)
        self._groups: Places = np.searchsorted(group, np.arange(size + 1))
        self._made_at, self._begins, self._ends_of_all = times[rows], place[beginning], end_of[beginning]
        self._ends = np.where(has_some, end_of[children[last]], self._begins + 1)
        # 5. The odd symbols in these subtrees, as intervals of `_odd_places`; and the rows of odd pieces.
        self._odd_places = np.array(sorted(self._odd), np.int64)
        self._first_odd = np.searchsorted(self._odd_places, self._begins)
        self._last_odd = np.searchsorted(self._odd_places, self._ends_of_all)
        self._rows_of_odd: dict[int, list[int]] = {}
        for number in np.flatnonzero(odd[rows]).tolist():
            self._rows_of_odd.setdefault(int(group[number]), []).append(number)
        # What `after` has found. Results that took long are kept apart, so that others do not push them out.
        self._known: Kept[str, Bools] = Kept()
        self._slow: Kept[str, Bools] = Kept()

    def after(self, text: str) -> Bools:
        """For each symbol whether it can follow this one."""
        found = self._kept(text)
        if found is None:
            found, is_slow = self._found_after(text)
            found.setflags(write=False)
            (self._slow if is_slow else self._known).keep(text, found)
        return found

    def _kept(self, text: str) -> Bools | None:
        """What `after` returns, if it is known already."""
        found = self._known.get(text)
        return self._slow.get(text) if found is None else found

    def _found_after(self, text: str) -> tuple[Bools, bool]:
        """What `after` returns, and whether finding it took long.

        (Slow results have a cache of their own, so that the many fast ones do not push them out.)
        """
        # 1. The pieces that a merge across the border can make.
        end, until = self.places[text], _NEVER
        is_odd = end in self._odd
        taken = self._taken_up(text) if is_odd else {}
        groups, odd_rows = [], []
        while end != _NONE:
            low, high = self._groups[end], self._groups[end + 1]
            groups.append(np.arange(low, low + np.searchsorted(self._made_at[low:high], until)))
            odd_rows += self._rows_of_odd.get(end, [])
            until = taken.get(end, _NEVER) if is_odd else self._times[end]
            end = self._right[end]
        rows = np.concatenate(groups)
        is_slow = is_odd or len(rows) > len(self.texts) >> 3
        stable = ~_union(self._begins[rows], self._ends[rows], len(self.texts))
        # 2. Beside odd symbols, the times do not decide: what might merge at some time is tried.
        tried: set[int] = {*np.flatnonzero(~stable).tolist()} if is_odd else set()
        if self._odd:
            rows = np.concatenate([rows, np.array(odd_rows, np.int64)])
            if is_odd and odd_rows:
                begins, ends = self._begins[odd_rows], self._ends_of_all[odd_rows]
                tried.update(np.flatnonzero(_union(begins, ends, len(self.texts))).tolist())
            rows = rows[self._first_odd[rows] < self._last_odd[rows]]
            is_tried = _union(self._first_odd[rows], self._last_odd[rows], len(self._odd_places))
            tried.update(self._odd_places[is_tried].tolist())
            stable[self._odd_places] = True
        for place in tried:
            stable[place] = merged(text + self.texts[place], self._rank) == [text, self.texts[place]]
        return stable, is_slow

    def _taken_up(self, text: str) -> dict[int, int]:
        """For each end of a symbol but its last letter: the highest rank of all merges until it is made.

        The merge that makes an end takes up the next shorter one.
        """
        found, most = {}, _NONE
        for at, left, right in steps(text, self._rank):
            made = self.places[left + right]
            most = max(most, self._ranks[made])
            if at + len(left + right) == len(text):
                found[made] = most
        return found

    def is_stable(self, left: str, right: str) -> bool:
        """Whether two symbols can stand side by side."""
        end, begin = self.places[left], self.places[right]
        known = self._kept(left)
        if known is not None:
            return bool(known[begin])
        if end in self._odd or begin in self._odd:
            return merged(left + right, self._rank) == [left, right]
        # List each beginning of the right symbol, and when it is taken up. Then try each end of the left one.
        beginnings: list[tuple[int, int]] = []
        until = _NEVER
        while begin != _NONE:
            beginnings.append((begin, until))
            until, begin = self._times[begin], self._left[begin]
        until = _NEVER
        while end != _NONE:
            for begin, other in beginnings:
                made = self.places.get(self.texts[end] + self.texts[begin])
                if made is not None and self._left[made] == end:
                    time = self._times[made]
                    if time < until and time <= other:
                        return False
            until, end = self._times[end], self._right[end]
        return True

    def parts(self, text: str) -> tuple[str, str] | None:
        """The two symbols that make one; None for a letter."""
        place = self.places.get(text, _NONE)
        left, right = (self._left[place], self._right[place]) if place != _NONE else (_NONE, _NONE)
        return None if left == _NONE else (self.texts[left], self.texts[right])


def _union(begins: Places, ends: Places, size: int) -> Bools:
    """The numbers below `size` that lie in one of some intervals."""
    if len(begins) > size >> 3:  # (then counting is faster than sorting)
        more, less = np.bincount(begins, minlength=size + 1), np.bincount(ends, minlength=size + 1)
        return (more - less).cumsum()[:-1] > 0
    order = np.argsort(begins)
    begins, reached = begins[order], np.maximum.accumulate(ends[order])
    is_new = np.append(True, begins[1:] > reached[:-1])[: len(begins)]
    borders = np.stack((begins[is_new], reached[np.append(is_new[1:], True)[: len(begins)]]), 1).ravel()
    lengths = np.diff(np.concatenate(([0], borders, [size])))
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
