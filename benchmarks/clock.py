"""How a library's turn is timed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

TURN = 0.1  # the least seconds of a turn


def timed_each(call: Callable[[Any], Any], items: Sequence[Any], least: float = TURN) -> float:
    """The seconds that `call` takes for all the items: the mean of as many passes as take `least` seconds.

    The garbage collector and the other libraries leave nothing of this one in the processor's caches, and a
    single pass, which may take a millisecond, would show that more than anything else.

    Results are let go one by one, and the last one of a pass after the clock has stopped.
    """
    seconds, passes = 0.0, 0
    gc.collect()
    gc.disable()
    try:
        while not passes or seconds < least:
            result = None
            begin = perf_counter()
            for item in items:
                result = call(item)
            seconds += perf_counter() - begin
            passes += 1
    finally:
        gc.enable()
    del result
    return seconds / passes


def timed(call: Callable[[], object]) -> float:
    """The seconds that a call without an argument takes, likewise."""
    return timed_each(lambda _: call(), [None])
