"""Every example in the documentation runs, and every link leads somewhere.

The examples of docs/*.md, of CONTRIBUTING.md and of docstrings, and the commands in blocks of ```console,
run in a folder that holds a `tokenizer.model`, Mistral 7B's from mistral-common, and a `corpus.txt`, which
is the LICENSE. For those of docs/learn there are also the vocabularies of GPT-2 and GPT-4. The examples of
README.md run in an empty folder, after the README's own command has put the model there.
"""

import doctest
import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from benchmarks import chart, table
from cpbpe import Tokenizer, load
from cpbpe.engine.choice import load_engine
from cpbpe.engine.protocol import Engine
from cpbpe.version import __version__
from tests.conftest import ENGINES
from tests.support import processes, wheels, zoo
from tests.support.budget import MUCH
from tests.support.node import CORE

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "cpbpe").rglob("*.py") if "pb2" not in path.stem)
COURSE = sorted((ROOT / "docs" / "learn").glob("[0-9]*.md"))
DOCS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITHOUT_EXAMPLES = {"evidence", "glossary", "unsafe"}
PAGES = sorted({*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *DOCS})
MODULES = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@cache
def _loaded(engine: str, data: bytes) -> Engine:
    """The engine for a file, which hundreds of examples load: it does not change, so they can share it."""
    return load_engine(data)


@pytest.fixture
def _folder(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpbpe.tokenizer.identity.load_engine", partial(_loaded, engine))
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("tokenizer.model.v1"))
    (tmp_path / "corpus.txt").write_bytes((ROOT / "LICENSE").read_bytes())
    monkeypatch.chdir(tmp_path)


def _skip_without_wasm(name: str) -> None:
    """The examples of these make the page of `cpbpe view`. Under CI it is an error if they cannot."""
    if name in ("cpbpe.tools.page", "showing") and not CORE.exists() and not os.environ.get("CI"):
        pytest.skip("there is no engine.wasm, which .ci/wasm makes")


usual_engine = pytest.mark.parametrize("engine", ENGINES if MUCH else ENGINES[:1], indirect=True)
"""Other tests compare the engines. Examples are the same on both, and take minutes on the slow one."""


@usual_engine
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    _skip_without_wasm(name)
    module = importlib.import_module(name)
    # Two of the files that `Tokenizer` is made of cannot import it.
    assert doctest.testmod(module, extraglobs={"Tokenizer": Tokenizer}).failed == 0


def _other_vocabularies(folder: Path) -> None:
    """The files of GPT-2 and of GPT-4, with the names that the course gives them."""
    (folder / "gpt2").mkdir()
    (folder / "gpt2" / "vocab.json").write_bytes(wheels.content("encoder.json"))
    (folder / "gpt2" / "merges.txt").write_bytes(wheels.content("vocab.bpe"))
    (folder / "cl100k_base.tiktoken").write_bytes(wheels.content("cl100k"))


@usual_engine
@pytest.mark.usefixtures("_folder")
def test_pictures_of_the_course(tmp_path: Path) -> None:
    """They are what docs/learn/pictures.py draws, and each chapter shows its own."""
    _other_vocabularies(tmp_path)
    course = runpy.run_path(str(ROOT / "docs" / "learn" / "pictures.py"))
    files = [tmp_path / name for name in ("tokenizer.model", "gpt2", "cl100k_base.tiktoken", "corpus.txt")]
    chapters = {page.stem.partition("-")[2]: page.read_text(encoding="utf-8") for page in COURSE}
    drawn = course["pictures"](*files)
    assert drawn.keys() == chapters.keys()
    for name, picture in drawn.items():
        assert (ROOT / "docs" / "images" / f"learn-{name}.svg").read_text(encoding="utf-8") == picture
        assert f"](../images/learn-{name}.svg)" in chapters[name]
    # One of them moves. For readers who want no motion it is the same rows at rest.
    at_rest = drawn["bpe-by-hand"]
    for added in (
        r"<style>\n@media \(prefers-reduced-motion: no-preference\) (?s:.*?)</style>\n",
        r'<g class="slide\d" style="[^"]*" opacity="0">\n.*\n.*\n</g>\n',
        r'<g class="show\d">\n|(?<=</text>\n)</g>\n',
    ):
        assert re.search(added, at_rest)
        at_rest = re.sub(added, "", at_rest)
    rows = course["merges"](load("tokenizer.model"), "lowest")
    assert at_rest == course["drawn"](re.findall("<title>(.*)</title>", at_rest)[0], rows)


@usual_engine
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_pages(page: Path, tmp_path: Path) -> None:
    _skip_without_wasm(page.stem)
    if page.parent.name == "learn":
        _other_vocabularies(tmp_path)
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert (result.attempted > 5) != (page.stem in WITHOUT_EXAMPLES)


