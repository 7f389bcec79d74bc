"""The work of a run: reading, encoding and writing at the same time, and continuing where an earlier run
ended.

One thread reads, one writes, and as many as are allowed encode, each a batch of its own.
A run is described by its *state*, a JSON value: how far the source is read, and how far each file is written.
The state may say that less is read than is written, never the opposite: what is read again is recognized by
its place in the sequence of documents and not written twice.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from cpbpe.corpus.files import in_order
from cpbpe.lazy import numpy
from cpbpe.packing.counting import Counter, Counts
from cpbpe.packing.encode import Encoder
from cpbpe.packing.manifest import Manifest
from cpbpe.packing.read import Batch, Read, Source
from cpbpe.packing.rows import Encoded, Rows
from cpbpe.packing.shards import Plan, Shards
from cpbpe.packing.shuffle import Buckets
from cpbpe.packing.spool import SpoolState

T = TypeVar("T")
SECONDS_BETWEEN_STATES = 2.0
"""How often the state is saved: what is done between two of them is done again after a kill."""
_PATIENCE = 0.5
"""How many seconds to wait for a reader that may itself wait, for a pipe that gives nothing."""
_WAITING = 3
"""How many batches may wait for the next step."""


class StoppedError(Exception):
    """The work was asked to stop."""


@dataclass
class Job:
    """What a run needs to know besides its plan."""

    plan: Plan
    manifest: Manifest
    source: Source
    encoder: Encoder
    counter: Counter
    shuffle_seed: int | None
    stop: threading.Event
    show: Callable[[str, int, int | None], None]
    """Shows how far the work is."""


class Writer:
    """Everything behind the encoder. It is used by one thread at a time."""

    def __init__(self, job: Job):
        self._job = job
        self._plan = plan = job.plan
        os.makedirs(plan.place.scratch("whole"), exist_ok=True)
        state = self._state_to_continue()
        self.read = Read(**state["read"])
        self.counts = Counts(**state["counts"])
        self.earlier_tokens = self.counts.tokens
        """How many tokens an earlier run has encoded."""
        self._ordering: list[int] | None = state["ordering"]
        """Once all documents are in buckets: the next bucket, and its place in the sequence."""
        self.shards = Shards(plan, job.manifest, state["splits"], self._state)
        self._buckets: Buckets | None = None
        if job.shuffle_seed is not None:
            self._buckets = Buckets(
                plan.place.scratch("buckets"),
                plan.dtype,
                job.shuffle_seed,
                job.source.total,
                state["buckets"],
            )
        self._saved = time.monotonic()

    def _state_to_continue(self) -> dict[str, Any]:
        """The latest state whose files are all there; without any, the beginning, after what is whole."""
        plan = self._plan
        for state in self._job.manifest.states(plan.place):
            spools = {name: split["spool"] for name, split in state["splits"].items()}
            if state["buckets"] is not None and not Buckets.are_there(
                plan.place.scratch("buckets"), plan.dtype, state["buckets"]
            ):
                continue
            if all(
                spool is None or plan.is_there(name, SpoolState.of(spool)) for name, spool in spools.items()
            ):
                return state
        splits = Shards.first_states(plan, self._job.manifest)
        counts, read = asdict(Counts()), asdict(Read())
        return {"read": read, "counts": counts, "ordering": None, "buckets": None, "splits": splits}

    def _state(self) -> dict[str, Any]:
        buckets = self._buckets
        return {
            "read": asdict(self.read),
            "counts": asdict(self.counts),
            "ordering": self._ordering,
            "buckets": None if buckets is None else buckets.state(),
            "splits": self.shards.states(),
        }

    @property
    def is_read(self) -> bool:
        """Whether the whole source is in buckets already."""
        return self._ordering is not None

    def take(self, batch: Batch, encoded: Encoded) -> None:
        """Write the documents of a batch."""
        np, counts, read = numpy(), self.counts.copy(), batch.after
        lengths = np.diff(encoded.offsets)
        ids = encoded.ids.astype(self._plan.dtype, copy=False)
        self._job.counter.add(ids if ids.dtype.kind == "u" else encoded.ids, counts)
        batch.located(self.read, len(lengths), encoded.empty)
        numbers = np.arange(self.read.number, read.number)
        files, records = batch.files_and_records(encoded.empty)
        rows = Rows(ids, lengths, numbers, numbers, files, records).without_empty()
        counts.documents += len(rows)
        counts.without_tokens += len(lengths) - len(rows)
        if self._buckets is None:
            self.shards.add(rows)
        else:
            self._buckets.add(rows)
        self.read, self.counts = read, counts
        self._job.show("reading", batch.done, self._job.source.total)
        if time.monotonic() - self._saved > SECONDS_BETWEEN_STATES:
            self.save()

    def order(self) -> None:
        """Write what is in the buckets."""
        buckets = self._buckets
        if buckets is None:
            return
        if self._ordering is None:
            self._ordering = [0, 0]
            self.save()
        for number in range(self._ordering[0], len(buckets)):
            self._job.show("shuffling", number, len(buckets))
            for rows in buckets.ordered(number, self._ordering[1]):
                self._plan.check()
                self.shards.add(rows)
            self._ordering = [number + 1, self._ordering[1] + buckets.documents(number)]
            if time.monotonic() - self._saved > SECONDS_BETWEEN_STATES:
                self.save()
        self._job.show("shuffling", len(buckets), len(buckets))

    def save(self) -> None:
        """Save the state."""
        self._job.manifest.save_state(self._plan.place, self._state())
        self._saved = time.monotonic()

    def close(self) -> None:
        """Close all files."""
        self.shards.close()


def work(job: Job) -> Writer:
    """Do all of it.

    Whatever ends it early, the next run goes on from the last state that was saved, and cuts the files back
    to that. So no state is saved here for an interruption, which may come between any two lines, when a
    document is in the files and the state does not say so yet.
    """
    writer = Writer(job)
    try:
        if not writer.is_read:
            _encode_all(job, writer)
        writer.order()
        writer.shards.finish()
    finally:
        writer.close()
    return writer


def _encode_all(job: Job, writer: Writer) -> None:
    batches: _Pipe[Batch] = _Pipe(job.stop)
    results: _Pipe[tuple[Batch, Encoded]] = _Pipe(job.stop)
    source = job.source.batches(writer.read, job.encoder.takes_lines)
    reader = threading.Thread(target=batches.fill, args=(source,), daemon=True)
    writing = threading.Thread(target=results.drain, args=(lambda result: writer.take(*result),), daemon=True)

    def encode(item: tuple[Batch, int]) -> tuple[Batch, Encoded]:
        return item[0], job.encoder.encode(*item)

    reader.start()
    writing.start()
    try:
        for result in in_order(_numbered(batches, writer.read.number), encode, job.encoder.threads):
            results.put(result)
        results.end(None)
        writing.join()
    except BaseException as error:
        # An error of reading comes after everything that was read before it, which is still written.
        if not isinstance(error, Exception) or results.failure is not None:
            job.stop.set()
        results.end(None)
        writing.join()
        job.stop.set()
        reader.join(_PATIENCE)
        if results.failure is not None and isinstance(error, StoppedError):
            raise results.failure from None
        if results.failure is None and writer.read.number:  # no thread writes any more
            with suppress(OSError):
                writer.save()
        raise
    reader.join()
    if results.failure is not None:
        raise results.failure


def _numbered(batches: Iterable[Batch], first: int) -> Iterator[tuple[Batch, int]]:
    """Each batch with the number of its first document. (Where it matters, batches have lists.)"""
    for batch in batches:
        yield batch, first
        first += len(batch.texts)


class _Pipe(Generic[T]):
    """A short queue between two threads, which an error on either side ends."""

    def __init__(self, stop: threading.Event):
        self._queue: queue.Queue[tuple[str, Any]] = queue.Queue(_WAITING)
        self._stop = stop
        self.failure: BaseException | None = None
        """What ended the thread that drains it."""

    def put(self, item: T) -> None:
        """Add an item, when there is room."""
        self._put("item", item)

    def end(self, failure: BaseException | None) -> None:
        """Add the end, perhaps with an error to be raised there."""
        with suppress(StoppedError):
            self._put("end", failure)

    def _put(self, kind: str, value: Any) -> None:
        while not self._stop.is_set():
            with suppress(queue.Full):
                self._queue.put((kind, value), timeout=0.1)
                return
        raise StoppedError

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                kind, value = self._queue.get(timeout=0.1)
            except queue.Empty:
                if self._stop.is_set():
                    raise StoppedError from None
                continue
            if kind == "end":
                if value is not None:
                    raise value
                return
            yield value

    def fill(self, items: Iterator[T]) -> None:
        """Add all items of an iterator, and the error that ends it. This is what a thread does."""
        try:
            for item in items:
                self.put(item)
            self.end(None)
        except StoppedError:
            pass
        except BaseException as error:
            self.end(error)

    def drain(self, take: Callable[[T], None]) -> None:
        """Give all items to a function. This is what a thread does."""
        try:
            for item in self:
                if self._stop.is_set():
                    return
                take(item)
        except StoppedError:
            pass
        except BaseException as error:
            self.failure = error
            self._stop.set()
