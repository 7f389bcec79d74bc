"""Every command survives faults: kills, Ctrl-C, full disks, readers that stop, files that change meanwhile.

`ROWS` has a row for each command, for each form of its results and for what Python writes. With
`CPBPE_EXAMPLES=500`, each that writes files is killed at 500 moments. A moment is a time, a call that changes
something on the disk, or a size at which a file stops growing.
"""

import json
import os
import random
import re
import shlex
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe.cli import COMMANDS, main
from cpbpe.cli.spm import PROGRAMS
from cpbpe.model.formats.registry import FORMATS
from tests.conftest import CORE
from tests.support import budget, tiers, zoo
from tests.support.corpus import lines
from tests.support.forked import NOT_BEGUN
from tests.support.processes import Prepared

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("a process is not forked safely, or not at all", allow_module_level=True)

TEMPORARY = re.compile(r".*\.[0-9a-f]{16}\.cpbpe\.tmp")
"""Files under these names are removed by the next run that writes the same file."""
Files = dict[str, bytes]


@dataclass(frozen=True)
class Row:
    """A call, of the command or of Python."""

    call: str
    writes: tuple[str, ...] = ()
    """The files that it writes; in the folder `out`, but for what messages say of them."""
    replaces: bool = True
    """Whether files that are there already are replaced."""
    goes_on: bool = False
    """Whether what is whole is kept, and the same call goes on from there."""
    varies: tuple[str, ...] = ()
    """Files that are not the same in each run: they hold times."""
    reads: tuple[str, ...] = ()
    """Files that it reads, which may change meanwhile."""

    @property
    def failed(self) -> int:
        """The exit code if it fails: with these two, 1 means that something was found."""
        return 2 if self.call.startswith(("lint", "diff")) else 1


def python(code: str, *writes: str) -> Row:
    return Row(f"python {shlex.quote(code)}", writes)


LOAD = "import cpbpe; tok = cpbpe.load('m.model'); "
TEXT = ("text.txt",)
BOTH = ("m.model", "text.txt")
BYTES = {"minbpe": "minbpe", "gpt2": "gpt2", "tekken.json": "minbpe", "tiktoken": "gpt4", "gguf": "gpt4"}
"""Formats that a byte-level model is written in, and which; `m.model` is for the others."""
NAMES = {"minbpe": ("my.model", "my.vocab"), "gpt2": ("vocab.json", "merges.txt"), "vocab": ("my.vocab",)}
"""What the files of a format are called, if not as their format."""


def conversions() -> Iterator[Row]:
    """To each format."""
    for name in FORMATS:
        source = f"{BYTES[name]}_bytes.json" if name in BYTES else "m.model"
        files = [f"out/{file}" for file in NAMES.get(name, (f"my.{name}",))]
        target = "out/" if name == "gpt2" else files[0]
        yield Row(f"convert {source} {target} --to {name} --allow-differences", (*files,), reads=(source,))


