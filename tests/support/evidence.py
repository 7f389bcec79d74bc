"""The records of what was checked, and the page that sums them up.

    python -m tests.support.evidence add run.json     # puts records into docs/evidence.jsonl, writes the page
    python -m tests.support.evidence add --here ...   # the same for a run of another program, just made here
    python -m tests.support.evidence page             # writes docs/evidence.md anew
    python -m tests.support.evidence repeat 3 FILES   # runs what row 3 of the page says again

A record is one line of JSON. `KINDS` says which there are and what each holds. Nothing stands in one that was
not counted or measured by the program that it is of. soak.py writes records of comparisons. Of any other
program, put the kind, its fields and the command that repeats the run into a file, for example

    {"kind": "machine", "target": "s390x", "how": "QEMU", "tests": 5, "failed": 0, "command": "cross test"}

and add it with `--here`, which puts in the day, the version, the commit and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.run import machine
from benchmarks.table import grid, number, put
from cpbpe.engine.choice import MACHINE
from cpbpe.version import __version__

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "evidence.jsonl"
PAGE = ROOT / "docs" / "evidence.md"
BEGIN, END = "<!-- evidence:begin -->", "<!-- evidence:end -->"
Record = dict[str, Any]

COMMON = {"kind": str, "day": str, "commit": str, "cpbpe": str, "platform": str, "command": str}
"""What every record has: `facts` gives all but the kind and the command that repeats it."""
_SOAK: dict[str, type] = {
    "rival": str,
    "rival_version": str,
    "seed": int,
    "first": int,
    "batches": int,
    "sources": dict,
    "seconds": float,
    "digest": str,
}
KINDS: dict[str, dict[str, type]] = {
    "parity": {**_SOAK, "models": dict},
    "training": {**_SOAK, "trainings": int, "refused": int, "bytes": int, "differences": int},
    "fuzzing": {"target": str, "inputs": int, "seconds": float, "found": int},
    "coverage": {"room": str, "lines": int, "reached": int},
    "sanitizer": {"name": str, "what": str, "tests": int, "found": int},
    "machine": {"target": str, "how": str, "tests": int, "failed": int},
    "faults": {"what": str, "times": int, "found": int},
    "mutation": {"room": str, "mutants": int, "killed": int, "survived": dict},
}
"""The kinds of records, and what each has besides `COMMON`."""
OPTIONAL = {"note": str, "timed_out": int, "unviable": int}
"""What records may have: a sentence, and mutants that never ended or did not compile."""
_MODEL = {"texts", "bytes", "decoded", "in_full", "left_out", "differences"}
_PRIVATE = re.compile(r"(?:^|[\s=\"'])(?:~?/|[A-Za-z]:\\)\w|://|\w@\w")
"""A path of some machine, an address."""


# --- Records --------------------------------------------------------------------------------------


def facts() -> Record:
    """The day, the code that runs, and the machine, without its name.

    The version has a plus if there are changes since its release. The commit is the last one that changed the
    package or its core, with a plus if files were changed since, or if the core was compiled before it.
    `CPBPE_MACHINE` is noted if it is set: with less of what the processor has, other code runs.
    """
    about = machine()
    cpu = about["cpu"] if about["cpu"] not in ("", about["arch"]) else ""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return {
        "day": datetime.now(timezone.utc).date().isoformat(),
        "commit": _commit(),
        "cpbpe": __version__ + ("+" if "\n## Unreleased\n" in changes else ""),
        "platform": " ".join([about["arch"], *([cpu] if cpu else [])])
        + f", {about['system']}, Python {platform.python_version()}"
        + (f", {MACHINE}={os.environ[MACHINE]}" if MACHINE in os.environ else ""),
    }


def _commit() -> str:
    core = ("core/Cargo.lock", "core/cpbpe/src", "core/python")
    try:
        last = _git("log", "-1", "--format=%h", "--abbrev=10", "--", "cpbpe", *core)
        module = find_spec("cpbpe._core")
        compiled = Path(module.origin).stat().st_mtime if module and module.origin else 0
        is_old = compiled < int(_git("log", "-1", "--format=%ct", "--", *core))
        changed = _git("status", "--porcelain", "--", "cpbpe", *core)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return last + ("+" if changed or is_old else "")


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def version_of(package: str) -> str:
    """The version of what is installed."""
    return version(package)


def soak_command(rival: str, seed: int, first: int, batches: int, names: Sequence[str]) -> str:
    """The command that does the same batches."""
    parts = ["python -m tests.support.soak", rival, f"--seed {seed}", f"--batches {batches}"]
    parts += [f"--first {first}"] if first else []
    parts += [f"--model {shlex.quote(name)}" for name in names]
    return " ".join(parts)


def differences(record: Record) -> int:
    """How many differences a record of soak has."""
    if record["kind"] == "parity":
        return sum(model["differences"] for model in record["models"].values())
    return int(record["differences"])


def wrong(record: Record) -> str:
    """What is wrong with a record; nothing if it may go into the file."""
    if record.get("kind") not in KINDS:
        return f"the kind is {record.get('kind')!r}; there are: {', '.join(KINDS)}"
    fields = {**COMMON, **KINDS[record["kind"]]}
    missing, unknown = fields.keys() - record.keys(), record.keys() - fields.keys() - OPTIONAL.keys()
    if missing or unknown:
        return f"missing: {sorted(missing)}, not known: {sorted(unknown)}"
    for name, value in record.items():
        wanted = {**fields, **OPTIONAL}[name]
        if isinstance(value, bool) or not isinstance(value, (int, float) if wanted is float else wanted):
            return f"{name} is {value!r}, and must be {wanted.__name__}"
        if isinstance(value, (int, float)) and value < 0:
            return f"{name} is {value!r}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", record["day"]):
        return "the day is not of the form 2026-01-31"
    if not re.fullmatch(r"[0-9a-f]{7,40}", record["commit"]):
        return f"the commit is {record['commit']!r}: before a run that is kept, commit and compile the core"
    for mutant, why in record.get("survived", {}).items():
        if not why:
            return f"{mutant!r} survived: say why no test can notice it, or write one that does"
    for name, model in record.get("models", {}).items():
        if not {"sha256", "texts", "bytes", "differences"} <= model.keys() <= {"sha256", *_MODEL}:
            return f"model {name} has {sorted(model)}"
    if found := _PRIVATE.search(json.dumps(record, ensure_ascii=False)):
        return f"{found[0]!r} looks like a path or an address"
    return ""


def same_work(one: Record, other: Record) -> bool:
    """Whether two records are of some of the same batches, which must not be counted twice."""
    names = ("kind", "cpbpe", "rival", "rival_version", "seed", "sources", "platform")
    if "seed" not in one or any(one.get(name) != other.get(name) for name in names):
        return False
    ends = [record["first"] + record["batches"] for record in (one, other)]
    return bool(max(one["first"], other["first"]) < min(ends))


def read(path: Path = RECORDS) -> list[Record]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def line_of(record: Record) -> str:
    """A record as it stands in the file."""
    return json.dumps(record, ensure_ascii=False)


def write_alone(path: Path, record: Record) -> None:
    """A file with one record, which is whole whenever a run is killed."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(line_of(record) + "\n", encoding="utf-8")
    os.replace(beside, path)


