"""`DecodeStream`, of the module `tokenizers.decoders`: text while ids come one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpbpe.compat.tokenizers import arguments

if TYPE_CHECKING:
    from cpbpe.compat.tokenizers.tokenizer import Tokenizer

__all__ = ["DecodeStream"]


class DecodeStream:
    """Decodes ids that arrive one by one, or a few at a time.

    >>> import cpbpe
    >>> from cpbpe.compat.tokenizers import Tokenizer
    >>> from cpbpe.compat.tokenizers.decoders import DecodeStream
    >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
    >>> stream = DecodeStream()
    >>> [stream.step(tokenizer, id) for id in tokenizer.encode("Hi 🦙!").ids]
    ['Hi', ' ', None, None, None, '🦙', '!']
    """

    def __init__(self, ids: list[int] | None = None, skip_special_tokens: bool = False):
        """`ids` came before: they have an influence on the text that follows, and are not in it."""
        self._ids = [] if ids is None else list(arguments.ids(ids, "ids"))
        self._skips = arguments.flag(skip_special_tokens, "skip_special_tokens")
        self._text = ""
        self._shown = 0

    def step(self, tokenizer: Tokenizer, id: int | list[int]) -> str | None:
        """The text that is certain with this id, or these; None if there is none yet."""
        given = arguments.ids(id, "id") if isinstance(id, (list, tuple)) else arguments.ids([id], "id")
        # 1. What came before the first call.
        if not self._text and self._ids:
            self._keep(tokenizer, len(self._ids))
        # 2. The new ids are decoded with those before them that may have an influence.
        self._ids += given
        text = tokenizer.decode(self._ids, self._skips)
        if text.endswith("\ufffd") or len(text.encode()) <= len(self._text.encode()):
            return None
        if not text.startswith(self._text):
            raise ValueError(
                f"the text of the ids so far was {self._text!r}, and with the new ones it is {text!r}: what "
                f"has been returned cannot be taken back"
            )
        # 3. Of these, only the new ones matter from now on.
        new = text[len(self._text) :]
        last = len(self._ids) - self._shown
        del self._ids[: self._shown]
        self._keep(tokenizer, last, always=True)
        return new

    def _keep(self, tokenizer: Tokenizer, shown: int, always: bool = False) -> None:
        text = tokenizer.decode(self._ids, self._skips)
        if always or not text.endswith("\ufffd"):
            self._text, self._shown = text, shown

    def __copy__(self) -> DecodeStream:
        new: Any = object.__new__(type(self))
        new.__dict__.update({**vars(self), "_ids": list(self._ids)})
        copied: DecodeStream = new
        return copied
