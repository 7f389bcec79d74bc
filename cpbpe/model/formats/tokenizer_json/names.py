"""The tokens of a tokenizer.json for the pieces of a model: what they are called, and which a text can find.

In the other library, a token is found if it is one character of the text, or made by a listed pair; its type
does not matter. sentencepiece never finds a CONTROL, UNKNOWN or UNUSED piece that is one character, nor the
piece that is one NUL. These are called by another name, with a NUL in front, which is more than one character
and made by no pair. (No other piece contains a NUL.) The decoder removes it again.

sentencepiece also merges characters that are no pieces; a pair of the other library consists of tokens. Where
such a character is a single byte, and the model has BYTE pieces, there is a way (Gemma's files know it): the
BYTE piece is called by the character. The text has the same id, and the character is a token.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain

from cpbpe.errors import ConversionError
from cpbpe.lazy import kept
from cpbpe.model.formats.tokenizer_json.spaces import HIDDEN
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.finder import Finder

MAX_USER_DEFINED_MATCHES = 64
"""sentencepiece looks at this many pieces that begin alike."""

_NEVER_FOUND = (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.UNUSED)


class Names:
    """The pieces of a model as tokens."""

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        self.texts = [_decoded(text, id) for id, text in enumerate(spec.pieces.texts)]
        """The text of each piece."""
        self.types = spec.pieces.types
        """Their types."""
        self.names = [
            HIDDEN + text if len(text) == 1 and (type in _NEVER_FOUND or text == "\0") else text
            for text, type in zip(self.texts, self.types, strict=True)
        ]
        """What each is called in the file."""
        bytes = self._bytes_as_characters()
        for character, id in bytes.items():
            self.names[id] = character
        self.bytes = frozenset(bytes)
        """The characters that BYTE pieces are called by."""
        self.has_hidden = any(name[0] == HIDDEN for name in self.names)
        """Whether a name is another than the text."""

    def _bytes_as_characters(self) -> dict[str, int]:
        """The ids of BYTE pieces that are called by a character: one that only longer pieces hold."""
        if not self.spec.byte_fallback:
            return {}
        longer = "".join(text for text in self.ranks if len(text) > 1)
        alone = {text for text in self.texts if len(text) == 1}
        return {
            character: self.spec.ids[b"<0x%02X>" % ord(character)]
            for character in sorted({*longer} - alone)
            if character.isascii()
        }

    def _of(self, *types: PieceType) -> list[str]:
        return [text for text, type in zip(self.texts, self.types, strict=True) if type in types]

    @kept
    def all_user_defined(self) -> list[str]:
        """The USER_DEFINED pieces that are found in text before it is normalized."""
        keys = {text: text.encode() for text in self._of(PieceType.USER_DEFINED) if text != "\0"}
        finder = Finder(keys.values(), MAX_USER_DEFINED_MATCHES)
        return [text for text, key in keys.items() if finder.longest(key, 0) == len(key)]

    @kept
    def user_defined(self) -> list[str]:
        """Those that are found in normalized text, in which there may be no spaces."""
        return [text for text in self.all_user_defined if self.can_be_found(text)]

    def can_be_found(self, text: str) -> bool:
        """Whether normalized text can hold this one."""
        return not (self.spec.normalizer.escape_whitespaces and " " in text)

    @kept
    def control(self) -> dict[str, int]:
        """The names of the CONTROL pieces, with their ids."""
        return {
            name: id
            for id, (name, type) in enumerate(zip(self.names, self.types, strict=True))
            if type == PieceType.CONTROL
        }

    @kept
    def characters(self) -> frozenset[str]:
        """The tokens of one character: all others are unknown."""
        return frozenset(name for name in self.names if len(name) == 1)

    @kept
    def all(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.names)

    @kept
    def unused(self) -> frozenset[str]:
        """The UNUSED pieces, which merge and are split again."""
        return frozenset(self._of(PieceType.UNUSED))

    @kept
    def ranks(self) -> dict[str, float]:
        """The pieces that merges can make, the lowest rank for the highest score.

        Scores are compared as sentencepiece does it: by their bits, which also orders -0.0 and NaN. Pieces
        that hold a user-defined one, or a space that is escaped, are left out: no text can make them.
        """
        bits = array("i", self.spec.pieces.scores)
        mergeable = (PieceType.NORMAL, PieceType.UNUSED)
        return {
            text: -(bits[id] if bits[id] >= 0 else -(bits[id] & 0x7FFFFFFF) - 1)
            for id, text in enumerate(self.texts)
            if self.types[id] in mergeable
            and text != "\0"
            and self.can_be_found(text)
            and not self.holds_user_defined(text)
        }

    def holds_user_defined(self, text: str) -> bool:
        """Whether a user-defined piece is somewhere in a text."""
        return bool(self.user_defined) and self._finder.split(text.encode()) is not None

    @kept
    def _finder(self) -> Finder:
        return Finder(text.encode() for text in self.user_defined)

    @kept
    def absent(self) -> str:
        """A character that no piece contains: it is unknown, and nothing is merged across it."""
        return absent_character([*self.texts, self.spec.unk_surface.decode(errors="replace")])

    @kept
    def private(self) -> str:
        """A character for private use that no piece contains."""
        characters = set().union(*self.texts, self.spec.unk_surface.decode(errors="replace"))
        private = chain(range(0xE000, 0xF900), range(0xF0000, 0x10FFFE))
        return next(c for c in map(chr, private) if c not in characters)


def absent_character(texts: Iterable[str]) -> str:
    """A character that none of these texts contains, printable if there is one."""
    characters = set().union(*texts)
    free = (c for c in map(chr, chain(range(0x21, 0xD800), [0x10FFFD])) if c not in characters)
    first = next(free, chr(0x10FFFD))
    return first if first.isprintable() else next((c for c in free if c.isprintable()), first)


def _decoded(text: bytes, id: int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ConversionError(
            f"piece {id}, {text!r}, is not UTF-8, and a tokenizer.json can hold only text. Give the piece "
            f"another text first (tok.spec, cpbpe.Tokenizer.from_spec)"
        ) from None
