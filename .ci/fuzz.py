#!/usr/bin/env python3
"""Lets a fuzzer look for inputs that break a law: bytes, texts, models, patterns, files.

    .ci/fuzz.py                          # every target, two minutes in all
    .ci/fuzz.py --seconds 3600 text ids  # these targets, an hour in all
    .ci/fuzz.py --longest 128            # only short inputs, and so more of them
    .ci/fuzz.py --address --seconds 600  # with AddressSanitizer, which needs a nightly Rust
    .ci/fuzz.py --coverage               # how much of each room of the core the corpora reach
    .ci/fuzz.py --keep                   # puts few small inputs that reach all of that into the repository
    .ci/fuzz.py --record FILE ...        # also writes records for tests.support.evidence

The core's targets are in core/fuzz, one function each. All they need is libFuzzer, which comes with the crate
libfuzzer-sys, and a C++ compiler. (cargo fuzz runs them, too.) Those of what is written in Python are in
tests/fuzzing.py, and are there if the package atheris is installed. The corpus of a target is
core/fuzz/corpus/TARGET.txt: an input a line, in base64. The fuzzer begins with these, so each input that has
ever broken something is tried in every run.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "core" / "fuzz"
RUST = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
PYTHON: list[str] = []
if find_spec("atheris") is not None:
    sys.path.insert(0, str(ROOT))
    from tests.fuzzing import TARGETS as IN_PYTHON

    PYTHON += IN_PYTHON
TARGETS = RUST + PYTHON
WORK = FUZZ / "target" / "fuzzing"
CRASHES = FUZZ / "target" / "found"
KEPT_BYTES = 12_000  # of each corpus in the repository

COVERED = (
    *("-Cpasses=sancov-module", "-Cllvm-args=-sanitizer-coverage-level=3"),
    *("-Cllvm-args=-sanitizer-coverage-inline-8bit-counters", "-Cllvm-args=-sanitizer-coverage-pc-table"),
    *("-Ccodegen-units=1", "--cfg=fuzzing"),
)
"""What makes a program tell libFuzzer which branches it took. These flags are not nightly ones.

