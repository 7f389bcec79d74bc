"""Runs the cases of `benchmarks.cases`, all libraries in turn, and keeps every time that was measured.

    python -m benchmarks.run --corpus en --case list --rounds 5 --out results.json

For each case the answers come first: what a library gives for every text that will be timed is compared
with what sentencepiece gives, and texts that differ are counted and reported. That is also the untimed pass
after which everything is warm. Then the libraries take turns, round by round (A B C, A B C, ...), with
the garbage collector off. A ratio is the median of the rounds' ratios, because what disturbs a machine
disturbs neighbours alike.

A library too slow to do the whole corpus in `--seconds` gets its first documents, as many as it can do; the
documents are in random order. How many bytes each was given is in the results.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import tokenizer_json
from benchmarks.cases import (
    CASES,
    FIRST_PASS_BYTES,
    LIBRARIES,
    STRING_LENGTH,
    STRINGS,
    THREADS,
    Call,
    Case,
    Files,
    Library,
    as_list,
    as_lists,
)
from benchmarks.clock import timed_each
from benchmarks.corpora import CORPORA, DATA, corpus_path, read_documents, read_manifest
from benchmarks.kinds import KINDS
from benchmarks.table import KIND_COLUMNS

HERE = Path(__file__).resolve().parent
PROBE = 48  # documents that tell how fast a library is
SLACK = 1.5  # a library that needs at most this multiple of its time for the whole corpus gets all of it
REPEATS = 5000  # of one string, to make it measurable
Report = dict[str, Any]


class Corpus:
    """Documents, with the right answers: sentencepiece's."""

    def __init__(self, name: str, documents: list[str], oracle: Any) -> None:
        self.name = name
        self.documents = documents
        self.sizes = [len(document.encode()) for document in documents]
        self.ids: list[list[int]] = [oracle.encode(document) for document in documents]
        self.texts: list[str] = [oracle.decode(ids) for ids in self.ids]
        beginnings = (document.strip()[:STRING_LENGTH] for document in documents)
        self.strings = list(dict.fromkeys(text for text in beginnings if len(text) == STRING_LENGTH))[
            :STRINGS
        ]
        self.string_ids: list[list[int]] = [oracle.encode(text) for text in self.strings]

    def prefix(self, size: float) -> int:
        """How many documents make up this many bytes; at least one."""
        total = 0
        for number, document_size in enumerate(self.sizes):
            total += document_size
            if total >= size:
                return number + 1
        return len(self.sizes)


