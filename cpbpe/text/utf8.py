"""Characters and bytes: which bytes are a character in UTF-8, and where characters are in a text.

Of broken text that is encoded, every byte that belongs to no character becomes one U+FFFD; so it does when a
SentencePiece model decodes. Byte-level models decode as Python's "replace" does, which writes a single U+FFFD
for the beginning of a character that does not go on.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from types import MappingProxyType

from cpbpe.errors import ModelError

SPACE = "▁".encode()
"""How a space is written in pieces: U+2581."""
REPLACEMENT = "\ufffd".encode()
"""What replaces a byte that belongs to no character."""


# --- One character --------------------------------------------------------------------------------


def character_length(text: bytes, at: int) -> int:
    r"""How many bytes the character at `at` has, according to its first byte alone.

    >>> character_length("a▁".encode(), 0), character_length("a▁".encode(), 1)
    (1, 3)
    """
    return (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4)[text[at] >> 4]


def valid_character(text: bytes, at: int) -> bytes | None:
    r"""The character at `at`, or None if the bytes there are not a character.

    Overlong forms, surrogates and values above U+10FFFF are not characters. A U+FFFD in the text is one.

    >>> valid_character("é".encode(), 0), valid_character(b"\xc0\x80", 0)
    (b'\xc3\xa9', None)
    """
    character = text[at : at + character_length(text, at)]
    try:
        character.decode()
    except UnicodeDecodeError:
        return None
    return character


def is_inside(text: bytes, at: int) -> bool:
    r"""Whether a position in a text is inside a character.

    >>> [is_inside("a▁".encode(), at) for at in range(5)], is_inside(b"\xff\x81", 1)
    ([False, False, True, True, False], False)
    """
    if not 0 < at < len(text) or text[at] & 0xC0 != 0x80:
        return False
    for begin in range(at - 1, max(at - 4, -1), -1):
        if text[begin] & 0xC0 != 0x80:
            character = valid_character(text, begin)
            return character is not None and begin + len(character) > at
    return False


# --- Broken text ----------------------------------------------------------------------------------


def is_valid_utf8(text: bytes) -> bool:
    """Whether every byte belongs to a character."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def valid_text(data: bytes) -> str | None:
    r"""Return bytes as text, or None if they are not UTF-8 (such as a part of a character).

    >>> valid_text("é".encode()), valid_text(b"\xc3")
    ('é', None)
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def repair(text: bytes) -> bytes:
    r"""Write U+FFFD for every byte that belongs to no character; three such bytes become three.

    >>> repair(b"a\xe2\x96!").decode()
    'a��!'
    """
    return text_of(text).encode()


def text_of(data: bytes) -> str:
    r"""Return bytes as text. They are repaired if a model has pieces or rules that are not UTF-8.

    >>> text_of("é".encode()), text_of(b"\xc3")
    ('é', '�')
    """
    return data.decode(errors=_ONE_FOR_EACH)


def _one_for_each(error: UnicodeError) -> tuple[str, int]:
    """Replace every bad byte with one U+FFFD, like `repair`."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


_ONE_FOR_EACH = "cpbpe.one_for_each"
codecs.register_error(_ONE_FOR_EACH, _one_for_each)


def certain(data: bytes, final: bool = False) -> tuple[str, int]:
    r"""Decode bytes that more bytes may follow. Return the text, and how many bytes it stands for.

    These are all of them, except for an incomplete character at the end.

    >>> certain(b"a\xe2\x96"), certain(b"a\xe2\x96", final=True), certain(b"\xe2\x96!\xc0")
    (('a', 1), ('a��', 3), ('��!�', 4))
    """
    text, used = codecs.utf_8_decode(data, _ONE_FOR_EACH, final)
    if len(data) - used == 2 and data[used] == 0xED and data[used + 1] >= 0xA0:
        # The beginning of a surrogate: Python holds it back, in case a handler lets surrogates pass.
        return text + "\ufffd\ufffd", used + 2
    return text, used


NEVER_IN_UTF8 = frozenset([0xC0, 0xC1, *range(0xF5, 0x100)])
"""The bytes that never occur in UTF-8."""

