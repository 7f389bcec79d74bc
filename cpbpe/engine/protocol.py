"""What every engine offers. An engine does all the work for one model.

It looks pieces up, turns text into ids and ids into text. `cpbpe.tokenizer` has checked the arguments.
Text is str, or bytes that may be invalid UTF-8. The compiled core (`cpbpe._core`, from the folder `core/`) is
one engine; the other is `cpbpe.engine.reference_engine`, which does the same with `cpbpe.reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.engine.columns import ByteLevelColumns, Columns

    Ids = NDArray[np.uint32]
    Places = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    AnyPlaces = NDArray[np.int32] | NDArray[np.int64]

Text = str | bytes
Aligned = tuple[list[int], list[bytes], list[int], list[int]]
"""Ids, pieces, and where the input that each came from begins and ends, in bytes."""
Mapping = tuple[list[int], list[Any], list[tuple[int, int]]]
"""Ids, pieces as str or bytes, and spans in characters or bytes."""
DecodedMapping = tuple[Any, list[int], list[Any], list[tuple[int, int]]]
"""A text, the ids that it was decoded from (2^32 - 1 for an unknown piece), and the same of their pieces."""
Tokens = list[int] | list[str] | list[bytes] | list[str | bytes]
"""What is decoded: ids or pieces."""


class Finder(Protocol):
    """Finds keys in text, the longest at each place, from left to right."""

    def split(self, text: Any, /) -> list[Any] | None:
        """The text before a key, the key's number, the text after it, and so on; None without keys."""


class Slices(Protocol):
    """Texts that are slices of an array of bytes. They may be invalid UTF-8."""

    def encode(
        self, threads: int, front: int | None = None, back: int | None = None, reverse: bool = False
    ) -> tuple[Ids, Places]:
        """As `Engine.encode_arrays`."""

    def count(self, threads: int) -> Places:
        """As `Engine.count_batch`, as an array."""

    def align(
        self, threads: int, chars: bool | None, alpha: float | None = None, seed: int = 0
    ) -> tuple[Ids, Places, Places, list[tuple[int, bytes]]]:
        """As `Engine.align_arrays`."""


