"""``cpbpe learn``: write BPE yourself, function by function, and have each tried."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import load
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.lazy import importing
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.tools.climbing import Rung

_DESCRIPTION = """\
A ladder of exercises, from counting pairs to matching a real model. Write the
functions of a rung into a Python file of your own, and they are tried on a
hundred cases or more. If one fails, it is made as small as possible and shown,
with what was expected. Without arguments, the rungs are listed.
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
        from cpbpe.tools.climbing import Failure, climb_file
        from cpbpe.tools.ladder import RUNGS, unfit
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
        how = f"cpbpe learn {number} FILE tokenizer.model (docs/learn/1-why-tokens.md says how to get one)"
        raise NotUnderstoodError(f"this rung needs a model: {how}")
    if arguments.model and not rung.needs_model:
        raise NotUnderstoodError(f"rung {number} needs no model: cpbpe learn {number} {arguments.file}")
    Path(arguments.file).read_bytes()  # (so that a missing file is reported as everywhere)
    model = load(arguments, arguments.model, plain=True) if arguments.model else None
    if model and (reason := unfit(model)):
        needed = f"rung {number} needs a model like Llama 2's or Mistral 7B's"
        raise ValueError(f"{needed}; {arguments.model} {reason}")
    result = climb_file(rung, arguments.file, model)
    if isinstance(result, Failure):
        given = result.given.replace("\n", "\n            ")
        print(f"{result.call}\n  gives     {given}\n  expected  {result.expected}")
        if result.printed:
            print(f"\nIt prints\n{result.printed}")
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
    lines = f"{rung.functions}\n{rung.task}\n{rung.examples}\n(docs/learn/{rung.chapter}.md)"
    return f"{number}  " + lines.replace("\n", "\n   ")
