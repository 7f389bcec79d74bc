"""Every example in the documentation runs: README.md and the docstrings of the package.

They run in a folder that holds a `tokenizer.model`, Mistral 7B's as mistral-common carries it.
"""

import doctest
import importlib
from pathlib import Path

import pytest

from tests import zoo

ROOT = Path(__file__).parents[1]
MODULES = sorted(path.stem for path in (ROOT / "cpbpe").glob("*.py") if "pb2" not in path.stem)


@pytest.fixture(autouse=True)
def _folder(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.model").write_bytes(zoo.model("tokenizer.model.v1"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module("cpbpe" if name == "__init__" else f"cpbpe.{name}")
    assert doctest.testmod(module).failed == 0


def test_readme() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 20