class Engine(Protocol):
    """The operations of an engine."""

    # --- The model --------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many pieces there are."""

    @property
    def byte_fallback(self) -> bool:
        """Whether unknown characters become BYTE pieces."""

    @property
    def byte_level(self) -> ByteLevelColumns | None:
        """What a byte-level model says about itself; None if symbols begin as characters."""

    @property
    def unicode_form(self) -> str:
        """The Unicode normal form of a byte-level model; empty if it has none."""

    @property
    def normalizer_name(self) -> bytes:
        """What the model calls its normalization rules."""

    @property
    def specials(self) -> list[int | None]:
        """The ids of unk, bos, eos and pad."""

    @property
    def added(self) -> list[tuple[bytes, int]]:
        """Tokens that the model says were added to it, unchecked."""

    def columns(self) -> Columns:
        """The model that the engine was built from."""

    def variant(self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False) -> Engine:
        """The same engine with other options. It shares everything else. Each variant is built once.

        `prefix`: whether to add a dummy prefix, instead of what the model says. `keep_space`: whether
        decoding keeps a space at the beginning. `raw`: text is already normalized.
        """

    def finder(self, keys: list[bytes]) -> Finder:
        """A finder of these keys, such as special tokens."""

    def slices(self, data: Bytes, begins: AnyPlaces, ends: AnyPlaces) -> Slices:
        """Texts that begin and end at these places of `data`, which must not change."""

    def piece(self, id: int) -> bytes:
        """The text of a piece; the id is inside the vocabulary, here and below."""

    def find(self, piece: bytes) -> int | None:
        """The id of a piece."""

    def score(self, id: int) -> float:
        """The score of a piece."""

    def kind(self, id: int) -> int:
        """The type of a piece, as a number."""

    # --- Text to ids ------------------------------------------------------------------------------

    def normalize(self, text: Text) -> bytes:
        """The normalized text, which is what is merged into pieces."""

    def normalize_str(self, text: Text, strict: bool = False) -> str:
        """The same as str, with U+FFFD for bytes that are not UTF-8; `strict` raises an error for these."""

    def normalize_batch(self, texts: list[Any], strict: bool) -> list[Any] | None:
        """The normalized texts, str for str and bytes for bytes; None if one is of another type."""

    def origins(self, text: Text) -> tuple[bytes, list[int]]:
        """The normalized text, and for each of its bytes and for its end, the place it came from."""

    def cut(self, text: bytes) -> int:
        """The last place in a normalized text after which nothing can change the ids of the text before it.

        More text may follow. 0 if there is no such place. A raw variant encodes both sides.
        """

    def encode(
        self, text: Text, front: int | None = None, back: int | None = None, reverse: bool = False
    ) -> list[int]:
        """The ids of a text, between the ids in front and at the end, if these are given; here and below.

        `reverse` reverses the order of those between.
        """

    def encode_array(
        self,
        text: Text,
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> Ids:
        """The same as an array."""

    def encode_batch(
        self,
        texts: list[Text],
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> list[list[int]]:
        """The ids of many texts."""

    def encode_arrays(
        self,
        texts: list[Text],
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> tuple[Ids, Places]:
        """The ids of many texts in one array, and where each text begins in it, and the end."""

    def encode_lines(
        self,
        data: bytes,
        threads: int,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
    ) -> tuple[Ids, Places, Places]:
        """The same of the lines of a text that are not empty, and the numbers of those that are, from 0."""

    def encode_pieces(
        self,
        text: Text,
        front: int | None = None,
        back: int | None = None,
        reverse: bool = False,
        strict: bool = False,
    ) -> list[str]:
        """The pieces of a text, with U+FFFD for bytes that are not UTF-8; `strict` raises an error for these.

        An unknown part is copied as it is.
        """

    def count(self, text: Text) -> int:
        """How many ids a text has."""

    def count_batch(self, texts: list[Text], threads: int) -> list[int]:
        """How many ids each of many texts has."""

    def align(self, text: Text, alpha: float | None = None, seed: int = 0) -> Aligned:
        """The tokens of a text.

        With `alpha` every merge is skipped with this probability; `seed` is a number of 64 bits.
        """

    def sample(self, text: Text, alpha: float, seed: int) -> list[int]:
        """The ids of `align` with `alpha`."""

    # What follows is made from `align` by callers, if the result is None: because something in it that should
    # be str is not UTF-8, or because this engine leaves it to them.

    def mapping(
        self, text: Text, chars: bool, as_bytes: bool = False, alpha: float | None = None, seed: int = 0
    ) -> Mapping | None:
        """The tokens of a text, with spans in characters or bytes, and pieces as str or as bytes."""

    def mapping_batch(
        self,
        texts: list[Text],
        threads: int,
        chars: bool | None,
        as_bytes: bool = False,
        alpha: float | None = None,
        seed: int = 0,
    ) -> list[Mapping] | None:
        """The same of many texts; `chars` and `seed` are as in `align_arrays`."""

    def message(
        self, text: Text, in_parallel: bool = False, alpha: float | None = None, seed: int = 0
    ) -> bytes | None:
        """The tokens of a text as a SentencePieceText, serialized; see `compat/sentencepiece/results.py`."""

    def character_origins(self, text: str) -> tuple[str, list[int]] | None:
        """`origins` for characters instead of bytes: that of a character is that of its last byte.

        None if the normalized text is empty, too.
        """

    def align_arrays(
        self, texts: list[Text], threads: int, chars: bool | None, alpha: float | None = None, seed: int = 0
    ) -> tuple[Ids, Places, Places, list[tuple[int, bytes]]]:
        """The tokens of many texts: ids and offsets as in `encode_arrays`, spans as rows, unknown pieces.

        Spans count characters or bytes, as `chars` says; None: characters in str, bytes in bytes. Each
        token of the UNKNOWN piece is listed with its place in the ids and its text. With `alpha` the first
        text is sampled with `seed`, the next with the number after it.
        """

    # --- Ids to text ------------------------------------------------------------------------------

    def decode(self, ids: list[int] | bytes) -> str | None:
        """The text of ids (a list, or u32 as bytes); None if one is outside the vocabulary."""

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        """The same as bytes; those that belong to no character stay as they are."""

    def decode_pieces(self, pieces: list[Any]) -> str | None:
        """The text of pieces, str or bytes; an unknown one is copied. None if one is neither."""

    def decode_pieces_batch(self, batch: list[Any]) -> list[str] | None:
        """The texts of many lists of pieces; None if there is anything else."""

    def decode_pieces_bytes(self, pieces: list[Any]) -> bytes | None:
        """The same as bytes."""

    def decode_mapping(self, tokens: Tokens, as_bytes: bool) -> DecodedMapping | None:
        """The text of ids or pieces, the ids, the pieces, and where in the text each is.

        Text and pieces are str and spans count characters, or all is in bytes. None if an id is outside the
        vocabulary, or as above.
        """

    def decode_message(self, tokens: Tokens) -> bytes | None:
        """The same as a SentencePieceText, serialized; None likewise."""

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        """The texts of many sequences of ids; None if some id is outside the vocabulary."""

    def decode_lines(self, ids: Ids, offsets: Places) -> bytes | None:
        """The same as lines, of sequences that are given as in `encode_arrays`.

        What pieces hold that is not UTF-8 stays as it is.
        """

    def read_pieces(self, data: bytes) -> tuple[Ids, Places, int | None]:
        """The ids in lines of pieces; and where a piece is that the vocabulary does not have, or None."""
