"""Work on the parts of a stream, by several threads, with the results in the order of the parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

P = TypeVar("P")
R = TypeVar("R")


def in_order(parts: Iterable[P], work: Callable[[P], R], threads: int) -> Generator[R, None, None]:
    """The results of the work on all parts.

    Each part is worked on by one thread as a whole: so what is between the calls of the core, such as making
    lists, runs beside the core as well. No more parts are in memory than keep the threads busy. No thread is
    alive after the last result, or once the iterator is closed.

    >>> list(in_order(range(5), lambda number: number * number, 2))
    [0, 1, 4, 9, 16]
    """
    if threads < 2:
        yield from map(work, parts)
        return
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextvars import copy_context  # with it, messages spell options as they do here

    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(copy_context().run, work, part))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
