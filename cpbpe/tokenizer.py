"""The Tokenizer: what users hold. It takes Python's many kinds of text and numbers, and checks them.

The work is done by an engine (`cpbpe.engine`); files are read by `cpbpe.model`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from operator import index
from secrets import token_hex
from typing import Any, NoReturn, SupportsIndex, TypeVar

from cpbpe import model
from cpbpe.encoding import Encoding, Unit, character_positions
from cpbpe.engine import Engine, make_engine
from cpbpe.reference import Token, repair
from cpbpe.spec import ModelSpec, PieceType

Self = TypeVar("Self", bound="Tokenizer")
Ids = Iterable[SupportsIndex] | SupportsIndex
Text = str | bytes


class Tokenizer:
    """A loaded model. It never changes, so it can be shared by threads, copied and pickled.

    >>> tok = Tokenizer.from_file("tokenizer.model")
    >>> tok
    <cpbpe.Tokenizer: 32000 pieces, byte fallback, normalizer 'identity'>
    >>> tok.encode("Grüße!")
    [1778, 28837, 9526, 28808]
    >>> tok.decode([1778, 28837, 9526, 28808])
    'Grüße!'

    Two tokenizers are equal when their model files are.

    >>> tok == Tokenizer.from_bytes(tok.to_bytes())
    True
    """

    __slots__ = ("__weakref__", "_data", "_engine", "_ids", "_spec")

    _data: bytes
    _spec: ModelSpec
    _engine: Engine
    _ids: dict[bytes, int]

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
        spec = model.parse(data)
        self = object.__new__(cls)
        fields = {
            "_data": data,
            "_spec": spec,
            "_engine": make_engine(spec),
            "_ids": {piece: id for id, piece in enumerate(spec.pieces) if piece != b"\0"},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        return self

    # --- Encoding ---------------------------------------------------------------------------------

    def encode(
        self, text: Text, *, add_bos: bool = False, add_eos: bool = False, reverse: bool = False
    ) -> list[int]:
        r"""The ids of a text.

        `text` may be bytes, and they need not be valid UTF-8: a byte that belongs to no character
        reads as U+FFFD. `reverse` turns the ids around; then the bos id goes in front and the eos id
        behind, if asked for. CONTROL pieces that are spelled out in the text stay ordinary text.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.encode("Hi", add_bos=True, add_eos=True)
        [1, 15359, 2]
        >>> tok.encode(b"Hi\xff") == tok.encode("Hi\ufffd")
        True
        """
        front, back = self._ends(add_bos, add_eos)
        ids = [token.id for token in self._engine.encode(_utf8(text, "encode"))]
        return [*front, *(reversed(ids) if reverse else ids), *back]

    def encode_pieces(
        self, text: Text, *, add_bos: bool = False, add_eos: bool = False, reverse: bool = False
    ) -> list[str]:
        """The pieces of a text. An unknown part stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").encode_pieces("Hi 你好 🦙")
        ['▁Hi', '▁', '你', '好', '▁', '<0xF0>', '<0x9F>', '<0xA6>', '<0x99>']
        """
        front, back = self._ends(add_bos, add_eos)
        pieces = [_text(token.piece) for token in self._engine.encode(_utf8(text, "encode_pieces"))]
        ends = [[self.id_to_piece(id) for id in ids] for ids in (front, back)]
        return [*ends[0], *(reversed(pieces) if reverse else pieces), *ends[1]]

    def encode_offsets(
        self,
        text: Text,
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        unit: Unit | None = None,
    ) -> Encoding:
        """Ids, pieces, and the span of the text that each came from.

        Spans count characters for `str` and bytes for `bytes`; `unit` ("char" or "byte") chooses.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> found = tok.encode_offsets("Hi 你好")
        >>> list(zip(found.pieces, found.offsets, found.surfaces))
        [('▁Hi', (0, 2), 'Hi'), ('▁', (2, 3), ' '), ('你', (3, 4), '你'), ('好', (4, 5), '好')]
        >>> tok.encode_offsets("你好", unit="byte").offsets
        [(0, 0), (0, 3), (3, 6)]
        """
        front, back = self._ends(add_bos, add_eos)
        data = _utf8(text, "encode_offsets")
        if unit is None:
            unit = "char" if isinstance(text, str) else "byte"
        elif unit not in ("char", "byte"):
            raise ValueError(f"unit is 'char' or 'byte', not {unit!r}")
        tokens = self._engine.encode(data)
        if reverse:
            tokens.reverse()
        pieces = self._spec.pieces
        tokens[:0] = [Token(id, pieces[id], 0, 0) for id in front]
        tokens += [Token(id, pieces[id], len(data), len(data)) for id in back]
        offsets = [(token.begin, token.end) for token in tokens]
        if unit == "char" and not data.isascii():
            positions = character_positions(data)
            offsets = [(positions[begin], positions[end]) for begin, end in offsets]
        return Encoding(
            ids=[token.id for token in tokens],
            pieces=[_text(token.piece) for token in tokens],
            offsets=offsets,
            text=text if isinstance(text, str) else data,
            unit=unit,
        )

    def encode_batch(
        self, texts: Iterable[Text], *, add_bos: bool = False, add_eos: bool = False, reverse: bool = False
    ) -> list[list[int]]:
        """The ids of many texts.

        >>> Tokenizer.from_file("tokenizer.model").encode_batch(["Hi", "Hello world", ""])
        [[15359], [22557, 1526], []]
        """
        _refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch", "texts")
        return [self.encode(text, add_bos=add_bos, add_eos=add_eos, reverse=reverse) for text in texts]

    # --- Decoding ---------------------------------------------------------------------------------

    def decode(self, ids: Ids) -> str:
        """The text of ids: any sequence of integers, a numpy array, or one integer.

        CONTROL pieces are left out. Bytes that make no character read as U+FFFD, one for each.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.decode([1, 15359, 28808, 2])
        'Hi!'
        >>> tok.decode([32000])
        Traceback (most recent call last):
        ...
        IndexError: id 32000 at position 0 is outside the vocabulary: 32000 pieces, 0 to 31999
        """
        return _text(self._engine.decode_ids(self._check_ids(ids, "decode")))

    def decode_bytes(self, ids: Ids) -> bytes:
        r"""The same text in UTF-8, except that bytes which make no character stay what they are.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> llama = tok.encode("🦙")
        >>> tok.decode_bytes(llama[:-1]), tok.decode(llama[:-1])
        (b'\xf0\x9f\xa6', '���')
        """
        return self._engine.decode_ids(self._check_ids(ids, "decode_bytes"), keep_invalid=True)

    def decode_pieces(self, pieces: Iterable[str | bytes]) -> str:
        """The text of pieces. One that the vocabulary does not hold stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").decode_pieces(["▁Hi", "▁there", "🦙"])
        'Hi there🦙'
        """
        _refuse_single(pieces, (str, bytes, bytearray, memoryview), "decode_pieces", "pieces")
        return _text(self._engine.decode_pieces([_utf8(piece, "decode_pieces") for piece in pieces]))

    def decode_batch(self, batch: Iterable[Ids]) -> list[str]:
        """The texts of many sequences of ids.

        >>> Tokenizer.from_file("tokenizer.model").decode_batch([[15359], [22557, 1526], []])
        ['Hi', 'Hello world', '']
        """
        _refuse_single(batch, (str, bytes, bytearray), "decode_batch", "sequences of ids")
        return [self.decode(ids) for ids in batch]

    # --- The vocabulary ---------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """How many pieces there are; also `len(tok)`."""
        return len(self._spec.pieces)

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def unk_id(self) -> int | None:
        """The id of the UNKNOWN piece, or None if the model has none."""
        return self._spec.unk_id

    @property
    def bos_id(self) -> int | None:
        """The id of the piece that begins a text, or None if the model has none."""
        return self._spec.bos_id

    @property
    def eos_id(self) -> int | None:
        """The id of the piece that ends a text, or None if the model has none."""
        return self._spec.eos_id

    @property
    def pad_id(self) -> int | None:
        """The id of the piece that fills a batch, or None if the model has none."""
        return self._spec.pad_id

    def id_to_piece(self, id: SupportsIndex) -> str:
        """The piece of an id."""
        return _text(self._spec.pieces[self._check_id(id, "id_to_piece")])

    def piece_to_id(self, piece: str | bytes) -> int | None:
        """The id of a piece, of any type, or None if there is no such piece.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.piece_to_id("▁Hello"), tok.piece_to_id("<s>"), tok.piece_to_id("no such piece")
        (22557, 1, None)
        """
        return self._ids.get(_utf8(piece, "piece_to_id"))

    def score(self, id: SupportsIndex) -> float:
        """The score of an id: the higher, the earlier a pair merges to this piece."""
        return self._spec.scores[self._check_id(id, "score")]

    def piece_type(self, id: SupportsIndex) -> PieceType:
        """What an id is for.

        >>> Tokenizer.from_file("tokenizer.model").piece_type(1)
        <PieceType.CONTROL: 3>
        """
        return self._spec.types[self._check_id(id, "piece_type")]

    # --- The model --------------------------------------------------------------------------------

    def normalize(self, text: Text) -> Any:
        """The text as it is segmented: `str` for `str`, `bytes` for `bytes`.

        >>> Tokenizer.from_file("tokenizer.model").normalize("Hello world")
        '▁Hello▁world'
        """
        normalized = self._engine.normalize(_utf8(text, "normalize"))
        return _text(normalized) if isinstance(text, str) else normalized

    def to_bytes(self) -> bytes:
        """The model file, byte for byte as it was loaded."""
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
        fallback = "byte fallback" if self._spec.byte_fallback else "no byte fallback"
        normalizer = self._spec.normalizer.name or "unnamed"
        return f"<cpbpe.Tokenizer: {self.vocab_size} pieces, {fallback}, normalizer {normalizer!r}>"

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._data)

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self._data,)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tokenizer does not change; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tokenizer does not change; cannot delete {name!r}")

    # --- Checking what comes in -------------------------------------------------------------------

    def _ends(self, add_bos: bool, add_eos: bool) -> tuple[list[int], list[int]]:
        """The ids to put in front and behind."""
        bos, eos = self._spec.bos_id, self._spec.eos_id
        for wanted, option, id, name in ((add_bos, "add_bos", bos, "bos"), (add_eos, "add_eos", eos, "eos")):
            if wanted and id is None:
                raise ValueError(
                    f"{option}=True, but this model defines no {name} piece of type CONTROL; "
                    f"leave the option out, or add an id of your own to the list"
                )
        return [bos] if add_bos and bos is not None else [], [eos] if add_eos and eos is not None else []

    def _check_id(self, id: SupportsIndex, method: str) -> int:
        """One id as an int, in the vocabulary."""
        try:
            number = index(id)
        except TypeError:
            raise TypeError(f"{method}() takes one id (an integer), not {type(id).__name__}") from None
        if not 0 <= number < len(self):
            raise IndexError(f"id {number} is outside the vocabulary: {self._range()}")
        return number

    def _range(self) -> str:
        return f"{len(self)} pieces, 0 to {len(self) - 1}"

    def _check_ids(self, ids: object, method: str) -> list[int]:
        """Ids as a list of int, each in the vocabulary."""
        if isinstance(ids, (str, bytes, bytearray)):
            hint = "; for pieces use decode_pieces" if method.startswith("decode") else ""
            raise TypeError(f"{method}() takes ids (integers), not {type(ids).__name__}{hint}")
        if hasattr(ids, "tolist"):  # numpy, torch, memoryview, array: all at once, as Python's own int
            ids = ids.tolist()
        checked: list[int] = []
        for position, id in enumerate(ids if isinstance(ids, Iterable) else [ids]):
            try:
                checked.append(index(id))
            except TypeError:
                hint = "; use decode_batch" if isinstance(id, (list, tuple)) and method == "decode" else ""
                raise TypeError(
                    f"{method}() takes ids (integers), found {type(id).__name__} at position {position}{hint}"
                ) from None
        size = len(self)
        for position, number in enumerate(checked):
            if not 0 <= number < size:
                raise IndexError(
                    f"id {number} at position {position} is outside the vocabulary: {self._range()}"
                )
        return checked


def load(source: model.Source) -> Tokenizer:
    """Load a `.model` file, by its path or already opened in binary mode; the same as `Tokenizer.from_file`.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    return Tokenizer.from_file(source)


def _utf8(text: object, method: str) -> bytes:
    """Text as bytes. A lone surrogate in a str is an error, as it is to `str.encode`."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    several = method == "encode" and isinstance(text, (list, tuple))
    hint = "; for several texts use encode_batch" if several else ""
    raise TypeError(f"{method}() takes str or bytes, not {type(text).__name__}{hint}")


def _text(data: bytes) -> str:
    """Bytes as text. Only a model whose pieces or rules are not UTF-8 makes some that need repairing."""
    return repair(data).decode()


def _refuse_single(items: object, single: tuple[type, ...], method: str, what: str) -> None:
    if isinstance(items, single) or not isinstance(items, Iterable):
        raise TypeError(f"{method}() takes a list of {what}, not {type(items).__name__}")
