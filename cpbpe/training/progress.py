"""Showing the progress of long work: by a bar on a terminal, by calls of a function, or not at all.

There is a bar, unless the caller says otherwise, if it disturbs nobody: the error output is a terminal, and
the standard output is no pipe, whose reader (`head`, `less`) writes to the same terminal. A bar appears after
half a second of work, because before that it would only flicker. It is drawn by `rich` or `tqdm` where one of
them is installed, and is one plain line otherwise.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TextIO

from cpbpe.lazy import importing

IN_BYTES = ("reading", "encoding", "decoding")
"""The phases that are measured in bytes."""


@dataclass(frozen=True)
class Step:
    """The progress of one phase of the work."""

    phase: str
    """What is being done: in training "reading", "joining", "characters", "pairs", "merges" or "writing"."""
    done: int
    """How much is done: bytes in the phases of IN_BYTES, words in "joining", else what the phase names."""
    total: int | None
    """How much there is, if that is known."""
    seconds: float
    """Since the work began."""


Callback = Callable[[Step], object]
ProgressOption = bool | Callback | None
"""A function that is called with a `Step` several times a second; True for a bar, False for nothing; None for
a bar if the error output is a terminal and the standard output is no pipe."""

BEFORE_BAR = 0.5
"""For how many seconds the work goes on before there is a bar."""


class Display:
    """Takes the progress of all phases and shows it. Used with `with`, so that a bar ends whatever happens.

    >>> seen = []
    >>> with Display(seen.append) as display:
    ...     display.update("merges", 1, 2)
    ...     display.update("merges", 2, 2)
    >>> [(step.phase, step.done, step.total) for step in seen]
    [('merges', 1, 2), ('merges', 2, 2)]
    """

    def __init__(self, progress: ProgressOption = None, *, is_printed: bool = False):
        """`is_printed`: the result goes to the standard output. No bar comes between its lines there."""
        self._begun = time.monotonic()
        self._bar: _Rich | _Tqdm | _Line | None = None
        self._show: Callback | None = None
        if callable(progress):
            self._show = progress
        elif sys.stderr is not None and (_disturbs_nobody(is_printed) if progress is None else progress):
            self._show = self._draw

    def update(self, phase: str, done: int, total: int | None) -> None:
        """Report the progress of a phase. An exception of the callback is passed on and ends the training."""
        if self._show is not None:
            self._show(Step(phase, done, total, time.monotonic() - self._begun))

    def _draw(self, step: Step) -> None:
        if self._bar is None and step.seconds >= BEFORE_BAR:
            self._bar = _make_bar(sys.stderr)
        if self._bar is not None:
            self._bar.show(step)

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _disturbs_nobody(is_printed: bool) -> bool:
    """Whether a bar on the error output gets in nobody's way."""
    out = sys.stdout
    if not sys.stderr.isatty() or (is_printed and out is not None and out.isatty()):
        return False
    with suppress(OSError, ValueError, AttributeError):  # closed, or not a file
        return not stat.S_ISFIFO(os.fstat(out.fileno()).st_mode)
    return True


def _make_bar(stream: TextIO) -> _Rich | _Tqdm | _Line:
    for kind in (_Rich, _Tqdm):
        with suppress(ImportError):
            return kind(stream)
    return _Line(stream)


class _Rich:
    def __init__(self, stream: TextIO):
        with importing:
            from rich.console import Console
            from rich.progress import Progress

        self._progress: Any = Progress(console=Console(file=stream), transient=True)
        self._progress.start()
        self._tasks: dict[str, Any] = {}

    def show(self, step: Step) -> None:
        if step.phase not in self._tasks:
            for task in self._progress.tasks:  # earlier phases have ended, whatever their last step said
                self._progress.update(task.id, total=task.total or 1, completed=task.total or 1)
            self._tasks[step.phase] = self._progress.add_task(step.phase, total=step.total)
        self._progress.update(self._tasks[step.phase], completed=step.done, total=step.total)

    def close(self) -> None:
        self._progress.stop()


class _Tqdm:
    def __init__(self, stream: TextIO):
        with importing:
            from tqdm import tqdm
        self._make: Any = tqdm
        self._stream = stream
        self._bar: Any = None
        self._phase = ""

    def show(self, step: Step) -> None:
        if step.phase != self._phase:
            self.close()
            self._phase = step.phase
            reading = {"unit": "B", "unit_scale": True} if step.phase in IN_BYTES else {"unit": ""}
            self._bar = self._make(
                total=step.total, desc=step.phase, file=self._stream, leave=False, **reading
            )
        self._bar.total = step.total
        self._bar.update(step.done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Line:
    """One line that fits the terminal, and is rewritten at most ten times a second."""

    WIDTH = 30

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._columns = 80
        with suppress(OSError, ValueError, AttributeError):  # not a terminal, or not even a file
            self._columns = os.get_terminal_size(stream.fileno()).columns or 80
        self._next = 0.0
        self._phase = ""
        self._begun = 0.0
        self._length = 0

    def show(self, step: Step) -> None:
        if step.phase != self._phase:
            self._phase, self._begun = step.phase, step.seconds
        elif step.seconds < self._next and step.done != step.total:
            return
        self._next = step.seconds + 0.1
        text = f"{step.phase:<10} {step.done:,}"
        if step.total:
            share = min(step.done / step.total, 1.0)
            rest = f" {share:4.0%} of {step.total:,}"
            elapsed = step.seconds - self._begun
            if 0.02 < share < 1 and elapsed > 1:
                rest += f", {elapsed / share - elapsed:.0f} s left"
            width = max(min(self.WIDTH, self._columns - len(rest) - 14), 0)
            filled = int(share * width)
            text = f"{step.phase:<10} [{'#' * filled + '.' * (width - filled)}]{rest}"
        self._write(text[: self._columns - 1])

    def close(self) -> None:
        if self._length:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)
