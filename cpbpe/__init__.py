"""Tokenizers of SentencePiece BPE models: exact, typed, and readable.

>>> import cpbpe
>>> tok = cpbpe.load("tokenizer.model")
>>> tok.encode_pieces("Hello world")
['▁Hello', '▁world']
>>> tok.decode(tok.encode("Hello world"))
'Hello world'
"""

from cpbpe.encoding import Encoding
from cpbpe.engine import engine
from cpbpe.errors import ModelError, TrainingError
from cpbpe.options import PRESETS, TrainOptions
from cpbpe.ragged import Ragged
from cpbpe.report import Report
from cpbpe.spec import PieceType
from cpbpe.tokenizer import Tokenizer, load
from cpbpe.trainer import TrainingResult, train
from cpbpe.word_counts import WordCounts

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "Encoding",
    "ModelError",
    "PieceType",
    "Ragged",
    "Report",
    "Tokenizer",
    "TrainOptions",
    "TrainingError",
    "TrainingResult",
    "WordCounts",
    "__version__",
    "engine",
    "load",
    "train",
]
