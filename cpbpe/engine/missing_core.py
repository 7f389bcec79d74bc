"""Why the compiled core is not used, and what to do about it.

This is used only before the slow engine runs, and where the core refuses a model.

There are three reasons. Usually Python imports the sources of cpbpe, because it was started in the folder
that holds them, while the core is in the folder where cpbpe was installed. Or the core is there but cannot be
imported: it is for another Python or machine, or does not support subinterpreters. Or it was never
compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from cpbpe.engine.columns import columns_of
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.text.split_patterns import PATTERNS

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package that was imported."""

_LIBRARIES = (".so", ".pyd", ".dylib")


def why_no_core(error: ImportError, paths: Iterable[str] | None = None, here: str = _HERE) -> str:
    """Two sentences: why importing the core failed with `error`, and what to do.

    `paths`: where Python looks for packages. `here`: the folder of the package that was imported.

    >>> why_no_core(ModuleNotFoundError("No module named 'x'", name="x"), [], "/nowhere")
    'the compiled core is not installed. Install cpbpe again with a Rust toolchain (https://rustup.rs)'
    """
    lies_here = next(_cores(here), None)
    if lies_here is not None:
        reason = str(error).rstrip(". ")
        return f"the compiled core, {lies_here}, cannot be imported: {reason}. {_way_out(reason)}"
    elsewhere = [path for path in (sys.path if paths is None else paths) if _is_another(path, here)]
    if elsewhere:
        home, other = os.path.dirname(here), os.path.join(elsewhere[0], os.path.basename(here))
        return (
            f"Python imports cpbpe from {here}, where no core was compiled, and not from {other}, where it "
            f"was installed with one. Start Python in another folder than {home} (or take this folder out of "
            f"PYTHONPATH), or compile the core in place: pip install -e {home}"
        )
    foreign = next(_libraries(here), None)
    if foreign is not None:
        return (
            f"the compiled core, {os.path.join(here, foreign)}, is for another Python or another system. "
            f"Install cpbpe again with this Python, {sys.executable}"
        )
    return "the compiled core is not installed. Install cpbpe again with a Rust toolchain (https://rustup.rs)"


def takes_columns(engine: Any, alphabet: str) -> bool:
    """Whether the core's class takes the columns of a small model that is right without doubt.

    A core of another version of cpbpe does not: it has other columns. (A number that both have would need
    somebody to think of it; this also finds what nobody has thought of.)
    """
    pieces = [(b"<unk>", 0.0, PieceType.UNKNOWN), (b"a", -1.0, PieceType.NORMAL)]
    spec = ModelSpec(Pieces.of(pieces))
    if alphabet == "bytes":
        letters = Pieces.of([(bytes([byte]), 0.0, PieceType.NORMAL) for byte in range(256)])
        rules = NormalizerSpec("identity", b"", False, False, False)
        spec = ModelSpec(letters, rules, alphabet="bytes", splitter=SplitSpec(PATTERNS["gpt2"], "gpt2"))
    try:
        engine.from_columns(**columns_of(spec))
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def another_version(core: str, error: Exception, here: str = _HERE) -> str:
    """Two sentences: that the core is not that of these Python files, as `error` shows, and what to do.

    >>> another_version("/x/_core.so", ValueError("expected tuple of length 7"), "/x")
    'the compiled core, /x/_core.so, is of another version than the Python files in /x, and does not take \
their models (expected tuple of length 7). Compile it again: pip install -e /'
    """
    return (
        f"the compiled core, {core}, is of another version than the Python files in {here}, and does not "
        f"take their models ({error}). Compile it again: pip install -e {os.path.dirname(here)}"
    )


def _way_out(reason: str) -> str:
    if "interpreter" in reason:  # PyO3 and Python have several messages for this
        return "Use cpbpe in the main interpreter, or in processes of their own (multiprocessing)"
    return f"Install cpbpe again on this machine, with this Python, {sys.executable}"


def _cores(package: str) -> Iterator[str]:
    """The compiled cores in a package's folder that this Python would import."""
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(package, f"_core{suffix}")
        if os.path.isfile(path):
            yield path


def _libraries(package: str) -> Iterator[str]:
    """The names of the compiled cores in a package's folder, for any Python."""
    try:
        names = sorted(os.listdir(package))
    except OSError:
        return
    for name in names:
        if name.startswith("_core.") and name.endswith(_LIBRARIES):
            yield name


def _is_another(path: str, here: str) -> bool:
    """Whether a folder of `sys.path` holds a package like the one in `here`, but with a core."""
    package = os.path.join(os.path.abspath(path or os.curdir), os.path.basename(here))
    return any(_cores(package)) and os.path.realpath(package) != os.path.realpath(here)
