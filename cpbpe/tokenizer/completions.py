r"""`Tokenizer.completions`: which last ids of a prompt could change with what follows it.

The ids of a prompt often differ from the first ids of the whole text: `http:` ends in the id of `:`, but
`http://` ends in that of `://`. A network that has to continue after `:` faces something that it never saw in
training. *Token healing* solves this: it takes the last ids back and lets the network choose them again, but
only among ids that fit the text of the prompt. This file computes exactly which ids to take back, and which
may come instead:

- An **ending** consists of the ids of some text that begins with the prompt, up to the first id whose text
  reaches the end of the prompt or goes beyond it.
- The ids with which all endings begin are **stable**: the ids of every text that begins with the prompt begin
  with them.

**Why there are finitely many endings.** Let T be the prompt, M any text that follows, and TM both together.
The first ids of a text, up to any of them, are also the ids of the part of the text that they stand for. The
reason is that no merge crosses the end of the last of these ids. So when that part is merged by itself, the
same merges are made in the same order; what follows never had a part in them. Now look at the first id of TM
that ends at the end of T or after it.

- If it ends at the end of T, the ids so far are those of T.
- Otherwise it is the id of a piece p that begins in T, at some i, and goes beyond its end: p begins with
  T[i:] and is longer. The ids before it are those of T[:i], and together with it they are those of T[:i]p.

The longest piece has some dozens of bytes, so i is near the end, and p is found in the sorted vocabulary. For
each (i, p) the text T[:i]p is encoded. If its last id is that of p, its ids are an ending, and the rest of p
after T[i:] is a text that leads to it. All of this is about normalized text. Some models need more:

- **Rules of a normalizer** may rewrite the last characters of T together with what follows (e and an accent).
  `_Continuations` knows which part of T is not final yet, which rules may begin in it, and which text is
  normalized to the rest of p.
- **Symbols that become several ids** (UNUSED pieces, bytes of an unknown character): p is such a symbol, and
  the ending has those of its ids that begin before the end of T. Unknown characters side by side have one id.
- **User-defined pieces** need nothing else: T[:i]p and T[:i]pM hold the same ones up to the end of p, because
  the longest one at each place is found, whatever follows it.
- **A pattern** cuts the text first (byte-level models), and where it cuts T depends on M. So T[:i]p is also
  encoded with short texts after it. These *probes* stand for everything that a pattern can tell apart
  (`cpbpe.text.split_probes`).
- **A chunk that is a piece** is taken whole, even if no merges make it. The ids of T[:i]p alone may then
  differ from those that it has when its chunk goes on. So the probes are tried here too, and then all pieces.
- **A piece that ends within a character** is completed by every character that begins with these bytes.
- **Special tokens**, if they are allowed, may begin in T and end in M.

Every ending that is returned was observed: it is taken from the ids of a text. Tests check that none is
missing: they go through all short texts and what can follow them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import checked_text
from cpbpe.engine.protocol import Text
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.text.split_probes import is_probed
from cpbpe.text.utf8 import SPACE, certain, valid_character
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.stream_normalizer import MAX_KEY, Shape, StreamNormalizer
from cpbpe.tokenizer.streams import SpecialKeys
from cpbpe.tokenizer.tails import Tail, stable_cut

IdArray = NDArray[np.uint32]
Mask = NDArray[np.bool_]

_MARKS = "☃⁂⸘" + "".join(map(chr, range(0xE000, 0xE100)))
"""Candidates for a character that is in no piece and in no rule, so that nothing merges with it."""
_MAX_RULES = 1 << 20
_TRIED = 200
"""At most this many texts are tried that could be normalized to a given text."""


class Ending(NamedTuple):
    """One way in which the ids of a prompt can end."""

    ids: tuple[int, ...]
    """The ids after the stable ones. The last of them may reach beyond the end of the prompt."""
    more: str
    """A text that leads to this ending: the ids of the prompt with this text after it begin in this way."""


@dataclass(frozen=True, eq=False)
class Completions:
    r"""Which ids of a prompt are stable, and how it can end. `Tokenizer.completions` makes one.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> end = tok.completions("The address is http:")
    >>> tok.decode(end.ids), end.rest, tok.encode("The address is http:") == end.ids + end.unstable
    ('The address is http', b':', True)
    >>> sorted(tok.vocab[id] for id in end.next_ids.tolist())[:4]
    [':', ':\r', ':"', ':",']
    """

    text: Text
    """The prompt."""
    ids: list[int]
    """The stable ids: the ids of every text that begins with the prompt begin with these."""
    unstable: list[int]
    """The ids of the prompt after these. Each ending has others, or the same."""
    rest: bytes
    """The end of the prompt, in UTF-8, which the stable ids do not cover."""
    exact: bool
    """Whether each ending is known to occur. If it is false, some may not: see docs/streaming.md."""
    _continuations: dict[tuple[int, ...], bytes]
    """The ids of the endings, each with a text that leads to it."""
    _size: int
    """How many ids there are."""

    @kept
    def endings(self) -> Sequence[Ending]:
        """All ways in which the ids can go on after the stable ones, up to the end of the prompt."""
        return [Ending(ids, more.decode()) for ids, more in self._continuations.items()]

    @kept
    def next_ids(self) -> IdArray:
        """The ids that can come right after the stable ones, in ascending order; none if nothing is unstable.

        An ending without ids (the prompt ends in a space that the model removes there) adds none.
        """
        return np.array(sorted({ids[0] for ids in self._continuations if ids}), np.uint32)

    @kept
    def mask(self) -> Mask:
        """The same for all ids of the vocabulary: whether each is one of them."""
        allowed: Mask = np.zeros(self._size, np.bool_)
        allowed[self.next_ids] = True
        return allowed

    def __repr__(self) -> str:
        return (
            f"<cpbpe.Completions: {len(self.ids)} stable ids, {len(self.unstable)} unstable, rest "
            f"{self.rest!r}, {len(self._continuations)} endings>"
        )


def completions(facts: ModelFacts, plan: EncodePlan, text: Text) -> Completions:
    """What can become of a prompt. See `Tokenizer.completions`."""
    given = checked_text(text, "completions")
    data = given.encode() if isinstance(given, str) else given
    complete = certain(data)[1]
    if complete < len(data):
        raise ValueError(
            f"the prompt ends within a character, in the bytes {data[complete:]!r}; pass what is before "
            f"them, and keep them for the text that follows"
        )
    # 1. The last segment, if there are special tokens, and the place where another one may begin.
    done, open_at, keys = 0, len(data), None
    if isinstance(plan.encoder, SpecialEncoder) and plan.encoder.finder is not None:
        keys = SpecialKeys(plan.encoder.finder, "completions")
        plan.encoder.split(given)  # refuses what must not be there
        tokens, open_at = keys.find(data, 0, final=False)
        done = tokens[-1].end if tokens else 0
        inside, _ = keys.find(data, open_at, final=True)
        if inside and inside[0].end < len(data):
            raise ValueError(
                f"the prompt ends in what may become a longer special token than {inside[0].text!r}, which "
                f"is in it; allow only one of them (allowed_special)"
            )
    # 2. The ids of the prompt, and where each begins.
    ids, _, spans = plan.encoder.align(data, False, True)
    before = sum(1 for begin, _ in spans if begin < done) if done else 0
    # 3. How the last segment can end.
    search = _Search(facts, plan, data[done:], done > 0, open_at - done, keys)
    search.run()
    # 4. The ids that all endings share. (The ids of the prompt alone are one of the endings.)
    rows = list(search.endings)
    common = 0
    if rows:
        lowest, highest = min(rows), max(rows)
        while common < min(len(lowest), len(highest)) and lowest[common] == highest[common]:
            common += 1
    stable = before + search.head + common
    rest = b""
    if len(rows) > 1:
        last = max((end for _, end in spans), default=0)
        rest = data[(spans[stable][0] if stable < len(ids) else last) :]
    return Completions(
        text=given,
        ids=plan.front + ids[:stable],
        unstable=ids[stable:],
        rest=rest,
        exact=search.exact,
        _continuations={row[common:]: more for row, more in search.endings.items()},
        _size=facts.special.size,
    )


# --- The search for endings -----------------------------------------------------------------------


class _Search:
    """Finds the endings of one segment of a text."""

    def __init__(
        self,
        facts: ModelFacts,
        plan: EncodePlan,
        text: bytes,
        later: bool,
        open_at: int,
        keys: SpecialKeys | None,
    ):
        """`later`: the segment comes after a special token. `open_at`: where one of `keys` may begin."""
        self._facts = facts
        self._plan = plan
        self._text = text
        self._later = later
        self._open_at = open_at
        self._keys = keys
        self._unknown_before = -1  # the UNKNOWN id, if it is the last id before the endings; otherwise -1
        self.head = 0
        """How many ids of the segment come before the endings. They are certain."""
        self.endings: dict[tuple[int, ...], bytes] = {}
        """The endings: the ids after these up to the end of the text, with a text that leads to them."""
        self.exact = True
        """Whether each ending is known to occur."""

    def run(self) -> None:
        """Find all endings."""
        if not self._text:
            self.endings[()] = b""
            return
        prefix = self._plan.prefix_space
        if self._later and not self._plan.prefix_after_special:
            prefix = False
        state = _Continuations(self._facts, prefix, self._text)
        if state.is_empty:  # nothing but spaces that are removed
            self.endings[()] = b""
            self._of_special_tokens()
            return
        # 1. The certain ids: those before a place where nothing can merge.
        engine = self._facts.engine.variant(raw=True)
        fixed = state.fixed
        if self._open_at < len(self._text):  # a special token may begin there, which ends the text before it
            fixed = _Continuations(self._facts, prefix, self._text[: self._open_at]).fixed
        cut = engine.cut(fixed) if fixed else 0
        head = engine.encode(state.fixed[:cut]) if cut else []
        place, ids = stable_cut(self._facts, engine, fixed[cut:])
        unk = self._facts.stream_unk if head or ids else -1
        is_run = ids[:1] == head[-1:] == [unk]  # unknown characters on both sides are one token
        cut, head = cut + place, head + ids[is_run:]
        self.head = len(head)
        self._unknown_before = unk if head and head[-1] == unk else -1
        # 2. The text alone, and all that can follow it.
        for text, end, more in state.alone():
            tail = Tail(self._facts, engine, text[cut:], end - cut)
            self._add(tail.rows([b""])[0][0], more)
        for base in state.bases():
            self._of_base(state, base, Tail(self._facts, engine, base.text[cut:], base.end - cut))
        self._of_special_tokens()

    def _of_base(self, state: _Continuations, base: _Base, tail: Tail) -> None:
        made: dict[tuple[int, ...], list[bytes]] = {}
        for rows, rests in tail.endings():
            if state.is_simple and self._keys is None and self._unknown_before < 0:
                for ids, after in zip(rows, state.realized_all(base, rests), strict=True):
                    self.endings.setdefault(ids, after)
                continue
            for ids, rest in zip(rows, rests, strict=True):
                made.setdefault(ids, []).append(rest)
        for ids, ways in made.items():
            if self._without_run(ids) in self.endings:
                continue
            for rest in ways:
                more = state.realized(base, rest)
                if more is not None and self._add(ids, more):
                    break
            else:
                if state.may_miss and self._keys is None:
                    self.exact = False
                    self._add(ids, base.more + ways[0])

    def _without_run(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids without the first, if that belongs to the run of unknown characters before it."""
        return ids[1:] if ids and ids[0] == self._unknown_before else ids

    def _add(self, ids: tuple[int, ...], more: bytes) -> bool:
        """Keep an ending, unless a special token is found in the text that leads to it."""
        if self._keys is not None and self._keys.find(self._text + more, self._open_at, final=True)[0]:
            return False
        self.endings.setdefault(self._without_run(ids), more)
        return True

    def _of_special_tokens(self) -> None:
        """The endings in which a special token begins in the text."""
        encoder = self._plan.encoder
        if self._keys is None or not isinstance(encoder, SpecialEncoder):
            return
        text, size = self._text, len(self._text)
        own = encoder.after_special() if self._later else encoder
        for more in (b"", *self._keys.rests(text, self._open_at)):
            try:
                ids, _, spans = own.align(text + more, False, True)
            except ValueError:  # a token that is not allowed
                continue
            row = tuple(id for id, (begin, _) in zip(ids, spans, strict=True) if begin < size)
            self.endings.setdefault(row[self.head :], more)


