"""The interface of engines. An engine does all the work for one model.

It looks pieces up, turns text into ids, and turns ids into text. Its arguments have been checked by
`cpbpe.tokenizer`. Text is str, or bytes that may be invalid UTF-8. The compiled core (`cpbpe._core`, from the
folder `core/`) is one engine; the other is `cpbpe.engine.reference_engine`, which does the same with
`cpbpe.reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

from cpbpe.engine import Dropout, Ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.engine.columns import Columns, ModelColumns

    Ids = NDArray[np.uint32]
    Places = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    AnyPlaces = NDArray[np.int32] | NDArray[np.int64]

Text = str | bytes
AnyText = TypeVar("AnyText", str, bytes)
Span = tuple[int, int]
Aligned = tuple[list[int], list[Any], list[Span]]
"""Ids, pieces (all str, or all bytes), and where the input that each came from begins and ends."""


class Finder(Protocol):
    """Finds keys in text, the longest at each place, from left to right."""

    def split(self, text: Any, /) -> list[Any] | None:
        """The text before a key, the key's index, the text after it, and so on; None if there is no key."""


class Slices(NamedTuple):
    """Texts in one array of bytes, which must not change. They may be invalid UTF-8."""

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
        """The same engine with other options; everything else is shared. Each variant is built once.

        `prefix`: whether to add a dummy prefix, instead of what the model says. `keep_space`: whether
        decoding keeps a space at the beginning. `raw`: text is already normalized.
        """

    def piece(self, id: int) -> bytes:
        """The text of a piece. Here and below, the id must be inside the vocabulary."""

    def find(self, piece: bytes) -> int | None:
        """The id of a piece."""

    def score(self, id: int) -> float:
        """The score of a piece."""

    def kind(self, id: int) -> int:
        """The type of a piece, as a number."""

    # --- Text to ids ------------------------------------------------------------------------------

    # `ends` says which ids to put around those of each text. With `dropout`, merges are skipped at random.

    def normalize(self, text: AnyText) -> AnyText:
        """The normalized text, which is then merged into pieces.

        In a str, U+FFFD stands for bytes that are not UTF-8; bytes keep them.
        """

    def origins(self, text: Text) -> tuple[bytes, list[int]]:
        """The normalized text, and for each of its bytes and for its end, the place it came from."""

    def cut(self, text: bytes) -> int:
        """The last place in a normalized text up to which its ids are final, even if more text follows.

        0 if there is no such place. To encode the two sides, use a raw variant. Without user-defined pieces,
        spaces may also be written as spaces.
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
        """The same for all lines of a text that are not empty; also the indexes of the empty ones."""

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
        dropout: Dropout | None = None,
    ) -> list[Aligned]:
        """The tokens of many texts; pieces are str. `chars` may be None: characters in str, bytes in bytes.

        With `dropout`, the first text is sampled with its seed, the next with that seed plus 1, and so on.
        """

    def align_arrays(
        self, texts: list[Text] | Slices, threads: int, chars: bool | None, dropout: Dropout | None = None
    ) -> tuple[Ids, Places, Places]:
        """The ids and offsets as in `encode_arrays`, and the spans as rows of an array."""

    # --- Ids to text ------------------------------------------------------------------------------

    # The result is None if an argument is invalid; the caller then finds out what is wrong, and says so.

    def decode(self, ids: list[int] | bytes) -> str | None:
        """The text of ids (a list, or u32 as bytes); None if one is outside the vocabulary."""

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        """The same as bytes; those that belong to no character stay as they are."""

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        """The texts of many sequences of ids."""

    def decode_lines(self, ids: Ids, offsets: Places) -> bytes | None:
        """The texts of many sequences as lines; the sequences are given as `encode_arrays` returns them.

        Bytes in pieces that are not UTF-8 stay as they are.
        """

    def decode_pieces(self, pieces: list[Any]) -> str | None:
        """The text of pieces, str or bytes; unknown ones are copied. None if an item is neither of these."""

    def decode_pieces_bytes(self, pieces: list[Any]) -> bytes | None:
        """The same as bytes."""

    def read_pieces(self, data: bytes) -> tuple[Ids, Places, int | None]:
        """The ids in lines of pieces, their offsets, and where the first unknown piece is, or None."""
