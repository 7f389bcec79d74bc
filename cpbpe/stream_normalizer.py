"""Normalizing a text in parts: what `Normalizer` in `cpbpe/reference.py` does, as early as it is certain.

What keeps a step waiting: a character of which bytes are missing; the beginning of a rule or of a
user-defined piece that could become a longer one; and, where extra whitespace is removed, spaces, which may
be the last.
"""

from __future__ import annotations

import codecs
import re

from cpbpe.charsmap import _LEAF, Charsmap, _has_leaf, _label, _offset
from cpbpe.reference import REPLACEMENT, SPACE, Matcher, valid_character
from cpbpe.spec import NormalizerSpec

_EACH = "cpbpe.each"


def _each(error: UnicodeError) -> tuple[str, int]:
    """One U+FFFD for every bad byte, as `cpbpe.reference.repair` writes; "replace" joins some of them."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(_EACH, _each)


def certain(data: bytes, final: bool = False) -> tuple[str, int]:
    r"""The text of bytes, and how many of them it took: all, but a character that is not complete yet.

    >>> certain(b"a\xe2\x96"), certain(b"a\xe2\x96", final=True), certain(b"\xe2\x96!\xc0")
    (('a', 1), ('a��', 3), ('��!�', 4))
    """
    text, used = codecs.utf_8_decode(data, _EACH, final)
    if len(data) - used == 2 and data[used] == 0xED and data[used + 1] >= 0xA0:
        # Half a surrogate: Python holds it back for a handler that lets surrogates pass.
        return text + "\ufffd\ufffd", used + 2
    return text, used


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


class Shape:
    """What normalizing one model's text takes: made once, and shared by its streams."""

    def __init__(self, spec: NormalizerSpec, words: list[bytes]):
        self.spec = spec
        self.words = Matcher(words)
        self.longest_word = max(map(len, words), default=0)
        self.beginnings = {word[:end] for word in words for end in range(1, len(word))}
        self.rules = Rules(spec.charsmap) if spec.charsmap else None
        self.is_text = self.rules is None or self.rules.is_text()
        # Nothing but spaces to write in another way. User-defined pieces are copied, which changes nothing in
        # valid text, nor in other text if they are valid themselves.
        self.simple = self.rules is None and not spec.remove_extra_whitespaces
        self.space = SPACE if spec.escape_whitespaces else b" "
        plain = bytes(range(0x21, 0x7F)) if self.rules is None else self.rules.plain()
        plain = bytes(byte for byte in plain if not any(word[0] == byte for word in words))
        # Most of most texts: to copy without looking at each character.
        self.run = re.compile(rb"[%b]+(?=[\0-\x7f])" % re.escape(plain)) if plain else None


class StreamNormalizer:
    r"""Normalizes one text. What is given out is certain; joined, it is the normalized text, in UTF-8.

    >>> stream = StreamNormalizer(Shape(NormalizerSpec(), []), prefix=True)
    >>> stream.push(b" a  "), stream.push(b"b  "), stream.push(b"", final=True)
    (b'\xe2\x96\x81a', b'\xe2\x96\x81b', b'')
    """

    __slots__ = ("_drop_spaces", "_pending", "_prefix", "_shape", "_spaces", "_started")

    def __init__(self, shape: Shape, prefix: bool):
        self._shape = shape
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
        shape = self._shape
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
        return self._shape.space if self._prefix and not self._shape.spec.suffix else b""

    def _simple(self, data: bytes, whole: bool, final: bool) -> bytes:
        front = self._start() if data and not self._started else b""
        if not whole:
            text, used = certain(data, final)
            self._pending = data[used:]
            data = text.encode()
        return front + data.replace(b" ", self._shape.space)

    def _rewrite(self, data: bytes, final: bool) -> bytes:
        """All that is certain, rewritten; the rest is kept."""
        squeeze, space, run = self._shape.spec.remove_extra_whitespaces, self._shape.space, self._shape.run
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
        shape = self._shape
        if not final and len(data) - at < shape.longest_word and data[at:] in shape.beginnings:
            return None
        length = shape.words.longest(data, at) if shape.longest_word else 0
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
        space = self._shape.space
        text = made.decode()  # valid: see Shape.is_text
        kept = text.rstrip(space.decode()).encode()
        spaces = (len(made) - len(kept)) // len(space)
        if not kept:
            self._spaces += spaces
            return b""
        made = space * self._spaces + kept
        self._spaces = spaces
        return made
