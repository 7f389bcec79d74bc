"""The work of a run: reading, encoding and writing at the same time, and continuing where an earlier run
ended.

One thread reads, up to `threads` threads encode, each a batch of its own, and the calling thread writes.
The *state* of a run, a JSON value, says how far the source has been read, and how far each file has been
written. All documents that it counts as read are in the files. The files may also hold documents that it does
not count as read. When these are read again, they are recognized by their place in the sequence of documents,
and are not written twice.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpbpe.corpus.files import in_order
from cpbpe.errors import starting_a_thread
from cpbpe.model.spec import PieceType
from cpbpe.packing.manifest import STATE
from cpbpe.packing.read import Batch, Encoded, Read
from cpbpe.packing.shards import TRAIN, VALIDATION, Job, Split, publish_index
from cpbpe.packing.shuffle import Buckets, is_validation
from cpbpe.packing.spool import Rows
from cpbpe.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")
SECONDS_BETWEEN_STATES = 2.0
"""How often the state is saved. After a kill, the work since the last saved state is done again."""
_PATIENCE = 0.5
"""How many seconds to wait for a thread to end; a pipe that gives nothing may keep the reader waiting."""
_WAITING = 3
"""How many batches may wait for the next step."""
_STEP = 1 << 16
"""Ids are counted this many at a time, so that they stay in the processor's cache."""
_SIMPLE = {"add_bos", "add_eos", "reverse"}
"""The options that engines take as they are."""


# --- Encoding -------------------------------------------------------------------------------------


@dataclass
class Counts:
    """What was written, for the report."""

    documents: int = 0
    tokens: int = 0
    byte_tokens: int = 0
    """Tokens that stand for a single byte, of characters that no piece contains."""
    unknown_tokens: int = 0
    without_tokens: int = 0
    """Documents that have text, but no tokens; they are left out."""


class Encoder:
    """A tokenizer with options. It encodes batches of every form, and counts their ids."""

    def __init__(self, tokenizer: Tokenizer, threads: int, options: dict[str, Any]):
        """`options` have been checked."""
        self._tokenizer = tokenizer
        self.threads = threads
        """How many batches are encoded at the same time: each by one thread, which waits for no other."""
        self._options = options
        bound = {**tokenizer.bound_options, **options}
        self.takes_lines = _SIMPLE.issuperset(bound)
        """Whether batches may be given as lines (`Batch.lines`), which engines encode by themselves."""
        _, bos, eos, _ = tokenizer.facts.special_ids
        self._ends = (
            bos if bound.get("add_bos") else None,
            eos if bound.get("add_eos") else None,
            bool(bound.get("reverse")),
        )
        self._bytes = np.flatnonzero(np.frombuffer(tokenizer.facts.types, np.uint8) == int(PieceType.BYTE))
        # In nearly all models their ids are consecutive. Checking a range is five times as fast as a table.
        consecutive = not len(self._bytes) or int(self._bytes[-1] - self._bytes[0]) == len(self._bytes) - 1
        self._is_byte = None if consecutive else np.isin(np.arange(tokenizer.vocab_size), self._bytes)
        # With byte fallback nothing is unknown.
        self._unknown = None if tokenizer.facts.engine.head["byte_fallback"] else tokenizer.unk_id

    def encode(self, batch: Batch, number: int) -> Encoded:
        """The ids of a batch; `number` is that of its first document."""
        if batch.encoded is not None:
            return batch.encoded
        if batch.lines is not None:
            return Encoded(*self._tokenizer.facts.engine.encode_lines(batch.lines, 1, self._ends))
        options = self._options
        if "seed" in options:  # the seed of a document is this one plus its number
            options = {**options, "seed": (options["seed"] + number) % (1 << 64)}
        rows = self._tokenizer.encode_arrays(batch.texts, threads=1, **options)
        return Encoded(rows.ids, rows.offsets)

    def count(self, ids: NDArray[Any], counts: Counts) -> None:
        """Count ids, which are of an unsigned type."""
        counts.tokens += len(ids)
        for begin in range(0, len(ids), _STEP):
            part = ids[begin : begin + _STEP]
            if self._is_byte is not None:
                counts.byte_tokens += int(np.count_nonzero(self._is_byte[part]))
            elif len(self._bytes):
                # (Below the first id, the difference of unsigned numbers is a large one.)
                inside = part - part.dtype.type(self._bytes[0]) < part.dtype.type(len(self._bytes))
                counts.byte_tokens += int(np.count_nonzero(inside))
            if self._unknown is not None:
                counts.unknown_tokens += int(np.count_nonzero(part == part.dtype.type(self._unknown)))


