"""The command ``cpbpe``. Each subcommand has a file of its own here.

Exit codes: 0 on success; 1 if the work could not be done, with the reason on the error output; 2 if the
command was not understood; 130 if it was interrupted (Ctrl-C); 143 if it was terminated (SIGTERM).

The file of a subcommand has `parser()`, whose `parse` takes the arguments, and `run`, which does what they
say. It may have `SPELLING`, how messages spell its options; `LESS_MEMORY`, what to do if memory runs out; and
`FAILED`, its exit code if the work could not be done, where 1 has another meaning.
A `run` that was interrupted and has kept something says so in the `KeyboardInterrupt` that it raises.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, TextIO

from cpbpe.cli.output import say
from cpbpe.errors import MAKE_ROOM, NO_ROOM
from cpbpe.lazy import importing
from cpbpe.model.writing import NewFile, written
from cpbpe.spelling import spelled_as
from cpbpe.version import __version__

COMMANDS = {
    "quickstart": "train a small model on a text that comes with cpbpe, and use it",
    "encode": "turn text into ids or pieces, line by line",
    "decode": "turn ids or pieces into text",
    "tokens": "count the tokens of files, as wc counts words",
    "show": "draw the tokens of a text, in colours",
    "train": "train a model on your own text",
    "count": "count the words of a large corpus part by part, to train later",
    "pack": "encode a corpus into token files for trainers",
    "convert": "write a model in another format: tokenizer.json, a folder, ...",
    "inspect": "show what a model is, search its pieces, export them",
    "lint": "check a model: pieces that no text yields, doubtful settings",
    "compare": "what the same texts cost with several models",
    "view": "show tokens in a browser: coloured, compared, merge by merge",
    "diff": "what is different between two models",
    "edit": "add, learn, remove or merge pieces, and prove what that changes",
    "learn": "write BPE yourself, function by function, and have it tried",
    "spm": "the programs of sentencepiece, flag for flag",
    "completion": "print a script with which a shell completes this command",
}
"""The subcommands, each with what it does."""

_IN_PYTHON = ("load", "normalize", "align", "truncate", "split")
_DOWNLOADS = ("download", "fetch", "pull")
_MEANT = {
    "version": "--version",
    **dict.fromkeys(("enc", "ids", "pieces", "segment"), "encode"),
    **dict.fromkeys(("tokenize", "tokenise"), "encode show"),
    **dict.fromkeys(("wc", "token", "count-tokens", "token-count", "length"), "tokens"),
    **dict.fromkeys(("draw", "print", "display", "colour", "color", "colours", "colors"), "show"),
    **dict.fromkeys(("dec", "detokenize", "untokenize", "text"), "decode"),
    **dict.fromkeys(("complete", "completions", "bash-completion"), "completion"),
    **dict.fromkeys(("info", "vocab"), "inspect"),
    **dict.fromkeys(("export", "import", "save"), "convert"),
    **dict.fromkeys(("difference", "delta", "changes"), "diff"),
    **dict.fromkeys(("extend", "add", "prune", "trim", "merge", "truncate", "resize", "grow"), "edit"),
    **dict.fromkeys(("cost", "costs", "price", "fertility", "versus"), "compare"),
    **dict.fromkeys(("check", "validate", "doctor", "audit"), "lint"),
    **dict.fromkeys(("page", "serve", "browse", "playground", "visualize", "web", "ui"), "view"),
    **dict.fromkeys(("spm_train", "spm_encode", "spm_decode", "spm_normalize", "spm_export_vocab"), "spm"),
    **dict.fromkeys(("learn-bpe", "fit", "build"), "train"),
    **dict.fromkeys(("exercise", "exercises", "course", "lesson", "ladder"), "learn"),
    **dict.fromkeys(("demo", "example", "tour", "start", "test", "try"), "quickstart"),
}

_OVERVIEW = """\
usage: cpbpe COMMAND [options]

Tokenizers as Llama, Mistral and GPT use them, of SentencePiece and byte-level
BPE models: training them, and encoding and decoding with them.

commands:
{commands}

options:
  -h, --help   show this text; 'cpbpe help COMMAND' explains a command
  --version    show the version

Where a command takes files, - is the standard input. There are colours on a
terminal only, and none if the environment variable NO_COLOR is set.

