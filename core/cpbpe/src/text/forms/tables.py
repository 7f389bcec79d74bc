"""Writes the tables beside it, of Unicode normal forms, from what `cpbpe/text/unicode_forms.py` knows.

Nobody needs this file to use them. A test compares the tables with what this command would write:

    python core/cpbpe/src/text/forms/tables.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

from cpbpe.text.unicode_forms import FORMS, combining_class, compositions, decomposed, is_stable, only_moves

FILE = Path(__file__).with_name("tables.rs")

_BLOCK = 64
_END = 0x30000
"""No character from here on is composed of anything."""
_HANGUL = range(0xAC00, 0xAC00 + 11172)
"""Syllables, which the core takes apart by a rule."""
_COLUMNS = 120
_IN_LINE = 13
"""This many characters are written in a line."""

_Property = tuple[int, ...]
"""A combining class; a bit for each form in which the character may change, and a higher one for each in
which only its place may; and where its canonical and its compatible decomposition begin among all texts, and
how long they are. Without one the length is 0."""


def tables() -> str:
    """The file."""
    properties: list[_Property] = [(0,) * 6]
    texts, blocks = b"", [(0,) * _BLOCK]
    places: dict[str, int] = {}
    numbers: dict[_Property, int] = {properties[0]: 0}
    block_numbers = {blocks[0]: 0}
    index = []
    for begin in range(0, _END, _BLOCK):
        block = []
        for code in range(begin, begin + _BLOCK):
            character = "?" if 0xD800 <= code < 0xE000 else chr(code)
            where = []
            for compatible in (False, True):
                text = character if code in _HANGUL else decomposed(character, compatible)
                if text == character:
                    where += [0, 0]
                    continue
                if text not in places:
                    places[text] = len(texts)
                    texts += text.encode()
                where += [places[text], len(text.encode())]
            changes = sum((not is_stable(form, character)) << bit for bit, form in enumerate(FORMS))
            changes |= sum(only_moves(form, character) << bit for bit, form in enumerate(FORMS, len(FORMS)))
            found = (combining_class(character), changes, *where)
            number = numbers.setdefault(found, len(properties))
            if number == len(properties):
                properties.append(found)
            block.append(number)
        row = tuple(block)
        index.append(block_numbers.setdefault(row, len(blocks)))
        if index[-1] == len(blocks):
            blocks.append(row)
    pairs = sorted((ord(left), ord(right), ord(both)) for (left, right), both in compositions().items())
    assert len(texts) < 1 << 16  # (as the types of the tables say)
    assert len(blocks) < 1 << 8
    return _written(index, blocks, properties, texts, pairs)


def _written(
    index: list[int],
    blocks: Sequence[tuple[int, ...]],
    properties: Sequence[_Property],
    texts: bytes,
    pairs: Sequence[tuple[int, ...]],
) -> str:
    escapes = [f"\\u{{{ord(character):x}}}" for character in texts.decode()]
    lines = ["".join(escapes[at : at + _IN_LINE]) for at in range(0, len(escapes), _IN_LINE)]
    masks = (
        [
            sum((properties[number][1] >> form & 1) << place for place, number in enumerate(block))
            for block in blocks
        ]
        for form in range(len(FORMS))
    )
    return "\n".join(
        [
            "//! Written by `tables.py`. Do not edit.",
            "#![cfg_attr(rustfmt, rustfmt::skip)]",
            "",
            "/// The index of each block of 64 characters in `CHANGES` and `BLOCKS`. Equal blocks share one.",
            _array("INDEX", "u8", len(index), map(str, index)),
            "/// For each form and block, a bit for each character that may change.",
            _array("CHANGES", f"[u64; {len(blocks)}]", len(FORMS), map(_list, masks)),
            "/// For each character of a block, its index in `PROPERTIES`.",
            _array("BLOCKS", f"[u16; {_BLOCK}]", len(blocks), map(_list, blocks)),
            "/// Combining class, forms in which a character may change (lower bits) or only its place may",
            "/// (upper bits), begin and length in `TEXTS` of the canonical decomposition, and of the other.",
            _array("PROPERTIES", "(u8, u8, u16, u8, u16, u8)", len(properties), map(_row, properties)),
            "/// Compositions: the first character, the second, and the one that they become.",
            _array("PAIRS", "(u32, u32, u32)", len(pairs), map(_row, pairs)),
            "/// The decompositions.",
            'pub static TEXTS: &str = "\\',
            *(f"{line}\\" for line in lines),
            '";',
            "",
        ]
    )


def _row(numbers: Iterable[int]) -> str:
    return "(" + ",".join(map(str, numbers)) + ")"


def _list(numbers: Iterable[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"


def _array(name: str, type: str, length: int, items: Iterable[str]) -> str:
    text = fill(", ".join(items), _COLUMNS, break_long_words=False, break_on_hyphens=False)
    return f"pub static {name}: [{type}; {length}] = [\n{text}\n];"


if __name__ == "__main__":
    FILE.write_text(tables(), encoding="ascii")
