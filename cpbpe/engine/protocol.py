"""What every engine offers. An engine does all the work for one model.

It looks pieces up, turns text into ids and ids into text. `cpbpe.tokenizer` has checked the arguments.
Text is str, or bytes that may be invalid UTF-8. The compiled core (`cpbpe._core`, from the folder `core/`) is
one engine; the other is `cpbpe.engine.reference_engine`, which does the same with `cpbpe.reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

from cpbpe.engine.ends import Dropout, Ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.engine.columns import Columns, ModelColumns

    Ids = NDArray[np.uint32]
    Places = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    AnyPlaces = NDArray[np.int32] | NDArray[np.int64]
    AlignedArrays = tuple[Ids, Places, Places, list[tuple[int, bytes]]]

Text = str | bytes
AnyText = TypeVar("AnyText", str, bytes)
Span = tuple[int, int]
Aligned = tuple[list[int], list[Any], list[Span]]
"""Ids, pieces (all str, or all bytes), and where the input that each came from begins and ends."""


class Finder(Protocol):
    """Finds keys in text, the longest at each place, from left to right."""

    def split(self, text: Any, /) -> list[Any] | None:
        """The text before a key, the key's number, the text after it, and so on; None without keys."""


class Slices(NamedTuple):
    """Texts that begin and end at these places of an array of bytes, which must not change.

    They may be invalid UTF-8.
    """

    data: Bytes
    begins: AnyPlaces
    ends: AnyPlaces


class Engine(Protocol):
    """The operations of an engine."""

    # --- The model --------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many pieces there are."""

    @property
    def head(self) -> ModelColumns:
        """The columns of the model that are not about its pieces."""

    @property
    def specials(self) -> list[int | None]:
        """The ids of unk, bos, eos and pad."""

    def columns(self) -> Columns:
        """The model that the engine was built from."""

    def variant(self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False) -> Engine:
        """The same engine with other options. It shares everything else. Each variant is built once.

        `prefix`: whether to add a dummy prefix, instead of what the model says. `keep_space`: whether
        decoding keeps a space at the beginning. `raw`: text is already normalized.
        """

    def piece(self, id: int) -> bytes:
        """The text of a piece; the id is inside the vocabulary, here and below."""

    def find(self, piece: bytes) -> int | None:
        """The id of a piece."""

    def score(self, id: int) -> float:
        """The score of a piece."""

    def kind(self, id: int) -> int:
        """The type of a piece, as a number."""

    # --- Text to ids ------------------------------------------------------------------------------

    # `ends` says what goes around the ids of each text. With `dropout`, merges are skipped at random.

    def normalize(self, text: AnyText) -> AnyText:
        """The normalized text, which is what is merged into pieces.

        In a str, U+FFFD stands for bytes that are not UTF-8; bytes keep them.
        """

    def origins(self, text: Text) -> tuple[bytes, list[int]]:
        """The normalized text, and for each of its bytes and for its end, the place it came from."""

    def cut(self, text: bytes) -> int:
        """The last place in a normalized text after which nothing can change the ids of the text before it.

        More text may follow. 0 if there is no such place. A raw variant encodes both sides.
        """

    def encode(self, text: Text, ends: Ends | None = None, dropout: Dropout | None = None) -> list[int]:
        """The ids of a text."""

    def encode_array(self, text: Text, threads: int, ends: Ends | None = None) -> Ids:
        """The same as an array."""

    def encode_batch(self, texts: list[Text], threads: int, ends: Ends | None = None) -> list[list[int]]:
        """The ids of many texts."""

    def encode_arrays(
        self, texts: list[Text] | Slices, threads: int, ends: Ends | None = None
    ) -> tuple[Ids, Places]:
        """The ids of many texts in one array, and where each text begins in it, and the end."""

    def encode_lines(self, data: bytes, threads: int, ends: Ends | None = None) -> tuple[Ids, Places, Places]:
        """The same of the lines of a text that are not empty, and the numbers of those that are, from 0."""

    def encode_pieces(
        self, text: Text, ends: Ends | None = None, dropout: Dropout | None = None
    ) -> list[str]:
        """The pieces of a text, with U+FFFD for bytes that are not UTF-8. An unknown part stays as it is."""

    def count(self, text: Text) -> int:
        """How many ids a text has."""

    @overload
    def count_batch(self, texts: list[Text], threads: int) -> list[int]: ...
    @overload
    def count_batch(self, texts: Slices, threads: int) -> Places: ...
    def count_batch(self, texts: list[Text] | Slices, threads: int) -> list[int] | Places:
        """How many ids each of many texts has."""

    def align(
        self, text: Text, chars: bool, as_bytes: bool = False, dropout: Dropout | None = None
    ) -> Aligned:
        """The tokens of a text.

        `chars`: spans count characters, otherwise bytes. `as_bytes`: pieces are bytes, otherwise str, with
        U+FFFD for bytes that are not UTF-8.
        """

    def align_batch(
        self,
        texts: list[Text],
        threads: int,
        chars: bool | None,
        as_bytes: bool = False,
        dropout: Dropout | None = None,
    ) -> list[Aligned]:
        """The tokens of many texts. `chars` may be None: characters in str, bytes in bytes.

        With `dropout`, the first text is sampled with its seed, the next with the number after it.
        """

    def align_arrays(
        self, texts: list[Text] | Slices, threads: int, chars: bool | None, dropout: Dropout | None = None
    ) -> AlignedArrays:
        """The same as arrays: ids and offsets as in `encode_arrays`, spans as rows, and unknown pieces.

        Each token of the UNKNOWN piece is listed with its place in the ids and its text.
        """

    # --- Ids to text ------------------------------------------------------------------------------

    # The result is None if something is not what it should be; callers look for it, and say what it is.

    def decode(self, ids: list[int] | bytes) -> str | None:
        """The text of ids (a list, or u32 as bytes); None if one is outside the vocabulary."""

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        """The same as bytes; those that belong to no character stay as they are."""

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        """The texts of many sequences of ids."""

    def decode_lines(self, ids: Ids, offsets: Places) -> bytes | None:
        """The same as lines, of sequences that are given as in `encode_arrays`.

        What pieces hold that is not UTF-8 stays as it is.
        """

    def decode_pieces(self, pieces: list[Any]) -> str | None:
        """The text of pieces, str or bytes; an unknown one is copied. None if one is neither."""

    def decode_pieces_bytes(self, pieces: list[Any]) -> bytes | None:
        """The same as bytes."""

    def read_pieces(self, data: bytes) -> tuple[Ids, Places, int | None]:
        """The ids in lines of pieces; and where a piece is that the vocabulary does not have, or None."""
