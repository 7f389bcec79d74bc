"""Python in a process of its own, with the same cpbpe as the test that starts it.

That may be the sources of this checkout or a package that was installed. Neither is certain to be what Python
finds by itself: it looks first in the folder where it is started.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cpbpe

HOME = Path(cpbpe.__file__).parents[1]
"""The folder that holds the package `cpbpe` that is tested."""


def environment(**changes: str) -> dict[str, str]:
    """The variables of this process, changed so that another one finds the same cpbpe."""
    paths = [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **changes}


def start(*arguments: str | Path, cwd: Path = HOME, **options: Any) -> subprocess.Popen[bytes]:
    """A process that runs Python, as `subprocess.Popen` makes it."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, **{"env": environment(), **options})


def run(*arguments: str | Path, cwd: Path = HOME, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run Python to its end, and keep what it writes."""
    command = [sys.executable, *map(str, arguments)]
    given = {"env": environment(), "capture_output": True, "timeout": 100, **options}
    return subprocess.run(command, cwd=cwd, check=False, **given)


def output(*arguments: str | Path, **options: Any) -> str:
    """Run Python, which must succeed: what it wrote to stdout."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
