"""Reading a model file: finding it, and refusing one that cannot be a model without reading all of it."""

from __future__ import annotations

import os
from typing import BinaryIO

from cpbpe.errors import ModelError
from cpbpe.lazy import imported
from cpbpe.model.formats.sniff import PAIRS, describe, is_gguf

Source = str | os.PathLike[str] | BinaryIO
"""A path, or a file that is open in binary mode."""

MAX_FILE_BYTES = (1 << 31) - 1
"""Protobuf reads no longer messages."""

NAMES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""The names of models in folders of transformers and others, in the order in which they are tried."""

JSON_NAME = "tokenizer.json"
"""The file that is read where a folder holds no model: a model has scores, and needs no conversion."""

_HALVES = tuple(name for pair in PAIRS for name in pair)
"""How the names of files end that are half a model."""

TEKKEN_NAME = "tekken.json"
"""The file of Mistral's newer models, which is read if there is no other of these."""

_OTHER_KINDS = ((("vocab.txt",), "; vocab.txt is a WordPiece model (BERT)"),)
"""Files of other kinds of models, which cpbpe does not read."""

_HEAD_BYTES = 4096


def read_model_file(source: Source) -> bytes:
    """The bytes of a model's file. A folder means the model file in it, see `NAMES`.

    If a file begins as no model can, the rest is not read. Its beginning is returned, and the reader of the
    format refuses it. Nor is the rest of a GGUF file, after the values among which its tokenizer is.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            file = open(in_folder(path) if os.path.isdir(path) else path, "rb")  # noqa: SIM115
        except FileNotFoundError as error:
            if error.errno is None:  # from in_folder, whose message says more
                raise
            missing = "no such file or folder; cpbpe downloads nothing, give the path of a model"
            at_home = os.path.expanduser(path)
            if os.path.isfile(f"{path}.model"):
                missing = f"no such file or folder; is it {path + '.model'!r}?"
            elif at_home != path and os.path.exists(at_home):
                missing = f"no such file or folder; is it {at_home!r}?"
            raise FileNotFoundError(error.errno, missing, path) from None
        with file:
            found = read_model_file(file)
        name = os.fsdecode(file.name)
        if name.lower().endswith(_HALVES):
            found = imported("cpbpe.model.formats.gpt2").with_partner(name, found)
        return found
    if not hasattr(source, "read"):
        hint = "; for the bytes of a file use from_bytes()" if isinstance(source, (bytes, bytearray)) else ""
        raise TypeError(
            f"a model is loaded from a path or an open binary file, not {type(source).__name__}{hint}"
        )
    head: object
    try:
        head = source.read(_HEAD_BYTES)
    except UnicodeDecodeError:  # a file that is open as text
        head = ""
    if not isinstance(head, bytes):
        raise TypeError(
            f"the model file must be opened in binary mode ('rb'), its read() returned {type(head).__name__}"
        )
    if is_gguf(head):
        beginning: bytes = imported("cpbpe.model.formats.gguf").head_of(source, head)
        return beginning
    if describe(head, complete=False) is not None:
        return head
    data = bytearray(head)
    while len(data) <= MAX_FILE_BYTES:
        part = source.read(1 << 20)  # a pipe or a socket may return less, and more the next time
        if not part:
            return bytes(data)
        data += part
    raise ModelError(
        "not a SentencePiece model: the file is larger than 2 GiB, the most that a model can have"
    )


def folder_of(source: Source) -> str | None:
    """The folder that a source is; None if it is a file."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return os.fsdecode(source)
    return None


def in_folder(folder: str) -> str:
    """The model file in a folder: one of NAMES, the only .model, a JSON file, a pair, or the only .gguf."""
    for name in NAMES:
        if os.path.isfile(path := os.path.join(folder, name)):
            return path
    names = sorted(os.listdir(folder))
    models = [
        name for name in names if name.endswith(".model") and os.path.isfile(os.path.join(folder, name))
    ]
    if len(models) == 1:
        return os.path.join(folder, models[0])
    if models:
        raise FileNotFoundError(
            f"the folder {folder!r} holds no {NAMES[0]}, and several other models: {', '.join(models)}; "
            f"give the path of one of them"
        )
    if JSON_NAME in names:
        return os.path.join(folder, JSON_NAME)
    pair = next((pair for pair in PAIRS if all(map(names.__contains__, pair))), None)
    if pair is not None:
        return os.path.join(folder, pair[0])
    if TEKKEN_NAME in names:
        return os.path.join(folder, TEKKEN_NAME)
    weights = [name for name in names if name.lower().endswith(".gguf")]
    if len(weights) == 1:
        return os.path.join(folder, weights[0])
    if weights:  # the same model in several sizes, or in several parts
        raise FileNotFoundError(
            f"the folder {folder!r} holds no {NAMES[0]} and no {JSON_NAME}, and several GGUF files: "
            f"{', '.join(weights[:5])}{', ...' if len(weights) > 5 else ''}; give the path of one of them"
        )
    shown = f"it holds {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if names else "it is empty"
    alone = next((name for pair in PAIRS for name in pair if name in names), None)
    if alone is not None:
        shown += f"; {alone} is one half of a model, and the other half is missing"
    shown += next((what for others, what in _OTHER_KINDS if all(map(names.__contains__, others))), "")
    raise FileNotFoundError(f"the folder {folder!r} holds no {NAMES[0]} and no {JSON_NAME}; {shown}")
