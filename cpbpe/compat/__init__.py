"""The interfaces of other packages, call by call, for programs that were written for them.

`cpbpe.compat.transformers` has a tokenizer class for transformers, `cpbpe.compat.tokenizers` the calls of
`tokenizers.Tokenizer`, `cpbpe.compat.tiktoken` the package tiktoken, `cpbpe.compat.minbpe` the tokenizers
of a lecture, and `cpbpe.compat.sentencepiece` the interface of sentencepiece. Programs import it by that
name. For code that cannot be changed, for example in a library, `install` gives it the name `sentencepiece`:

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

    Call it before anything imports sentencepiece. If something already has, RuntimeError is raised, because
    the code that has imported it keeps using it; `replace=True` accepts that. Whether sentencepiece is
    installed does not matter. A second call does nothing. Other processes, such as those that multiprocessing
    spawns, must call it themselves.
    """
    global _before
    ours = importlib.import_module("cpbpe.compat.sentencepiece")
    if sys.modules.get(_NAME) is ours:
        return
    there = {name: module for name, module in sys.modules.items() if _is_sentencepiece(name)}
    if there and not replace:
        raise RuntimeError(
            "sentencepiece has already been imported, and code that has imported it keeps it; call "
            "cpbpe.compat.install() before anything imports it, or install(replace=True) for the "
            "imports from here on"
        )
    # What can fail comes first, so that a failure leaves everything as it was.
    modules = {f"{_NAME}.{name}": importlib.import_module(f"{ours.__name__}.{name}") for name in _SUBMODULES}
    for name in there:
        del sys.modules[name]
    sys.modules.update({_NAME: ours, **modules})
    _before = there


def uninstall() -> None:
    """Undo `install`: give the name `sentencepiece` back to the modules that had it before.

    Code that has imported it in the meantime keeps what it has. Without `install` this does nothing.
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