# --- What can follow a text -----------------------------------------------------------------------


class _Base(NamedTuple):
    """A normalized form of a text, for one way in which a key at its end can be completed."""

    text: bytes
    """The normalized text."""
    more: bytes
    """The rest of that key, which follows the text as it was given."""
    end: int
    """Where the text ends within the normalized text."""


class _Continuations:
    """What can follow one text, as a normalizer sees it.

    A normalizer takes a text unit by unit. A unit is the longest key (of a rule, or a user-defined piece)
    that begins at a place, or else one character. All units are final (`StreamNormalizer`) except those near
    the end of the text, in its *open* part, where more text may complete a longer key. So what follows the
    text is one of these:

    - the rest of a key that begins in the open part, and then any units;
    - any units.

    Of these units, some must be normalized to the rest of a piece. Most text is its own normalized form. For
    other text, units are looked for that are normalized to it.
    """

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
        """Whether `realized` may miss a text that is normalized to a given one."""
        self.is_simple = shape.simple and not rules.suffix
        """Whether only spaces are rewritten, and nothing is put at the end."""
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
        """Yield the normalized text for the case that nothing follows, or only the rest of a key.

        The second value is where the text ends in it, the third is that rest. Nothing is yielded if all this
        would be the same as in `bases`.
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

    def bases(self) -> Iterator[_Base]:
        """Yield the normalized forms of the text for the case that something follows."""
        for more in (b"", *self._rests):
            made = self._after(more)
            if made is not None:
                end = len(self.fixed + made)
                # A rule may have turned the text into spaces, which are removed.
                if not self.fixed and not self.is_simple:
                    origins, size = self._engine.origins(self._text + more + self._mark)[1], len(self._text)
                    end = sum(1 for origin in origins[:end] if origin < size)
                yield _Base(self.fixed + made, more, end)

    def _after(self, more: bytes) -> bytes | None:
        """The normalized text after `fixed`, if `more` follows the text, and then something else."""
        if self.is_simple:
            return self._stream.copy().push(more)
        made = self._stream.copy().push(more + self._mark, final=True)
        suffix = self._shape.space if made.endswith(self._mark + self._shape.space) else b""
        made = made.removesuffix(suffix)
        return made.removesuffix(self._mark) if made.endswith(self._mark) else None

    @kept
    def _rests(self) -> list[bytes]:
        """The rests of the keys that begin in the open part of the text."""
        found: dict[bytes, None] = {}
        text = self._open
        for at in range(len(text)):
            begin = text[at:]
            keys = self._shape.user_defined.beginning_with(begin)
            if self._shape.charsmap is not None:
                keys += [key for key, _ in self._shape.charsmap.rules(_MAX_RULES, begin=begin)]
            for key in keys:
                more = key[len(begin) :]
                if more and self._ends_in_one_unit(more):
                    found[more] = None
        return list(found)

    def _ends_in_one_unit(self, more: bytes) -> bool:
        """Whether the last unit of the text followed by `more` begins in the text."""
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

    def realized(self, base: _Base, rest: bytes) -> bytes | None:
        """A text to follow the prompt, so that `rest` follows the base; None if none was found."""
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
        for letters in islice(product(*map(self._texts_for, rest.decode())), _TRIED):
            for between in (b"", *self._nothing):
                more = self._checked(base, rest, between + between.join(letters))
                if more is not None:
                    return more
        return None

    def realized_all(self, base: _Base, rests: list[bytes]) -> list[bytes]:
        """The same for many rests, if the model is simple."""
        if not self._shape.spec.escape_whitespaces or self._facts.spec.alphabet == "bytes":
            return rests
        return [rest.replace(SPACE, b" ") for rest in rests]

    def _checked(self, base: _Base, rest: bytes, way: bytes) -> bytes | None:
        """The text to follow the prompt that is written as `way`; None if it is not normalized to `rest`."""
        more = base.more + way
        made = self._after(more)
        if made is None or self.fixed + made != base.text + rest:
            return None
        alone = self.fixed + self._stream.copy().push(more, final=True)
        return more if alone == base.text + rest else more + self._mark

    def _texts_for(self, letter: str) -> list[bytes]:
        """Texts that are normalized to one character."""
        own = letter.encode()
        texts = [b" ", own] if own == SPACE else [own]
        return texts + self._sources.get(own.replace(SPACE, b" "), [])[:6]

    @kept
    def _sources(self) -> dict[bytes, list[bytes]]:
        """The keys of rules by what they become."""
        found: dict[bytes, list[bytes]] = {}
        if self._shape.charsmap is not None:
            try:
                for key, made in self._shape.charsmap.rules(_MAX_RULES, MAX_KEY):
                    found.setdefault(made, []).append(key)
            except ModelError:
                pass  # a crafted charsmap; then fewer texts are tried
        return found

    @kept
    def _nothing(self) -> list[bytes]:
        """Up to two keys that rules remove. Put between other keys, they prevent longer matches."""
        return self._sources.get(b"", [])[:2]


def _check_pattern(facts: ModelFacts) -> None:
    """Refuse patterns whose lookahead is not known, and normal forms, which may change the prompt itself."""
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
