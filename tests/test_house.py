"""The rules of the house, checked on the sources: one direction of imports, small files, no private doors.

Nothing is imported here: the files in this checkout are read, whatever is installed.
"""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.support import house
from tests.support.house import Import, Module

ROOT = Path(__file__).parents[1]

ROOMS = [
    ("errors", "lazy", "version"),
    ("spelling", "foreign"),
    ("checks",),
    ("text",),
    ("model",),
    ("reference",),
    ("engine",),
    ("lint",),
    ("tokenizer",),
    ("corpus",),
    ("training",),
    ("packing",),
    ("arrow",),
    ("tools",),
    ("compat", "scale"),
    ("view",),
    ("cli",),
]
"""The rooms from the lowest floor to the highest. A room imports from itself and from lower floors."""

TOP = "cpbpe"
"""The front door, `cpbpe/__init__.py`: it may import anything, and nothing imports from it."""
CORE = "cpbpe._core"
"""The compiled module. It imports nothing of Python's side, so it has no room."""

BOOK = ("cpbpe.errors", "cpbpe.lazy", "cpbpe.text", "cpbpe.model.spec", "cpbpe.reference")
"""All that the reference may import of cpbpe: it is read as a book, from the front to the back."""

KNOWS_PROTOBUF = ("cpbpe.model.formats", "cpbpe.compat")

MOST_LINES = 800
MOST_LINES_OF_A_FUNCTION = 60

OWN = frozenset({"self", "cls", "new", "other"})
"""What a method calls objects of its own class: `other` in comparisons, `new` in alternative constructors."""

ALLOWED = {
    "_batch_encode_plus": "transformers has it or not, by version; a subclass must know",
    "_replace": "a public method of named tuples, whose names begin so to leave room for fields",
    "_asdict": "the same",
    "_fields": "the same",
    "_make": "the same",
    "_exit": "os._exit is public",
    "_getframe": "sys._getframe is documented",
}
"""Underscore names that may be used elsewhere, and why."""


NAMES_FILES = (
    "*.md",
    "docs/*.md",
    "proto/*",
    "cpbpe/**/*.py",
    "cpbpe/*.pyi",
    "core/**/*.rs",
    "tests/**/*.py",
)
"""Where paths of the project are named."""
TOP_LEVEL = {
    *(".ci", ".github", "benchmarks", "core", "cpbpe", "docs", "proto", "tests"),
    *("CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"),
    *(".gitignore", "LICENSE", "MANIFEST.in", "constraints.txt", "mkdocs.yml", "pyproject.toml", "setup.py"),
}
MADE_UP = {"cpbpe/model/formats/pieces_tsv.py", "cpbpe/tokenizer/lowercase.py", "cpbpe/tokenizer/here.py"}
"""Files that only examples have."""


@cache
def package() -> dict[str, Module]:
    return house.read(ROOT / "cpbpe")


@cache
def edges() -> list[Import]:
    """Every import of one of our modules by another."""
    modules = package()
    known = {**dict.fromkeys(modules), CORE: None}
    found = (edge for module in modules.values() for edge in house.imports(module, known))
    return sorted({edge for edge in found if edge.target.split(".")[0] == TOP and edge.target != edge.source})


def room(name: str) -> str:
    """The room of a module other than the top; `python -m cpbpe` is the command."""
    return name.split(".")[1].replace("__main__", "cli")


def floor(name: str) -> int | None:
    """The floor of a module; None if its room is not in the list."""
    return next((number for number, rooms in enumerate(ROOMS) if room(name) in rooms), None)


def within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def breaks_the_order(edge: Import) -> bool:
    """Whether an import breaks the order of the rooms."""
    source, target = edge.source, edge.target
    if source == TOP or target == CORE:
        return False
    if target == TOP:
        return True
    if room(source) == room(target):
        return False
    from_floor, to_floor = floor(source), floor(target)
    return from_floor is None or to_floor is None or from_floor <= to_floor


def nothing(violations: list[str], rule: str) -> None:
    """Fail with a list that can be worked through."""
    if violations:
        pytest.fail(f"{rule}; {len(violations)} places:\n  " + "\n  ".join(violations), pytrace=False)


def test_no_import_cycles() -> None:
    shown = [
        " -> ".join([edge.source for edge in cycle] + [cycle[0].source])
        + "".join(f"\n      {edge.place} imports {edge.target}" for edge in cycle)
        for cycle in house.cycles(edges())
    ]
    nothing(shown, "modules import each other in circles")


