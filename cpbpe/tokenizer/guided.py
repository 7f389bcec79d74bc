"""A base class that refuses what other tokenizers have and this one lacks, and names what to use here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cpbpe.tokenizer.guesses import ATTRIBUTES, IN_CAMEL_CASE, loading_hint

F = TypeVar("F", bound=Callable[..., Any])


class Elsewhere:
    """A name that other libraries' tokenizers have. Looking it up says what to use here.

    (A `__getattr__` could answer every name. But Python takes a slower way to all attributes of an object
    that has one, and a short call took up to 1.7 times as long.)
    """

    def __init__(self, use: str):
        self._use = use

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<not here: use {self._use}>"

    def __get__(self, instance: object | None, owner: type) -> NoReturn:
        kind = "object" if instance is not None else "class"
        message = f"{owner.__name__!r} {kind} has no attribute {self._name!r}; use {self._use}"
        raise AttributeError(message, name=self._name, obj=owner if instance is None else instance)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError(
            f"a Tokenizer does not change, so {self._name!r} cannot be set; with_special_tokens(tokens) and "
            f"using(...) give new ones"
        )


class Guided:
    """Calls, indices and names that a Tokenizer lacks but other libraries' tokenizers have."""

    __slots__ = ()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: transformers' users expect something else here than everybody else."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:  # type checkers should go on reporting what is missing
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __contains__(self, key: object) -> NoReturn:
            """Refuse, for the same reason."""
            raise TypeError("a Tokenizer has no items; write `in tok.vocab` to look for a piece")

        def __dir__(self) -> Iterable[str]:
            """The names that there are, for completion."""
            return [
                name for name in object.__dir__(self) if not isinstance(vars(Guided).get(name), Elsewhere)
            ]


def _in_camel_case(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def _add(name: str, use: str) -> None:
    elsewhere = Elsewhere(use)
    elsewhere.__set_name__(Guided, name)
    setattr(Guided, name, elsewhere)


for _name, _use in ATTRIBUTES.items():
    _add(_name, _use)
    _add(_in_camel_case(_name), _use)
for _name in IN_CAMEL_CASE:
    _add(_in_camel_case(_name), _name)


def takes_a_source(call: str, bindable: Collection[str]) -> Callable[[F], F]:
    """A decorator for a call that loads a model, by `source` alone; `bindable` are the options of `using`."""

    def guide(function: F) -> F:
        @wraps(function)
        def guided(*given: Any, **options: Any) -> Any:
            for name in options:
                if name != "source":
                    hint = loading_hint(name, options[name], call, bindable)
                    raise TypeError(f"{call}() has no option {name!r}; {hint}")
            return function(*given, **options)

        return guided  # type: ignore[return-value]

    return guide
