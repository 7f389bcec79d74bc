"""The names and parameters of cpbpe.compat.sentencepiece are those of the installed sentencepiece.

So a new version of sentencepiece that adds, drops or renames something is noticed here.
"""

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest
import sentencepiece

from tests.support.compat_calls import OURS, THEIRS

CLASSES = ["SentencePieceProcessor", "SentencePieceTrainer", "SentencePieceNormalizer", "ThreadPool"]
BUILTIN = {
    # Their C++ functions do not tell their parameters; these are ours, which may also be named.
    "SetDataDir": "(data_dir)",
    "SetMinLogLevel": "(level)",
    "SetNBestTimeout": "(timeout_ms)",
    "SetRandomGeneratorSeed": "(seed)",
    "ThreadPool.__init__": "(self, num_threads)",
    "ThreadPool.num_threads": "(self)",
}
IMPORTED = {"csv", "importlib", "io", "os", "sys"}
"""Modules that theirs imports but that are not part of it."""
ADDED = {"Error"}
"""What the trainer here raises: a RuntimeError as theirs, and a TrainingError as elsewhere in cpbpe."""
ADDED_MODULES = {
    # The files of this package, and what Python's own `from __future__` leaves behind.
    "annotations",
    "decompile",
    "loaded",
    "normalizer",
    "processor",
    "results",
    "settings",
    "train_calls",
    "trainer",
    "values",
}


def public(target: Any) -> set[str]:
    return {name for name in dir(target) if not name.startswith("_")}


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    signature = inspect.signature(function)
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


def test_names() -> None:
    for name in ("sentencepiece_pb2", "sentencepiece_model_pb2"):  # both import them when they are needed
        importlib.import_module(f"{THEIRS.__name__}.{name}")
        importlib.import_module(f"{OURS.__name__}.{name}")
    assert public(THEIRS) - IMPORTED == public(OURS) - ADDED - ADDED_MODULES
    assert set(OURS.__all__) == {
        name for name in public(OURS) - ADDED_MODULES if not isinstance(getattr(OURS, name), ModuleType)
    }


@pytest.mark.parametrize("name", CLASSES)
def test_methods(name: str) -> None:
    theirs, ours = getattr(THEIRS, name), getattr(OURS, name)
    assert public(ours) == public(theirs)
    special = {"__init__", "__len__", "__getitem__", "__getstate__", "__setstate__"}
    checked = 0
    for method in sorted(public(theirs) | (special & set(vars(theirs)))):
        if f"{name}.{method}" in BUILTIN:
            continue
        found, expected = getattr(ours, method), getattr(theirs, method)
        assert parameters(found) == parameters(expected), f"{name}.{method}"
        static = [inspect.getattr_static(target, method) for target in (ours, theirs)]
        assert [isinstance(each, classmethod) for each in static] == [isinstance(static[1], classmethod)] * 2
        checked += 1
    assert checked >= {"SentencePieceProcessor": 90, "ThreadPool": 0}.get(name, 2)


def test_both_names_of_a_method_are_one() -> None:
    for name in CLASSES[:3]:
        theirs, ours = getattr(THEIRS, name), getattr(OURS, name)
        for method in public(theirs):
            same = {other for other in public(theirs) if getattr(theirs, other) is getattr(theirs, method)}
            if not inspect.ismethod(getattr(theirs, method)):  # a classmethod is bound anew every time
                found = {other for other in public(ours) if getattr(ours, other) is getattr(ours, method)}
                assert found == same, f"{name}.{method}"


def test_functions() -> None:
    functions = {name for name in public(THEIRS) if callable(getattr(THEIRS, name)) and name not in CLASSES}
    assert {"ConvertToFlatbuffer", "SetRandomGeneratorSeed"} < functions
    for name in functions:
        ours = getattr(OURS, name)
        camel = name if "_" not in name else name.title().replace("_", "").replace("Nbest", "NBest")
        assert ours is getattr(OURS, camel)
        assert getattr(THEIRS, name) is getattr(THEIRS, camel)
        if camel in BUILTIN:
            with pytest.raises(ValueError, match="signature"):
                inspect.signature(getattr(THEIRS, name))
        else:
            assert parameters(ours) == parameters(getattr(THEIRS, name)), name


@pytest.mark.parametrize("name", BUILTIN)
def test_functions_that_are_not_python_there(name: str) -> None:
    ours: Any = OURS
    for part in name.split("."):
        ours = getattr(ours, part)
    shown = inspect.signature(ours)
    assert (
        str(
            shown.replace(
                return_annotation=shown.empty,
                parameters=[p.replace(annotation=p.empty) for p in shown.parameters.values()],
            )
        )
        == BUILTIN[name]
    )
    assert THEIRS.__version__ == sentencepiece.__version__ == "0.2.3"