def test_every_module_has_a_room() -> None:
    homeless = [module.path for name, module in package().items() if name != TOP and floor(name) is None]
    nothing(homeless, f"files are in none of the rooms {', '.join(sum(ROOMS, ()))}")


def test_imports_go_one_way() -> None:
    wrong = [f"{edge.place}: imports {edge.target}" for edge in edges() if breaks_the_order(edge)]
    nothing(wrong, "a room imports only from itself and from those below it, and nothing from cpbpe itself")


def test_the_reference_is_a_book_of_its_own() -> None:
    wrong = [
        f"{edge.place}: imports {edge.target}"
        for edge in edges()
        if within(edge.source, ("cpbpe.reference",)) and not within(edge.target, BOOK)
    ]
    nothing(wrong, f"cpbpe.reference imports of cpbpe nothing but {', '.join(BOOK)}")


def test_protobuf_stays_where_files_are_read() -> None:
    wrong = []
    for module in package().values():
        if not within(module.name, KNOWS_PROTOBUF):
            for edge in house.imports(module, package()):
                if within(edge.target, ("google", "grpc_tools")) or edge.target.endswith("_pb2"):
                    wrong.append(f"{edge.place}: imports {edge.target}")
    nothing(wrong, f"only {' and '.join(KNOWS_PROTOBUF)} know protobuf")


def test_files_are_short() -> None:
    wrong = []
    for folder in ("cpbpe", "tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py*")):
            if (ROOT / "benchmarks" / "data") in path.parents:  # corpora, which are not ours
                continue
            if path.suffix in (".py", ".pyi") and not house.GENERATED.search(path.name):
                lines = len(path.read_text(encoding="utf-8").splitlines())
                if lines > MOST_LINES:
                    wrong.append(f"{path.relative_to(ROOT)}: {lines} lines")
    nothing(wrong, f"a file of more than {MOST_LINES} lines is two ideas")


def test_functions_are_short_or_tell_their_steps() -> None:
    modules = [module for module in package().values() if not module.is_generated]
    wrong = [place for module in modules for place in house.long_functions(module, MOST_LINES_OF_A_FUNCTION)]
    nothing(wrong, f"a function of more than {MOST_LINES_OF_A_FUNCTION} lines numbers its steps (`# 1.`)")


DECLARATION = re.compile(r"^(?:const|let|var|class|(?:async )?function\*?) ([\[{].*?[\]}]|\w+)", re.M)


def declared_twice(scripts: dict[str, str]) -> list[str]:
    """The names that two of the page's scripts declare outside of blocks: they share one scope."""
    homes: dict[str, list[str]] = {}
    for script, source in scripts.items():
        for names in DECLARATION.findall(source):
            for name in re.findall(r"\w+", names):
                homes.setdefault(name, []).append(script)
    return [f"{name}: {', '.join(where)}" for name, where in homes.items() if len(where) > 1]


def test_scripts_of_the_page_declare_different_names() -> None:
    """With two declarations of one name, the browser would not run the second script at all."""
    scripts = {path.name: path.read_text() for path in (ROOT / "cpbpe/tools/browser").glob("*.js")}
    assert len(scripts) > 10
    nothing(declared_twice(scripts), "put one of them into a block, or give it another name")


def test_nobody_reaches_into_an_underscore() -> None:
    wrong = [
        place
        for module in package().values()
        if not module.is_generated
        for name, place in house.reached_into(module, OWN)
        if name not in ALLOWED
    ]
    nothing(wrong, f"an underscore name belongs to its object ({', '.join(sorted(OWN))})")


# --- The rules themselves, on a few lines ---------------------------------------------------------


def module(name: str, source: str) -> Module:
    return Module(name, name.replace(".", "/") + ".py", source)


def test_imports_are_seen_everywhere() -> None:
    source = """
import os, cpbpe.text.finder as finder
from typing import TYPE_CHECKING
from cpbpe import lazy, Tokenizer
from cpbpe.text import finder
from cpbpe.text.finder import Finder
if TYPE_CHECKING:
    from cpbpe.engine.choice import Engine
def function():
    from . import near
    from ..model import spec
    class Inner:
        import cpbpe.errors
    return importlib.import_module("cpbpe.compat"), import_module("google.protobuf"), __import__(f"x.{near}")
"""
    known = dict.fromkeys(
        ["cpbpe", "cpbpe.lazy", "cpbpe.text", "cpbpe.text.finder", "cpbpe.tokenizer.near", "cpbpe.model.spec"]
    )
    found = list(house.imports(module("cpbpe.tokenizer.here", source), known))
    assert {edge.target for edge in found} == {
        *("os", "typing", "cpbpe", "cpbpe.lazy", "cpbpe.text.finder", "cpbpe.engine.choice", "cpbpe.errors"),
        *("cpbpe.tokenizer.near", "cpbpe.model.spec", "cpbpe.compat", "google.protobuf"),
    }
    assert Import("cpbpe.tokenizer.here", "cpbpe.errors", "cpbpe/tokenizer/here.py:13") in found
    package = Module("cpbpe.text", "cpbpe/text/__init__.py", "from . import finder\nfrom .. import lazy")
    assert [edge.target for edge in house.imports(package, known)] == ["cpbpe.text.finder", "cpbpe.lazy"]


