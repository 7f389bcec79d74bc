"""Reads JSON files, and checks that values have the expected types. Errors say what is wrong, and where."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from cpbpe.errors import ModelError

T = TypeVar("T")
Json = dict[str, Any]
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "an integer"}
_SHOWN = 60


def as_json(value: object) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=True, default=repr)


class JsonFile(NamedTuple):
    """A JSON file, or all JSON files of one kind, for reading them and for errors about them."""

    problem: str
    """How errors begin, for example with the path of the file."""
    spelled: Callable[[object], str] = repr
    """How errors spell values."""

    def wrong(self, problem: str, library: str | None = None) -> NoReturn:
        """Raise a ModelError."""
        raise ModelError(f"{self.problem}: {problem}", library=library)

    def shown(self, value: object) -> str:
        """Return a value as messages show it, shortened if necessary."""
        text = self.spelled(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    # --- All of it --------------------------------------------------------------------------------

    def parsed(self, data: bytes, *, unique: bool = False) -> Json:
        """Return the object in the file. With `unique`, an object that has a name twice is refused."""
        try:
            content = json.loads(
                self.text(data.removeprefix(b"\xef\xbb\xbf")),
                object_pairs_hook=self._object if unique else None,
            )
        except RecursionError:
            self.wrong("it is nested too deeply to be read")
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}: {error.msg}"
            if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
                self.wrong(f"it ends too early ({where}); copy or download the file again")
            self.wrong(f"it is not valid JSON ({where})")
        except ModelError:
            raise
        except ValueError:  # newer versions of Python refuse to read such a number
            self.wrong("it holds a number of thousands of digits")
        if not isinstance(content, dict):
            self.wrong(f"it must hold an object, not {self.shown(content)}")
        return content

    def _object(self, pairs: list[tuple[str, Any]]) -> Json:
        made = dict(pairs)
        if len(made) < len(pairs):
            [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
            self.wrong(f"{self.shown(twice)} occurs twice in one object")
        return made

    def text(self, data: bytes) -> str:
        """Decode bytes as text."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                self.wrong(f"it ends too early (byte {error.start}); copy or download the file again")
            self.wrong(f"byte {error.start} is not UTF-8")

    # --- Parts ------------------------------------------------------------------------------------

    def member(
        self, holder: Mapping[str, Any], key: str, kind: type[T], where: str, default: T | None = None
    ) -> T:
        """Return a member of an object, or the default if it is missing or null.

        Without a default, a missing member is an error.
        """
        value = holder.get(key)
        if value is None and default is not None:
            return default
        return self.typed(value, kind, f"{where}.{key}" if where else key)

    def typed(self, value: Any, kind: type[T], where: str) -> T:
        """Return a value, after checking its type."""
        if type(value) is not kind:
            found = "missing" if value is None else f"{self._kind(value)}, {self.shown(value)}"
            self.wrong(f"{where} must be {_NAMES[kind]}, and is {found}")
        return value

    def valid(self, text: str, what: str) -> str:
        """Return a text, after checking that it has no half of a surrogate pair, which JSON can spell."""
        try:
            text.encode()
        except UnicodeEncodeError:
            self.wrong(f"{what} holds half of a surrogate pair, which is no text")
        return text

    def _kind(self, value: object) -> str:
        if isinstance(value, float):
            return "a number"
        return "null" if value is None else _NAMES.get(type(value), type(value).__name__)
