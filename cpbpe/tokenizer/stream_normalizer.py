"""Normalizing a text in parts: what `Normalizer` in `cpbpe/reference.py` does, as early as it is certain.

What keeps a step waiting: a character of which bytes are missing; the beginning of a rule or of a
user-defined piece that could become a longer one; and, where extra whitespace is removed, spaces, which may
be the last.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from cpbpe.model.spec import NormalizerSpec
from cpbpe.reference.encoding import MAX_USER_DEFINED_MATCHES
from cpbpe.text.charsmap import _LEAF, Charsmap, _has_leaf, _label, _offset
from cpbpe.text.utf8 import REPLACEMENT, SPACE, certain, valid_character


class Rules(Charsmap):
    """The rules of a model whose text arrives in parts."""

    def __init__(self, blob: bytes):
        super().__init__(blob)
        self._open: dict[int, bool] = {}  # whether longer rules begin where a walk came to

    def _first_bad_unit(self) -> None:
        """No need to look for one again: the engine has, so that no walk leaves the array."""

    def is_text(self) -> bool:
        """Whether every replacement is valid UTF-8. (One that is not could be completed by the next.)"""
        try:
            self._replacements.decode()
        except UnicodeDecodeError:
            return False
        values = {unit & ~_LEAF for unit in self._units if unit & _LEAF}
        return all(self._replacements[value] & 0xC0 != 0x80 for value in values)

    def find(self, text: bytes, start: int) -> tuple[int, bool]:
        """How long the rule is that applies at `start`, and whether more text could make it longer."""
        units = self._units
        node = _offset(units[0])
        length = 0
        for at in range(start, len(text)):
            node ^= text[at]
            unit = units[node]
            if _label(unit) != text[at]:
                return length, False
            node ^= _offset(unit)
            if _has_leaf(unit):
                length = at + 1 - start
        found = self._open.get(node)
        if found is None:
            found = self._open[node] = any(_label(units[node ^ byte]) == byte for byte in range(256))
        return length, found

    def plain(self) -> bytes:
        """The visible ASCII characters that no rule changes, as long as ASCII follows."""
        units, root = self._units, _offset(self._units[0])
        found = bytearray()
        for byte in range(0x21, 0x7F):
            node = root ^ byte
            if _label(units[node]) == byte:
                child = node ^ _offset(units[node])
                if _has_leaf(units[node]) or any(_label(units[child ^ c]) == c for c in range(128)):
                    continue
            found.append(byte)
        return bytes(found)


class Words:
    """The user-defined pieces of a model whose text arrives in parts.

    >>> words = Words([b"ab", b"abcd", b"x"])
    >>> [words.longest(b"abcabcdab", at) for at in (0, 1, 3, 7)]
    [2, 0, 4, 2]
    >>> [words.could_grow(b"xabc", at) for at in (0, 1, 2, 3)]
    [False, True, False, False]
    """

    def __init__(self, words: list[bytes]):
        self.longest_word = max(map(len, words), default=1)
        self._words: list[bytes] = []  # sorted, so that all with one beginning stand together
        self._shorter: list[int] = []  # for each, which other is its longest beginning, -1 if none is
        inside: list[int] = []  # those that are beginnings of a word, the shortest first
        for word in sorted({*words}):
            while inside and not word.startswith(self._words[inside[-1]]):
                inside.pop()
            if len(inside) < MAX_USER_DEFINED_MATCHES:  # the others are never found
                self._shorter.append(inside[-1] if inside else -1)
                inside.append(len(self._words))
                self._words.append(word)
        self.first_bytes = bytes(sorted({word[0] for word in words}))
        self._first = re.compile(b"[%b]" % re.escape(self.first_bytes)) if words else None

    def longest(self, text: bytes, at: int) -> int:
        """The length of the longest word at `at`, 0 if none is there. See `cpbpe.reference.encoding.Matcher`."""
        if text[at] not in self.first_bytes:
            return 0
        # A word that stands here is no greater than the text, and a beginning of every word between.
        i = bisect_right(self._words, text[at : at + self.longest_word]) - 1
        while i >= 0 and not text.startswith(self._words[i], at):
            i = self._shorter[i]
        return len(self._words[i]) if i >= 0 else 0

    def could_grow(self, text: bytes, at: int) -> bool:
        """Whether with more text a word could stand at `at` that is longer than the text is now."""
        if len(text) - at >= self.longest_word or text[at] not in self.first_bytes:
            return False
        rest = text[at:]
        i = bisect_right(self._words, rest)
        return i < len(self._words) and self._words[i].startswith(rest)

    def last_start(self, text: bytes, at: int, stop: int) -> int:
        """Where the last word or character before `stop` begins; one begins at `at`, which is given at least.

        >>> Words([b"ab"]).last_start(b"a-abab-", 0, 5)
        4
        """
        last = at
        while at < stop:
            found = self._first and self._first.search(text, at, stop)
            if not found:
                last = stop - 1
                while text[last] & 0xC0 == 0x80:
                    last -= 1
                break
            last = found.start()
            at = last + (self.longest(text, last) or 1)
        return last


class Shape:
    """What normalizing one model's text takes: made once, and shared by its streams."""

    def __init__(self, spec: NormalizerSpec, words: list[bytes]):
        self.spec = spec
        self.words = Words(words)
        self.rules = Rules(spec.charsmap) if spec.charsmap else None
        self.is_text = self.rules is None or self.rules.is_text()
        # Nothing but spaces to write in another way. User-defined pieces are copied, which changes nothing in
        # valid text, nor in other text if they are valid themselves.
        self.simple = self.rules is None and not spec.remove_extra_whitespaces
        self.space = SPACE if spec.escape_whitespaces else b" "
        plain = bytes(range(0x21, 0x7F)) if self.rules is None else self.rules.plain()
        plain = bytes(byte for byte in plain if byte not in self.words.first_bytes)
        # Most of most texts: to copy without looking at each character.
        self.run = re.compile(rb"[%b]+(?=[\0-\x7f])" % re.escape(plain)) if plain else None


