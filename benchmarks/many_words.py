"""Learning from very many distinct words: time and memory for each of them.

    python -m benchmarks.many_words --millions 10 --millions 20 --millions 40 --out words.json

The words are made of those of the corpora, all different, with counts that fall as those of real words do.
Each size is learned by a new process,
whose peak of memory is measured; the words are in it before.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

import cpbpe
from benchmarks.corpora import CORPORA, DATA, corpus_path
from benchmarks.run import commit, machine, versions
from cpbpe.engine.training import merge_words
from cpbpe.reference.training_values import Words
from cpbpe.training.words_file import slice_words

VOCAB_SIZE = 32_000
STEP = 1_000_000
"""This many words are made at a time."""


def real_words(data: Path) -> list[bytes]:
    """The distinct words of the corpora."""
    texts = (corpus_path(data, name).read_text(encoding="utf-8") for name in CORPORA)
    counts = cpbpe.WordCounts.build(line for text in texts for line in text.replace("\0", "\n").split("\n"))
    words = counts.words
    ends = np.frombuffer(words.ends, "<u8").astype(int)
    return [words.blob[begin:end] for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def made_words(data: Path, number: int) -> Words:
    """About so many distinct words: the first letters of one real word, and the whole of another.

    So their alphabet is that of real words, and about the frequencies of pairs are. They are made in parts,
    which are merged as the counts of a corpus are.
    """
    mark = "\u2581".encode()
    real = real_words(data)
    heads = sorted({word.decode()[:5].encode() for word in real if word.startswith(mark)})
    tails = [word.removeprefix(mark) for word in real]
    rng = np.random.default_rng(1)
    parts, merged = list[Words](), 0
    while merged < number:
        for _ in range(8):
            first, second = (rng.integers(len(words), size=STEP).tolist() for words in (heads, tails))
            words = sorted({heads[a] + tails[b] for a, b in zip(first, second, strict=True)})
            ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
            counts = (rng.pareto(1.0, len(words)) * 2).astype(np.int64) + 1
            parts.append(Words(b"".join(words), ends.astype("<u8").tobytes(), counts.astype("<u8").tobytes()))
            if sum(map(len, parts)) >= number:
                break
        parts = [merge_words(parts)]
        merged = len(parts[0])
    return slice_words(parts[0], 0, number)


def with_words(words: Words) -> cpbpe.WordCounts:
    """Counts with these words."""
    counts = cpbpe.WordCounts.build(["a"])
    return cpbpe.WordCounts(counts.setup, words, counts.reading)


def learn(path: Path, threads: int) -> dict[str, Any]:
    """Learn from a file of counts in this process."""
    counts = cpbpe.WordCounts.load(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    begin, processor = time.perf_counter(), time.process_time()
    result = cpbpe.train(counts, vocab_size=VOCAB_SIZE, threads=threads)
    return {
        "words": len(counts),
        "word bytes": len(counts.words.blob) / len(counts),
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "memory before": before,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        "pieces": result.tokenizer.vocab_size,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description="Learn from very many distinct words.")
    parser.add_argument("--millions", action="append", type=float, help="(default: 5, 10 and 20)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument(
        "--folder", type=Path, default=Path(), help="where the counts are while they are needed"
    )
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--learn", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.learn is not None:
        print(json.dumps(learn(options.learn, options.threads)))
        return
    rows = []
    for millions in options.millions or (5, 10, 20):
        path = options.folder / f"{millions:g}.words"
        try:
            with_words(made_words(options.data, int(millions * 1e6))).save(path)
            command = [sys.executable, "-m", "benchmarks.many_words", "--learn", str(path)]
            command += ["--threads", str(options.threads)]
            answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        finally:
            path.unlink(missing_ok=True)
        row = json.loads(answer.splitlines()[-1])
        rows.append(row)
        words = row["words"]
        print(
            f"{words:,} words: {row['seconds']:.1f} s, {row['seconds'] / words * 1e6:.2f} µs a word; "
            f"{row['memory'] / 1e9:.2f} GB, {row['memory'] / words:.0f} bytes a word",
            flush=True,
        )
    if options.out is not None:
        facts = {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "machine": machine(),
            "versions": versions(["cpbpe"]),
        }
        options.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
