"""The package sentencepiece, version 0.2.3, for BPE models: the same names, calls and results.

A program only has to change its import line:

>>> import cpbpe.compat.sentencepiece as spm
>>> sp = spm.SentencePieceProcessor(model_file="tokenizer.model")
>>> sp.encode("Hello world")
[22557, 1526]

`docs/replacing.md` lists the differences and the reasons for them.
"""

from __future__ import annotations

from cpbpe.compat.sentencepiece.normalizer import SentencePieceNormalizer
from cpbpe.compat.sentencepiece.processor import SentencePieceProcessor, ThreadPool
from cpbpe.compat.sentencepiece.trainer import (
    ConvertToFlatbuffer,
    Error,
    SentencePieceTrainer,
    SetDataDir,
    SetMinLogLevel,
    SetNBestTimeout,
    SetRandomGeneratorSeed,
)

__version__ = "0.2.3"
"""The version of sentencepiece that this package imitates; programs check it to know what they may call."""

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
