"""The letters that stand for bytes in tokenizer.json and GPT-2's files: printable bytes are themselves.

(The reference explains the alphabet, in `cpbpe.reference.byte_level.ranks`; formats come before it.)
"""

from __future__ import annotations

from itertools import chain

_PRINTABLE = frozenset(chain(range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100)))
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_LETTERS = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(256 + at) for at, byte in enumerate(_OTHERS)}
_TO_LATIN = {ord(letter): byte for byte, letter in _LETTERS.items()}
_FROM_LATIN = {byte: letter for byte, letter in _LETTERS.items() if letter != chr(byte)}
_KNOWN = frozenset(_LETTERS.values())


def letters_of(piece: bytes) -> str:
    """A piece in letters.

    >>> letters_of(" né".encode())
    'ĠnÃ©'
    """
    return piece.decode("latin-1").translate(_FROM_LATIN)


def bytes_of(token: str) -> bytes | None:
    """The bytes of a token; None if it has a character that is no letter.

    >>> bytes_of("ĠnÃ©").decode(), bytes_of("日") is None
    (' né', True)
    """
    if not _KNOWN.issuperset(token):
        return None
    return token.translate(_TO_LATIN).encode("latin-1")
