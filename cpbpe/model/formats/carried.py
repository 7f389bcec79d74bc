"""`Carried` as the bytes of a field in our model files, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

from cpbpe.model.spec import Carried

TAG = b"\xaa\xae\x14"
"""How the field begins in a file (number 41701, with a length). A file without these bytes has none."""


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
    """
    try:
        said = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        said = {}
    kinds = {"options": bool, "roles": str, "chat_templates": str}
    values = {}
    for field in fields(Carried):
        given = said.get(field.name) if isinstance(said, dict) else None
        if isinstance(given, dict) and all(type(value) is kinds[field.name] for value in given.values()):
            values[field.name] = given
    return Carried(**values)
