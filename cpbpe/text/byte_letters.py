r"""GPT-2's letters: a printable one for each byte, in which files of byte-level models spell their pieces.

The files `vocab.json` and `merges.txt`, tokenizer.json and GGUF are text, with a space between the halves of
a pair, and a piece may hold any byte, also a space or half a character. So each byte is written as a letter:
a printable one as itself, the others as the letters from U+0100 on, in their order. A space, the 33rd of
these, becomes Ġ, and a line break Ċ.

>>> LETTERS[ord("a")], LETTERS[ord(" ")], LETTERS[ord("\n")]
('a', 'Ġ', 'Ċ')
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType

from cpbpe.errors import ModelError

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
"""The bytes that are printable characters in Latin-1, other than spaces and the invisible soft hyphen."""

BYTE_ORDER = tuple(_PRINTABLE + [byte for byte in range(256) if byte not in set(_PRINTABLE)])
"""The bytes in the order of their letters, in which GPT-2, and OpenAI ever since, gave them their ids."""

LETTERS = MappingProxyType(
    {
        byte: chr(byte if place < len(_PRINTABLE) else 256 + place - len(_PRINTABLE))
        for place, byte in enumerate(BYTE_ORDER)
    }
)
"""The letter for each byte."""

BYTES_OF_LETTERS = MappingProxyType({letter: byte for byte, letter in LETTERS.items()})
"""The byte for each letter."""

_SPELLED = str.maketrans({chr(byte): letter for byte, letter in LETTERS.items()})
_READ = str.maketrans({letter: chr(byte) for letter, byte in BYTES_OF_LETTERS.items()})


def to_letters(piece: bytes) -> str:
    """A piece as GPT-2's files write it.

    >>> to_letters(" né".encode())
    'ĠnÃ©'
    """
    return piece.decode("latin-1").translate(_SPELLED)


def from_letters(letters: str) -> bytes:
    """The bytes that letters stand for.

    >>> from_letters("ĠnÃ©").decode()
    ' né'
    """
    if is_spelled(letters):
        return letters.translate(_READ).encode("latin-1")
    other = next(letter for letter in letters if letter not in BYTES_OF_LETTERS)
    raise ModelError(f"{letters!r} has the character {other!r}, which stands for no byte in GPT-2's alphabet")


def all_from_letters(spelled: Sequence[str]) -> list[bytes]:
    r"""The same for many pieces, which takes a fifth of the time.

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
