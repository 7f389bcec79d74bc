"""The command `cpbpe` on a terminal."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.support import processes

COLUMNS = 60
"""How wide the terminal is."""


def run_on_terminal(
    *arguments: str, rich: bool, out: str = "file", before_bar: float = 0.0
) -> tuple[bytes, bytes]:
    """Run the command in this folder, its stderr on a terminal: what it showed there, and its stdout.

    `rich`: whether it finds the packages that draw better bars than ours, if they are installed. `out`:
    where its stdout goes, to a "file", a "pipe" or the same "terminal". `before_bar`: for how many seconds
    it works before there may be a bar.
    """
    # (Windows has none of these.)
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, COLUMNS, 0, 0))
    hidden = "sys.modules |= dict.fromkeys(['rich', 'rich.console', 'rich.progress', 'tqdm']); "
    code = (
        f"import sys; {'' if rich else hidden}from cpbpe.training import progress; "
        f"progress.BEFORE_BAR = {before_bar}; from cpbpe.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = processes.environment(NO_COLOR="1", TERM="xterm")
    environment.pop("COLUMNS", None)
    with tempfile.TemporaryFile() as file:
        stdout = {"file": file, "pipe": subprocess.PIPE, "terminal": theirs}[out]
        with processes.start(
            "-c", code, *arguments, cwd=Path.cwd(), stderr=theirs, stdout=stdout, env=environment
        ) as process:
            os.close(theirs)
            shown = _read(ours)
            written = b"" if process.stdout is None else process.stdout.read()
            assert process.wait(60) == 0
        file.seek(0)
        return shown, written or file.read()


def _read(terminal: int) -> bytes:
    """All that is shown on a terminal until it is closed."""
    shown = b""
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    return shown
