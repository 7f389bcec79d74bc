"""Both engines are tested, each where the other is: `engine` makes a test run once with each.

Where the core was not built, only the reference is tested, and the report says so; under CI that is an error.
"""

import ctypes
import functools
import importlib.util
import os
import shlex
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.support import budget, zoo
from tests.support.browser import MISSING

CORE = importlib.util.find_spec("cpbpe._core") is not None
CHOSEN = os.environ.get("CPBPE_ENGINE")
ENGINES = ["core", "reference"] if CORE or os.environ.get("CI") else ["reference"]


KEPT = type(functools.cache(str))
COMPARED = ("test_parity.py", "test_goldens.py")
"""The files whose tests have all real models."""
MOST_MEMORY = 1.5e9 * (4 if "libasan" in os.environ.get("LD_PRELOAD", "") else 1)
"""Bytes that a process of the tests may take. `-n auto` on eight cores has eight of them, and maybe 16 GB."""


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
    usual = f"; only compared with sentencepiece without CPBPE_EXAMPLES: {', '.join(zoo.SIMILAR)}"
    usual = usual if zoo.SIMILAR else ""
    return f"cpbpe engines: {engines}; torch: {torch}; browser: {page}; clusters: {scale}{usual}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # (What cannot be set up was not tried.)
    budget.FAILED.update([report.nodeid] if report.failed and report.when == "call" else [])


def pytest_sessionfinish(session: pytest.Session) -> None:
    arguments = shlex.join(map(str, session.config.invocation_params.args))
    budget.record(f"python -m pytest {arguments}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave three of the real models to the core, and to the tests that compare it with sentencepiece.

    Everywhere they would take a seventh of the time.
    """
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        chosen = getattr(getattr(item, "callspec", None), "params", {})
        is_similar = any(isinstance(value, str) and value in zoo.SIMILAR for value in chosen.values())
        is_similar &= chosen.get("engine") == "reference" or item.path.name not in COMPARED
        (left_out if is_similar else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(scope="module", autouse=True)
def _freed() -> Iterator[None]:
    """What the tests of a file made and kept goes with them.

    Otherwise a process would keep every model on both engines to the end: 4.7 GB. The files that `zoo`
    trained stay, which are small and take long to make.
    """
    before = most_memory()
    yield
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.") and name != "tests.support.zoo":
            for value in vars(module).values():
                if isinstance(value, KEPT):
                    value.cache_clear()
        if name in ("tiktoken.registry", "cpbpe.compat.tiktoken.registry"):
            module.ENCODINGS.clear()
    if sys.platform == "linux":  # what is free goes back to the system, which malloc would keep for later
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    assert not before <= MOST_MEMORY < most_memory(), "this file takes too much memory"


def most_memory() -> float:
    """The most that this process or one that it started has ever taken."""
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    ends = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in ends)


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
