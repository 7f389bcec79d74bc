"""What counting on a cluster takes: a simulation with figures measured on one machine, checked against it.

    python -m benchmarks.cluster_model ray.json                      # what `benchmarks.cluster` has written
    python -m benchmarks.cluster_model ray.json --words words.json --terabytes 1 --cores 64 --cores 1000

Every step of `cpbpe.scale.*.count` is simulated: tasks that wait for a free core, in order, each taking a
time for its bytes, its rows and its start; then the rows of words that travel to their buckets; then the
tasks that merge these; then the process that called, which takes all of it over one connection, merges, and
learns. Figures for these come from the measurement with one worker. The one with two workers is computed,
too, and printed beside what was measured.

Distinct words grow as a power of the bytes. Two points of one text give that power: what a file of it has,
and what all of it has.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cpbpe.scale.counting import BUCKETS

NETWORK = 1.0e9
"""Bytes a second to and from a machine: ten gigabits, with something left for others."""
CORES_PER_MACHINE = 32


@dataclass(frozen=True)
class Figures:
    """What one core, and the process that calls, were measured to take."""

    per_byte: float
    """Seconds for a byte of text, in a worker."""
    per_row: float
    """Seconds for a row, besides its bytes."""
    per_part: float
    """Seconds for a block or partition, besides what is in it."""
    start: float
    """Seconds for the job, whatever it does."""
    merge_word: float
    """Seconds to merge a word of one list with those of others."""
    learn_word: float
    """Seconds to learn, for each distinct word, with the threads of the process that calls."""
    word_bytes: float
    """Bytes of a word in a row: its text, where it ends, and its count."""
    words: float
    power: float
    """A text of n bytes has `words * n ** power` distinct words."""

    def distinct(self, size: float) -> float:
        """How many distinct words a text of this many bytes has."""
        return float(self.words * size**self.power)


@dataclass(frozen=True)
class Times:
    """Seconds of the steps."""

    counting: float
    moving: float
    merging: float
    caller: float
    learning: float

    @property
    def count(self) -> float:
        """Everything up to the counts."""
        return self.counting + self.moving + self.merging + self.caller


def scheduled(tasks: list[float], cores: int) -> float:
    """When the last task has ended, if each begins on the core that is free first."""
    free = [0.0] * min(cores, max(len(tasks), 1))
    for seconds in tasks:
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def simulated(figures: Figures, size: float, rows: float, parts: int, cores: int, moves: bool) -> Times:
    """The steps for a text of this many bytes and rows; `moves`: between machines."""
    own = figures.distinct(size / parts)
    task = figures.per_byte * size / parts + figures.per_row * rows / parts + figures.per_part
    counting = figures.start + scheduled([task] * parts, cores)
    machines = max(1, cores // CORES_PER_MACHINE)
    sent = own * parts * figures.word_bytes
    moving = sent / (NETWORK * machines) if moves else 0.0
    merging = scheduled([figures.per_part + own * parts * figures.merge_word / BUCKETS] * BUCKETS, cores)
    distinct = figures.distinct(size)
    received = distinct * figures.word_bytes / NETWORK if moves else 0.0
    return Times(
        counting, moving, merging, received + distinct * figures.merge_word, distinct * figures.learn_word
    )


def figures_of(report: dict[str, Any]) -> Figures:
    """The figures, from a measurement with one worker."""
    took = report["workers"]["1"]
    size, files, rows = report["bytes"], report["files"], report["rows"]
    # The same text in eight times as many parts, and one of as many bytes with more rows.
    per_part = max(took["count many"] - took["count"], 0.0) / (7 * files)
    per_row = max(took["count short"] - took["count"], 0.0) / (report["short_rows"] - rows)
    words, in_file, merge_word = report["words"], report["file words"], report["merge word"]
    power = math.log(words / in_file) / math.log(files)
    rest = took["count"] - took["start"] - per_part * (files + BUCKETS) - per_row * rows
    rest -= merge_word * (in_file * files + words)
    return Figures(
        per_byte=rest / size,
        per_row=per_row,
        per_part=per_part,
        start=took["start"],
        merge_word=merge_word,
        learn_word=took["learn"] / words,
        word_bytes=report["word bytes"],
        words=words / size**power,
        power=power,
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the check and the table."""
    parser = argparse.ArgumentParser(description="Simulate counting on a cluster.")
    parser.add_argument("report", type=Path, help="what benchmarks.cluster has written")
    parser.add_argument("--terabytes", action="append", type=float, help="(default: 0.1, 1 and 10)")
    parser.add_argument("--cores", action="append", type=int, help="(default: 16, 128 and 1,000)")
    parser.add_argument("--part", type=int, default=128, help="MB of text in a part")
    parser.add_argument("--words", type=Path, help="what benchmarks.many_words has written, for learning")
    parser.add_argument("--row", type=int, default=2000, help="bytes of a row")
    options = parser.parse_args(arguments)
    report = json.loads(options.report.read_text())
    figures = figures_of(report)
    print(figures)
    cores = report["machine"]["cores"]
    for workers, took in sorted(report["workers"].items()):
        times = simulated(figures, report["bytes"], report["rows"], report["files"], int(workers), False)
        # The engine's own processes take the processors, too, as much as with one worker.
        least = report["workers"]["1"]["count, processor"] / cores
        print(
            f"{report['engine']}, {workers} workers: counting {max(times.count, least):.1f} s, "
            f"measured {took['count']:.1f}; learning {times.learning:.1f} s, measured {took['learn']:.1f}"
        )
    memory = 0.0
    if options.words is not None:  # a few million words stay nearer to the processor than many do
        most = json.loads(options.words.read_text())["rows"][-1]
        figures = replace(figures, learn_word=most["seconds"] / most["words"])
        memory = most["memory"] / most["words"]
    print(
        "\n| text | distinct words | cores | counting | moving | merging | caller | learning | all | memory |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for terabytes in options.terabytes or (0.1, 1.0, 10.0):
        size = terabytes * 1e12
        for cores in options.cores or (16, 128, 1000):
            parts = max(1, round(size / (options.part * 1e6)))
            times = simulated(figures, size, size / options.row, parts, cores, True)
            distinct = figures.distinct(size)
            cells = [
                f"{terabytes:g} TB",
                f"{distinct / 1e6:,.0f} M",
                f"{cores:,}",
                *(
                    f"{seconds:,.0f} s"
                    for seconds in (
                        times.counting,
                        times.moving,
                        times.merging,
                        times.caller,
                        times.learning,
                        times.count + times.learning,
                    )
                ),
                f"{distinct * memory / 1e9:,.0f} GB",
            ]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