# --- Writing --------------------------------------------------------------------------------------


class Writer:
    """Writes encoded documents, and saves the state."""

    def __init__(self, job: Job, encoder: Encoder):
        self._job = job
        self._encoder = encoder
        os.makedirs(job.place.scratch("whole"), exist_ok=True)
        # Continue from the first of these states whose files are undamaged. The last one needs no files.
        for state in [*job.manifest.states(job.place), self._first_state()]:
            self._continue_from(state)
            spools = [split.spool for split in self._splits.values()]
            spools += self._buckets.spools if self._buckets is not None else []
            if all(spool.is_there() for spool in spools):
                break
        self.earlier_tokens = self.counts.tokens
        """How many tokens an earlier run has encoded."""
        for spool in spools:
            spool.cut()
        self._saved = time.monotonic()

    def _first_state(self) -> dict[str, Any]:
        """The state in which nothing has been read and the files of all complete shards have been written."""
        # (The lists are arguments of `Split`: the next shard, twice the next document, and an empty spool.)
        splits = {name: [0, 0, 0, ()] for name in self._job.splits}
        for shard in self._job.manifest.shards:
            end = shard["sequence"][1]
            splits[shard["split"]] = [shard["number"] + 1, end, end, ()]
        return {"read": {}, "counts": {}, "ordering": None, "buckets": None, "splits": splits}

    def _continue_from(self, state: dict[str, Any]) -> None:
        job = self._job
        self.read = Read(**state["read"])
        self.counts = Counts(**state["counts"])
        self.ordering: list[int] | None = state["ordering"]
        """Once all documents are in buckets: the next bucket, and where it begins in the sequence."""
        self._splits = {name: Split(job, name, *values) for name, values in state["splits"].items()}
        self._buckets: Buckets | None = None
        if job.options["shuffle_seed"] is not None:
            folder = job.place.scratch("buckets")
            self._buckets = Buckets(
                folder, job.options["dtype"], job.options["shuffle_seed"], job.source.total, state["buckets"]
            )

    def _state(self) -> dict[str, Any]:
        return {
            "version": STATE,
            "read": asdict(self.read),
            "counts": asdict(self.counts),
            "ordering": self.ordering,
            "buckets": None if self._buckets is None else self._buckets.states(),
            "splits": {name: split.state() for name, split in self._splits.items()},
        }

    def save(self) -> None:
        """Save the state, once there was a document: before that, other options may be given."""
        if self.read.number:
            self._job.manifest.save_state(self._job.place, self._state())
        self._saved = time.monotonic()

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._saved > SECONDS_BETWEEN_STATES:
            self.save()

    def take(self, batch: Batch, encoded: Encoded) -> None:
        """Write the documents of a batch."""
        counts = replace(self.counts)
        lengths = np.diff(encoded.offsets)
        ids = encoded.ids.astype(self._job.options["dtype"], copy=False)
        # (`count` needs an unsigned type, which the type of the files need not be.)
        self._encoder.count(ids if ids.dtype.kind == "u" else encoded.ids, counts)
        read, files, records = batch.located(self.read, len(lengths), encoded.empty)
        numbers = np.arange(self.read.number, read.number)
        # (The order of writing is that of the numbers, unless documents are shuffled later.)
        rows = Rows(ids, lengths, numbers, numbers, files, records).where(lengths > 0)
        counts.documents += len(rows)
        counts.without_tokens += len(lengths) - len(rows)
        if self._buckets is None:
            self._write(rows)
        else:
            self._buckets.add(rows)
        self.read, self.counts = read, counts
        self._job.show("reading", batch.done, self._job.source.total)
        self._save_now_and_then()

    def order(self) -> None:
        """Write what is in the buckets, if documents are shuffled."""
        buckets = self._buckets
        if buckets is None:
            return
        if self.ordering is None:
            self.ordering = [0, 0]
            self.save()
        for number in range(self.ordering[0], len(buckets)):
            self._job.show("shuffling", number, len(buckets))
            for rows in buckets.ordered(number, self.ordering[1]):
                self._write(rows)
            self.ordering = [number + 1, self.ordering[1] + buckets.spools[number].state.documents]
            self._save_now_and_then()
        self._job.show("shuffling", len(buckets), len(buckets))

    def _write(self, rows: Rows) -> None:
        """Write documents, each to its split."""
        if self._job.options["validation"]:
            chosen = is_validation(
                rows.numbers, self._job.options["validation_seed"], self._job.options["validation"]
            )
            self._splits[TRAIN].add(rows.where(~chosen), self._finish_shard)
            self._splits[VALIDATION].add(rows.where(chosen), self._finish_shard)
        else:
            self._splits[TRAIN].add(rows, self._finish_shard)

    def _finish_shard(self, split: Split) -> None:
        manifest, place = self._job.manifest, self._job.place
        manifest.begin(place)
        manifest.shards.append(split.finish())
        manifest.state = self._state()
        manifest.save(place)

    def finish(self) -> None:
        """Make the last shard of each split, and the files that list all of them."""
        job = self._job
        for split in self._splits.values():
            if split.spool.state.documents:
                self._finish_shard(split)
        job.manifest.indexes = [
            publish_index(job, path, content)
            for name in self._splits
            if (shards := [shard for shard in job.manifest.shards if shard["split"] == name])
            for path, content in job.format.index(shards, job.options["dtype"]).items()
        ]


