"""Texts that grow and change: `Document`, whose ids are always those of its whole text.

A document is kept in parts of some thousand characters. In front of each there is a `StreamEncoder` that has
taken all text before it. So a change need not begin at the beginning of the text: an encoder goes on from the
last part that begins before the change. It need not go on to the end, either. What a stream returns follows
from its state and from the text that still comes. So as soon as the encoder is in the state that another one
had in front of an old part, that part and all after it are kept as they are.

This assumes nothing about the model. Where a text has no place at which it can be cut, the state holds much
text, and more is encoded again; the result is the same.

Documents share the parts that they have in common, so that many which began as one take little memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import chain
from operator import index
from typing import Any, NamedTuple, SupportsIndex

from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.streams import StreamEncoder

PART = 1 << 12
"""A part has about this many characters. It has more where the stream holds back this many bytes, or more."""
SMALL = PART // 8
"""A part that a change leaves with fewer characters is joined with the next one."""


class WholeText:
    """Takes the place of a `StreamEncoder` if ids are known only when all of a text is there."""

    def __init__(self, plan: EncodePlan, text: str = ""):
        self._plan = plan
        self._text = text

    def push(self, text: str) -> list[int]:
        """Take the next part of the text."""
        self._text += text
        return []

    def flush(self) -> list[int]:
        """The ids."""
        return self._plan.encoder.encode(self._text, self._plan.ends)

    def copy(self) -> WholeText:
        """Another one that continues from here."""
        return WholeText(self._plan, self._text)

    def resumed(self, at: int) -> WholeText:
        """A copy. (`at` is for errors, which name a place: see `StreamEncoder.resumed`.)"""
        return self.copy()

    def is_equivalent_to(self, other: object) -> bool:
        """Whether both return the same ids for all text that may come."""
        return False

    def holds_less_than(self, size: int) -> bool:
        """Whether it holds back fewer bytes than this."""
        return False


def waits_for_all(plan: EncodePlan) -> bool:
    """Whether texts are searched for special tokens that later text decides about."""
    finder = plan.encoder.finder if isinstance(plan.encoder, SpecialEncoder) else None
    return finder is not None and finder.odd is not None


_Stream = StreamEncoder | WholeText


class _Part(NamedTuple):
    """A part of a text."""

    before: _Stream
    """An encoder that has taken what is before the part."""
    text: str
    ids: list[int]
    """The ids that became certain with the part."""


class Document:
    """A text and its ids. It never changes: `append`, `replace` and `changed_to` return another document.

    How long they take depends on the size of the change, and hardly on that of the text. `Tokenizer.document`
    makes one. It can be pickled.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> prompt = tok.document("Hello wor")
    >>> longer = prompt.append("ld! How are you?")
    >>> longer.ids == tok.encode("Hello world! How are you?")
    True
    >>> longer.replace(0, 5, "Goodbye").text
    'Goodbye world! How are you?'
    """

    __slots__ = ("_after", "_again", "_begins", "_last_ids", "_parts")

    def __init__(self, text: str, stream: _Stream, again: Callable[[str], Document]):
        """`stream` is a new one, and `again` makes a document with the same options."""
        if not isinstance(text, str):
            raise TypeError(f"a document is made of str, not {type(text).__name__}; decode bytes first")
        self._again = again
        writer = _Writer([_Part(stream.copy(), "", [])], [0], stream)
        writer.write(text)
        self._set(writer)

    def _set(self, writer: _Writer) -> None:
        self._parts = writer.parts
        self._after = writer.stream
        self._begins = writer.begins
        """Where each part begins, and where the last one ends."""
        self._begins.append(self._begins[-1] + len(self._parts[-1].text))
        self._last_ids: list[int] | None = None

    # --- What it holds ----------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text."""
        return "".join(part.text for part in self._parts)

    @property
    def ids(self) -> list[int]:
        """The ids: those that `Tokenizer.encode` returns for the text with the same options."""
        return [*chain.from_iterable(part.ids for part in self._parts), *self._flushed()]

    def _flushed(self) -> list[int]:
        """The ids that are certain only because nothing follows."""
        if self._last_ids is None:
            self._last_ids = self._after.resumed(len(self)).flush()
        return self._last_ids

    def __len__(self) -> int:
        """How many characters the text has."""
        return self._begins[-1]

    def __repr__(self) -> str:
        start = self._parts[0].text[:40]
        return f"<cpbpe.Document of {len(self):,} characters: {start!r}{'...' * (len(self) > len(start))}>"

    def common_ids(self, other: Document) -> int:
        """How many ids at the beginning are the same in both documents.

        A server that has computed these for one prompt need not compute them for the other.

        >>> import cpbpe
        >>> prompt = cpbpe.load("tokenizer.model").document("What is BPE? Answer in one sentence.")
        >>> prompt.common_ids(prompt.replace(23, 26, "two"))
        7
        """
        if not isinstance(other, Document):
            raise TypeError(f"common_ids() takes a Document, not {type(other).__name__}")
        count = same = 0
        for part, others in zip(self._parts, other._parts, strict=False):
            if part is not others:
                break
            count += len(part.ids)
            same += 1
        own = chain.from_iterable(part.ids for part in self._parts[same:])
        others_own = chain.from_iterable(part.ids for part in other._parts[same:])
        return count + _common([*own, *self._flushed()], [*others_own, *other._flushed()])

    # --- Changes ----------------------------------------------------------------------------------

    def append(self, text: str) -> Document:
        """The document with more text at its end.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").document("Hello wor").append("ld").ids
        [22557, 1526]
        """
        if not isinstance(text, str):
            raise TypeError(f"append() takes str, not {type(text).__name__}")
        writer = _Writer(self._parts[:], self._begins[:-1], self._after.resumed(self._begins[-1]))
        writer.write(text)
        return self._written(writer)

    def replace(self, begin: SupportsIndex, end: SupportsIndex, text: str) -> Document:
        """The document with another text in place of the characters from `begin` to `end`.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").document("Hello world").replace(5, 6, ", ").text
        'Hello, world'
        """
        first, last = index(begin), index(end)
        if not 0 <= first <= last <= len(self):
            raise IndexError(
                f"replace({first}, {last}, ...): the places must be in order, and within 0 to {len(self)}, "
                f"the number of characters"
            )
        if not isinstance(text, str):
            raise TypeError(f"replace() takes str, not {type(text).__name__}")
        if first == len(self):
            return self.append(text)
        # 1. What stays in front: whole parts, and the beginning of one, which is encoded again.
        at = bisect_right(self._begins, first) - 1
        part = self._parts[at]
        stream = part.before.resumed(self._begins[at])
        parts = [*self._parts[:at], _Part(stream.copy(), "", [])]
        writer = _Writer(parts, self._begins[: at + 1], stream)
        text = part.text[: first - self._begins[at]] + text
        # 2. The new text, and the rest of the part in which the change ends.
        at = bisect_right(self._begins, last, hi=len(self._parts)) - 1
        writer.write(text + self._parts[at].text[last - self._begins[at] :])
        # 3. The parts after it, up to one that is encoded as before.
        for number in range(at + 1, len(self._parts)):
            old = self._parts[number]
            if writer.is_large_enough() and writer.stream.is_equivalent_to(old.before):
                writer.keep(self._parts[number:], self._after)
                break
            writer.write(old.text)
        return self._written(writer)

    def _written(self, writer: _Writer) -> Document:
        """Another document, with the same options."""
        new = object.__new__(type(self))
        new._again = self._again
        new._set(writer)
        return new

    def changed_to(self, text: str) -> Document:
        r"""The document of another text, for when it is not known where it differs.

        What both have in common at the beginning and at the end is compared, and not encoded.

        >>> import cpbpe
        >>> prompt = cpbpe.load("tokenizer.model").document("user: Hi\n")
        >>> prompt.changed_to("user: Hi\nassistant: Hello!").text
        'user: Hi\nassistant: Hello!'
        """
        if not isinstance(text, str):
            raise TypeError(f"changed_to() takes str, not {type(text).__name__}")
        # Whole parts are compared, and then the characters of the first one that differs.
        front = back = 0
        for part in self._parts:
            if not text.startswith(part.text, front):
                front += _common(part.text, text[front : front + len(part.text)])
                break
            front += len(part.text)
        most = min(len(self), len(text)) - front
        for part in reversed(self._parts):
            end = len(text) - back
            if len(part.text) > most - back or not text.endswith(part.text, 0, end):
                size = min(len(part.text), most - back)
                back += _common(part.text[len(part.text) - size :][::-1], text[end - size : end][::-1])
                break
            back += len(part.text)
        return self.replace(front, len(self) - back, text[front : len(text) - back])

    # --- Copies -----------------------------------------------------------------------------------

    def __copy__(self) -> Document:
        return self

    def __deepcopy__(self, memo: object) -> Document:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (self.text,)