class Subject:
    """A library in one case: what it is given, how it answers, and its times."""

    def __init__(self, library: Library, case: Case, corpus: Corpus, files: Files, tok: Any) -> None:
        self.library, self.case, self.corpus, self.files, self.tok = library, case, corpus, files, tok
        self.count = len(corpus.documents)  # how many of the documents it is given
        self.seconds: list[float] = []
        self.differ = self.compared = 0
        if case.kind != "load":
            self.call: Call = library.calls[case.call](tok)

    @property
    def bytes(self) -> int:
        """The size of what is timed."""
        return sum(self.corpus.sizes[self.begin : self.count])

    @property
    def begin(self) -> int:
        """The first document that is timed."""
        return self.count // 2 if self.case.kind == "unseen" else 0

    def value(self, seconds: float) -> float:
        """A time in the unit of the case."""
        if self.case.unit == "MB/s":
            return self.bytes / 1e6 / seconds
        return seconds * (1e3 if self.case.unit == "ms" else 1e6)

    # --- Checking, before any clock runs --------------------------------------------------------------

    def limit(self, seconds: float) -> None:
        """Take as many documents as can be done in the time."""
        fresh = self.case.kind in ("first", "unseen")
        if fresh:
            self.count = self.corpus.prefix(FIRST_PASS_BYTES)
        if self.case.kind in ("strings", "load"):
            return
        whole, probe = self.count, min(self.count, PROBE)
        for part in (0.25, 1.0):  # a few documents cannot tell how fast a library with a cache is
            self.count = probe
            speed = self.bytes / min(self.turn() for _ in range(1 if fresh else 2))
            probe = min(whole, self.corpus.prefix(speed * seconds * part))
        self.count = whole if self.corpus.prefix(speed * seconds * SLACK) >= whole else probe

    def check(self) -> None:
        """Compare the answers for all that will be timed. This is the untimed pass, too."""
        case, corpus, count = self.case, self.corpus, self.count
        answers: list[Any]
        expected: list[Any]
        if case.kind == "load":
            tok = self.library.load(self.files)
            call = self.library.calls["list"](tok)
            answers, expected = [as_list(call(text)) for text in corpus.strings], corpus.string_ids
        elif case.kind == "strings":
            texts = corpus.strings[: case.count]
            answers, expected = [as_list(self.call(text)) for text in texts], corpus.string_ids[: case.count]
        elif case.kind == "ids":
            answers = [self.call(ids) for ids in self.inputs()]
            expected = list(corpus.texts[:count])
            if case.call != "decode":
                expected = [text.encode() for text in expected]
        elif case.kind == "batch":
            answers, expected = as_lists(self.call(corpus.documents[:count])), corpus.ids[:count]
        else:
            answers = [as_list(self.call(text)) for text in corpus.documents[:count]]
            expected = corpus.ids[:count]
        self.compared = len(expected)
        pairs = zip(answers, expected, strict=False)
        self.differ = sum(a != b for a, b in pairs) + abs(len(answers) - len(expected))

    # --- Timing ---------------------------------------------------------------------------------------

    def inputs(self) -> list[Any]:
        """The arguments of the calls, one after another."""
        if self.case.kind != "ids":
            return self.corpus.documents[: self.count]
        ids = self.corpus.ids[: self.count]
        if self.case.call == "decode_array":
            import numpy as np

            return [np.array(row, dtype=np.uint32) for row in ids]
        return list(ids)

    def turn(self) -> float:
        """The seconds of all the documents, of one string, or of one loading, in one turn."""
        kind = self.case.kind
        if kind == "load":
            return self.time_loading()
        if kind == "strings":
            texts = self.corpus.strings[: self.case.count]
            several = texts * (REPEATS // len(texts))
            return timed_each(self.call, several) / len(several)
        if kind == "batch":
            return timed_each(self.call, [self.corpus.documents[: self.count]])
        if kind not in ("first", "unseen"):
            return timed_each(self.call, self.inputs())
        # A tokenizer that has seen no text, or only the first half; a second pass would be another thing.
        call = self.library.calls[self.case.call](self.library.load(self.files))
        for text in self.inputs()[: self.begin]:
            call(text)
        return timed_each(call, self.inputs()[self.begin :], least=0)

    def time_loading(self) -> float:
        """The seconds to load the model, and to encode a string, since some tables may be built only then."""
        text = self.corpus.strings[0]
        make = self.library.calls[self.case.call] if self.case.call else None
        gc.collect()
        begin = perf_counter()
        tok = self.library.load(self.files)
        if make:
            make(tok)(text)
        seconds = perf_counter() - begin
        del tok
        return seconds

    def report(self, base: Subject | None) -> Report:
        """What was measured, and how many times as fast cpbpe is."""
        result: Report = {
            "status": "timed",
            "median": median(map(self.value, self.seconds)),
            "differ": self.differ,
            "compared": self.compared,
            "seconds": self.seconds,
        }
        if self.case.unit == "MB/s":
            result |= {"bytes": self.bytes, "documents": self.count}
        if base is not None and base is not self:
            pairs = zip(base.seconds, self.seconds, strict=True)
            own, other = (base.bytes, self.bytes) if self.case.unit == "MB/s" else (1, 1)
            result["cpbpe_is_times_as_fast"] = median(their / other / (ours / own) for ours, their in pairs)
        return result


def run_case(
    case: Case, corpus: Corpus, toks: dict[str, Any], libraries: list[Library], files: Files, options: Any
) -> dict[str, Report]:
    """Check, then time, one case on one corpus."""
    results: dict[str, Report] = {}
    subjects: list[Subject] = []
    for library in libraries:
        if case.call and case.call not in library.calls:
            results[library.name] = {"status": "not offered"}
            continue
        try:
            subject = Subject(library, case, corpus, files, toks[library.name])
            subject.limit(options.seconds)
            subject.check()
        except Exception as error:
            missing = library.name == "cpbpe" and isinstance(error, (AttributeError, TypeError))
            status = "not there" if missing else "failed"
            results[library.name] = {"status": status, "error": f"{type(error).__name__}: {error}"}
            continue
        subjects.append(subject)
    for _ in repeat(None, options.rounds):
        for subject in subjects:
            subject.seconds.append(subject.turn())
    base = next((subject for subject in subjects if subject.library.name == "cpbpe"), None)
    for subject in subjects:
        results[subject.library.name] = subject.report(base)
    return {library.name: results[library.name] for library in libraries}


# --- What was measured, and where ---------------------------------------------------------------------


def machine() -> Report:
    """The computer, without its name."""
    model = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system(), "arch": platform.machine()}