# --- Threads --------------------------------------------------------------------------------------


def work(job: Job, encoder: Encoder) -> Writer:
    """Do all the work of a run, and return its writer.

    If anything ends it early, the next run continues from the last state that was saved, and cuts the files
    back to it. No state is saved when a run is interrupted, because that can happen between any two lines,
    when a document is in the files but the state does not say so yet.
    """
    writer = Writer(job, encoder)
    if writer.ordering is None:
        _encode_all(job.source.batches(writer.read, encoder.takes_lines), encoder, writer)
    writer.order()
    writer.finish()
    return writer


def _encode_all(batches: Iterator[Batch], encoder: Encoder, writer: Writer) -> None:
    def encode(item: tuple[Batch, int]) -> tuple[Batch, Encoded]:
        return item[0], encoder.encode(*item)

    stop = threading.Event()
    numbered = _numbered(_ahead(batches, stop), writer.read.number)
    results = _ahead(in_order(numbered, encode, encoder.threads), stop)
    try:
        while True:
            try:
                result = next(results, None)
            except Exception:
                # Reading or encoding failed. What comes before that has been written.
                with suppress(OSError):
                    writer.save()
                raise
            if result is None:
                return
            writer.take(*result)
            del result  # (so that it is not kept while the next one is awaited)
    finally:
        stop.set()
        results.close()


def _numbered(batches: Iterable[Batch], first: int) -> Iterator[tuple[Batch, int]]:
    """Yield each batch with the number of its first document, which only sampling needs.

    (For sampling, batches have lists of texts, so counting those is enough.)
    """
    for batch in batches:
        yield batch, first
        first += len(batch.texts)


def _ahead(items: Iterator[T], stop: threading.Event) -> Generator[T, None, None]:
    """Yield the same items, but let a thread take them ahead of time. An error is raised in its turn.

    Once `stop` is set, both sides end.
    """
    taken: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(_WAITING)

    def put(item: T | None, failure: BaseException | None = None) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                taken.put((item, failure), timeout=0.1)
                return

    def take() -> None:
        try:
            for item in items:
                put(item)
                del item
                if stop.is_set():
                    break
            put(None)
        except BaseException as error:
            put(None, error)
        finally:
            if isinstance(items, Generator):
                items.close()

    # In a copy of this context, messages spell options as they do here.
    thread = threading.Thread(target=copy_context().run, args=(take,), daemon=True)
    with starting_a_thread():
        thread.start()
    try:
        while not stop.is_set():
            try:
                item, failure = taken.get(timeout=0.1)
            except queue.Empty:
                continue
            if failure is not None:
                raise failure
            if item is None:
                return
            yield item
            del item
    finally:
        thread.join(_PATIENCE)
