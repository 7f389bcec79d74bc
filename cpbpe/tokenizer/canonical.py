r"""Canonical ids: those that their own text is encoded to. `Tokenizer.is_canonical` and its relatives.

Decoding forgets how a text was cut into pieces. So ids that a model has sampled, or that were encoded with
`alpha`, may not be those that encoding their text gives: `[28769, 28710]` decodes to `hi` like `[5365]` does.

Special ids (CONTROL pieces and added tokens) stand for themselves. Between them are *runs* of other ids, each
of which is a text of its own, as in `encode_parts`. Ids are canonical if every run is: decoding the run and
encoding its text gives the same ids. Decoding drops the space of a dummy prefix from the text of a run only
where encoding puts the prefix back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple, SupportsIndex

import numpy as np

from cpbpe.checks import Ids
from cpbpe.tokenizer.calls import encode_parts
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.neighbours import Bools
from cpbpe.tokenizer.plans import EncodePlan


class Divergence(NamedTuple):
    """Where ids are not those that encoding their text gives.

    >>> import cpbpe
    >>> cpbpe.load("tokenizer.model").first_divergence([1, 382, 28710])
    Divergence(position=1, ids=[15359], begin=0)
    """

    position: int
    """The first position at which they differ. One of the two may end there."""
    ids: list[int]
    """What encoding gives, from this position on."""
    begin: int
    """How many bytes `decode_bytes` gives for the ids before this position."""


def divergence(
    facts: ModelFacts, plan: EncodePlan, ids: Ids, method: str, decoded: Callable[[list[int]], bytes]
) -> Divergence | None:
    """Where ids differ from those that encoding their text gives; None if they do not."""
    given = facts.check_ids(ids, method)
    parts = list(_parts(facts, plan, given))
    bare = plan.changed(front=[], back=[], ends=None)
    again = encode_parts(facts, bare, parts)
    if again == given:
        return None
    position = next(
        (at for at, (one, other) in enumerate(zip(given, again, strict=False)) if one != other),
        min(len(given), len(again)),
    )
    return Divergence(position, again[position:], len(decoded(given[:position])))


def _parts(facts: ModelFacts, plan: EncodePlan, ids: list[int]) -> Iterator[bytes | int]:
    """Yield special ids, and the texts of the runs between them."""
    later = False
    for is_special, run in groupby(ids, facts.tokens.__contains__):
        if is_special:
            for id in run:
                yield id
                later = id in facts.special.all_texts
            continue
        engine = facts.engine.variant(keep_space=not has_prefix(facts, plan, later))
        text = engine.decode_bytes(list(run))
        assert text is not None
        yield text


def has_prefix(facts: ModelFacts, plan: EncodePlan, later: bool) -> bool:
    """Whether encoding puts a dummy prefix in front of a text; `later`: it follows a special token."""
    if later and not plan.prefix_after_special:
        return False
    own = facts.spec.normalizer.add_dummy_prefix
    return own if plan.prefix_space is None else plan.prefix_space


class CanonicalStream:
    """Ids that arrive one by one, and which may come next. `Tokenizer.canonical_stream` makes one.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> stream = tok.canonical_stream(tok.encode("Hel"))
    >>> [bool(stream.mask[tok.vocab[piece]]) for piece in ("lo", "ic", "▁world")]
    [False, True, True]
    """

    def __init__(self, facts: ModelFacts, plan: EncodePlan, ids: Ids, method: str):
        self._facts = facts
        self._plan = plan
        self._sequences = facts.sequences
        self._later = False
        self._count = 0
        self._hypotheses = self._start()
        for id in facts.check_ids(ids, method):
            self.push(id)

    def _start(self) -> frozenset[object]:
        return frozenset([self._sequences.start(has_prefix(self._facts, self._plan, self._later))])

    @property
    def is_complete(self) -> bool:
        """Whether the ids so far are canonical as they are. Only then can a special id come next."""
        return any(map(self._sequences.accepts, self._hypotheses))

    @property
    def mask(self) -> Bools:
        """For each id of the vocabulary whether it can come next."""
        allowed = np.zeros(self._facts.special.size, np.bool_)
        sequences = self._sequences
        allowed[: sequences.size] = sequences.mask(self._hypotheses)
        allowed[[*self._facts.tokens]] = self.is_complete
        return allowed

    def push(self, id: SupportsIndex) -> None:
        """Go on with an id. A ValueError if it cannot come here."""
        number = self._facts.check_id(id, "push")
        if number in self._facts.tokens:
            if not self.is_complete:
                raise self._wrong(number)
            self._later = number in self._facts.special.all_texts
            self._hypotheses = self._start()
        else:
            after = self._sequences.after(self._hypotheses, number)
            if not after:
                raise self._wrong(number)
            self._hypotheses = after
        self._count += 1

    def _wrong(self, id: int) -> ValueError:
        return ValueError(
            f"id {id} ({self._facts.piece(id)!r}) at position {self._count} cannot follow the ids before it, "
            f"if they are to be those that encoding gives; tok.first_divergence(ids) says which these are"
        )

    def copy(self) -> CanonicalStream:
        """Another one that continues from here."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new
