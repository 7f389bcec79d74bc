"""The same call in sentencepiece and in cpbpe.compat.sentencepiece, and what came of it, to compare."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from cpbpe.compat import sentencepiece as ours
from tests.support import zoo

THEIRS: Any = sentencepiece
THEIR_MODELS: Any = sentencepiece_model_pb2
OURS: Any = ours


class Fresh:
    """An argument that is made anew for every call, such as a generator."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    def __repr__(self) -> str:
        return f"<{type(self.make()).__name__}>"


class Call:
    """A method (or function) with its arguments."""

    def __init__(self, method: str, *args: Any, **kwargs: Any):
        self.method, self.args, self.kwargs = method, args, kwargs

    def __repr__(self) -> str:
        given = [repr(arg) for arg in self.args] + [
            f"{name}={value!r}" for name, value in self.kwargs.items()
        ]
        return f"{self.method}({', '.join(given)})"

    def on(self, target: Any) -> Any:
        """Make the call."""
        return getattr(target, self.method)(
            *map(_made, self.args), **{name: _made(value) for name, value in self.kwargs.items()}
        )


def _made(value: Any) -> Any:
    return value.make() if isinstance(value, Fresh) else value


def calls(methods: Iterable[str], *args: Iterable[Any], **kwargs: Iterable[Any]) -> Iterator[Call]:
    """Every method with every choice of arguments; the choice ... leaves an argument out."""
    for method, *given in product(methods, *args, *kwargs.values()):
        named = dict(zip(kwargs, given[len(args) :], strict=True))
        yield Call(method, *given[: len(args)], **{k: v for k, v in named.items() if v is not ...})


def outcome(run: Callable[[], Any]) -> Any:
    """What a call gives, in a form that can be compared; or the type of exception that it raises."""
    try:
        return plain(run())
    except Exception as error:
        if sys.version_info < (3, 11) and type(error) is ValueError and not str(error):
            # There a message of sentencepiece's that is not UTF-8 gets lost, and the kind of ValueError too.
            return UnicodeDecodeError
        return type(error)


def plain(value: Any) -> Any:
    """A value with the types in it made visible, messages as bytes, and arrays as lists with their flags."""
    if hasattr(value, "SerializeToString"):
        return type(value).__name__, value.SerializeToString()
    if isinstance(value, np.ndarray):
        return "array", value.dtype, repr(value.flags), value.tolist()
    if isinstance(value, dict):
        return "dict", [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [plain(item) for item in value]
    return type(value), value


def compare(call: Any, theirs: Callable[[], Any], ours: Callable[[], Any]) -> Any:
    """Make a call in both libraries; what came of it must be the same."""
    expected, found = outcome(theirs), outcome(ours)
    assert found == expected, f"{call}:\n  ours {found!r}\ntheirs {expected!r}"
    return found


@cache
def pair(name: str, engine: str) -> tuple[Any, Any]:
    """The processors of a model, theirs and ours; an empty name is none."""
    with mock.patch.dict(os.environ, {"CPBPE_ENGINE": engine}):
        given = {"model_proto": zoo.model(name)} if name else {}
        return THEIRS.SentencePieceProcessor(**given), OURS.SentencePieceProcessor(**given)