ROWS = [
    Row(
        "quickstart --out out/q",
        ("out/q/tokenizer.model", "out/q/tokenizer.vocab", "out/q/corpus.txt"),
        replaces=False,
    ),
    Row("encode m.model text.txt --out out/t.ids", ("out/t.ids",), reads=BOTH),
    Row("encode m.model text.txt --format jsonl --offsets", reads=BOTH),
    Row("decode m.model t.ids --out out/t.txt", ("out/t.txt",), reads=("t.ids",)),
    Row("decode m.model t.ids", reads=("t.ids",)),
    Row("tokens m.model text.txt text.jsonl text.parquet text.arrow --json", reads=(*BOTH, "text.arrow")),
    Row("show m.model --file text.txt", reads=TEXT),
    Row(
        "train text.txt --vocab-size 620 --out out/my --report out/r.json",
        ("out/my.model", "out/my.vocab", "out/r.json"),
        varies=("out/r.json",),
        reads=TEXT,
    ),
    Row(
        "train text.txt --preset gpt4 --vocab-size 290 --out out/my.tiktoken --report out/r.html",
        ("out/my.tiktoken", "out/r.html"),
        varies=("out/r.html",),
        reads=TEXT,
    ),
    Row(
        "train t.counts --vocab-size 620 --out out/my", ("out/my.model", "out/my.vocab"), reads=("t.counts",)
    ),
    Row("count text.txt text.arrow --out out/t.counts", ("out/t.counts",), reads=("text.txt", "text.arrow")),
    Row(
        "pack m.model text.txt --out out/p --shard-size 2k",
        ("out/p",),
        replaces=False,
        goes_on=True,
        reads=TEXT,
    ),
    Row(
        "pack m.model text.arrow --out out/p_ --to megatron --validation 0.1 --shuffle-seed 1",
        ("out/p_",),
        replaces=False,
        goes_on=True,
        reads=("text.arrow",),
    ),
    *conversions(),
    Row("convert m.model out/folder/ --add-bos", ("out/folder/tokenizer.json", "out/folder/tokenizer.model")),
    Row("inspect m.model --export tsv --out out/v.tsv", ("out/v.tsv",), reads=("m.model",)),
    Row("inspect m.model", reads=("m.model",)),
    Row(
        "lint m.model --corpus text.txt --embeddings rows.npy --out out/l.html",
        ("out/l.html",),
        reads=(*BOTH, "rows.npy"),
    ),
    Row("lint m.model --embeddings w.safetensors --json", reads=("w.safetensors",)),
    Row(
        "compare m.model other.model text.txt --out out/c.html",
        ("out/c.html",),
        varies=("out/c.html",),
        reads=BOTH,
    ),
    Row("compare m.model other.model text.txt", reads=BOTH),
    Row("view m.model --text text.txt --out out/page.html", ("out/page.html",), reads=BOTH),
    Row("diff m.model other.model --out out/d.html", ("out/d.html",), reads=("m.model", "other.model")),
    Row("diff m.model other.model", reads=("m.model",)),
    Row(
        "edit m.model out/e.model --words words.txt --learn 3 --corpus text.txt --ids out/ids.npy "
        "--weights w.safetensors --weights-out out/w.safetensors",
        ("out/e.model", "out/ids.npy", "out/w.safetensors"),
        reads=(*BOTH, "words.txt", "w.safetensors"),
    ),
    Row("learn 1 mine.py", reads=("mine.py",)),
    Row(
        "spm train --input=text.txt --model_prefix=out/s --vocab_size=320 --model_type=bpe",
        ("out/s.model", "out/s.vocab"),
        reads=TEXT,
    ),
    Row("spm encode --model=m.model --output=out/s.txt text.txt", ("out/s.txt",), reads=BOTH),
    Row("spm encode --model=m.model text.txt", reads=BOTH),
    Row("spm decode --model=m.model --input_format=id --output=out/s.txt t.ids", ("out/s.txt",)),
    Row("spm normalize --model=m.model --output=out/s.txt text.txt", ("out/s.txt",), reads=BOTH),
    Row("spm export_vocab --model=m.model --output=out/s.vocab", ("out/s.vocab",), reads=("m.model",)),
    Row("completion bash"),
    Row("--help"),
    python(f"{LOAD}tok.save('out/s.model')", "out/s.model"),
    python("import cpbpe; cpbpe.WordCounts.build(['a b'] * 9).save('out/s.counts')", "out/s.counts"),
    python(
        "from cpbpe.compat.tokenizers import Tokenizer; Tokenizer.from_file('m.json').save('out/s.json')",
        "out/s.json",
    ),
    python(
        "from cpbpe.compat.tiktoken.load import dump_tiktoken_bpe, load_tiktoken_bpe; "
        "dump_tiktoken_bpe(load_tiktoken_bpe('gpt4_bytes.tiktoken'), 'out/s')",
        "out/s",
    ),
    python(
        "from cpbpe.compat.minbpe import BasicTokenizer; tok = BasicTokenizer(); "
        "tok.train('abab' * 99, 258); tok.save('out/s')",
        "out/s.model",
        "out/s.vocab",
    ),
]
USUAL = [
    next(row for row in ROWS if row.call.startswith(call))
    for call in (
        *("quickstart", "encode", "train", "pack", "convert m.model out/folder", "lint", "edit", "spm train"),
        *("python 'from cpbpe.compat.tiktoken", "python 'from cpbpe.compat.minbpe", "inspect m.model"),
    )
]
"""Those of which something is tried in usual runs: as different from each other as possible."""
DAILY = USUAL[1:3]
WRITERS = [row for row in ROWS if row.writes]
TYPED = [row for row in ROWS if not row.call.startswith("python ")]
READERS = [row for row in ROWS if row.reads]


