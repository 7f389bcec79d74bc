"""How the command spells options."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cpbpe.spelling import Spelling


class Flags(Spelling):
    """The command's spelling: ``--hard-vocab-limit`` and ``--no-hard-vocab-limit``."""

    def __init__(self, known: Collection[str] | None = None, renamed: Mapping[str, str] | None = None):
        """`known`: the options that are flags; None for all. `renamed`: those called otherwise in Python."""
        self._known = known
        self._renamed = renamed or {}

    def name(self, option: str) -> str:
        """``--vocab-size``."""
        option = self._renamed.get(option, option)
        return flag(option) if self._known is None or option in self._known else option

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
        """What to do in a shell."""
        return command


def flag(option: str) -> str:
    """The flag of an option.

    >>> flag("vocab_size")
    '--vocab-size'
    """
    return "--" + option.replace("_", "-")