def versions(names: list[str]) -> dict[str, str | None]:
    """The versions of what is installed."""
    installed: dict[str, str | None] = {}
    for name in [*names, "numpy"]:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = None
    return installed


def commit() -> str | None:
    """The commit that is measured; with a plus sign if files were changed since."""
    try:
        run = [subprocess.run(["git", *command], cwd=HERE, capture_output=True, text=True, check=True).stdout
               for command in (["rev-parse", "HEAD"], ["status", "--porcelain"])]  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return run[0].strip() + ("+" if run[1].strip() else "")


def default_model() -> Path:
    """Mistral 7B's model, which mistral-common carries."""
    import mistral_common

    return Path(str(mistral_common.__file__)).parent / "data" / "tokenizer.model.v1"


def facts(libraries: list[Library], files: Files, options: Any) -> Report:
    """What one must know to judge the times."""
    data = files.model.read_bytes()
    manifest = read_manifest(options.data)
    used = {}
    for name in options.corpus:
        checksum = hashlib.sha256(corpus_path(options.data, name).read_bytes()).hexdigest()
        if manifest.get(name, {}).get("sha256") != checksum:
            sys.exit(f"corpus {name}: its checksum is not the one in corpora.json; build it again")
        used[name] = {key: manifest[name][key] for key in ("sha256", "bytes", "documents")}
    return {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "python": platform.python_version(),
        "versions": versions([library.name for library in libraries]),
        "notes": {library.name: library.note for library in libraries if library.note},
        "commit": commit(),
        "engine": import_module("cpbpe").engine_name(),
        "model": {"file": files.model.name, "sha256": hashlib.sha256(data).hexdigest()},
        "corpora": used,
        "settings": {"rounds": options.rounds, "seconds": options.seconds, "threads": THREADS},
    }


def available(names: list[str] | None, files: Files, say: Callable[[str], None]) -> dict[str, Any]:
    """The tokenizers of those libraries that can be imported."""
    tokenizers = {}
    for library in LIBRARIES:
        if names is None or library.name in names:
            try:
                tokenizers[library.name] = library.load(files)
            except ImportError as error:
                say(f"{library.name}: left out: {error}")
    return tokenizers


def show(corpus: str, case: Case, results: dict[str, Report]) -> None:
    """One case as lines of text."""
    print(f"\n{corpus}: {case.title} ({case.unit})")
    for name, result in results.items():
        if result["status"] != "timed":
            print(f"  {name:14} {result['status']}  {result.get('error', '')}")
            continue
        ratio = result.get("cpbpe_is_times_as_fast")
        times = f"  cpbpe is {ratio:7.2f} times as fast" if ratio else ""
        differ = f"  DIFFERS in {result['differ']} of {result['compared']}" if result["differ"] else ""
        print(f"  {name:14} {result['median']:10.2f}{times}{differ}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Measure cpbpe beside its rivals.")
    parser.add_argument("--corpus", action="append", help=f"which texts (default: {', '.join(CORPORA)})")
    parser.add_argument(
        "--kinds", action="store_true", help="all kinds of text that were built, in fewer cases"
    )
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--library", action="append", choices=[library.name for library in LIBRARIES])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="the longest time for each round")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--model", type=Path, help="a Llama-style .model (default: mistral-common's)")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    if options.kinds:
        options.corpus = options.corpus or [
            name for name in [*CORPORA, *KINDS] if corpus_path(options.data, name).exists()
        ]
        options.case = options.case or list(dict.fromkeys(case for case, *_ in KIND_COLUMNS))
    options.corpus = options.corpus or list(CORPORA)
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)  # gigatoken, fastokens and tokenizers read this
    with tempfile.TemporaryDirectory() as folder:
        files = Files(options.model or default_model(), Path(folder) / "tokenizer.json")
        tokenizer_json.write(files.model, files.json)
        toks = available(options.library, files, print)
        libraries = [library for library in LIBRARIES if library.name in toks]
        oracle = next(library for library in LIBRARIES if library.name == "sentencepiece").load(files)
        outcome: Report = {"facts": facts(libraries, files, options), "results": []}
        for name in options.corpus:
            corpus = Corpus(name, read_documents(corpus_path(options.data, name)), oracle)
            for case in CASES:
                if options.case and case.name not in options.case:
                    continue
                results = run_case(case, corpus, toks, libraries, files, options)
                show(name, case, results)
                about = {"corpus": name, "case": case.name, "title": case.title, "unit": case.unit}
                outcome["results"].append({**about, "libraries": results})
                if options.out:
                    options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
