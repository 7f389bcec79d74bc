"""The compiled core; see `cpbpe.engine.choice.Engine` and `cpbpe.engine.training` for what its methods do."""

from collections.abc import Callable
from typing import Any, TypedDict, final, type_check_only

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counter", "Engine", "Finder", "learn", "merge_words", "read_model"]

# Name, charsmap, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, suffix.
_Normalizer = tuple[bytes, bytes, bool, bool, bool, bool]

@type_check_only
class _Columns(TypedDict):
    blob: bytes
    ends: bytes
    scores: bytes
    types: bytes
    byte_fallback: bool
    unk_surface: bytes
    special_pieces: tuple[bytes, bytes, bytes, bytes]
    normalizer: _Normalizer
    denormalizer: _Normalizer | None
    added: list[tuple[bytes, int]]

def read_model(data: bytes) -> _Columns | None: ...

@final
class Engine:
    @staticmethod
    def from_model(data: bytes) -> Engine | None: ...
    @staticmethod
    def from_columns(
        *,
        blob: bytes,
        ends: bytes,
        scores: bytes,
        types: bytes,
        byte_fallback: bool,
        unk_surface: bytes,
        special_pieces: tuple[bytes, bytes, bytes, bytes],
        normalizer: _Normalizer,
        denormalizer: _Normalizer | None,
        added: list[tuple[bytes, int]],
    ) -> Engine: ...
    def columns(self) -> _Columns: ...
    @property
    def size(self) -> int: ...
    @property
    def byte_fallback(self) -> bool: ...
    @property
    def normalizer_name(self) -> bytes: ...
    @property
    def specials(self) -> list[int | None]: ...
    @property
    def added(self) -> list[tuple[bytes, int]]: ...
    def variant(
        self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False
    ) -> Engine: ...
    def piece(self, id: int) -> bytes: ...
    def find(self, piece: bytes) -> int | None: ...
    def score(self, id: int) -> float: ...
    def kind(self, id: int) -> int: ...
    def normalize(self, text: str | bytes) -> bytes: ...
    def origins(self, text: str | bytes) -> tuple[bytes, list[int]]: ...
    def encode(self, text: str | bytes) -> list[int]: ...
    def encode_array(self, text: str | bytes, threads: int) -> NDArray[np.uint32]: ...
    def encode_batch(self, texts: list[str | bytes], threads: int) -> list[list[int]]: ...
    def encode_arrays(
        self, texts: list[str | bytes], threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def count(self, text: str | bytes) -> int: ...
    def count_batch(self, texts: list[str | bytes], threads: int) -> list[int]: ...
    def align(
        self, text: str | bytes, alpha: float | None = None, seed: int = 0
    ) -> tuple[list[int], list[bytes], list[int], list[int]]: ...
    def align_arrays(
        self,
        texts: list[str | bytes],
        threads: int,
        chars: bool | None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64], list[tuple[int, bytes]]]: ...
    def finder(self, keys: list[bytes]) -> Finder: ...
    def cut(self, text: bytes) -> int: ...
    def decode(self, ids: list[int] | bytes) -> str | None: ...
    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None: ...
    def decode_pieces(self, pieces: list[bytes]) -> bytes: ...
    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None: ...

@final
class Finder:
    def __new__(cls, keys: list[bytes]) -> Finder: ...
    def split(self, text: str | bytes, /) -> list[Any] | None: ...

@final
class Counter:
    def __new__(
        cls,
        *,
        charsmap: bytes,
        add_dummy_prefix: bool,
        remove_extra_whitespaces: bool,
        symbols: tuple[bytes, ...] | list[bytes],
        delimiter: bytes,
        max_sentence_length: int,
        keep_newlines: bool,
        skip_reserved: bool,
        max_sentencepiece_length: int,
        split_by_unicode_script: bool,
        split_by_number: bool,
        split_digits: bool,
        split_by_whitespace: bool,
        treat_whitespace_as_suffix: bool,
        allow_whitespace_only_pieces: bool,
    ) -> Counter: ...
    def add(self, list: list[bytes], counts: list[int] | None) -> None: ...
    def add_block(self, data: bytes, threads: int) -> None: ...
    def prepare(self, list: list[bytes]) -> list[bytes | None]: ...
    def add_prepared(self, list: list[bytes], counts: list[int] | None) -> None: ...
    def add_words(self, blob: bytes, ends: bytes, counts: bytes) -> None: ...
    def tallies(self) -> tuple[int, int, dict[str, tuple[int, int, list[tuple[int, bytes]]]]]: ...
    def distinct(self) -> int: ...
    def memory(self) -> int: ...
    def drain(self) -> tuple[bytes, bytes, bytes]: ...

def merge_words(parts: list[tuple[bytes, bytes, bytes]]) -> tuple[bytes, bytes, bytes]: ...
def learn(
    blob: bytes,
    ends: bytes,
    counts: bytes,
    *,
    threads: int,
    progress: Callable[[str, int, int], None] | None,
    vocab_size: int,
    meta_pieces: int,
    character_coverage: float,
    required_chars: str,
    auto_character_coverage: bool,
    max_sentencepiece_length: int,
    split_by_unicode_script: bool,
    split_by_number: bool,
    split_digits: bool,
    split_by_whitespace: bool,
    treat_whitespace_as_suffix: bool,
    allow_whitespace_only_pieces: bool,
    small: int = ...,
    guess: int = ...,
    parts_from: int = ...,
) -> dict[str, Any]: ...
