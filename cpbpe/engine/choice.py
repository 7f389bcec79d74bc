"""Which engine does the work: the compiled core if it is installed, otherwise the reference.

If the core is not used, this file also says why, and what to do about it. There are three possible reasons.
Most often Python was started in the folder with the sources of cpbpe, and so imports these, while the core is
in the folder where cpbpe was installed. Or the core is there but cannot be imported: it is for another Python
or machine, or does not support subinterpreters. Or it was never compiled.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from types import FrameType
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ModelError
from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine, Finder
    from cpbpe.model.spec import ModelSpec

VARIABLE = "CPBPE_ENGINE"
"""The environment variable that chooses an engine: "core" or "reference"."""
MACHINE, _MACHINES = "CPBPE_MACHINE", ("plain", "avx2", "neon", "avx512")
"""The variable that limits which instructions of the processor the core uses; it may use any by default."""
_REFUSALS = (ValueError, TypeError, AttributeError, KeyError)
"""The errors that the core raises for columns that it does not accept."""

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package that was imported."""
_LIBRARIES = (".so", ".pyd", ".dylib")
"""How the names of compiled cores end, for any Python."""


def make_engine(spec: ModelSpec) -> Engine:
    """The engine for a model: the best available one, or the one that CPBPE_ENGINE names."""
    with importing:
        from cpbpe.engine.columns import columns_of
        from cpbpe.model.validity import check, check_alphabet
    check_alphabet(spec)
    if engine_name() == "reference":
        say_if_slow()
        check(spec)
        with importing:
            from cpbpe.engine.reference_engine import PythonEngine
        return PythonEngine(spec)
    from cpbpe import _core

    try:
        return _core.Engine.from_columns(columns_of(spec))
    except _REFUSALS as error:
        check(spec)  # raises an error that says what is wrong, and with which piece
        if not _takes_columns(_core.Engine, spec.alphabet):
            raise RuntimeError(another_version(_core.__file__, error)) from error
        if spec.splitter is not None:  # the core may refuse a pattern that `regex` accepts
            raise ModelError(f"the pattern {spec.splitter.pattern!r}: {error}") from None
        raise RuntimeError(
            "the core refuses a model that the reference accepts; please report this"
        ) from error


def load_engine(data: bytes) -> Engine:
    """The engine for a `.model` file: that of `make_engine(sentencepiece.read(data))`.

    The core reads most files itself, in a tenth of the time that protobuf takes in Python. It can return the
    model as columns later. Files that it cannot read are read in Python.
    """
    if engine_name() == "core":
        from cpbpe import _core

        core = _core.Engine.from_model(data)
        if core is not None:
            return core
    with importing:
        from cpbpe.model.formats.sentencepiece import read
    return make_engine(read(data))


def make_finder(keys: list[bytes]) -> Finder:
    """A finder of these keys in text, such as special tokens.

    >>> make_finder([b"<s>"]).split("a<s>b"), make_finder([b"<s>"]).split("ab")
    (['a', 0, 'b'], None)
    """
    if engine_name() == "core":
        from cpbpe import _core

        return _core.Finder(keys)
    with importing:
        from cpbpe.text.finder import Finder as ReferenceFinder
    return ReferenceFinder(keys)


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
    most = os.environ.get(MACHINE)
    if most and most not in _MACHINES:
        raise ValueError(f"{MACHINE} must be plain, avx2, neon or avx512, not {most!r}")
    error = _core_error()
    if error is None:
        return "core"
    if chosen == "core":
        raise ImportError(f"{VARIABLE}=core, but {why_no_core(error)}.") from error
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
            f"cpbpe runs on its reference engine, which is exact but slow: {why_no_core(error)}. "
            f"(To choose this engine without a warning, set the environment variable {VARIABLE}=reference.)",
            RuntimeWarning,
            stacklevel=calls_of_ours(),
        )


def calls_of_ours() -> int:
    """The `stacklevel` that makes a warning of the caller point to the line of the user's code behind it."""
    frame: FrameType | None = sys._getframe()
    calls = -1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cpbpe":
        frame, calls = frame.f_back, calls + 1
    return max(calls + 1, 1)


def _core_error() -> ImportError | None:
    """The error that importing the core raises; None if it can be imported."""
    try:
        with importing:
            import cpbpe._core  # noqa: F401
    except ImportError as error:
        return error
    return None


