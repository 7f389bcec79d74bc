"""The command `cpbpe` on a terminal."""

import os
import subprocess
from pathlib import Path

from tests.support import processes

COLUMNS = 60
"""How wide the terminal is."""


def run_on_terminal(*arguments: str, rich: bool) -> tuple[bytes, bytes]:
    """Run the command in this folder, its stderr on a terminal: what it showed there, and its stdout.

    `rich`: whether it finds the packages that draw better bars than ours, if they are installed.
    """
    # (Windows has none of these.)
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, COLUMNS, 0, 0))
    hidden = "sys.modules |= dict.fromkeys(['rich', 'rich.console', 'rich.progress', 'tqdm']); "
    code = f"import sys; {'' if rich else hidden}from cpbpe.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = processes.environment(NO_COLOR="1", TERM="xterm")
    process = processes.start(
        "-c", code, *arguments, cwd=Path.cwd(), stderr=theirs, stdout=subprocess.PIPE, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.stdout is not None
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == 0
    return shown, out
