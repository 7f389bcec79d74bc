"""`Carried` as the bytes of a field in our model files, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from cpbpe.errors import ModelError
from cpbpe.model.spec import TOKEN_FLAGS, Carried


def carried_bytes(carried: Carried) -> bytes:
    """The content of the field; empty if there is nothing to say.

    >>> carried_bytes(Carried({"add_bos": True}))
    b'{"options":{"add_bos":true}}'
    >>> carried_of(carried_bytes(Carried({"add_bos": True}))).options
    {'add_bos': True}
    """
    said = {name: dict(sorted(values.items())) for name, values in asdict(carried).items() if values}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() if said else b""


def carried_of(data: bytes) -> Carried:
    """What the field says.

    Of a damaged one nothing is left: for sentencepiece the field does not exist, and no id depends on it.
    Only `tokens` must be right, because texts are searched for these.
    """
    try:
        said = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        said = {}
    values: dict[str, Any] = {}
    for field in fields(Carried):
        given = said.get(field.name) if isinstance(said, dict) else None
        if field.name == "tokens" and given is not None:
            values[field.name] = _tokens(given)
        elif isinstance(given, dict) and all(map(_KINDS[field.name], given.values())):
            values[field.name] = given
    return Carried(**values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "options": lambda value: type(value) is bool,
    "roles": _is_text,
    "chat_templates": _is_text,
}


def _can_be_found(text: str) -> bool:
    """Whether a text can hold a token: it has characters, and no half of a surrogate pair."""
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _tokens(given: Any) -> dict[str, tuple[str, ...]]:
    """The flags of tokens; a ModelError if they are not what `carried_bytes` writes."""
    right = isinstance(given, dict) and all(
        _can_be_found(text) and isinstance(flags, list) and all(map(TOKEN_FLAGS.__contains__, flags))
        for text, flags in given.items()
    )
    if not right:
        raise ModelError(
            "the file's list of added tokens that are not special (field 41701) is damaged; copy the file "
            "again, or convert the original again"
        )
    return {text: tuple(flags) for text, flags in given.items()}
