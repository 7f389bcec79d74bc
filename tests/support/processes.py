"""Python in a process of its own, with the same cpbpe as the test that starts it.

That may be the sources of this checkout or a package that was installed. Neither is certain to be what Python
finds by itself: it looks first in the folder where it is started.
"""

import json
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


class Prepared:
    """A process that has imported the command and forks for each run of it: a run takes a tenth of the time.

    `tests/support/forked.py` says what a run may meet.
    """

    def __init__(self) -> None:
        source = Path(__file__).with_name("forked.py").read_text(encoding="utf-8")
        changes = {"PYTHONUNBUFFERED": "", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = start("-c", source, env=environment(**changes), stdin=pipe, stdout=pipe)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Run the command in a fork of this process; or import "modules", for all runs that follow."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *unused: object) -> None:
        self._process.communicate()
