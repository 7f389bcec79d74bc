"""What `cpbpe encode` and `cpbpe decode` share: files in, one stream out, and a summary."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from cpbpe.cli.model import HELP
from cpbpe.cli.output import check_outputs, existing, say, write_parts
from cpbpe.cli.parsing import NotUnderstoodError, Parser, whole_number
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.packing.lines import Tally

Parts = Generator[bytes | memoryview, None, None]

GUESSED = {
    "model": "the model comes first, without a name",
    "input": "the files come after the model, without a name",
    **dict.fromkeys(("output", "outfile", "out-file"), "the file of the result is named with --out"),
    "extra-options": "they are options by themselves: --add-bos, --add-eos, --reverse; 'cpbpe spm' has "
    "sentencepiece's own flags",
    **dict.fromkeys(("bos", "eos"), "it is --add-bos or --add-eos"),
    **dict.fromkeys(("workers", "jobs", "num-workers", "processes"), "it is --threads"),
    "silent": "--quiet hides everything but errors",
    "encoding": "text is UTF-8; convert it first, for example with iconv",
    **dict.fromkeys(("force", "overwrite"), "files are replaced without asking; leave it out"),
}
"""Flags that people guess."""


def add_files(parser: Parser, what: str) -> None:
    """The model, and the files."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help=HELP,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"{what}: files, folders, or patterns in quotes such as 'data/**/*.txt'; - or nothing is the "
        f"standard input. Files named .gz, .xz, .bz2 or .zst are decompressed",
    )


def add_output(parser: Parser) -> None:
    """Where the result goes, and what is said meanwhile."""
    writing = parser.add_argument_group("writing")
    writing.add_argument(
        "--out",
        "-o",
        metavar="FILE",
        help="write to this file, which appears when it is complete (default: the standard output)",
    )
    writing.add_argument(
        "--threads",
        "-t",
        type=whole_number,
        metavar="N",
        help="how many threads to use (default: one per processor)",
    )
    writing.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")
    writing.add_argument(
        "--verbose", "-v", action="store_true", help="also say which files are read, and what was done"
    )
    writing.add_argument("--json", action="store_true", help="with --out: print the summary as JSON")


def check(arguments: argparse.Namespace, example: str, option: str) -> None:
    """Refuse what makes no sense, before anything is read."""
    if arguments.model is None:
        raise NotUnderstoodError(f"there is no model; name one: {example}")
    if arguments.json and arguments.out is None:
        raise NotUnderstoodError(f"--json is about the summary, which --out FILE leaves room for; {option}")
    if arguments.out is not None and arguments.out.lower().endswith((".gz", ".xz", ".bz2", ".zst")):
        raise NotUnderstoodError(
            f"nothing is compressed here, so {arguments.out!r} would have the wrong name; leave --out out, "
            f"and pipe the output into a program that compresses"
        )


def files_of(arguments: argparse.Namespace) -> list[str]:
    """The files; the standard input if there are none."""
    if arguments.files:
        return list(arguments.files)
    if sys.stdin is not None and sys.stdin.isatty() and not arguments.quiet:
        say("reading from the keyboard; Ctrl-D on a new line ends the text")
    return ["-"]


def work(
    arguments: argparse.Namespace,
    phase: str,
    sources: Sequence[str],
    total: int | None,
    make: Callable[[Callable[[int], object]], Parts],
    tally: Callable[[], Tally],
) -> int:
    """Write all parts, with a bar on a terminal, and sum up. `make` takes a function that shows progress."""
    from cpbpe.training.progress import Display

    out = arguments.out
    if out is not None:
        check_outputs([out], sources)
    replaced = existing([out]) if out is not None else ""
    begun = time.perf_counter()
    # A bar between the lines of the output would help nobody.
    shown = None if not arguments.quiet and (out is not None or not _is_terminal(sys.stdout)) else False
    try:
        with Display(shown) as display:
            write_parts(out, lambda: make(lambda done: display.update(phase, done, total)))
    except KeyboardInterrupt:
        kept = f"{out} was not written" if out is not None else "the output is not complete"
        raise KeyboardInterrupt(kept) from None
    _summarize(arguments, tally(), time.perf_counter() - begun, replaced)
    return 0


def _is_terminal(stream: object) -> bool:
    return bool(getattr(stream, "isatty", bool)())


def _summarize(arguments: argparse.Namespace, tally: Tally, seconds: float, replaced: str) -> None:
    if arguments.json:
        import json

        print(json.dumps({**vars(tally), "seconds": round(seconds, 3), "out": arguments.out}))
        return
    compression = f"{tally.bytes / tally.tokens:.3f} bytes per token" if tally.tokens else "no tokens"
    numbers = ((tally.documents, "text"), (tally.bytes, "byte"), (tally.tokens, "token"))
    done = ", ".join(counted(number, noun) for number, noun in numbers)
    if arguments.out is not None and not arguments.quiet:
        print(f"written       {arguments.out}{replaced}: {done}")
    if arguments.verbose:
        speed = tally.bytes / 1e6 / seconds if seconds else 0.0
        say(f"{done}, {compression}, in {seconds:.2f} s ({speed:,.1f} MB/s)")
