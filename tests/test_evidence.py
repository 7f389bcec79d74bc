"""The records of long runs, the page that sums them up, and the program that makes them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cpbpe import Tokenizer
from cpbpe.compat import tokenizers as compat
from tests.conftest import CORE
from tests.support import evidence, rivals, soak, tiers, train_parity, wheels, zoo
from tests.support.evidence import Record
from tests.support.soak import Run

needs_core = pytest.mark.skipif(not CORE, reason="soak compares the compiled core")
MODELS = ("llama", "charsmap-broken")


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches, of which each is decoded, too."""
    monkeypatch.setattr(rivals, "BATCH", 3_000)
    monkeypatch.setattr(rivals, "DECODED_EVERY", 1)


def figures(record: Record) -> Record:
    """What must be the same when a run is repeated."""
    return {name: value for name, value in record.items() if name not in ("seconds", "day")}


def kept(record: Record) -> Record:
    """The same, of files that were not changed."""
    return {**record, "commit": "0123abcdef"}


# --- The program ------------------------------------------------------------------------------------


@needs_core
@pytest.mark.usefixtures("_small")
def test_a_run_can_be_repeated(tmp_path: Path) -> None:
    """From its record alone; and a part of it alone."""
    first = soak.soak(Run("sentencepiece", 5, names=MODELS, batches=6), tmp_path / "run.json")
    assert evidence.read(tmp_path / "run.json") == [first]
    assert evidence.wrong(kept(first)) == ""
    assert set(first["models"]) == set(MODELS)
    assert evidence.differences(first) == 0
    sums = {name: evidence.total(first["models"].values(), name) for name in ("texts", "bytes", "in_full")}
    assert sums["texts"] > 6
    assert sums["bytes"] > 6 * 3_000
    assert sums["in_full"] > 6
    again = soak.soak(soak.parsed(first["command"].split()[3:]))
    assert figures(again) == figures(first)
    begin = soak.soak(Run("sentencepiece", 5, names=MODELS, batches=2))
    rest = soak.soak(Run("sentencepiece", 5, names=MODELS, first=2, batches=4))
    for name, found in sums.items():
        parts = [*begin["models"].values(), *rest["models"].values()]
        assert evidence.total(parts, name) == found
    assert soak.soak(Run("sentencepiece", 6, names=MODELS, batches=2))["digest"] != begin["digest"]


