"""Which engine does the work, and what every engine must offer.

An engine does everything that concerns one model: it looks pieces up, turns text into ids and ids into
text. It expects what `cpbpe.tokenizer.tokenizer` has checked. There are two: the compiled core (`cpbpe._core`,
from the folder `core/`), and `PythonEngine`, which does the same with `cpbpe.reference.encoding`.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any, Protocol

from cpbpe.engine.reference_engine import PythonEngine
from cpbpe.model.formats.sentencepiece import canonical, parse
from cpbpe.text.finder import Finder

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

    @property
    def added(self) -> list[tuple[bytes, int]]:
        """Tokens that the file says were added to the model, unchecked."""

    def variant(self, *, prefix: bool | None = None, keep_space: bool = False, raw: bool = False) -> Engine:
        """The same engine with other habits. It shares everything else, and is made once.

        `prefix`: whether to add a dummy prefix, where the model has its own mind otherwise. `keep_space`:
        whether decoding keeps a space at the beginning. `raw`: text is taken as normalized already.
        """

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

    def origins(self, text: str | bytes) -> tuple[bytes, list[int]]:
        """The text as it is segmented, and for each of its bytes, and its end, the place it came from."""

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

    def sample(
        self, text: str | bytes, alpha: float, seed: int
    ) -> tuple[list[int], list[bytes], list[int], list[int]]:
        """The same where every merge is left out with the chance `alpha`; the seed is one of 64 bits."""

    def cut(self, text: bytes) -> int:
        """The last place in a normalized text behind which nothing can change what stands before it.

        More text may follow. 0 if there is no such place; a raw variant encodes both sides.
        """

    def decode(self, ids: list[int] | bytes) -> str | None:
        """The text of ids (a list, or u32 as bytes); None if one is outside the vocabulary."""

    def decode_bytes(self, ids: list[int] | bytes) -> bytes | None:
        """The same as bytes, with those that make no character as they are."""

    def decode_pieces(self, pieces: list[bytes]) -> bytes:
        """The text of pieces; one that the vocabulary does not hold stands for itself."""

    def decode_batch(self, batch: list[list[int] | bytes], threads: int) -> list[str] | None:
        """The texts of many sequences of ids; None if some id is outside the vocabulary."""


def make_engine(data: bytes) -> Engine:
    """The best engine there is, or the one that was asked for, built for a model file."""
    if engine_name() == "reference":
        say_if_slow()
        return PythonEngine(parse(data))
    from cpbpe import _core

    made = _core.Engine.from_model(data) or _core.Engine.from_model(canonical(data))
    if made is None:
        PythonEngine(parse(data))  # says what is wrong with it
        raise RuntimeError("the core refuses a model that the reference accepts; please report this")
    return made


class Splitter(Protocol):
    """Splits text at some keys, as `cpbpe.text.finder.Finder` does."""

    def split(self, text: Any, /) -> list[Any] | None:
        """The text before a key, the key's number, the text after it, and so on; None without a key."""


def make_finder(engine: Engine, keys: list[str]) -> Splitter:
    """A finder of the same kind as the engine.

    >>> from cpbpe import load
    >>> make_finder(load("tokenizer.model")._engine, ["<s>"]).split("a<s>b")
    ['a', 0, 'b']
    """
    encoded = [key.encode() for key in keys]
    if engine.name == "reference":
        return Finder(encoded)
    from cpbpe import _core

    finder: Splitter = _core.Matcher(encoded)
    return finder


def engine_name() -> str:
    """The engine that new tokenizers use: "core", compiled, or "reference", the algorithm in plain Python.

    The environment variable CPBPE_ENGINE chooses one.

    >>> engine_name() in ("core", "reference")
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
    if engine_name() == "reference" and not os.environ.get(VARIABLE):
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
