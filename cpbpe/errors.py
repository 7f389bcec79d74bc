"""The exceptions of cpbpe.

Everything else that can go wrong uses Python's own: TypeError for a wrong type, IndexError for an
id outside the vocabulary, ValueError for an option the model cannot serve, OSError for files.
"""

from __future__ import annotations

from collections.abc import Sequence


class ModelError(ValueError):
    """The data is not a model that cpbpe can read; the message says what is wrong, and where.

    When one piece is to blame, ``piece`` is its text as bytes and ``id`` its index; else both are None. If it
    is a model of another kind than BPE, ``library`` is the name of the one that reads it.

    >>> import cpbpe
    >>> cpbpe.Tokenizer.from_bytes(b"")
    Traceback (most recent call last):
    ...
    cpbpe.errors.ModelError: not a SentencePiece model: the data is empty (0 bytes)
    """

    def __init__(
        self, message: str, *, piece: bytes | None = None, id: int | None = None, library: str | None = None
    ):
        super().__init__(message)
        self.piece = piece
        self.id = id
        self.library = library


class TrainingError(ValueError):
    """Training cannot be done as asked: an option, the corpus, or the two together; the message says
    which, and what to do about it.

    >>> import cpbpe
    >>> cpbpe.TrainOptions(character_coverage=0.5)
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: character_coverage must be 0.98 to 1.0, not 0.5
    """


class CorpusError(TrainingError):
    r"""A corpus cannot be read; the message says which file, where in it, and what to do about it.

    It is a `TrainingError` as well, so those who train need one name only.

    >>> import cpbpe
    >>> cpbpe.train(["a text\tmany"], format="tsv", vocab_size=1000)
    Traceback (most recent call last):
    ...
    cpbpe.errors.CorpusError: item 1: the count must be an integer from 1 to 2**63 - 1, not 'many'
    """


def missing(need: str, *packages: str) -> ImportError:
    """The error for packages that cpbpe does not require. `need` says what needs them.

    It names the packages and no extra, because an extra of `cpbpe` is fetched with a release of it, even by
    somebody who has a checkout.
    """
    quoted = (f'"{package}"' if "[" in package else package for package in packages)
    return ImportError(f"{need}: pip install {' '.join(quoted)}")


class ConversionError(ValueError):
    """A model cannot be converted so that every text keeps its ids; the message says why, and what to do.

    ``differences`` lists the reasons, each with a text that shows it, if one was found.
    """

    def __init__(self, message: str, *, differences: Sequence[tuple[str, str | None]] = ()):
        super().__init__(message)
        self.differences = tuple(differences)