@needs_core
@tiers.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a program can hear")
def test_processes_do_the_same_work(tmp_path: Path) -> None:
    """Two processes, stopped by SIGTERM: what they did is what one does with as many batches."""
    path = tmp_path / "run.json"
    command = [sys.executable, "-m", "tests.support.soak", "sentencepiece", "--seed", "9", "--model", "llama"]
    with subprocess.Popen(
        [*command, "--seconds", "600", "--jobs", "2", "--record", str(path)],
        cwd=evidence.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "begins" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert "no differences" in process.communicate()[0]
    assert process.returncode == 0
    [stopped] = evidence.read(path)
    assert figures(soak.soak(soak.parsed(stopped["command"].split()[3:]))) == figures(stopped)


@needs_core
@pytest.mark.parametrize("rival", ["sentencepiece", "tiktoken"])
@pytest.mark.parametrize("machine", ["plain", "avx2"])
def test_other_processors(machine: str, rival: str) -> None:
    """What runs on processors that have less gives the same."""
    command = [sys.executable, "-m", "tests.support.soak", rival, "--seed", "5", "--batches", "6"]
    less = {**os.environ, "CPBPE_MACHINE": machine}
    run = subprocess.run(command, cwd=evidence.ROOT, env=less, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1].endswith("no differences")


@needs_core
@pytest.mark.usefixtures("_small")
def test_differences_are_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Another id at the end of some texts, in a batch and alone; an error; another text when decoding."""
    encode, rows = Tokenizer.encode, Tokenizer.encode_arrays
    run = Run("sentencepiece", 5, names=MODELS, batches=1)

    def wrong_rows(self: Tokenizer, texts: Any, **options: Any) -> Any:
        found = rows(self, texts, **options)
        found.ids[found.offsets[3] - 1] += 1
        return found

    monkeypatch.setattr(Tokenizer, "encode_arrays", wrong_rows)
    assert evidence.differences(soak.soak(run)) == 1
    monkeypatch.setattr(Tokenizer, "encode_arrays", lambda self, texts, **options: 1 // 0)
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: [*encode(self, text), 5])
    record = soak.soak(run)
    texts = evidence.total(record["models"].values(), "texts")
    assert texts <= evidence.differences(record) <= 2 * texts
    assert "DIFFERENT, seed 5, batch 0" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(rivals, "DECODED_EVERY", 1)
    monkeypatch.setattr(Tokenizer, "decode_batch", lambda self, lists, threads: ["x"] * len(lists))
    assert evidence.differences(soak.soak(run)) == 1


@needs_core
@pytest.mark.usefixtures("_small")
def test_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the vocabulary of GPT-4."""
    record = soak.soak(Run("tiktoken", 5, names=["cl100k"], batches=4))
    assert evidence.differences(record) == 0
    assert record["models"]["cl100k"]["texts"] > 4
    assert record["rival"] == "tiktoken"
    pair, pieces = rivals.published("cl100k")
    monkeypatch.setattr(rivals, "published", lambda name: ((pair[1], Wrong(pair[1])), pieces))
    again = soak.soak(Run("tiktoken", 5, names=["cl100k"], batches=1))
    model = again["models"]["cl100k"]
    assert model["differences"] == model["texts"] > 0
    assert model["left_out"] > 0


@needs_core
@pytest.mark.usefixtures("_small")
def test_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model of the zoo and a byte-level one; and texts to which one of both adds something."""
    run = Run("tokenizers", 5, names=["llama", "GPT-2"], batches=6)
    record = soak.soak(run)
    assert set(record["models"]) == {"llama", "GPT-2"}
    assert evidence.differences(record) == 0
    assert record["rival"] == "tokenizers"
    encode = compat.Tokenizer.encode_batch_fast
    monkeypatch.setattr(
        compat.Tokenizer,
        "encode_batch_fast",
        lambda self, texts: encode(self, [text + "<" for text in texts]),
    )
    assert evidence.differences(soak.soak(run)) == 6  # each of a batch, as texts alone are not changed


class Wrong:
    """tiktoken, but every text of an even length is refused, and every other one gets an id more."""

    def __init__(self, encoding: Any):
        self.encoding = encoding

    def encode_to_numpy(self, text: str, **options: Any) -> Any:
        if len(text) % 2 == 0:
            raise ValueError(text)
        return self.encoding.encode_to_numpy(text + "<", **options)

    def decode(self, ids: list[int]) -> Any:
        return self.encoding.decode(ids)


@needs_core
def test_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some trainings, and some of which one of the two files is another."""
    run = Run("training", 5, batches=3)
    record = soak.soak(run)
    assert evidence.wrong(kept(record)) == ""
    assert (record["trainings"], record["differences"]) == (3, 0)
    assert record["bytes"] > 1000
    train = train_parity.theirs
    monkeypatch.setattr(train_parity, "theirs", lambda *given: train(*given) * 2)
    assert soak.soak(run)["differences"] == 3 - record["refused"]


# --- The records and the page -----------------------------------------------------------------------


def record(kind: str, **fields: Any) -> Record:
    """A record with any values."""
    about = dict.fromkeys(evidence.COMMON, "any")
    values = {str: "any", int: 7, float: 8.5, dict: {}}
    own = {name: values[type] for name, type in evidence.KINDS[kind].items()}
    return {
        **about,
        **own,
        "kind": kind,
        "day": "2026-01-31",
        "commit": "0123abcdef",
        "cpbpe": "1.2.3+",
    } | fields


def test_the_page_is_that_of_the_records() -> None:
    records = evidence.read()
    assert [evidence.wrong(one) for one in records] == [""] * len(records)
    page = evidence.PAGE.read_text(encoding="utf-8")
    assert f"{evidence.BEGIN}\n{evidence.page(records)}\n{evidence.END}" in page, (
        "run python -m tests.support.evidence page"
    )


def test_records_are_sums() -> None:
    """Of all runs of a version; what was measured last, for a part of the code. Nothing else has a table."""
    models = {"a": {"sha256": "00", "texts": 5, "bytes": 10**9, "decoded": 2, "differences": 0}}
    soaked = [
        record("parity", models=models, rival="sentencepiece", rival_version="0.2.3", seconds=1800.0)
    ] * 2
    fuzzed = [record("fuzzing", target="load", inputs=1000), record("fuzzing", target="load", inputs=5000)]
    older = record("fuzzing", target="load", inputs=1, cpbpe="1.2.3")
    covered = [record("coverage", room="text", lines=10, reached=10)]
    covered += [record("coverage", room="text", lines=1000, reached=999)]
    text = evidence.page([*soaked, older, *fuzzed, *covered])
    assert "| 1.2.3+ | sentencepiece 0.2.3 | 2 | 1 | 10 | 2.00 GB | 4 | 0 | 1.00 h | **0** |" in text
    assert "| 1.2.3+ | sentencepiece 0.2.3 | a | `00` | 10 | 2.00 GB | 0 |" in text
    assert "| 1.2.3+ | load | 2 | 6,000 | 17 s | **14** |\n| 1.2.3 | load | 1 | 1 | 8 s | **7** |" in text
    assert "| 1.2.3+ | `text` | 1,000 | 99.9 % |" in text
    assert "Training" not in text
    assert "| 7 | 2026-01-31 | coverage | text | 99.9 % | `0123abcdef` | any |" in text
    assert "| fuzzing | 2 minutes in CI; 3 runs |" in text
    assert "| Miri | – |" in text
    assert "| Miri | 1 run |" in evidence.page([record("sanitizer", name="Miri")])
    survived = {"a.rs:1: replace | with ^": "the bits never meet"}
    mutated = record("mutation", room="cut", mutants=9, killed=8, survived=survived, timed_out=0, unviable=0)
    text = evidence.page([mutated, mutated | {"survived": {}}])
    assert "| 1.2.3+ | `cut` | 18 | 16 | 0 | 0 | 1 |" in text
    assert "| 1.2.3+ | `a.rs:1: replace \\| with ^` | the bits never meet |" in text
    assert "say why" in evidence.wrong(mutated | {"survived": dict.fromkeys(survived, "")})
    every = evidence.page([record(kind) for kind in evidence.KINDS])
    assert every.count("\n### ") == len(evidence.KINDS) + 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "guess"}, "the kind is 'guess'"),
        ({"colour": "red"}, "not known: ['colour']"),
        ({"inputs": "many"}, "inputs is 'many', and must be int"),
        ({"inputs": True}, "inputs is True"),
        ({"inputs": -1}, "inputs is -1"),
        ({"day": "today"}, "the day"),
        ({"commit": "0123abcdef+"}, "commit and compile the core"),
        ({"command": "python /home/x.py"}, "looks like a path"),
        ({"note": "see https://example.org"}, "looks like a path"),
    ],
)
def test_what_is_no_record(change: Record, problem: str) -> None:
    good = record("fuzzing", note="one crash, mended")
    assert evidence.wrong(good) == ""
    assert problem in evidence.wrong(good | change)
    assert "missing: ['found']" in evidence.wrong({name: good[name] for name in good if name != "found"})


