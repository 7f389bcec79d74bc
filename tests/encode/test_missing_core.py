"""Why the compiled core is not used: the true reason, and the way out."""

import os
import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import cpbpe
from cpbpe.engine.choice import why_no_core
from tests.bytes.models import made
from tests.conftest import CORE
from tests.support import processes, zoo

PACKAGE = Path(cpbpe.__file__).parent
MODEL = zoo.real_path(zoo.REAL[0])
# Where cpbpe was installed in place (pip install -e), a finder of setuptools knows the core of that place.
LOAD = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder)]
import cpbpe
print(cpbpe.load(sys.argv[1]).encode('Hello'))
"""
MISSING = ModuleNotFoundError("No module named 'cpbpe._core'", name="cpbpe._core")


def sources(folder: Path) -> Path:
    """A copy of the package without its core, as a checkout has it."""
    ignored = shutil.ignore_patterns("_core.*.so", "_core.*.pyd", "__pycache__")
    return shutil.copytree(PACKAGE, folder / "cpbpe", ignore=ignored)


def load(cwd: Path, *paths: Path | str, **changes: str) -> tuple[str, str]:
    """What Python writes, started in a folder, when it loads a model and encodes with it."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **changes}
    variables.pop("CPBPE_ENGINE", None)
    done = processes.run("-c", LOAD, MODEL, cwd=cwd, env=variables)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip(), " ".join(done.stderr.decode().split())


@pytest.mark.skipif(not CORE, reason="nothing is shadowed where there is no core")
def test_sources_that_hide_the_installed_core(tmp_path: Path) -> None:
    """Python imports from the folder where it is started; the core is where cpbpe was installed."""
    here = sources(tmp_path)
    ids, warning = load(tmp_path, processes.HOME)
    assert ids == "[22557]"
    assert f"Python imports cpbpe from {here}, where no core was compiled, and not from {PACKAGE}" in warning
    assert f"Start Python in another folder than {tmp_path}" in warning
    assert f"pip install -e {tmp_path}" in warning
    assert "Rust" not in warning
    assert warning.startswith(
        "<string>:5: RuntimeWarning: cpbpe runs on its reference engine"
    )  # the user's line


def test_a_core_that_was_never_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sources(tmp_path)
    assert why_no_core(MISSING, ["", str(tmp_path), "no/such/folder"], str(tmp_path / "cpbpe")) == (
        "the compiled core is not installed. Install cpbpe again with a Rust toolchain (https://rustup.rs), "
        "and with pip's option --no-binary cpbpe if it came from PyPI"
    )


def test_a_core_that_cannot_be_imported(tmp_path: Path) -> None:
    """It is there, but is no library of this machine."""
    core = sources(tmp_path) / f"_core{EXTENSION_SUFFIXES[-1]}"
    core.write_bytes(b"\x7fELF but not really")
    ids, warning = load(tmp_path, processes.HOME)
    assert ids == "[22557]"
    assert f"the compiled core, {core}, cannot be imported: " in warning
    assert f"Install cpbpe again on this machine, with this Python, {sys.executable}" in warning
    assert "Rust" not in warning


def test_a_core_for_another_python(tmp_path: Path) -> None:
    (tmp_path / "cpbpe").mkdir()
    (tmp_path / "cpbpe" / "_core.cpython-27-mips-plan9.so").touch()
    assert "_core.cpython-27-mips-plan9.so, is for another Python or another system" in why_no_core(
        MISSING, [], str(tmp_path / "cpbpe")
    )


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import cpbpe._core
code = '''
import cpbpe
try:
    print(cpbpe.engine_name())
except ImportError as error:
    print(error, flush=True)
'''
interpreters.run_string(interpreters.create(), code)
"""


@pytest.mark.skipif(not CORE, reason="there is no core to be refused")
def test_a_subinterpreter() -> None:
    """Some versions of Python refuse the core there, which has nothing to do with how it was installed."""
    if sys.version_info < (3, 11):
        pytest.skip("this Python's subinterpreters cannot be started from Python safely")
    said = processes.output("-c", SUBINTERPRETER, env=processes.environment(CPBPE_ENGINE="core")).strip()
    if said != "core":
        assert "cannot be imported: module cpbpe._core does not support loading in subinterpreters" in said
        assert "Use cpbpe in the main interpreter, or in processes of their own" in said


def test_the_reason_for_a_subinterpreter(tmp_path: Path) -> None:
    (tmp_path / "cpbpe").mkdir()
    (tmp_path / "cpbpe" / f"_core{EXTENSION_SUFFIXES[0]}").touch()
    for text in (
        "module cpbpe._core does not support loading in subinterpreters",
        "PyO3 modules may only be initialized once per interpreter process",
    ):
        why = why_no_core(ImportError(text), [], str(tmp_path / "cpbpe"))
        assert f"cannot be imported: {text}. Use cpbpe in the main interpreter" in why


@pytest.mark.skipif(not CORE, reason="there is no core")
@pytest.mark.parametrize("alphabet", ["characters", "bytes"])
@pytest.mark.parametrize(
    "wrong", [ValueError("no such form"), TypeError("unexpected keyword"), KeyError("blob")]
)
def test_a_core_of_another_version(alphabet: str, wrong: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error says so, and what to do; it is no fault of the model, nor of its pattern."""

    class Older:
        @staticmethod
        def from_columns(columns: object) -> None:
            raise wrong

    monkeypatch.setenv("CPBPE_ENGINE", "core")
    spec = made() if alphabet == "bytes" else small()
    monkeypatch.setattr("cpbpe._core.Engine", Older)
    with pytest.raises(RuntimeError, match="is of another version than the Python files in") as caught:
        cpbpe.Tokenizer.from_spec(spec)
    assert "Compile it again: pip install -e " in str(caught.value)
    assert str(wrong) in str(caught.value)


def small() -> cpbpe.ModelSpec:
    rows = [(b"<unk>", 0.0, cpbpe.PieceType.UNKNOWN), (b"a", -1.0, cpbpe.PieceType.NORMAL)]
    return cpbpe.ModelSpec(cpbpe.Pieces.of(rows))
