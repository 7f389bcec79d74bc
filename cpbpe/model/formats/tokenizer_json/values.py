"""What writing and reading a tokenizer.json return, and what they say when the result is not exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpbpe.errors import ConversionError
from cpbpe.model.spec import ModelSpec


class Difference(NamedTuple):
    """Something that the other library does in another way, so that some text gets other ids."""

    reason: str
    """What it does, as a sentence without an end."""
    text: str | None = None
    """The shortest text found that shows it; None if none was looked for or found."""


@dataclass(frozen=True)
class Written:
    """A tokenizer.json, and what is not the same with it."""

    data: bytes
    """The file."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids, or other text from their ids; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What the format, or the library, never does as sentencepiece does it: see docs/formats.md."""


@dataclass(frozen=True)
class ReadJson:
    """The model in a tokenizer.json, and what is not the same with it."""

    spec: ModelSpec
    """The model as a value."""
    add_bos: bool = False
    """Whether the file's post-processor puts the bos piece in front of every text."""
    add_eos: bool = False
    """Whether it puts the eos piece at the end."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids than in tokenizers; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What differs only in texts that spell out an added token, or in decoding."""


def refuse(differences: Sequence[Difference], doing: str, allow: str) -> None:
    """Raise a ConversionError if there are differences.

    `doing` says what cannot be done, `allow` the way out.
    """
    if differences:
        shown = "; ".join(map(described, differences[:3]))
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise ConversionError(f"{doing}: {shown}{more}. {allow}", differences=differences)


def described(difference: Difference) -> str:
    """A difference in a line."""
    shown = "" if difference.text is None else f" (for example in the text {difference.text!r})"
    return f"{difference.reason}{shown}"
