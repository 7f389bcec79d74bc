"""`cpbpe.scale.spark`: on a Spark within this process, and on a master with two workers."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.scale import spark as scale
from tests.scale import datasets
from tests.scale.datasets import PARTS, TEXTS, TRAIN, DiesOnce, ids_of, packed_files, present, tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROOT = str(Path(datasets.__file__).parents[2])
ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")])),
    "SPARK_LOCAL_IP": "127.0.0.1",
}


@contextlib.contextmanager
def session(master: str) -> Iterator[Any]:
    os.environ.update(ENVIRONMENT)
    builder = import_module("pyspark.sql").SparkSession.builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": ENVIRONMENT["PYTHONPATH"],
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="class")
def local() -> Iterator[Any]:
    with session("local[2,4]") as made:
        yield made


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """A session on a master with two workers, each a process of its own."""
    program = Path(str(import_module("pyspark").__file__)).parent / "bin" / "spark-class"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = tmp_path / f"{len(started)}.log"
        with log.open("wb") as out:
            command = [str(program), f"org.apache.spark.deploy.{name}", *arguments]
            environment = {**os.environ, **ENVIRONMENT, "SPARK_WORKER_DIR": str(tmp_path)}
            started.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment))
        return log

    def waited(log: Path, pattern: str, times: int = 1) -> str:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            found = re.findall(pattern, log.read_text(errors="replace"))
            if len(found) >= times:
                return str(found[0])
            time.sleep(0.2)
        raise AssertionError(log.read_text(errors="replace"))

    try:
        log = start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = waited(log, r"spark://[\w.]+:\d+")
        for _ in range(2):
            start("worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", master)
        waited(log, "Registering worker", 2)
        with session(master) as made:
            yield made
    finally:
        for process in started:
            process.kill()
            process.wait()


def frame_of(spark: Any) -> Any:
    rows = [(text, number) for number, text in enumerate(TEXTS)]
    return spark.createDataFrame(rows, "text string, n int").repartition(PARTS, "n")


def ids_by_number(frame: Any) -> list[list[int] | None]:
    rows = sorted(frame.collect(), key=lambda row: int(row["n"]))
    return [None if row["ids"] is None else list(row["ids"]) for row in rows]


def dying(frame: Any, flag: Path, ancestor: int = 0) -> Any:
    return frame.mapInArrow(DiesOnce(flag, ancestor).batches, frame.schema)


class TestLocal:
    """A session within this process, which ends before the next one begins: there is one at a time."""

    def test_counts_and_training(self, local: Any) -> None:
        frame = frame_of(local)
        counts = scale.count(frame)
        assert counts == cpbpe.WordCounts.build(present())
        assert (counts.reading.sentences, counts.reading.nulls) == (len(present()), 2)
        model = scale.train(frame.coalesce(3), **TRAIN).tokenizer.to_bytes()
        assert model == cpbpe.train(present(), **TRAIN).tokenizer.to_bytes()

    def test_encoding(self, local: Any) -> None:
        tok = tokenizer()
        made = scale.encode(frame_of(local).coalesce(3), tok, add_bos=True)
        assert made.columns == ["text", "n", "ids"]
        assert ids_by_number(made) == ids_of(tok, add_bos=True)

    def test_spans(self, local: Any) -> None:
        tok = tokenizer()
        made = scale.encode(frame_of(local).coalesce(3), tok, spans="where")
        assert made.columns == ["text", "n", "ids", "where"]
        rows = sorted(made.collect(), key=lambda row: int(row["n"]))
        found = [None if row["where"] is None else [tuple(span) for span in row["where"]] for row in rows]
        assert found == [None if text is None else tok.align(text).offsets for text in TEXTS]

    def test_packing(self, local: Any, tmp_path: Path) -> None:
        """In the order of the rows, and in that of a column when they have been shuffled."""
        tok = tokenizer()
        cpbpe.pack(tok, TEXTS, tmp_path / "one", shard_size=3000, shuffle_seed=1)
        options: dict[str, Any] = {"shard_size": 3000, "shuffle_seed": 1, "progress": False}
        rows = [(text, number) for number, text in enumerate(TEXTS)]
        scale.pack(local.createDataFrame(rows, "text string, n int"), tok, tmp_path / "rows", **options)
        scale.pack(frame_of(local), tok, tmp_path / "order", order="n", **options)
        for name in ("rows", "order"):
            assert packed_files(tmp_path / name) == packed_files(tmp_path / "one"), name

    def test_a_killed_process_changes_nothing(self, local: Any, tmp_path: Path) -> None:
        flag = tmp_path / "counting"
        assert scale.count(dying(frame_of(local).coalesce(5), flag)) == cpbpe.WordCounts.build(present())
        assert flag.exists()

    def test_wrong_frames(self, local: Any) -> None:
        frame = frame_of(local)
        with pytest.raises(TypeError, match=r"count\(\) takes a data frame of Spark first, not list"):
            scale.count(TEXTS)
        with pytest.raises(ValueError, match="the dataset has no column 'body'; it has text, n"):
            scale.count(frame, "body")
        with pytest.raises(ValueError, match="has a column 'n' already; give another name as output"):
            scale.encode(frame, tokenizer(), output="n")
        with pytest.raises(TypeError, match="the column 'n' holds no strings or bytes, but integer"):
            scale.count(frame, "n")


class TestCluster:
    """A master and two workers."""

    def test_a_killed_executor_changes_nothing(self, cluster: Any, tmp_path: Path) -> None:
        """Python's process is a child of a daemon, which is one of the executor."""
        flag = tmp_path / "counting"
        assert scale.count(dying(frame_of(cluster).coalesce(5), flag, 2)) == cpbpe.WordCounts.build(present())
        assert flag.exists()
        flag = tmp_path / "encoding"
        made = scale.encode(dying(frame_of(cluster).coalesce(3), flag, 2), tokenizer())
        assert ids_by_number(made) == ids_of(tokenizer())
        assert flag.exists()
        flag = tmp_path / "packing"
        killed = dying(frame_of(cluster).coalesce(3), flag, 2)
        scale.pack(killed, tokenizer(), tmp_path / "packed", order="n", progress=False)
        assert flag.exists()
        cpbpe.pack(tokenizer(), TEXTS, tmp_path / "one")
        assert packed_files(tmp_path / "packed") == packed_files(tmp_path / "one")
