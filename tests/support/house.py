"""Reads a package with `ast`, without importing it: who imports whom, how long things are, who reaches where.

`tests/test_house.py` holds the rules and judges by what these functions return. Each function works on
`Module`s, so that the rules can be tried on a few lines of source as well as on the package.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTERS = {"import_module", "__import__"}
"""Functions that import the module whose name they are given."""
GENERATED = re.compile(r"_pb2\.pyi?$")


@dataclass(frozen=True)
class Module:
    """One file of a package: its dotted name, its path as messages show it, and its text."""

    name: str
    path: str
    source: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def is_generated(self) -> bool:
        return bool(GENERATED.search(self.path))


@cache
def _parsed(module: Module) -> ast.Module:
    return ast.parse(module.source, module.path)


@dataclass(frozen=True, order=True)
class Import:
    """One module imports another, on a line of its file."""

    source: str
    target: str
    place: str
    """`path:line`."""


def read(folder: Path) -> dict[str, Module]:
    """All modules of the package in a folder, by name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder.parent)
        name = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
        modules[name] = Module(name, inside.as_posix(), path.read_text(encoding="utf-8"))
    return modules


# --- Imports --------------------------------------------------------------------------------------


def imports(module: Module, known: Mapping[str, object]) -> Iterator[Import]:
    """Everything that a module imports, wherever in the file: in functions and under TYPE_CHECKING as well.

    `from a.b import c` imports a.b.c if that is a module (`known` says so), and a.b otherwise. That Python
    also runs the `__init__.py` of every package on the way does not count. A call such as
    `import_module("a.b")` counts; where the name is put together first, nobody can tell.
    """
    for node in ast.walk(module.tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets = [name if name in known else base for name in names]
        elif isinstance(node, ast.Call) and _name(node.func) in IMPORTERS and node.args:
            given = node.args[0]
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                targets = [given.value]
        for target in dict.fromkeys(targets):
            yield Import(module.name, target, f"{module.path}:{getattr(node, 'lineno', 0)}")


def _base(module: Module, node: ast.ImportFrom) -> str:
    """The name between `from` and `import`, made absolute."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *(node.module or "").split(".")]).strip(".")


def _name(node: ast.expr) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def rust_imports(folder: Path) -> Iterator[Import]:
    """Which rooms of a crate use which others: every `crate::room` in its files, but for `lib.rs`."""
    for path in sorted(folder.rglob("*.rs")):
        inside = path.relative_to(folder)
        room = inside.parts[0].removesuffix(".rs")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for target in re.findall(r"\bcrate::([a-z_]+)", line.partition("//")[0]):
                if target != room and room != "lib":
                    yield Import(room, target, f"{inside.as_posix()}:{number}")


def cycles(edges: Sequence[Import]) -> list[list[Import]]:
    """For every module that lies on a cycle the shortest one through it; each cycle once."""
    graph: dict[str, dict[str, Import]] = {}
    for edge in sorted(edges):
        graph.setdefault(edge.source, {}).setdefault(edge.target, edge)
    found: dict[frozenset[str], list[Import]] = {}
    for start in graph:
        if cycle := _shortest(graph, start):
            found.setdefault(frozenset(edge.source for edge in cycle), cycle)
    return list(found.values())


def _shortest(graph: Mapping[str, Mapping[str, Import]], start: str) -> list[Import]:
    """The shortest way from a module back to itself; empty if there is none."""
    came: dict[str, Import] = {}
    waiting = deque([start])
    while waiting:
        for target, edge in graph.get(waiting.popleft(), {}).items():
            if target not in came:
                came[target] = edge
                waiting.append(target)
            if target == start:
                way = [edge]
                while way[0].source != start:
                    way.insert(0, came[way[0].source])
                return way
    return []


# --- Sizes ----------------------------------------------------------------------------------------


def long_functions(module: Module, most: int) -> Iterator[str]:
    """Functions of more lines of code than `most` whose body does not number its steps (`# 1.`)."""
    lines = module.source.splitlines()
    tree = module.tree
    silent = {i for i, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(node, clean=False) is not None:
            silent.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            inside = range(node.lineno, (node.end_lineno or 0) + 1)
            code = len(set(inside) - silent)
            narrated = any(re.match(r"\s*# 1\.", lines[i - 1]) for i in inside)
            if code > most and not narrated:
                place = f"{module.path}:{node.lineno}"
                yield f"{place}: {node.name} has {code} lines of code, and no numbered steps"


# --- Underscores ----------------------------------------------------------------------------------


def reached_into(module: Module, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Where a module takes an underscore name out of an object that is not one of the names `own`.

    Gives the name and a message. `super()._x` is one's own, `__x__` is Python's, `cpbpe._core` is a module.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and _name(node.func) in {"getattr", "setattr", "hasattr", "delattr"}:
            if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
                continue
            owner, name = node.args[0], str(node.args[1].value)
        else:
            continue
        if not name.startswith("_") or (name.startswith("__") and name.endswith("__")) or name == "_core":
            continue
        if isinstance(owner, ast.Name) and owner.id in own:
            continue
        if isinstance(owner, ast.Call) and _name(owner.func) == "super":
            continue
        yield name, f"{module.path}:{node.lineno}: {ast.unparse(owner)}.{name}"


_NAMED = re.compile(
    r"(?<![\w/.])(?:cpbpe|core|docs|proto|tests|benchmarks)/[\w/.]*\w\.(?:py|rs|md|proto|toml)\b"
)


def named_files(text: str) -> list[str]:
    """The paths of the project that a text names.

    >>> named_files("see `cpbpe/lazy.py` and https://example.org/docs/page.md")
    ['cpbpe/lazy.py']
    """
    return _NAMED.findall(text)
