"""Tries the functions that a learner has written for an exercise of `cpbpe learn`.

The first case that fails is made as small as possible, and reported with what was expected. What a learner
writes may never end, fill the memory or end Python, so `climb_file` runs it in another process. The exercises
are in `ladder.py`.
"""

from __future__ import annotations

import ast
import faulthandler
import io
import multiprocessing
import re
import runpy
import signal
import sys
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, replace
from inspect import isfunction
from itertools import chain
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TextIO

from cpbpe.tokenizer.tokenizer import Tokenizer

SECONDS = 5
"""A call that takes longer is taken for endless."""
MEMORY = 1 << 30
"""How many bytes a reader's functions may take, where the system can limit them (Linux)."""
LONG = 200
"""A list with more members is shown by its name, and not shortened."""


class Case(NamedTuple):
    """A call that is tried."""

    name: str
    """The function."""
    arguments: tuple[Any, ...]
    """Its arguments."""
    ours: Callable[..., Any]
    """Gives what is expected, from the arguments, or raises an error if they make no sense. If several
    answers are right, it gives a function that says what is wrong with an answer."""
    remark: Callable[..., str] = lambda *_: ""
    """Gives what helps after a wrong answer, from the arguments."""


@dataclass(frozen=True)
class Rung:
    """An exercise."""

    functions: str
    """The signatures of the functions to write, a line for each."""
    task: str
    """What they do, in a few sentences."""
    examples: str
    """Calls with what they give, a line for each."""
    chapter: str
    """Where the course explains it."""
    cases: Callable[[Tokenizer | None], Iterator[Case]]
    """The cases that are tried; some need a model."""
    needs_model: bool = False
    """Whether they do."""


@dataclass(frozen=True)
class Failure:
    """A case that failed."""

    call: str
    """The call, as Python writes it."""
    given: str
    """What it gave or raised; empty while it is running."""
    expected: str
    """What was expected."""
    remark: str = ""
    """More about it, perhaps in several lines; or an empty text."""
    printed: str = ""
    """What the call printed."""


Watch = Callable[[Failure], AbstractContextManager[None]]


def climb(
    rung: Rung,
    functions: Mapping[str, Any],
    model: Tokenizer | None = None,
    watch: Watch = lambda running: nullcontext(),
    printed: TextIO | None = None,
) -> int | Failure:
    """Try the functions. Returns how many cases hold, or the first failure, as small as it can be.

    Every call runs within `watch`, and what it prints goes to `printed`. If a function is missing, it is a
    ValueError.
    """
    output = io.StringIO() if printed is None else printed
    count = 0
    for case in chain(_examples(rung, model), rung.cases(model)):
        failure = _try(rung, case, functions, watch, output)
        end = time.monotonic() + SECONDS
        smaller = _smaller(case.arguments) if failure else iter(())
        while failure and time.monotonic() < end and (arguments := next(smaller, None)):
            if found := _try(rung, case._replace(arguments=arguments), functions, watch, output):
                failure, case = found, case._replace(arguments=arguments)
                smaller = _smaller(arguments)
        if failure:
            helps = failure.remark or str(case.remark(*case.arguments))
            if "__file__" in functions:  # the same again, with nothing that an earlier call has left
                fresh = functions  # (if the file cannot run again, as if it has made a folder)
                with suppress(BaseException), redirect_stdout(output), watch(replace(failure, given="")):
                    fresh = runpy.run_path(functions["__file__"])
                if not _try(rung, case, fresh, watch, output):
                    helps = (
                        "Called alone it gives the right answer: a global or a default argument keeps "
                        "something from earlier calls."
                    )
            return replace(failure, remark=helps.strip())
        count += 1
    return count


def _examples(rung: Rung, model: Tokenizer | None) -> Iterator[Case]:
    """The calls that are printed with a rung."""
    for line in rung.examples.splitlines():
        name, arguments = line.split(" == ")[0][:-1].split("(", 1)
        case = next(case for case in rung.cases(model) if case.name == name)
        yield case._replace(arguments=ast.literal_eval(f"({arguments},)"))


def _try(
    rung: Rung, case: Case, functions: Mapping[str, Any], watch: Watch, output: TextIO
) -> Failure | None:
    """The failure of a case; None if it holds or makes no sense. A remark of the case is not yet in it."""
    # 1. The call, and what is expected.
    file, function = str(functions.get("__file__")), functions.get(case.name)
    if not callable(function):
        made = [one for one in functions.values() if isfunction(one) and one.__code__.co_filename == file]
        has = ", ".join(one.__name__ for one in made) or "none"
        raise ValueError(f"{file} has no function {case.name}; it has: {has}")
    try:
        expected = case.ours(*case.arguments)
    except Exception:
        return None
    judge = expected if callable(expected) else None
    signature = re.search(rf"^{case.name}\((.*?)\)", rung.functions, re.MULTILINE)
    names = signature[1].split(", ") if signature else []
    shown = [
        name if isinstance(value, (list, dict)) and len(value) > LONG else repr(value)
        for name, value in zip(names, case.arguments, strict=True)
    ]
    running = Failure(f"{case.name}({', '.join(shown)})", "", judge(None) if judge else _short(expected))

    # 2. The answer. The function gets copies, which show whether it changes them.
    copies = [type(value)(value) if isinstance(value, (list, dict)) else value for value in case.arguments]
    output.seek(0)
    output.truncate()
    wrong, remark, answer = running.expected, "", None
    try:
        with redirect_stdout(output), watch(running):
            answer = function(*copies)
            given = _short(answer)
            if judge:
                wrong = judge(answer)
            elif not isinstance(answer, type(expected)):
                remark = f"The type should be {type(expected).__name__}, not {type(answer).__name__}."
            elif answer == expected:
                wrong = ""
            elif unicodedata.normalize("NFC", given) == unicodedata.normalize("NFC", wrong):
                given, wrong = ascii(answer), ascii(expected)  # (they look alike)
    except BaseException as error:  # (Ctrl-C does not come here: see `_apart`)
        given, remark = _told(error, file), " "  # (a space, so that no remark about answers takes its place)

    # 3. What is wrong with it.
    for name, one, copy in zip(names, case.arguments, copies, strict=True):
        if wrong or (one == copy and not (answer is copy and isinstance(copy, list))):
            continue
        wrong = f"{given}, and {name} stays as it was" if one != copy else f"{given}, in a new list"
        given = f"{given}, and changes {name}" if one != copy else f"{given}, which is {name} itself"
        remark = "Make a new list: whoever calls the function may still need the old one."
    if not wrong:
        return None
    output.seek(0)
    return replace(running, given=given, expected=wrong, remark=remark, printed=output.read(1000))


