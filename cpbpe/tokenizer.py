"""The Tokenizer: what users hold. It takes Python's many kinds of text and numbers, and checks them.

The work is done by an engine (`cpbpe.engine`); files are read by `cpbpe.model`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from operator import index
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar

from cpbpe import model
from cpbpe.checks import (
    as_ids,
    bounds,
    check_ids,
    checked_text,
    checked_threads,
    numpy,
    refuse_single,
    text_of,
    threads_for,
    utf8,
)
from cpbpe.encoding import Encoding, Unit, character_positions
from cpbpe.engine import Engine, make_engine
from cpbpe.ragged import Ragged
from cpbpe.spec import PieceType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    __slots__ = ("__weakref__", "_data", "_engine")

    _data: bytes
    _engine: Engine

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
        self = object.__new__(cls)
        object.__setattr__(self, "_data", bytes(data))
        object.__setattr__(self, "_engine", make_engine(self._data))
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
        ids = self._engine.encode(text if type(text) is str else checked_text(text, "encode"))
        if add_bos or add_eos or reverse:
            front, back = self._ends(add_bos, add_eos)
            return [*front, *(reversed(ids) if reverse else ids), *back]
        return ids

    def encode_array(
        self,
        text: Text,
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        threads: int = 1,
    ) -> NDArray[np.uint32]:
        """The ids of a text as a numpy array.

        With `threads` above 1 a long text is cut where nothing can merge, and its parts are encoded at
        the same time; the result is the same.

        >>> Tokenizer.from_file("tokenizer.model").encode_array("Hello world", add_bos=True)
        array([    1, 22557,  1526], dtype=uint32)
        """
        lib = numpy()
        if type(text) is not str:
            text = checked_text(text, "encode_array")
        if threads != 1 or type(threads) is not int:
            threads = checked_threads(threads)
        found = self._engine.encode_array(text, threads)
        ids: NDArray[np.uint32] = lib.frombuffer(found, lib.uint32)
        if add_bos or add_eos or reverse:
            front, back = self._ends(add_bos, add_eos)
            ids = lib.concatenate([front, ids[::-1] if reverse else ids, back]).astype(lib.uint32)
        return ids

    def count(self, text: Text) -> int:
        """How many ids a text has, which are counted and not built.

        >>> Tokenizer.from_file("tokenizer.model").count("Hello world")
        2
        """
        return self._engine.count(checked_text(text, "count"))

    def encode_pieces(
        self, text: Text, *, add_bos: bool = False, add_eos: bool = False, reverse: bool = False
    ) -> list[str]:
        """The pieces of a text. An unknown part stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").encode_pieces("Hi 你好 🦙")
        ['▁Hi', '▁', '你', '好', '▁', '<0xF0>', '<0x9F>', '<0xA6>', '<0x99>']
        """
        front, back = self._ends(add_bos, add_eos)
        found = self._engine.tokens(checked_text(text, "encode_pieces"))
        pieces = [text_of(piece) for piece in found[1]]
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
        data = utf8(text, "encode_offsets")
        if unit is None:
            unit = "char" if isinstance(text, str) else "byte"
        elif unit not in ("char", "byte"):
            raise ValueError(f"unit is 'char' or 'byte', not {unit!r}")
        ids, pieces, begins, ends = self._engine.tokens(data)
        offsets = list(zip(begins, ends, strict=True))
        if reverse:
            for column in (ids, pieces, offsets):
                column.reverse()
        ids = [*front, *ids, *back]
        pieces = [*map(self._engine.piece, front), *pieces, *map(self._engine.piece, back)]
        offsets = [*((0, 0) for _ in front), *offsets, *((len(data), len(data)) for _ in back)]
        if unit == "char" and not data.isascii():
            positions = character_positions(data)
            offsets = [(positions[begin], positions[end]) for begin, end in offsets]
        return Encoding(
            ids=ids,
            pieces=[text_of(piece) for piece in pieces],
            offsets=offsets,
            text=text if isinstance(text, str) else data,
            unit=unit,
        )

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        threads: int | None = None,
    ) -> list[list[int]]:
        """The ids of many texts, by several threads: by default all cores, if it is worth it.

        >>> Tokenizer.from_file("tokenizer.model").encode_batch(["Hi", "Hello world", ""])
        [[15359], [22557, 1526], []]
        """
        refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch", "texts")
        checked = [checked_text(text, "encode_batch") for text in texts]
        found = self._engine.encode_batch(checked, threads_for(checked, threads))
        if add_bos or add_eos or reverse:
            front, back = self._ends(add_bos, add_eos)
            return [[*front, *(reversed(ids) if reverse else ids), *back] for ids in found]
        return found

    def encode_batch_arrays(
        self,
        texts: Iterable[Text],
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        threads: int | None = None,
    ) -> Ragged:
        """The ids of many texts in one numpy array, with the places where each begins. See `Ragged`.

        >>> Tokenizer.from_file("tokenizer.model").encode_batch_arrays(["Hi", "Hello world"]).ids
        array([15359, 22557,  1526], dtype=uint32)
        """
        np = numpy()
        refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch_arrays", "texts")
        checked = [checked_text(text, "encode_batch_arrays") for text in texts]
        found = self._engine.encode_batch_arrays(checked, threads_for(checked, threads))
        ids, offsets = np.frombuffer(found[0], np.uint32), np.frombuffer(found[1], np.int64)
        if add_bos or add_eos or reverse:
            front, back = self._ends(add_bos, add_eos)
            rows = [
                np.concatenate([front, row[::-1] if reverse else row, back]) for row in Ragged(ids, offsets)
            ]
            ids = np.concatenate([np.zeros(0, np.uint32), *rows]).astype(np.uint32)
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return Ragged(ids, offsets)

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
        given = ids if type(ids) is list else as_ids(ids, len(self), "decode")
        text = self._engine.decode(given)
        if text is None:
            text = self._engine.decode(check_ids(ids, len(self), "decode"))
        assert text is not None
        return text

    def decode_bytes(self, ids: Ids) -> bytes:
        r"""The same text in UTF-8, except that bytes which make no character stay what they are.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> llama = tok.encode("🦙")
        >>> tok.decode_bytes(llama[:-1]), tok.decode(llama[:-1])
        (b'\xf0\x9f\xa6', '���')
        """
        given = ids if type(ids) is list else as_ids(ids, len(self), "decode_bytes")
        text = self._engine.decode_bytes(given)
        if text is None:
            text = self._engine.decode_bytes(check_ids(ids, len(self), "decode_bytes"))
        assert text is not None
        return text

    def decode_pieces(self, pieces: Iterable[str | bytes]) -> str:
        """The text of pieces. One that the vocabulary does not hold stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").decode_pieces(["▁Hi", "▁there", "🦙"])
        'Hi there🦙'
        """
        refuse_single(pieces, (str, bytes, bytearray, memoryview), "decode_pieces", "pieces")
        return text_of(self._engine.decode_pieces([utf8(piece, "decode_pieces") for piece in pieces]))

    def decode_batch(self, batch: Iterable[Ids] | Ragged, *, threads: int | None = None) -> list[str]:
        """The texts of many sequences of ids: a list of such, a `Ragged`, or a two-dimensional array.

        >>> Tokenizer.from_file("tokenizer.model").decode_batch([[15359], [22557, 1526], []])
        ['Hi', 'Hello world', '']
        """
        refuse_single(batch, (str, bytes, bytearray), "decode_batch", "sequences of ids")
        listed = list(batch)
        given = [ids if type(ids) is list else as_ids(ids, len(self), "decode_batch") for ids in listed]
        texts = self._engine.decode_batch(given, threads_for(given, threads))
        return [self.decode(ids) for ids in listed] if texts is None else texts

    # --- The vocabulary ---------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """How many pieces there are; also `len(tok)`."""
        return self._engine.size

    def __len__(self) -> int:
        return self.vocab_size

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

    def id_to_piece(self, id: SupportsIndex) -> str:
        """The piece of an id."""
        return text_of(self._engine.piece(self._check_id(id, "id_to_piece")))

    def piece_to_id(self, piece: str | bytes) -> int | None:
        """The id of a piece, of any type, or None if there is no such piece.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.piece_to_id("▁Hello"), tok.piece_to_id("<s>"), tok.piece_to_id("no such piece")
        (22557, 1, None)
        """
        return self._engine.find(utf8(piece, "piece_to_id"))

    def score(self, id: SupportsIndex) -> float:
        """The score of an id: the higher, the earlier a pair merges to this piece."""
        return self._engine.score(self._check_id(id, "score"))

    def piece_type(self, id: SupportsIndex) -> PieceType:
        """What an id is for.

        >>> Tokenizer.from_file("tokenizer.model").piece_type(1)
        <PieceType.CONTROL: 3>
        """
        return PieceType(self._engine.kind(self._check_id(id, "piece_type")))

    # --- The model --------------------------------------------------------------------------------

    def normalize(self, text: Text) -> Any:
        """The text as it is segmented: `str` for `str`, `bytes` for `bytes`.

        >>> Tokenizer.from_file("tokenizer.model").normalize("Hello world")
        '▁Hello▁world'
        """
        normalized = self._engine.normalize(checked_text(text, "normalize"))
        return text_of(normalized) if isinstance(text, str) else normalized

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
        fallback = "byte fallback" if self._engine.byte_fallback else "no byte fallback"
        normalizer = text_of(self._engine.normalizer_name) or "unnamed"
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
        bos, eos = self.bos_id, self.eos_id
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
            raise IndexError(f"id {number} is outside the vocabulary: {bounds(len(self))}")
        return number


def load(source: model.Source) -> Tokenizer:
    """Load a `.model` file, by its path or already opened in binary mode; the same as `Tokenizer.from_file`.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    return Tokenizer.from_file(source)