def add(records: Iterable[Record], path: Path = RECORDS) -> None:
    """Put records at the end of the file."""
    known = read(path) if path.exists() else []
    for record in records:
        if problem := wrong(record):
            raise SystemExit(f"this record cannot be kept: {problem}\n{line_of(record)}")
        if any(same_work(record, other) for other in known):
            raise SystemExit(f"these batches are there already: {record['command']}")
        known.append(record)
    path.write_text("".join(line_of(record) + "\n" for record in known), encoding="utf-8")


# --- The page -------------------------------------------------------------------------------------


def size(amount: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= least:
            return f"{number(amount / least)} {unit}"
    return f"{amount} bytes"


def time(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, least in (("h", 3600.0), ("min", 60.0)):
        if seconds >= least:
            return f"{number(seconds / least)} {unit}"
    return f"{seconds:.0f} s"


def share(part: float, whole: float) -> str:
    """As a percentage. Only all is 100 %."""
    if not whole:
        return "–"
    found = min(100 * part / whole, 99.9 if part < whole else 100)
    return f"{found:.1f} %"


def groups(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records by what they have in common, the first of which is the version; the newest one first."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record[name] for name in names), []).append(record)
    order = sorted(found, key=lambda key: _order(key[0]), reverse=True)
    return {key: found[key] for key in order}


def _order(release: str) -> tuple[list[int], bool]:
    return [int(part) for part in re.findall(r"\d+", release)], release.endswith("+")


def total(records: Iterable[Record], name: str) -> Any:
    """The sum of one figure."""
    return sum(record.get(name, 0) for record in records)


def parity(records: list[Record]) -> list[str]:
    """Encoding and decoding: one row for each version and library, then one for each model."""
    rows, models = [], []
    for (ours, rival, theirs), runs in groups(records, "cpbpe", "rival", "rival_version").items():
        cells = [(name, model) for run in runs for name, model in run["models"].items()]
        each = [model for _, model in cells]
        names = sorted({(name, model["sha256"]) for name, model in cells})
        rows.append(
            [
                ours,
                f"{rival} {theirs}",
                f"{len(runs):,}",
                f"{len({name for name, _ in names}):,}",
                f"{total(each, 'texts'):,}",
                size(total(each, "bytes")),
                f"{total(each, 'decoded'):,}",
                f"{total(each, 'in_full'):,}",
                time(total(runs, "seconds")),
                f"{total(each, 'left_out'):,}" if total(each, "left_out") else "",
                f"**{total(each, 'differences'):,}**",
            ]
        )
        for name, checksum in names:
            own = [model for other, model in cells if (other, model["sha256"]) == (name, checksum)]
            models.append(
                [
                    ours,
                    f"{rival} {theirs}",
                    name,
                    f"`{checksum}`",
                    f"{total(own, 'texts'):,}",
                    size(total(own, "bytes")),
                    f"{total(own, 'differences'):,}",
                ]
            )
    figures = ["runs", "models", "texts", "text", "decoded", "in full", "time"]
    head = ["cpbpe", "beside", *figures, "refused by it", "differences"]
    return [
        "### Encoding and decoding",
        "",
        "The ids of every text are compared. For the texts in the column *decoded*, what the ids decode to "
        "is compared as well. For those in *in full*, which are short, so is everything else: pieces, spans "
        "in characters and in bytes, the normalized text, arrays and batches. *Time* is that of "
        "the processor.",
        "",
        *grid(head, rows),
        "",
        "By model, with the beginning of the SHA-256 of its file (of a byte-level vocabulary: of its ranks).",
        "",
        *grid(["cpbpe", "beside", "model", "SHA-256", "texts", "text", "differences"], models),
    ]


def training(records: list[Record]) -> list[str]:
    """Trainings."""
    rows = [
        [
            ours,
            f"{rival} {theirs}",
            f"{len(runs):,}",
            f"{total(runs, 'trainings') - total(runs, 'refused'):,}",
            f"{total(runs, 'refused'):,}",
            size(total(runs, "bytes")),
            time(total(runs, "seconds")),
            f"**{total(runs, 'differences'):,}**",
        ]
        for (ours, rival, theirs), runs in groups(records, "cpbpe", "rival", "rival_version").items()
    ]
    head = ["cpbpe", "beside", "runs", "models", "refused by both", "text", "time", "differences"]
    return [
        "### Training",
        "",
        "Both libraries train with the same options on the same sentences, which are chosen at random, and "
        "the two files are compared byte for byte.",
        "",
        *grid(head, rows),
    ]


def fuzzing(records: list[Record]) -> list[str]:
    """Fuzzing, by target."""
    rows = [
        [
            ours,
            target,
            f"{len(runs):,}",
            f"{total(runs, 'inputs'):,}",
            time(total(runs, "seconds")),
            f"**{total(runs, 'found'):,}**",
        ]
        for (ours, target), runs in groups(records, "cpbpe", "target").items()
    ]
    return ["### Fuzzing", "", *grid(["cpbpe", "target", "runs", "inputs", "time", "found"], rows)]


def coverage(records: list[Record]) -> list[str]:
    """What the fuzzing reached, by room: the newest measurement of each."""
    rows = []
    for (ours, room), runs in groups(records, "cpbpe", "room").items():
        last = runs[-1]
        rows.append([ours, f"`{room}`", f"{last['lines']:,}", share(last["reached"], last["lines"])])
    return [
        "### Coverage",
        "",
        "How many lines of each [room](architecture.md) the inputs of the fuzzing reach.",
        "",
        *grid(["cpbpe", "room", "lines", "reached"], rows),
    ]


def sanitizer(records: list[Record]) -> list[str]:
    """Sanitizers and interpreters that check memory."""
    rows = [
        [
            ours,
            name,
            what,
            f"{len(runs):,}",
            f"{total(runs, 'tests'):,}",
            f"**{total(runs, 'found'):,}**",
        ]
        for (ours, name, what), runs in groups(records, "cpbpe", "name", "what").items()
    ]
    head = ["cpbpe", "sanitizer", "on", "runs", "tests", "found"]
    return ["### Sanitizers", "", *grid(head, rows)]


def machines(records: list[Record]) -> list[str]:
    """Other processors and systems."""
    rows = [
        [
            ours,
            target,
            how,
            f"{len(runs):,}",
            f"{total(runs, 'tests'):,}",
            f"**{total(runs, 'failed'):,}**",
        ]
        for (ours, target, how), runs in groups(records, "cpbpe", "target", "how").items()
    ]
    return ["### Machines", "", *grid(["cpbpe", "target", "how", "runs", "tests", "failed"], rows)]


def faults(records: list[Record]) -> list[str]:
    """What happens when something fails: memory, disks, processes."""
    rows = [
        [ours, what, f"{total(runs, 'times'):,}", f"**{total(runs, 'found'):,}**"]
        for (ours, what), runs in groups(records, "cpbpe", "what").items()
    ]
    return ["### Faults", "", *grid(["cpbpe", "what was made to fail", "times", "found"], rows)]


def mutation(records: list[Record]) -> list[str]:
    """Changes to the code that a test must notice, and those that none can notice."""
    rows, survivors = [], []
    for (ours, room), runs in groups(records, "cpbpe", "room").items():
        counts = [total(runs, name) for name in ("mutants", "killed", "timed_out", "unviable")]
        survived = {mutant: why for run in runs for mutant, why in run["survived"].items()}
        rows.append([ours, f"`{room}`", *(f"{count:,}" for count in [*counts, len(survived)])])
        survivors += [[ours, f"`{mutant}`".replace("|", "\\|"), why] for mutant, why in survived.items()]
    head = ["cpbpe", "room", "mutants", "killed", "never ended", "did not compile", "survived"]
    why = "No test can notice those that survived:"
    return [
        "### Mutation testing",
        "",
        *grid(head, rows),
        *(["", why, "", *grid(["cpbpe", "change", "because"], survivors)] if survivors else []),
    ]


SECTIONS: dict[str, Callable[[list[Record]], list[str]]] = {
    "parity": parity,
    "training": training,
    "fuzzing": fuzzing,
    "coverage": coverage,
    "sanitizer": sanitizer,
    "machine": machines,
    "faults": faults,
    "mutation": mutation,
}
_WHAT: dict[str, Callable[[Record], tuple[str, str]]] = {
    "parity": lambda r: (f"{r['rival']} {r['rival_version']}", size(total(r["models"].values(), "bytes"))),
    "training": lambda r: (f"{r['rival']} {r['rival_version']}", f"{r['trainings']:,} trainings"),
    "fuzzing": lambda r: (r["target"], f"{r['inputs']:,} inputs"),
    "coverage": lambda r: (r["room"], share(r["reached"], r["lines"])),
    "sanitizer": lambda r: (f"{r['name']}: {r['what']}", f"{r['tests']:,} tests"),
    "machine": lambda r: (f"{r['target']}: {r['how']}", f"{r['tests']:,} tests"),
    "faults": lambda r: (r["what"], f"{r['times']:,} times"),
    "mutation": lambda r: (r["room"], f"{r['mutants']:,} mutants"),
}


def runs(records: list[Record]) -> list[str]:
    """All records, with the number by which they can be repeated."""
    rows = []
    for row, record in enumerate(records, 1):
        what, much = _WHAT[record["kind"]](record)
        text = [str(row), record["day"], record["kind"], what, much, f"`{record['commit']}`"]
        rows.append([*text, record["platform"], record.get("note", "")])
    head = ["row", "day", "kind", "what", "how much", "commit", "machine", "note"]
    return ["### Every run", "", *grid(head, rows)]


@dataclass(frozen=True)
class Practice:
    """A way to check software, and how other projects practise it in what they have published of their CI."""

    name: str
    ours: Callable[[Record], bool]
    """Whether a record is of it."""
    others: tuple[str, ...]
    ci: str = ""
    """What CI does here for every change, besides the runs that leave records."""


PROJECTS = ("sentencepiece", "memchr", "regex (Rust)", "simdutf", "toktier")
_BIG = re.compile(r"(s390x|powerpc64|powerpc|ppc64|mips|mips64|sparc64)(-|$)")
PRACTICES = (
    Practice(
        "comparisons with another library, with records",
        lambda record: record["kind"] in ("parity", "training"),
        ("–", "–", "–", "–", "yes"),
        "in CI",
    ),
    Practice(
        "fuzzing",
        lambda record: record["kind"] == "fuzzing",
        (
            "OSS-Fuzz (loading, encoding, sampling, training); 5 minutes for each pull request",
            "targets in the repository",
            "OSS-Fuzz",
            "OSS-Fuzz (4 engines); 5 minutes for each pull request",
            "–",
        ),
        "2 minutes in CI",
    ),
    Practice(
        "sanitizers",
        lambda record: record["kind"] == "sanitizer" and "miri" not in record["name"].lower(),
        (
            "address, undefined (in OSS-Fuzz)",
            "–",
            "address (in OSS-Fuzz)",
            "address, undefined, thread; memory (in OSS-Fuzz)",
            "–",
        ),
    ),
    Practice(
        "Miri",
        lambda record: record["kind"] == "sanitizer" and "miri" in record["name"].lower(),
        ("(C++)", "yes", "regex-automata", "(C++)", "–"),
    ),
    Practice(
        "a big-endian machine",
        lambda record: record["kind"] == "machine" and bool(_BIG.match(record["target"])),
        ("s390x, powerpc, powerpc64", "mips64", "mips64", "s390x", "–"),
        "s390x (the core's tests) in CI",
    ),
    Practice(
        "other processors than x86-64",
        lambda record: record["kind"] == "machine" and not record["target"].startswith("x86_64"),
        (
            "i686, arm, aarch64, riscv64, powerpc64le, alpha",
            "i686, wasm",
            "i686",
            "ppc64le, riscv64, loongarch64",
            "–",
        ),
        "aarch64 (macOS); the core's tests on i686, aarch64 and s390x in CI",
    ),
    Practice(
        "systems",
        lambda record: False,
        (*["Linux, macOS, Windows"] * 4, "Linux"),
        "Linux, macOS, Windows",
    ),
    Practice(
        "faults on purpose",
        lambda record: record["kind"] == "faults",
        ("–", "–", "–", "–", "–"),
    ),
    Practice(
        "mutation testing",
        lambda record: record["kind"] == "mutation",
        ("–", "–", "–", "–", "–"),
    ),
)


def beside(records: list[Record]) -> list[str]:
    """What other projects run, and what there are records of here."""
    rows = []
    for practice in PRACTICES:
        count = sum(map(practice.ours, records))
        mine = [practice.ci] * bool(practice.ci) + [f"{count} {'run' if count == 1 else 'runs'}"] * bool(
            count
        )
        rows.append([practice.name, "; ".join(mine) or "–", *practice.others])
    return grid(["", "cpbpe", *PROJECTS], rows)


def page(records: list[Record]) -> str:
    """All that is generated of the page."""
    lines: list[str] = []
    for kind, section in SECTIONS.items():
        those = [record for record in records if record["kind"] == kind]
        if those:
            lines += [*section(those), ""]
    lines += [*runs(records), ""] if records else []
    return "\n".join([*lines, "### Beside other projects", "", *beside(records)])


# --- The command ----------------------------------------------------------------------------------


def repeat(row: int, given: list[str]) -> int:
    """Do again what a row says. 0 if the result is the same."""
    from tests.support import soak

    record = read()[row - 1]
    if record["kind"] not in ("parity", "training"):
        print(record["command"], flush=True)
        words, environment = shlex.split(record["command"]), dict(os.environ)
        while re.match(r"[A-Z_]+=", words[0]):  # as in a shell
            name, _, environment[name] = words.pop(0).partition("=")
        return subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode
    parser = argparse.ArgumentParser(prog="evidence repeat ROW")
    soak.arguments(parser)
    options = parser.parse_intermixed_args(given)
    here = {"cpbpe": facts()["cpbpe"], "rival_version": version_of(record["rival"])}
    here["sources"] = soak.checksums(options.files)
    for name, value in here.items():
        if value != record[name]:
            print(f"{name}: {value} here, but {record[name]} in the record", flush=True)
    run = soak.parsed(shlex.split(record["command"])[3:])
    run.files, run.jobs = options.files, options.jobs
    found = soak.soak(run, options.record)
    others = [name for name in found.get("models", {}) if _hash_of(found, name) != _hash_of(record, name)]
    if others:
        print(f"other files than in the record: {', '.join(others)}")
    same = _counted(found) == _counted(record)
    print("the same result" if same else "ANOTHER RESULT than the record has")
    return int(not same)


def _hash_of(record: Record, name: str) -> Any:
    return record["models"].get(name, {}).get("sha256")


def _counted(record: Record) -> Record:
    """What is the same in two runs of the same batches: the digest, and all that was counted."""
    models = {
        name: {key: value for key, value in model.items() if key != "sha256"}
        for name, model in record.get("models", {}).items()
    }
    names = ("digest", "batches", "trainings", "refused", "bytes", "differences")
    return {"models": models, **{name: record.get(name) for name in names}}


def main(given: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="put records into the file, and write the page")
    adding.add_argument("files", nargs="+", type=Path)
    adding.add_argument("--here", action="store_true", help="with today, this commit and this machine")
    commands.add_parser("page", help="write the page")
    repeating = commands.add_parser("repeat", help="run a row again", add_help=False)
    repeating.add_argument("row", type=int)
    repeating.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args(given)
    if options.command == "repeat":
        sys.exit(repeat(options.row, options.rest))
    if options.command == "add":
        new = [record for path in options.files for record in read(path)]
        add([{**facts(), **record} for record in new] if options.here else new)
    put(PAGE, page(read()), BEGIN, END)


if __name__ == "__main__":
    main()
