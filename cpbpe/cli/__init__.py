"""The command ``cpbpe``. Each subcommand has a file of its own here.

Exit codes: 0 when all went well; 1 when the work could not be done, with the reason on the error output; 2
when the command was not understood; 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TextIO


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    >>> main(["train", "no such file", "--out", "my"])
    1
    """
    from cpbpe.cli import count, quickstart, train
    from cpbpe.version import __version__

    parser = argparse.ArgumentParser(
        prog="cpbpe", description="SentencePiece BPE tokenizers: train them, exactly as sentencepiece does."
    )
    parser.add_argument("--version", action="version", version=f"cpbpe {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    train.add_to(commands)
    count.add_to(commands)
    quickstart.add_to(commands)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has printed why
        return stop.code if isinstance(stop.code, int) else 2
    if options.command is None:
        parser.print_help()
        return 2
    return _guarded(options)


def _guarded(options: argparse.Namespace) -> int:
    before = None
    with suppress(ValueError):  # it is not the main thread
        before = signal.signal(signal.SIGTERM, _terminate)  # so that temporary files are cleaned up
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code: int = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return 1
    except (ValueError, OSError, ImportError) as error:
        return _fail(_describe(error), 1)
    except MemoryError:
        return _fail("there is not enough memory; --memory-limit makes counting use less", 1)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _describe(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _fail(message: str, code: int) -> int:
    print(f"cpbpe: {message}", file=sys.stderr)
    return code


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as people like to read it, without a line of code."""
    print(f"cpbpe: {message}", file=sys.stderr)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
