"""Memory, and the time to load a model, each in fresh processes.

    python -m benchmarks.memory --out memory.json

Memory is the resident set of a process that does nothing else: after importing the library, after loading
the model, after encoding one string, and after encoding a corpus of 20 MB to lists, one document at a time
and none of them kept. The documents are read from the file as they are needed, so they do not count. What
Python itself takes, with the modules of this file, is called "python".

Loading is timed for the usual model and for one of about 250,000 pieces, which is made here: to the model's
own pieces come new ones, each of two pieces that exist, with scores below all others. Every process measures
once, and the libraries take turns. Libraries differ in what they import at once and what when it is needed,
so the time of importing counts; "again" is a second load, when nothing is left to import.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.cases import LIBRARIES, STRING_LENGTH, Files
from benchmarks.corpora import CORPORA, DATA, corpus_path

ROOT = Path(__file__).resolve().parent.parent
LARGE = 250_000
LONGEST = 16  # characters in a piece that is made up
STRING = "The quick brown fox jumps over a lazy dog"[:STRING_LENGTH]
Report = dict[str, Any]


def enlarge(data: bytes, size: int) -> bytes:
    """A model with made-up pieces, each the join of two earlier ones."""
    from cpbpe.model.formats import model_pb2

    model = model_pb2.ModelProto.FromString(data)
    kinds = model_pb2.ModelProto.SentencePiece
    normal = [piece.piece.decode() for piece in model.pieces if piece.type == kinds.NORMAL]
    known = {piece.piece for piece in model.pieces}
    score = min(piece.score for piece in model.pieces if piece.type == kinds.NORMAL)
    chance = random.Random(LARGE)
    while len(model.pieces) < size:
        piece = "".join(chance.choices(normal, k=2))
        if len(piece) <= LONGEST and "▁" not in piece[1:] and piece.encode() not in known:
            known.add(piece.encode())
            normal.append(piece)
            score -= 1
            model.pieces.add(piece=piece.encode(), score=score)
    model.trainer_spec.vocab_size = size
    return bytes(model.SerializeToString())


# --- In the fresh process -----------------------------------------------------------------------------


def resident() -> int:
    """The bytes of this process that are in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell a process its resident memory in /proc")


def stream(path: Path) -> Iterator[str]:
    """The documents of a corpus, without holding them all."""
    last = b""  # a document that has not ended
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            *complete, last = (last + block).split(b"\0")
            for document in complete:
                yield document.decode()
    yield last.decode()


def child(name: str, model: str, corpus: str) -> None:
    """Measure one library in this process, and print the figures."""
    library = next(library for library in LIBRARIES if library.name == name)
    figures: Report = {"memory": {"python": resident()}}
    begin = perf_counter()
    import_module(name)
    figures["import"] = perf_counter() - begin
    figures["memory"]["imported"] = resident()
    files = Files(Path(model), Path(model).with_suffix(".json"))
    begin = perf_counter()
    tok = library.load(files)
    figures["load"] = perf_counter() - begin
    figures["memory"]["loaded"] = resident()
    call = library.calls["list"](tok)
    call(STRING)
    figures["load_encode"] = perf_counter() - begin
    figures["memory"]["one string"] = resident()
    if corpus:
        for document in stream(Path(corpus)):
            call(document)
        figures["memory"]["warm"] = resident()
    begin = perf_counter()
    library.load(files)
    figures["again"] = perf_counter() - begin
    print(json.dumps(figures))


# --- In the process that asks -------------------------------------------------------------------------


def ask(name: str, model: Path, corpus: Path | None) -> Report:
    """The figures from a fresh process."""
    code = f"from benchmarks.memory import child; child({name!r}, {str(model)!r}, {str(corpus or '')!r})"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "RAYON_NUM_THREADS": "2"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as users have it: modules are compiled once
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def same_ids(model: Path, texts: list[str]) -> int:
    """How many texts do *not* get the same ids from cpbpe and sentencepiece."""
    files = Files(model, model)
    calls = [library.calls["list"](library.load(files)) for library in LIBRARIES[:2]]
    return sum(list(calls[0](text)) != list(calls[1](text)) for text in texts)