def test_every_command_has_a_row() -> None:
    called = [row.call.split() for row in ROWS]
    assert {call[0] for call in called} - {"python", "--help"} == set(COMMANDS)
    assert {call[1] for call in called if call[0] == "spm"} == set(PROGRAMS)


def rows(some: list[Row]) -> pytest.MarkDecorator:
    """The argument `stage`: calls on their own stages. Without CPBPE_EXAMPLES only usual ones."""
    chosen = some if budget.examples(0) else [row for row in some if row in USUAL]
    cases = tiers.some(chosen, DAILY)
    return pytest.mark.parametrize("stage", cases, ids=lambda row: row.call[:60], indirect=True)


# --- One call ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    with Prepared() as process:
        yield process


@pytest.fixture(scope="module")
def cold() -> Iterator[Prepared]:
    """A process that has imported nothing but what every command needs: a run begins with the rest."""
    with Prepared() as process:
        yield process


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the calls read."""
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("inputs")
    texts = lines(80)
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    tok.save(folder / "m.model")
    cpbpe.convert(folder / "m.model", folder / "m.json")
    cpbpe.Tokenizer.from_bytes(zoo.model("defaults")).save(folder / "other.model")
    (folder / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    (folder / "text.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    table = pyarrow.table({"text": texts})
    pyarrow.parquet.write_table(table, folder / "text.parquet")
    with pyarrow.ipc.new_stream(folder / "text.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=10)
    (folder / "t.ids").write_text("\n".join(" ".join(map(str, tok.encode(text))) for text in texts))
    (folder / "words.txt").write_text("zebra\ngiraffe\n")
    (folder / "mine.py").write_text("def get_stats(ids):\n    return {}\n")
    table_of = np.random.default_rng(1).normal(size=(tok.vocab_size, 8)).astype("float32")
    np.save(folder / "rows.npy", table_of)
    head = {
        "embed_tokens.weight": {"dtype": "F32", "shape": table_of.shape, "data_offsets": [0, table_of.nbytes]}
    }
    written = json.dumps(head).encode()
    data = len(written).to_bytes(8, "little") + written + table_of.tobytes()
    (folder / "w.safetensors").write_bytes(data)
    cpbpe.WordCounts.build(texts).save(folder / "t.counts")
    for preset in {*BYTES.values()}:
        trained = cpbpe.train(texts, preset=preset, vocab_size=300)
        trained.save(folder / f"{preset}_bytes.tiktoken")
        trained.tokenizer.save(folder / f"{preset}_bytes.json")
    return folder


class Stage:
    """A call with a folder of its own, and what it does if nothing is in its way."""

    def __init__(self, row: Row, inputs: Path, folder: Path, prepared: Prepared, cold: Prepared):
        self.row = row
        self.folder = folder / "work"
        self.temporary = folder / "tmp"
        self.random = random.Random(f"{budget.SEED} {row.call}")
        self._processes = {False: prepared, True: cold}
        shutil.copytree(inputs, self.folder)
        first = self.run(tells=True)
        assert first["code"] in (0, 1), first
        prepared.ask(modules=first["modules"])
        self.usual = self.run(tells=True)
        assert self.usual["code"] == first["code"], self.usual
        self.seconds = max(self.usual["seconds"], self.run()["seconds"])
        self.files = self.found()
        assert all(any(file.startswith(name) for file in self.files) for name in row.writes), self.usual
        self.largest = max(map(len, self.files.values()), default=0)

    def run(
        self, old: bool = False, keep: bool = False, is_cold: bool = False, **fault: Any
    ) -> dict[str, Any]:
        """Run it: in an empty folder, or with `old` files there, or with all that is there to `keep`."""
        if not keep:
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            shutil.rmtree(self.temporary, ignore_errors=True)
            (self.folder / "out").mkdir()
            self.temporary.mkdir()
            self.old = {name: b"what was there before" for name in self.row.writes if old}
            for name, content in self.old.items():
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_bytes(content)
        places = {"cwd": str(self.folder), "temporary": str(self.temporary)}
        return self._processes[is_cold].ask(arguments=shlex.split(self.row.call), **places, **fault)

    def found(self) -> Files:
        """All files in `out`."""
        out = self.folder / "out"
        paths = (path for path in out.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths}

    def is_whole(self) -> bool:
        """Whether everything is as if nothing had been in the way, and nothing else is there."""
        found = self.found()
        same = (found.get(name) == self.files[name] for name in self.files if name not in self.row.varies)
        return found.keys() == self.files.keys() and all(same)

    def nothing_is_half_written(self, leftovers: bool) -> None:
        """Each file is as before or as it should be; `leftovers` may be there that the next run removes."""
        found = self.found()
        assert self.old.keys() <= found.keys()
        for name, content in found.items():
            if name in self.files and name not in self.row.varies:
                is_right = content in (self.old.get(name), self.files[name])
            else:
                is_right = name in self.files or (leftovers and TEMPORARY.fullmatch(name) is not None)
            assert is_right or (self.row.goes_on and "cpbpe-pack" in name), (name, len(content))

    def it_can_be_run_again(self) -> None:
        again = self.run(keep=True)
        assert again["code"] == self.usual["code"], again
        assert self.is_whole(), (self.found().keys(), self.files.keys())

    def moment(self, number: int, sizes: bool) -> dict[str, Any]:
        """A moment of the run, chosen at random: of another kind for each number in turn."""
        kinds = ["after", "step", "limit"] if sizes and self.row.writes else ["after", "step"]
        kind = kinds[number % len(kinds)]
        if kind == "step" and self.usual["steps"]:
            return {"step": self.random.randrange(self.usual["steps"])}
        if kind == "limit":
            return {"limit": self.random.randrange(self.largest), "signal": signal.SIGXFSZ}
        return {"after": self.random.uniform(0, self.seconds)}


@pytest.fixture(scope="module")
def stages() -> dict[Row, Stage]:
    return {}


@pytest.fixture
def stage(
    request: pytest.FixtureRequest,
    stages: dict[Row, Stage],
    inputs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    prepared: Prepared,
    cold: Prepared,
) -> Stage:
    """The stage of a row, made once."""
    row: Row = request.param
    if row not in stages:
        stages[row] = Stage(row, inputs, tmp_path_factory.mktemp("stage"), prepared, cold)
    return stages[row]


# --- Faults -----------------------------------------------------------------------------------------


def told(what: str, stage: Stage, times: int, more: object = "") -> None:
    """For whoever runs many: `pytest -s` shows how many there were, and `CPBPE_RECORD` keeps it."""
    print(f"\n{what}: {times} {more}, {stage.row.call[:90]}", flush=True)
    budget.tried(what, times)


@rows(WRITERS)
def test_killed(stage: Stage) -> None:
    """The same command can be run again, and gives the same bytes."""
    hits = tries = 0
    count = budget.examples(2)
    while hits < count and tries < 4 * count:
        fault = {"signal": signal.SIGKILL, **stage.moment(tries, sizes=True)}
        tries += 1
        done = stage.run(old=stage.row.replaces and tries % 2 == 0, **fault)
        if done["code"] != -fault["signal"]:
            assert done["code"] == stage.usual["code"], (fault, done)
            assert stage.is_whole(), fault
            continue
        hits += 1
        try:
            stage.nothing_is_half_written(leftovers=True)
            if stage.found() != stage.old:  # (otherwise there is nothing that it could meet)
                stage.it_can_be_run_again()
        except AssertionError as error:
            raise AssertionError(fault) from error
    assert hits, stage.usual
    told("kill -9", stage, hits, f"of {tries}")


@rows(TYPED)
def test_interrupted(stage: Stage) -> None:
    """A message instead of a traceback, which is true; and nothing is left."""
    hits = tries = 0
    count = budget.examples(5) * 2 // 5
    cold_seconds = stage.run(is_cold=True, ends=True)["seconds"]
    while hits < count and tries < 4 * count:
        number, code = [(signal.SIGINT, 130), (signal.SIGTERM, 143)][tries % 5 == 4]
        fault = {"signal": number, **stage.moment(tries, sizes=False)}
        if tries % 3 == 2:  # while modules are imported, or while Python ends
            after = stage.random.uniform(0, cold_seconds)
            fault = {"signal": number, "is_cold": True, "ends": True, "after": after}
        tries += 1
        done = stage.run(old=stage.row.replaces and tries % 2 == 0, **fault)
        if done["code"] == NOT_BEGUN:
            continue
        case = (fault, done)
        assert "Traceback" not in done["err"], case
        assert "ignored" not in done["err"], case
        left = list(stage.temporary.iterdir())
        assert not left, (*case, left)
        stage.nothing_is_half_written(leftovers=False)
        if done["code"] == stage.usual["code"]:
            assert stage.is_whole(), case
            continue
        hits += 1
        assert done["code"] in (code, -number), case
        if done["code"] == 130:
            assert re.search(r"^cpbpe: interrupted; .+\n\Z", done["err"], re.M), case
            # (What is in the scratch folder of `pack` was not written in the sense of the message.)
            found = {name: data for name, data in stage.found().items() if "cpbpe-pack/" not in name}
            is_nothing = found == stage.old
            assert ("nothing was written" in done["err"]) == is_nothing or not stage.row.writes, case
        if stage.row.goes_on:
            stage.it_can_be_run_again()
    told("Ctrl-C, SIGTERM", stage, hits, f"of {tries}")


@pytest.mark.parametrize(
    "other", [RuntimeError("cannot release un-acquired lock"), ValueError("decoding failed"), None]
)
@pytest.mark.parametrize("signal_raises", [KeyboardInterrupt(), SystemExit(143)])
def test_what_python_makes_of_a_signal(
    signal_raises: BaseException,
    other: Exception | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Locks and codecs that are interrupted raise other errors, or the same one with another text."""

    def run(options: object) -> int:
        try:
            raise signal_raises
        except BaseException as error:
            if other is None:
                raise KeyboardInterrupt("decoding failed (KeyboardInterrupt: )") from error
            raise other  # noqa: B904

    monkeypatch.setattr("cpbpe.cli.inspect.run", run)
    if isinstance(signal_raises, SystemExit):
        with pytest.raises(SystemExit, match="143"):
            main(["inspect", "m.model"])
        assert capsys.readouterr().err == ""
    else:
        assert main(["inspect", "m.model"]) == 130
        assert capsys.readouterr().err == "cpbpe: interrupted; nothing was written\n"


