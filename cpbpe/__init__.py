"""Tokenizers of SentencePiece BPE models: exact, typed, and readable.

>>> import cpbpe
>>> tok = cpbpe.load("tokenizer.model")
>>> tok.encode_pieces("Hello world")
['▁Hello', '▁world']
>>> tok.decode(tok.encode("Hello world"))
'Hello world'
"""

from typing import TYPE_CHECKING

from cpbpe.encoding import Encoding
from cpbpe.engine import engine
from cpbpe.errors import ModelError, TrainingError
from cpbpe.lossless import Losslessness
from cpbpe.ragged import Ragged
from cpbpe.spec import PieceType
from cpbpe.special import Special
from cpbpe.streaming import StreamDecoder, StreamEncoder
from cpbpe.stretches import Part
from cpbpe.tokenizer import Tokenizer, load

if TYPE_CHECKING:
    from cpbpe.trainer import TrainingResult, train
    from cpbpe.training.options import PRESETS, TrainOptions
    from cpbpe.training.report import Report
    from cpbpe.training.word_counts import WordCounts

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "Encoding",
    "Losslessness",
    "ModelError",
    "Part",
    "PieceType",
    "Ragged",
    "Report",
    "Special",
    "StreamDecoder",
    "StreamEncoder",
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

_TRAINING = {
    "PRESETS": "training.options",
    "Report": "training.report",
    "TrainOptions": "training.options",
    "TrainingResult": "trainer",
    "WordCounts": "training.word_counts",
    "train": "trainer",
}


def __getattr__(name: str) -> object:
    """Import what training needs when it is first asked for: most programs only encode."""
    if name not in _TRAINING:
        raise AttributeError(f"module 'cpbpe' has no attribute {name!r}")
    from cpbpe.late import imported

    value = getattr(imported(f"cpbpe.{_TRAINING[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_TRAINING} - {"TYPE_CHECKING"})
