"""What readers and writers of a format return, and what they say when the result is not exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cpbpe.errors import ConversionError
from cpbpe.lazy import importing
from cpbpe.model.spec import ModelSpec, PieceType, Settings


class Difference(NamedTuple):
    """Something that the other library does differently, so that some text gets other ids."""

    reason: str
    """What it does, as a sentence without a full stop."""
    text: str | None = None
    """The shortest text that was found to show it; None if none was found or looked for."""


@dataclass(frozen=True)
class Written:
    """A file of another format, and how it differs from the model."""

    data: bytes
    """The file."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids, or other text from their ids; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What the format, or its library, never does as sentencepiece does: see docs/formats.md."""


@dataclass(frozen=True)
class ReadModel:
    """The model in a file of another format, and how it differs from the file."""

    spec: ModelSpec
    """The model as a value."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids than in the library whose format it is; empty if there is no such text."""
    notes: tuple[str, ...] = ()
    """What differs only in texts that spell out an added token, or in decoding ids that no text has."""
    assumptions: tuple[str, ...] = ()
    """What `load` warns about: what the file does not say, and what was assumed instead; and whether the ids
    of texts are decoded to something else."""


TO_READ = "To read it all the same, use cpbpe.convert with allow_differences=True, which lists them"
TO_WRITE = "To write it all the same, use cpbpe.convert with allow_differences=True, which lists them"
TO_CONVERT = "To convert it all the same, pass allow_differences=True, which lists them"
"""How messages end: what to do if the differences are acceptable."""


def refuse(differences: Sequence[Difference], allowed: bool, doing: str, way_out: str) -> None:
    """Raise a ConversionError if there are differences, unless they are allowed.

    `doing` says what cannot be done. `way_out` says what to do instead, as a user of Python would.
    """
    if differences and not allowed:
        with importing:
            from cpbpe.spelling import advised, given
        shown = "; ".join(map(described, differences[:3]))
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        way_out = way_out.replace("allow_differences=True", given("allow_differences", True))
        way_out = way_out.replace("cpbpe.convert", advised("cpbpe.convert", "'cpbpe convert'"))
        raise ConversionError(f"{doing}: {shown}{more}. {way_out}", differences=differences)


def described(difference: Difference) -> str:
    """Return a difference as one line."""
    shown = "" if difference.text is None else f" (for example in the text {difference.text!r})"
    return f"{difference.reason}{shown}"


# --- Reading a file again -------------------------------------------------------------------------


def unlike(spec: ModelSpec, again: ModelSpec, *parts: str) -> str:
    """Return how a model differs from the one that was read again from its file; "" if it does not.

    `parts` are what the file must keep: "pieces" (their texts and types), "scores", "special tokens", "roles"
    (as far as the model has them), "chat templates", "pattern", "settings" (of the normalizer), or "all".
    """
    for part in parts:
        if part == "roles":
            for role in ("bos_id", "eos_id", "pad_id"):
                if getattr(spec, role) not in (None, getattr(again, role)):
                    return f"its {role} is {getattr(again, role)}, not {getattr(spec, role)}"
        elif _PARTS[part](spec) != _PARTS[part](again):
            is_same = "is not" if part == "pattern" else "are not"
            return "it is another model" if part == "all" else f"its {part} {is_same} the same"
    return ""


def _rows(spec: ModelSpec) -> Iterator[tuple[int, bytes, int]]:
    """Yield the id, the text and the type of each piece."""
    return zip(range(len(spec.pieces)), spec.pieces.texts, spec.pieces.types, strict=True)


_PARTS: dict[str, Callable[[ModelSpec], object]] = {
    "all": lambda spec: replace(spec, settings=Settings()),
    "pieces": lambda spec: [row for row in _rows(spec) if row[2] != PieceType.CONTROL],
    "scores": lambda spec: spec.pieces.scores,
    # (A file may not tell a CONTROL piece from an added token. To texts and ids they are the same.)
    "special tokens": lambda spec: sorted(
        [*spec.added, *((text, id) for id, text, type in _rows(spec) if type == PieceType.CONTROL)]
    ),
    "chat templates": lambda spec: dict(spec.carried.chat_templates),
    "pattern": lambda spec: spec.patterns,
    "settings": lambda spec: (replace(spec.normalizer, name=""), spec.byte_fallback),
}
