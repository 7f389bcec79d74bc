"""The values of a file about its tokenizer, each of the type that it must have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.container import Value, wrong


@dataclass
class Typed:
    """The values of a file, and what is to be said about them."""

    values: dict[str, Value]
    notes: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def texts(self) -> list[bytes]:
        """The texts of the pieces, as the file has them."""
        texts = self.array(keys.TOKENS, "array of string")
        if texts is None:
            wrong(f"it has a tokenizer without pieces: there is no {keys.TOKENS}")
        if not texts:
            wrong(f"{keys.TOKENS} is empty")
        return list(texts)

    def types(self, size: int) -> list[int] | None:
        """The types of so many pieces, each from 0 to 6; None if the file has none."""
        given = self.array(
            keys.TYPES, *(f"array of {sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
        )
        if given is None:
            return None
        self.check_size(keys.TYPES, len(given), size)
        undefined = given.count(0)
        if undefined:
            self.notes.append(f"{undefined} pieces have no type (0, UNDEFINED), which is read as NORMAL")
        for id, type in enumerate(given):
            if not 0 <= type <= 6:
                wrong(f"{keys.TYPES}[{id}] is {type}, and types are 1 to 6")
        return list(given)

    def role(self, role: str, size: int) -> int | None:
        """The id that has a part, of so many; None if the file does not say it."""
        key = keys.ROLES[role]
        if key not in self.values and role in keys.OLD_ROLES:
            key = keys.OLD_ROLES[role]
        id = self.integer(key, -1)
        if 0 <= id < size:
            return id
        if key in self.values and id not in (-1, keys.NO_TOKEN):
            self.notes.append(f"{key} is {id}, which is the id of no piece; it is passed over")
        return None

    def templates(self) -> dict[str, str]:
        """The templates of conversations, by name."""
        found = {}
        for key in sorted(self.values):
            if key == keys.TEMPLATE or key.startswith(keys.TEMPLATE + "."):
                name = key[len(keys.TEMPLATE) + 1 :] or "default"
                found[name] = self.text(key, b"").decode(errors="replace")
        return found

    # --- Values of the expected types --------------------------------------------------------------

    def array(self, key: str, *types: str) -> Any:
        """An array of one of these types; None if there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if value.type not in types:
            wrong(f"{key} must be an {types[0]}, and is {value.type}")
        return value.content

    def check_size(self, key: str, given: int, size: int) -> None:
        """Refuse an array that has not a value for each piece."""
        if given != size:
            wrong(f"{key} has {given:,} values, and there are {size:,} pieces")

    def flag(self, key: str, default: bool) -> bool:
        """A bool."""
        return bool(self._single(key, default, bool, "a bool"))

    def integer(self, key: str, default: int) -> int:
        """An integer."""
        return int(self._single(key, default, int, "an integer"))

    def text(self, key: str, default: bytes) -> bytes:
        """A text."""
        return bytes(self._single(key, default, bytes, "a string"))

    def _single(self, key: str, default: Any, kind: type, name: str) -> Any:
        value = self.values.get(key)
        if value is None:
            return default
        if type(value.content) is not kind:
            wrong(f"{key} must be {name}, and is {value.type}")
        return value.content