def _smaller(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The arguments with a part of one of them left out, large parts first."""
    for place, value in enumerate(arguments):
        if not isinstance(value, (str, list, dict)) or len(value) > LONG:
            continue
        parts, size = list(value), len(value)
        while size:
            for at in range(0, len(parts), size):
                kept: Any = parts[:at] + parts[at + size :]
                if isinstance(value, str):
                    kept = "".join(kept)
                elif isinstance(value, dict):
                    # (Characters of the text, the first argument, stay: otherwise it would become bytes.)
                    kept = {key: value[key] for key in parts if key in kept or key in list(arguments[0])}
                if len(kept) < len(value):
                    yield (*arguments[:place], kept, *arguments[place + 1 :])
            size //= 2


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text):,} characters)"


def _told(error: BaseException, file: str) -> str:
    """An exception, with the line of the file that it comes from."""
    text = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == file]
    text += f" ({file} line {lines[-1]})" if lines else ""
    if "escape \\p" in text:
        text += "\nPython's re has no \\p: pip install regex, and import regex"
    return text


# --- In another process ---------------------------------------------------------------------------


def climb_file(rung: Rung, file: str, model: Tokenizer | None = None) -> int | Failure:
    """Try the functions of a file. A call that does not end is a failure, too."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    last: Any = None
    with _signals(heard=False), TemporaryDirectory() as folder, _signals(heard=True):
        what = (theirs, (SECONDS, MEMORY), folder, rung, file, model)
        process = spawn.Process(target=_apart, args=what, daemon=True)
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # (`start` does it, too, and all signals are heard afterwards)
        try:
            with _signals(heard=False):  # nor by that process: it would show a traceback while it begins
                process.start()
            theirs.close()
            with suppress(EOFError, OSError):
                while last is None or (isinstance(last, Failure) and not last.given):
                    last = ours.recv()
            process.join(1)  # (longer only if the reader has begun a thread)
        except KeyboardInterrupt:
            running = last.call if isinstance(last, Failure) else file
            raise KeyboardInterrupt(f"{running} had not returned yet") from None
        finally:
            if process.pid is not None:
                process.kill()
                process.join()
        if isinstance(last, Failure) and not last.given:  # it ended during a call
            given = f"nothing: it ends Python, with the exit code {process.exitcode}"
            if stack := Path(folder, "stack").read_text(encoding="utf-8", errors="replace"):
                name = re.escape(file.encode("ascii", "backslashreplace").decode())
                place = re.search(rf'"{name}", (line \d+)', stack)
                where = f" ({file} {place[1]})" if place else ""
                given = f"nothing: it has not returned after {SECONDS} seconds{where}"
            printed = Path(folder, "printed").read_text(encoding="utf-8", errors="replace")[:1000]
            slow = "If it is slow and not endless: look pieces up in a dict, not in a list."
            last = replace(last, given=given, printed=printed, remark=slow if rung.needs_model else "")
    if isinstance(last, str):
        raise ValueError(last)
    if not isinstance(last, (int, Failure)):
        raise ChildProcessError(f"{file} was not run: its process ended with the code {process.exitcode}")
    return last


@contextmanager
def _signals(heard: bool) -> Iterator[None]:
    """Ctrl-C and its like are heard in this block, or wait for its end, so that no folder is left behind."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    how = signal.SIG_UNBLOCK if heard else signal.SIG_BLOCK
    before = signal.pthread_sigmask(how, {signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _apart(
    pipe: Connection, limits: tuple[float, int], folder: str, rung: Rung, file: str, model: Tokenizer | None
) -> None:
    """What the other process does: send each call before it begins, and at last the result or an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which then ends this one
    with suppress(AttributeError):  # (Windows has no masks)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    stack = Path(folder, "stack").open("w", encoding="utf-8")  # noqa: SIM115 (both are open to the end)
    printed = Path(folder, "printed").open("w+", buffering=1, encoding="utf-8", errors="replace")  # noqa: SIM115

    @contextmanager
    def watch(running: Failure) -> Iterator[None]:
        pipe.send(running)
        # This ends the process on every system, even within a regular expression, and even if the first
        # process has been killed. (A signal or a trace function waits for the next line of Python.)
        faulthandler.dump_traceback_later(limits[0], exit=True, file=stack)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    sys.path.insert(0, str(Path(file).resolve().parent))  # as `python FILE` does
    try:
        with watch(Failure(file, "", "a file that ends")):
            functions = runpy.run_path(file)
    except BaseException as error:
        pipe.send(f"{file} cannot be run: {_told(error, file)}")
        return
    with suppress(ImportError, OSError, ValueError):  # (a ValueError if there is a lower limit already)
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits[1], resource.RLIM_INFINITY))
    try:
        pipe.send(climb(rung, functions, model, watch, printed))
    except ValueError as error:
        pipe.send(str(error))
