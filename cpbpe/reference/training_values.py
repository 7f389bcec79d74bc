"""What training takes and what it returns: the values that both engines of training share.

Training has two halves with a value between them. A counter turns text into *words* with counts; `learn`
turns words into merges. `Words` is what lies between: it can be saved, loaded and merged with the words of
other machines, and gives the same model. Which piece gets which id, and what the model file says, is decided
afterwards, in `cpbpe.training.model_build`.

`cpbpe.reference.training` says what each step means.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

UNKNOWN = "\u2585".encode()
"""Stands for every character that the model will not know. Sentences that hold it are skipped."""
BOUNDARY = b"\x1f"
"""Stands where a symbol (such as `<s>`) was, or where a pretokenizer cut. No piece holds it."""

Progress = Callable[[str, int, int], None]
"""Called a few times a second with the phase ("characters", "pairs", "merges"), how much of it is done, and
how much there is in all. It may raise, which ends the work (so Ctrl-C does)."""


@dataclass(frozen=True)
class PieceLimits:
    """Which strings may become a piece. The names and meanings are those of sentencepiece."""

    max_sentencepiece_length: int = 16
    """The longest piece, in code points."""
    split_by_unicode_script: bool = True
    """A piece holds one script only."""
    split_by_number: bool = True
    """Digits have a script, like other characters; if not, they go with any script."""
    split_digits: bool = False
    """A digit is always a piece of its own."""
    split_by_whitespace: bool = True
    """`▁` stands at the start of a piece only."""
    treat_whitespace_as_suffix: bool = False
    """What is said of `▁` at the start holds for the end instead."""
    allow_whitespace_only_pieces: bool = False
    """A piece may be several `▁` and nothing else."""


@dataclass(frozen=True)
class CountSpec:
    """Everything that decides which words a text is counted as."""

    limits: PieceLimits = PieceLimits()
    """Between two characters that no piece may hold side by side, a text is cut."""
    charsmap: bytes = field(default=b"", repr=False)
    """Normalization rules, compiled; empty for none."""
    add_dummy_prefix: bool = True
    """One `▁` in front of every sentence (or after it, as a suffix)."""
    remove_extra_whitespaces: bool = True
    """No spaces at the ends, single ones elsewhere."""
    symbols: tuple[bytes, ...] = ()
    """The text of every meta piece. Where the normalized text holds one, BOUNDARY takes its place."""
    delimiter: bytes = b""
    """`pretokenization_delimiter`: BOUNDARY takes its place as well; empty for none."""
    max_sentence_length: int = 4192
    """Longer sentences, in bytes as they are read, are skipped; 0 for no limit."""
    keep_newlines: bool = False
    """In `Counter.add_block`, lines keep their newlines: a sentence ends after a run of newlines."""
    skip_reserved: bool = True
    """Sentences that hold UNKNOWN are skipped; if not, it is one more character that is never accepted."""


@dataclass(frozen=True)
class LearnSpec:
    """Everything that decides which merges are learned from words."""

    vocab_size: int
    """How many pieces the model is to have."""
    meta_pieces: int
    """How many of these are not learned: unknown, control, user-defined and byte pieces."""
    limits: PieceLimits = PieceLimits()
    """What a piece may hold."""
    character_coverage: float = 0.9995
    """How much of the text the accepted characters cover. Compared as a float32, like sentencepiece's."""
    required_chars: str = ""
    """Characters that come first when characters are accepted."""
    auto_character_coverage: bool = False
    """Accept every character for now; `model_build` chooses characters and merges together afterwards."""


@dataclass(frozen=True, repr=False)
class Words:
    """Counted words, sorted by their bytes. They partition the text, so no character is lost."""

    blob: bytes
    """The words in UTF-8, one after the other."""
    ends: bytes
    """Where each word ends in the blob, as u64."""
    counts: bytes
    """How often each word was seen, as u64."""

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
    """Their length together."""
    examples: tuple[tuple[int, bytes], ...] = ()
    """The first few: the number of the sentence, from 0, and its first EXAMPLE_BYTES."""


EXAMPLES, EXAMPLE_BYTES = 5, 200

SKIP_REASONS = ("empty", "too_long", "reserved", "blank")
"""Why a sentence is skipped, in the order of the checks: nothing in it; longer than max_sentence_length; it
holds UNKNOWN; nothing is left of it once it is normalized."""


@dataclass(frozen=True)
class Tallies:
    """What a counter has seen. A sentence with a count is one sentence here."""

    sentences: int
    """All sentences, skipped ones included."""
    size: int
    """The bytes in them, newlines between sentences not included."""
    skipped: Mapping[str, Skipped]
    """For each of SKIP_REASONS."""
    broken: int = 0
    """How many sentences are not valid UTF-8, skipped ones not included."""


@dataclass(frozen=True)
class Learned:
    """What training learned, in the order in which it was learned."""

    characters: tuple[str, ...]
    """The accepted characters: most frequent first, then by code point."""
    character_counts: array[int]
    """How often each was seen (u64); 0 is possible for one of required_chars."""
    dropped_characters: tuple[str, ...]
    """The other characters of the text, in the same order; BOUNDARY and NUL are in neither list."""
    dropped_counts: array[int]
    """How often each of those was seen (u64)."""
    boundaries: int
    """How often BOUNDARY was seen. sentencepiece counts it as text when it measures the coverage."""
    nuls: int
    """How often U+0000 was seen. It is never counted, never accepted and never part of a piece."""
    merges: tuple[bytes, ...]
    """The pieces that were made, best first; none if characters and meta pieces alone exceed vocab_size."""
    frequencies: array[int]
    """How often the pair stood in the text when it was merged (u64); see `learn` on those of 0."""
    symbols: array[int]
    """How many symbols the text had before the first merge, and after each (u64, one more than merges)."""


def skip_reason(sentence: bytes, max_sentence_length: int) -> str | None:
    """The first of SKIP_REASONS that keeps a sentence out, as far as one can tell before it is normalized.

    Sampling uses it too: sentencepiece applies these before it samples.

    >>> skip_reason(b"", 10), skip_reason(b"much too long", 10), skip_reason(b"fine", 10)
    ('empty', 'too_long', None)
    """
    if not sentence:
        return "empty"
    if max_sentence_length and len(sentence) > max_sentence_length:
        return "too_long"
    return "reserved" if UNKNOWN in sentence else None
