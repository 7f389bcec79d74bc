"""The interfaces of other packages, call by call, for programs that were written for them.

`cpbpe.compat.transformers` has a tokenizer class for transformers, `cpbpe.compat.tokenizers` the calls of
`tokenizers.Tokenizer`, `cpbpe.compat.tiktoken` the package tiktoken, `cpbpe.compat.minbpe` the tokenizers
of a lecture, and `cpbpe.compat.sentencepiece` the interface of sentencepiece. Programs import them by these
names. For code that cannot be changed, for example in a library, `install` makes imports of the package find
cpbpe's module, or the tokenizers that transformers loads encode with cpbpe:

>>> import cpbpe.compat
>>> cpbpe.compat.install("sentencepiece", replace=True)
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

_SUBMODULES = {
    "sentencepiece": ("sentencepiece_model_pb2", "sentencepiece_pb2"),
    "tiktoken": ("core", "load", "model", "registry"),
    "tokenizers": ("decoders", "processors"),
}
"""The packages that `install` can replace, and their submodules that programs import."""
_TRANSFORMERS = "transformers"
"""A package that stays: what it loads is changed, by this module."""
_FAST_TOKENIZERS = "cpbpe.compat.fast_tokenizers"
_before: dict[str, dict[str, ModuleType]] = {}
"""For each package that is replaced: the modules that were imported before."""


def install(*names: str, replace: bool = False) -> None:
    """Give modules of cpbpe.compat the name of the package that they stand for.

    `names` are those of the packages to replace: "sentencepiece", "tiktoken", "tokenizers". Without any, it
    is sentencepiece alone. Every later import in this process gets cpbpe's module. Call it before anything
    imports the package. If something already has, RuntimeError is raised, because the code that has imported
    it keeps using it; `replace=True` accepts that. Whether the package is installed does not matter. A second
    call does nothing. Other processes, such as those that multiprocessing spawns, must call it themselves.

    "transformers" is different. The package stays, and may be imported already. Its `from_pretrained` then
    returns its own fast tokenizers, but they encode with cpbpe, if that does exactly the same. If not,
    `tokenizer.cpbpe_backend.refusal` says why.
    """
    # Everything that can fail is done first, so that a failure leaves everything as it was.
    wanted = {}
    fast_tokenizers = importlib.import_module(_FAST_TOKENIZERS) if _TRANSFORMERS in _checked(names) else None
    for name in names or ("sentencepiece",):
        if name == _TRANSFORMERS:
            continue
        ours = importlib.import_module(f"cpbpe.compat.{name}")
        if sys.modules.get(name) is ours:
            continue
        if _modules_of(name) and not replace:
            raise RuntimeError(
                f"{name} has already been imported, and code that has imported it keeps it; call "
                f"cpbpe.compat.install({name!r}) before anything imports it, or "
                f"install({name!r}, replace=True) for the imports from here on"
            )
        inner = {
            f"{name}.{module}": importlib.import_module(f"{ours.__name__}.{module}")
            for module in _SUBMODULES[name]
        }
        wanted[name] = {name: ours, **inner}
    for name, modules in wanted.items():
        _before[name] = _modules_of(name)
        for there in _before[name]:
            del sys.modules[there]
        sys.modules.update(modules)
    if fast_tokenizers is not None:
        fast_tokenizers.install()


def uninstall(*names: str) -> None:
    """Undo `install`: give these names, or all, back to the modules that had them before.

    Code that has imported one in the meantime keeps what it has. Without `install` this does nothing.
    """
    for name in _checked(names) or (*_before, _TRANSFORMERS):
        if name == _TRANSFORMERS and _FAST_TOKENIZERS in sys.modules:
            sys.modules[_FAST_TOKENIZERS].uninstall()
        if name not in _before:
            continue
        before = _before.pop(name)
        if sys.modules.get(name) is importlib.import_module(f"cpbpe.compat.{name}"):
            for there in _modules_of(name):
                del sys.modules[there]
            sys.modules.update(before)


def _checked(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in (known := [*_SUBMODULES, _TRANSFORMERS]):
            raise ValueError(f"cpbpe can stand for {', '.join(known)}, and not for {name!r}")
    return names


def _modules_of(name: str) -> dict[str, ModuleType]:
    """The modules of a package that are imported."""
    return {
        other: module
        for other, module in sys.modules.items()
        if other == name or other.startswith(f"{name}.")
    }
