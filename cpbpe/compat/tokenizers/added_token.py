"""`AddedToken`: a token that is looked for in texts before they are encoded, with its flags."""

from __future__ import annotations

from typing import Any

from cpbpe.compat.tokenizers import arguments

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
"""In the order in which files have them."""


class AddedToken:
    """A token for `add_tokens` and `add_special_tokens`.

    - `single_word`: it is found only where no letter or digit is next to it.
    - `lstrip`, `rstrip`: it takes the whitespace in front of it, or after it.
    - `normalized`: it is looked for in normalized text; by default, if it is not special.
    - `special`: `decode` leaves it out, and `encode_special_tokens` makes it plain text.

    >>> AddedToken("<mask>", lstrip=True)
    AddedToken("<mask>", rstrip=False, lstrip=True, single_word=False, normalized=True, special=False)
    """

    def __init__(self, content: str | None = None, **flags: bool):
        unknown = flags.keys() - {*FLAGS}
        if unknown:
            raise TypeError(f"AddedToken has no flag {min(unknown)!r}; it has {', '.join(FLAGS)}")
        self._content = arguments.text("" if content is None else content, "content")
        self._flags = {name: arguments.flag(value, name) for name, value in flags.items()}

    @property
    def content(self) -> str:
        """The text of the token."""
        return self._content

    @content.setter
    def content(self, content: str) -> None:
        self._content = arguments.text(content, "content")

    @property
    def single_word(self) -> bool:
        """Whether it is found only where no letter or digit is next to it."""
        return self._flags.get("single_word", False)

    @property
    def lstrip(self) -> bool:
        """Whether it takes the whitespace in front of it."""
        return self._flags.get("lstrip", False)

    @property
    def rstrip(self) -> bool:
        """Whether it takes the whitespace after it."""
        return self._flags.get("rstrip", False)

    @property
    def normalized(self) -> bool:
        """Whether it is looked for in normalized text."""
        return self._flags.get("normalized", not self.special)

    @property
    def special(self) -> bool:
        """Whether decoding leaves it out."""
        return self._flags.get("special", False)

    @special.setter
    def special(self, special: bool) -> None:
        self._flags["special"] = arguments.flag(special, "special")

    def fixed(self) -> AddedToken:
        """A copy for which every flag is set."""
        return AddedToken(self._content, **{name: getattr(self, name) for name in FLAGS})

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self._content, **{name: getattr(self, name) for name in FLAGS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        flags = dict(state)
        self.__init__(flags.pop("content", None), **flags)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AddedToken):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self._content)

    def __str__(self) -> str:
        return self._content

    def __repr__(self) -> str:
        names = ("rstrip", "lstrip", "single_word", "normalized", "special")
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f'AddedToken("{self._content}", {shown})'
