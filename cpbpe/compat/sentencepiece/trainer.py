"""`SentencePieceTrainer`: training with sentencepiece's calls. And the functions for the whole process.

It takes the arguments that sentencepiece takes, has the same defaults, and writes the same bytes: a program
that trains BPE models only has to change its import line.

    from cpbpe.compat import sentencepiece as spm
    spm.SentencePieceTrainer.train(input="corpus.txt", model_prefix="my", vocab_size=8000, model_type="bpe")

There is one difference in results: if `input_sentence_size` samples a larger corpus, sentencepiece chooses
other sentences in every run, and cpbpe always the same.
"""

# ruff: noqa: N802

from __future__ import annotations

import os
from typing import Any, NoReturn, TextIO

from cpbpe.compat.sentencepiece.loaded import set_seed
from cpbpe.compat.sentencepiece.values import as_int, as_name
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


# --- The functions that concern the whole process -------------------------------------------------
#
# Most have no effect here, because nothing is logged, no data files are needed, and no search can time out.
# They accept the same arguments as sentencepiece's.

_DEFAULT_SEED = (1 << 32) - 1
"""In sentencepiece, this seed means that there is no seed."""


def SetRandomGeneratorSeed(seed: int) -> None:
    """Make sampling reproducible: from here on, the same calls give the same samples.

    They are not the samples that sentencepiece gives for this seed, but have the same distribution.
    """
    number = as_int(seed, "seed", 0, _DEFAULT_SEED)
    if number != _DEFAULT_SEED:
        set_seed(number)


def SetMinLogLevel(level: int) -> None:
    """Do nothing: nothing is logged."""
    as_int(level, "the log level")


def SetNBestTimeout(timeout_ms: int) -> None:
    """Do nothing: BPE models have no n-best search."""
    as_int(timeout_ms, "the timeout")


def SetDataDir(data_dir: str | bytes) -> None:
    """Do nothing: the named normalization rules are built, not read from a folder."""
    as_name(data_dir, "the folder")


def ConvertToFlatbuffer(
    model_file: Any = None,
    model_proto: Any = None,
    serialized_model_proto: Any = None,
    output_file: Any = None,
    skip_char_bigrams: bool = False,
    treat_null_byte_as_unused: bool = False,
    allow_unsupported_model_type: bool = False,
) -> NoReturn:
    """Raise NotImplementedError: this is the only function that cpbpe does not have.

    The format is that of SentencePieceLite, a reader for phones, which nothing in Python reads.
    """
    models = [model for model in (model_file, model_proto, serialized_model_proto) if model is not None]
    if len(models) != 1:
        raise ValueError("give one of model_file, model_proto and serialized_model_proto")
    for value, name in ((output_file, "output_file"), (model_file, "model_file")):
        if value is not None and not os.fsdecode(os.fspath(value)):
            raise ValueError(f"{name} is empty")
    if not (
        model_proto is None or isinstance(model_proto, bytes) or hasattr(model_proto, "SerializeToString")
    ):
        raise TypeError(f"model_proto must be a ModelProto or bytes, not {type(model_proto).__name__}")
    if serialized_model_proto is not None and not isinstance(serialized_model_proto, bytes):
        raise TypeError(f"serialized_model_proto must be bytes, not {type(serialized_model_proto).__name__}")
    raise NotImplementedError(
        "cpbpe does not write the .spm.fb files of SentencePieceLite; sentencepiece itself does: "
        "pip install sentencepiece==0.2.3, then sentencepiece.convert_to_flatbuffer(...)"
    )
