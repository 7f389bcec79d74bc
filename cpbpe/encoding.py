"""What `Tokenizer.encode_offsets` returns: ids, pieces, and where in the text they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cpbpe.checks import Random, text_of, utf8
from cpbpe.reference import valid_character

if TYPE_CHECKING:
    from cpbpe.engine import Engine
    from cpbpe.stretches import Encoder

Unit = Literal["char", "byte"]
Named = list[tuple[int, bytes]]
"""Ids with their pieces."""


@dataclass(frozen=True)
class Encoding:
    """An encoded text with its alignment. All lists have one entry for each token."""

    ids: list[int]
    """The ids, as `Tokenizer.encode` gives them."""
    pieces: list[str]
    """The pieces, as `Tokenizer.encode_pieces` gives them."""
    offsets: list[tuple[int, int]]
    """Begin and end of what each token came from; counts characters or bytes, see `unit`."""
    text: str | bytes
    """The input."""
    unit: Unit
    """What the offsets count: "char" or "byte"."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def surfaces(self) -> list[str] | list[bytes]:
        """The part of the text that each token came from: `str` by characters, `bytes` by bytes.

        Tokens that came from nothing (a CONTROL piece, the dummy prefix, all but the last byte of a
        character) have an empty one.
        """
        if self.unit == "char":
            text = self.text if isinstance(self.text, str) else "".join(characters(self.text))
            return [text[begin:end] for begin, end in self.offsets]
        data = self.text if isinstance(self.text, bytes) else self.text.encode()
        return [data[begin:end] for begin, end in self.offsets]


def aligned(
    encoder: Engine | Encoder,
    text: str | bytes,
    method: str,
    added: tuple[Named, Named],
    reverse: bool,
    unit: Unit | None,
    random: Random | None,
) -> Encoding:
    """Encode a text with its alignment, and put the ids of `added` in front and behind."""
    data = utf8(text, method)
    if unit is None:
        unit = "char" if isinstance(text, str) else "byte"
    elif unit not in ("char", "byte"):
        raise ValueError(f"unit is 'char' or 'byte', not {unit!r}")
    ids, pieces, begins, ends = encoder.tokens(data) if random is None else encoder.sample(data, *random)
    offsets = list(zip(begins, ends, strict=True))
    if reverse:
        for column in (ids, pieces, offsets):
            column.reverse()
    front, back = added
    ids = [*(id for id, _ in front), *ids, *(id for id, _ in back)]
    pieces = [*(piece for _, piece in front), *pieces, *(piece for _, piece in back)]
    offsets = [*((0, 0) for _ in front), *offsets, *((len(data), len(data)) for _ in back)]
    if unit == "char" and not data.isascii():
        positions = character_positions(data)
        offsets = [(positions[begin], positions[end]) for begin, end in offsets]
    return Encoding(
        ids=ids,
        pieces=[text_of(piece) for piece in pieces],
        offsets=offsets,
        text=text if isinstance(text, str) else data,
        unit=unit,
    )


def characters(text: bytes) -> list[str]:
    r"""The characters of a text; a byte that belongs to none counts as one, U+FFFD.

    >>> characters(b"a\xff\xe2\x96\x81")
    ['a', '�', '▁']
    """
    found = []
    at = 0
    while at < len(text):
        character = valid_character(text, at)
        found.append("\ufffd" if character is None else character.decode())
        at += 1 if character is None else len(character)
    return found


def character_positions(text: bytes) -> list[int]:
    """For each byte of a text, and its end, how many characters begin before it or at it.

    >>> character_positions("a▁b".encode())
    [0, 1, 1, 1, 2, 3]
    """
    positions = []
    at = count = 0
    while at < len(text):
        length = len(valid_character(text, at) or b"?")
        positions += [count] * length
        at += length
        count += 1
    return [*positions, count]
