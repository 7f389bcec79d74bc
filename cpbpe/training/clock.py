"""How long the phases of training take, and how much memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cpbpe.training.report import Phase


class Clock:
    """Measures the phases of the work."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        begun = time.perf_counter()
        yield
        self.phases.append(Phase(name, time.perf_counter() - begun, _peak_memory()))


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