def test_nothing_is_counted_twice(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    own = {"seed": 5, "first": 10, "batches": 10, "sources": {"a.txt": "00"}}
    evidence.add([record("training", **own), record("fuzzing"), record("fuzzing")], path)
    for first, batches in ((0, 11), (12, 3), (19, 9)):
        with pytest.raises(SystemExit, match="there already"):
            evidence.add([record("training", **own | {"first": first, "batches": batches})], path)
    others: list[Record] = [{"first": 0}, {"first": 20}, {"seed": 6}, {"sources": {}}, {"cpbpe": "1.2.4"}]
    evidence.add([record("training", **own | other) for other in others], path)
    with pytest.raises(SystemExit, match="cannot be kept: day"):
        evidence.add([record("fuzzing", day=5)], path)
    assert len(evidence.read(path)) == 8
    assert json.loads(path.read_text().splitlines()[0]) == record("training", **own)


def test_the_facts_are_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = evidence.facts()
    assert evidence.wrong(kept({**record("faults"), **found})) == ""
    assert "Python" in found["platform"]
    monkeypatch.setenv("CPBPE_MACHINE", "plain")
    assert evidence.facts()["platform"].endswith(", CPBPE_MACHINE=plain")


def test_models_have_one_hash() -> None:
    """Wherever the rules lie that a model was trained with, and whatever form a vocabulary's file has."""
    for name in ("tsv", "denormalizer"):
        first = zoo.model(name)
        for made in (zoo.model, zoo.train):
            made.cache_clear()
        assert zoo.model(name) == first
    [data] = rivals.Tiktoken.files(["cl100k"]).values()
    first, *rest = wheels.content("cl100k").split(b"\n")
    assert data.count(b"\n") == len(rest)
    assert data.startswith(b"21 0\n")  # "!", as the file has it in Base64
    assert first == b"IQ== 0"


@needs_core
@pytest.mark.usefixtures("_small")
def test_rows_are_repeated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By their numbers; what is another here is said."""
    soaked = soak.soak(Run("sentencepiece", 5, names=["llama"], batches=2))
    model = soaked["models"]["llama"]
    rows = [
        soaked,
        {**soaked, "digest": "0"},
        {**soaked, "cpbpe": "0.0.1", "models": {"llama": {**model, "sha256": "0"}}},
        {**soaked, "models": {"llama": {**model, "texts": 1}}},
        record("fuzzing", command=f"MANY=3 {sys.executable} -c 'import os; exit(int(os.environ[\"MANY\"]))'"),
    ]
    monkeypatch.setattr(evidence, "read", lambda: rows)
    assert [evidence.repeat(row, []) for row in range(1, 6)] == [0, 1, 0, 1, 3]
    said = capsys.readouterr().out
    assert said.count("the same result") == said.count("ANOTHER RESULT") == 2
    assert said.count("but 0.0.1 in the record") == 1
    assert said.count("other files than in the record: llama") == 1