# --- Positions ------------------------------------------------------------------------------------


_BEGINS = bytes(int(byte & 0xC0 != 0x80) for byte in range(256))
"""For each byte of valid UTF-8, whether a character begins with it."""


def character_positions(text: bytes, by_first_byte: bool = False) -> list[int]:
    r"""Return the index of the character for each byte of a text, and then the number of characters.

    A byte that belongs to no character counts as one. With `by_first_byte`, the first byte of a character
    decides its length, whatever follows, as in sentencepiece. This makes a difference only in broken text.

    >>> character_positions("a▁b".encode()), character_positions(b"\xe2ab")
    ([0, 1, 1, 1, 2, 3], [0, 1, 2, 3])
    >>> character_positions(b"\xe2ab", by_first_byte=True)
    [0, 0, 0, 1]
    """
    with suppress(UnicodeDecodeError):
        text.decode()
        positions = list(accumulate(text.translate(_BEGINS), initial=-1))
        return [*positions[1:], positions[-1] + 1]
    positions = []
    count = 0
    while len(positions) < len(text):
        at = len(positions)
        if by_first_byte:
            length = min(character_length(text, at), len(text) - at)
        else:
            length = len(valid_character(text, at) or b"?")
        positions += [count] * length
        count += 1
    return [*positions, count]


# --- GPT-2's letters: a printable one for each byte ------------------------------------------------
#
# In the files `vocab.json` and `merges.txt`, tokenizer.json and GGUF, pieces are text, with a space between
# the halves of a pair. But a piece may hold any byte, even a space or half a character. So each byte is
# written as a letter: a printable one as itself, the others as the letters from U+0100 on, in their order. A
# space, the 33rd of these, becomes Ġ, and a line break Ċ.

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
"""The bytes that are printable characters in Latin-1, other than spaces and the invisible soft hyphen."""

BYTE_ORDER = tuple(_PRINTABLE + [byte for byte in range(256) if byte not in set(_PRINTABLE)])
"""The bytes in the order of their letters. In this order, GPT-2 and OpenAI's later models number them."""

LETTERS = MappingProxyType(
    {
        byte: chr(byte if place < len(_PRINTABLE) else 256 + place - len(_PRINTABLE))
        for place, byte in enumerate(BYTE_ORDER)
    }
)
"""The letter for each byte: "a" for 0x61, "Ġ" for a space, "Ċ" for a line break."""

BYTES_OF_LETTERS = MappingProxyType({letter: byte for byte, letter in LETTERS.items()})
"""The byte for each letter."""

_SPELLED = str.maketrans({chr(byte): letter for byte, letter in LETTERS.items()})
_READ = str.maketrans({letter: chr(byte) for letter, byte in BYTES_OF_LETTERS.items()})


def to_letters(piece: bytes) -> str:
    """Return a piece as GPT-2's files write it.

    >>> to_letters(" né".encode())
    'ĠnÃ©'
    """
    return piece.decode("latin-1").translate(_SPELLED)


def from_letters(letters: str) -> bytes:
    """Return the bytes that letters stand for.

    >>> from_letters("ĠnÃ©").decode()
    ' né'
    """
    if is_spelled(letters):
        return letters.translate(_READ).encode("latin-1")
    other = next(letter for letter in letters if letter not in BYTES_OF_LETTERS)
    raise ModelError(f"{letters!r} has the character {other!r}, which stands for no byte in GPT-2's alphabet")


def all_from_letters(spelled: Sequence[str]) -> list[bytes]:
    r"""Return the bytes of many pieces, in a fifth of the time that `from_letters` would take for each.

    >>> all_from_letters(["Ġn", "é"])
    [b' n', b'\xe9']
    """
    blob = from_letters("".join(spelled))
    ends = list(accumulate(map(len, spelled), initial=0))
    return [blob[begin:end] for begin, end in pairwise(ends)]


def is_spelled(letters: str) -> bool:
    """Whether a text consists of GPT-2's letters.

    >>> is_spelled("Ġn"), is_spelled(" n")
    (True, False)
    """
    return BYTES_OF_LETTERS.keys() >= set(letters)