WRONG_MOMENTS = {
    "while a module is imported": """
class Finder:
    def find_spec(self, name, *rest):
        if name == "not_there":
            try:
                interrupt()
            except BaseException:
                raise ImportError("what a C extension says")

sys.meta_path.insert(0, Finder())

def moment():
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("not_there")
""",
    "while arguments are parsed": """
import argparse

class Option(argparse._StoreAction):
    def __setattr__(self, name, value):
        if name == "required" and hasattr(self, "save_required") and not hasattr(self, "was_here"):
            self.was_here = True
            interrupt()
        super().__setattr__(name, value)

def moment():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", action=Option)
    parser.add_argument("--second")
    parser.parse_intermixed_args(["--second", "a"])
""",
    "in a destructor": """
class Ending:
    def __del__(self):
        interrupt()

def moment():
    Ending()
""",
}
INTERRUPTED = """
import contextlib, importlib, os, signal, sys, time
from cpbpe.cli import inspect, main

def interrupt():
    os.kill(os.getpid(), signal.NUMBER)
    for _ in range(1000):
        pass

MOMENT

def run(arguments):
    moment()
    time.sleep(5)
    return 0

inspect.run = run
sys.argv = ["cpbpe", "inspect", "m.model"]
sys.exit(main())
"""


@pytest.mark.parametrize("moment", WRONG_MOMENTS)
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_interrupted_at_a_wrong_moment(
    moment: str, number: str, code: int, inputs: Path, tmp_path: Path, cold: Prepared
) -> None:
    """The signal is heard after that: otherwise it would be lost, or look like another error."""
    script = INTERRUPTED.replace("MOMENT", WRONG_MOMENTS[moment]).replace("NUMBER", number)
    done = cold.ask(arguments=["python", script], cwd=str(inputs), temporary=str(tmp_path), ends=True)
    assert (done["code"], done["out"]) == (code, "")
    assert done["err"] == ("cpbpe: interrupted; nothing was written\n" if code == 130 else "")


