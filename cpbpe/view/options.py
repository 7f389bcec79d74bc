"""The toggles of the page, as options of encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PREFIX = {"model": None, "on": True, "off": False}


@dataclass(frozen=True)
class PageOptions:
    """What is switched on."""

    special: bool = False
    """Whether special tokens that the text spells out become their ids."""
    prefix: bool | None = None
    """Whether there is a dummy prefix; None: as the model says."""
    bos: bool = False
    """Whether the bos id is put in front."""
    eos: bool = False
    """Whether the eos id is put at the end."""

    @classmethod
    def read(cls, given: object) -> PageOptions:
        """The options as the page sends them; ValueError if they are others."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ValueError("options must be an object")
        for name, value in given.items():
            if name == "prefix":
                if not isinstance(value, str) or value not in _PREFIX:
                    raise ValueError("the option prefix must be model, on or off")
            elif name not in ("special", "bos", "eos"):
                raise ValueError("there are the options special, prefix, bos and eos")
            elif not isinstance(value, bool):
                raise ValueError(f"the option {name} must be true or false")
        flags = {name: given.get(name, False) for name in ("special", "bos", "eos")}
        return cls(prefix=_PREFIX[given.get("prefix", "model")], **flags)

    def of_calls(self) -> dict[str, Any]:
        """The same for the methods of a tokenizer."""
        return {
            "add_bos": self.bos,
            "add_eos": self.eos,
            "prefix_space": self.prefix,
            "allowed_special": "all" if self.special else (),
        }
