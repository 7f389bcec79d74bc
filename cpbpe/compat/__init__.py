"""The interfaces of other packages, for programs that were written for them.

`cpbpe.compat.sentencepiece` has the interface of sentencepiece. A program that can be changed imports it by
that name. For code that cannot be changed, such as a library, `install` names it `sentencepiece`:

>>> import cpbpe.compat
>>> cpbpe.compat.install(replace=True)
>>> import sentencepiece
>>> sentencepiece.__name__
'cpbpe.compat.sentencepiece'
>>> cpbpe.compat.uninstall()
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

__all__ = ["install", "uninstall"]

_NAME = "sentencepiece"
_SUBMODULES = ("sentencepiece_model_pb2", "sentencepiece_pb2")
_before: dict[str, ModuleType] | None = None
"""The modules that were called sentencepiece before `install`; None while nothing is installed."""


def install(*, replace: bool = False) -> None:
    """Give `cpbpe.compat.sentencepiece` the name `sentencepiece`, for every later import in this process.

    Call it first, before anything imports sentencepiece. If something has, this is a RuntimeError,
    because that code keeps what it imported; `replace=True` says that this is understood.
    Whether sentencepiece is installed does not matter. A second call does nothing. Other processes,
    such as those that multiprocessing spawns, have to call it themselves.
    """
    global _before
    ours = importlib.import_module("cpbpe.compat.sentencepiece")
    if sys.modules.get(_NAME) is ours:
        return
    modules_before = {name: module for name, module in sys.modules.items() if _is_sentencepiece(name)}
    if modules_before and not replace:
        raise RuntimeError(
            "sentencepiece is imported already, and code that has imported it keeps it; call "
            "cpbpe.compat.install() before anything imports it, or install(replace=True) for the "
            "imports from here on"
        )
    # What may fail comes first, so that a failure leaves everything as it was.
    modules = {f"{_NAME}.{name}": importlib.import_module(f"{ours.__name__}.{name}") for name in _SUBMODULES}
    for name in modules_before:
        del sys.modules[name]
    sys.modules.update({_NAME: ours, **modules})
    _before = modules_before


def uninstall() -> None:
    """Undo `install`: the modules that were called sentencepiece before are called so again.

    Code that has imported in between keeps what it has. Without `install` this does nothing.
    """
    global _before
    if _before is None:
        return
    ours = importlib.import_module("cpbpe.compat.sentencepiece")
    if sys.modules.get(_NAME) is ours:
        for name in [name for name in sys.modules if _is_sentencepiece(name)]:
            del sys.modules[name]
        sys.modules.update(_before)
    _before = None


def _is_sentencepiece(name: str) -> bool:
    return name == _NAME or name.startswith(f"{_NAME}.")
