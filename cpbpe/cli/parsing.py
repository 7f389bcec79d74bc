"""A parser of arguments that also takes sentencepiece's spelling, and the spelling of options in messages."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from cpbpe.foreign import closest
from cpbpe.spelling import Spelling

TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")


_NAME = "\0"
"""Comes before a name that begins with a hyphen while argparse is at work. No argument has one."""


class NotUnderstoodError(Exception):
    """The arguments were not understood; the message says why, and what to type instead."""


class HelpShown(Exception):  # noqa: N818  # nothing went wrong
    """The help was asked for, and has been printed."""


class Parser(argparse.ArgumentParser):
    """The arguments of a subcommand."""

    theirs: Mapping[str, str] = {}
    """Flags of sentencepiece's programs that have another name but the same meaning here."""
    guesses: Mapping[str, str] = {}
    """Flags that people guess, and what to tell them."""

    def __init__(
        self,
        usage: str,
        description: str,
        epilog: str | None = None,
        guessed: Mapping[str, str] | None = None,
    ):
        """`guessed`: flags that people guess here and nowhere else, as in `guesses`; under "", what to say
        about an argument too many.
        """
        self._guessed = {**self.guesses, **(guessed or {})}
        super().__init__(
            " ".join(usage.split()[:2]),
            usage,
            description,
            epilog or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # otherwise a new option could change what an old command means
        )
        self._add: Callable[..., object] = self.add_argument

    def section(self, title: str, description: str | None = None) -> None:
        """Begin a section of the help; `add` adds options to it from now on."""
        self._add = self.add_argument_group(title, description).add_argument

    def add(self, spelling: str, help: str, **settings: Any) -> None:
        """Add an option, spelled as the help shows it.

        ``--out -o FILE`` needs a value, ``--quiet -q`` is a switch, and ``--[no-]probe`` can be switched on
        and off. `settings` are other arguments of `add_argument`.
        """
        *names, last = spelling.replace("[no-]", "").split()
        if not last.startswith("-"):
            usual = {"metavar": last, **_TYPES.get(last, {})}
        else:
            names.append(last)
            usual = {"action": "store_true"}
            if "[no-]" in spelling:
                usual = {"action": argparse.BooleanOptionalAction, "default": None}
        self._add(*names, help=help.replace("%", "%%"), **{**usual, **settings})

    def add_option(self, name: str, annotation: str, meaning: str) -> None:
        """Add an option from a table of Python's options, given its type and its meaning."""
        spelling = "--{} FILE" if name.endswith("tsv") else _SPELLINGS[re.split(r"\W", annotation)[0]]
        self.add(spelling.format(name.replace("_", "-")), meaning, dest=name, default=argparse.SUPPRESS)

    def guess(self, flag: str, advice: str) -> None:
        """Add a flag that people guess, unless there is advice about it already."""
        self._guessed.setdefault(flag, advice)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments. Options and names of files can be mixed."""
        self._check_dashes(arguments)
        ours = our_spelling(arguments, self.switches(), self.theirs)
        # argparse may forget which arguments came after "--": meanwhile, these do not look like options.
        end = ours.index("--") if "--" in ours else len(ours)
        ours[end + 1 :] = [_NAME * given.startswith("-") + given for given in ours[end + 1 :]]
        options, unknown = self.parse_known_intermixed_args(ours)
        for name, value in vars(options).items():
            if isinstance(value, list):
                value[:] = map(_unmarked, value)
            else:
                setattr(options, name, _unmarked(value))
        exclusive = [name for name in ("quiet", "verbose", "progress") if getattr(options, name, False)]
        if "quiet" in exclusive[:-1]:
            raise NotUnderstoodError(f"--quiet and {flag(exclusive[1])} exclude each other; give one of them")
        if unknown:
            raise NotUnderstoodError(self._no_such_option(unknown[0].partition("=")[0]))
        return options

    def _check_dashes(self, arguments: Sequence[str]) -> None:
        """Refuse long options with one dash: -vocab-size would be -v -o cab-size."""
        with_value = self.takes_a_value()
        for argument in arguments:
            if argument == "--":
                return
            match = re.fullmatch(r"-([A-Za-z])([\w-]{2,})(=.*)?", argument)
            if match is not None:
                name = f"--{match[1]}{match[2]}".replace("_", "-")
                if name in self.shown() or f"-{match[1]}" not in with_value:
                    raise NotUnderstoodError(self._no_such_option(argument.partition("=")[0]))

    def switches(self) -> set[str]:
        """The names of options that are on or off."""
        return {
            option.removeprefix("--").removeprefix("no-")
            for action in self._actions
            if isinstance(action, argparse.BooleanOptionalAction)
            for option in action.option_strings
        }

    def shown(self) -> list[str]:
        """All long options that the help shows."""
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [flag for action in shown for flag in action.option_strings if flag.startswith("--")]

    def choices(self) -> dict[str, Sequence[str]]:
        """The values of the options that take one of a few names."""
        return {
            flag: action.type.names
            for action in self._actions
            for flag in action.option_strings
            if isinstance(action.type, OneOf)
        }

    def takes_a_value(self) -> list[str]:
        """The options, short ones too, that are followed by a value."""
        actions = (action for action in self._actions if action.nargs != 0)
        return [flag for action in actions for flag in action.option_strings]

    def flags(self) -> list[str]:
        """All long options, by their names in Python."""
        long = (option for action in self._actions for option in action.option_strings)
        return [option[2:].replace("-", "_") for option in long if option.startswith("--")]

    def _no_such_option(self, given: str) -> str:
        if not given.startswith("-"):
            way_out = "leave it out" if " " in given else "put a sentence into quotes"
            return f"{given!r} is one argument too many; {self._guessed.get('', way_out)}"
        name = given.strip("-").removeprefix("no-").replace("_", "-")
        if name in self._guessed:
            return f"there is no option {given}; {self._guessed[name]}"
        return f"there is no option {given}{self.way_out(name.replace('-', '_'))}"

    def way_out(self, name: str) -> str:
        """The end of a message about an option that does not exist; `name` is its name in Python."""
        close = closest("--" + name.replace("_", "-"), self.shown(), 0.7)
        return f"; did you mean {close}?" if close else ""

    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse would hide a failure to print it."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Raise an error; argparse calls this when it does not understand the arguments."""
        message = re.sub(r"^argument (?:-\w/|CORPUS: )?", "", message)
        message = re.sub(
            r"^(--[\w-]+)(?:/-\w)?: expected (?:one|at least one) argument$", r"\1 needs a value", message
        )
        message = re.sub(
            r"^(--[\w-]+)(?:/-\w)?: ignored explicit argument (.*)$", r"\1 takes no value such as \2", message
        )
        message = re.sub(r"^(--[\w-]+)/-\w: ", r"\1: ", message)
        message = re.sub(r"^(--[\w-]+): (?=\1 )", "", message)  # the message of a type may begin with it, too
        raise NotUnderstoodError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise `HelpShown`; argparse calls this when it has printed the help."""
        raise HelpShown


def our_spelling(arguments: Sequence[str], switches: Collection[str], theirs: Mapping[str, str]) -> list[str]:
    """The arguments of spm_train in the spelling of this command: hyphens, and switches without values.

    >>> our_spelling(["--vocab_size=9", "--byte_fallback=false", "a_b", "--", "--c_d"], {"byte-fallback"}, {})
    ['--vocab-size=9', '--no-byte-fallback', 'a_b', '--', '--c_d']
    """
    ours: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*ours, *arguments[place:]]
        if not argument.startswith("--"):
            ours.append(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        name = name.replace("_", "-")
        name = theirs.get(name, name)
        if not equals or name not in switches:
            ours.append(f"--{name}{equals}{value}")
        elif value.lower() in TRUE:
            ours.append(f"--{name}")
        elif value.lower() in FALSE:
            ours.append(f"--no-{name}")
        else:
            raise NotUnderstoodError(
                f"--{name} is on or off: give --{name}, --no-{name} or --{name}=false, not {value!r}"
            )
    return ours


def _unmarked(value: Any) -> Any:
    return value.removeprefix(_NAME) if isinstance(value, str) else value


# --- Spelling -------------------------------------------------------------------------------------


class Flags(Spelling):
    """The command's spelling: ``--hard-vocab-limit`` and ``--no-hard-vocab-limit``."""

    def __init__(self, known: Collection[str] | None = None):
        """`known`: the options that are flags; None for all."""
        self._known = known
        self._renamed = {"format": "input_format"}  # --format is that of what is written
        if known is None:  # this flag is given once for each special token
            self._renamed["special_tokens"] = "special_token"

    def name(self, option: str) -> str:
        """``--vocab-size``."""
        if self._known is not None and option not in self._known:
            return option
        return flag(self._renamed.get(option, option))

    def given(self, option: str, value: object) -> str:
        """``--vocab-size 1000``, ``--no-split-digits``."""
        name = self.name(option)
        if isinstance(value, bool):
            return name.replace("--", "--" if value else "--no-", 1)
        return f"{name} {name.removeprefix('--').upper() if value is ... else value}"

    def value(self, value: object) -> str:
        """A value as it would be typed."""
        return ("yes" if value else "no") if isinstance(value, bool) else repr(value)

    def advice(self, python: str, command: str) -> str:
        """The advice for a shell."""
        return command


