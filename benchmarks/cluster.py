"""Counting, training, encoding and packing on a Ray or Spark of this machine, with one worker and with two.

    python -m benchmarks.cluster --engine ray --size 1000 --sentencepiece --out ray.json
    python -m benchmarks.cluster --engine spark --size 1000 --out spark.json

The text is that of `benchmarks.train_growth`, a line a row, in Parquet files. The results of the engine must
be those of one process: the counts, the model byte for byte, the ids of every row in order, and the packed
files; with `--sentencepiece`, the model must be its model, too. Then come overheads: counting the same text
in eight times as many files, and a text of as many bytes whose rows are short.

Workers start before the clock, and so does the reading of a few rows. `benchmarks.cluster_model` computes
what larger clusters take from these figures.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cpbpe
from benchmarks.corpora import CORPORA, DATA, corpus_path
from benchmarks.run import commit, machine, versions
from benchmarks.train_growth import repeated
from cpbpe.engine.training import merge_words

ROOT = str(Path(__file__).parents[1])
TRAIN: dict[str, Any] = {"vocab_size": 32_000}
FILES = 64
SHORT = 20
"""About how many bytes a row has in the text with short rows."""


def lines_of(data: Path) -> list[str]:
    """The lines of all corpora that training takes: none empty, none of more than 4,192 bytes."""
    text = "\0".join(corpus_path(data, name).read_text(encoding="utf-8") for name in CORPORA)
    return [f"{line}\n" for line in text.replace("\0", "\n").split("\n") if 0 < len(line.encode()) <= 4192]


def write_files(lines: Iterator[bytes], folder: Path, files: int, total: int) -> int:
    """Lines as the rows of Parquet files of equal size, with their numbers. How many there are."""
    folder.mkdir()
    number, part, size, name = 0, list[str](), 0, 0

    def write() -> None:
        nonlocal number, part, size, name
        numbers = np.arange(number, number + len(part))
        table = pa.table({"n": numbers, "text": pa.array(part, pa.string())})
        pq.write_table(table, folder / f"{name:04}.parquet", row_group_size=1 << 30)
        number, part, size, name = number + len(part), [], 0, name + 1

    for block in lines:
        for line in block.decode().splitlines():  # (of what the corpora hold, only \n is left)
            part.append(line)
            size += len(line.encode()) + 1
            if size >= total // files and name < files - 1:
                write()
    write()
    return number


class OneProcess:
    """What a single process makes of the files."""

    def __init__(self, folder: Path, work: Path):
        self.folder, self.work = folder, work
        self.seconds: dict[str, float] = {}
        paths = sorted(folder.glob("*.parquet"))
        self.counts = self._timed("count", lambda: cpbpe.WordCounts.build(paths, column="text", threads=1))
        result = self._timed("learn", lambda: cpbpe.train(self.counts, threads=2, **TRAIN))
        self.tokenizer, self.model = result.tokenizer, result.model_bytes
        self.options = result.options.sentencepiece_options()
        self._timed(
            "pack",
            lambda: cpbpe.pack(
                self.tokenizer, paths, work / "one", column="text", threads=1, progress=False, add_eos=True
            ),
        )

    def _timed(self, name: str, call: Callable[[], Any]) -> Any:
        begin = perf_counter()
        result = call()
        self.seconds[name] = perf_counter() - begin
        return result


class Ray:
    """A Ray of this machine."""

    def __init__(self, workers: int):
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        self.ray = import_module("ray")
        environment = {"env_vars": {"PYTHONPATH": ROOT}}
        self.ray.init(
            num_cpus=workers, include_dashboard=False, logging_level="ERROR", runtime_env=environment
        )
        import_module("ray.data").DataContext.get_current().enable_progress_bars = False
        for name in ("ray.data", "ray.data.dataset"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.scale = import_module("cpbpe.scale.ray")

    def read(self, folder: Path) -> Any:
        """The dataset of a folder, with a block for each file."""
        return self.ray.data.read_parquet(str(folder), override_num_blocks=len(list(folder.iterdir())))

    def write(self, dataset: Any, folder: Path) -> None:
        """Write a dataset to Parquet files."""
        dataset.write_parquet(str(folder))

    def stop(self) -> None:
        """End it."""
        self.ray.shutdown()


class Spark:
    """A Spark of this process."""

    def __init__(self, workers: int):
        os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=ROOT, SPARK_LOCAL_IP="127.0.0.1")
        builder = import_module("pyspark.sql").SparkSession.builder.master(f"local[{workers}]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "4g",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.files.openCostInBytes": "1",
        }.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.scale = import_module("cpbpe.scale.spark")

    def read(self, folder: Path) -> Any:
        """The frame of a folder, with about a partition for each file."""
        largest = max(path.stat().st_size for path in folder.iterdir())
        self.spark.conf.set("spark.sql.files.maxPartitionBytes", str(largest))
        return self.spark.read.parquet(str(folder))

    def write(self, frame: Any, folder: Path) -> None:
        """Write a frame to Parquet files."""
        frame.write.parquet(str(folder))

    def stop(self) -> None:
        """End it."""
        self.spark.stop()


ENGINES: dict[str, Any] = {"ray": Ray, "spark": Spark}


def busy() -> float:
    """Seconds that the processors of this machine have worked, for whatever processes."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (sum(map(int, fields[:8])) - int(fields[3]) - int(fields[4])) / os.sysconf("SC_CLK_TCK")


