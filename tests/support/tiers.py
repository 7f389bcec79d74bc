"""Which cases run every day (`pytest -m "not slow"`), and which only with the whole suite.

The daily tier takes a third of the time. It touches every capability on both engines, with a few
models, and leaves out what takes seconds on the reference engine. The whole suite leaves out only
what `CPBPE_EXAMPLES=1000` asks for (`budget.py`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.conftest import ENGINES
from tests.support import zoo

slow = pytest.mark.slow

DAILY_MODELS = frozenset(
    {
        zoo.REAL[0],  # a real one, of 32,000 pieces
        "llama",  # its settings, small
        "defaults",  # sentencepiece's settings: rules, spaces removed, no byte fallback
        "user-defined-llama",
        "unused-ambiguous",
        "charsmap-broken",
    }
)
"""Models that have as little in common as possible."""


def some(cases: Iterable[Any], daily: Iterable[Any]) -> list[Any]:
    """All cases; those that are not among the daily ones are slow."""
    chosen = list(daily)
    return [case if case in chosen else pytest.param(case, marks=slow) for case in cases]


def models(names: Sequence[str] = zoo.NAMES) -> pytest.MarkDecorator:
    """The argument `name`: models, of which a few are daily."""
    daily = [name for name in names if name in DAILY_MODELS]
    return pytest.mark.parametrize("name", some(names, daily or names[:1]))


engines = pytest.mark.parametrize("engine", ENGINES)
"""The argument `engine`, for tests with hypothesis, which do not go with a fixture for each call."""

slow_reference = pytest.mark.parametrize("engine", some(ENGINES, ENGINES[:1]), indirect=True)
"""The fixture `engine`, for tests that take seconds on the reference: daily on the core if it was built."""
