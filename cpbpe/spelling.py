"""How messages spell options: as Python arguments, or as options of the command.

A message is written where something goes wrong, perhaps deep in training, but its reader has called a Python
function or typed a command. So code that writes a message does not spell options itself. It calls `named`,
`given` or `advised`, and the code that shows messages chooses the spelling with `spelled_as`. (The spelling
is a context variable, so that the functions in between need not pass it on.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Spelling:
    """How Python code spells options. The command has a subclass of this."""

    def name(self, option: str) -> str:
        """The name of an option."""
        return option

    def given(self, option: str, value: object) -> str:
        """An option with a value; `...` stands for a value that the reader has to fill in."""
        return f"{option}={'...' if value is ... else repr(value)}"

    def value(self, value: object) -> str:
        """A value of an option."""
        return repr(value)

    def advice(self, python: str, command: str) -> str:
        """What to do, if the advice differs in more than the spelling of options."""
        return python


_SPELLING = ContextVar("spelling", default=Spelling())  # noqa: B039  # a Spelling has no state
_MARKED = re.compile(r"`(\w+)(?:=(True|False))?`")
"""An option in backquotes, perhaps with a value."""


def named(option: str) -> str:
    """An option, for a message.

    >>> f"{named('threads')} must be at least 1"
    'threads must be at least 1'
    """
    return _SPELLING.get().name(option)


def given(option: str, value: object) -> str:
    """An option with a value, for a message that tells the reader to give it.

    >>> f"give {given('hard_vocab_limit', False)}"
    'give hard_vocab_limit=False'
    """
    return _SPELLING.get().given(option, value)


def shown(value: object) -> str:
    """A value of an option, for a message."""
    return _SPELLING.get().value(value)


def advised(python: str, command: str) -> str:
    """What to do, for a message: in Python, or in a shell.

    >>> advised("give a list of texts", "write it to a file")
    'give a list of texts'
    """
    return _SPELLING.get().advice(python, command)


def spelled(text: str) -> str:
    """A text with its backquoted options spelled. (Tables of texts are written before the spelling is known.)

    >>> spelled("it needs `byte_fallback=True`")
    'it needs byte_fallback=True'
    """
    return _MARKED.sub(
        lambda mark: given(mark[1], mark[2] == "True") if mark[2] else named(mark[1]),
        text,
    )


@contextmanager
def spelled_as(spelling: Spelling) -> Iterator[None]:
    """A context in which messages spell options as `spelling` does."""
    token = _SPELLING.set(spelling)
    try:
        yield
    finally:
        _SPELLING.reset(token)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "line"), counted(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sized(number: int) -> str:
    """A number of bytes as people read it: in decimal units, as disks and networks are measured.

    >>> sized(1), sized(950), sized(11_156), sized(999_960), sized(493_443_000)
    ('1 byte', '950 bytes', '11.2 kB', '1.0 MB', '493.4 MB')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= 0.99995 * factor:  # so that rounding yields no "1000.0 kB"
            return f"{number / factor:.1f} {unit}"
    return counted(number, "byte")


def listed(items: list[str]) -> str:
    """Items as an enumeration in a sentence.

    >>> listed(["one"]), listed(["one", "two"]), listed(["one", "two", "three"])
    ('one', 'one and two', 'one, two and three')
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
