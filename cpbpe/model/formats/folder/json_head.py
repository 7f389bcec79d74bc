"""What a tokenizer.json says before its vocabulary: the vocabulary takes far longer to read than the rest.

The library writes `model` last. So a file beside a `.model` can tell its added tokens, and what it puts
around texts, at the cost of its first kilobytes.
"""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

_PART = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*")


class _Incomplete(Exception):  # noqa: N818  # nothing went wrong
    """More of the file is needed."""


def json_head(file: BinaryIO) -> dict[str, Any]:
    r"""The members of the object in a file, up to `model`. A ValueError says that it is not JSON.

    >>> from io import BytesIO
    >>> json_head(BytesIO(b'{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab"'))
    {'version': '1.0', 'added_tokens': []}
    """
    data = b""
    size = _PART
    while True:
        part = file.read(size)
        data += part
        size = len(data)  # so that the file is not read again and again from its beginning
        try:
            return _members(_text(data, complete=not part))
        except _Incomplete:
            if not part:
                raise ValueError("it ends too early") from None


def _text(data: bytes, complete: bool) -> str:
    text = data.decode("utf-8-sig", errors="replace" if not complete else "strict")
    # A character that was cut off in the middle looks like a broken one.
    return text if complete else text.rstrip("\ufffd")


def _members(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = _after(text, 0, "{")
    if _peek(text, at) == "}":
        return found
    while True:
        key, at = _value(text, at)
        at = _after(text, at, ":")
        if key == "model":
            return found
        found[key], at = _value(text, at)
        at = _skipped(text, at)
        if _peek(text, at) == "}":
            return found
        at = _after(text, at, ",")


def _value(text: str, at: int) -> tuple[Any, int]:
    at = _skipped(text, at)
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except RecursionError:
        raise ValueError("it is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        if error.pos >= len(text) - 16 or error.msg.startswith("Unterminated"):
            raise _Incomplete from None
        raise
    if end == len(text):  # a number may go on
        raise _Incomplete
    return value, end


def _after(text: str, at: int, mark: str) -> int:
    """The place after a mark."""
    at = _skipped(text, at)
    if _peek(text, at) != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r}", text, at)
    return at + 1


def _peek(text: str, at: int) -> str:
    at = _skipped(text, at)
    if at >= len(text):
        raise _Incomplete
    return text[at]


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