(With `trace-compares` it would also tell what it compares. Each input took five times as long then.)
"""


def output(*command: str | Path) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def built(kind: str) -> Path:
    """Compile the targets: for fuzzing, for fuzzing with AddressSanitizer, or for measuring coverage."""
    flags = {
        "fuzz": COVERED,
        "address": (*COVERED, "-Zsanitizer=address"),
        "coverage": ("-Cinstrument-coverage",),
    }
    host: str = re.findall(r"host: (\S+)", output("rustc", "-vV"))[0]
    # (With a target, the flags are not those of build scripts.)
    command: list[str | Path] = ["cargo", *(["+nightly"] if kind == "address" else []), "build", "--quiet"]
    command += ["--release", "--target", host, "--manifest-path", FUZZ / "Cargo.toml"]
    command += ["--target-dir", FUZZ / "target" / kind]
    subprocess.run(command, check=True, env={**os.environ, "RUSTFLAGS": " ".join(flags[kind])})
    return FUZZ / "target" / kind / host / "release"


def command_of(programs: Path, target: str) -> list[str | Path]:
    """What runs a target."""
    return [sys.executable, "-m", "tests.fuzzing", target] if target in PYTHON else [programs / target]


def corpus(target: str) -> Path:
    """The known inputs of a target, as files: those of the repository, and what earlier runs found."""
    folder = WORK / target
    folder.mkdir(parents=True, exist_ok=True)
    kept = FUZZ / "corpus" / f"{target}.txt"
    for line in kept.read_text().split() if kept.exists() else ():
        data = base64.b64decode(line)
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    return folder


def fuzzed(programs: Path, target: str, seconds: float, longest: int) -> tuple[str, int, float, str]:
    """Run a target: its name, how many inputs it tried, for how long, and what it says if one failed."""
    CRASHES.mkdir(parents=True, exist_ok=True)
    command = [
        *command_of(programs, target),
        f"-max_total_time={max(round(seconds), 1)}",
        f"-max_len={longest}",
        "-print_final_stats=1",
        "-timeout=20",
    ]
    command += ["-rss_limit_mb=3000", f"-artifact_prefix={CRASHES}/{target}-", "-entropic=0", corpus(target)]
    begun = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=ROOT)
    said = run.stdout + run.stderr
    tried = re.search(r"stat::number_of_executed_units:\s+(\d+)", said)
    problem = "" if run.returncode == 0 and tried else said[-6000:]
    return target, int(tried[1]) if tried else 0, time.monotonic() - begun, problem


Records = list[dict[str, object]]
"""Lines for docs/evidence.jsonl: tests/support/evidence.py says what they hold."""


def fuzz(programs: Path, targets: list[str], seconds: float, jobs: int, longest: int) -> tuple[bool, Records]:
    """Run the targets, `jobs` at a time, and say what came out. Whether no law was broken; and records."""
    each = seconds * jobs / len(targets)
    total = 0
    broken = []
    records: Records = []
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(lambda name: fuzzed(programs, name, each, longest), targets)
        for target, tried, took, problem in runs:
            print(
                f"{target:12} {tried:13,} inputs in {took:6.0f} s{'   BROKEN' if problem else ''}", flush=True
            )
            total += tried
            about: dict[str, object] = {"target": target, "inputs": tried, "seconds": round(took, 1)}
            records.append({"kind": "fuzzing", **about, "found": int(bool(problem))})
            if problem:
                broken.append(f"--- {target} ---\n{problem}")
    print(f"{'':12} {total:13,} inputs, {len(broken)} targets that found something")
    for problem in broken:
        print(problem)
    if broken:
        print(f"The inputs are in {CRASHES.relative_to(ROOT)}: put each into the corpus when it is mended.")
    return not broken, records


def keep(programs: Path, targets: list[str]) -> None:
    """Replace the corpora in the repository by few small inputs that reach what all inputs together reach."""
    for target in targets:
        least = WORK / f"{target}.least"
        subprocess.run(["rm", "-rf", least], check=True)
        least.mkdir(parents=True)
        subprocess.run(
            [*command_of(programs, target), "-merge=1", least, corpus(target)],
            check=True,
            capture_output=True,
            cwd=ROOT,
        )
        lines, size = [], 0
        inputs = [path.read_bytes() for path in least.iterdir()]
        for data in sorted(inputs, key=lambda data: (len(data), data)):
            line = base64.b64encode(data).decode()
            size += len(line) + 1
            if size > KEPT_BYTES:
                break
            lines.append(line)
        (FUZZ / "corpus").mkdir(exist_ok=True)
        (FUZZ / "corpus" / f"{target}.txt").write_text("\n".join(lines) + "\n")
        print(f"{target:12} {len(lines)} of {len(inputs)} inputs")


def unsafe(tools: Path, programs: Path, targets: list[str]) -> None:
    """Which targets reach each place with `unsafe`: the first line in it that is compiled."""
    reached: dict[Path, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for target in targets:
        data = WORK / f"{target}.profdata"
        output(tools / "llvm-profdata", "merge", "-o", data, WORK / f"{target}.profraw")
        lines = output(
            tools / "llvm-cov", "export", "--format=lcov", f"--instr-profile={data}", programs / target
        )
        for line in lines.splitlines():
            if line.startswith("SF:"):
                path = Path(os.path.normpath(line[3:]))
            elif line.startswith("DA:"):
                at, count = map(int, line[3:].split(",")[:2])
                reached[path][at] += [target] if count else []
    for path in sorted((ROOT / "core" / "cpbpe" / "src").rglob("*.rs")):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\bunsafe \{|\bunsafe fn", text.partition("//")[0]):
                compiled = next((at for at in range(number, number + 9) if at in reached[path]), None)
                by = reached[path][compiled] if compiled else ["not compiled here"]
                name = path.relative_to(ROOT / "core" / "cpbpe" / "src")
                print(f"{name}:{number:<6} {' '.join(by) or 'BY NONE'}")


def coverage(programs: Path, targets: list[str]) -> Records:
    """How many lines of each room the corpora reach."""
    rust = Path(output("rustc", "--print", "sysroot").strip())
    found = [path.parent for path in rust.glob("lib/rustlib/*/bin/llvm-profdata")]
    if not found:
        sys.exit("this needs LLVM's tools: rustup component add llvm-tools")
    tools = found[0]
    profiles = []
    for target in targets:
        profiles.append(WORK / f"{target}.profraw")
        environment = {**os.environ, "LLVM_PROFILE_FILE": str(profiles[-1])}
        command: list[str | Path] = [programs / target, "-runs=0", corpus(target)]
        subprocess.run(command, check=True, env=environment, capture_output=True)
    merged = WORK / "all.profdata"
    output(tools / "llvm-profdata", "merge", "-o", merged, *profiles)
    objects = [argument for target in targets for argument in ("--object", programs / target)][1:]
    exported = output(tools / "llvm-cov", "export", "--summary-only", f"--instr-profile={merged}", *objects)
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    source = ROOT / "core" / "cpbpe" / "src"
    for one in json.loads(exported)["data"][0]["files"]:
        path = Path(os.path.normpath(one["filename"]))
        if path.is_relative_to(source):
            lines = one["summary"]["lines"]
            room = path.relative_to(source).parts[0].removesuffix(".rs")
            for name in (room, "all"):
                rooms[name][0] += lines["covered"]
                rooms[name][1] += lines["count"]
    for room, (reached, lines) in sorted(rooms.items(), key=lambda one: (one[0] == "all", one[0])):
        print(f"{room:10} {reached:6,} of {lines:6,} lines  {reached / lines:6.1%}")
    unsafe(tools, programs, targets)
    return [
        {"kind": "coverage", "room": room, "lines": lines, "reached": reached}
        for room, (reached, lines) in sorted(rooms.items())
    ]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none is named")
    add("--seconds", type=float, default=120, help="for all targets together (default: 120)")
    add("--jobs", type=int, default=2, help="how many targets run at the same time (default: 2)")
    add("--longest", type=int, default=0, help="bytes of an input; 128 is twice to six times as fast")
    add("--record", type=Path, help="append records of what was done to this file")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--address", action="store_true", help="with AddressSanitizer")
    how.add_argument("--coverage", action="store_true", help="instead: how much of the core is reached")
    how.add_argument("--keep", action="store_true", help="instead: make the corpora of the repository anew")
    options = parser.parse_args()
    targets = options.targets or TARGETS
    if unknown := [name for name in targets if name not in TARGETS]:
        parser.error(f"there is no target {unknown[0]}")
    if options.coverage:
        targets = [name for name in targets if name in RUST]
    kind = "address" if options.address else "coverage" if options.coverage else "fuzz"
    programs = built(kind) if {*targets} & {*RUST} else FUZZ
    is_fine, records = True, []
    if options.coverage:
        records = coverage(programs, targets)
    elif options.keep:
        keep(programs, targets)
    else:
        is_fine, records = fuzz(programs, targets, options.seconds, options.jobs, options.longest)
    if options.record is not None:
        words = [*(["--address"] if options.address else []), *(["--coverage"] if options.coverage else [])]
        words += [] if options.coverage else [f"--seconds {options.seconds:.0f}"]
        words += [f"--longest {options.longest}"] if options.longest else []
        note = {"note": "with AddressSanitizer"} if options.address else {}
        with options.record.open("a", encoding="utf-8") as file:
            for record in records:
                command = " ".join([".ci/fuzz.py", *words, *options.targets])
                file.write(json.dumps({**record, **note, "command": command}) + "\n")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
