"""The pieces of a loaded model, and the model as a value: what `Tokenizer` offers beside text and ids.

`cpbpe.tokenizer.tokenizer` adds encoding and decoding to this class.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import index
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar

from cpbpe.engine.choice import Engine, make_engine
from cpbpe.model.formats import sentencepiece as model
from cpbpe.model.spec import PieceType
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.checks import bounds, utf8
from cpbpe.tokenizer.facts import all_bytes, bytes_of, packed
from cpbpe.tokenizer.lossless import Losslessness, losslessness
from cpbpe.tokenizer.special_tokens import SpecialTokens, check_added, checked_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Self = TypeVar("Self", bound="Vocabulary")

BEHAVIOUR = 1
"""Part of every fingerprint: it goes up when the same model would give other ids, or other text."""


class Vocabulary:
    """A model: its pieces, its special tokens, its bytes. It never changes."""

    __slots__ = ("__weakref__", "_data", "_engine", "_special")

    _data: bytes
    _engine: Engine
    _special: SpecialTokens

    def __init__(self) -> None:
        raise TypeError("make a Tokenizer with Tokenizer.from_file(path) or Tokenizer.from_bytes(data)")

    @classmethod
    def from_file(cls: type[Self], source: model.Source) -> Self:
        """Load a `.model` file, by its path or already opened in binary mode."""
        return cls.from_bytes(model.read_bytes(source))

    @classmethod
    def from_bytes(cls: type[Self], data: bytes | bytearray | memoryview) -> Self:
        """Load a model from the bytes of its file."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            hint = "; to load a file, use Tokenizer.from_file" if isinstance(data, (str, os.PathLike)) else ""
            raise TypeError(f"from_bytes() takes the bytes of a model, not {type(data).__name__}{hint}")
        data = bytes(data)
        engine = make_engine(data)
        return cls._of(data, engine, SpecialTokens(engine, check_added(engine, engine.added)))

    @classmethod
    def _of(cls: type[Self], data: bytes, engine: Engine, special: SpecialTokens) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "_data", data)
        object.__setattr__(self, "_engine", engine)
        object.__setattr__(self, "_special", special)
        return self

    def with_special_tokens(self: Self, tokens: Mapping[str, int] | Iterable[str]) -> Self:
        """The same tokenizer with more special tokens, which are no pieces of the model.

        Without ids they get the next free ones, in the order given. Given ids lie behind the pieces;
        there may be gaps between them. Like a CONTROL piece, an added token is never found in text
        without permission (`allowed_special`). It is saved with the model, in a field of its own that
        other readers of the file pass over, and pickled with it.

        >>> tok = Tokenizer.from_file("tokenizer.model").with_special_tokens(["<|user|>", "<|end|>"])
        >>> tok.special_tokens
        mappingproxy({'<s>': 1, '</s>': 2, '<|user|>': 32000, '<|end|>': 32001})
        >>> tok.encode("<|user|>Hi<|end|>", allowed_special="all")
        [32000, 15359, 32001]
        """
        new = checked_tokens(self._engine, self._special, tokens)
        special = SpecialTokens(self._engine, {**self._special.added, **new})
        return self._of(model.with_added(self._data, new), self._engine, special)

    # --- Pieces -----------------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """The highest id and one, which is how many rows an embedding needs; also `len(tok)`."""
        return self._special.size

    def __len__(self) -> int:
        return self._special.size

    @property
    def unk_id(self) -> int | None:
        """The id of the UNKNOWN piece, or None if the model has none."""
        return self._engine.specials[0]

    @property
    def bos_id(self) -> int | None:
        """The id of the piece that begins a text, or None if the model has none."""
        return self._engine.specials[1]

    @property
    def eos_id(self) -> int | None:
        """The id of the piece that ends a text, or None if the model has none."""
        return self._engine.specials[2]

    @property
    def pad_id(self) -> int | None:
        """The id of the piece that fills a batch, or None if the model has none."""
        return self._engine.specials[3]

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokens that text yields only with permission, and their ids: CONTROL pieces, and added ones."""
        return MappingProxyType(self._special.ids)

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """Those of the special tokens that were added to the model; its pieces have the ids below theirs."""
        return MappingProxyType(self._special.added)

    @property
    def piece_count(self) -> int:
        """How many pieces the model has. Ids from here on are those of added tokens, with gaps perhaps."""
        return self._engine.size

    def id_to_piece(self, id: SupportsIndex) -> str:
        """The piece of an id."""
        number = self._check_id(id, "id_to_piece")
        if number < self._engine.size:
            return text_of(self._engine.piece(number))
        return self._special.texts[number]

    def piece_to_id(self, piece: str | bytes) -> int | None:
        """The id of a piece, of any type, or of an added token; None if there is no such piece.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.piece_to_id("▁Hello"), tok.piece_to_id("<s>"), tok.piece_to_id("no such piece")
        (22557, 1, None)
        """
        data = utf8(piece, "piece_to_id")
        id = self._engine.find(data)
        return self._special.added.get(text_of(data)) if id is None and self._special.added else id

    def score(self, id: SupportsIndex) -> float:
        """The score of an id: the higher, the earlier a pair merges to this piece. 0 for an added token."""
        number = self._check_id(id, "score")
        return self._engine.score(number) if number < self._engine.size else 0.0

    def piece_type(self, id: SupportsIndex) -> PieceType:
        """What an id is for. An added token is CONTROL.

        >>> Tokenizer.from_file("tokenizer.model").piece_type(1)
        <PieceType.CONTROL: 3>
        """
        number = self._check_id(id, "piece_type")
        return PieceType(self._engine.kind(number)) if number < self._engine.size else PieceType.CONTROL

    # --- Bytes ------------------------------------------------------------------------------------

    def id_to_bytes(self, id: SupportsIndex) -> bytes:
        r"""What an id adds to a text, in the middle of it; nothing for a CONTROL piece.

        The space of a dummy prefix, which decoding drops at the beginning, is there.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.id_to_bytes(22557), tok.id_to_bytes(tok.piece_to_id("<0xE2>")), tok.id_to_bytes(1)
        (b' Hello', b'\xe2', b'')
        """
        return bytes_of(self, self._check_id(id, "id_to_bytes"))

    def token_bytes(self) -> list[bytes]:
        """`id_to_bytes` of every id, as constrained decoding needs it; nothing where an id is not in use.

        >>> Tokenizer.from_file("tokenizer.model").token_bytes()[22557]
        b' Hello'
        """
        return all_bytes(self)

    def token_bytes_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The same in one array, and where each begins in it, and the end.

        >>> data, offsets = Tokenizer.from_file("tokenizer.model").token_bytes_arrays()
        >>> data[offsets[22557] : offsets[22558]].tobytes()
        b' Hello'
        """
        return packed(self.token_bytes())

    def is_lossless(self) -> Losslessness:
        """Whether every text comes back from its ids: true, or false with reasons. See `cpbpe.tokenizer.lossless`.

        >>> bool(Tokenizer.from_file("tokenizer.model").is_lossless())
        True
        """
        return losslessness(model.parse(self._data))

    # --- The model --------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """A hash of the model and of how cpbpe reads it, the same everywhere: a key for caches.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.fingerprint == Tokenizer.from_bytes(tok.to_bytes()).fingerprint, len(tok.fingerprint)
        (True, 64)
        """
        return hashlib.sha256(b"cpbpe %d\0" % BEHAVIOUR + self._data).hexdigest()

    def to_bytes(self) -> bytes:
        """The model file, byte for byte as it was loaded, and tokens that were added behind it."""
        return self._data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file. An existing file is replaced at once, never left half written."""
        path = os.path.realpath(path)
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe, or /dev/stdout
            with open(path, "wb") as file:
                file.write(self._data)
            return
        temporary = f"{path}.{token_hex(8)}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(self._data)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    # --- Being a value ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        fallback = "byte fallback" if self._engine.byte_fallback else "no byte fallback"
        normalizer = text_of(self._engine.normalizer_name) or "unnamed"
        added = f", {len(self._special.added)} added tokens" if self._special.added else ""
        return f"<cpbpe.Tokenizer: {self._engine.size} pieces{added}, {fallback}, normalizer {normalizer!r}>"

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._data)

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (type(self), self._data, BEHAVIOUR)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tokenizer does not change; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tokenizer does not change; cannot delete {name!r}")

    def _check_id(self, id: SupportsIndex, method: str) -> int:
        """One id as an int, in the vocabulary."""
        try:
            number = index(id)
        except TypeError:
            raise TypeError(f"{method}() takes one id (an integer), not {type(id).__name__}") from None
        if not 0 <= number < len(self):
            raise IndexError(f"id {number} is outside the vocabulary: {bounds(len(self))}")
        if number >= self._engine.size and number not in self._special.texts:
            raise IndexError(f"id {number} is not in use: no added token has it")
        return number


def restore(cls: type[Self], data: bytes, behaviour: int) -> Self:
    """What a pickle calls: a function with a name, so that nothing of it is in the pickle but this name.

    The behaviour is there for what is derived from pickles, as the caches of datasets are: when it changes,
    they are made anew.
    """
    return cls.from_bytes(data)
