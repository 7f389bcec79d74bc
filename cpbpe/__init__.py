"""Tokenizers of SentencePiece BPE models: exact, typed, and readable.

>>> import cpbpe
>>> tok = cpbpe.load("tokenizer.model")
>>> tok.encode_pieces("Hello world")
['▁Hello', '▁world']
>>> tok.decode(tok.encode("Hello world"))
'Hello world'
"""

from typing import TYPE_CHECKING

from cpbpe.errors import ConversionError, CorpusError, ModelError, TrainingError
from cpbpe.version import __version__

if TYPE_CHECKING:
    from cpbpe.engine.choice import engine_name
    from cpbpe.lint.values import Finding, Lint
    from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType, Settings
    from cpbpe.packing.pack import pack
    from cpbpe.packing.packed_tokens import PackedTokens
    from cpbpe.packing.report import PackReport
    from cpbpe.tokenizer.completions import Completions
    from cpbpe.tokenizer.converting import Conversion, convert
    from cpbpe.tokenizer.encoding import Encoding
    from cpbpe.tokenizer.inspection import Inspection
    from cpbpe.tokenizer.loading import load
    from cpbpe.tokenizer.lossless import Losslessness
    from cpbpe.tokenizer.ragged import Ragged
    from cpbpe.tokenizer.shown import Shown
    from cpbpe.tokenizer.special import Part, Special
    from cpbpe.tokenizer.stream_decoder import StreamDecoder
    from cpbpe.tokenizer.stream_encoder import StreamEncoder
    from cpbpe.tokenizer.tokenizer import Tokenizer
    from cpbpe.tokenizer.vocabulary import Vocabulary
    from cpbpe.tools.compare import compare
    from cpbpe.tools.comparison import Comparison
    from cpbpe.tools.diff import ModelDiff, diff
    from cpbpe.training.options import BYTE_PRESETS, PRESETS, ByteTrainOptions, TrainOptions
    from cpbpe.training.report import Report
    from cpbpe.training.result import TrainingResult
    from cpbpe.training.train import train
    from cpbpe.training.word_counts import WordCounts


__all__ = [
    "BYTE_PRESETS",
    "PRESETS",
    "ByteTrainOptions",
    "Comparison",
    "Completions",
    "Conversion",
    "ConversionError",
    "CorpusError",
    "Encoding",
    "Finding",
    "Inspection",
    "Lint",
    "Losslessness",
    "ModelDiff",
    "ModelError",
    "ModelSpec",
    "NormalizerSpec",
    "PackReport",
    "PackedTokens",
    "Part",
    "Piece",
    "PieceType",
    "Pieces",
    "Ragged",
    "Report",
    "Settings",
    "Shown",
    "Special",
    "StreamDecoder",
    "StreamEncoder",
    "Tokenizer",
    "TrainOptions",
    "TrainingError",
    "TrainingResult",
    "Vocabulary",
    "WordCounts",
    "__version__",
    "compare",
    "convert",
    "diff",
    "engine_name",
    "load",
    "pack",
    "train",
]

_LATER = {
    "engine_name": "engine.choice",
    "ModelSpec": "model.spec",
    "NormalizerSpec": "model.spec",
    "Piece": "model.spec",
    "PieceType": "model.spec",
    "Pieces": "model.spec",
    "Settings": "model.spec",
    "load": "tokenizer.loading",
    "Tokenizer": "tokenizer.tokenizer",
    "Encoding": "tokenizer.encoding",
    "Part": "tokenizer.special",
    "Ragged": "tokenizer.ragged",
    "Shown": "tokenizer.shown",
    "Special": "tokenizer.special",
    "Vocabulary": "tokenizer.vocabulary",
    "Inspection": "tokenizer.inspection",
    "Finding": "lint.values",
    "Lint": "lint.values",
    "compare": "tools.compare",
    "Comparison": "tools.comparison",
    "diff": "tools.diff",
    "ModelDiff": "tools.diff",
    "Completions": "tokenizer.completions",
    "Conversion": "tokenizer.converting",
    "convert": "tokenizer.converting",
    "Losslessness": "tokenizer.lossless",
    "StreamDecoder": "tokenizer.stream_decoder",
    "StreamEncoder": "tokenizer.stream_encoder",
    "BYTE_PRESETS": "training.options",
    "ByteTrainOptions": "training.options",
    "PRESETS": "training.options",
    "Report": "training.report",
    "TrainOptions": "training.options",
    "TrainingResult": "training.result",
    "WordCounts": "training.word_counts",
    "train": "training.train",
    "PackReport": "packing.report",
    "PackedTokens": "packing.packed_tokens",
    "pack": "packing.pack",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is first asked for.

    Most programs only encode. And most of what the command does first, such as showing a help text, needs no
    tokenizer: importing `Tokenizer` takes longer than all that.
    """
    from cpbpe.lazy import imported

    if name not in _LATER:
        hint = "" if name.startswith("_") else imported("cpbpe.tokenizer.guesses").module_hint(name, __all__)
        raise AttributeError(f"module 'cpbpe' has no attribute {name!r}{hint}")
    value = getattr(imported(f"cpbpe.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"TYPE_CHECKING"})
