"""Makes the tables of docs/performance.md from the JSON files that the other benchmarks write.

    python -m benchmarks.table results.json --growth growth.json --memory memory.json --models models.json
    python -m benchmarks.table results.json --readme docs/performance.md

The first prints them; the second puts them between two marks in the file, replacing what was there.
cpbpe's own speed is given as it was measured; the other libraries' cells say how many times as fast cpbpe was
in the same run, which is what another machine should find, too.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
Report = dict[str, Any]


def number(value: float) -> str:
    """The number with three digits: a benchmark cannot know more."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def row(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def grid(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table without the columns in which nothing was measured."""
    kept = [column for column in range(len(head)) if any(line[column].strip(" –/") for line in rows)]
    lines = [[line[column] for column in kept] for line in [head, ["---"] * len(head), *rows]]
    return [row(line) for line in lines]


def cell(result: Report | None, own: bool) -> str:
    """What one library did: cpbpe's speed, or how many times as fast cpbpe was."""
    if not result or result["status"] == "not offered":
        return "–"
    if result["status"] != "timed":
        return str(result["status"])
    value = result["median"] if own else result.get("cpbpe_is_times_as_fast")
    if value is None:
        return "–"
    return number(float(value)) + ("*" if result["differ"] else "")


def joined(cells: list[str], suffix: str = "") -> str:
    """The cells of all corpora in one, or a single word if all cells are that word."""
    if len(set(cells)) == 1 and not cells[0][0].isdigit():
        return cells[0]
    return " / ".join(cells) + suffix


def speeds(results: Report) -> list[str]:
    """The table of all cases, and what a reader must know to judge it.

    Loading is left out: it does not depend on the corpus, and `memory` times it in fresh processes.
    """
    facts = results["facts"]
    corpora = list(dict.fromkeys(result["corpus"] for result in results["results"]))
    cases: dict[str, dict[str, Report]] = {}
    for result in results["results"]:
        if result["case"] in ("load", "load_encode"):
            continue
        cases.setdefault(result["case"], {})[result["corpus"]] = result
    names = list(next(iter(results["results"]))["libraries"])
    rivals = [name for name in names if name != "cpbpe"]
    head = ["", "cpbpe", *(f"{name} {facts['versions'][name] or ''}".strip() for name in rivals)]
    rows = []
    differing: dict[str, int] = {}
    for by_corpus in cases.values():
        first = next(iter(by_corpus.values()))
        line = [first["title"]]
        for name in ["cpbpe", *rivals]:
            by_library = [
                by_corpus[corpus]["libraries"].get(name) if corpus in by_corpus else None
                for corpus in corpora
            ]
            own = name == "cpbpe"
            line.append(
                joined([cell(result, own) for result in by_library], f" {first['unit']}" if own else " ×")
            )
            for result in by_library:
                differing[name] = max(differing.get(name, 0), (result or {}).get("differ", 0))
        rows.append(line)
    machine, commit = facts["machine"], facts["commit"] or "unknown"
    commit = commit[:10] + (" with changes" if commit.endswith("+") else "")
    about = (
        "`python -m benchmarks.run`. The column of cpbpe is its own speed, or its time for one string (µs). "
        "The other columns say how many times as fast as that library cpbpe was; below 1, it was slower; "
        "a dash: the library has no such call. "
        f"The figures of a cell are for the corpora {' / '.join(corpora)}. The libraries took turns; medians "
        f"of {facts['settings']['rounds']} rounds. {machine['cpu']}, {machine['cores']} cores, "
        f"Python {facts['python']}, commit {commit}, engine {facts['engine']}, "
        f"model {facts['model']['file']}."
    )
    notes = [f"{name}: {note}." for name, note in facts.get("notes", {}).items()]
    stars = [f"{name} in up to {count} texts" for name, count in differing.items() if count]
    if stars:
        notes.append(f"\\* ids or text differ from sentencepiece's: {', '.join(stars)}.")
    return [about, "", *grid(head, rows), "", *([" ".join(notes)] if notes else [])]