If you are new here, type 'cpbpe quickstart'.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    >>> main(["train", "no such file", "--out", "my"])
    1
    """
    files: list[NewFile] = []
    asked = written.set(files)
    signals = Signals()
    signals.begin()
    try:
        code = _ended(list(sys.argv[1:] if arguments is None else arguments))
        signals.is_over()
    except BaseException as error:
        signals.is_over()
        behind = _signal_behind(error)
        if behind is None:
            raise
        if isinstance(behind, SystemExit):
            raise behind from None
        names = [file.name for file in files if file.is_in_place]
        were = "was" if len(names) == 1 else "were"
        kept = f"{', '.join(names)} {were} written" if names else "nothing was written"
        code = _fail(f"interrupted; {str(behind) or kept}", 130)
    finally:
        signals.is_over()
        written.reset(asked)
        if arguments is not None:  # (otherwise Python ends now)
            signals.end()
    return code


def _ended(arguments: list[str]) -> int:
    """Run the command, and write the last of its output while a failure of that can still be reported."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            if isinstance(sys.stdout.buffer, io.FileIO):
                sys.stdout = _by_lines(sys.stdout)
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack characters of pieces
        code = _run(arguments)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()  # now, because Python would show a failure at exit as a traceback
        except BrokenPipeError:
            if not code:
                raise
            _discard_output()  # (whoever has enough of an output with bad news still gets their exit code)
        return code
    except BrokenPipeError:  # the reader of the output, such as `head`, has stopped reading
        _discard_output()
        return 0
    except OSError as error:  # from the flush: the disk is full
        _discard_output()
        return _fail(_describe(error), 1)


def _by_lines(out: io.TextIOWrapper) -> io.TextIOWrapper:
    """An output that has no buffer (`python -u`, PYTHONUNBUFFERED), but line by line.

    Without a buffer, Python takes no notice if a disk has room only for the first part of what is written.
    """
    return open(out.fileno(), "w", 1, encoding=out.encoding, errors=out.errors, closefd=False)


def _run(arguments: list[str]) -> int:
    # 1. Arguments that are not a command.
    if not arguments:
        print(_overview(), end="", file=sys.stderr)
        return 2
    if arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    name, *rest = arguments
    if name in ("-h", "--help"):
        print(_overview(), end="")
        return 0
    if name in ("--version", "-V", "-v"):
        print(f"cpbpe {__version__}")
        return 0
    if name not in COMMANDS:
        return _not_understood(_no_such_command(name), "cpbpe --help")
    # 2. The command.
    with importing:
        from cpbpe.cli.parsing import Flags, HelpShown, NotUnderstoodError

        command = import_module(f"cpbpe.cli.{name}")
    with spelled_as(getattr(command, "SPELLING", None) or Flags()):
        try:
            return _guarded(command, command.parser().parse(rest))
        except HelpShown:
            return 0
        except NotUnderstoodError as error:
            return _not_understood(str(error), f"cpbpe {name} --help")


def _overview() -> str:
    commands = "\n".join(f"  {name:<12} {does}" for name, does in COMMANDS.items())
    return _OVERVIEW.format(commands=commands)


def _no_such_command(name: str) -> str:
    with importing:
        from cpbpe.foreign import closest
    if name.startswith("-"):
        if close := closest(name, ("--help", "--version")):
            return f"there is no option {name}; did you mean {close}?"
        return f"the command comes first, before options such as {name}: cpbpe train ..."
    if name in _IN_PYTHON:
        return f"there is no command {name!r}: it is for Python, where cpbpe.load('my.model') has methods"
    if name in _DOWNLOADS:
        return f"there is no command {name!r}: cpbpe downloads nothing; it takes the files that you have"
    if name in _MEANT:
        meant = " or ".join(map(repr, _MEANT[name].split()))
        return f"there is no command {name!r}; did you mean {meant}?"
    if os.path.exists(name):
        if name.endswith(".model"):
            return f"there is no command {name!r}; to encode with this model, type: cpbpe encode {name}"
        return f"there is no command {name!r}; to train on these files, type: cpbpe train {name} --out my"
    if close := closest(name.lower(), COMMANDS, 0.6):
        return f"there is no command {name!r}; did you mean {close!r}?"
    return f"there is no command {name!r}; there are {', '.join(COMMANDS)}"