def measured(
    engine: Any, one: OneProcess, folders: dict[str, Path], work: Path, only_count: bool
) -> dict[str, float]:
    """What each call takes. Whatever differs from one process is an AssertionError."""
    scale, seconds = engine.scale, dict[str, float]()
    dataset = engine.read(folders["files"])
    few = dataset.limit(100)
    scale.count(few)  # workers start, and import what they need

    def timed(name: str, call: Callable[[], Any]) -> Any:
        begin, processor = perf_counter(), busy()
        result = call()
        seconds[name] = perf_counter() - begin
        seconds[f"{name}, processor"] = busy() - processor
        print(
            f"    {name:14} {seconds[name]:8.2f} s, {seconds[f'{name}, processor']:.2f} of processors",
            flush=True,
        )
        return result

    timed("start", lambda: scale.count(few))
    counts = timed("count", lambda: scale.count(dataset))
    assert counts == one.counts, "other counts"
    result = timed("learn", lambda: cpbpe.train(counts, threads=2, **TRAIN))
    assert result.model_bytes == one.model, "another model"
    timed("count many", lambda: scale.count(engine.read(folders["many"])))
    timed("count short", lambda: scale.count(engine.read(folders["short"])))
    if only_count:
        return seconds

    def encoded() -> None:
        engine.write(scale.encode(dataset, one.tokenizer, add_eos=True), work / "encoded")

    timed("encode", encoded)
    assert same_ids(work / "encoded", work / "one"), "other ids"
    options = {"add_eos": True, "progress": False, "order": "n"}
    timed("pack", lambda: scale.pack(dataset, one.tokenizer, work / "packed", **options))
    for name in ("train.npy", "train.offsets"):
        assert (work / "packed" / name).read_bytes() == (work / "one" / name).read_bytes(), "other files"
    for name in ("encoded", "packed"):
        shutil.rmtree(work / name)
    return seconds


def same_ids(encoded: Path, packed: Path) -> bool:
    """Whether the rows of Parquet files, in the order of their numbers, have the ids that were packed."""
    files = [pq.read_table(path, columns=["n", "ids"]) for path in encoded.glob("*.parquet")]
    batches = [batch for file in files for batch in file.to_batches() if len(batch)]
    batches.sort(key=lambda batch: int(batch.column(0)[0].as_py()))
    numbers = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    ids = np.concatenate([np.asarray(batch.column(1).flatten()) for batch in batches])
    if (np.diff(numbers) != 1).any():  # rows of several files in one batch
        table = pa.Table.from_batches(batches).sort_by("n")
        numbers = table["n"].to_numpy()
        ids = np.concatenate([np.asarray(chunk.flatten()) for chunk in table["ids"].chunks])
    expected = np.load(packed / "train.npy", mmap_mode="r")
    return bool((np.diff(numbers) == 1).all()) and np.array_equal(ids, expected)


def word_figures(one: OneProcess) -> dict[str, float]:
    """What is known about words: how many a file has, what a word takes, and how long merging it takes."""
    paths = sorted(one.folder.glob("*.parquet"))[:: FILES // 16]
    parts = [cpbpe.WordCounts.build(path, column="text", threads=1).words for path in paths]
    words = sum(map(len, parts))
    begin = perf_counter()
    merge_words(parts)
    seconds = perf_counter() - begin
    return {
        "file words": words / len(parts),
        "merge word": seconds / words,
        "word bytes": len(one.counts.words.blob) / len(one.counts) + 16,
    }


def sentencepiece_model(lines: list[str], size: int, options: dict[str, Any]) -> tuple[float, bytes]:
    """What sentencepiece makes of the same lines, and how long it takes."""
    trainer = import_module("sentencepiece").SentencePieceTrainer
    texts = (line for block in repeated(lines, size) for line in block.decode().splitlines())
    model = io.BytesIO()
    begin = perf_counter()
    trainer.train(sentence_iterator=texts, model_writer=model, minloglevel=2, **options)
    return perf_counter() - begin, model.getvalue()


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description="Time cpbpe.scale with one worker and with two.")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--size", type=int, default=1000, help="MB of text")
    parser.add_argument("--workers", action="append", type=int, help="(default: 1 and 2)")
    parser.add_argument("--sentencepiece", action="store_true", help="train sentencepiece's model, too")
    parser.add_argument("--only-count", action="store_true", help="neither encode nor pack")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    lines, size = lines_of(options.data), options.size * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        folders = {name: work / name for name in ("files", "many", "short")}
        rows = write_files(repeated(lines, size), folders["files"], FILES, size)
        write_files(repeated(lines, size), folders["many"], 8 * FILES, size)
        short = [f"{line[at : at + SHORT]}\n" for line in lines for at in range(0, len(line) - 1, SHORT)]
        short_rows = write_files(repeated(short, size), folders["short"], FILES, size)
        one = OneProcess(folders["files"], work)
        print(f"{options.size} MB, {rows:,} rows, {FILES} files; one process:")
        for name, seconds in one.seconds.items():
            print(f"    {name:14} {seconds:8.2f} s", flush=True)
        report: dict[str, Any] = {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "machine": machine(),
            "versions": versions(["cpbpe", "sentencepiece", "pyarrow", "ray", "pyspark"]),
            "engine": options.engine,
            "bytes": size,
            "rows": rows,
            "short_rows": short_rows,
            "files": FILES,
            "words": len(one.counts),
            **word_figures(one),
            "one process": one.seconds,
            "workers": {},
        }
        if options.sentencepiece:
            seconds, model = sentencepiece_model(lines, size, one.options)
            assert model == one.model, "another model than sentencepiece's"
            report["sentencepiece"] = seconds
            print(f"sentencepiece: the same model in {seconds:.1f} s")
        for workers in options.workers or (1, 2):
            print(f"{options.engine}, {workers} workers:")
            engine = ENGINES[options.engine](workers)
            try:
                report["workers"][workers] = measured(engine, one, folders, work, options.only_count)
            finally:
                engine.stop()
    if options.out is not None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