def test_cycles_are_found() -> None:
    def shown(*pairs: str) -> list[str]:
        found = house.cycles([Import(pair[0], pair[1], f"{pair}:1") for pair in pairs])
        return sorted("".join(edge.source for edge in cycle) for cycle in found)

    assert shown("ab", "bc", "ac", "cd") == []
    assert shown("ab", "ba") == ["ab"]
    assert shown("ab", "bc", "ca", "cd", "dc", "xa") == ["abc", "cd"]


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ("cpbpe.text.a", "cpbpe.text.b", False),
        ("cpbpe.text.a", "cpbpe.errors", False),
        ("cpbpe.text", "cpbpe.model.spec", True),
        ("cpbpe.lazy", "cpbpe.errors", True),
        ("cpbpe.compat.a", "cpbpe.cli.b", True),
        ("cpbpe.__main__", "cpbpe.cli", False),
        ("cpbpe.__main__", "cpbpe.training.train", False),
        ("cpbpe.training.a", "cpbpe", True),
        ("cpbpe", "cpbpe.compat", False),
        ("cpbpe.engine.choice", "cpbpe._core", False),
        ("cpbpe.attic.a", "cpbpe.errors", True),
    ],
)
def test_the_order_of_the_rooms(source: str, target: str, wrong: bool) -> None:
    assert breaks_the_order(Import(source, target, "")) == wrong


def test_lines_of_code_are_counted() -> None:
    body = '    """Two\n    lines."""\n    # why\n\n    a = 1\n    b = 2\n'
    told = body.replace("why", "1. the only step")
    source = f"def first():\n{body}\ndef second():\n{told}\nclass C:\n    x = 1\n"
    assert list(house.long_functions(module("m", source), 2)) == [
        "m.py:1: first has 3 lines of code, and no numbered steps"
    ]
    assert list(house.long_functions(module("m", source), 3)) == []


def test_names_of_scripts_are_seen() -> None:
    scripts = {
        "a.js": "const one = 1;\nconst [two, three] = [2, 3];\nasync function four() {}\n{\n  let five;\n}",
        "b.js": "let three = 3;\nclass four {}\nconst five = 5;\nconst ones = one;\n",
    }
    assert declared_twice(scripts) == ["three: a.js, b.js", "four: a.js, b.js"]


def test_doors_are_seen() -> None:
    source = """
self._a, cls._b, super()._c, other.__len__, x.__class__, cpbpe._core
x._d, self.x._e, f()._f
getattr(x, "_g"), setattr(self, "_h", 1), getattr(x, "i")
"""
    found = list(house.reached_into(module("m", source), OWN))
    assert [name for name, _ in found] == ["_d", "_e", "_f", "_g"]
    assert found[1][1] == "m.py:3: self.x._e"


def test_classes_of_the_core_are_aligned() -> None:
    """The interpreter aligns objects to two words; `lib.rs` checks each class when it is compiled."""
    binding = ROOT / "core" / "python" / "src"
    sources = [path.read_text() for path in binding.glob("*.rs")]
    classes = {name for text in sources for name in re.findall(r"#\[pyclass[^#]*?struct (\w+)", text)}
    checked = set(re.findall(r"is_aligned::<(\w+)>\(\)", (binding / "lib.rs").read_text()))
    assert {"Engine", "Counter"} <= classes
    nothing(sorted(classes - checked), "classes whose alignment nobody checks")


def test_lists_in_the_core_are_complete() -> None:
    """Of files, in the tables of `mod.rs`."""
    wrong = []
    for path in (ROOT / "core").glob("*/src/**/mod.rs"):
        listed = set(re.findall(r"^//! \| `(\w+(?:\.rs|/))`", path.read_text(), re.M))
        there = {f"{one.name}/" if one.is_dir() else one.name for one in path.parent.iterdir()}
        wrong += [f"{path}: {name}" for name in listed and listed ^ (there - {"mod.rs", "tests.rs"})]
    nothing(sorted(wrong), "lists that have other files than there are")


