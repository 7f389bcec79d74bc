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
from cpbpe.errors import ModelError
from cpbpe.ragged import Ragged
from cpbpe.spec import PieceType
from cpbpe.tokenizer import Tokenizer, load

__version__ = "0.1.0"

__all__ = ["Encoding", "ModelError", "PieceType", "Ragged", "Tokenizer", "__version__", "engine", "load"]
