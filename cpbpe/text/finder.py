"""Finds keys in text, the longest at each position: user-defined pieces, special tokens, symbols of training.

A key is any sequence of bytes. (`cpbpe.text.charsmap` finds the keys of normalization rules, which are more
numerous and have replacements.)

Everything is based on the sorted list of keys. Keys that begin with the same bytes are side by side in it,
and if a key is the beginning of another, it comes first.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from typing import Any


class Finder:
    r"""Finds the keys that it was made with.

    >>> finder = Finder([b"ab", b"abcd", b"x"])
    >>> [finder.longest(b"abcabcdab", at) for at in (0, 1, 3, 7)]
    [2, 0, 4, 2]
    >>> finder.split("-abcdx!"), finder.split("none"), finder.split(b"ab\xff")
    (['-', 1, '', 2, '!'], None, [b'', 0, b'\xff'])
    """

    def __init__(self, keys: Iterable[bytes], max_matches: int | None = None):
        """`max_matches`: of the keys that match at a position, only this many are looked at, shortest first.

        sentencepiece does this. Where a key matches, its beginnings match too. So a key that has this many
        other keys as beginnings is never found, and all others are found as if there were no such limit.
        """
        given = list(keys)
        if b"" in given:
            raise ValueError("a key of a finder is empty, and would match everywhere")
        self._numbers = {key: number for number, key in enumerate(given)}
        self.longest_key = max(map(len, given), default=1)
        """The length of the longest key in bytes; 1 if there are no keys."""
        self.first_bytes = bytes(sorted({key[0] for key in given}))
        """The bytes that keys begin with."""
        self._first = re.compile(b"[%b]" % re.escape(self.first_bytes)) if given else None

        self._keys: list[bytes] = []  # sorted
        self._shorter: list[int] = []  # for each, the index of its longest beginning that is a key, or -1
        self._far: list[int] = []  # likewise, but several beginnings back; see `_add`
        self._count: list[int] = []  # how many keys it has as beginnings
        beginnings: list[int] = []  # the indexes of all keys that the last one begins with, including itself
        for key in sorted(self._numbers):
            while beginnings and not key.startswith(self._keys[beginnings[-1]]):
                beginnings.pop()
            if max_matches is None or len(beginnings) < max_matches:
                self._add(key, beginnings)
                beginnings.append(len(self._keys) - 1)

    def _add(self, key: bytes, beginnings: list[int]) -> None:
        """Add the next key, which has these keys as beginnings.

        A key may have thousands of beginnings. `longest` goes back through them to the first that matches. It
        takes the long step `_far` if the key at its end does not match either, and otherwise the short step
        `_shorter`. A long step covers two equally long steps before it, if there are such. So the number of
        steps grows like the logarithm of the number of beginnings.
        """
        shorter = beginnings[-1] if beginnings else -1
        far = shorter
        if shorter >= 0 and (step := self._far[shorter]) >= 0:
            count = self._count
            end = self._far[step]
            if count[shorter] - count[step] == count[step] - (count[end] if end >= 0 else -1):
                far = end
        self._keys.append(key)
        self._shorter.append(shorter)
        self._far.append(far)
        self._count.append(len(beginnings))

    def longest(self, text: bytes, at: int) -> int:
        """The length of the longest key at `at`; 0 if there is none.

        The text from `at` on has a place among the sorted keys. A key that the text begins with comes before
        that place, and all keys between the two begin with this key as well. So the key right before the
        place is the one that we look for, or begins with it.

        The text is compared with about 3 * log2(keys) keys, at the speed of memory. Bytes that it has in
        common with keys are compared again at every position. So, in the worst case, n bytes of text and keys
        of k bytes take n * k steps, but each takes a thirtieth of a nanosecond. (The core looks at each byte
        only a limited number of times.)
        """
        if text[at] not in self.first_bytes:
            return 0
        place = bisect_right(self._keys, text[at : at + self.longest_key]) - 1
        while place >= 0 and not text.startswith(self._keys[place], at):
            far = self._far[place]
            too_far = far < 0 or text.startswith(self._keys[far], at)
            place = self._shorter[place] if too_far else far
        return len(self._keys[place]) if place >= 0 else 0

    def could_grow(self, text: bytes, at: int) -> bool:
        """Whether more text could make a key match at `at` that is longer than the rest of this text.

        >>> finder = Finder([b"ab", b"abcd", b"x"])
        >>> [finder.could_grow(b"xabc", at) for at in (0, 1, 2, 3)]
        [False, True, False, False]
        """
        if len(text) - at >= self.longest_key or text[at] not in self.first_bytes:
            return False
        rest = text[at:]
        place = bisect_right(self._keys, rest)
        return place < len(self._keys) and self._keys[place].startswith(rest)

    def beginning_with(self, begin: bytes) -> list[bytes]:
        """Return the keys that begin with these bytes, sorted.

        >>> Finder([b"ab", b"abcd", b"x"]).beginning_with(b"a")
        [b'ab', b'abcd']
        """
        place = bisect_left(self._keys, begin)
        found = []
        while place < len(self._keys) and self._keys[place].startswith(begin):
            found.append(self._keys[place])
            place += 1
        return found

    def last_start(self, text: bytes, at: int, stop: int) -> int:
        """Return where the last key or character before `stop` begins; `at` if `stop` is not after it.

        Keys are taken from left to right, so they do not overlap. The text is UTF-8, and `at` is between
        characters.

        >>> Finder([b"ab"]).last_start(b"a-abab-", 0, 5)
        4
        """
        last = at
        while at < stop:
            candidate = self._first and self._first.search(text, at, stop)
            if not candidate:
                last = stop - 1
                while text[last] & 0xC0 == 0x80:
                    last -= 1
                break
            last = candidate.start()
            at = last + (self.longest(text, last) or 1)
        return last

    def split(self, text: str | bytes) -> list[Any] | None:
        """The text before a key, the key's number, the text after it, and so on; None if there is no key.

        Keys are taken from left to right. A key's number is its index among the given keys.
        """
        data = text.encode() if isinstance(text, str) else text
        parts: list[Any] = []
        done = 0
        for candidate in self._first.finditer(data) if self._first else ():
            at = candidate.start()
            length = self.longest(data, at) if at >= done else 0
            if length:
                parts += [data[done:at], self._numbers[data[at : at + length]]]
                done = at + length
        if not parts:
            return None
        parts.append(data[done:])
        if isinstance(text, str):
            parts[::2] = [part.decode() for part in parts[::2]]
        return parts


def may_overlap(texts: Collection[str], others: Collection[str]) -> bool:
    """Whether in some text one of `others` can lie within one of `texts`, or begin in it and go on after it.

    >>> may_overlap(["ab"], ["bc"]), may_overlap(["bc"], ["ab"]), may_overlap(["abc"], ["b"])
    (True, False, True)
    """
    finder = Finder(other.encode(errors="surrogatepass") for other in others if other)
    return any(
        (at and finder.could_grow(text, at)) or finder.longest(text, at)
        for text in (text.encode(errors="surrogatepass") for text in texts)
        for at in range(len(text))
    )