def sessions(page: Path) -> list[tuple[str, str]]:
    """The commands of a page's blocks of ```console, each with what it prints."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            found.append((command, printed))
    return found


CONSOLES = [page for page in DOCS if sessions(page)]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@usual_engine
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.stem)
def test_consoles(page: Path) -> None:
    """What stands after `$ ` is typed, and prints what stands below it; `...` is anything."""
    shell = f'cpbpe() {{ {shlex.quote(sys.executable)} -m cpbpe "$@"; }}; '
    checker = doctest.OutputChecker()
    for command, printed in sessions(page):
        done = subprocess.run(
            ["bash", "-c", shell + command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=processes.environment(),
            timeout=100,
            check=False,
        )
        same = checker.check_output(printed, done.stdout.decode(), doctest.ELLIPSIS)
        assert same, f"$ {command}\n{done.stdout.decode()}"


@pytest.mark.usefixtures("engine")
def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    monkeypatch.chdir(tmp_path)
    # What the first of its two commands for a model leaves, and then the second.
    assert "\npip install --no-deps --target mistral mistral-common\npython -c" in text
    data = tmp_path / "mistral" / "mistral_common" / "data"
    data.mkdir(parents=True)
    (data / "tokenizer.model.v1").write_bytes(zoo.model("tokenizer.model.v1"))
    (command,) = [line for line in text.splitlines() if line.startswith("python -c ")]
    subprocess.run([sys.executable, *shlex.split(command)[1:]], check=True)
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 20


def test_the_figures_are_those_of_the_results() -> None:
    """The first table of docs/performance.md, README's table and its chart."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "\n".join([table.BEGIN, *table.speeds(results)]) in page
    for scheme in chart.COLOURS:
        drawn = (ROOT / "docs" / "images" / f"speed-{scheme}.svg").read_text(encoding="utf-8")
        assert drawn == chart.drawn(results, scheme), "run python -m benchmarks.chart benchmarks/results.json"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = {r["case"]: r for r in results["results"] if r["corpus"] == chart.CORPUS}
    names = ("cpbpe", "sentencepiece", "tokenizers", "gigatoken")
    for case in ("list", "first_list", "arrays_2", "decode", "string_list"):
        libraries, unit = measured[case]["libraries"], measured[case]["unit"]
        cells = [table.cell(libraries[name], name == "cpbpe") for name in names]
        shown = [cell if cell == "–" else f"{cell} ×" for cell in cells[1:]]
        assert table.row([f"{cells[0]} {unit}", *shown]) in readme, case


# --- Links -----------------------------------------------------------------------------------------


def links(page: Path) -> Iterator[str]:
    """The targets of the links and pictures on a page, outside of blocks of code."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.finditer(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", prose)
    return (match[1] or match[2] for match in found)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {link}, which does not exist"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}, which has no such heading"


def test_every_page_can_be_reached() -> None:
    """From the README, which lists them all, and those at the root; or from the first page of the course."""
    listed = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in (ROOT / "README.md", COURSE[0])
        for link in links(page)
    }
    assert not {*PAGES} - {ROOT / "README.md"} - listed


def test_numbers_of_models() -> None:
    """What README.md and docs/exactness.md say about the models of the tests."""
    exactness = (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8")
    claim = f"{len(zoo.NAMES)} models"
    assert claim in exactness
    assert claim in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"- {len(zoo.TRAINED)} that the tests train" in exactness
    assert f"- {len(zoo.EDITED)} that are edited by hand" in exactness


def test_one_version() -> None:
    """The package, its core, its citation and the newest release of the changelog have the same one."""
    text = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in ("CHANGELOG.md", "CITATION.cff", "core/Cargo.toml", "core/Cargo.lock")
    }
    released = re.search(r"^## (\d.*) - (\d{4}-\d\d-\d\d)$", text["CHANGELOG.md"], re.MULTILINE)
    assert released is not None
    cited = re.search(r'^version: (.*)\ndate-released: "(.*)"$', text["CITATION.cff"], re.MULTILINE)
    assert cited is not None
    assert cited.groups() == released.groups()
    locked = re.findall(r'^name = "cpbpe.*"\nversion = "(.*)"$', text["core/Cargo.lock"], re.MULTILINE)
    shared = re.findall(r'^version = "(.*)"$', text["core/Cargo.toml"], re.MULTILINE)
    assert {*locked, *shared, released[1]} == {__version__}


def test_the_site_has_every_page() -> None:
    """The navigation of mkdocs.yml names each page of docs/ once."""
    named = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    generated = ["index.md", "api.md", "contributing.md", "security.md", "changelog.md"]
    assert sorted(named) == sorted([*pages, *generated])
