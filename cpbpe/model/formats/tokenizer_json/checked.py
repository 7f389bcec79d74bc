"""A tokenizer.json as values of the expected types; errors say what is wrong, and where."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from cpbpe.errors import ModelError
from cpbpe.model.formats.tokenizer_json.spaces import Json

T = TypeVar("T")
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "an integer"}
_SHOWN = 60


def parsed(data: bytes) -> Json:
    """The object in a file."""
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        wrong(f"byte {error.start} is not UTF-8")
    except RecursionError:
        wrong("it is nested too deeply to be read")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            wrong(f"it ends too early ({where}: {error.msg}); copy or download the file again")
        wrong(f"it is not valid JSON ({where}: {error.msg})")
    except ModelError:
        raise
    except ValueError:  # newer versions of Python refuse to read such a number
        wrong("it holds a number of thousands of digits")
    if not isinstance(content, dict):
        wrong(f"it holds {_kind(content)}, not an object")
    return content


def _object(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                wrong(f"{shown(key)} occurs twice in one object")
            seen.add(key)
    return made


def member(holder: Json, key: str, kind: type[T], where: str, default: T | None = None) -> T:
    """A member of an object. If it is missing or null, the default; without one it must be there."""
    value = holder.get(key)
    if value is None and default is not None:
        return default
    return typed(value, kind, f"{where}.{key}" if where else key)


def typed(value: Any, kind: type[T], where: str) -> T:
    """A value that must be of a type."""
    if type(value) is not kind:
        found = "missing" if value is None else f"{_kind(value)}, {shown(value)}"
        wrong(f"{where} must be {_NAMES[kind]}, and is {found}")
    return value


def type_of(step: Any, where: str) -> str:
    """The type of a normalizer, a pre-tokenizer, a decoder or a post-processor."""
    return member(typed(step, dict, where), "type", str, where)


def steps_of(step: Any, name: str, where: str) -> list[Json]:
    """The steps of a sequence, however nested; a single step; nothing for null."""
    if step is None:
        return []
    if type_of(step, where) != "Sequence":
        return [step]
    steps: list[Json] = []
    waiting = list(reversed(member(step, name, list, where)))
    while waiting:
        inner = waiting.pop()
        if type_of(inner, where) == "Sequence":
            waiting += reversed(member(inner, name, list, where))
        else:
            steps.append(inner)
    return steps


def shown(value: object) -> str:
    """A value in a message, not too long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _kind(value: object) -> str:
    if isinstance(value, float):
        return "a number"
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)


def wrong(problem: str, library: str | None = None) -> NoReturn:
    """Raise a ModelError."""
    raise ModelError(f"not a tokenizer.json that cpbpe can read: {problem}", library=library)
