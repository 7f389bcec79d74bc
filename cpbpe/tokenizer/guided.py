"""A base class that refuses what only other libraries' tokenizers have, and says what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cpbpe.lazy import imported


class Guided:
    """Calls, indices and names that a Tokenizer lacks but other libraries' tokenizers have."""

    __slots__ = ()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: users of transformers expect another result here than everybody else."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:  # type checkers should still report missing names
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __getattr__(self, name: str) -> Any:
            """Refuse, and name what to use here."""
            hint = ""
            if not name.startswith("_"):
                hint = imported("cpbpe.tokenizer.guesses").attribute_hint(name, dir(type(self)))
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)