def models(results: Report) -> list[str]:
    """The table of kinds of model."""
    corpora = list(next(iter(results["results"].values())))
    rows = [
        [
            name,
            *(
                f"{number(found[corpus]['MB/s'])} MB/s, {number(found[corpus]['ratio'])} ×"
                for corpus in corpora
            ),
        ]
        for name, found in results["results"].items()
    ]
    settings = results["facts"]["settings"]
    caption = (
        f"Encoding to arrays with every kind of model: cpbpe's speed, and how many times as fast it was as "
        f"sentencepiece on the same texts ({settings['megabytes']:g} MB of each corpus, "
        f"{settings['rounds']} rounds)."
    )
    return [caption, "", *grid(["model", *corpora], rows)]


KIND_COLUMNS = [
    ("array", "cpbpe", "arrays, MB/s"),
    ("array", "sentencepiece", "arrays, × sentencepiece"),
    ("array", "gigatoken", "arrays, × gigatoken"),
    ("first_array", "gigatoken", "first pass, × gigatoken"),
    ("list", "sentencepiece", "lists, × sentencepiece"),
    ("list", "fastokens", "lists, × fastokens"),
    ("lists_2", "gigatoken", "2 threads, lists, × gigatoken"),
    ("arrays_2", "gigatoken", "2 threads, arrays, × gigatoken"),
]
"""The cases that are shown for every kind of text, beside which library."""


def kinds(results: Report) -> list[str]:
    """The table of kinds of text: one row for each."""
    found = {(result["corpus"], result["case"]): result["libraries"] for result in results["results"]}
    corpora = list(dict.fromkeys(corpus for corpus, _ in found))
    rows = [
        [
            corpus,
            *(
                cell(found.get((corpus, case), {}).get(name), name == "cpbpe")
                for case, name, _ in KIND_COLUMNS
            ),
        ]
        for corpus in corpora
    ]
    facts = results["facts"]
    caption = (
        f"Every kind of text, from one interleaved run ({facts['settings']['rounds']} rounds, medians): "
        f"cpbpe's speed, and how many times as fast it was. {facts['machine']['cpu']}, "
        f"{facts['machine']['cores']} cores, commit {(facts['commit'] or 'unknown')[:10]}."
    )
    return [caption, "", *grid(["text", *(title for *_, title in KIND_COLUMNS)], rows)]


def growth(results: Report, english: float) -> list[str]:
    """The table of hard texts. `english` is how many megabytes of English cpbpe encodes in a second."""
    kinds = results["inputs"]
    names = list(next(iter(kinds.values())))
    sizes = list(dict.fromkeys(size for libraries in kinds.values() for figures in libraries.values()
                               for size in [*figures["ns_per_byte"], *figures["let_off"]]))  # fmt: skip
    rows = []
    quotients: dict[str, list[float]] = {}
    for kind, libraries in kinds.items():
        for name in names:
            measured = libraries[name]["ns_per_byte"]
            times = [number(measured[size]) if size in measured else "skipped" for size in sizes]
            first, *_, last = measured.values()
            quotients.setdefault(name, []).append(last / first)
            rows.append([kind, name, *times, number(last / first)])
    head = ["text", "library", *(f"{int(size) // 1000:,} KB" for size in sizes), "last ÷ first"]
    ranges = {name: f"{number(min(found))} to {number(max(found))}" for name, found in quotients.items()}
    slow = {kind: list(libraries["cpbpe"]["ns_per_byte"].values())[-1] for kind, libraries in kinds.items()}
    worst = max(slow, key=slow.__getitem__)
    word, most = (
        f"take {number(slow[kind] * int(sizes[-1]) / 1e9)} s ({number(slow[kind])} ns for each byte), "
        f"{slow[kind] * english / 1e3:.0f} times as long"
        for kind in ("one word", worst)
    )
    caption = (
        f"Time stays proportional to the length, also where a text has no place to be cut: a byte of the "
        f"longest text takes {ranges.pop('cpbpe')} times as long as one of the shortest ("
        f"{', '.join(f'in {name} {found} times' for name, found in ranges.items())}).\n\n"
        f"But a byte takes longer than in ordinary English ({number(1e3 / english)} ns): "
        f"{int(sizes[-1]) / 1e6:g} MB of one word {word}, and {worst}, the worst of these texts, {most}. "
        "Twice the length takes about twice the time.\n\n"
        "*One word* is pieces of letters, chosen at random and joined without a space. *Pieces that could "
        "merge with their neighbours* are chosen so that the letters on both sides of a border are a piece, "
        "too. In *merges from right to left*, each pair merges before the pair to its left. *Base64* is of "
        "random bytes; *unknown characters* are of a private area of Unicode. These are nanoseconds for each "
        "byte, by the length of the text, as `python -m benchmarks.pathological` measures them."
    )
    return ["### Long texts without spaces", "", caption, "", *grid(head, rows)]


