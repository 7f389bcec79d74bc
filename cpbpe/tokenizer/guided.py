"""A base class that refuses what other tokenizers have and this one has not, and names the way out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cpbpe.lazy import imported

F = TypeVar("F", bound=Callable[..., Any])


class GuidedClass(type):
    """The same for names of the class, such as `Tokenizer.from_file`."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            """Refuse, with the name by which this is called here."""
            message = f"type object {cls.__name__!r} has no attribute {name!r}{_hint(name, cls)}"
            raise AttributeError(message, name=name, obj=cls)


class Guided(metaclass=GuidedClass):
    """Calls, indices and names that a Tokenizer does not have, and other libraries' tokenizers do."""

    __slots__ = ()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: transformers' users expect something else here than everybody else."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:  # type checkers shall go on telling what there is not
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __getattr__(self, name: str) -> Any:
            """Refuse, with the name by which this is called here."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{_hint(name, type(self))}"
            raise AttributeError(message, name=name, obj=self)


def _hint(name: str, cls: type) -> str:
    if name.startswith("_"):
        return ""
    hint: str = imported("cpbpe.tokenizer.guesses").attribute_hint(name, dir(cls))
    return hint


def takes_a_source(call: str, bindable: Collection[str]) -> Callable[[F], F]:
    """A decorator for a call that loads a model, by `source` alone; `bindable` are the options of `using`."""

    def guide(function: F) -> F:
        @wraps(function)
        def guided(*given: Any, **options: Any) -> Any:
            for name in options:
                if name != "source":
                    guesses = imported("cpbpe.tokenizer.guesses")
                    hint = guesses.loading_hint(name, options[name], call, bindable)
                    raise TypeError(f"{call}() has no option {name!r}; {hint}")
            return function(*given, **options)

        return guided  # type: ignore[return-value]

    return guide
