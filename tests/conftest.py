"""Both engines are tested, each where the other is: `engine` makes a test run once with each.

Where the core was not built, only the reference is tested, and the report says so; under CI that is an error.
"""

import importlib.util
import os
import signal

import pytest

from tests.support.browser import MISSING

CORE = importlib.util.find_spec("cpbpe._core") is not None
CHOSEN = os.environ.get("CPBPE_ENGINE")
ENGINES = ["core", "reference"] if CORE or os.environ.get("CI") else ["reference"]


def pytest_configure() -> None:
    """Hear SIGINT even where a shell started the tests in the background, which makes programs ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    torch = "there" if importlib.util.find_spec("torch") else "not there, its DataLoader is not tested"
    clusters = {"Ray": importlib.util.find_spec("ray"), "Spark": importlib.util.find_spec("pyspark")}
    missing = [name for name, spec in clusters.items() if spec is None]
    scale = f"not there, and not tested: {', '.join(missing)} (.ci/scale does)" if missing else "there"
    engines = ", ".join(ENGINES) + ("" if CORE else " (the compiled core is not there)")
    page = "there" if not MISSING else f"not there ({', '.join(MISSING)}), the page is not tested in one"
    return f"cpbpe engines: {engines}; torch: {torch}; browser: {page}; clusters: {scale}"


@pytest.fixture(autouse=True)
def _any_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that do not say which engine they mean run with the one there is, without its warning.

    `datasets` puts a copy in the place of `os.environ` when it has used several processes. What a test has
    set would stay in it for all tests that follow; so the object from before a test is there after it.
    """
    monkeypatch.setattr(os, "environ", os.environ)
    assert os.environ.get("CPBPE_ENGINE") == CHOSEN, "a test before this one has left its engine behind"
    if not CORE:
        monkeypatch.setenv("CPBPE_ENGINE", "reference")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Choose the engine of the tokenizers that the test makes."""
    name: str = request.param
    monkeypatch.setenv("CPBPE_ENGINE", name)
    return name
