"""`Tokenizer.using`: the same tokenizer with other defaults for the options of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, wraps
from inspect import signature
from types import MappingProxyType
from typing import Any

from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.identity import BEHAVIOUR, restore
from cpbpe.tokenizer.options import REFUSED


@cache
def bound_class(tokenizer: type) -> Any:
    """A subclass of Tokenizer, or of one of its subclasses, whose calls have options bound.

    The calls of Tokenizer itself need not look for bound options: that would take a tenth of the time of a
    short text.
    """

    class BoundTokenizer(tokenizer):  # type: ignore[misc]
        """What `Tokenizer.using` makes."""

        __slots__ = ("bound_options",)

        @classmethod
        def of(cls, facts: ModelFacts, options: Mapping[str, Any]) -> BoundTokenizer:
            """A tokenizer with these options bound."""
            self: BoundTokenizer = cls._of(facts)
            self.bound_options = MappingProxyType(dict(options))
            return self

        def _like(self, facts: ModelFacts) -> BoundTokenizer:
            return self.of(facts, self.bound_options)

        def __reduce__(self) -> tuple[Any, ...]:
            return restore, (tokenizer, self.to_bytes(), BEHAVIOUR, dict(self.bound_options))

    for name in dir(tokenizer):
        call = getattr(tokenizer, name)
        if hasattr(call, "__signature__"):  # a call with options, see `described`
            setattr(BoundTokenizer, name, _bound(call))
    return BoundTokenizer


def _bound(call: Any) -> Any:
    """The call with the bound options, as far as it has them. Those that it refuses, it shall refuse."""
    known = {*signature(call).parameters, *REFUSED.get(call.__name__, ())}

    @wraps(call)
    def with_bound_options(self: Any, *args: Any, **options: Any) -> Any:
        bound = {name: value for name, value in self.bound_options.items() if name in known}
        return call(self, *args, **{**bound, **options})

    return with_bound_options
