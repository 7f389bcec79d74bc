"""The package sentencepiece, version 0.2.3, for BPE models: the same names, calls and results.

A program only has to change its import line:

>>> import cpbpe.compat.sentencepiece as spm
>>> sp = spm.SentencePieceProcessor(model_file="tokenizer.model")
>>> sp.encode("Hello world")
[22557, 1526]

`docs/replacing.md` lists the differences and the reasons for them.
"""

# ruff: noqa: N802

from __future__ import annotations

import os
from typing import Any, NoReturn

from cpbpe.compat.sentencepiece.loaded import set_seed
from cpbpe.compat.sentencepiece.normalizer import SentencePieceNormalizer
from cpbpe.compat.sentencepiece.processor import SentencePieceProcessor, ThreadPool
from cpbpe.compat.sentencepiece.trainer import Error, SentencePieceTrainer
from cpbpe.compat.sentencepiece.values import as_int, as_name

__version__ = "0.2.3"
"""The version of sentencepiece that this package imitates; programs check it to know what they may call."""

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


set_random_generator_seed = SetRandomGeneratorSeed
set_min_log_level = SetMinLogLevel
set_nbest_timeout = SetNBestTimeout
set_data_dir = SetDataDir
convert_to_flatbuffer = ConvertToFlatbuffer

__all__ = [
    "ConvertToFlatbuffer",
    "Error",
    "SentencePieceNormalizer",
    "SentencePieceProcessor",
    "SentencePieceTrainer",
    "SetDataDir",
    "SetMinLogLevel",
    "SetNBestTimeout",
    "SetRandomGeneratorSeed",
    "ThreadPool",
    "convert_to_flatbuffer",
    "set_data_dir",
    "set_min_log_level",
    "set_nbest_timeout",
    "set_random_generator_seed",
]

# Pickles, messages and documentation show the module where users find these, not the file they are in.
for _class in (Error, SentencePieceNormalizer, SentencePieceProcessor, SentencePieceTrainer, ThreadPool):
    _class.__module__ = __name__
del _class
