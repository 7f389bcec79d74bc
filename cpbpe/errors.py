"""The exceptions of cpbpe.

Everything else that can go wrong uses Python's own: TypeError for a wrong type, IndexError for an
id outside the vocabulary, ValueError for an option the model cannot serve, OSError for files.
"""

from __future__ import annotations


class ModelError(ValueError):
    """The data is not a model that cpbpe can read; the message says what is wrong, and where.

    When one piece is to blame, ``piece`` is its text as bytes and ``id`` its index; else both are None.

    >>> import cpbpe
    >>> cpbpe.Tokenizer.from_bytes(b"")
    Traceback (most recent call last):
    ...
    cpbpe.errors.ModelError: not a SentencePiece model: the data is empty (0 bytes)
    """

    def __init__(self, message: str, *, piece: bytes | None = None, id: int | None = None):
        super().__init__(message)
        self.piece = piece
        self.id = id


class TrainingError(ValueError):
    """Training cannot be done as asked: an option, the corpus, or the two together; the message says
    which, and what to do about it.

    >>> import cpbpe
    >>> cpbpe.TrainOptions(character_coverage=0.5)
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: character_coverage must be 0.98 to 1.0, not 0.5
    """