def flag(option: str) -> str:
    """The flag of an option.

    >>> flag("vocab_size")
    '--vocab-size'
    """
    return "--" + option.replace("_", "-")


def refuse(arguments: argparse.Namespace, defaults: Mapping[str, object], why: str) -> None:
    """Refuse options that mean nothing beside the others, as `why` says. (`defaults` are not refused.)"""
    for name, default in defaults.items():
        if getattr(arguments, name, default) != default:
            raise NotUnderstoodError(f"{flag(name)} means nothing here: {why}; leave it out")


# --- Values ---------------------------------------------------------------------------------------


def whole_number(text: str) -> int:
    """An integer; its digits can be grouped, as in 32,000."""
    if re.fullmatch(r"[+-]?[0-9]+([_,][0-9]{3})*", text.strip()) is None:
        match = re.fullmatch(r"([0-9]+)[kK]", text.strip())
        hint = f"; write {int(match[1]) * 1000}" if match else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number{hint}")
    return int(re.sub("[_,]", "", text))


def number(text: str) -> float:
    """A number, perhaps with a decimal point."""
    try:
        return float(text)
    except ValueError:
        hint = "; write it with a point" if re.fullmatch(r"[0-9]+,[0-9]+", text) else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a number{hint}") from None


class OneOf:
    """A type for arguments that are one of these names."""

    def __init__(self, names: Sequence[str], otherwise: str = ""):
        """`otherwise`: what to add to the error about another name."""
        self.names = names
        self._otherwise = otherwise

    def __call__(self, text: str) -> str:
        """Return the text if it is one of the names."""
        if text not in self.names:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not one of {', '.join(self.names)}{self._otherwise}"
            )
        return text


def listed_values(text: str) -> list[str]:
    """Values with commas between them; those that contain one are in quotes."""
    try:
        return next(csv.reader([text])) if text else []
    except csv.Error:
        way_out = "put a value that has a line break into double quotes"
        raise argparse.ArgumentTypeError(f"{text!r:.99} cannot be cut at its commas; {way_out}") from None


_TYPES: dict[str, dict[str, Any]] = {
    "N": {"type": whole_number},
    "X": {"type": number},
    "A,B": {"type": listed_values, "action": "extend"},
}
"""What the values of options are, by what stands for them in the help; any other value is a text."""
_SPELLINGS = {
    "bool": "--[no-]{}",
    "int": "--{} N",
    "float": "--{} X",
    "str": "--{} TEXT",
    "Sequence": "--{} A,B",
    "Collection": "--{} A,B",
}
"""How options are spelled here, by their types in Python."""
