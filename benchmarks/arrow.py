"""Columns of Arrow: `cpbpe.arrow`, beside lists of texts, and beside `datasets.map` with transformers.

    python -m benchmarks.arrow [--model tokenizer.model] [--rows 1000000] [--rounds 5] [--threads 1]

All take turns. The rival is what users of datasets do: `dataset.map` of a fast tokenizer of transformers, in
batches of a thousand, whose table of ids is kept in memory. It gets a part of the texts (`--rival-rows`),
and so does `dataset.map` of `cpbpe.arrow`. Before the clock starts, ids are compared. With `--memory`, how
much a fresh process grows that encodes the column, and the bytes of the result.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import cpbpe
import cpbpe.arrow
from benchmarks.run import default_model

_PEAK = """
import re, sys
from pathlib import Path
import pyarrow as pa
import cpbpe, cpbpe.arrow

def status(name):
    return int(re.search(name + r":\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) >> 10

tok = cpbpe.load(sys.argv[1])
with pa.memory_map(sys.argv[2]) as mapped:
    column = pa.ipc.open_file(mapped).read_all()["text"]
    cpbpe.arrow.encode(tok, column[:1000])
    sum(len(chunk.buffers()[2].to_pybytes()) for chunk in column.chunks)  # the texts are in memory
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    ids = cpbpe.arrow.encode(tok, column, threads=1)
    print(ids.nbytes >> 20, status("VmHWM") - before)
"""


def texts_of(rows: int) -> list[str]:
    """Texts of 1 to 40 words of these sources, in random order."""
    words = [word for path in sorted(Path(__file__).parent.glob("*.py")) for word in path.read_text().split()]
    rng = random.Random(1)
    return [" ".join(rng.choices(words, k=rng.randint(1, 40))) for _ in range(rows)]


def in_turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each, round by round; what they return is freed after the clock stops."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            begin = perf_counter()
            result = work()
            times[name].append(perf_counter() - begin)
            del result
    return times


def show(times: dict[str, list[float]], base: str, size: int) -> None:
    """Speeds, and how many times as fast as one of them each was, by the median of the rounds."""
    for name, own in times.items():
        ratio = median(b / a for a, b in zip(own, times[base], strict=True))
        print(f"{name:<34} {size / median(own) / 1e6:8.1f} MB/s  {ratio:6.2f} x {base}")


def rival(path: Path) -> Any:
    """A fast tokenizer of transformers for the same model."""
    from transformers import PreTrainedTokenizerFast

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "tokenizer.json")
        cpbpe.load(path).save(file)
        return PreTrainedTokenizerFast(tokenizer_file=file)


def with_datasets(tok: cpbpe.Tokenizer, fast: Any, texts: list[str], rounds: int) -> None:
    """`datasets.map` of both."""
    import datasets

    datasets.disable_progress_bars()
    dataset = datasets.Dataset.from_dict({"text": texts})

    def ours(table: Any) -> Any:
        return pa.table({"input_ids": cpbpe.arrow.encode(tok, table["text"])})

    def theirs(batch: Any) -> Any:
        return {"input_ids": fast(batch["text"], add_special_tokens=False)["input_ids"]}

    options = {
        "batched": True,
        "keep_in_memory": True,
        "remove_columns": ["text"],
        "load_from_cache_file": False,
    }
    arrow = dataset.with_format("arrow")
    works: dict[str, Callable[[], Any]] = {
        "map of transformers": lambda: dataset.map(theirs, new_fingerprint="theirs", **options),
        "map of cpbpe.arrow": lambda: arrow.map(ours, new_fingerprint="ours", **options),
        "cpbpe.arrow": lambda: cpbpe.arrow.encode(tok, arrow[:]["text"]),
    }
    wanted = tok.encode_batch(texts)
    found = [works[name]().with_format(None)["input_ids"][:] for name in list(works)[:2]]
    assert found[1] == wanted
    different = sum(a != b for a, b in zip(found[0], wanted, strict=True))
    print(f"\n{len(texts):,} texts; {different} have other ids in transformers")
    show(in_turns(works, rounds), "map of transformers", sum(len(text.encode()) for text in texts))


def memory(model: Path, column: Any) -> None:
    """The memory of a fresh process above what it had before."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "texts.arrow")
        table = pa.table({"text": column})
        with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        made = subprocess.run(
            [sys.executable, "-c", _PEAK, str(model), file], capture_output=True, text=True, check=True
        )
    result, peak = made.stdout.split()
    print(f"\nmemory: the result has {result} MB, and the process grew by {peak} MB while it was made")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rival-rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    model = options.model or default_model()
    tok = cpbpe.load(model)
    texts = texts_of(options.rows)
    column = pa.array(texts)
    rows = tok.encode_arrays(texts)
    ids = cpbpe.arrow.encode(tok, column)
    assert np.array_equal(ids.values.to_numpy(), rows.ids)
    assert np.array_equal(ids.offsets.to_numpy(), rows.offsets)
    threads = options.threads
    works: dict[str, Callable[[], object]] = {
        "encode_arrays": lambda: tok.encode_arrays(texts, threads=threads),
        "arrow.encode": lambda: cpbpe.arrow.encode(tok, column, threads=threads),
        "arrow.encode, spans": lambda: cpbpe.arrow.encode(tok, column, spans=True, threads=threads),
        "arrow.count": lambda: cpbpe.arrow.count(tok, column, threads=threads),
    }
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts):,} texts, {size / 1e6:.0f} MB, {threads} threads")
    show(in_turns(works, options.rounds), "encode_arrays", size)
    if options.memory:
        memory(model, column)
    with_datasets(tok, rival(model), texts[: options.rival_rows], options.rounds)


if __name__ == "__main__":
    main()
