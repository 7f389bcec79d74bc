"""Which pieces were added, removed, moved, rescored or retyped."""

from __future__ import annotations

from cpbpe.differing.values import PieceChange, PieceEntry
from cpbpe.model.spec import ModelSpec

Entries = dict[bytes, PieceEntry]
SPACE = "\u2581".encode()


def entries(spec: ModelSpec, as_text: bool = False) -> Entries:
    """Every piece and added token of a model; `as_text`: with spaces, as in models of the other family."""
    ranks = spec.alphabet == "bytes"
    found: Entries = {}
    for id, piece in enumerate(spec.pieces):
        text = piece.text.replace(SPACE, b" ") if as_text and not ranks else piece.text
        found[text] = PieceEntry(id, None if ranks else piece.score, piece.type.name)
    for text, id in spec.added:
        found.setdefault(text, PieceEntry(id, None, "ADDED"))
    return found


def spelled(piece: bytes) -> str:
    r"""A piece as text; bytes that are not UTF-8 as escapes.

    >>> spelled("▁a".encode()), spelled(b"\xe2\x96")
    ('▁a', '\\xe2\\x96')
    """
    return piece.decode("utf-8", "backslashreplace")


def piece_changes(old: Entries, new: Entries) -> list[PieceChange]:
    """Every piece that is not the same in both, in the order of the new ids; removed ones come first."""
    changes = [PieceChange(spelled(text), entry, None) for text, entry in old.items() if text not in new]
    for text, entry in new.items():
        before = old.get(text)
        if before is None or not _equal(before, entry):
            changes.append(PieceChange(spelled(text), before, entry))
    return changes


def _equal(one: PieceEntry, other: PieceEntry) -> bool:
    """Whether two entries are the same; a score that is no number is equal to itself."""
    return (one.id, one.type) == (other.id, other.type) and (
        one.score == other.score or (one.score != one.score and other.score != other.score)
    )
