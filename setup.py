"""What pyproject.toml cannot say about a wheel: whether it holds the core, and its tag, which follows.

The core is optional. Where there is no Rust toolchain, setuptools-rust leaves it out, and the wheel runs on
the reference engine on every system: `py3-none-any`. A wheel with a core is for one platform and for every
Python from 3.10: `cp310-abi3-PLATFORM`. (maturin writes such tags itself, but no wheel without a core.)
Free-threaded Pythons have no stable ABI before 3.15, so a wheel for one of them is for that version only.

CPBPE_BUILD_CORE says which one is wanted: "1" makes a missing core an error, "0" leaves it out.
"""

import os
import shutil
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

WISHES = {"": "if possible", "0": "never", "1": "always"}


def cores(folder: str) -> list[Path]:
    """The compiled core, if it is among the files in a folder that a wheel is made from."""
    return [path for path in Path(folder, "cpbpe").glob("_core.*") if path.suffix in {".so", ".pyd"}]


class Wheel(bdist_wheel):
    """A wheel whose tag says what it holds."""

    def initialize_options(self) -> None:
        """The stable ABI, where there is one."""
        super().initialize_options()
        if not sysconfig.get_config_var("Py_GIL_DISABLED"):
            self.py_limited_api = "cp310"

    def finalize_options(self) -> None:
        """Every command that builds the core asks this one for the ABI, so this comes first."""
        super().finalize_options()
        wish = os.environ.get("CPBPE_BUILD_CORE", "")
        if wish not in WISHES:
            raise SystemExit(f'CPBPE_BUILD_CORE={wish}: it is "1" (always with the core) or "0" (never)')
        for extension in getattr(self.distribution, "rust_extensions", ()):
            extension.optional = WISHES[wish] == "if possible"
        if WISHES[wish] == "never":
            self.distribution.rust_extensions = []

    def run(self) -> None:
        """A core that an earlier build has left is not packed again."""
        for core in () if self.skip_build else cores(self.get_finalized_command("build").build_lib):
            core.unlink()
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        """It is asked for when all files are in place."""
        self.root_is_pure = not cores(self.bdist_dir)
        return super().get_tag()

    def write_wheelfile(self, wheelfile_base: str, *rest: str) -> None:
        """Beside it goes what the cores were made of, if a release has written that (PEP 770)."""
        super().write_wheelfile(wheelfile_base, *rest)
        files = [*Path("core/python").glob("*.cdx.json")] if cores(self.bdist_dir) else []
        if Path(self.bdist_dir, "cpbpe/tools/browser/engine.wasm").exists():
            files += Path("core/wasm").glob("*.cdx.json")
        for file in files:
            folder = Path(wheelfile_base, "sboms")
            folder.mkdir(exist_ok=True)
            shutil.copy(file, folder)


setup(cmdclass={"bdist_wheel": Wheel})