# --- Why the core is not used ---------------------------------------------------------------------


def why_no_core(error: ImportError, paths: Iterable[str] | None = None, here: str = _HERE) -> str:
    """Two sentences: why importing the core failed with `error`, and what to do.

    `paths`: where Python looks for packages. `here`: the folder of the package that was imported.

    >>> why_no_core(ModuleNotFoundError("No module named 'x'", name="x"), [], "/nowhere")
    "the compiled core is not installed. Install cpbpe again with a Rust toolchain (https://rustup.rs), \
and with pip's option --no-binary cpbpe if it came from PyPI"
    """
    core_here = next(_cores(here), None)
    if core_here is not None:
        reason = str(error).rstrip(". ")
        return f"the compiled core, {core_here}, cannot be imported: {reason}. {_advice(reason)}"
    elsewhere = [path for path in (sys.path if paths is None else paths) if _is_another(path, here)]
    if elsewhere:
        home, other = os.path.dirname(here), os.path.join(elsewhere[0], os.path.basename(here))
        return (
            f"Python imports cpbpe from {here}, where no core was compiled, and not from {other}, where it "
            f"was installed with one. Start Python in another folder than {home} (or take this folder out of "
            f"PYTHONPATH), or compile the core in place: pip install -e {home}"
        )
    with importing:
        from glob import glob
    foreign = next(
        (name for name in sorted(glob("_core.*", root_dir=here)) if name.endswith(_LIBRARIES)), None
    )
    if foreign is not None:
        return (
            f"the compiled core, {os.path.join(here, foreign)}, is for another Python or another system. "
            f"Install cpbpe again with this Python, {sys.executable}"
        )
    # (pip prefers the wheel without a core to compiling one: see CONTRIBUTING.md. A checkout has none.)
    return (
        "the compiled core is not installed. Install cpbpe again with a Rust toolchain (https://rustup.rs), "
        "and with pip's option --no-binary cpbpe if it came from PyPI"
    )


def _takes_columns(engine: Any, alphabet: str) -> bool:
    """Whether the core's class accepts the columns of a small model that is certainly valid.

    A core of another version of cpbpe does not, because its columns differ. (A version number for the columns
    would have to be raised with every change; this test needs nobody to remember that.)
    """
    with importing:
        from cpbpe.engine.columns import columns_of
        from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
        from cpbpe.text.split_patterns import PATTERNS
    pieces = [(b"<unk>", 0.0, PieceType.UNKNOWN), (b"a", -1.0, PieceType.NORMAL)]
    spec = ModelSpec(Pieces.of(pieces))
    if alphabet == "bytes":
        letters = Pieces.of([(bytes([byte]), 0.0, PieceType.NORMAL) for byte in range(256)])
        rules = NormalizerSpec("identity", b"", False, False, False)
        spec = ModelSpec(letters, rules, alphabet="bytes", splitter=SplitSpec(PATTERNS["gpt2"], "gpt2"))
    try:
        engine.from_columns(columns_of(spec))
    except _REFUSALS:
        return False
    return True


def another_version(core: str, error: Exception, here: str = _HERE) -> str:
    """Two sentences: the core is not of the same version as the Python files, as `error` shows; what to do.

    >>> another_version("/x/_core.so", ValueError("expected tuple of length 7"), "/x")
    'the compiled core, /x/_core.so, is of another version than the Python files in /x, and does not take \
their models (expected tuple of length 7). Compile it again: pip install -e /'
    """
    return (
        f"the compiled core, {core}, is of another version than the Python files in {here}, and does not "
        f"take their models ({error}). Compile it again: pip install -e {os.path.dirname(here)}"
    )


def _advice(reason: str) -> str:
    if "interpreter" in reason:  # PyO3 and Python have several messages for this
        return "Use cpbpe in the main interpreter, or in processes of their own (multiprocessing)"
    return f"Install cpbpe again on this machine, with this Python, {sys.executable}"


def _cores(package: str) -> Iterator[str]:
    """The compiled cores in a package's folder that this Python would import."""
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(package, f"_core{suffix}")
        if os.path.isfile(path):
            yield path


def _is_another(path: str, here: str) -> bool:
    """Whether a folder of `sys.path` holds a package like the one in `here`, but with a core."""
    package = os.path.join(os.path.abspath(path or os.curdir), os.path.basename(here))
    return any(_cores(package)) and os.path.realpath(package) != os.path.realpath(here)
