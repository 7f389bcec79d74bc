"""The parts of a tokenizer that are objects in the other library, and fixed by the model here."""

from __future__ import annotations

from typing import Any, NoReturn


class Fixed:
    """A property that can be neither read nor set; the error says what to do instead."""

    def __init__(self, instead: str):
        self._instead = instead
        self.__doc__ = f"Not here: {instead}."

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Fixed:
        if instance is not None:
            self._refuse()
        return self

    def __set__(self, instance: object, value: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise AttributeError(
            f"{self._name} is fixed by the model here, and is no object of tokenizers; {self._instead}"
        )
