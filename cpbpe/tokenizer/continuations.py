"""What can follow a text, as a normalizer sees it: see `endings.py`.

A normalizer takes a text unit by unit: the longest key of a rule or a user-defined piece that begins at a
place, or else one character. All units are final (`StreamNormalizer`) but those near the end of the text,
where a longer key may still come. So what follows the text is one of these:

- the rest of a key that begins in the open part of the text, and then anything;
- anything.

And "anything" is a sequence of units, whose normalized forms are searched for the text that a piece needs.
Most text is its own normalized form. For other text, units are looked for that are normalized to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import NamedTuple

from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.text.split_probes import is_probed
from cpbpe.text.utf8 import SPACE, valid_character
from cpbpe.tokenizer.facts import MAX_KEY, ModelFacts
from cpbpe.tokenizer.stream_normalizer import Shape, StreamNormalizer

_MARKS = "☃⁂⸘" + "".join(map(chr, range(0xE000, 0xE100)))
"""One of these is in no piece and in no rule, so nothing merges with it."""
_MAX_RULES = 1 << 20
_TRIED = 200
"""So many ways to write a text are tried at most."""


class Base(NamedTuple):
    """One way in which the open part of a text can end."""

    text: bytes
    """The normalized text."""
    more: bytes
    """What of the rest of a key follows the text as it was given."""
    end: int
    """Where the end of the text is in the normalized one."""


class Continuations:
    """What can follow one text."""

    def __init__(self, facts: ModelFacts, prefix: bool | None, text: bytes):
        """`prefix`: whether there is a dummy prefix; None: as the model says."""
        spec = facts.spec
        if spec.alphabet == "bytes":
            _check_pattern(facts)
            shape: Shape | None = Shape(replace(spec.normalizer), [])
        else:
            shape = facts.stream_shape
        if shape is None:
            raise ValueError(
                "completions() cannot tell what is certain in the texts of this model: it has pieces or "
                "rules that are not UTF-8, or rules without an end"
            )
        self._facts = facts
        self._shape = shape
        rules = shape.spec
        self._stream = StreamNormalizer(shape, rules.add_dummy_prefix if prefix is None else prefix)
        self._text = text
        self.fixed = self._stream.push(text)
        """The normalized text that is final."""
        self._open = self._stream.pending
        self.may_miss = shape.charsmap is not None
        """Whether a way to write a normalized text may be missed."""
        self.is_simple = shape.simple and not rules.suffix
        """Whether nothing is rewritten but spaces, and nothing is put at the end."""
        self._engine = facts.engine if prefix is None else facts.engine.variant(prefix=prefix)

    @kept
    def _mark(self) -> bytes:
        """A character that nothing merges with, and that is its own normalized form."""
        if self._facts.spec.alphabet == "bytes":
            return b""
        pieces = self._facts.spec.pieces.blob
        for mark in map(str.encode, _MARKS):
            rule = self._shape.charsmap and self._shape.charsmap.longest_so_far(mark, 0)
            if mark not in pieces and rule in (None, (None, False)):
                return mark
        raise ValueError("completions() found no character that is in no piece of this model")

    @kept
    def is_empty(self) -> bool:
        """Whether nothing of the text is left: it is spaces that are removed."""
        if self.fixed or self._rests or not self._shape.spec.remove_extra_whitespaces:
            return False
        spans = self._engine.align(self._text + self._mark, False, True)[2]
        return not spans or spans[0][0] >= len(self._text)

    # --- The ends of the text itself --------------------------------------------------------------

    def alone(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield the normalized text if nothing follows (or only the rest of a key), and where the text ends.

        The third value is that rest. Nothing is yielded if these are as in `bases`.
        """
        if self.is_simple:
            return
        for more in (b"", *self._rests):
            made = self.fixed + self._stream.copy().push(more, final=True)
            end = len(made)
            if self._shape.spec.suffix:
                origins, size = self._engine.origins(self._text + more)[1], len(self._text)
                end = sum(1 for origin in origins[:-1] if origin < size)
            yield made, end, more

    def bases(self) -> Iterator[Base]:
        """Yield the normalized forms of the text, as they are if something follows."""
        for more in (b"", *self._rests):
            made = self._after(more)
            if made is not None:
                end = len(self.fixed + made)
                if (
                    not self.fixed and not self.is_simple
                ):  # a rule may have made spaces of it, which are removed
                    origins, size = self._engine.origins(self._text + more + self._mark)[1], len(self._text)
                    end = sum(1 for origin in origins[:end] if origin < size)
                yield Base(self.fixed + made, more, end)

    def _after(self, more: bytes) -> bytes | None:
        """What comes after the fixed text if the text goes on so, and then with something else."""
        if self.is_simple:
            return self._stream.copy().push(more)
        made = self._stream.copy().push(more + self._mark, final=True)
        suffix = self._shape.space if made.endswith(self._mark + self._shape.space) else b""
        made = made.removesuffix(suffix)
        return made.removesuffix(self._mark) if made.endswith(self._mark) else None

    @kept
    def _rests(self) -> list[bytes]:
        """What makes keys of the open part of the text: the rests of those that begin in it."""
        found: dict[bytes, None] = {}
        text = self._open
        for at in range(len(text)):
            begin = text[at:]
            keys = self._shape.user_defined.beginning_with(begin)
            if self._shape.charsmap is not None:
                keys += self._shape.charsmap.keys_beginning_with(begin, _MAX_RULES)
            for key in keys:
                more = key[len(begin) :]
                if more and self._ends_in_one_unit(more):
                    found[more] = None
        return list(found)

    def _ends_in_one_unit(self, more: bytes) -> bool:
        """Whether the last unit of the text with this begins in the text."""
        whole, at = self._open + more, 0
        while True:
            length = self._shape.user_defined.longest(whole, at)
            if not length and self._shape.charsmap is not None:
                rule = self._shape.charsmap.longest(whole, at)
                length = rule[1] if rule else 0
            length = length or len(valid_character(whole, at) or b"x")
            if at + length >= len(whole):
                return at < len(self._open)
            at += length

    # --- What follows it --------------------------------------------------------------------------

    def realized(self, base: Base, rest: bytes) -> bytes | None:
        """A text that makes the base go on with this normalized text; None if none was found."""
        plain = rest.replace(SPACE, b" ") if self._shape.spec.escape_whitespaces else rest
        if self.is_simple:
            return base.more + plain
        run = self._shape.run
        if rest and not self._open and run is not None and run.fullmatch(rest + b"a"):
            return base.more + rest + (self._mark if self._shape.spec.suffix else b"")
        ways = [(plain,), (rest,)] if rest else [(b"",)]
        for way in ways:
            if (more := self._checked(base, rest, way[0])) is not None:
                return more
        for letters in islice(product(*map(self._ways, rest.decode())), _TRIED):
            for between in (b"", *self._nothing):
                more = self._checked(base, rest, between + between.join(letters))
                if more is not None:
                    return more
        return None

    def realized_all(self, base: Base, rests: list[bytes]) -> list[bytes]:
        """The same of many, if the model is simple."""
        if not self._shape.spec.escape_whitespaces or self._facts.spec.alphabet == "bytes":
            return rests
        return [rest.replace(SPACE, b" ") for rest in rests]

    def _checked(self, base: Base, rest: bytes, way: bytes) -> bytes | None:
        """What follows the text, if that is written so and becomes what it should be."""
        more = base.more + way
        made = self._after(more)
        if made is None or self.fixed + made != base.text + rest:
            return None
        alone = self.fixed + self._stream.copy().push(more, final=True)
        return more if alone == base.text + rest else more + self._mark

    def _ways(self, letter: str) -> list[bytes]:
        """Texts that are normalized to one character."""
        own = letter.encode()
        ways = [b" ", own] if own == SPACE else [own]
        return ways + self._sources.get(own.replace(SPACE, b" "), [])[:6]

    @kept
    def _sources(self) -> dict[bytes, list[bytes]]:
        """The keys of rules by what they become."""
        found: dict[bytes, list[bytes]] = {}
        if self._shape.charsmap is not None:
            try:
                for key, made in self._shape.charsmap.rules(_MAX_RULES, MAX_KEY):
                    found.setdefault(made, []).append(key)
            except ModelError:
                pass  # a crafted charsmap; fewer ways are tried
        return found

    @kept
    def _nothing(self) -> list[bytes]:
        """Two keys that become nothing, and so can keep others apart."""
        return self._sources.get(b"", [])[:2]


def _check_pattern(facts: ModelFacts) -> None:
    """Refuse a pattern that may look at anything that follows, and rules that may change what was there."""
    splitter, form = facts.spec.splitter, facts.spec.normalizer.unicode_form
    if form:
        raise ValueError(
            f"completions() works on text as it is, and this model brings it into the Unicode normal form "
            f"{form}: what follows a prompt may change its last character"
        )
    if splitter is not None and splitter.then:
        raise ValueError(
            "completions() knows what the published patterns look at after a chunk, and this model cuts text "
            "by several patterns"
        )
    if splitter is not None and not is_probed(splitter.pattern):
        raise ValueError(
            f"completions() knows what the published patterns look at after a chunk, and this model has one "
            f"of its own: {splitter.pattern!r}. With it, what follows a prompt may change any of its ids"
        )
