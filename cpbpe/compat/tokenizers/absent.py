"""What the drop-in does not have: the parts of which tokenizers builds and trains models of any kind.

The first script in that library's README imports them. Python's own error would not say what the drop-in
covers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

MODULES = ("implementations", "models", "normalizers", "pre_tokenizers", "trainers")
CLASSES = (
    "BertWordPieceTokenizer",
    "ByteLevelBPETokenizer",
    "CharBPETokenizer",
    "NormalizedString",
    "PreTokenizedString",
    "Regex",
    "SentencePieceBPETokenizer",
    "SentencePieceUnigramTokenizer",
    "Token",
)
"""The names of the package itself."""
DECODERS = ("BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Decoder", "Fuse", "Metaspace", "WordPiece")
"""The names of its module `decoders`, which has `DecodeStream`; a model here has its decoder already."""


def refuse(name: str) -> NoReturn:
    """Raise the ImportError for a module or a class."""
    raise ImportError(
        f"{name} is not here: cpbpe.compat.tokenizers loads models, encodes and decodes "
        f"(Tokenizer.from_file(path), or Tokenizer(cpbpe.load(path))); to train a model use "
        f"cpbpe.train(corpus, vocab_size=...), and Tokenizer(result.tokenizer) has these calls for it",
        name=name,
    )


class Absent:
    """A finder of modules, asked after all others, that refuses those of the drop-in.

    (A file for each, which raises the error, would do. But tools that import all modules would fail there.)
    """

    def __init__(self, path: Sequence[str]):
        """`path` is that of the package, which may have the name tokenizers as well."""
        self._path = path

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Refuse the modules of the package that are not here."""
        if path is self._path and name.rpartition(".")[2] in MODULES:
            refuse(name)


def refuse_modules(path: Sequence[str]) -> None:
    """Have imports of `MODULES` of the package with this path refused."""
    sys.meta_path.append(Absent(path))
