"""What an engine needs to know of a model, as plain values.

`cpbpe.model.formats.sentencepiece` makes a `ModelSpec` from a file; an engine is built from it. No protobuf and no
algorithm here, so that either side can be replaced without the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class PieceType(IntEnum):
    """What a piece is for. The numbers are those of the model file.

    >>> PieceType(6).name
    'BYTE'
    """

    NORMAL = 1
    """Learned from text: takes part in merging."""
    UNKNOWN = 2
    """Stands for what the vocabulary does not hold. A model has at most one."""
    CONTROL = 3
    """A mark such as ``<s>``: added by the program, never found in text, invisible when decoded."""
    USER_DEFINED = 4
    """Always kept whole when text contains it."""
    UNUSED = 5
    """Takes part in merging, but is split again before the result is given out."""
    BYTE = 6
    """``<0x00>`` to ``<0xFF>``: one byte of a character that has no piece."""


@dataclass(frozen=True)
class NormalizerSpec:
    """How text is rewritten before it is segmented (or, for a denormalizer, after decoding)."""

    name: str = ""
    """The rule set's name, for people; nothing depends on it."""
    charsmap: bytes = b""
    """The rewriting rules, compiled (see `cpbpe.text.charsmap`); empty when there are none."""
    add_dummy_prefix: bool = True
    """Put a space in front, so that a word at the start looks like one in the middle."""
    remove_extra_whitespaces: bool = True
    """Drop spaces at both ends and make every run of spaces one."""
    escape_whitespaces: bool = True
    """Write a space as U+2581."""
    suffix: bool = False
    """`add_dummy_prefix` puts its space behind instead of in front."""


@dataclass(frozen=True)
class ModelSpec:
    """A checked BPE model: every engine may rely on what `cpbpe.model.formats.sentencepiece` has verified."""

    pieces: tuple[bytes, ...]
    """The text of each piece in UTF-8 (not verified); the index is the id."""
    scores: tuple[float, ...]
    """The score of each piece: the highest merges first."""
    types: tuple[PieceType, ...]
    """The type of each piece."""
    normalizer: NormalizerSpec = NormalizerSpec()
    """Applied to text before segmenting."""
    denormalizer: NormalizerSpec | None = None
    """Applied to text after decoding, where the model has one."""
    byte_fallback: bool = False
    """Unknown characters become BYTE pieces instead of the UNKNOWN one."""
    unk_surface: bytes = " \u2047 ".encode()
    """What the UNKNOWN piece is decoded to."""
    unk_id: int | None = None
    """The id to report as unk, by the name that the model gives it."""
    bos_id: int | None = None
    """Likewise the CONTROL piece that begins a text."""
    eos_id: int | None = None
    """Likewise the CONTROL piece that ends a text."""
    pad_id: int | None = None
    """Likewise the CONTROL piece that fills a batch."""
    added: tuple[tuple[bytes, int], ...] = ()
    """Special tokens that were added to the model, with their ids; unchecked."""
