"""Which engine does the work: the compiled core if it is installed, otherwise the reference."""

from __future__ import annotations

import os
import warnings
from functools import cache

from cpbpe.engine.columns import columns_of
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import imported
from cpbpe.model.spec import ModelSpec

VARIABLE = "CPBPE_ENGINE"
"""The environment variable that chooses an engine: "core" or "reference"."""


def make_engine(spec: ModelSpec) -> Engine:
    """The engine for a model: the best there is, or the one that CPBPE_ENGINE names."""
    if engine_name() == "reference":
        say_if_slow()
        imported("cpbpe.model.validity").check(spec)
        engine: Engine = imported("cpbpe.engine.reference_engine").PythonEngine(spec)
        return engine
    from cpbpe import _core

    try:
        core: Engine = _core.Engine.from_columns(**columns_of(spec))
    except ValueError as error:
        imported("cpbpe.model.validity").check(spec)  # says what is wrong, and with which piece
        raise RuntimeError(
            "the core refuses a model that the reference accepts; please report this"
        ) from error
    return core


def load_engine(data: bytes) -> Engine:
    """The engine for a `.model` file: that of `make_engine(sentencepiece.read(data))`.

    The core reads the usual files itself, which takes a tenth of the time that protobuf takes in Python. It
    can give the model back as columns. Files that it cannot read itself are read in Python.
    """
    if engine_name() == "core":
        from cpbpe import _core

        core = _core.Engine.from_model(data)
        if core is not None:
            return core
    return make_engine(imported("cpbpe.model.formats.sentencepiece").read(data))


def engine_name() -> str:
    """The engine that new tokenizers use: "core", compiled, or "reference", the algorithm in plain Python.

    The environment variable CPBPE_ENGINE chooses one.

    >>> engine_name() in ("core", "reference")
    True
    """
    chosen = os.environ.get(VARIABLE)
    if chosen not in (None, "", "core", "reference"):
        raise ValueError(f'{VARIABLE} is "core" or "reference", not {chosen!r}')
    if chosen == "reference":
        return "reference"
    try:
        import cpbpe._core  # noqa: F401
    except ImportError as error:
        if chosen == "core":
            raise ImportError(f"{VARIABLE}=core, but the compiled core is not installed: {error}") from error
        return "reference"
    return "core"


def say_if_slow() -> None:
    """Warn, once, when the slow engine is used without having been chosen."""
    if engine_name() == "reference" and not os.environ.get(VARIABLE):
        _say_once()


@cache
def _say_once() -> None:
    warnings.warn(
        "cpbpe runs on its reference engine, which is exact but slow, because the compiled core is not "
        "installed. Install cpbpe again with a Rust toolchain (https://rustup.rs), or set "
        f"{VARIABLE}=reference to choose this engine in silence.",
        RuntimeWarning,
        stacklevel=6,
    )