def memory(results: Report) -> list[str]:
    """The tables of memory and loading."""
    facts = results["facts"]
    rows = []
    for corpus, libraries in results["memory"].items():
        for name, figures in libraries.items():
            steps = figures["memory"]
            base = steps["python"]
            own = [f"{(steps[step] - base) / 1e6:.1f}" for step in ("loaded", "one string", "warm")]
            rows.append([corpus, name, *own])
    head = ["corpus", "library", "model loaded", "one string encoded", "whole corpus encoded"]
    caption = (
        "`python -m benchmarks.memory`. Resident memory in MB at three moments, less what Python had "
        f"taken before the library was imported. {facts['machine']['cpu']}, "
        f"{facts['machine']['cores']} cores, commit {(facts['commit'] or 'unknown')[:10]}."
    )
    lines = [caption, "", *grid(head, rows)]
    rows = []
    for title, libraries in results["loading"].items():
        for name, figures in libraries.items():
            if "failed" in figures:
                rows.append([title, name, *["failed"] * 3])
                continue
            took = figures["median"]
            steps = (took["import"] + took["load"], took["import"] + took["load_encode"], took["again"])
            rows.append([title, name, *(f"{seconds * 1e3:.1f}" for seconds in steps)])
    head = ["model", "library", "import and load", "and encode one string", "load again"]
    caption = (
        "The same command. Milliseconds in a fresh process: until a model is loaded, until a string is "
        "encoded, and to load it a second time. (cpbpe imports most of its modules when it loads a model.)"
    )
    return [*lines, "", caption, "", *grid(head, rows)]


def put(readme: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Put the text between the marks."""
    old = readme.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise SystemExit(f"{readme.name} must hold {begin} and then {end}, once each")
    before = old.split(begin)[0]
    after = old.split(end)[1]
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Print the tables, or put them into a file."""
    parser = argparse.ArgumentParser(description="Tables from benchmark results.")
    parser.add_argument("results", type=Path, help="what benchmarks.run wrote")
    parser.add_argument("--growth", type=Path, help="what benchmarks.pathological wrote")
    parser.add_argument("--memory", type=Path, help="what benchmarks.memory wrote")
    parser.add_argument("--kinds", type=Path, help="what benchmarks.run wrote for all kinds of text")
    parser.add_argument("--models", type=Path, help="what benchmarks.models wrote")
    parser.add_argument("--readme", type=Path, help="the file to put the tables into")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text())
    lines = speeds(results)
    english = next(r for r in results["results"] if (r["corpus"], r["case"]) == ("en", "array"))
    tables = (
        (options.kinds, kinds),
        (options.models, models),
        (options.memory, memory),
        (options.growth, partial(growth, english=english["libraries"]["cpbpe"]["median"])),
    )
    for path, make in tables:
        if path:
            lines += ["", *make(json.loads(path.read_text()))]
    text = "\n".join(lines)
    if options.readme:
        put(options.readme, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