@rows(WRITERS)
def test_a_full_disk(stage: Stage) -> None:
    """The error names the file and says what to do, and nothing is left but what was there before."""
    sizes = {0, stage.largest - 1}
    while len(sizes) < min(budget.examples(2), stage.largest):
        sizes.add(stage.random.randrange(stage.largest))
    for size in sorted(sizes):
        done = stage.run(old=stage.row.replaces and size % 2 == 0, limit=size)
        case = (size, done)
        if size >= stage.largest - 200 and done["code"] == 0 and stage.row.varies:
            continue  # (a report with times is a few bytes shorter in one run than in another)
        assert done["code"] == stage.row.failed, case
        assert "File too large; make room" in done["err"], case
        assert any(name in done["err"] for name in stage.row.writes), case
        if not stage.row.call.startswith("python "):
            assert done["err"].startswith("cpbpe: "), case
            assert "Traceback" not in done["err"], case
        stage.nothing_is_half_written(leftovers=False)
        if stage.row.goes_on:
            stage.it_can_be_run_again()
    told("a full disk", stage, len(sizes))


@rows(TYPED)
def test_a_full_disk_under_the_output(stage: Stage) -> None:
    most = len(stage.usual["out"].encode())
    count = min(most, budget.examples(1))
    for _ in range(count):
        size = stage.random.randrange(most)
        done = stage.run(limit=size, output=str(stage.folder / "printed"))
        if not stage.usual["steps"]:  # otherwise it may have no room for a file
            message = "cpbpe: the standard output: File too large; make room there, or choose another disk\n"
            assert done["code"] == stage.row.failed, (size, done)
            assert done["err"] == stage.usual["err"] + message, (size, done)
    told("a full disk under the output", stage, count)


