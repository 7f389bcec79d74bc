"""A time limit for code that would not end if it were wrong, and with which all other tests would wait."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End Python code that keeps the processor busy for longer. Windows has no such limit."""
    if not hasattr(signal, "ITIMER_VIRTUAL"):
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took {seconds} seconds, and may have no end")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
