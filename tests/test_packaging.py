"""What users install: the files of a wheel and of a source distribution, a wheel's tag, the extras.

A core is never compiled here: a file with its name stands for it.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (
    "CHANGELOG.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "pyproject.toml",
    "setup.py",
    "core",
    "cpbpe",
    "proto",
)
WHEEL_BUILT = "from setuptools import build_meta; print(build_meta.build_wheel('dist'))"
SDIST_BUILT = "from setuptools import build_meta; print(build_meta.build_sdist('dist'))"

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_IN_ALL = {
    "all": "itself",
    "bench": "for the project",
    "dev": "for the project",
    "fuzz": "for the project",
    "site": "for the project",
    "ray": "large, and a cluster has it",
    "spark": "large, and a cluster has it",
    "test": "for the project",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that packages are made from, where they can be changed. No core is among them."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("there is no checkout")
    ignored = shutil.ignore_patterns(
        "_core.*.so", "_core.*.pyd", "engine.wasm", "__pycache__", "target", "*.cdx.json"
    )
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def built(code: str, folder: Path, **changes: str) -> Path:
    """The file that a build leaves."""
    environment = {**os.environ, "CPBPE_BUILD_CORE": "0", **changes}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return folder / "dist" / done.stdout.splitlines()[-1]


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def with_core(checkout: Path) -> None:
    """A file with the name of the core, packed as data."""
    (checkout / "cpbpe" / "_core.abi3.so").touch()
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace('"py.typed", ', '"py.typed", "*.so", '), "utf-8")
    # What `.ci/dist` writes.
    for name in ("python", "wasm"):
        (checkout / "core" / name / f"cpbpe-{name}.cdx.json").touch()
    (checkout / "LICENSE-crates.txt").touch()


def test_a_wheel_without_the_core(checkout: Path) -> None:
    """It is for every system, and holds every file of the package that git holds."""
    wheel = built(WHEEL_BUILT, checkout)
    assert wheel.name.endswith("-py3-none-any.whl")
    files = {
        path.relative_to(checkout).as_posix() for path in (checkout / "cpbpe").rglob("*") if path.is_file()
    }
    assert files - names(wheel) == set()
    assert not any("sboms" in name for name in names(wheel))


def test_a_wheel_with_the_core(checkout: Path) -> None:
    """It is for one platform and for every Python from 3.10, and says what its core is made of."""
    with_core(checkout)
    wheel = built(WHEEL_BUILT, checkout)
    version = "cp{}{}".format(*sys.version_info)
    free = sysconfig.get_config_var("Py_GIL_DISABLED")
    assert f"-{version}-{version}t-" if free else "-cp310-abi3-" in wheel.name
    assert not wheel.name.endswith("any.whl")
    ends = {name.partition(".dist-info/")[2] for name in names(wheel)}
    assert {"sboms/cpbpe-python.cdx.json", "licenses/LICENSE", "licenses/LICENSE-crates.txt"} <= ends
    assert "sboms/cpbpe-wasm.cdx.json" not in ends


def test_the_core_of_the_page(checkout: Path) -> None:
    """If it was compiled, the source distribution has it, and so has every wheel that is built from that."""
    with_core(checkout)
    (checkout / "cpbpe" / "tools" / "browser" / "engine.wasm").touch()
    with tarfile.open(built(SDIST_BUILT, checkout)) as archive:
        # (Python 3.12 and 3.13 warn if none is chosen; the first releases of 3.10 have none.)
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(checkout / "unpacked")
    [unpacked] = (checkout / "unpacked").iterdir()
    (unpacked / "cpbpe" / "_core.abi3.so").unlink(missing_ok=True)
    held = names(built(WHEEL_BUILT, unpacked))
    assert "cpbpe/tools/browser/engine.wasm" in held
    assert {name.partition("sboms/")[2] for name in held} == {"", "cpbpe-wasm.cdx.json"}


def test_a_core_of_an_earlier_build(checkout: Path) -> None:
    """setuptools leaves what it has built in the folder build/, and would pack it again."""
    with_core(checkout)
    built(WHEEL_BUILT, checkout)
    (checkout / "cpbpe" / "_core.abi3.so").unlink()
    assert built(WHEEL_BUILT, checkout).name.endswith("-py3-none-any.whl")


def test_a_wish_that_is_none(checkout: Path) -> None:
    environment = {**os.environ, "CPBPE_BUILD_CORE": "yes"}
    done = subprocess.run(
        [sys.executable, "-c", WHEEL_BUILT],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'CPBPE_BUILD_CORE=yes: it is "1" (always with the core) or "0" (never)' in done.stderr


def test_a_source_distribution(checkout: Path) -> None:
    """A wheel can be built from it: the core's sources are in it, too."""
    with tarfile.open(built(SDIST_BUILT, checkout)) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    sources = [
        path for name in ("core", "cpbpe", "proto") for path in (checkout / name).rglob("*") if path.is_file()
    ]
    assert {path.relative_to(checkout).as_posix() for path in sources} - held == set()
    assert {"setup.py", "pyproject.toml", "LICENSE", "CHANGELOG.md", "README.md"} <= held


def test_the_extra_that_stands_for_the_others() -> None:
    extras = PROJECT["optional-dependencies"]
    [everything] = extras["all"]
    assert re.fullmatch(r"cpbpe\[(.*)\]", everything)[1].split(",") == sorted(extras.keys() - NOT_IN_ALL)  # type: ignore[index]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows(workflow: Path) -> None:
    """Actions are pinned by commit, since a tag can be moved; nothing may write, except what publishes."""
    text = workflow.read_text(encoding="utf-8")
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"\$/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    assert re.search(r"^permissions:\n  contents: read\n\n", text, re.MULTILINE)
    before = text.partition("\n  publish:\n")[0]
    assert not re.search(r": write|secrets\.", before)
    for package in re.findall(r"pip install (.*)", text):
        assert all("==" in word or "." in word for word in package.split() if word[0] not in "-"), package


def test_one_pin_for_each_action() -> None:
    """A newer version comes to all workflows at once."""
    used = {action for path in WORKFLOWS for action in re.findall(r"uses: (\S+@.*)", path.read_text("utf-8"))}
    assert len({action.partition("@")[0] for action in used}) == len(used) > 0
