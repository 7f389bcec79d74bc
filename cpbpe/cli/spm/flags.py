"""The command lines of sentencepiece's programs, read as these programs read them.

They parse flags in another way than the other commands: ``--model=my.model``, ``-model my.model``,
``--noshuffle_input_sentence``, ``--flagfile=FILE``, ``--fromenv=NAME``. Hyphens may stand for underscores.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from cpbpe.cli.parsing import FALSE, TRUE, HelpShown, NotUnderstoodError
from cpbpe.foreign import closest
from cpbpe.version import __version__

_BITS = {"int32": (-(1 << 31), 1 << 31), "uint32": (0, 1 << 32), "uint64": (0, 1 << 64)}
_HELP = ("help", "helpfull", "helpshort", "helpmatch", "helpon", "helppackage", "h")
_INDENT = 6 * " "
_MAX_FLAGFILES = 100
"""A limit, because a file of flags that names itself would be read for ever."""


@dataclass(frozen=True)
class Flag:
    """A flag of a program."""

    name: str
    """Its name, with underscores."""
    kind: str
    """"string", "bool", "double", or an integer: "int32", "uint32", "uint64"."""
    default: Any
    """Its value if it is not given."""
    meaning: str
    """What it does."""
    ignored: str = ""
    """If it has no effect: why not, as the second half of a sentence."""


NO_SEED = (1 << 32) - 1
"""The default of --random_seed."""
RETIRED = "sentencepiece 0.2.3 ignores it, too"
_EVERYWHERE = (
    Flag("quiet", "bool", False, "print nothing but errors"),
    Flag("minloglevel", "int32", 0, "", ignored="0.2.3 has no such flag any more; use --quiet"),
)


@dataclass(frozen=True)
class CommandLine:
    """What a command line says."""

    flags: Mapping[str, Any]
    """The value of every flag, given or not."""
    files: Sequence[str]
    """The arguments that are not flags."""
    ignored: Sequence[Flag]
    """Flags that were given and have no effect."""


@dataclass(frozen=True)
class Program:
    """One of the programs, with its flags."""

    name: str
    """Its name, without ``spm_``."""
    does: str
    """What it does."""
    usage: str
    """How it is called."""
    flags: Sequence[Flag]
    """Its flags."""
    run: Callable[[CommandLine], None]
    """Runs the program, as the command line says."""
    notes: str = ""
    """What its help says at the end."""

    def parse(self, arguments: Sequence[str]) -> CommandLine | None:
        """Parse the arguments. Return None if they were only to be checked."""
        return _Parse(self).run(arguments)

    def help(self) -> str:
        """The text of ``--help``."""
        lines = [f"usage: cpbpe spm {self.usage}", "", fill(self.does, 79), "", "flags:"]
        for flag in (*self.flags, _EVERYWHERE[0]):
            if not flag.ignored:
                lines.append(f"  --{flag.name}{_value(flag)}")
                lines.append(fill(flag.meaning, 79, initial_indent=_INDENT, subsequent_indent=_INDENT))
        lines += ["  --flagfile=FILE", f"{_INDENT}read more flags from a file, one on each line"]
        without = [flag.name for flag in self.flags if flag.ignored]
        if without:
            lines += ["", fill(f"Accepted, but without effect: {', '.join(without)}.", 79)]
        return "\n".join([*lines, *(["", self.notes.rstrip()] if self.notes else []), ""])


def _value(flag: Flag) -> str:
    if flag.kind == "bool":
        return "" if not flag.default else f" (on; --no{flag.name} turns it off)"
    metavar = {"string": "TEXT", "double": "X"}.get(flag.kind, "N")
    return f"={metavar}" + (f" (default: {flag.default})" if flag.default not in ("", None) else "")


@dataclass
class _Parse:
    """The state of parsing one command line."""

    program: Program
    values: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    ignored: list[Flag] = field(default_factory=list)
    allowed: set[str] = field(default_factory=set)
    flagfiles: int = 0
    asks_help: bool = False
    only_check: bool = False

    def run(self, arguments: Sequence[str]) -> CommandLine | None:
        self.known = {flag.name: flag for flag in (*self.program.flags, *_EVERYWHERE)}
        self._read(list(arguments), from_file="")
        if self.asks_help:
            print(self.program.help(), end="")
            raise HelpShown
        for name in self.unknown:
            if name not in self.allowed and name.removeprefix("no") not in self.allowed:
                close = closest(name, self.known, 0.7)
                hint = f"; did you mean --{close}?" if close else ""
                raise NotUnderstoodError(f"spm_{self.program.name} has no flag --{name}{hint}")
        if self.only_check:
            return None
        values = {flag.name: self.values.get(flag.name, flag.default) for flag in self.known.values()}
        return CommandLine(values, self.files, self.ignored)

    def _read(self, arguments: list[str], from_file: str) -> None:
        at = 0
        while at < len(arguments):
            argument = arguments[at]
            at += 1
            if not argument.startswith("-") or argument == "-":
                if from_file:
                    raise NotUnderstoodError(f"{from_file}: a line does not begin with '-': {argument!r}")
                self.files.append(argument)
                continue
            name, equals, value = argument[1:].removeprefix("-").partition("=")
            if not name:
                if from_file:
                    raise NotUnderstoodError(f"{from_file}: a line is {argument!r}, which is not a flag")
                self.files += arguments[at:]
                return
            name = name.replace("-", "_")
            flag, negative = self._find(name)
            if flag is None:
                at += self._without_flag(name, equals, value, arguments[at:])
                continue
            if flag.kind == "bool":
                if equals and (negative or not value):
                    raise NotUnderstoodError(
                        f"--{flag.name} is on or off: give --{flag.name}, --no{flag.name} or "
                        f"--{flag.name}=false"
                    )
                text = value if equals else ("false" if negative else "true")
            elif negative:
                raise NotUnderstoodError(f"--{name} is no switch; it needs a value: --{flag.name}=...")
            elif equals:
                text = value
            elif at < len(arguments):
                text = arguments[at]
                at += 1
            else:
                raise NotUnderstoodError(f"--{flag.name} needs a value, as in --{flag.name}=...")
            if flag.ignored:
                self.ignored.append(flag)
            else:
                self.values[flag.name] = _converted(flag, text)

    def _find(self, name: str) -> tuple[Flag | None, bool]:
        """The flag of a name, and whether the name has a ``no`` in front."""
        if name in self.known:
            return self.known[name], False
        positive = name.removeprefix("no").removeprefix("_")
        return (self.known.get(positive), True) if name.startswith("no") else (None, False)

    def _without_flag(self, name: str, equals: str, value: str, rest: list[str]) -> int:
        """Take a flag that every program has, or an unknown one. Return how many arguments its value took."""
        if name in _HELP:
            self.asks_help = True
            return 0
        if name == "version":
            print(f"cpbpe {__version__}, as sentencepiece 0.2.3")
            raise HelpShown
        if name == "only_check_args":
            self.only_check = True
            return 0
        if name not in ("flagfile", "fromenv", "tryfromenv", "undefok"):
            self.unknown.append(name)
            return 0
        if not equals and not rest:
            raise NotUnderstoodError(f"--{name} needs a value, as in --{name}=...")
        items = (value if equals else rest[0]).split(",")
        if name == "undefok":
            self.allowed.update(item.replace("-", "_") for item in items)
        elif name == "flagfile":
            for path in items:
                self._read_file(path)
        else:
            for item in items:
                self._from_environment(item, needed=name == "fromenv")
        return 0 if equals else 1

    def _read_file(self, path: str) -> None:
        self.flagfiles += 1
        if self.flagfiles > _MAX_FLAGFILES:
            raise NotUnderstoodError(
                f"--flagfile: these are over {_MAX_FLAGFILES} files; does {path} name itself?"
            )
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = [line.rstrip("\n").lstrip(" \t\v\f\r") for line in file]
        self._read([line for line in lines if line and not line.startswith("#")], from_file=path)

    def _from_environment(self, name: str, needed: bool) -> None:
        variable = f"FLAGS_{name}"
        if variable in os.environ:
            self._read([f"--{name}={os.environ[variable]}"], from_file="the environment")
        elif needed:
            raise NotUnderstoodError(f"--fromenv={name}: there is no variable {variable}")


def _converted(flag: Flag, text: str) -> Any:
    """The value of a flag."""
    stripped = text.strip(" \t\n\v\f\r")
    if flag.kind == "string":
        return text
    if flag.kind == "bool":
        if stripped.lower() in (*TRUE, *FALSE):
            return stripped.lower() in TRUE
        raise NotUnderstoodError(f"--{flag.name} is on or off, not {text!r}; give true or false")
    if flag.kind == "double":
        try:
            return float(stripped if "_" not in stripped else "no number")
        except ValueError:
            raise NotUnderstoodError(f"--{flag.name}: {text!r} is not a number") from None
    low, high = _BITS[flag.kind]
    match = re.fullmatch(r"[+-]?(?:0[xX]([0-9a-fA-F]+)|[0-9]+)", stripped, re.ASCII)
    if match is None:
        raise NotUnderstoodError(f"--{flag.name}: {text!r} is not a whole number")
    number = int(stripped, 16 if match[1] else 10)
    if not low <= number < high:
        raise NotUnderstoodError(f"--{flag.name} must be from {low} to {high - 1}, not {text}")
    return number
