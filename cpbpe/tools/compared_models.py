"""The models to compare: whatever cpbpe loads, and encodings of other libraries, through their own code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import BYTES_OF_LETTERS, is_valid_utf8
from cpbpe.tokenizer.tokenizer import Tokenizer, load

ORDINARY, BYTE, UNKNOWN = range(3)
"""What kind of token an id is: a part of bytes only, the one for what is unknown, or neither."""

LIBRARIES = ("tiktoken", "tokenizers", "sentencepiece")
"""What can stand before a colon in the name of a model of another library."""


@dataclass(frozen=True)
class Subject:
    """A model, and the calls that a comparison needs of it."""

    name: str
    library: str
    kinds: NDArray[np.uint8]
    """The kind of each id that there is."""
    encode: Callable[[list[str]], list[Sequence[int]]]
    """The ids of texts, as fast as the library can on one thread."""
    decode: Callable[[Sequence[int]], str]
    pieces: Callable[[str], list[str]]
    """The tokens of a text as text."""


def subject_of(name: str, given: Any) -> Subject:
    """The model that a path, a name with a library before it, or a tokenizer stands for."""
    if isinstance(given, Tokenizer):
        return _ours(name, given)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(
            f"a model is a path, the name of an encoding such as 'tiktoken:cl100k_base', or a Tokenizer, not "
            f"{type(given).__name__}"
        )
    path = os.fspath(given)
    if is_of_another_library(path):
        return _of_another_library(name, path)
    try:
        return _ours(name, load(path))
    except ModelError as error:
        raise ModelError(f"{error}{way_out(path, error)}") from error


def way_out(path: str, error: Exception) -> str:
    """What to do about a model that another library reads and cpbpe does not: it is not BPE."""
    library = getattr(error, "library", None)
    return f"; {library}:{path} compares it with the code of that library" if library else ""


def is_of_another_library(path: str) -> bool:
    """Whether a library stands before the name."""
    return ":" in path and path.partition(":")[0] in LIBRARIES


def name_of(given: Any) -> str:
    """What a model is called if nobody says it: its file, and the folder if that is a usual name."""
    if isinstance(given, Tokenizer):
        return "model"
    path = str(given)
    if is_of_another_library(path):
        return path
    file = Path(path)
    usual = {"tokenizer.model", "tokenizer.json", "tekken.json", "vocab.json", "tokenizer.bin"}
    return f"{file.parent.name}/{file.name}" if file.name in usual and file.parent.name else file.name or path


def _ours(name: str, tok: Tokenizer) -> Subject:
    kinds = np.zeros(len(tok), np.uint8)
    if tok.spec.alphabet == "bytes":
        for id, token in enumerate(tok.vocab.token_bytes()):
            kinds[id] = _kind_of_bytes(token)
    else:
        types = tok.vocab.types
        kinds[: len(types)][types == PieceType.BYTE] = BYTE
        if tok.unk_id is not None:
            kinds[tok.unk_id] = UNKNOWN
    return Subject(
        name,
        "cpbpe",
        kinds,
        lambda texts: list(tok.encode_batch(texts, threads=1)),
        lambda ids: tok.decode(list(ids)),
        lambda text: [
            token.decode("utf-8", "replace") for token in map(tok.vocab.id_to_bytes, tok.encode(text))
        ],
    )


def _of_another_library(name: str, path: str) -> Subject:
    library, _, rest = path.partition(":")
    try:
        with importing:
            module: Any = import_module(library)
    except ImportError as error:
        raise ModelError(
            f"{library}: models are of that library, which is not installed: pip install {library}"
        ) from error
    opened: dict[str, Callable[[], Any]] = {
        "tiktoken": lambda: module.get_encoding(rest),
        "tokenizers": lambda: module.Tokenizer.from_file(rest),
        "sentencepiece": lambda: module.SentencePieceProcessor(model_file=rest),
    }
    try:
        found = opened[library]()
    except Exception as error:  # (Of any kind. With tiktoken also the network, from which it gets its files.)
        what = "make this encoding" if library == "tiktoken" else "read it"
        raise ModelError(f"{path}: {library} cannot {what}: {error}") from error
    makers = {"tiktoken": _tiktoken, "tokenizers": _tokenizers, "sentencepiece": _sentencepiece}
    return makers[library](name, found)


def _kind_of_bytes(token: bytes) -> int:
    return ORDINARY if is_valid_utf8(token) else BYTE


def _tiktoken(name: str, found: Any) -> Subject:
    kinds = np.zeros(found.n_vocab, np.uint8)
    for token in found.token_byte_values():
        kinds[found.encode_single_token(token)] = _kind_of_bytes(token)
    return Subject(
        name,
        "tiktoken",
        kinds,
        lambda texts: list(found.encode_ordinary_batch(texts, num_threads=1)),
        found.decode,
        lambda text: [
            found.decode_single_token_bytes(id).decode("utf-8", "replace")
            for id in found.encode_ordinary(text)
        ],
    )


def _tokenizers(name: str, found: Any) -> Subject:
    found.no_padding()
    found.no_truncation()
    vocabulary = found.get_vocab(True)
    kinds = np.zeros(1 + max(vocabulary.values(), default=0), np.uint8)
    letters = "ByteLevel" in type(found.decoder).__name__ or "ByteLevel" in str(found.pre_tokenizer)
    for token, id in vocabulary.items():
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            kinds[id] = BYTE
        elif letters and all(letter in BYTES_OF_LETTERS for letter in token):
            kinds[id] = _kind_of_bytes(bytes(BYTES_OF_LETTERS[letter] for letter in token))
    unknown = getattr(found.model, "unk_token", None)
    if unknown in vocabulary:
        kinds[vocabulary[unknown]] = UNKNOWN
    return Subject(
        name,
        "tokenizers",
        kinds,
        # (Its `encode_batch` uses all cores, and there is no argument that says otherwise.)
        lambda texts: [found.encode(text, add_special_tokens=False).ids for text in texts],
        lambda ids: str(found.decode(list(ids), skip_special_tokens=False)),
        lambda text: list(found.encode(text, add_special_tokens=False).tokens),
    )


def _sentencepiece(name: str, found: Any) -> Subject:
    ids = range(found.get_piece_size())
    kinds = np.array([BYTE if found.is_byte(id) else ORDINARY for id in ids], np.uint8)
    if found.unk_id() >= 0:
        kinds[found.unk_id()] = UNKNOWN
    return Subject(
        name,
        "sentencepiece",
        kinds,
        lambda texts: list(found.encode(texts, num_threads=1)),
        lambda ids: str(found.decode(list(ids))),
        lambda text: list(found.encode(text, out_type=str)),
    )
