"""A process that has imported the command, and forks for each run of it; the run meets a fault on its way.

`processes.Prepared` starts it and talks to it: a request in a line of JSON, an answer in another. A fault is

- a signal, that comes "after" some seconds, or at the "step" of that number: each call that changes something
  on the disk is a step, and so is the return of one that moved a file;
- a "limit" on the size of files, beyond which writing fails (with the signal SIGXFSZ: ends the process);
- a reader that stops "reading" the output after some bytes, or outputs that are "closed";
- a file that is "changed": `[path, content]`, or None for one that is removed, all after some seconds.
"""

import gc
import inspect
import itertools
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Any, NoReturn

from cpbpe.cli import main

Request = dict[str, Any]
NOT_BEGUN = 77
"""The exit code of a run that a signal found before the command began."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONGEST = 100
"""Seconds after which a run is given up."""


def tell(pipe: int, what: object) -> None:
    os.write(pipe, json.dumps(what).encode())


def steps_taken(act: Callable[[], None], number: int) -> Callable[[], int]:
    """Act at the step of this number, counted from 0. Returns a function that says how many there were."""
    count = itertools.count()
    taken = 0

    def step() -> None:
        nonlocal taken
        taken = next(count) + 1
        if taken == number + 1:
            act()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            changes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and arguments[0] != os.devnull
        else:
            changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod")
        if changes:
            step()

    replace = os.replace

    def replaced(*paths: Any, **options: Any) -> None:
        replace(*paths, **options)
        step()

    sys.addaudithook(audit)
    os.replace = replaced
    return lambda: taken


def perform(request: Request, told: int) -> NoReturn:
    """Run the command in this process, and end as it does."""
    # 1. Where it runs, and what it writes to.
    os.setpgid(0, 0)  # as a shell does: Ctrl-C is for this process and those that it starts
    os.chdir(request["cwd"])
    os.environ["TMPDIR"] = request["temporary"]
    tempfile.tempdir = None
    for name in request.get("closed", ()):
        os.close({"stdout": 1, "stderr": 2}[name])
        setattr(sys, name, None)
    if "limit" in request:
        how = signal.SIG_DFL if request.get("signal") == signal.SIGXFSZ else signal.SIG_IGN
        signal.signal(signal.SIGXFSZ, how)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], resource.RLIM_INFINITY))
    number = request.get("signal", 0)
    taken = steps_taken(lambda: os.kill(os.getpid(), number), request.get("step", -1))
    # 2. The run.
    arguments = request["arguments"]
    code = NOT_BEGUN
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until it begins indeed
    tell(told, "begins")
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if arguments[0] == "python":
            exec(arguments[1], {})
            code = 0
        else:
            sys.argv = ["cpbpe", *arguments]
            code = main()
        if request.get("tells"):
            tell(told, {"steps": taken(), "modules": list(sys.modules)})
        if request.get("ends"):
            sys.exit(code)  # (here, so that what comes later is the end of Python and nothing else)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(code)  # The end of Python takes tenths of a second with so many modules.
    except KeyboardInterrupt as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None and not is_before(trace.tb_next):
            raise
        os._exit(code)  # it came before the command, or after it


def is_before(trace: TracebackType) -> bool:
    """Whether a signal came before the command had its handlers for them, in the first lines of `main`."""
    if trace.tb_frame.f_code is signal.pthread_sigmask.__code__:
        return True
    lines = inspect.getsource(main).splitlines()
    begins = next(number for number, line in enumerate(lines) if line.strip() == "signals.begin()")
    return trace.tb_frame.f_code is main.__code__ and trace.tb_lineno <= main.__code__.co_firstlineno + begins


def watched(request: Request) -> Request:
    """Fork, watch the run, and say what came of it; in the forked process, end as the run ends."""
    pipes = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if not pid:
        (_, told), (_, out), (_, err) = pipes
        file = (
            os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if "output" in request else out
        )
        for ours, theirs in enumerate((os.open(os.devnull, os.O_RDONLY), file, err)):
            os.dup2(theirs, ours)
        for pipe in {*sum(pipes, ())} - {told}:
            os.close(pipe)
        perform(request, told)
    for _, ours in pipes:
        os.close(ours)
    (told, _), (out, _), (err, _) = pipes
    read: dict[int, bytes] = {told: b"", out: b"", err: b""}
    most = request.get("reading")
    if most == 0:
        os.close(out)
    waiting = [told, err, *([out] if most != 0 else [])]
    # 1. It begins, and after a while the fault comes.
    read[told] += os.read(told, len('"begins"'))
    begun = time.monotonic()
    due = begun + request["after"] if "after" in request else None
    # 2. Until all it has written is read.
    hit = False
    while waiting:
        now = time.monotonic()
        if due is not None and now >= due:
            hit, due = fault(request, pid), None
        if now > begun + LONGEST:
            os.killpg(pid, signal.SIGKILL)
            raise TimeoutError(request, read)
        ready = select.select(waiting, [], [], 1 if due is None else max(0, min(1, due - now)))[0]
        for pipe in ready:
            size = 1 << 16 if pipe != out or most is None else min(1 << 16, most - len(read[out]))
            part = os.read(pipe, size)
            read[pipe] += part
            if not part or (pipe == out and most is not None and len(read[out]) >= most):
                waiting.remove(pipe)
                os.close(pipe)
    seconds = time.monotonic() - begun
    status = os.waitpid(pid, 0)[1]
    answer: Request = {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "hit": hit}
    answer |= {"out": read[out].decode(errors="replace"), "err": read[err].decode(errors="replace")}
    with suppress(ValueError):
        answer |= json.loads(read[told].removeprefix(b'"begins"'))
    return answer


def fault(request: Request, pid: int) -> bool:
    """What happens after a while; whether it came in time."""
    if "changed" in request:
        path, content = os.path.join(request["cwd"], request["changed"][0]), request["changed"][1]
        if content is None:
            os.unlink(path)
        elif isinstance(content, int):
            os.truncate(path, content)
        else:
            how = "ab" if request["changed"][2] == "grows" else "wb"
            target = f"{path}.new" if request["changed"][2] == "replaced" else path
            with open(target, how) as file:
                file.write(content.encode("latin-1"))
            os.replace(target, path)
        return True
    with suppress(ProcessLookupError):
        os.killpg(pid, request["signal"])
    return True


def serve() -> None:
    """Answer requests until there are no more."""
    # The runs have 0, 1 and 2 for themselves.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in requests:
        request = json.loads(line)
        if "modules" in request:
            for name in request["modules"]:
                with suppress(ImportError):
                    import_module(name)
            answer: Request = {}
            gc.freeze()  # (so that forks do not copy what a collection would write to)
        else:
            answer = watched(request)
        os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    serve()
