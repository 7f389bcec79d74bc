"""Which engine does the work: the compiled core if it is installed, otherwise the reference."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ModelError
from cpbpe.lazy import imported

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.model.spec import ModelSpec

VARIABLE = "CPBPE_ENGINE"
"""The environment variable that chooses an engine: "core" or "reference"."""


def make_engine(spec: ModelSpec) -> Engine:
    """The engine for a model: the best available one, or the one that CPBPE_ENGINE names."""
    imported("cpbpe.model.validity").check_alphabet(spec)
    if engine_name() == "reference":
        say_if_slow()
        imported("cpbpe.model.validity").check(spec)
        engine: Engine = imported("cpbpe.engine.reference_engine").PythonEngine(spec)
        return engine
    from cpbpe import _core

    try:
        core: Engine = _core.Engine.from_columns(**imported("cpbpe.engine.columns").columns_of(spec))
    except (ValueError, TypeError, AttributeError) as error:
        imported("cpbpe.model.validity").check(spec)  # its error says what is wrong, and with which piece
        other = imported("cpbpe.engine.missing_core")
        if not other.takes_columns(_core.Engine, spec.alphabet):
            raise RuntimeError(other.another_version(_core.__file__, error)) from error
        if spec.splitter is not None:  # what `regex` takes for a pattern, the core may not
            raise ModelError(f"the pattern {spec.splitter.pattern!r}: {error}") from None
        raise RuntimeError(
            "the core refuses a model that the reference accepts; please report this"
        ) from error
    return core


def load_engine(data: bytes) -> Engine:
    """The engine for a `.model` file: that of `make_engine(sentencepiece.read(data))`.

    The core reads the usual files itself, in a tenth of the time that protobuf takes in Python. It can return
    the model as columns. Files that it cannot read are read in Python.
    """
    if engine_name() == "core":
        from cpbpe import _core

        core = _core.Engine.from_model(data)
        if core is not None:
            return core
    return make_engine(imported("cpbpe.model.formats.sentencepiece").read(data))


def make_chunk_finder(pattern: str | None) -> Callable[[bytes, int], tuple[int, int]]:
    """What says where the chunk of a text begins and ends that holds the byte before a place.

    What a pattern leaves out between two matches is a chunk, too. Without a pattern a text is one chunk.

    >>> find = make_chunk_finder("[a-z]+")
    >>> find(b"ab12cd", 2), find(b"ab12cd", 3), make_chunk_finder(None)(b"ab", 1)
    ((0, 2), (2, 4), (0, 2))
    """
    if pattern is None:
        return lambda text, place: (0, len(text))
    spans = make_spans(pattern)

    def find(text: bytes, place: int) -> tuple[int, int]:
        done = 0
        for begin, end in spans(text.decode()):
            if place <= begin:
                return done, begin
            if place <= end:
                return begin, end
            done = end
        return done, len(text)

    return find


def make_spans(pattern: str) -> Callable[[str], Any]:
    """What finds the matches of a pattern that are not empty: their spans in bytes."""
    if engine_name() == "core":
        from cpbpe import _core

        splitter = _core.Splitter(pattern)
        return lambda text: splitter.spans(text).tolist()
    matches = imported("cpbpe.reference.byte_level.patterns").matches

    def spans(text: str) -> list[list[int]]:
        found = (match.span() for match in matches(pattern, text))
        return [[len(text[:place].encode()) for place in span] for span in found]

    return spans


def engine_name() -> str:
    """The engine that new tokenizers use: "core", compiled, or "reference", the algorithm in plain Python.

    The environment variable CPBPE_ENGINE chooses one.

    >>> engine_name() in ("core", "reference")
    True
    """
    chosen = os.environ.get(VARIABLE)
    if chosen not in (None, "", "core", "reference"):
        raise ValueError(f'{VARIABLE} must be "core" or "reference", not {chosen!r}')
    if chosen == "reference":
        return "reference"
    error = _core_error()
    if error is None:
        return "core"
    if chosen == "core":
        raise ImportError(f"{VARIABLE}=core, but {_why(error)}.") from error
    return "reference"


def say_if_slow() -> None:
    """Warn, once, when the slow engine is used without having been chosen."""
    if engine_name() == "reference" and not os.environ.get(VARIABLE):
        _say_once()


@cache
def _say_once() -> None:
    error = _core_error()
    if error is not None:
        warnings.warn(
            f"cpbpe runs on its reference engine, which is exact but slow: {_why(error)}. "
            f"(To choose this engine without a warning, set the environment variable {VARIABLE}=reference.)",
            RuntimeWarning,
            stacklevel=calls_of_ours(),
        )


def calls_of_ours() -> int:
    """How many calls there are between a warning in the caller and the user's line that led to it."""
    frame: FrameType | None = sys._getframe()
    calls = -1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cpbpe":
        frame, calls = frame.f_back, calls + 1
    return max(calls + 1, 1)


def _core_error() -> ImportError | None:
    """What went wrong when the core was imported; None if it is there."""
    try:
        import cpbpe._core  # noqa: F401
    except ImportError as error:
        return error
    return None


def _why(error: ImportError) -> str:
    why: str = imported("cpbpe.engine.missing_core").why_no_core(error)
    return why
