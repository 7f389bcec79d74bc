"""Tokenizers of BPE models, SentencePiece's and byte-level ones: exact, typed, and readable.

>>> import cpbpe
>>> tok = cpbpe.load("tokenizer.model")
>>> tok.encode_pieces("Hello world")
['▁Hello', '▁world']
>>> tok.decode(tok.encode("Hello world"))
'Hello world'
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cpbpe.errors import ChatTemplateError, ConversionError, CorpusError, ModelError, TrainingError
from cpbpe.lazy import importing
from cpbpe.version import __version__

if TYPE_CHECKING:
    from cpbpe.engine.choice import engine_name
    from cpbpe.lint.findings import Finding, Lint
    from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType, Settings
    from cpbpe.packing.pack import PackReport, pack
    from cpbpe.packing.packed_tokens import PackedTokens
    from cpbpe.tokenizer.aligned_models import AlignedModels, align_models
    from cpbpe.tokenizer.canonical import CanonicalStream, Divergence
    from cpbpe.tokenizer.chats import ChatEncoding
    from cpbpe.tokenizer.completions import Completions
    from cpbpe.tokenizer.converting import Conversion, convert
    from cpbpe.tokenizer.documents import Document
    from cpbpe.tokenizer.encoding import Encoding, Part, Special
    from cpbpe.tokenizer.inspection import Inspection
    from cpbpe.tokenizer.lossless import Losslessness
    from cpbpe.tokenizer.ragged import Ragged
    from cpbpe.tokenizer.shown import Shown
    from cpbpe.tokenizer.streams import StreamDecoder, StreamEncoder
    from cpbpe.tokenizer.tokenizer import Tokenizer, load
    from cpbpe.tokenizer.vocabulary import Vocabulary
    from cpbpe.tools.compare import compare
    from cpbpe.tools.comparison import Comparison
    from cpbpe.tools.diff import ModelDiff, diff
    from cpbpe.tools.edit import Edit, edit
    from cpbpe.tools.edit_report import EditReport
    from cpbpe.training.byte_options import BYTE_PRESETS, ByteTrainOptions
    from cpbpe.training.options import PRESETS, TrainOptions
    from cpbpe.training.report import Report
    from cpbpe.training.result import TrainingResult
    from cpbpe.training.train import train
    from cpbpe.training.word_counts import WordCounts


__all__ = [
    "BYTE_PRESETS",
    "PRESETS",
    "AlignedModels",
    "ByteTrainOptions",
    "CanonicalStream",
    "ChatEncoding",
    "ChatTemplateError",
    "Comparison",
    "Completions",
    "Conversion",
    "ConversionError",
    "CorpusError",
    "Divergence",
    "Document",
    "Edit",
    "EditReport",
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
    "align_models",
    "compare",
    "convert",
    "diff",
    "edit",
    "engine_name",
    "load",
    "pack",
    "train",
]

_LATER = {
    "engine.choice": "engine_name",
    "lint.findings": "Finding Lint",
    "model.spec": "ModelSpec NormalizerSpec Piece PieceType Pieces Settings",
    "packing.pack": "PackReport pack",
    "packing.packed_tokens": "PackedTokens",
    "tokenizer.aligned_models": "AlignedModels align_models",
    "tokenizer.chats": "ChatEncoding",
    "tokenizer.canonical": "CanonicalStream Divergence",
    "tokenizer.completions": "Completions",
    "tokenizer.converting": "Conversion convert",
    "tokenizer.documents": "Document",
    "tokenizer.encoding": "Encoding Part Special",
    "tokenizer.inspection": "Inspection",
    "tokenizer.lossless": "Losslessness",
    "tokenizer.ragged": "Ragged",
    "tokenizer.shown": "Shown",
    "tokenizer.streams": "StreamDecoder StreamEncoder",
    "tokenizer.tokenizer": "Tokenizer load",
    "tokenizer.vocabulary": "Vocabulary",
    "tools.compare": "compare",
    "tools.comparison": "Comparison",
    "tools.diff": "ModelDiff diff",
    "tools.edit": "Edit edit",
    "tools.edit_report": "EditReport",
    "training.byte_options": "BYTE_PRESETS ByteTrainOptions",
    "training.options": "PRESETS TrainOptions",
    "training.report": "Report",
    "training.result": "TrainingResult",
    "training.train": "train",
    "training.word_counts": "WordCounts",
}
"""The names that are imported when they are first used, by module. Type checkers see the imports above.

Most programs only encode, and much of the command, such as showing a help text, needs no tokenizer at all and
takes less time than importing `Tokenizer`.
"""


def __getattr__(name: str) -> object:
    """Import a name of `_LATER`."""
    for module, names in _LATER.items():
        if name in names.split():
            with importing:
                value: object = getattr(import_module(f"cpbpe.{module}"), name)
            globals()[name] = value
            return value
    hint = ""
    if not name.startswith("_"):
        with importing:
            from cpbpe.foreign import MODULE, advice
        hint = advice(name, MODULE, __all__)
    raise AttributeError(f"module 'cpbpe' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "import_module", "importing"})
