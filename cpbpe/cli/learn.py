"""``cpbpe learn``: write BPE yourself, function by function, and have each tried."""

from __future__ import annotations

import argparse
import runpy
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import load
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.lazy import importing
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.tools.ladder import Rung

_DESCRIPTION = """\
A ladder of exercises, from counting pairs to matching a real model. Write the
functions of a rung into a Python file of your own, and they are tried on
hundreds of cases. If one fails, the smallest is shown, with what was expected.
Without arguments, the rungs are listed.
"""

_EXAMPLES = """\
examples:
  cpbpe learn
  cpbpe learn 1 mine.py
  cpbpe learn 8 mine.py tokenizer.model
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser("cpbpe learn [RUNG FILE [MODEL]]", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("rung", nargs="?", metavar="RUNG", help="the number of a rung")
    parser.add_argument("file", nargs="?", metavar="FILE", help="your Python file")
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a model, for the last rung")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """List the rungs, or try one."""
    with importing:
        from cpbpe.tools.ladder import RUNGS, Failure, climb
    if arguments.rung is None:
        for number, rung in enumerate(RUNGS, 1):
            print(_about(number, rung), end="\n\n")
        print("Try one: cpbpe learn 1 mine.py")
        return 0
    if not arguments.rung.isdecimal() or not 1 <= int(arguments.rung) <= len(RUNGS):
        raise NotUnderstoodError(f"there are rungs 1 to {len(RUNGS)}, as in: cpbpe learn 1 mine.py")
    number = int(arguments.rung)
    rung = RUNGS[number - 1]
    if arguments.file is None:
        print(_about(number, rung))
        return 0
    if rung.needs_model and arguments.model is None:
        raise NotUnderstoodError(f"this rung needs a model: cpbpe learn {number} FILE tokenizer.model")
    model = load(arguments, arguments.model, plain=True) if arguments.model else None
    Path(arguments.file).read_bytes()  # (so that a missing file is reported as everywhere)
    try:
        functions = runpy.run_path(arguments.file)
    except Exception as error:
        raise ValueError(
            f"{arguments.file} cannot be run: {''.join(traceback.format_exception_only(error)).strip()}"
        ) from None
    result = climb(rung, functions, model)
    if isinstance(result, Failure):
        print(f"{result.call}\n  gives     {result.given}\n  expected  {result.expected}")
        if result.remark:
            print(f"\n{result.remark}")
        return 1
    print(f"Rung {number} holds: {counted(result, 'case')}.")
    if number < len(RUNGS):
        print(f"\nNext:\n{_about(number + 1, RUNGS[number])}")
    else:
        print("You have written a tokenizer. cpbpe/reference/encoding.py is ours, to compare.")
    return 0


def _about(number: int, rung: Rung) -> str:
    """A rung in a few lines."""
    functions = "\n   ".join(rung.functions.splitlines())
    task = "\n   ".join(rung.task.splitlines())
    return f"{number}  {functions}\n   {task}\n   (docs/learn/{rung.chapter}.md)"
