"""Which engine does the work, and what every engine must offer.

An engine does everything that concerns one model: it looks pieces up, turns text into ids and ids into
text. It expects what `cpbpe.tokenizer` has checked. There are two: the compiled core (`cpbpe._core`,
from the folder `core/`), and `PythonEngine`, which does the same with `cpbpe.reference`.
"""

from __future__ import annotations

import os
import warnings
from array import array
from functools import cache
from typing import Protocol

from cpbpe.model import canonical, parse
from cpbpe.reference import ReferenceEngine, repair

VARIABLE = "CPBPE_ENGINE"
"""The environment variable that chooses an engine: "core" or "reference"."""


class Engine(Protocol):
    """The operations of an engine. Text is str, or bytes that may be invalid UTF-8."""

    @property
    def name(self) -> str:
        """Which engine this is: "core" or "reference"."""

    @property
    def size(self) -> int:
        """How many pieces there are."""

    @property
    def byte_fallback(self) -> bool:
        """Whether unknown characters become BYTE pieces."""

    @property
    def normalizer_name(self) -> bytes:
        """What the model calls its normalization rules."""

    @property
    def specials(self) -> list[int | None]:
        """The ids of unk, bos, eos and pad."""

    def piece(self, id: int) -> bytes:
        """The text of a piece; the id is inside the vocabulary, here and below."""

    def find(self, piece: bytes) -> int | None:
        """The id of a piece."""

    def score(self, id: int) -> float:
        """The score of a piece."""

    def kind(self, id: int) -> int:
        """The type of a piece, as a number."""

    def normalize(self, text: str | bytes) -> bytes:
        """The text as it is segmented."""

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a text."""

    def encode_array(self, text: str | bytes, threads: int) -> bytearray:
        """The ids of a text as u32."""

    def count(self, text: str | bytes) -> int:
        """How many ids a text has."""

    def encode_batch(self, texts: list[str | bytes], threads: int) -> list[list[int]]:
        """The ids of many texts."""

    def encode_batch_arrays(self, texts: list[str | bytes], threads: int) -> tuple[bytearray, bytearray]:
        """The ids of many texts, one after the other, as u32; and where each begins, and the end, as i64."""

    def tokens(self, text: str | bytes) -> tuple[list[int], list[bytes], list[int], list[int]]:
        """Ids, pieces, and the begin and end of each in the bytes of the text."""

    def decode(self, ids: list[int] | bytes) -> str | None:
        """The text of ids (a list, or u32 as bytes); None if one is outside the vocabulary."""

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        """The same as bytes, with those that make no character as they are."""

    def decode_pieces(self, pieces: list[bytes]) -> bytes:
        """The text of pieces; one that the vocabulary does not hold stands for itself."""

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        """The texts of many sequences of ids; None if some id is outside the vocabulary."""


class PythonEngine:
    """The reference engine behind the same door as the core."""

    name = "reference"

    def __init__(self, data: bytes):
        spec = parse(data)
        self._spec = spec
        self._reference = ReferenceEngine(spec)
        self._ids = {piece: id for id, piece in enumerate(spec.pieces) if piece != b"\0"}
        self.size = len(spec.pieces)
        self.byte_fallback = spec.byte_fallback
        self.normalizer_name = spec.normalizer.name.encode()
        self.specials = [spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id]

    def piece(self, id: int) -> bytes:
        return self._spec.pieces[id]

    def find(self, piece: bytes) -> int | None:
        return self._ids.get(piece)

    def score(self, id: int) -> float:
        return self._spec.scores[id]

    def kind(self, id: int) -> int:
        return self._spec.types[id]

    def normalize(self, text: str | bytes) -> bytes:
        return self._reference.normalize(_bytes(text))

    def encode(self, text: str | bytes) -> list[int]:
        return [token.id for token in self._reference.encode(_bytes(text))]

    def encode_array(self, text: str | bytes, threads: int) -> bytearray:
        return bytearray(array("I", self.encode(text)).tobytes())

    def count(self, text: str | bytes) -> int:
        return len(self.encode(text))

    def encode_batch(self, texts: list[str | bytes], threads: int) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_batch_arrays(self, texts: list[str | bytes], threads: int) -> tuple[bytearray, bytearray]:
        ids, offsets = array("I"), array("q", [0])
        for text in texts:
            ids.extend(self.encode(text))
            offsets.append(len(ids))
        return bytearray(ids.tobytes()), bytearray(offsets.tobytes())

    def tokens(self, text: str | bytes) -> tuple[list[int], list[bytes], list[int], list[int]]:
        found = self._reference.encode(_bytes(text))
        return (
            [token.id for token in found],
            [token.piece for token in found],
            [token.begin for token in found],
            [token.end for token in found],
        )

    def decode(self, ids: list[int] | bytes) -> str | None:
        checked = self._checked(ids)
        return None if checked is None else repair(self._reference.decode_ids(checked)).decode()

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        checked = self._checked(ids)
        return None if checked is None else self._reference.decode_ids(checked, keep_invalid=True)

    def decode_pieces(self, pieces: list[bytes]) -> bytes:
        return self._reference.decode_pieces(pieces)

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        texts = [self.decode(ids) for ids in batch]
        return None if None in texts else [text for text in texts if text is not None]

    def _checked(self, ids: list[int] | bytes) -> list[int] | None:
        numbers = array("I", ids).tolist() if isinstance(ids, bytes) else ids
        return numbers if all(type(id) is int and 0 <= id < self.size for id in numbers) else None


def make_engine(data: bytes) -> Engine:
    """The best engine there is, or the one that was asked for, built for a model file."""
    if engine() == "reference":
        say_if_slow()
        return PythonEngine(data)
    from cpbpe import _core

    made = _core.Engine.from_model(data) or _core.Engine.from_model(canonical(data))
    if made is None:
        PythonEngine(data)  # says what is wrong with it
        raise RuntimeError("the core refuses a model that the reference accepts; please report this")
    return made


def engine() -> str:
    """The engine that new tokenizers use: "core", compiled, or "reference", the algorithm in plain Python.

    The environment variable CPBPE_ENGINE chooses one.

    >>> engine() in ("core", "reference")
    True
    """
    asked = os.environ.get(VARIABLE)
    if asked not in (None, "", "core", "reference"):
        raise ValueError(f'{VARIABLE} is "core" or "reference", not {asked!r}')
    if asked == "reference":
        return "reference"
    try:
        import cpbpe._core  # noqa: F401
    except ImportError as error:
        if asked == "core":
            raise ImportError(f"{VARIABLE}=core, but the compiled core is not there: {error}") from error
        return "reference"
    return "core"


def say_if_slow() -> None:
    """Warn, once, when the slow engine is used without having been chosen."""
    if engine() == "reference" and not os.environ.get(VARIABLE):
        _say_once()


@cache
def _say_once() -> None:
    warnings.warn(
        "cpbpe runs on its reference engine, which is exact but slow, because the compiled core is not "
        "there. Install cpbpe again with a Rust toolchain (https://rustup.rs), or set "
        f"{VARIABLE}=reference to choose this engine in silence.",
        RuntimeWarning,
        stacklevel=6,
    )


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
