"""What a user says about a model whose file does not say it."""

# (The annotations of a NamedTuple are compiled if they are not evaluated, and the first compilation takes a
# tenth of the time of loading a model.)

from collections.abc import Mapping
from typing import NamedTuple


class Given(NamedTuple):
    """What a user says about a model whose file does not say it; None for what is not given."""

    pattern: str | None = None
    """The name of a published pattern, or a regular expression; "" for none: a text is one chunk."""
    special_tokens: Mapping[str, int] | None = None
    """The special tokens with their ids."""

    @classmethod
    def checked(cls, pattern: object, special_tokens: object) -> "Given":
        """The same from what a user has passed; a TypeError says what is wrong with it."""
        if pattern is not None and not isinstance(pattern, str):
            raise TypeError(f"pattern must be a str, not {type(pattern).__name__}")
        if special_tokens is not None and not isinstance(special_tokens, Mapping):
            raise TypeError(
                f"special_tokens must be a dict from the text of each token to its id, not "
                f"{type(special_tokens).__name__}"
            )
        for token, id in (special_tokens or {}).items():
            if not isinstance(token, str) or type(id) is not int or id < 0:
                raise TypeError(
                    f"special_tokens must have the id of each token by its text, not {token!r}: {id!r}"
                )
        return cls(pattern, special_tokens)

    @property
    def name(self) -> str:
        """The name of the first thing that is given; "" if nothing is."""
        given = (name for name, value in zip(self._fields, self, strict=True) if value is not None)
        return next(given, "")


NOTHING = Given()
"""Nothing is given: the file must say everything."""
