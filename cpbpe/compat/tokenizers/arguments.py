"""Checks of arguments, the forms of input for `encode`, and the names that the drop-in does not have.

Errors have the types of tokenizers' errors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, NoReturn


def unsigned(value: Any, name: str, most: int = (1 << 63) - 1) -> int:
    """An integer from 0 to `most`."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not 0 <= number <= most:
        raise OverflowError(f"{name} must be between 0 and {most}, and is {number}")
    return number


def flag(value: Any, name: str) -> bool:
    """True or False itself, not another value that counts as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def text(value: Any, name: str) -> str:
    """A str without lone surrogates."""
    if not isinstance(value, str):
        hint = "; decode it first" if isinstance(value, (bytes, bytearray)) else ""
        raise TypeError(f"{name} must be a str, not {type(value).__name__}{hint}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise TypeError(f"{name} holds a lone surrogate, and is no text: {value!r}") from None
    return value if type(value) is str else str(value)


def choice(value: Any, name: str, known: Iterable[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if value not in known:
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, not {value!r}")
    return value


def words(value: Any, name: str) -> list[str]:
    """A text that is cut into words already: a list, a tuple or an array of str."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        hint = "; leave out is_pretokenized=True to pass a text" if isinstance(value, str) else ""
        raise TypeError(
            f"{name} must be a list or a tuple of str, because is_pretokenized is True, "
            f"not {type(value).__name__}{hint}"
        )
    return [text(word, f"{name}[{place}]") for place, word in enumerate(value)]


def sequence(value: Any, name: str, of: str) -> Sequence[Any]:
    """Several of something: a list, a tuple, an array, but no str and no iterator."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a list of {of}, not {type(value).__name__}")
    return value


def ids(value: Any, name: str) -> list[int]:
    """Ids, as a list, a tuple or an array."""
    given = sequence(value, name, "ids")
    is_plain = type(given) is list and set(map(type, given)) <= {int}
    if is_plain and min(given, default=0) >= 0 and max(given, default=0) <= ID_MOST:
        return given  # type: ignore[return-value]
    return [unsigned(id, f"an id in {name}", ID_MOST) for id in given]


ID_MOST = (1 << 32) - 1
"""The highest number that can be an id."""


# --- Input for `encode` and `encode_batch`: texts or pairs, each a str or a list of words --------


Inputs = list[list[str]]
"""One text, or a pair: each as its words, or as the text alone."""


def read_input(sequence: Any, pair: Any, are_words: bool) -> Inputs:
    """The arguments of `encode`."""
    given = [_input(sequence, "sequence", are_words)]
    return given if pair is None else [*given, _input(pair, "pair", are_words)]


def read_batch(batch: Any, are_words: bool) -> list[Inputs]:
    """The first argument of `encode_batch`."""
    given = sequence(batch, "input", "texts or pairs of texts")
    if not are_words and type(given) is list and set(map(type, given)) == {str}:  # the usual case
        return [[[text(one, "input")]] for one in given]
    return [_item(item, f"input[{place}]", are_words) for place, item in enumerate(given)]


def _item(item: Any, name: str, are_words: bool) -> Inputs:
    """One text or pair of a batch."""
    if not isinstance(item, (list, tuple)):
        return [_input(item, name, are_words)]
    if are_words and (len(item) != 2 or any(isinstance(word, str) for word in item)):
        return [_input(item, name, True)]
    if len(item) != 2:
        raise TypeError(f"{name} must be a text or a pair of texts, and has {len(item)} parts")
    return [_input(part, f"{name}[{at}]", are_words) for at, part in enumerate(item)]


def _input(given: Any, name: str, are_words: bool) -> list[str]:
    if are_words:
        return words(given, name)
    if isinstance(given, (list, tuple)):
        raise TypeError(
            f"{name} must be a str, not {type(given).__name__}; for words, pass is_pretokenized=True"
        )
    return [text(given, name)]


# --- What the drop-in does not have ---------------------------------------------------------------
#
# The parts of which tokenizers builds and trains models of any kind. The first script in that library's
# README imports them, and Python's own error would not say what the drop-in covers.

MODULES = ("implementations", "models", "normalizers", "pre_tokenizers", "trainers")
CLASSES = (
    "BertWordPieceTokenizer",
    "ByteLevelBPETokenizer",
    "CharBPETokenizer",
    "NormalizedString",
    "PreTokenizedString",
    "Regex",
    "SentencePieceBPETokenizer",
    "SentencePieceUnigramTokenizer",
    "Token",
)
"""The names of the package itself."""
DECODERS = ("BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Decoder", "Fuse", "Metaspace", "WordPiece")
"""The names of its module `decoders`, which has `DecodeStream`; a model here has its decoder already."""


def refuse(name: str) -> NoReturn:
    """Raise the ImportError for a module or a class."""
    raise ImportError(
        f"{name} is not here: cpbpe.compat.tokenizers loads models, encodes and decodes "
        f"(Tokenizer.from_file(path), or Tokenizer(cpbpe.load(path))); to train a model use "
        f"cpbpe.train(corpus, vocab_size=...), and Tokenizer(result.tokenizer) has these calls for it",
        name=name,
    )


class Absent:
    """A finder of modules, asked after all others, that refuses those of the drop-in.

    (A file for each, which raises the error, would do. But tools that import all modules would fail there.)
    """

    def __init__(self, path: Sequence[str]):
        """`path` is that of the package, which may have the name tokenizers as well."""
        self._path = path

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Refuse the modules of the package that are not here."""
        if path is self._path and name.rpartition(".")[2] in MODULES:
            refuse(name)


def refuse_modules(path: Sequence[str]) -> None:
    """Have imports of `MODULES` of the package with this path refused."""
    sys.meta_path.append(Absent(path))
