"""Every example in the documentation runs: README.md, the pages in docs, and the docstrings.

They run in a folder that holds a `tokenizer.model`, Mistral 7B's as mistral-common carries it, and a
`corpus.txt`, which is the package's LICENSE.
"""

import doctest
import importlib
from pathlib import Path

import pytest

from cpbpe import Tokenizer
from tests.support import tiers, zoo

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "cpbpe").rglob("*.py") if "pb2" not in path.stem)
MODULES = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.fixture(autouse=True)
def _folder(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("tokenizer.model.v1"))
    (tmp_path / "corpus.txt").write_bytes((ROOT / "LICENSE").read_bytes())
    monkeypatch.chdir(tmp_path)


@tiers.slow_reference
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    # Two of the files that `Tokenizer` is made of cannot import it.
    assert doctest.testmod(module, extraglobs={"Tokenizer": Tokenizer}).failed == 0


@tiers.slow_reference
@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_pages(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 5


def test_readme() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 20