class _Writer:
    """Encodes text into parts."""

    def __init__(self, parts: list[_Part], begins: list[int], stream: _Stream):
        """The last part goes on, and `stream` has taken all of it. Both lists are changed."""
        self.parts = parts
        self.begins = begins
        """Where each part begins, the last one included."""
        self.stream = stream

    def write(self, text: str) -> None:
        """Go on with a text."""
        at = 0
        while at < len(text):
            before, written, ids = self.parts[-1]
            rest = len(text) - at
            # (An old part may follow the end of this text. So that no tiny part comes between, a part that is
            # full takes the last few characters as well.)
            is_full = len(written) >= PART and (rest >= SMALL or len(written) >= PART + SMALL)
            if is_full and self.stream.holds_less_than(PART):
                before, written, ids = self._go_on_with(_Part(self.stream.copy(), "", []))
            room = max(PART - len(written), SMALL)
            portion = text[at:] if rest <= room + SMALL else text[at : at + room]
            self.parts[-1] = _Part(before, written + portion, ids + self.stream.push(portion))
            at += len(portion)

    def _go_on_with(self, part: _Part) -> _Part:
        """Another part is the last one now. The one before it stays if it has text."""
        size = len(self.parts[-1].text)
        if size:
            self.begins.append(self.begins[-1] + size)
            self.parts.append(part)
        else:
            self.parts[-1] = part
        return part

    def is_large_enough(self) -> bool:
        """Whether the last part may be followed by another."""
        size = len(self.parts[-1].text)
        return not size or size >= SMALL

    def keep(self, parts: list[_Part], after: _Stream) -> None:
        """Go on with parts that are there."""
        for part in parts:
            self._go_on_with(part)
        self.stream = after


def _common(one: Any, other: Any) -> int:
    """How many items at the beginning of two strings or lists are the same."""
    most = min(len(one), len(other))
    # Slices are compared that double in size as long as they are the same, and then are halved.
    same, step = 0, 64
    while same < most and one[same : same + step] == other[same : same + step]:
        same = min(same + step, most)
        step *= 2
    while step > 1:
        step //= 2
        if same + step <= most and one[same : same + step] == other[same : same + step]:
            same += step
    return same
