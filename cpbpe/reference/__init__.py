"""The whole algorithm in plain Python, written to be read: the oracle of the tests, and an engine.

Read `encoding.py` first and then `training.py`, each from top to bottom. `ReferenceEngine` encodes and
decodes with a `ModelSpec`; `steps` shows how a text becomes ids, one merge after another.
`byte_level/` has the other family of models, that of GPT-4 and Llama 3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.reference.encoding import ReferenceEngine
    from cpbpe.reference.step_by_step import Step, Steps, steps

__all__ = ["ReferenceEngine", "Step", "Steps", "steps"]

_LATER = {
    "ReferenceEngine": "cpbpe.reference.encoding",
    "Step": "cpbpe.reference.step_by_step",
    "Steps": "cpbpe.reference.step_by_step",
    "steps": "cpbpe.reference.step_by_step",
}


def __getattr__(name: str) -> object:
    """Import a name of `_LATER` when it is first used: the core needs only small parts of this folder."""
    if name not in _LATER:
        raise AttributeError(f"module 'cpbpe.reference' has no attribute {name!r}")
    with importing:
        return getattr(import_module(_LATER[name]), name)
