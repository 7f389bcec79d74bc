"""The vocabulary of a tokenizer, as an object: `tok.vocab`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from cpbpe.checks import utf8
from cpbpe.lazy import importing
from cpbpe.model.piece_type import PieceType
from cpbpe.tokenizer.facts import ModelFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


class Vocabulary(Mapping[str, int]):
    r"""The pieces of a model and the tokens that were added to it: a mapping from each to its id, and back.

    >>> import cpbpe
    >>> vocab = cpbpe.load("tokenizer.model").vocab
    >>> vocab
    <cpbpe.Vocabulary: 32000 pieces>
    >>> vocab["▁Hello"], vocab[22557], vocab.get("no such piece")
    (22557, '▁Hello', None)
    >>> "▁Hello" in vocab, 22557 in vocab, len(vocab), list(vocab)[:3]
    (True, True, 32000, ['<unk>', '<s>', '</s>'])

    A piece that is not UTF-8, which only crafted models have, appears as `os.fsdecode` would write it, so
    that every piece has a key of its own.
    """

    __slots__ = ("_facts",)

    def __init__(self, facts: ModelFacts):
        self._facts = facts

    # --- A mapping, both ways -----------------------------------------------------------------------

    def __len__(self) -> int:
        """How many pieces and added tokens there are. (`size` counts ids, with the gaps between them.)"""
        return self._facts.engine.size + len(self._facts.special.added)

    def __iter__(self) -> Iterator[str]:
        """The pieces in the order of their ids, then the added tokens."""
        facts = self._facts
        for id in range(facts.engine.size):
            yield _key(facts.engine.piece(id))
        yield from (facts.special.texts[id] for id in sorted(facts.special.texts))

    @overload
    def __getitem__(self, key: str | bytes) -> int: ...
    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    def __getitem__(self, key: str | bytes | SupportsIndex) -> int | str:
        """The id of a piece (KeyError if there is none), or the piece of an id (IndexError)."""
        if isinstance(key, (str, bytes)):
            id = self._find(key)
            if id is None:
                raise KeyError(
                    f"{key!r} is not in the vocabulary; vocab.get() returns None for such pieces, and "
                    f"tok.encode() returns the ids of any text"
                )
            return id
        if not hasattr(key, "__index__"):
            raise TypeError(
                f"vocab[...] takes a piece (str or bytes) or an id (an integer), not {type(key).__name__}"
            )
        facts, number = self._facts, self._facts.check_id(key, "vocab")
        return _key(facts.engine.piece(number)) if number < facts.engine.size else facts.special.texts[number]

    def __contains__(self, key: object) -> bool:
        """Whether the vocabulary has this piece, or this id."""
        if isinstance(key, (str, bytes)):
            return self._find(key) is not None
        if not hasattr(key, "__index__"):
            return False
        facts, id = self._facts, key.__index__()
        return 0 <= id < facts.engine.size or id in facts.special.texts

    @overload
    def get(self, key: str | bytes, default: None = None, /) -> int | None: ...
    @overload
    def get(self, key: str | bytes, default: T, /) -> int | T: ...
    @overload
    def get(self, key: SupportsIndex, default: None = None, /) -> str | None: ...
    @overload
    def get(self, key: SupportsIndex, default: T, /) -> str | T: ...
    def get(self, key: Any, default: Any = None, /) -> Any:
        """The id of a piece, or the piece of an id; `default` if there is no such piece or id."""
        if isinstance(key, (str, bytes)):
            id = self._find(key)
            return default if id is None else id
        return self[key] if key in self else default  # noqa: SIM401 (this is `get`)

    def _find(self, key: str | bytes) -> int | None:
        facts = self._facts
        data = key if isinstance(key, bytes) else piece_of_key(key)
        if data is None:
            return None
        id = facts.find(data)
        if id is None and data == b"\0":  # `facts.find` never finds it, as in sentencepiece
            id = facts.spec.pieces.texts.index(data) if data in facts.spec.pieces.texts else None
        return id

    @property
    def size(self) -> int:
        """The highest id plus one: how many rows an embedding needs."""
        return self._facts.special.size

    @property
    def piece_count(self) -> int:
        """How many pieces the model has. Added tokens have ids from this number on, perhaps with gaps."""
        return self._facts.engine.size

    # --- One id -----------------------------------------------------------------------------------

    def score(self, id: SupportsIndex) -> float:
        """The score of an id. The higher, the earlier a pair merges into this piece. 0 for added tokens."""
        number = self._facts.check_id(id, "score")
        engine = self._facts.engine
        return engine.score(number) if number < engine.size else 0.0

    def piece_type(self, id: SupportsIndex) -> PieceType:
        """The type of a piece. Added tokens are CONTROL.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").vocab.piece_type(1)
        <PieceType.CONTROL: 3>
        """
        number = self._facts.check_id(id, "piece_type")
        engine = self._facts.engine
        return PieceType(engine.kind(number)) if number < engine.size else PieceType.CONTROL

    def id_to_bytes(self, id: SupportsIndex) -> bytes:
        r"""The bytes that an id adds to a text, in the middle of it; none for a CONTROL piece.

        A space at the beginning is kept, although decoding drops that of a dummy prefix.

        >>> import cpbpe
        >>> vocab = cpbpe.load("tokenizer.model").vocab
        >>> vocab.id_to_bytes(22557), vocab.id_to_bytes(vocab["<0xE2>"]), vocab.id_to_bytes(1)
        (b' Hello', b'\xe2', b'')
        """
        return self._facts.bytes_of(self._facts.check_id(id, "id_to_bytes"))

    # --- All ids at once --------------------------------------------------------------------------

    @property
    def scores(self) -> NDArray[np.float32]:
        """The scores of the model's pieces, by id."""
        with importing:
            import numpy as np
        return np.frombuffer(self._facts.spec.pieces.scores, np.float32)

    @property
    def types(self) -> NDArray[np.uint8]:
        """The types of the model's pieces, by id, as numbers of `PieceType`."""
        with importing:
            import numpy as np
        return np.frombuffer(self._facts.types, np.uint8)

    def token_bytes(self, *, text_only: bool = False) -> list[bytes]:
        """`id_to_bytes` of every id, for constrained decoding; no bytes for ids that are not in use.

        With `text_only` there are none either for ids that stand for no text: special tokens, those that were
        added included, the UNKNOWN piece, and UNUSED ones.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").vocab.token_bytes()[22557]
        b' Hello'
        """
        return self._facts.token_bytes(text_only)

    def token_bytes_arrays(self, *, text_only: bool = False) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The same in one array, and an array of where each id's bytes begin, with the end as its last entry.

        >>> import cpbpe
        >>> data, offsets = cpbpe.load("tokenizer.model").vocab.token_bytes_arrays()
        >>> data[offsets[22557] : offsets[22558]].tobytes()
        b' Hello'
        """
        with importing:
            import numpy as np
        table = self.token_bytes(text_only=text_only)
        offsets = np.cumsum([0, *map(len, table)], dtype=np.int64)
        return np.frombuffer(bytearray().join(table), np.uint8), offsets

    # --- Special tokens ---------------------------------------------------------------------------

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokens that text yields only if allowed, and their ids: CONTROL pieces and added tokens."""
        return MappingProxyType(self._facts.special.ids)

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """The special tokens that were added to the model, and their ids."""
        return MappingProxyType(self._facts.special.added)

    # --- Comparing and showing --------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vocabulary):
            return self._facts is other._facts or self._facts.file == other._facts.file
        return dict(self) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        added = len(self._facts.special.added)
        more = f" and {added} added tokens" if added else ""
        return f"<cpbpe.Vocabulary: {self.piece_count} pieces{more}>"


def piece_bytes(piece: object, method: str) -> bytes:
    """A piece that a user gave, as bytes. One that is not UTF-8 may be spelled as in `tok.vocab`."""
    data = piece_of_key(piece) if isinstance(piece, str) else None
    return utf8(piece, method) if data is None else data


def _key(piece: bytes) -> str:
    return piece.decode(errors="surrogateescape")


def piece_of_key(key: str) -> bytes | None:
    """The piece for which `_key` returns this key.

    None for strings that it never returns: other lone surrogates, and escapes of valid UTF-8.
    """
    try:
        return key.encode()
    except UnicodeEncodeError:
        pass
    try:
        data = key.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return None
    return data if _key(data) == key else None