class StreamNormalizer:
    r"""Normalizes one text. What is given out is certain; joined, it is the normalized text, in UTF-8.

    >>> stream = StreamNormalizer(Shape(NormalizerSpec(), []), prefix=True)
    >>> stream.push(b" a  "), stream.push(b"b  "), stream.push(b"", final=True)
    (b'\xe2\x96\x81a', b'\xe2\x96\x81b', b'')
    """

    __slots__ = ("_drop_spaces", "_pending", "_prefix", "_spaces", "_started", "shape")

    def __init__(self, shape: Shape, prefix: bool):
        self.shape = shape
        self._prefix = prefix
        self._pending = b""  # what has come and is not certain
        self._started = False  # whether there is anything but spaces that go
        self._drop_spaces = shape.spec.remove_extra_whitespaces
        self._spaces = 0  # so many spaces wait for what follows them

    def copy(self) -> StreamNormalizer:
        """Another one that has come as far."""
        new = object.__new__(StreamNormalizer)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        return new

    def push(self, data: bytes, *, whole: bool = False, final: bool = False) -> bytes:
        """The next part of the normalized text. `whole`: characters come whole; `final`: nothing follows."""
        shape = self.shape
        data = self._pending + data if self._pending else data
        if shape.simple:
            made = self._simple(data, whole, final)
        else:
            made = self._rewrite(data, final)
            if shape.spec.remove_extra_whitespaces:
                made = self._hold_spaces(made)
        if final and self._started and self._prefix and shape.spec.suffix:
            made += shape.space
        return made

    def _start(self) -> bytes:
        """What stands in front of a text that turns out not to be empty."""
        self._started = True
        return self.shape.space if self._prefix and not self.shape.spec.suffix else b""

    def _simple(self, data: bytes, whole: bool, final: bool) -> bytes:
        front = self._start() if data and not self._started else b""
        if not whole:
            text, used = certain(data, final)
            self._pending = data[used:]
            data = text.encode()
        return front + data.replace(b" ", self.shape.space)

    def _rewrite(self, data: bytes, final: bool) -> bytes:
        """All that is certain, rewritten; the rest is kept."""
        squeeze, space, run = self.shape.spec.remove_extra_whitespaces, self.shape.space, self.shape.run
        parts: list[bytes] = []
        if data and not squeeze and not self._started:
            parts.append(self._start())
        at = 0
        while at < len(data):
            found = run.match(data, at) if run else None
            step = (found[0], len(found[0])) if found else self._next(data, at, final)
            if step is None:
                break
            rewritten, used = step
            at += used
            if not self._started:
                if rewritten == b" ":
                    continue
                parts.append(self._start())
            if self._drop_spaces:
                rewritten = rewritten.lstrip(b" ")
            if rewritten:
                self._drop_spaces = squeeze and rewritten.endswith(b" ")
                parts.append(rewritten.replace(b" ", space))
        self._pending = data[at:]
        return b"".join(parts)

    def _next(self, data: bytes, at: int, final: bool) -> tuple[bytes, int] | None:
        """What stands at `at` once rewritten, and how much that takes; None if more text could change it."""
        shape = self.shape
        if not final and shape.words.could_grow(data, at):
            return None
        length = shape.words.longest(data, at)
        if length:
            return data[at : at + length], length
        if shape.rules is not None:
            length, grows = shape.rules.find(data, at)
            if grows and not final:
                return None
            rule = shape.rules.longest(data, at) if length else None
            if rule is not None:
                return rule
        character = valid_character(data, at)
        if character is not None:
            return character, len(character)
        return (REPLACEMENT, 1) if final or certain(data[at : at + 4])[1] else None

    def _hold_spaces(self, made: bytes) -> bytes:
        """Without the spaces at its end, of which only the number is kept: a run of them may be long."""
        space = self.shape.space
        text = made.decode()  # valid: see Shape.is_text
        kept = text.rstrip(space.decode()).encode()
        spaces = (len(made) - len(kept)) // len(space)
        if not kept:
            self._spaces += spaces
            return b""
        made = space * self._spaces + kept
        self._spaces = spaces
        return made
