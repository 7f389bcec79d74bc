"""Ctrl-C and SIGTERM, as the command hears them."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

_SOON = 0.01
"""After how many seconds a signal comes again, if it came at the wrong moment."""


class Signals:
    """Ctrl-C raises KeyboardInterrupt, and SIGTERM SystemExit, so that temporary files are cleaned up.

    They are not heard while a module is imported: a C extension that is interrupted there says that it cannot
    be imported, or ends the process. Nor are they where Python only prints an exception and goes on, such as
    in a destructor. They come again at once after that.
    """

    def __init__(self) -> None:
        self._is_over = self._has_alarm = False
        self._number: int = signal.SIGINT
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def begin(self) -> None:
        """Hear them, in the main thread, if nobody else has chosen what they do."""
        sys.unraisablehook = self._unraisable
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        with suppress(ValueError):  # only the main thread can set a handler
            for number, handler in usual.items():
                if signal.getsignal(number) is handler:
                    self._before[number] = signal.signal(number, self)

    def is_over(self) -> None:
        """Do not hear them any more: nothing is left to interrupt, and Python would show a traceback."""
        self._is_over = True
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def end(self) -> None:
        """Let everything be as before."""
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; that of the alarm stands for the one that came before it."""
        if number in (signal.SIGINT, signal.SIGTERM):
            self._number = number
        while frame is not None and not self._is_over:
            if frame.f_code.co_filename.startswith("<frozen importlib") and self._again():
                return
            frame = frame.f_back
        if not self._is_over:
            raise KeyboardInterrupt if self._number == signal.SIGINT else SystemExit(128 + self._number)

    def _again(self) -> bool:
        if not hasattr(signal, "setitimer"):  # Windows
            return False
        before = signal.signal(signal.SIGALRM, self)
        if not self._has_alarm:
            self._before[signal.SIGALRM], self._has_alarm = before, True
        signal.setitimer(signal.ITIMER_REAL, _SOON)
        return True

    def _unraisable(self, failed: Any) -> None:
        is_ours = failed.exc_type in (KeyboardInterrupt, SystemExit)
        if not is_ours or not (self._is_over or self._again()):
            self._hook(failed)
