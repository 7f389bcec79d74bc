r"""The search for all endings of a prompt: see `completions.py`.

**Why there are finitely many.** Let T be the prompt and M what follows. What makes it easy is this: *the
ids of a text, up to any of them, are the ids of the beginning that they stand for*. For no merge of the text
crosses the end of that id. So in the beginning, merged alone, the same merges are made in the same order, and
what stands after it has never had a part in them. Now look at the first id of TM that ends at the end of T or
after it.

- If it ends there, the ids so far are those of T.
- Otherwise it is the id of a piece p that begins in T, at some i, and spans its end: T[i:] is a beginning of
  p, and not all of it. The ids before it are those of T[:i], and all of them together are those of T[:i]p.

The longest piece has some dozens of bytes, so i is near the end, and p is found in the sorted vocabulary. For
each (i, p) the text T[:i]p is encoded. If its ids end in p, that is an ending, and what p has after T[i:] is
a text that leads to it. All of this concerns normalized text; what is special about models comes on top:

- **Rules of a normalizer** may take the last characters of T together with what follows (e and an accent).
  `continuations.py` knows what of T is open, the rules that it may begin, and which text is normalized to
  what p has after T.
- **Symbols that become several ids** (UNUSED pieces, bytes of an unknown character): p is a symbol, of which
  the ids that begin before the end of T are taken. Unknown characters side by side have one id.
- **User-defined pieces** are pieces p like others: what T[:i]p holds of them is what T[:i]pM holds, because a
  key is found if it is the longest at its place, whatever follows that.
- **A pattern** cuts the text first (byte-level models), and where it cuts T depends on M. So T[:i]p is also
  encoded with each of the short texts after it that stand for all that a pattern can tell apart
  (`cpbpe.text.split_probes`).
- **A chunk that is a piece** is taken whole, even if no merges make it. Then T[:i]p alone may hide what
  becomes of it when its chunk goes on; the same texts are tried, and then all pieces.
- **A piece that ends within a character** is completed by all characters that begin so.
- **Special tokens**, if they are allowed, may begin in T and end in M.

Every ending that is found has been seen: it is taken from the ids of a text. That none is missing is tried by
tests which go through all short texts and what follows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cpbpe.tokenizer.continuations import Base, Continuations
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.streams import SpecialKeys
from cpbpe.tokenizer.tails import Tail, stable_cut


@dataclass
class Found:
    """The endings of a text."""

    head: int = 0
    """How many ids are certain before them."""
    endings: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    """The ids after these, up to the end of the text, with what follows it then."""
    exact: bool = True
    """Whether each of them is known to occur."""


class Search:
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
        """`later`: it comes after a special token. `open_at`: where such a token may begin, of `keys`."""
        self._facts = facts
        self._plan = plan
        self._text = text
        self._later = later
        self._open_at = open_at
        self._keys = keys
        self._found = Found()
        self._ids: dict[tuple[int, ...], list[int]] = {}

    def run(self) -> Found:
        """All of them."""
        if not self._text:
            self._found.endings[()] = b""
            return self._found
        prefix = self._plan.prefix_space
        if self._later and not self._plan.prefix_after_special:
            prefix = False
        state = Continuations(self._facts, prefix, self._text)
        if state.is_empty:  # nothing but spaces that are removed
            self._found.endings[()] = b""
            self._of_special_tokens()
            return self._found
        # 1. What is certain: ids before a place where nothing can merge.
        engine = self._facts.engine.variant(raw=True)
        fixed = state.fixed
        if self._open_at < len(self._text):  # a special token may begin there, which ends the text before it
            fixed = Continuations(self._facts, prefix, self._text[: self._open_at]).fixed
        cut = engine.cut(fixed) if fixed else 0
        head = engine.encode(state.fixed[:cut]) if cut else []
        place, ids = stable_cut(self._facts, engine, fixed[cut:])
        unk = self._facts.stream_unk if head or ids else -1
        is_run = ids[:1] == head[-1:] == [unk]  # unknown characters on both sides are one token
        cut, head = cut + place, head + ids[is_run:]
        self._found.head = len(head)
        self._drop = unk if head and head[-1] == unk else -1
        # 2. The text alone, and all that can follow it.
        for text, end, more in state.alone():
            tail = Tail(self._facts, engine, text[cut:], end - cut)
            self._add(tail.rows([b""])[0][0], more)
        for base in state.bases():
            self._of_base(state, base, Tail(self._facts, engine, base.text[cut:], base.end - cut))
        self._of_special_tokens()
        return self._found

    def _of_base(self, state: Continuations, base: Base, tail: Tail) -> None:
        made: dict[tuple[int, ...], list[bytes]] = {}
        for rows, rests in tail.endings():
            if state.is_simple and self._keys is None and self._drop < 0:
                found = self._found.endings
                for ids, after in zip(rows, state.realized_all(base, rests), strict=True):
                    found.setdefault(ids, after)
                continue
            for ids, rest in zip(rows, rests, strict=True):
                made.setdefault(ids, []).append(rest)
        for ids, ways in made.items():
            if self._dropped(ids) in self._found.endings:
                continue
            for rest in ways:
                more = state.realized(base, rest)
                if more is not None and self._add(ids, more):
                    break
            else:
                if state.may_miss and self._keys is None:
                    self._found.exact = False
                    self._add(ids, base.more + ways[0])

    def _dropped(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids without the first, if it continues the run of unknown characters before it."""
        return ids[1:] if ids and ids[0] == self._drop else ids

    def _add(self, ids: tuple[int, ...], more: bytes) -> bool:
        """Keep an ending, unless a special token is found in the text that leads to it."""
        if self._keys is not None and self._keys.next(self._text + more, self._open_at, True) is not None:
            return False
        self._found.endings.setdefault(self._dropped(ids), more)
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
            except ValueError:  # a token that the text must not hold
                continue
            row = tuple(id for id, (begin, _) in zip(ids, spans, strict=True) if begin < size)
            self._found.endings.setdefault(row[self._found.head :], more)
