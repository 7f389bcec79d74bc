"""The values that training takes and returns, shared by both engines.

Training has two halves. A counter turns text into *words* with counts; `learn` turns words into merges. The
value between the two is `Words`. It can be saved, loaded, and merged with words that were counted on other
machines, and the model stays the same. The ids of pieces and the contents of the model file are decided
afterwards, in `cpbpe.training.families`.

Each family of models has its own specs, which say what is counted and learned: `CountSpec` and `LearnSpec`
are those of the SentencePiece family, `ByteCountSpec` and `ByteLearnSpec` those of byte-level models.
`cpbpe.reference.training` and `cpbpe.reference.byte_level.training` explain what each step means.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

UNKNOWN = "\u2585".encode()
"""Stands for every character that the model will not know. Sentences that contain it are skipped."""
BOUNDARY = b"\x1f"
"""Replaces a symbol (such as `<s>`), and marks where a pretokenizer cut. No piece contains it."""

Progress = Callable[[str, int, int], None]
"""A function that is called a few times a second with the phase ("characters", "pairs", "merges"), how much
of it is done, and how much there is in total. An exception that it raises ends the work, as Ctrl-C does."""


@dataclass(frozen=True)
class PieceLimits:
    """Which strings can become pieces. Names and meanings are those of sentencepiece."""

    max_sentencepiece_length: int = 16
    """The longest piece, in code points."""
    split_by_unicode_script: bool = True
    """All characters of a piece belong to one script."""
    split_by_number: bool = True
    """Digits keep their script, which is that of punctuation; otherwise they go with any script."""
    split_digits: bool = False
    """A digit is always a piece of its own."""
    split_by_whitespace: bool = True
    """`▁` occurs only at the start of a piece."""
    treat_whitespace_as_suffix: bool = False
    """The rules for `▁` at the start of a piece apply to its end instead."""
    allow_whitespace_only_pieces: bool = False
    """A piece can consist of several `▁`."""


@dataclass(frozen=True)
class CountSpec:
    """Everything that decides which words are counted in a text."""

    byte_level: ClassVar = False
    limits: PieceLimits = PieceLimits()
    """A text is cut between two characters that no piece can hold side by side."""
    charsmap: bytes = field(default=b"", repr=False)
    """The compiled normalization rules; empty if there are none."""
    add_dummy_prefix: bool = True
    """Put one `▁` in front of every sentence (or at its end, as a suffix)."""
    remove_extra_whitespaces: bool = True
    """Remove spaces at both ends, and all but one of several elsewhere."""
    symbols: tuple[bytes, ...] = ()
    """The texts of all meta pieces. In the normalized text they are replaced by BOUNDARY."""
    delimiter: bytes = b""
    """`pretokenization_delimiter`: replaced by BOUNDARY as well; empty if there is none."""
    max_sentence_length: int = 4192
    """Sentences with more bytes than this, before normalization, are skipped; 0 means no limit."""
    keep_newlines: bool = False
    """`Counter.add_block` keeps newlines: a sentence ends after a run of newlines."""
    skip_reserved: bool = True
    """Sentences with UNKNOWN are skipped; otherwise it is an ordinary character that is never accepted."""


@dataclass(frozen=True)
class Begun:
    """Words as the merges of an older model leave them, so that learning goes on from there."""

    texts: tuple[bytes, ...]
    """The texts of the symbols, whose numbers begin with 1."""
    symbols: bytes = field(repr=False)
    """The symbols of all words, one word after another, as u32; 0 stands for what no merge crosses."""
    ends: bytes = field(repr=False)
    """Where the symbols of each word end, as u64."""

    def words(self) -> Iterator[Sequence[int]]:
        """The symbols of each word, as places in `texts`; -1 for what no merge crosses."""
        symbols, begin = array("I", self.symbols), 0
        for end in array("Q", self.ends):
            yield [symbol - 1 for symbol in symbols[begin:end]]
            begin = end


@dataclass(frozen=True)
class LearnSpec:
    """Everything that decides which merges are learned from words."""

    byte_level: ClassVar = False
    vocab_size: int
    """How many pieces the model should have."""
    meta_pieces: int
    """How many of these are not learned: unknown, control, user-defined and byte pieces."""
    limits: PieceLimits = PieceLimits()
    """Which strings can become pieces."""
    character_coverage: float = 0.9995
    """How much of the text the accepted characters cover. Compared in float32, as in sentencepiece."""
    required_chars: str = ""
    """Characters that are accepted before all others."""
    auto_character_coverage: bool = False
    """Accept every character for now; `cpbpe.training.families` chooses characters and merges together
    afterwards."""
    begun: Begun | None = None
    """The words as an older model leaves them. Then no characters are counted or accepted."""


@dataclass(frozen=True)
class ByteCountSpec:
    """Everything that decides which words are counted in a text for a byte-level model."""

    byte_level: ClassVar = True
    pattern: str = ""
    """A regular expression. Its matches, and the text between them, are the words; if empty, each text is."""
    ordered: bool = False
    """Record where each word was first seen, for `ties="minbpe"`."""


@dataclass(frozen=True)
class ByteLearnSpec:
    """Everything that decides which merges of bytes are learned from words."""

    byte_level: ClassVar = True
    merges: int
    """How many merges are wanted."""
    byte_order: bytes
    """The bytes in the order of their ids."""
    ties: str = "tokenizers"
    """Which of several most frequent pairs is merged: one of `TIES` in `byte_level/training.py`."""
    min_frequency: int = 0
    """A pair that is rarer than this is not merged; 0 means the same as 1."""
    max_length: int = 0
    """The most bytes that a piece of more than two can have; 0 for no limit."""
    forbidden: tuple[bytes, ...] = ()
    """Texts that are never pieces: those of special tokens."""
    begun: Begun | None = None
    """The words as an older model leaves them. Then `byte_order` is not used."""


@dataclass(frozen=True, repr=False)
class Words:
    """Counted words, sorted by their bytes. Together they make up the whole text, so no character is lost."""

    blob: bytes
    """The words in UTF-8, one after another."""
    ends: bytes
    """Where each word ends in the blob, as u64."""
    counts: bytes
    """How often each word was seen, as u64."""
    firsts: bytes = b""
    """Where each word was first seen, as u64, if that was recorded. Only the order matters."""

    def __len__(self) -> int:
        return len(self.ends) // 8

    def __repr__(self) -> str:
        return f"<Words: {len(self):,} words of {len(self.blob):,} bytes>"


@dataclass(frozen=True)
class Skipped:
    """The sentences that were left out for one reason."""

    sentences: int = 0
    """How many."""
    size: int = 0
    """Their total length."""
    examples: tuple[tuple[int, bytes], ...] = ()
    """The first few: the index of the sentence and its first EXAMPLE_BYTES bytes."""


EXAMPLES, EXAMPLE_BYTES = 5, 200

SKIP_REASONS = ("empty", "too_long", "reserved", "blank")
"""Why a sentence is skipped, in the order of the checks: it is empty; it is longer than max_sentence_length;
it contains UNKNOWN; nothing is left of it after normalization."""


@dataclass(frozen=True)
class Tallies:
    """What a counter has seen. A sentence with a count is one sentence here.

    In byte-level training each text counts as a sentence, and only empty texts are skipped.
    """

    sentences: int
    """All sentences, including skipped ones."""
    size: int
    """The bytes in them, without the newlines between them."""
    skipped: Mapping[str, Skipped]
    """The skipped sentences, for each of SKIP_REASONS."""
    broken: int = 0
    """How many sentences are not valid UTF-8, without the skipped ones."""


@dataclass(frozen=True)
class Learned:
    """What training has learned. Numbers are u64.

    Only the SentencePiece family has characters and their counts, and only byte-level models have the ids of
    pairs (`lefts`, `rights`).
    """

    merges: tuple[bytes, ...]
    """The pieces that were made, best first; none if characters and meta pieces alone exceed vocab_size."""
    frequencies: array[int]
    """How often the pair occurred in the text when it was merged; `learn` explains how it can be 0."""
    symbols: array[int]
    """How many symbols the text had before the first merge and after each one."""
    characters: tuple[str, ...] = ()
    """The accepted characters, the most frequent first, then by code point."""
    character_counts: Sequence[int] = ()
    """How often each was seen; 0 is possible for one of required_chars."""
    dropped_characters: tuple[str, ...] = ()
    """The other characters of the text, in the same order; BOUNDARY and NUL are in neither list."""
    dropped_counts: Sequence[int] = ()
    """How often each of these was seen."""
    boundaries: int = 0
    """How often BOUNDARY was seen. sentencepiece counts it as text when it measures the coverage."""
    nuls: int = 0
    """How often U+0000 was seen. It is never counted, never accepted and never part of a piece."""
    lefts: Sequence[int] = ()
    """The left id of each pair. The ids of the bytes are 0 to 255, that of the first merge is 256."""
    rights: Sequence[int] = ()
    """The right id of each."""

    def seen(self) -> list[tuple[str, int]]:
        """All characters of the text with their counts."""
        characters = (*self.characters, *self.dropped_characters)
        return list(zip(characters, (*self.character_counts, *self.dropped_counts), strict=True))


def skip_reason(sentence: bytes, max_sentence_length: int) -> str | None:
    """The first of SKIP_REASONS that applies to a sentence before it is normalized, or None.

    Sampling uses it, too: sentencepiece makes these checks before it samples.

    >>> skip_reason(b"", 10), skip_reason(b"much too long", 10), skip_reason(b"fine", 10)
    ('empty', 'too_long', None)
    """
    if not sentence:
        return "empty"
    if max_sentence_length and len(sentence) > max_sentence_length:
        return "too_long"
    return "reserved" if UNKNOWN in sentence else None