def without_numbers(message: str) -> str:
    return re.sub(r"[\d.]+", "0", message)


@rows(TYPED)
def test_nobody_reads(stage: Stage) -> None:
    """What is printed, from some byte on."""
    most = len(stage.usual["out"].encode())
    count = budget.examples(1)
    for _ in range(count):
        done = stage.run(reading=stage.random.randrange(most + 1))
        assert done["code"] in (0, stage.usual["code"]), done
        assert without_numbers(done["err"]) in ("", without_numbers(stage.usual["err"])), done
        assert stage.is_whole(), done
    told("a reader that stops", stage, count)


@rows(TYPED)
def test_outputs_that_are_closed(stage: Stage) -> None:
    for closed in (["stdout"], ["stderr"], ["stdout", "stderr"])[: budget.examples(1)]:
        done = stage.run(closed=closed)
        assert done["code"] in (stage.usual["code"], stage.row.failed), (closed, done)
        assert "Traceback" not in done["err"], (closed, done)
        if done["code"] == stage.usual["code"]:
            assert stage.is_whole(), (closed, done)
        elif "stderr" not in closed:
            assert re.match("cpbpe: (there is no|the) standard output", done["err"]), (closed, done)


@rows(READERS)
def test_files_that_change(stage: Stage) -> None:
    """While they are read, they are cut, grow or are replaced: an error, or a result, and never a crash."""
    codes: Counter[int] = Counter()
    for number in range(budget.examples(2)):
        name = stage.row.reads[number % len(stage.row.reads)]
        path = stage.folder / name
        content, before = path.read_bytes(), path.stat()
        how = ("cut", "grows", "replaced", "rewritten", "removed")[number // len(stage.row.reads) % 5]
        other = content[::-1] if number % 2 else content[: len(content) // 2] + content
        changed: int | str | None = other.decode("latin-1")
        if how in ("cut", "removed"):
            changed = stage.random.randrange(len(content)) if how == "cut" else None
        after = stage.random.uniform(0, stage.seconds)
        done = stage.run(after=after, changed=[name, changed, how])
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # (pack compares it)
        case = (name, how, after, done)
        works = {0, stage.usual["code"]}
        if stage.row.call.startswith("lint"):
            works.add(1)  # a model that cannot be loaded is something that it found
        assert done["code"] in {*works, stage.row.failed}, case
        assert "Traceback" not in done["err"], case
        assert done["code"] in works or done["err"].startswith("cpbpe: "), case
        codes[done["code"]] += 1
    told("files that change while they are read", stage, codes.total(), dict(codes))
