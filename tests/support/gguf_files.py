"""GGUF files for tests, of any version and order of bytes, right or wrong."""

import struct
from collections.abc import Sequence
from typing import Any

from cpbpe import PieceType
from cpbpe.model.formats.gguf.container import ARRAY, BOOL, CODES, FLOAT32, INT32, STRING, UINT32
from cpbpe.text.utf8 import LETTERS

Values = dict[str, tuple[int, Any]]
"""Types and values, by key; the type of an array is a pair (ARRAY, type)."""


def text(value: bytes, order: str = "<", length: str = "Q") -> bytes:
    return struct.pack(order + length, len(value)) + value


def value(type: Any, content: Any, order: str = "<", length: str = "Q") -> bytes:
    """The bytes of a value after its type."""
    if isinstance(type, tuple):
        inner = type[1]
        head = struct.pack(f"{order}I{length}", ARRAY if isinstance(inner, tuple) else inner, len(content))
        return head + b"".join(value(inner, item, order, length) for item in content)
    if type == STRING:
        return text(content, order, length)
    return struct.pack(order + CODES[type], content)


def file(
    values: dict[str, tuple[Any, Any]], *, version: int = 3, order: str = "<", count: int | None = None
) -> bytes:
    """A file with these values."""
    length = "I" if version == 1 else "Q"
    head = struct.pack(f"{order}I{length}{length}", version, 0, len(values) if count is None else count)
    parts = [b"GGUF", head]
    for key, (type, content) in values.items():
        number = type[0] if isinstance(type, tuple) else type
        parts += [text(key.encode(), order, length), struct.pack(order + "I", number)]
        parts.append(value(type, content, order, length))
    return b"".join(parts)


TEXTS = (ARRAY, STRING)
ROWS: list[tuple[bytes, float, PieceType]] = [
    (b"<unk>", 0, PieceType.UNKNOWN),
    (b"<s>", 0, PieceType.CONTROL),
    (b"</s>", 0, PieceType.CONTROL),
    *((b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256)),
    ("▁a".encode(), -0.0, PieceType.NORMAL),
    (b"ab", -1, PieceType.NORMAL),
    ("▁".encode(), -2, PieceType.NORMAL),
    (b"a", -3, PieceType.NORMAL),
    (b"b", -4, PieceType.NORMAL),
]
"""A model as llama.cpp's converter would write it."""


def tokenizer(rows: Sequence[tuple[bytes, float, int]] = ROWS, **more: Any) -> dict[str, tuple[Any, Any]]:
    """The values of a file with these pieces; `more` are values to add, or None to leave one out."""
    values: dict[str, tuple[Any, Any]] = {
        "general.architecture": (STRING, b"llama"),
        "llama.context_length": (UINT32, 2048),
        "tokenizer.ggml.model": (STRING, b"llama"),
        "tokenizer.ggml.tokens": (TEXTS, [row[0] for row in rows]),
        "tokenizer.ggml.scores": ((ARRAY, FLOAT32), [row[1] for row in rows]),
        "tokenizer.ggml.token_type": ((ARRAY, INT32), [int(row[2]) for row in rows]),
        "tokenizer.ggml.bos_token_id": (UINT32, 1),
        "tokenizer.ggml.eos_token_id": (UINT32, 2),
        "tokenizer.ggml.add_bos_token": (BOOL, 1),
    }
    for name, value in more.items():
        key = name if "." in name else f"tokenizer.ggml.{name}"
        values.pop(key, None)
        if value is not None:
            values[key] = value
    return values


def byte_level(tokens: Sequence[str], pairs: Sequence[str], **more: Any) -> dict[str, tuple[Any, Any]]:
    """The values of a file with the 256 letters, these tokens, <|end|>, and these merges."""
    every = [*LETTERS.values(), *tokens, "<|end|>"]
    values: dict[str, tuple[Any, Any]] = {
        "general.architecture": (STRING, b"llama"),
        "tokenizer.ggml.model": (STRING, b"gpt2"),
        "tokenizer.ggml.pre": (STRING, b"gpt-2"),
        "tokenizer.ggml.tokens": (TEXTS, [token.encode() for token in every]),
        "tokenizer.ggml.token_type": ((ARRAY, INT32), [1] * (len(every) - 1) + [3]),
        "tokenizer.ggml.merges": (TEXTS, [pair.encode() for pair in pairs]),
        "tokenizer.ggml.eos_token_id": (UINT32, len(every) - 1),
    }
    for name, value in more.items():
        key = name if "." in name else f"tokenizer.ggml.{name}"
        values.pop(key, None)
        if value is not None:
            values[key] = value
    return values
