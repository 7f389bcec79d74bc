"""Times training of byte-level models, library by library, each run in a process of its own.

    python -m benchmarks.corpora --bytes 150000000                    # once: the texts, into benchmarks/data
    python -m benchmarks.train_bytes --size 20 --size 250 --out train_bytes.json
    python -m benchmarks.train_bytes --text my.txt --threads 1

All libraries cut with GPT-2's pattern, take each line of the file as a text with the newline at its end, and
choose the pair with the smaller ids among equally frequent ones. So they must learn the same merges; these
are compared before any ratio is shown. Texts, turns, clocks and peaks of memory are those of
`benchmarks.train`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.run import commit, machine, versions
from benchmarks.train import VOCAB_SIZE, add_what, describe, peak_bytes, texts_of

Report = dict[str, Any]
Work = Callable[[], Iterable[bytes]]
"""What is timed. It returns the pieces that merges made, in order."""


def train_cpbpe(text: Path, vocab_size: int, threads: int) -> Work:
    """The preset that is named for the rules of tokenizers."""
    import cpbpe
    from cpbpe.training import train  # noqa: F401  so that importing it is not timed

    def run() -> Iterable[bytes]:
        # (Texts that hold a NUL byte are read as well.)
        options: Report = {"preset": "tokenizers", "vocab_size": vocab_size, "threads": threads}
        result = cpbpe.train(text, format="text", **options)
        return result.spec.pieces.texts[256:]

    return run


def train_tokenizers(text: Path, vocab_size: int, threads: int) -> Work:
    """Its trainer with ByteLevel."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)

    def run() -> Iterable[bytes]:
        from cpbpe.text.utf8 import from_letters

        tok.train([str(text)], trainer)
        pairs = json.loads(tok.to_str())["model"]["merges"]
        return [from_letters("".join(pair)) for pair in pairs]

    return run


def train_gigatoken(text: Path, vocab_size: int, threads: int) -> Work:
    """It has no argument for threads, so it is given that many processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import gigatoken

    def run() -> Iterable[bytes]:
        source = gigatoken.TextFileSource([str(text)], separator="\n")
        return [left + right for left, right in gigatoken.train_bpe(source, vocab_size, [])[1]]

    return run


LIBRARIES: dict[str, Callable[[Path, int, int], Work]] = {
    "cpbpe": train_cpbpe,
    "tokenizers": train_tokenizers,
    "gigatoken": train_gigatoken,
}


def run_here(name: str, text: Path, vocab_size: int, threads: int) -> None:
    """Train in this process, and print what it took."""
    train = LIBRARIES[name](text, vocab_size, threads)
    begin, begin_cpu = perf_counter(), process_time()
    pieces = list(train())
    figures: Report = {"seconds": perf_counter() - begin, "cpu": process_time() - begin_cpu}
    digest = hashlib.sha256(b"".join(len(piece).to_bytes(4, "little") + piece for piece in pieces))
    print(json.dumps({**figures, "peak": peak_bytes(), "pieces": len(pieces), "sha256": digest.hexdigest()}))


def run_apart(name: str, text: Path, vocab_size: int, threads: int) -> Report:
    """Train in a new process; what it took, or the end of what it said if it failed."""
    command = [sys.executable, "-m", "benchmarks.train_bytes", "--run", name, "--text", str(text)]
    command += ["--vocab", str(vocab_size), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    figures: Report = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(names: list[str], text: Path, vocab_size: int, threads: int, rounds: int) -> Report:
    """One table: all libraries in turn, and whether they learned the same."""
    runs: dict[str, list[Report]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            if not runs[name] or "error" not in runs[name][-1]:
                runs[name].append(run_apart(name, text, vocab_size, threads))
    learned = {run["sha256"] for own in runs.values() for run in own if "error" not in run}
    return {"vocab_size": vocab_size, "threads": threads, "same": len(learned) == 1, "runs": runs}


def show(title: str, table: Report) -> None:
    """Print one table; without ratios if the libraries learned different merges."""
    verdict = "the same merges" if table["same"] else "DIFFERENT MERGES"
    print(f"\n{title}, {table['vocab_size']:,} pieces, {table['threads']} threads: {verdict}")
    ours = table["runs"].get("cpbpe", [])
    for name, runs in table["runs"].items():
        if "error" in runs[-1]:
            print(f"  {name:12} failed: {runs[-1]['error']}")
            continue
        seconds, peak = median(run["seconds"] for run in runs), median(run["peak"] for run in runs)
        line = f"  {name:12} {seconds:8.2f} s {peak / 1e6:8.0f} MB"
        if name != "cpbpe" and table["same"] and ours and "error" not in ours[-1]:
            pairs = list(zip(runs, ours, strict=False))
            faster = median(theirs["seconds"] / own["seconds"] for theirs, own in pairs)
            memory = median(own["peak"] / theirs["peak"] for theirs, own in pairs)
            line += f"   cpbpe: {faster:.1f} times as fast, {memory:.2f} of the memory"
        print(line, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Time training of byte-level models.")
    add_what(parser, LIBRARIES)
    parser.add_argument("--threads", action="append", type=int, help="repeatable; default: 2")
    options = parser.parse_args(arguments)
    vocab_sizes, threads = options.vocab or [VOCAB_SIZE], options.threads or [2]
    if options.run:
        run_here(options.run, options.text[0], vocab_sizes[0], threads[0])
        return
    names = [name for name in options.library or LIBRARIES if find_spec(name) is not None]
    outcome: Report = {
        "facts": {
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "commit": commit(),
            "versions": versions(list(LIBRARIES)),
        },
        "tables": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        for text in texts_of(options, Path(folder)):
            for vocab_size in vocab_sizes:
                for number in threads:
                    table = {"text": text.name, **describe(text)}
                    table |= compare(names, text, vocab_size, number, options.rounds)
                    show(f"{text.name} ({table['bytes'] / 1e6:.0f} MB)", table)
                    outcome["tables"].append(table)
                    if options.out:
                        options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
