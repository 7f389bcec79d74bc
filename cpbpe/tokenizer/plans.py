"""The plan that the options of one call lead to: its encoder, and the ids around those of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from cpbpe.engine import Dropout, Ends, between
from cpbpe.lazy import Kept, importing
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.options import (
    DECODE,
    ENCODE,
    REFUSED,
    DecodeOptions,
    EncodeOptions,
    check_names,
    checked_alpha,
    checked_options,
    checked_seed,
    new_seed,
)
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialDecoder, SpecialEncoder

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine, Places

_IMMUTABLE = {bool, float, type(None), str, tuple, frozenset}
"""Values of these types cannot change, so a plan for them can be cached."""


class EncodePlan:
    """How a call encodes. It never changes. (It is not a dataclass: `dataclasses` takes long to import.)"""

    def __init__(
        self,
        encoder: Engine | SpecialEncoder,
        front: list[int],
        back: list[int],
        reverse: bool,
        prefix_space: bool | None,
        prefix_after_special: bool,
    ):
        self.encoder = encoder
        """What turns text into ids."""
        self.front = front
        """The ids to put in front."""
        self.back = back
        """The ids to put at the end."""
        self.reverse = reverse
        """Whether to reverse the ids between these."""
        self.prefix_space = prefix_space
        """Whether there is a dummy prefix; None: as the model says."""
        self.prefix_after_special = prefix_after_special
        """Whether there is a dummy prefix after a special token."""
        self.around = len(front) + len(back)
        """How many ids are put around those of a text."""
        first, last = (around[0] if around else None for around in (front, back))
        self.ends: Ends | None = (first, last, reverse) if self.around or reverse else None
        """What engines put around ids."""
        self.alpha: float | None = None
        """The probability that a merge is skipped; None if none is."""
        self.seed: int | None = None
        """The seed for that; None if each call gets a new one."""
        self.speller: Engine | None = None
        """The engine, if its own `encode_pieces` gives all pieces of the plan; otherwise None. It cannot give
        those of added tokens, neither found in the text nor put around it."""

    @property
    def dropout(self) -> Dropout | None:
        """How merges are skipped at random. Without a seed of its own, it has a new one each time."""
        if self.alpha is None:
            return None
        return self.alpha, new_seed() if self.seed is None else self.seed

    def changed(self, **changes: Any) -> EncodePlan:
        """The same plan with another `encoder`, `alpha` or `seed`."""
        plan = object.__new__(EncodePlan)
        plan.__dict__ = {**self.__dict__, **changes}
        return plan

    def later(self, engine: Engine) -> Engine:
        """The engine for text after a special token; `engine` encodes the beginning of a text."""
        return engine if self.prefix_after_special else engine.variant(prefix=False)

    def finish(self, ids: list[int]) -> list[int]:
        """The ids of a text, with those in front and at the end."""
        return ids if self.ends is None else between(ids, *self.ends)

    def finish_ragged(self, rows: Ragged, lengths: Sequence[int] | None = None) -> Ragged:
        """The same for many texts. If the rows have spans, `lengths` must have the lengths of the texts."""
        if self.ends is None:
            return rows
        with importing:
            import numpy as np
        ids, offsets, spans = rows.ids, rows.offsets, rows.spans
        # 1. Reverse each row: in a row from b to e, the id at i changes places with the one at b + e - 1 - i.
        if self.reverse:
            counts = np.diff(offsets)
            order = np.repeat(offsets[:-1] + offsets[1:] - 1, counts) - np.arange(len(ids))
            ids, spans = ids[order], None if spans is None else spans[order]
        if not self.around:
            return Ragged(ids, offsets, spans)
        # 2. Make room around each row; `inner` is True where its own ids go. The span of an id in front is
        #    (0, 0), and that of an id at the end is empty and lies at the end of the text.
        new_offsets: Places = offsets + self.around * np.arange(len(offsets))
        inner = np.ones(new_offsets[-1], bool)
        new_ids = np.zeros(new_offsets[-1], np.uint32)
        new_spans = None if spans is None else np.zeros((new_offsets[-1], 2), np.int64)
        for places, around in ((new_offsets[:-1], self.front), (new_offsets[1:] - 1, self.back)):
            if around:
                inner[places] = False
                new_ids[places] = around[0]
                if new_spans is not None and around is self.back:
                    new_spans[places] = np.array(lengths, np.int64)[:, None]
        new_ids[inner] = ids
        if new_spans is not None:
            new_spans[inner] = spans
        return Ragged(new_ids, new_offsets, new_spans)


class Plans:
    """The plans of one tokenizer; those for options that recur are cached."""

    def __init__(self, facts: ModelFacts, bound: Mapping[str, Any] = MappingProxyType({})):
        """`bound`: the options that calls use unless they are given others."""
        self._facts = facts
        self._bound_encode = {name: value for name, value in bound.items() if name in ENCODE}
        self._bound_decode = {name: value for name, value in bound.items() if name in DECODE}
        self._plain = EncodePlan(facts.engine, [], [], False, None, True)
        self._plain_decoder: Engine | SpecialDecoder | None = None
        self._encoders: Kept[tuple[object, ...], EncodePlan] = Kept()
        self._decoders: Kept[tuple[tuple[str, object], ...], Engine | SpecialDecoder] = Kept()
        if facts.special.flags and facts.special.plain:
            self._plain = self._make({}, "encode")

    def encode(self, options: EncodeOptions, method: str) -> EncodePlan:
        """The plan for the options of a call that encodes."""
        if self._bound_encode:
            options = cast(EncodeOptions, {**self._bound_encode, **options})
        if not options:
            return self._plain
        return self._seeded(options, method) if "seed" in options else self._kept(options, method)

    def _kept(self, options: EncodeOptions, method: str) -> EncodePlan:
        """The plan for options without a seed."""
        # The same method may have been called with the same options before. Equal values mean the same, so
        # their types are not checked here, which would take as long as encoding a short text twice. (The key
        # has all names and then all values, because making pairs of them takes twice as long.)
        try:
            plan = self._encoders.get((method, *options, *options.values()))
        except TypeError:  # a set, or an item of a tuple, is not hashable
            plan = None
        return plan or self._new(options, method)

    def _new(self, options: EncodeOptions, method: str) -> EncodePlan:
        """The plan for options that `_kept` did not find in the cache as they are."""
        # A set may change later, so the key contains a copy of it.
        values = [frozenset(value) if type(value) is set else value for value in options.values()]
        key = (method, *options, *values)
        cacheable = set(map(type, values)) <= _IMMUTABLE
        plan = None
        with suppress(TypeError):  # an item of a tuple is not hashable; `_make` says what is wrong
            plan = self._encoders.get(key) if cacheable else None
        if plan is None:
            plan = self._make(options, method)
            if cacheable:
                self._encoders.keep(key, plan)
        return plan

    def _seeded(self, options: EncodeOptions, method: str) -> EncodePlan:
        """The plan for options with a seed, which changes from call to call, so it is not in the cache."""
        if method in REFUSED:
            check_names(options, method, ENCODE)
        others = options.copy()
        seed = others.pop("seed")
        plan = self._kept(others, method) if others else self._plain
        if seed is None:
            return plan
        number = checked_seed(seed)
        return plan if plan.alpha is None else plan.changed(seed=number)

    def check(self, options: Mapping[str, Any]) -> None:
        """Check options that are to be bound, as every call would check them."""
        check_names(options, "using", {**ENCODE, **DECODE})
        bound = Plans(self._facts, options)
        bound.encode({}, "using")
        bound.decode({}, "using")

    def _make(self, options: EncodeOptions, method: str) -> EncodePlan:
        facts, values = self._facts, checked_options(options, method, ENCODE)
        prefix_space: bool | None = values["prefix_space"]
        engine = facts.engine if prefix_space is None else facts.engine.variant(prefix=prefix_space)
        front, back = self._around(values)
        plan = EncodePlan(
            engine, front, back, values["reverse"], prefix_space, values["prefix_after_special"]
        )
        plan.alpha = checked_alpha(values["alpha"]) or None
        finder = facts.special.finder(values["allowed_special"], values["disallowed_special"])
        if finder is None:
            pieces = max([*front, *back], default=0) < facts.engine.size
            return plan.changed(speller=engine) if pieces else plan
        return plan.changed(encoder=SpecialEncoder(engine, plan.later(engine), finder))

    def _around(self, values: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        """The ids to put in front and at the end."""
        _, bos, eos, _ = self._facts.special_ids
        around: list[list[int]] = []
        for option, id in (("add_bos", bos), ("add_eos", eos)):
            wanted = values[option]
            if wanted and id is None:
                raise ValueError(
                    f"{option}=True, but this model defines no {option[4:]} piece of type CONTROL; "
                    f"leave the option out, or add an id of your own to the list"
                )
            around.append([id] if wanted and id is not None else [])
        return around[0], around[1]

    def decode(self, options: DecodeOptions, method: str) -> Engine | SpecialDecoder:
        """The decoder for checked ids, with these options."""
        if self._bound_decode:
            options = cast(DecodeOptions, {**self._bound_decode, **options})
        if not options:
            self._plain_decoder = self._plain_decoder or self._make_decoder({}, method)
            return self._plain_decoder
        key = tuple(options.items())
        cacheable = {type(value) for _, value in key} <= _IMMUTABLE
        decoder = None
        with suppress(TypeError):  # an item of a tuple is not hashable
            decoder = self._decoders.get(key) if cacheable else None
        if decoder is None:
            decoder = self._make_decoder(options, method)
            if cacheable:
                self._decoders.keep(key, decoder)
        return decoder

    def decode_options(self, options: DecodeOptions, method: str) -> dict[str, Any]:
        """All options of decoding, checked."""
        return checked_options({**self._bound_decode, **options}, method, DECODE)

    def _make_decoder(self, options: DecodeOptions, method: str) -> Engine | SpecialDecoder:
        facts, values = self._facts, checked_options(options, method, DECODE)
        keep_space = facts.keeps_space(values["keep_prefix_space"])
        engine = facts.engine.variant(keep_space=True) if keep_space is True else facts.engine
        shown, hidden = facts.shown_and_hidden(values["skip_special_tokens"])
        if not shown and not hidden:
            return engine
        # `engine` decodes the beginning of a text, and `later` what follows a special token. `later` drops a
        # space only if encoding puts one there, and never if `keep_space` is given.
        later = (
            engine if values["prefix_after_special"] and not keep_space else engine.variant(keep_space=True)
        )
        strips = keep_space == "after_special" and facts.strips_tokens
        names = {id: facts.piece(id) for id in shown} | facts.special.all_texts
        return SpecialDecoder(engine, later, shown, hidden, strips, names)