def megabytes(memory: dict[str, int]) -> str:
    """Memory as one line: what Python takes, and what each step adds."""
    steps = list(memory.items())
    added = [f"{step} +{(size - before) / 1e6:.1f}" for (_, before), (step, size) in pairwise(steps)]
    return f"python {memory['python'] / 1e6:.1f}, " + ", ".join(added)


def measure_memory(names: list[str], model: Path, corpora: list[Path], rounds: int) -> Report:
    """Resident memory, library by library, on each corpus."""
    report: Report = {}
    for corpus in corpora:
        runs: dict[str, list[Report]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                runs[name].append(ask(name, model, corpus))
        report[corpus.stem] = {}
        for name, own_runs in runs.items():
            steps = own_runs[0]["memory"]
            middle = {step: int(median(run["memory"][step] for run in own_runs)) for step in steps}
            report[corpus.stem][name] = {"memory": middle, "raw": [run["memory"] for run in own_runs]}
            print(f"memory in MB, {corpus.stem}: {name:14} {megabytes(middle)}", flush=True)
    return report


def measure_loading(names: list[str], models: dict[str, Path], rounds: int) -> Report:
    """Milliseconds to load, in fresh processes, libraries in turn."""
    report: Report = {}
    for title, model in models.items():
        raw: dict[str, list[Report]] = {name: [] for name in names}
        failed: dict[str, str] = {}
        for _ in range(rounds):
            for name in names:
                if name not in failed:
                    try:
                        raw[name].append(ask(name, model, None))
                    except RuntimeError as error:
                        failed[name] = str(error)
        report[title] = {}
        for name in names:
            if name in failed:
                report[title][name] = {"failed": failed[name]}
                print(f"{title}: {name:14} failed: {failed[name]}")
                continue
            cells = {
                step: median(run[step] for run in raw[name])
                for step in ("import", "load", "load_encode", "again")
            }
            sizes = {
                step: median(run["memory"][step] for run in raw[name]) for step in raw[name][0]["memory"]
            }
            report[title][name] = {"median": cells, "memory": sizes, "raw": raw[name]}
            line = ", ".join(f"{step} {seconds * 1e3:.2f} ms" for step, seconds in cells.items())
            added = (sizes["one string"] - sizes["imported"]) / 1e6
            print(f"{title}: {name:14} {line}, memory +{added:.1f} MB", flush=True)
    return report


def main(arguments: list[str] | None = None) -> None:
    """Measure memory, then loading."""
    from benchmarks import tokenizer_json
    from benchmarks.run import commit, default_model, machine, versions

    parser = argparse.ArgumentParser(description="Memory and loading, in fresh processes.")
    parser.add_argument("--library", action="append", choices=[library.name for library in LIBRARIES])
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="texts that make it warm")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each library and corpus")
    parser.add_argument("--loads", type=int, default=9, help="processes for each library and model")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--model", type=Path, help="a Llama-style .model (default: mistral-common's)")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    names = options.library or ["cpbpe", "sentencepiece", "gigatoken"]
    data = (options.model or default_model()).read_bytes()
    outcome: Report = {"facts": {"machine": machine(), "commit": commit(), "versions": versions(names)}}
    with tempfile.TemporaryDirectory() as folder:
        usual = "the given model" if options.model else "Mistral 7B's, 32000 pieces"
        models = {usual: Path(folder) / "usual.model", f"{LARGE} pieces": Path(folder) / "large.model"}
        for path, content in zip(models.values(), (data, enlarge(data, LARGE)), strict=True):
            path.write_bytes(content)
            tokenizer_json.write(path, path.with_suffix(".json"))
        corpora = [corpus_path(options.data, name) for name in options.corpus or CORPORA]
        texts = [text for path in corpora for text, _ in zip(stream(path), range(100), strict=False)]
        for title, path in models.items():
            outcome.setdefault("differ", {})[title] = differ = same_ids(path, texts)
            print(f"{title}: cpbpe and sentencepiece differ in {differ} of {len(texts)} texts")
        outcome["loading"] = measure_loading(names, models, options.loads)
        outcome["memory"] = measure_memory(names, models[usual], corpora, options.rounds)
    if options.out:
        options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
