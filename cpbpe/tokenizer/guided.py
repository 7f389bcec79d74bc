"""A base class that refuses what other tokenizers have and this one has not, and names the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cpbpe.lazy import imported


class Guided:
    """Calls, indices and names that a Tokenizer does not have, and other libraries' tokenizers do."""

    __slots__ = ()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: transformers' users expect something else here than everybody else."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:  # type checkers shall go on telling what there is not
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __getattr__(self, name: str) -> Any:
            """Refuse, with the name by which this is called here."""
            hint = ""
            if not name.startswith("_"):
                hint = imported("cpbpe.tokenizer.guesses").attribute_hint(name, dir(type(self)))
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)
