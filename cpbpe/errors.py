"""The exceptions of cpbpe.

Everything else that can go wrong uses Python's own: TypeError for a wrong type, IndexError for an
id outside the vocabulary, ValueError for an option the model cannot serve, OSError for files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
"""The error numbers of a full disk, of a limit on the size of a file, and of a user's quota."""
MAKE_ROOM = "make room there, or choose another disk"
"""What to do about them."""


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


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Errors about a model name its file, if it is given by its path."""
    try:
        yield
    except ModelError as error:
        path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
        if path not in str(error):
            error.args = (f"{path}: {error}",)
        raise


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

    It names the packages, and not an extra such as `cpbpe[all]`: for an extra, pip would fetch a release of
    cpbpe, even for somebody who works in a checkout.
    """
    quoted = (f'"{package}"' if "[" in package else package for package in packages)
    return ImportError(f"{need}: pip install {' '.join(quoted)}")


@contextmanager
def room_for(name: str) -> Iterator[None]:
    """Let an error about a full disk also say which file there was no room for, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename is not None:
            raise
        raise OSError(error.errno, f"{error.strerror}; {MAKE_ROOM}", name) from error


@contextmanager
def starting_a_thread() -> Iterator[None]:
    """Turn the error for a thread that cannot start into a MemoryError: usually its stack has no room."""
    try:
        yield
    except RuntimeError as error:  # (Python has no class of its own for this)
        if "start new thread" not in str(error):
            raise
        raise MemoryError("the system has no memory for another thread, or allows no more") from error


class ChatTemplateError(ValueError):
    """A chat template cannot be read, or does not render a conversation; the message says why.

    `reason` is the end of a sentence that begins with "the chat template".
    """

    def __init__(self, reason: str):
        super().__init__(f"the chat template {reason}")
        self.reason = reason


class ConversionError(ValueError):
    """A model cannot be converted so that every text keeps its ids; the message says why, and what to do.

    ``differences`` lists the reasons, each with a text that shows it, if one was found.
    """

    def __init__(self, message: str, *, differences: Sequence[tuple[str, str | None]] = ()):
        super().__init__(message)
        self.differences = tuple(differences)
