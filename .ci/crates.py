"""What a release says about the crates that are compiled into the core: their licences, and their names.

`LICENSE-crates.txt` has the texts of all licences, each of them once. `LICENSE-rust.html` is what the makers
of Rust say about its standard library, which is in the core, too. Both are written beside our own, from where
setuptools takes them into the packages. The names are what `cargo cyclonedx` finds; it writes them into
core/python, and `setup.py` takes them from there.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "core" / "python" / "Cargo.toml"
IS_LICENCE = re.compile(r"(licen[cs]e|copying|unlicense|notice|copyright)", re.IGNORECASE)


def cargo(*words: str) -> str:
    """What cargo writes about the binding, for all systems."""
    command = ["cargo", *words, "--manifest-path", str(MANIFEST)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked() -> list[dict[str, str]]:
    """The crates of others whose code is in the core; not those that only run while it is compiled."""
    tree = cargo(
        "tree", "--locked", "--edges=normal,no-proc-macro", "--target=all", "--prefix=none", "--format={p}"
    )
    names = {tuple(line.split()[:2]) for line in tree.splitlines()}
    packages = json.loads(cargo("metadata", "--locked", "--format-version=1"))["packages"]
    return [
        package
        for package in packages
        if package["source"] and (package["name"], f"v{package['version']}") in names
    ]


def licences() -> str:
    """The text of each licence, after the names of the crates that come with it."""
    crates = defaultdict(list)
    for package in linked():
        files = [
            file
            for file in sorted(Path(package["manifest_path"]).parent.iterdir())
            if IS_LICENCE.match(file.name)
        ]
        name = f"{package['name']} {package['version']} ({package['license']})"
        if not files:
            sys.exit(f"{name} comes without the text of its licence")
        for file in files:
            crates[file.read_text(encoding="utf-8").strip()].append(f"{name}: {file.name}")
    rule = "=" * 100
    parts = ["\n".join([rule, *names, rule, "", text, ""]) for text, names in crates.items()]
    return "\n".join(["The core of cpbpe holds code of these crates.\n", *parts])


def main() -> None:
    """Write them all."""
    (ROOT / "LICENSE-crates.txt").write_text(licences(), encoding="utf-8")
    rust = subprocess.run(
        ["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True
    ).stdout.strip()
    shutil.copy(Path(rust, "share", "doc", "rust", "COPYRIGHT-library.html"), ROOT / "LICENSE-rust.html")
    cargo("cyclonedx", "--format=json", "--spec-version=1.5", "--target=all", "--no-build-deps")
    for file in ROOT.glob("core/*/*.cdx.json"):
        # Our own crates are named by where they lie on this machine.
        text = file.read_text(encoding="utf-8").replace(f"path+{ROOT.as_uri()}/", "path+file:")
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
