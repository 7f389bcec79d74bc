"""Reading a model file: finding it, and refusing a file that cannot be a model before all of it is read.

`describe` says what a file is if it turns out not to be a model.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import BinaryIO

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.formats.registry import GGUF, GPT2, PAIRS, first_lines

Source = str | os.PathLike[str] | BinaryIO
"""A path, or a file that is open in binary mode."""

MAX_FILE_BYTES = (1 << 31) - 1
"""The longest message that protobuf reads."""

NAMES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""The names of model files in folders of transformers and others, in the order in which they are tried."""

JSON_NAME = "tokenizer.json"
"""The file that is read if a folder holds no `.model`. (A `.model` is better: it has scores, and needs no
conversion.)"""

_HALVES = tuple(name for pair in PAIRS for name in pair)
"""The ends of names of files that are half a model."""

TEKKEN_NAME = "tekken.json"
"""The file of Mistral's newer models, which is read if none of the files above is there."""

_ONE_OF_MANY = (
    ("files of mistral-common", re.compile(r".*\.model\.v\d+(m\d+)?|tekken_\d+\.json")),
    ("GGUF files", re.compile(r".*\.gguf", re.IGNORECASE)),
)
"""Files that are read last, if a folder holds only one of a kind: their names say a version or a size."""

_OTHER_KINDS = ((("vocab.txt",), "; vocab.txt is a WordPiece model (BERT)"),)
"""Files of other kinds of models, which cpbpe does not read."""

_HEAD_BYTES = 4096
_FIRST_MERGE = rb"\S[\x80-\xbf]* \S[\x80-\xbf]*(</w>)?$"


def read_model_file(source: Source) -> bytes:
    """Return the bytes of a model's file. A folder means the model file in it, see `NAMES`.

    If a file begins as no model can, only its beginning is read and returned, and the reader of the format
    refuses it. A GGUF file is read up to the end of its values, which include the tokenizer.
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
            content = read_model_file(file)
        name = os.fsdecode(file.name)
        if name.lower().endswith(_HALVES):
            content = GPT2.imported().with_partner(name, content)
        return content
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
    if GGUF.begins(head):
        beginning: bytes = GGUF.imported().head_of(source, head)
        return beginning
    if describe(head, complete=False) is not None:
        return head
    data = bytearray(head)
    while len(data) <= MAX_FILE_BYTES:
        part = source.read(1 << 20)  # a pipe or a socket may return less, and more the next time
        if not part:
            return bytes(data)
        data += part
    with importing:
        from cpbpe.spelling import sized
    raise ModelError(
        f"not a SentencePiece model: the file is larger than {sized(MAX_FILE_BYTES)}, the most that a model "
        f"can have"
    )


def folder_of(source: Source) -> str | None:
    """Return the path of a source that is a folder; None for a file."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return os.fsdecode(source)
    return None


def in_folder(folder: str) -> str:
    """Return the path of the model file in a folder.

    These are tried in turn: NAMES, the only .model, tokenizer.json, a pair of files (the path is that of the
    first), tekken.json, and `_ONE_OF_MANY`.
    """
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
    for needed in ((JSON_NAME,), *PAIRS, (TEKKEN_NAME,)):
        if all(map(names.__contains__, needed)):
            return os.path.join(folder, needed[0])
    for kind, pattern in _ONE_OF_MANY:
        found = [name for name in names if pattern.fullmatch(name)]
        if len(found) == 1:
            return os.path.join(folder, found[0])
        if found:  # the same model in several sizes or parts, or several versions of one
            raise FileNotFoundError(
                f"the folder {folder!r} holds no {NAMES[0]} and no {JSON_NAME}, and several {kind}: "
                f"{', '.join(found[:5])}{', ...' if len(found) > 5 else ''}; give the path of one of them"
            )
    shown = f"it holds {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if names else "it is empty"
    alone = next((name for pair in PAIRS for name in pair if name in names), None)
    if alone is not None:
        shown += f"; {alone} is one half of a model, and the other half is missing"
    shown += next((what for others, what in _OTHER_KINDS if all(map(names.__contains__, others))), "")
    raise FileNotFoundError(f"the folder {folder!r} holds no {NAMES[0]} and no {JSON_NAME}; {shown}")


# --- Files that are not models --------------------------------------------------------------------

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "it is a zip archive (PyTorch weights, perhaps); look for tokenizer.model beside it"),
    (b"\x1f\x8b", "it is compressed with gzip; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd; decompress it first"),
    (b"\xfd7zXZ\x00", "it is compressed with xz; decompress it first"),
    (b"version https://git-lfs", "it is a Git LFS pointer, not the file itself; 'git lfs pull' fetches that"),
)


def describe(data: bytes, complete: bool = True) -> str | None:
    r"""Return what `data` is, as the end of a sentence; None if it is not known.

    With `complete=False`, `data` is only the head of a file. Then only files that begin as no model can are
    recognized.

    >>> describe(b"PK\x03\x04" + bytes(20))[:19]
    'it is a zip archive'
    >>> describe(bytes([10, 14, 10, 5])) is None
    True
    """
    for magic, meaning in _MAGIC:
        if data.startswith(magic):
            return meaning
    if not complete:
        return None
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") < 1 << 32:
        return "it is a safetensors file (weights); look for tokenizer.model beside it"
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:256]
    if start[:1] in (b"{", b"["):
        return _describe_json(data)
    if start[:14].lower() == b"<!doctype html" or start[:5].lower() == b"<html":
        return "it is an HTML page, such as a download site shows for an error or a login"
    lines = first_lines(data)
    # (Texts have lines of two words, too, but the first merge is that of two letters.)
    if lines and re.match(_FIRST_MERGE, lines[0]) and all(len(line.split(b" ")) == 2 for line in lines):
        return (
            "it is a text of merges (merges.txt), one half of a byte-level model; "
            "load vocab.json, with merges.txt beside it"
        )
    return _describe_text(data)


def _describe_text(data: bytes) -> str | None:
    """Return what to say of data that is text, such as a corpus; None if it is not."""
    with importing:
        import codecs

        from cpbpe.spelling import advised
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data[:_HEAD_BYTES])  # its end may be cut off
    except UnicodeDecodeError:
        return None
    if not text.strip() or any(letter < " " and letter not in "\t\n\f\r" for letter in text):
        return None
    way_out = advised("give the path of a model", "the model comes first")
    return f"it is text; {way_out}, such as tokenizer.model or tokenizer.json"


def _describe_json(data: bytes) -> str | None:
    with importing:
        import json
    try:
        content = json.loads(data)
    except RecursionError:
        return "it begins like JSON, and is nested too deeply to be read"
    except ValueError:
        with suppress(ValueError):
            json.loads(data.partition(b"\n")[0])
            return _describe_text(data)  # a corpus with an object in each line
        return None if b"\0" in data else "it begins like JSON, but is not valid JSON either"
    keys = content.keys() if isinstance(content, dict) else ()
    if "model" in keys and ("added_tokens" in keys or "pre_tokenizer" in keys):
        return "it is JSON, a tokenizer.json of the tokenizers library; cpbpe.load reads it"
    if "tokenizer_class" in keys:
        return "it is JSON, a tokenizer_config.json; look for tokenizer.model beside it"
    if "config" in keys and "vocab" in keys:
        return "it is JSON, perhaps a tekken.json (byte-level BPE), but one without pieces"
    return "it is JSON, and a model is not; look for tokenizer.model beside it"
