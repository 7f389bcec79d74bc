r"""`Tokenizer.completions`: which last ids of a prompt could change with what follows it.

The ids of a prompt are seldom the beginning of the ids of the whole text: `http:` ends in the id of `:`, and
`http://` in that of `://`. A network that has to go on after `:` is asked for something that it never saw.
The way out, *token healing*, takes the last ids back and lets the network choose them again, but only among
those that the text allows. This says which ids to take back, and what may come instead, exactly:

- an **ending** is the ids of some text that begins with the prompt, up to the first id that reaches the end
  of the prompt or goes beyond it. (`endings.py` says why there are finitely many, and finds all of them.)
- what all endings have in common is **stable**: the ids of every text that begins with the prompt begin so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.checks import checked_text
from cpbpe.engine.protocol import Text
from cpbpe.lazy import kept
from cpbpe.text.utf8 import certain
from cpbpe.tokenizer import endings as search
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.streams import SpecialKeys

IdArray = NDArray[np.uint32]
Mask = NDArray[np.bool_]


class Ending(NamedTuple):
    """One way in which the ids of a prompt can end."""

    ids: tuple[int, ...]
    """The ids after the stable ones. The last of them may reach beyond the end of the prompt."""
    more: str
    """A text that has this effect: the ids of the prompt with this after it go on so."""


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
    """The stable ids: those of every text that begins with the prompt begin so."""
    unstable: list[int]
    """The ids of the prompt after these. Each ending has others, or the same."""
    rest: bytes
    """The end of the prompt, in UTF-8, which the stable ids do not cover."""
    exact: bool
    """Whether each ending is known to occur. If it is false, some may not: see docs/token-healing.md."""
    _found: dict[tuple[int, ...], bytes]
    """The endings, with what follows the prompt."""
    _size: int
    """How many ids there are."""

    @kept
    def endings(self) -> Sequence[Ending]:
        """All ways in which the ids can go on after the stable ones, up to the end of the prompt."""
        return [Ending(ids, more.decode()) for ids, more in self._found.items()]

    @kept
    def next_ids(self) -> IdArray:
        """The ids that can come right after the stable ones, in ascending order; none if nothing is unstable.

        An ending without ids (the prompt ends in a space that the model removes there) adds none.
        """
        return np.array(sorted({ids[0] for ids in self._found if ids}), np.uint32)

    @kept
    def mask(self) -> Mask:
        """The same for all ids of the vocabulary: whether each is one of them."""
        allowed: Mask = np.zeros(self._size, np.bool_)
        allowed[self.next_ids] = True
        return allowed

    def __repr__(self) -> str:
        return (
            f"<cpbpe.Completions: {len(self.ids)} stable ids, {len(self.unstable)} unstable, rest "
            f"{self.rest!r}, {len(self._found)} endings>"
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
        while (key := keys.next(data, done, False)) is not None:
            done = key[1]
        open_at = keys.first_open(data, done)
        inside = keys.next(data, open_at, True)
        if inside is not None and inside[1] < len(data):
            raise ValueError(
                f"the prompt ends in what may become a longer special token than {inside[2]!r}, which is in "
                f"it; allow only one of them (allowed_special)"
            )
    # 2. The ids of the prompt, and where each begins.
    ids, _, spans = plan.encoder.align(data, False, True)
    before = sum(1 for begin, _ in spans if begin < done) if done else 0
    # 3. How the last segment can end.
    found = search.Search(facts, plan, data[done:], done > 0, open_at - done, keys).run()
    # 4. What all endings share. They include that of the prompt alone.
    rows = list(found.endings)
    common = 0
    if rows:
        lowest, highest = min(rows), max(rows)
        while common < min(len(lowest), len(highest)) and lowest[common] == highest[common]:
            common += 1
    stable = before + found.head + common
    rest = b""
    if len(rows) > 1:
        last = max((end for _, end in spans), default=0)
        rest = data[(spans[stable][0] if stable < len(ids) else last) :]
    return Completions(
        text=given,
        ids=plan.front + ids[:stable],
        unstable=ids[stable:],
        rest=rest,
        exact=found.exact,
        _found={row[common:]: more for row, more in found.endings.items()},
        _size=facts.special.size,
    )
