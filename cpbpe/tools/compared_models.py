"""The models that `cpbpe.compare` can run: those that cpbpe loads, and those that other libraries run."""

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
"""The kinds of ids: BYTE if the token is only a part of a character, UNKNOWN for the unknown token."""

LIBRARIES = ("tiktoken", "tokenizers", "sentencepiece")
"""Libraries whose models can be compared. A model's name has the library and a colon in front of it."""


@dataclass(frozen=True)
class LoadedModel:
    """A model, loaded, with the calls that a comparison needs."""

    name: str
    library: str
    kinds: NDArray[np.uint8]
    """The kind of each id."""
    encode: Callable[[list[str]], list[Sequence[int]]]
    """Encodes texts as fast as the library can on one thread."""
    decode: Callable[[Sequence[int]], str]
    pieces: Callable[[str], list[str]]
    """Encodes a text to its tokens as str."""


def loaded_model(name: str, given: Any) -> LoadedModel:
    """The model that a path, a name with a library before it, or a tokenizer stands for."""
    if isinstance(given, Tokenizer):
        return _by_cpbpe(name, given)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(
            f"a model is a path, the name of an encoding such as 'tiktoken:cl100k_base', or a Tokenizer, not "
            f"{type(given).__name__}"
        )
    path = os.fspath(given)
    if is_of_another_library(path):
        return _by_another_library(name, path)
    try:
        return _by_cpbpe(name, load(path))
    except ModelError as error:
        raise ModelError(f"{error}{way_out(path, error)}") from error


def way_out(path: str, error: Exception) -> str:
    """The end of an error message for a model that is not BPE, so that only another library reads it."""
    library = getattr(error, "library", None)
    return f"; {library}:{path} compares it with the code of that library" if library else ""


def is_of_another_library(path: str) -> bool:
    """Whether a name begins with a library and a colon."""
    return ":" in path and path.partition(":")[0] in LIBRARIES


def name_of(given: Any) -> str:
    """A model's default name: that of its file, with the folder if many files have that name."""
    if isinstance(given, Tokenizer):
        return "model"
    path = str(given)
    if is_of_another_library(path):
        return path
    file = Path(path)
    usual = {"tokenizer.model", "tokenizer.json", "tekken.json", "vocab.json", "tokenizer.bin"}
    return f"{file.parent.name}/{file.name}" if file.name in usual and file.parent.name else file.name or path


def _by_cpbpe(name: str, tok: Tokenizer) -> LoadedModel:
    tok = tok.using(add_bos=False, add_eos=False)  # what is bound would count with each document
    kinds = np.zeros(len(tok), np.uint8)
    if tok.spec.alphabet == "bytes":
        for id, token in enumerate(tok.vocab.token_bytes()):
            kinds[id] = _kind_of_bytes(token)
    else:
        types = tok.vocab.types
        kinds[: len(types)][types == PieceType.BYTE] = BYTE
        if tok.unk_id is not None:
            kinds[tok.unk_id] = UNKNOWN
    return LoadedModel(
        name,
        "cpbpe",
        kinds,
        lambda texts: list(tok.encode_batch(texts, threads=1)),
        lambda ids: tok.decode(list(ids)),
        lambda text: [
            token.decode("utf-8", "replace") for token in map(tok.vocab.id_to_bytes, tok.encode(text))
        ],
    )


def _by_another_library(name: str, path: str) -> LoadedModel:
    library, _, rest = path.partition(":")
    try:
        with importing:
            module: Any = import_module(library)
    except ImportError as error:
        raise ModelError(
            f"{library}: models are of that library, which is not installed: pip install {library}"
        ) from error
    openers: dict[str, tuple[Callable[[], Any], Callable[[str, Any], LoadedModel]]] = {
        "tiktoken": (lambda: module.get_encoding(rest), _tiktoken),
        "tokenizers": (lambda: module.Tokenizer.from_file(rest), _tokenizers),
        "sentencepiece": (lambda: module.SentencePieceProcessor(model_file=rest), _sentencepiece),
    }
    opener, loaded = openers[library]
    try:
        opened = opener()
    except Exception as error:  # (Of any kind; tiktoken's can be about the network, too.)
        what = "make this encoding" if library == "tiktoken" else "read it"
        raise ModelError(f"{path}: {library} cannot {what}: {error}") from error
    return loaded(name, opened)


def _kind_of_bytes(token: bytes) -> int:
    return ORDINARY if is_valid_utf8(token) else BYTE


def _tiktoken(name: str, encoding: Any) -> LoadedModel:
    kinds = np.zeros(encoding.n_vocab, np.uint8)
    for token in encoding.token_byte_values():
        kinds[encoding.encode_single_token(token)] = _kind_of_bytes(token)
    return LoadedModel(
        name,
        "tiktoken",
        kinds,
        lambda texts: list(encoding.encode_ordinary_batch(texts, num_threads=1)),
        encoding.decode,
        lambda text: [
            encoding.decode_single_token_bytes(id).decode("utf-8", "replace")
            for id in encoding.encode_ordinary(text)
        ],
    )


def _tokenizers(name: str, tokenizer: Any) -> LoadedModel:
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vocabulary = tokenizer.get_vocab(True)
    kinds = np.zeros(1 + max(vocabulary.values(), default=0), np.uint8)
    letters = "ByteLevel" in type(tokenizer.decoder).__name__ or "ByteLevel" in str(tokenizer.pre_tokenizer)
    for token, id in vocabulary.items():
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            kinds[id] = BYTE
        elif letters and all(letter in BYTES_OF_LETTERS for letter in token):
            kinds[id] = _kind_of_bytes(bytes(BYTES_OF_LETTERS[letter] for letter in token))
    unknown = getattr(tokenizer.model, "unk_token", None)
    if unknown in vocabulary:
        kinds[vocabulary[unknown]] = UNKNOWN
    return LoadedModel(
        name,
        "tokenizers",
        kinds,
        # (Not `encode_batch`, which uses all cores and has no argument to change that.)
        lambda texts: [tokenizer.encode(text, add_special_tokens=False).ids for text in texts],
        lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False)),
        lambda text: list(tokenizer.encode(text, add_special_tokens=False).tokens),
    )


def _sentencepiece(name: str, processor: Any) -> LoadedModel:
    ids = range(processor.get_piece_size())
    kinds = np.array([BYTE if processor.is_byte(id) else ORDINARY for id in ids], np.uint8)
    if processor.unk_id() >= 0:
        kinds[processor.unk_id()] = UNKNOWN
    return LoadedModel(
        name,
        "sentencepiece",
        kinds,
        lambda texts: list(processor.encode(texts, num_threads=1)),
        lambda ids: str(processor.decode(list(ids))),
        lambda text: list(processor.encode(text, out_type=str)),
    )
