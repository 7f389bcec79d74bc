"""`Special`, a special token as one part of what `encode_parts` takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Special:
    """A special token as one part of a list to encode, for `encode_parts`.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> tok.encode_parts([cpbpe.Special("<s>"), "Hi </s>", 13])
    [1, 15359, 1867, 28713, 28767, 13]
    """

    text: str
    """The text of the token, as in `tok.vocab.special_tokens`."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a Special must be a str, not {type(self.text).__name__}")


Part = str | bytes | int | Special
"""One of the parts."""
