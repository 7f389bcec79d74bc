"""`Tokenizer.using`: the same tokenizer with other defaults for the options of its calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, wraps
from types import MappingProxyType
from typing import Any, TypeVar

from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.identity import BEHAVIOUR, restore
from cpbpe.tokenizer.options import REFUSED

T = TypeVar("T")


def bind(tokenizer: T, options: Mapping[str, Any]) -> T:
    """The same tokenizer with options bound. They have been checked; it may have others already."""
    given: Any = tokenizer
    plain: Any = given.unbound if hasattr(given, "unbound") else type(given)
    kept = {name: _lasting(value) for name, value in options.items()}
    bound: T = bound_class(plain).of(given.facts, {**given.bound_options, **kept})
    return bound


def _lasting(value: Any) -> Any:
    """A copy of a value that cannot change, and that is pickled the same way in every process."""
    return (
        tuple(sorted(set(value))) if isinstance(value, Collection) and not isinstance(value, str) else value
    )


@cache
def bound_class(tokenizer: type) -> Any:
    """A subclass of Tokenizer, or of one of its subclasses, whose calls have options bound.

    The calls of Tokenizer itself need not look for bound options: that would take a tenth of the time of a
    short text.
    """

    class BoundTokenizer(tokenizer):  # type: ignore[misc]
        """What `Tokenizer.using` makes."""

        __slots__ = ("bound_options", "options_of_calls")

        unbound = tokenizer

        def _set(self, facts: ModelFacts) -> None:
            super()._set(facts)
            self.bound_options: Mapping[str, Any] = MappingProxyType({})
            self.options_of_calls: dict[str, dict[str, Any]] = {}

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
        described = _described(tokenizer, name)
        if described is not None:
            setattr(BoundTokenizer, name, _bound(getattr(tokenizer, name), described))
    return BoundTokenizer


def _described(tokenizer: type, name: str) -> Any:
    """The method with options (see `described`) that this name has, or overrides in a subclass."""
    methods = (vars(kind).get(name) for kind in tokenizer.__mro__)
    return next((method for method in methods if hasattr(method, "option_names")), None)


def _bound(call: Any, described: Any) -> Any:
    """The call with those bound options that it knows. It also gets those that it refuses, to refuse them."""
    known = {*described.option_names, *REFUSED.get(described.__name__, ())}

    @wraps(call)
    def with_bound_options(self: Any, *args: Any, **options: Any) -> Any:
        bound = self.options_of_calls.get(described.__name__)
        if bound is None:
            bound = {name: value for name, value in self.bound_options.items() if name in known}
            self.options_of_calls[described.__name__] = bound
        return call(self, *args, **{**bound, **options})

    return with_bound_options
