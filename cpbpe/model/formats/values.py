"""What readers and writers of a format return, and what they say when the result is not exact.

The module or folder of a format has `read(data, *, allow_differences=False)`, which returns a `ReadModel`,
and `write(spec, *, allow_differences=False)`, which returns a `Written`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpbpe.errors import ConversionError
from cpbpe.lazy import imported
from cpbpe.model.spec import ModelSpec


class Difference(NamedTuple):
    """Something that the other library does in another way, so that some text gets other ids."""

    reason: str
    """What it does, as a sentence without an end."""
    text: str | None = None
    """The shortest text found that shows it; None if none was looked for or found."""


@dataclass(frozen=True)
class Written:
    """A file of another format, and what is not the same with it."""

    data: bytes
    """The file."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids, or other text from their ids; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What the format, or the library, never does as sentencepiece does it: see docs/formats.md."""


@dataclass(frozen=True)
class ReadModel:
    """The model in a file of another format, and what is not the same with it."""

    spec: ModelSpec
    """The model as a value."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids than in the library whose format it is; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What differs only in texts that spell out an added token, or in decoding."""
    assumptions: tuple[str, ...] = ()
    """What the file does not say, and what was taken for it."""


def refuse(differences: Sequence[Difference], doing: str, allow: str) -> None:
    """Raise a ConversionError if there are differences.

    `doing` says what cannot be done, `allow` the way out, as Python spells it.
    """
    if differences:
        shown = "; ".join(map(described, differences[:3]))
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        spelling = imported("cpbpe.spelling")
        way_out = allow.replace("allow_differences=True", spelling.given("allow_differences", True))
        way_out = way_out.replace("cpbpe.convert", spelling.advised("cpbpe.convert", "'cpbpe convert'"))
        raise ConversionError(f"{doing}: {shown}{more}. {way_out}", differences=differences)


def described(difference: Difference) -> str:
    """A difference in a line."""
    shown = "" if difference.text is None else f" (for example in the text {difference.text!r})"
    return f"{difference.reason}{shown}"
