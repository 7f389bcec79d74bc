"""Which engine does the work, and what every engine must offer.

An engine turns bytes into tokens and ids into bytes for one model. It knows nothing of Python's
many ways to pass text and numbers; `cpbpe.tokenizer` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cpbpe.reference import ReferenceEngine, Token
from cpbpe.spec import ModelSpec


class Engine(Protocol):
    """The operations of an engine. Text is bytes in UTF-8, and may be invalid."""

    @property
    def name(self) -> str:
        """What `cpbpe.engine()` answers when this engine is in use."""

    def normalize(self, text: bytes) -> bytes:
        """The text as it is segmented."""

    def encode(self, text: bytes) -> list[Token]:
        """Ids, pieces and the spans of the input they came from."""

    def decode_ids(self, ids: Sequence[int], keep_invalid: bool = False) -> bytes:
        """The text of ids inside the vocabulary; invalid bytes become U+FFFD unless they are kept."""

    def decode_pieces(self, pieces: Sequence[bytes]) -> bytes:
        """The text of pieces; one that the vocabulary does not hold stands for itself."""


def make_engine(spec: ModelSpec) -> Engine:
    """The best engine there is, built for a model."""
    return ReferenceEngine(spec)


def engine() -> str:
    """The name of the engine that tokenizers use: "reference", the algorithm in plain Python.

    >>> engine()
    'reference'
    """
    return ReferenceEngine.name
