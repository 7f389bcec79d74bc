"""Compares cpbpe with another library for as long as one likes, and writes down what was compared.

    python -m tests.support.soak sentencepiece --seconds 3600 --jobs 2 --record run.json corpora/*.txt
    python -m tests.support.soak tiktoken --seconds 3600 corpora/*.txt
    python -m tests.support.soak training --batches 1000 corpora/*.txt

Takes parts of the files (any text; without files, a small corpus of the tests) and changes them at random:
words are shuffled, characters replaced, repeated or left out, pieces of the vocabulary and of other files put
in. It encodes and decodes the result with the models of the zoo or the published byte-level vocabularies, or
trains on it with random options. Differences are shown and counted, and do not stop the run.

The work comes in numbered batches, each made from the seed and its number. The record says how many there
were, so that `python -m tests.support.evidence repeat` can do the same ones again. It is written every
minute, and when the run ends: after `--seconds`, `--batches`, Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import random
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic, process_time
from typing import Any

from tests.support import evidence
from tests.support.rivals import RIVALS, Done
from tests.support.varied import sources

SECONDS_BETWEEN_RECORDS = 60.0
SHOWN = 10
"""Differences that are printed. All are counted."""


@dataclass
class Run:
    """What to compare."""

    rival: str
    seed: int
    files: Sequence[Path] = ()
    names: Sequence[str] = ()
    """Of models, if not all of them."""
    first: int = 0
    """The number of the first batch."""
    batches: int | None = None
    seconds: float | None = None
    jobs: int = 1


@dataclass
class Total:
    """What was compared so far. Batches are added in their order, so that this is of the first ones."""

    batches: int = 0
    models: dict[str, Done] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, done: Done) -> None:
        """One more batch."""
        total = self.models.setdefault(done.model, Done(done.model))
        for name in ("texts", "size", "seconds", "decoded", "in_full", "left_out", "differences"):
            setattr(total, name, getattr(total, name) + getattr(done, name))
        self.digest.update(done.digest)
        self.batches += 1

    def sum(self, name: str) -> Any:
        """Over all models."""
        return sum(getattr(done, name) for done in self.models.values())

    @property
    def differences(self) -> list[str]:
        """Of all models."""
        return [f"{done.model} {line}".strip() for done in self.models.values() for line in done.differences]


_worker: Any = None


def _start(rival: str, seed: int, files: Sequence[Path], prepared: Any) -> None:
    """What a process begins with. Only the first one hears signals, and tells the others when to end."""
    global _worker
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _worker = RIVALS[rival](seed, list(sources(files).values()), prepared)


def _work(number: int) -> Done:
    begin = process_time()
    done: Done = _worker.batch(number)
    done.seconds = process_time() - begin
    return done


def _batches(run: Run, prepared: Any, stop: Event) -> Iterator[Done]:
    """The batches in their order, until `stop`: what has been begun by then, and one for each process."""
    last = sys.maxsize if run.batches is None else run.first + run.batches
    if run.jobs == 1:
        _start(run.rival, run.seed, run.files, prepared)
        for number in range(run.first, last):
            yield _work(number)
            if stop.is_set():
                return
        return
    waiting: deque[Future[Done]] = deque()
    with ProcessPoolExecutor(
        run.jobs,
        multiprocessing.get_context("spawn"),
        _start,
        (run.rival, run.seed, run.files, prepared),
    ) as pool:
        number = run.first
        while True:
            while (
                len(waiting) < 3 * run.jobs
                and number < last
                and not (stop.is_set() and number >= run.first + run.jobs)
            ):
                waiting.append(pool.submit(_work, number))
                number += 1
            if not waiting:
                return
            yield waiting.popleft().result()


@contextmanager
def _stopped_by_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop = Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def soak(run: Run, record: Path | None = None) -> dict[str, Any]:
    """Compare, and give the record."""
    rival = RIVALS[run.rival]
    prepared = rival.prepared(run.names)
    facts = {
        "kind": "training" if run.rival == "training" else "parity",
        **evidence.facts(),
        "rival": rival.package,
        "rival_version": evidence.version_of(rival.package),
        "seed": run.seed,
        "first": run.first,
        "sources": checksums(run.files),
    }
    hashes = {name: _hash(data) for name, data in rival.files(prepared).items()}
    begin = said = monotonic()
    total = Total()
    shown = 0

    def recorded() -> dict[str, Any]:
        found = {**facts, **_sums(run, total, hashes)}
        if record is not None:
            evidence.write_alone(record, found)
        return found

    with _stopped_by_signals() as stop:
        print(f"seed {run.seed} begins", flush=True)
        for done in _batches(run, prepared, stop):
            for line in done.differences[: max(SHOWN - shown, 0)]:
                print(f"DIFFERENT, seed {run.seed}, batch {run.first + total.batches}: {done.model} {line}")
                shown += 1
            total.add(done)
            if run.seconds is not None and monotonic() - begin >= run.seconds:
                stop.set()
            if monotonic() - said >= SECONDS_BETWEEN_RECORDS:
                said = monotonic()
                recorded()
                print(summary(total, monotonic() - begin), flush=True)
    print(f"seed {run.seed}, {total.batches:,} batches: {summary(total, monotonic() - begin)}")
    return recorded()


def checksums(files: Sequence[Path]) -> dict[str, str]:
    """What the record says of the files with texts."""
    return {name: _hash(bytes(data)) for name, data in sources(files).items()}


def _hash(data: bytes) -> str:
    """Enough of a SHA-256 to tell files apart."""
    return hashlib.sha256(data).hexdigest()[:12]


def _sums(run: Run, total: Total, hashes: dict[str, str]) -> dict[str, Any]:
    """What a record says of what was compared."""
    found: dict[str, Any] = {
        "batches": total.batches,
        "seconds": round(total.sum("seconds"), 1),
        "digest": total.digest.hexdigest()[:16],
        "command": evidence.soak_command(run.rival, run.seed, run.first, total.batches, run.names),
    }
    if run.rival == "training":
        return {
            **found,
            "trainings": total.sum("texts"),
            "refused": total.sum("left_out"),
            "bytes": total.sum("size"),
            "differences": len(total.differences),
        }
    names = ("decoded", "in_full", "left_out")
    found["models"] = {
        name: {
            "sha256": hashes[name],
            "texts": done.texts,
            "bytes": done.size,
            **{key: getattr(done, key) for key in names if getattr(done, key)},
            "differences": len(done.differences),
        }
        for name, done in sorted(total.models.items())
    }
    return found


def summary(total: Total, seconds: float) -> str:
    """One line."""
    size = total.sum("size")
    count = len(total.differences)
    return (
        f"{total.sum('texts'):,} texts, {size / 1e6:,.1f} MB in {seconds:,.0f} s "
        f"({size / 1e6 / max(seconds, 1e-9):.2f} MB/s), {count or 'no'} difference{'' if count == 1 else 's'}"
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Those that do not depend on what is compared."""
    parser.add_argument("files", nargs="*", type=Path, help="texts; without any, a small corpus of the tests")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--record", type=Path, help="the file to write the record to")


def parsed(given: list[str] | None = None) -> Run:
    """What the arguments of the command ask for."""
    return _options(given)[0]


def _options(given: list[str] | None) -> tuple[Run, Path | None]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rival", choices=RIVALS)
    arguments(parser)
    parser.add_argument("--seconds", type=float, help="60, if no number of batches is given")
    parser.add_argument("--batches", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first batch")
    parser.add_argument("--seed", type=int, help="a new one, if none is given")
    parser.add_argument("--model", action="append", default=[], help="only this one (may be repeated)")
    options = parser.parse_intermixed_args(given)
    seconds = 60.0 if options.seconds is None and options.batches is None else options.seconds
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    run = Run(
        options.rival,
        seed,
        options.files,
        options.model,
        options.first,
        options.batches,
        seconds,
        options.jobs,
    )
    return run, options.record


def main(given: list[str] | None = None) -> None:
    """The command."""
    sys.exit(evidence.differences(soak(*_options(given))) > 0)


if __name__ == "__main__":
    main()
