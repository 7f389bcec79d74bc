"""``cpbpe spm``: sentencepiece's own programs, flag for flag, for BPE models."""

from __future__ import annotations

from collections.abc import Sequence

from cpbpe.cli.output import say
from cpbpe.cli.parsing import HelpShown, NotUnderstoodError
from cpbpe.cli.spm.flags import CommandLine, Program
from cpbpe.foreign import closest
from cpbpe.lazy import importing

PROGRAMS = {
    "train": "train a model, as spm_train does",
    "encode": "encode lines, as spm_encode does",
    "decode": "decode lines, as spm_decode does",
    "normalize": "normalize lines, as spm_normalize does",
    "export_vocab": "write the pieces of a model, as spm_export_vocab does",
}
"""The programs, each with what it does."""

_OVERVIEW = """\
usage: cpbpe spm PROGRAM [flags]

The programs of sentencepiece 0.2.3 for BPE models. They take the same flags and
write the same bytes, so 'spm_encode' in a script can become 'cpbpe spm encode'.

programs:
{programs}

'cpbpe spm PROGRAM --help' lists the flags. The other commands of cpbpe have
more options, and hyphens: cpbpe --help.
"""


Call = tuple[Program, "CommandLine | None"]
"""A program, and what its command line says; None if it was only to be checked."""


class Arguments:
    """The parser of the command: the first argument names the program, which parses the others."""

    def parse(self, arguments: Sequence[str]) -> Call:
        """The program and its flags."""
        if not arguments or arguments[0] in ("-h", "--help", "help"):
            if not arguments:
                raise NotUnderstoodError(f"name a program: {', '.join(PROGRAMS)}")
            print(self.format_help(), end="")
            raise HelpShown
        name = arguments[0].removeprefix("spm_").replace("-", "_")
        if name not in PROGRAMS:
            close = closest(name, PROGRAMS, 0.5)
            hint = f"; did you mean {close}?" if close else f"; there are {', '.join(PROGRAMS)}"
            raise NotUnderstoodError(f"there is no program {arguments[0]!r}{hint}")
        with importing:
            from cpbpe.cli.spm import lines, train
        program = train.PROGRAM if name == "train" else lines.PROGRAMS[name]
        return program, program.parse(arguments[1:])

    def format_help(self) -> str:
        """The text of ``cpbpe spm --help``."""
        programs = "\n".join(f"  {name:<13} {does}" for name, does in PROGRAMS.items())
        return _OVERVIEW.format(programs=programs)


def parser() -> Arguments:
    """The command's arguments."""
    return Arguments()


def run(call: Call) -> int:
    """Do what the program does."""
    program, given = call
    if given is not None:
        for flag in given.ignored:
            if not given.flags["quiet"]:
                say(f"--{flag.name} has no effect: {flag.ignored}")
        program.run(given)
    return 0
