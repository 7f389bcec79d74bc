"""``cpbpe completion``: a script that teaches a shell the commands and their options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from cpbpe.cli import COMMANDS
from cpbpe.cli.parsing import OneOf, Parser
from cpbpe.lazy import importing

_SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\
to complete in this shell, and with the second line in every new one:
  bash   source <(cpbpe completion bash)
         cpbpe completion bash >> ~/.bash_completion
  zsh    source <(cpbpe completion zsh)
         cpbpe completion zsh > "${fpath[1]}/_cpbpe"
  fish   cpbpe completion fish | source
         cpbpe completion fish > ~/.config/fish/completions/cpbpe.fish
"""


class Verb(NamedTuple):
    """What can follow a command."""

    flags: Sequence[str]
    """Its options."""
    choices: Mapping[str, Sequence[str]]
    """The values of those that take one of a few names."""
    words: Sequence[str]
    """The words, other than files, that can come first."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe completion {bash,zsh,fish}",
        "Print a script with which a shell completes commands, options and values.",
        _EXAMPLES,
    )
    parser.add_argument("shell", type=OneOf(_SHELLS), metavar="SHELL", help="bash, zsh or fish")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](verbs()), end="")
    return 0


def verbs() -> dict[str, Verb]:
    """All commands, with the options and values that their parsers know."""
    by_name = {}
    for name in COMMANDS:
        with importing:
            module = import_module(f"cpbpe.cli.{name}")
        parser = module.parser()
        if isinstance(parser, Parser):
            words = _SHELLS if name == "completion" else ()
            by_name[name] = Verb([*parser.shown()], parser.choices(), words)
        else:  # a command of several programs
            by_name[name] = Verb(["--help"], {}, list(getattr(module, "PROGRAMS", ())))
    by_name["help"] = Verb([], {}, list(COMMANDS))
    return by_name


# --- The scripts ----------------------------------------------------------------------------------


def _bash(verbs: Mapping[str, Verb]) -> str:
    cases = []
    for name, verb in verbs.items():
        values = "".join(
            f'            {flag}) words="{" ".join(names)}" ;;\n' for flag, names in verb.choices.items()
        )
        inside = f'        case "$before" in\n{values}        esac\n' if values else ""
        words = f'flags="{" ".join(verb.flags)}" first="{" ".join(verb.words)}"'
        cases.append(f"    {name})\n        {words}\n{inside}        ;;\n")
    return _BASH.format(commands=" ".join([*verbs, "--help", "--version"]), cases="".join(cases))


_BASH = """\
# bash completion for cpbpe, made by 'cpbpe completion bash'
_cpbpe() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" flags="" first="" words=""
    COMPREPLY=()
    if [[ $before == = ]]; then
        before="${{COMP_WORDS[COMP_CWORD-2]}}"
    elif [[ $word == = ]]; then
        word=""
    fi
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
    elif [[ -n $first && $COMP_CWORD == 2 ]]; then
        COMPREPLY=($(compgen -W "$first" -- "$word"))
    else
        compopt -o filenames 2> /dev/null
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -F _cpbpe cpbpe
"""


def _zsh(verbs: Mapping[str, Verb]) -> str:
    commands = "\n".join(f"    {_quoted(f'{name}:{COMMANDS[name]}')}" for name in COMMANDS)
    cases = []
    for name, verb in verbs.items():
        options = [
            _quoted(f"{flag}:value:({' '.join(verb.choices[flag])})" if flag in verb.choices else flag)
            for flag in verb.flags
        ]
        rest = _quoted(f"*:word:({' '.join(verb.words)})" if verb.words else "*:file:_files")
        cases.append(f"  {name}) _arguments {' '.join([*options, rest])} ;;")
    return _ZSH.format(commands=commands, cases="\n".join(cases))


_ZSH = """\
#compdef cpbpe
# zsh completion for cpbpe, made by 'cpbpe completion zsh'
_cpbpe() {{
  local -a commands
  commands=(
{commands}
    'help:explain a command'
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{cases}
  esac
}}
if [[ "$funcstack[1]" == _cpbpe ]]; then
  _cpbpe "$@"
else
  compdef _cpbpe cpbpe
fi
"""


def _fish(verbs: Mapping[str, Verb]) -> str:
    lines = ["# fish completion for cpbpe, made by 'cpbpe completion fish'"]
    for name in verbs:
        does = COMMANDS.get(name, "explain a command")
        lines.append(f"complete -c cpbpe -f -n __fish_use_subcommand -a {name} -d {_quoted(does)}")
    for name, verb in verbs.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for flag in verb.flags:
            names = verb.choices.get(flag)
            values = f" -x -a {_quoted(' '.join(names))}" if names else ""
            lines.append(f"complete -c cpbpe {seen} -l {flag.removeprefix('--')}{values}")
        if verb.words:
            lines.append(f"complete -c cpbpe {seen} -f -a {_quoted(' '.join(verb.words))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Text for a shell, without characters that mean something in a completion."""
    plain = re.sub(r"[\[\]]", "", text).replace("'", "")
    return f"'{plain}'"
