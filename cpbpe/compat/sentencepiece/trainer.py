"""`SentencePieceTrainer`: training with sentencepiece's calls.

It takes the arguments that sentencepiece takes, has the same defaults, and writes the same bytes: a program
that trains BPE models only has to change its import line.

    from cpbpe.compat import sentencepiece as spm
    spm.SentencePieceTrainer.train(input="corpus.txt", model_prefix="my", vocab_size=8000, model_type="bpe")

There is one difference in results: if `input_sentence_size` samples a larger corpus, sentencepiece chooses
other sentences in every run, and cpbpe always the same.
"""

from __future__ import annotations

from typing import Any, TextIO

from cpbpe.errors import TrainingError
from cpbpe.lazy import importing


class SentencePieceTrainer:
    """Trains BPE models; its methods are those of sentencepiece's class of this name.

    >>> import io
    >>> model = io.BytesIO()
    >>> SentencePieceTrainer.train(
    ...     sentence_iterator=iter(["hello"]), model_writer=model, model_type="bpe", vocab_size=12
    ... )
    >>> len(model.getvalue()) > 0
    True
    >>> SentencePieceTrainer.train("--input=corpus.txt --model_prefix=my --model_type=unigram")
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.compat.sentencepiece.Error: model_type is unigram, and cpbpe trains BPE models only; give ...
    """

    @staticmethod
    def train(arg: str | None = None, logstream: TextIO | None = None, **kwargs: Any) -> None:
        """Train a model.

        Takes either one string of flags, ``"--input=corpus.txt --vocab_size=1000 ..."``, or keyword arguments
        of the same names, whose values may be lists. Keyword arguments also include `sentence_iterator`,
        `model_writer`, `pretokenizer`, `allow_inconsistent_pretokenization` and `normalizer`. `logstream`
        gets the report.
        """
        with importing:
            from cpbpe.compat.sentencepiece.train_calls import call  # takes as long to import as all the rest

        try:
            call(arg, logstream, kwargs)
        except TrainingError as error:
            raise Error(str(error)) from error
        except OSError as error:
            kind = MissingFile if isinstance(error, FileNotFoundError) else FileError
            raise (
                kind(error.errno, error.strerror, error.filename) if error.filename else kind(str(error))
            ) from error

    Train = train


class Error(TrainingError, RuntimeError):
    """A `TrainingError` that is also a RuntimeError, which sentencepiece raises."""


class FileError(OSError, RuntimeError):
    """An OSError that is also a RuntimeError."""


class MissingFile(FileNotFoundError, RuntimeError):  # noqa: N818
    """A FileNotFoundError that is also a RuntimeError."""
