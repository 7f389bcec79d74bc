"""Shows how the time and memory of training grow with the text, up to texts too large to keep as a file.

    python -m benchmarks.train_growth                                # 250, 500, 1,000 and 2,000 MB
    python -m benchmarks.train_growth --size 60 --size 120 --out growth.json

The text is that of `benchmarks.train --repeat`: all corpora, again and again, with words altered so that new
ones keep coming. It is never on the disk. This process makes it and writes it into a pipe, while another one
reads the pipe and trains. So only the processor's time of the other one counts, which includes all its
threads; the time by the clock includes waiting for text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.corpora import CORPORA, DATA, corpus_path
from benchmarks.run import commit, machine, versions
from benchmarks.train import VOCAB_SIZE, altered, make_text

SIZES = (250, 500, 1000, 2000)
"""MB of text."""
BATCH = 20_000
"""This many lines are written at a time."""


def repeated(lines: list[str], size: int) -> Iterator[bytes]:
    """About `size` bytes of text: the lines as they are, and then again and again with letters moved on."""
    number = written = 0
    while written < size:
        again = list(altered(lines, number)) if number else lines
        for begin in range(0, len(again), BATCH):
            block = "".join(again[begin : begin + BATCH]).encode()
            yield block
            written += len(block)
            if written >= size:
                break
        number += 1


def run(lines: list[str], size: int, threads: int, rules: str | None) -> dict[str, Any]:
    """Train in a new process on a text of about this many bytes; return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.train", "--run", "cpbpe", "--text", "-"]
        command += ["--vocab", str(VOCAB_SIZE), "--threads", str(threads), "--model", str(Path(folder, "m"))]
        command += [] if rules is None else ["--rules", rules]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            written = 0
            for block in repeated(lines, size):
                process.stdin.write(block)
                written += len(block)
            process.stdin.close()
            answer = process.stdout.read()
    figures: dict[str, Any] = {"bytes": written, **json.loads(answer.splitlines()[-1])}
    return figures


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Time training on texts that grow.")
    parser.add_argument("--size", action="append", type=int, help=f"MB of text (default: {SIZES})")
    parser.add_argument("--rules", help="sentencepiece's defaults with these normalization rules")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        total = sum(corpus_path(options.data, name).stat().st_size for name in CORPORA)
        path = make_text(options.data, "mix", total, Path(folder))
        if path is None:
            return
        lines = path.read_bytes().decode().splitlines(keepends=True)
    facts = {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "commit": commit(),
        "versions": versions(["cpbpe"]),
        "threads": options.threads,
        "rules": options.rules,
    }
    outcome: dict[str, Any] = {"facts": facts, "runs": []}
    print("    MB      words    cpu s  peak MB  ns/byte  µs/word bytes/word")
    for size in options.size or SIZES:
        figures = run(lines, size * 1_000_000, options.threads, options.rules)
        outcome["runs"].append(figures)
        words, cpu, peak, text = (figures[name] for name in ("words", "cpu", "peak", "bytes"))
        print(
            f"{text / 1e6:6.0f} {words:10,} {cpu:8.1f} {peak / 1e6:8.0f} {cpu / text * 1e9:8.1f} "
            f"{cpu / words * 1e6:8.2f} {peak / words:10.0f}",
            flush=True,
        )
        if options.out:
            options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