def _guarded(command: Any, options: object) -> int:
    failed = getattr(command, "FAILED", 1)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code: int = command.run(options)
        with suppress(BrokenPipeError):  # (for `_ended`, where it comes again)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, so that a full disk has the exit code of the command
        return code
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        if _signal_behind(error) is not None:
            raise
        if _is_full_output(error):
            _discard_output()  # so that the rest of it does not fail again
        return _fail(_describe(error), failed)
    except MemoryError:
        less = getattr(command, "LESS_MEMORY", "")
        return _fail(f"there is not enough memory{less and f'; {less}'}", failed)


def _is_full_output(error: BaseException) -> bool:
    """Whether there was no room for the standard output. (An error about a file has the file's name.)"""
    return isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None


def _describe(error: BaseException) -> str:
    if isinstance(error, OSError) and _is_full_output(error):
        return f"the standard output: {error.strerror}; {MAKE_ROOM}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__


def _fail(message: str, code: int) -> int:
    say(message)
    return code


def _not_understood(message: str, help: str) -> int:
    return _fail(f"{message}\nType '{help}' for help.", 2)


def _discard_output() -> None:
    """Discard what is still to be written to the output, so that Python does not fail at exit."""
    with suppress(OSError, ValueError):  # in a test, the output may not be a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as a message, without the place in the code that Python would add."""
    say(str(message).removeprefix("cpbpe "))  # `say` begins with that name


# --- Ctrl-C and SIGTERM -------------------------------------------------------------------------

_SOON = 0.01
"""After how many seconds a signal comes again, if it came at the wrong moment."""


def _signal_behind(error: BaseException | None) -> KeyboardInterrupt | SystemExit | None:
    """What a signal raised, if this is it, or if Python made another error of it.

    A lock that is interrupted while it waits says that it cannot be released, and a codec says that decoding
    failed, with the text of that in another KeyboardInterrupt.
    """
    while error is not None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)) and error.__cause__ is None:
            return error
        error = error.__context__
    return None


class Signals:
    """Ctrl-C raises KeyboardInterrupt, and SIGTERM SystemExit, so that temporary files are cleaned up.

    They are put off while a module is imported: a C extension that is interrupted there says that it cannot
    be imported, or ends the process. So are those that come while `argparse` has changed its own arguments,
    which it could not change back, or where Python only prints an exception and goes on, such as in a
    destructor. An alarm brings them again a moment later (except on Windows).
    """

    def __init__(self) -> None:
        self._is_over = self._has_alarm = False
        self._number: int = signal.SIGINT
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def begin(self) -> None:
        """Handle them from now on, in the main thread, unless somebody else has chosen what they do."""
        sys.unraisablehook = self._unraisable
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        with suppress(ValueError):  # only the main thread can set a handler
            for number, handler in usual.items():
                if signal.getsignal(number) is handler:
                    self._before[number] = signal.signal(number, self)

    def is_over(self) -> None:
        """Ignore them from now on: nothing is left to interrupt, and Python would show a traceback."""
        self._is_over = True
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def end(self) -> None:
        """Let everything be as before."""
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; that of the alarm stands for the one that came before it."""
        if number in (signal.SIGINT, signal.SIGTERM):
            self._number = number
        while frame is not None and not self._is_over:
            code = frame.f_code
            is_import = code.co_filename.startswith("<frozen importlib")
            if (is_import or code.co_name == "parse_known_intermixed_args") and self._again():
                return
            frame = frame.f_back
        if not self._is_over:
            raise KeyboardInterrupt if self._number == signal.SIGINT else SystemExit(128 + self._number)

    def _again(self) -> bool:
        """Let the signal come again in a moment; false if this system cannot."""
        if not hasattr(signal, "setitimer"):  # Windows
            return False
        before = signal.signal(signal.SIGALRM, self)
        if not self._has_alarm:
            self._before[signal.SIGALRM], self._has_alarm = before, True
        signal.setitimer(signal.ITIMER_REAL, _SOON)
        return True

    def _unraisable(self, failed: Any) -> None:
        is_ours = failed.exc_type in (KeyboardInterrupt, SystemExit)
        if not is_ours or not (self._is_over or self._again()):
            self._hook(failed)
