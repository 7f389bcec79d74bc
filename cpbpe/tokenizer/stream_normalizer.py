"""Normalizes a text that arrives in parts, as `Normalizer` in `cpbpe.reference.encoding` does a whole text.

Some text has to wait for the next part:

- an incomplete character;
- text that may be the beginning of a longer key (of a rule, or a user-defined piece);
- spaces, if extra whitespace is removed, because they are dropped if nothing follows;
- letters and marks, if there is a Unicode normal form, because they may be composed with what follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from cpbpe.model.spec import MAX_USER_DEFINED_MATCHES, NormalizerSpec
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.finder import Finder
from cpbpe.text.unicode_forms import last_boundary
from cpbpe.text.utf8 import REPLACEMENT, SPACE, certain, valid_character

T = TypeVar("T")
MAX_KEY = 100
"""With rules that are longer than this, text is not normalized in parts. (No known model has any. In a
crafted charsmap rules may be endless, and at every place of a text one could begin that goes on to its end.)
"""


class Shape:
    """The normalization rules of one model, in a form that all its streams share."""

    def __init__(
        self,
        spec: NormalizerSpec,
        user_defined: list[bytes],
        rewrite: Callable[[bytes], bytes] | None = None,
    ):
        """`user_defined`: the pieces of this type. The charsmap must be one that an engine has checked.
        `rewrite` brings a text into the Unicode normal form of the model, if it has one.
        """
        self.spec = spec
        self.rewrite = rewrite
        self.user_defined = Finder(user_defined, MAX_USER_DEFINED_MATCHES)
        self.charsmap = Charsmap(spec.charsmap, trusted=True) if spec.charsmap else None
        self.has_parts = self.charsmap is None or (
            self.charsmap.makes_text() and self.charsmap.longest_key(MAX_KEY, follow_empty=True) is not None
        )
        """Whether a text can be normalized in parts: not if rules are endless, or yield invalid UTF-8."""
        # Whether only spaces are rewritten. User-defined pieces make no difference then: valid text is copied
        # anyway, and in invalid text the pieces are copied because they are valid themselves.
        self.simple = self.charsmap is None and not spec.remove_extra_whitespaces
        self.only_spaces = self.simple and rewrite is None and not user_defined
        self.space = SPACE if spec.escape_whitespaces else b" "
        plain = bytes(range(0x21, 0x7F)) if self.charsmap is None else self.charsmap.unchanged_ascii()
        plain = bytes(byte for byte in plain if byte not in self.user_defined.first_bytes)
        # A run of characters that can be copied without looking at each; most text consists of such runs.
        self.run = re.compile(rb"[%b]+(?=[\0-\x7f])" % re.escape(plain)) if plain else None


def copied(stream: T, **changes: object) -> T:
    """A copy of an object, with changes. (Slots would be copied one by one, so its class has none.)"""
    new = object.__new__(type(stream))
    new.__dict__ = {**stream.__dict__, **changes}
    return new


class StreamNormalizer:
    r"""Normalizes one text. Its parts are final; joined, they are the normalized text, in UTF-8.

    >>> stream = StreamNormalizer(Shape(NormalizerSpec(), []), prefix=True)
    >>> stream.push(b" a  "), stream.push(b"b  "), stream.push(b"", final=True)
    (b'\xe2\x96\x81a', b'\xe2\x96\x81b', b'')
    """

    def __init__(self, shape: Shape, prefix: bool):
        self.shape = shape
        self._prefix = prefix
        self.pending = b""
        """Text whose form may still depend on what follows."""
        self._held: list[str] = []  # the same in complete characters, for a Unicode normal form
        self._started = False  # whether there was anything but dropped spaces
        self._drop_spaces = shape.spec.remove_extra_whitespaces
        self._spaces = 0  # how many spaces wait for what follows them

    def copy(self) -> StreamNormalizer:
        """A copy in the same state."""
        return copied(self, _held=self._held.copy())

    def state(self) -> dict[str, object]:
        """All that is not made from the model, with which `copied` makes the same one."""
        return {name: value for name, value in vars(self).items() if name != "shape"}

    @property
    def only_spaces(self) -> bool:
        """Whether a text that comes now stays as it is, but for the form of its spaces."""
        return self._started and self.shape.only_spaces

    def holds_less_than(self, size: int) -> bool:
        """Whether it holds back fewer bytes than this. (Spaces that wait are not included.)"""
        return len(self.pending) + sum(map(len, self._held)) < size

    def push(self, data: bytes, *, whole: bool = False, final: bool = False) -> bytes:
        """The next part of the normalized text.

        `whole`: `data` is valid UTF-8, and ends with a whole character. `final`: nothing follows.
        """
        shape = self.shape
        data = self.pending + data if self.pending else data
        if shape.rewrite is not None:
            made = self._normal_form(shape.rewrite, data, final)
        elif shape.simple:
            made = self._simple(data, whole, final)
        else:
            made = self._rewrite(data, final)
            if shape.spec.remove_extra_whitespaces:
                made = self._hold_spaces(made)
        if final and self._started and self._prefix and shape.spec.suffix:
            made += shape.space
        return made

    def _start(self, first: bytes) -> bytes:
        """The dummy prefix, once it is known that the text is not empty, and that it begins with `first`."""
        self._started = True
        spec, space = self.shape.spec, self.shape.space
        if spec.suffix or not (spec.prefix_before_space or not first.startswith((b" ", space))):
            return b""
        return space if self._prefix else b""

    def _simple(self, data: bytes, whole: bool, final: bool) -> bytes:
        if not whole:
            text, used = certain(data, final)
            self.pending = data[used:]
            data = text.encode()
        front = self._start(data) if data and not self._started else b""
        return front + data.replace(b" ", self.shape.space)

    def _normal_form(self, rewrite: Callable[[bytes], bytes], data: bytes, final: bool) -> bytes:
        """The normal form of the text that is final. Only new text is searched for the end of that."""
        text, used = certain(data, final)
        self.pending = data[used:]
        boundary = len(text) if final else last_boundary(self.shape.spec.unicode_form, text)
        if boundary is None:
            self._held.append(text)
            return b""
        ready = "".join([*self._held, text[:boundary]])
        self._held = [text[boundary:]]
        made = rewrite(ready.encode())
        front = self._start(made) if ready and not self._started else b""
        return front + made

    def _rewrite(self, data: bytes, final: bool) -> bytes:
        """Rewrite everything that more text cannot change, and keep the rest."""
        squeeze, space, run = self.shape.spec.remove_extra_whitespaces, self.shape.space, self.shape.run
        parts: list[bytes] = []
        early = self.shape.spec.prefix_before_space or self.shape.spec.suffix
        if data and not squeeze and early and not self._started:
            parts.append(self._start(data))
        at = 0
        while at < len(data):
            found = run.match(data, at) if run else None
            step = (found[0], len(found[0])) if found else self._next(data, at, final)
            if step is None:
                break
            rewritten, used = step
            at += used
            if not self._started and squeeze and rewritten == b" ":
                continue
            if self._drop_spaces:
                rewritten = rewritten.lstrip(b" ")
            if not self._started and (early or rewritten):
                parts.append(self._start(rewritten))
            if rewritten:
                self._drop_spaces = squeeze and rewritten.endswith(b" ")
                parts.append(rewritten.replace(b" ", space))
        self.pending = data[at:]
        return b"".join(parts)

    def _next(self, data: bytes, at: int, final: bool) -> tuple[bytes, int] | None:
        """As `Normalizer.rewrite`; None if more text could change the result."""
        shape = self.shape
        if not final and shape.user_defined.could_grow(data, at):
            return None
        length = shape.user_defined.longest(data, at)
        if length:
            return data[at : at + length], length
        if shape.charsmap is not None:
            rule, could_grow = shape.charsmap.longest_so_far(data, at)
            if could_grow and not final:
                return None
            if rule is not None:
                return rule
        character = valid_character(data, at)
        if character is not None:
            return character, len(character)
        return (REPLACEMENT, 1) if final or certain(data[at : at + 4])[1] else None

    def _hold_spaces(self, made: bytes) -> bytes:
        """Hold back the spaces at the end. Only their number is stored, because there may be many."""
        space = self.shape.space
        text = made.decode()  # valid: see Shape.has_parts
        kept = text.rstrip(space.decode()).encode()
        spaces = (len(made) - len(kept)) // len(space)
        if not kept:
            self._spaces += spaces
            return b""
        made = space * self._spaces + kept
        self._spaces = spaces
        return made