def test_every_use_of_unsafe_is_in_the_table() -> None:
    """With how many there are in each file; several files in one row count together."""
    page = (ROOT / "docs" / "unsafe.md").read_text()
    for crate in ("cpbpe", "python"):
        source = ROOT / "core" / crate / "src"
        section = page.partition(f"`core/{crate}/src`")[2].partition("\n## ")[0]
        listed: Counter[str] = Counter()
        for cell, uses in re.findall(r"^\| (.*?) \| (\d+) \|", section, re.M):
            listed[", ".join(re.findall(r"[\w/]+\.rs", cell))] += int(uses)
        there: Counter[str] = Counter()
        for path in source.rglob("*.rs"):
            name = path.relative_to(source).as_posix()
            row = next((row for row in listed if name in row.split(", ")), name)
            there[row] += len(re.findall(r"\bunsafe\b", re.sub(r"//.*", "", path.read_text())))
        assert listed == +there, crate


def test_rooms_of_the_core_import_one_way() -> None:
    """The order stands in the table of `lib.rs`; the rooms of one row may use each other."""
    source = ROOT / "core" / "cpbpe" / "src"
    rows = re.findall(r"^//! \| (`.*?) +\|", (source / "lib.rs").read_text(), re.M)
    floors = {room: number for number, row in enumerate(rows) for room in re.findall(r"`(\w+)`", row)}
    there = {path.name.removesuffix(".rs") for path in source.iterdir()} - {"lib"}
    assert set(floors) == there, "the table of lib.rs has every room"
    edges = list(house.rust_imports(source))
    assert len(edges) > 100
    wrong = [edge for edge in edges if floors.get(edge.target, len(rows)) > floors[edge.source]]
    nothing([f"{edge.place}: {edge.target}" for edge in wrong], "a room uses only those above it")


def test_files_that_are_named_exist() -> None:
    """Paths of this project in comments, docstrings and pages: what is moved leaves no stale pointers."""
    sources = [path for pattern in NAMES_FILES for path in ROOT.glob(pattern)]
    assert len(sources) > 200
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        for name in sorted(set(house.named_files(path.read_text())))
        if name not in MADE_UP and not any((base / name).exists() for base in (ROOT, ROOT / "core" / "cpbpe"))
    ]
    nothing(missing, "files are named that are not there")


def test_the_top_holds_what_belongs_there() -> None:
    """What was made for a trial is not committed by mistake."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout, so nothing says what is committed")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    top = {name.split("/")[0] for name in names.decode().split("\0") if name}
    nothing(sorted(top - TOP_LEVEL), "these are committed at the top of the repository")


def test_missing_packages_are_named_and_not_extras() -> None:
    """`pip install "cpbpe[arrow]"` installs a release, or nothing: who has a checkout needs `".[arrow]"`."""
    paths = [*ROOT.glob("docs/*.md"), *ROOT.glob("cpbpe/**/*.py")]
    wrong = [str(path) for path in paths if re.search(r"install \S*cpbpe\[\w", path.read_text())]
    nothing(wrong, "name the packages, with cpbpe.errors.missing")


def test_what_the_tests_install_is_pinned() -> None:
    """In `constraints.txt`, at a version that is allowed. Nothing else stands there: no host, no path."""
    pins: dict[str, list[str]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            found = re.fullmatch(r"([a-z0-9-]+)==([0-9a-z.]+)( ; [\w<>=!.()' -]+)?", line)
            assert found, line
            pins.setdefault(found[1], []).append(found[2])
    whole = (ROOT / "pyproject.toml").read_text()
    assert "[tool.uv.pip]" not in whole, (
        "what it says of pinning, `uv pip install -e .` would try to do, and fail"
    )
    project = whole.split("[project]")[1].split("\nbench = [")[0]
    asked = re.findall(r'"([\w-]+)(?:\[\w+\])?([<>=]=[^";]+)', project)
    assert {"numpy", "transformers", "ruff", "pyspark"} <= {name for name, _ in asked}
    wrong = [
        f"{name}{versions}"
        for name, versions in asked
        if not all(version in SpecifierSet(versions) for version in pins.get(name, ["0"]))
    ]
    nothing(wrong, "requirements are not in constraints.txt: run the command at its top")
