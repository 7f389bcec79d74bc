"""How transformers spells the pieces of a model as tokens: those of a byte-level one in GPT-2's letters.

A byte-level piece may end within a character, so it need not be text. GPT-2 has a printable letter for
each byte instead (`Ġ` for a space), and transformers spells the tokens of such models in these.
"""

from __future__ import annotations

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import text_of, to_letters


class PieceNames:
    """The names of the pieces of an engine's model."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._is_byte_level = engine.head["byte_level"] is not None

    def __call__(self, id: int) -> str:
        """The name of a piece."""
        piece = self._engine.piece(id)
        if not self._is_byte_level or self._engine.kind(id) == PieceType.CONTROL:
            return text_of(piece)
        return to_letters(piece)

    @kept
    def ids(self) -> dict[str, int]:
        """The id of each name."""
        return {self(id): id for id in range(self._engine.size)}

    def piece(self, name: str) -> bytes:
        """The piece that has a name; the name itself, if none has it."""
        if not self._is_byte_level:
            return name.encode()
        id = self.ids.get(name)
        return name.encode() if id is None else self._engine.piece(id)
