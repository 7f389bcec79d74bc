#!/usr/bin/env python3
"""Makes a small mistake in the code, and looks whether a test notices; again and again.

    .ci/mutants.py                                 # every mistake that it knows: a day
    .ci/mutants.py --part 3/20                     # every 20th of them, from the fourth on
    .ci/mutants.py cut reference/merging.py        # in these rooms of the core, or files of the reference
    .ci/mutants.py --record FILE --part 3/20       # also writes records for tests.support.evidence

What no test notices is shown at the end. The mistakes in the core are those of cargo-mutants (cargo install
cargo-mutants). Its own tests have to notice them, and if none does, those of TESTS, with a core that has the
mistake. Those in the reference are made here: another comparison, another number, a condition turned around,
a step left out. Tests that compare it with the core and with sentencepiece have to notice them: TESTS, and at
last the fast tier of FOLDERS.

The tests run in copies of the repository, so that it can be worked on meanwhile.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORE = ("cut", "merge", "cache", "decode", "train")
"""Rooms of the core in which a mistake gives wrong ids, wrong text or a wrong model."""
TESTS = {
    "cut": "encode/test_goldens.py encode/test_parity.py encode/test_documents.py bytes/test_cuts.py",
    "merge": "encode/test_goldens.py encode/test_parity.py bytes/test_ranks.py bytes/test_models.py",
    "cache": "encode/test_goldens.py encode/test_parity.py encode/test_growth.py bytes/test_models.py",
    "decode": "encode/test_goldens.py encode/test_parity.py encode/test_option_matrix_decoding.py",
    "train": "train/test_core.py train/test_parity_training.py train/test_api.py "
    "bytes/test_training.py bytes/test_counters.py",
    "reference/encoding.py": "encode/test_goldens.py encode/test_parity.py",
    "reference/merging.py": "encode/test_goldens.py encode/test_parity.py bytes/test_ranks.py",
    "reference/lines.py": "encode/test_given_texts.py cli",
    "reference/training.py": "train/test_core.py train/test_reference.py",
    "reference/training_values.py": "train/test_core.py train/test_reference.py",
    "reference/step_by_step.py": "show/test_steps_drawn.py tools/test_built.py bytes/test_steps.py",
    "reference/byte_level/encoding.py": "bytes/test_models.py bytes/test_ranks.py bytes/test_ids.py",
    "reference/byte_level/patterns.py": "bytes/test_models.py bytes/test_pattern_syntax.py",
    "reference/byte_level/training.py": "bytes/test_training.py bytes/test_counters.py",
    "reference/byte_level/word_ends.py": "bytes/test_word_ends.py",
}
"""For each room of the core and file of the reference, the tests that most likely notice a mistake in it."""
FOLDERS = ["encode", "bytes", "train", "split", "show", "tools/test_built.py"]
"""The tests that have to notice one in the reference at last."""
TIMES = 5
"""How many times as long tests may take with a mistake: usually a loop goes on for ever then."""

_PAIRS = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.Break, ast.Continue),
)
SWAPPED: dict[type[ast.AST], Any] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
"""What becomes of an operator, or of a step of a loop."""

Outcomes = dict[str, list[str]]
"""The mistakes that were noticed, that were not, and others, by the names of cargo-mutants."""


# --- Mistakes in Python ---------------------------------------------------------------------------


def changed(node: ast.AST) -> Any:
    """A node with a mistake in it; None if we know none."""
    new = deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
            new.ops = [SWAPPED[type(operator)]()]
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if type(new.op) in SWAPPED:
            new.op = SWAPPED[type(new.op)]()
        case ast.UnaryOp(op=ast.Not()):
            return new.operand
        case ast.Constant(value=bool() as value):
            new.value = not value
        case ast.Constant(value=int() as value):
            new.value = value + 1
        case ast.If() | ast.While() | ast.IfExp():
            new.test = ast.UnaryOp(ast.Not(), new.test)
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case ast.Return(value=ast.expr()) if not isinstance(new.value, ast.Constant):
            new.value = ast.Constant(None)
        case ast.Break() | ast.Continue():
            return SWAPPED[type(new)]()
        case _:
            return None
    return new


class Changing(ast.NodeTransformer):
    """Makes one mistake: at the place with this number. What is only of types has no places."""

    def __init__(self, number: int):
        self.number = number
        self.count = 0
        self.what = ""

    def visit(self, node: ast.AST) -> Any:
        """Visit all places in their order; the one that is changed, too."""
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
            return node
        if isinstance(node, ast.arg) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.args = self.visit(node.args)
            node.body = [self.visit(step) for step in node.body]
            return node
        new = changed(node)
        if new is not None:
            self.count += 1
            if self.count - 1 == self.number:
                before, after = (
                    ast.unparse(ast.fix_missing_locations(one)).split("\n")[0] for one in (node, new)
                )
                self.what = f"{node.lineno}: {before} -> {after}"  # type: ignore[attr-defined]
                return new
        return self.generic_visit(node)


def mistakes(text: str) -> Iterator[tuple[str, str]]:
    """Each mistake that can be made in a file: where and what, and the file with it."""
    number = 0
    while True:
        changing = Changing(number)
        tree = changing.visit(ast.parse(text))
        if not changing.what:
            return
        yield changing.what, ast.unparse(ast.fix_missing_locations(tree))
        number += 1


# --- Tests ----------------------------------------------------------------------------------------


def outcome_of(folder: Path, tests: list[str], seconds: float | None = None) -> str:
    """What tests say in a copy of the repository, if they end in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    command += [f"tests/{test}" for test in tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "caught" if run.returncode else "missed"


LIMITS: dict[str, float] = {}
"""How long tests may take."""


def limit_of(folder: Path, tests: list[str]) -> float:
    """How long these tests may take, after a run without any mistake."""
    key = " ".join(tests)
    if key not in LIMITS:
        begun = time.monotonic()
        if outcome_of(folder, tests) != "missed":
            sys.exit(f"tests fail without any mistake: {key}")
        LIMITS[key] = TIMES * (time.monotonic() - begun)
    return LIMITS[key]


def copy_into(folder: Path) -> None:
    """Copy the repository, and the core that is built, into a folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    compiled = [str(path.relative_to(ROOT)) for path in ROOT.glob("cpbpe/_core*")]
    for path in [*listed.stdout.rstrip("\0").split("\0"), *compiled]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)


def in_reference(file: str, chosen: slice, folder: Path) -> Outcomes:
    """The mistakes in a file of the reference, made in a copy of the repository."""
    found: Outcomes = {"caught": [], "missed": [], "timeout": [], "unviable": []}
    tests = TESTS[file].split()
    limit, last_limit = limit_of(folder, tests), limit_of(folder, FOLDERS)
    for what, text in list(mistakes((ROOT / "cpbpe" / file).read_text(encoding="utf-8")))[chosen]:
        (folder / "cpbpe" / file).write_text(text, encoding="utf-8")
        outcome = outcome_of(folder, tests, limit)
        if outcome == "missed":
            outcome = outcome_of(folder, FOLDERS, last_limit)
        found[outcome].append(f"cpbpe/{file}:{what}")
    shutil.copy2(ROOT / "cpbpe" / file, folder / "cpbpe" / file)
    return found


def in_core(room: str, part: str, folder: Path) -> Outcomes:
    """The mistakes in a room of the core. The folder is a copy of the repository."""
    # 1. Do the core's own tests notice them?
    files = "cpbpe/src/decode.rs" if room == "decode" else f"cpbpe/src/{room}/**/*.rs"
    with tempfile.TemporaryDirectory() as name:
        command = ["cargo", "mutants", "--package", "cpbpe", "--file", files, "--output", name]
        command += [
            "--no-shuffle",
            "--minimum-test-timeout",
            "60",
            *(["--shard", part, "--sharding", "round-robin"] if part else []),
        ]
        run = subprocess.run(
            [*command, "--", "--tests"],
            cwd=ROOT / "core",
            env={"CPBPE_SECONDS": "1", **os.environ},
            check=False,
        )
        if run.returncode not in (0, 2, 3):  # (2 and 3: some were missed, or never ended)
            sys.exit("cargo mutants failed")
        output = Path(name, "mutants.out")
        kinds = ("caught", "missed", "timeout", "unviable")
        found = {kind: (output / f"{kind}.txt").read_text().splitlines() for kind in kinds}
        runs = json.loads((output / "outcomes.json").read_text())["outcomes"]
        missed = [run for run in runs if run["summary"] == "MissedMutant"]
        # 2. Does Python notice the others?
        if not missed:
            return found
        build_in(folder)
        limit = limit_of(folder, TESTS[room].split())
        found["missed"].clear()
        for run in missed:
            mutant = run["scenario"]["Mutant"]
            patch = ["patch", "--silent", f"--input={output / run['diff_path']}", mutant["file"]]
            subprocess.run(patch, cwd=folder / "core", check=True)
            build_in(folder)
            outcome = outcome_of(folder, TESTS[room].split(), limit)
            subprocess.run([*patch, "--reverse"], cwd=folder / "core", check=True)
            found[outcome].append(f"core/{mutant['name']}")
    # 3. What comes next has no mistake.
    shutil.copy2(ROOT / "cpbpe/_core.abi3.so", folder / "cpbpe")
    return found


def build_in(folder: Path) -> None:
    """Build the core of a copy of the repository, with its checks for overflow, where Python finds it."""
    command = ["cargo", "build", "--quiet", "--package", "cpbpe-python", "--target-dir", "target"]
    subprocess.run(command, cwd=folder / "core", check=True)
    shutil.copy2(folder / "core/target/debug/lib_core.so", folder / "cpbpe/_core.abi3.so")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join([*CORE, *TESTS])}; all if none is named")
    add("--part", default="", metavar="K/N", help="only the Kth of N parts, counted from 0")
    add("--record", type=Path, help="append records of what was done to this file")
    options = parser.parse_args()
    rooms = options.rooms or [*CORE, *TESTS]
    if unknown := [room for room in rooms if room not in (*CORE, *TESTS)]:
        parser.error(f"there is no room {unknown[0]}")
    part, parts = map(int, options.part.split("/")) if options.part else (0, 1)
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_into(folder)
        for room in rooms:
            begun = time.monotonic()
            if room in CORE:
                found = in_core(room, options.part, folder)
            else:
                found = in_reference(room, slice(part, None, parts), folder)
            counts = {kind: len(some) for kind, some in found.items()}
            seconds = time.monotonic() - begun
            print(f"{room}: {counts} in {seconds:.0f} s", *found["missed"], sep="\n    ", flush=True)
            survived += counts["missed"]
            if options.record is not None:
                write_record(options.record, room, options.part, found)
    return int(survived > 0)


def write_record(path: Path, room: str, part: str, found: Outcomes) -> None:
    """Append what was done to a file of records. Somebody has to add why those that survived could."""
    about = {"mutants": sum(map(len, found.values())), "killed": len(found["caught"])}
    others = {"timed_out": len(found["timeout"]), "unviable": len(found["unviable"])}
    survived = dict.fromkeys(found["missed"], "")
    command = " ".join([".ci/mutants.py", *(["--part", part] if part else []), room])
    record = {"kind": "mutation", "room": room, **about, "survived": survived, **others, "command": command}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
