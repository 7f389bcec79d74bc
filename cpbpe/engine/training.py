"""The two engines of training behind one door: what they are asked, and what they answer.

Training has two halves with a value between them. A `Counter` turns text into *words* with counts;
`learn` turns words into merges. `Words` is what lies between: it can be saved, loaded and merged with
the words of other machines, and gives the same model. Everything that only arranges the result (which
piece gets which id, what the model file says) is done once, in Python, by `cpbpe.training.model_build`.

Only bytes, integers and integer buffers (little-endian) cross this border, so that the compiled core
needs to know nothing else. `cpbpe.reference.training` is the plain Python engine and says what each step
means; the core must answer with the same values, byte for byte.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

UNKNOWN = "\u2585".encode()
"""Stands for every character that the model will not know. A sentence that holds it is skipped."""
BOUNDARY = b"\x1f"
"""Stands where a symbol was (`<s>`, a user-defined one ...) or a pretokenizer cut. No piece holds it."""

Progress = Callable[[str, int, int], None]
"""Called a few times a second with what is being done ("characters", "pairs", "merges"), how much of it is
done, and how much there is in all. It may raise, which ends the work (so Ctrl-C does)."""


@dataclass(frozen=True)
class PieceRules:
    """Which strings may become a piece. The names and meanings are those of sentencepiece."""

    max_sentencepiece_length: int = 16
    """The longest piece, in code points."""
    split_by_unicode_script: bool = True
    """A piece holds one script only."""
    split_by_number: bool = True
    """A digit is a character of its script like others; if not, it goes with anything on both sides."""
    split_digits: bool = False
    """A digit is always a piece of its own."""
    split_by_whitespace: bool = True
    """`▁` stands only at the start of a piece."""
    treat_whitespace_as_suffix: bool = False
    """Say end for start wherever `▁` is spoken of."""
    allow_whitespace_only_pieces: bool = False
    """Pieces of several `▁` and nothing else are possible."""


@dataclass(frozen=True)
class CountSpec:
    """All that decides which words a text is counted as."""

    rules: PieceRules = PieceRules()
    """Between two characters that no piece may hold side by side, a text is cut (see `reference_train`)."""
    charsmap: bytes = b""
    """Normalization rules, compiled; empty for none."""
    add_dummy_prefix: bool = True
    """One `▁` in front of every sentence (or behind it, as a suffix)."""
    remove_extra_whitespaces: bool = True
    """No spaces at the ends, single ones elsewhere."""
    symbols: tuple[bytes, ...] = ()
    """The text of every meta piece. Where the normalized text holds one, BOUNDARY takes its place."""
    delimiter: bytes = b""
    """`pretokenization_delimiter`: BOUNDARY takes its place as well; empty for none."""
    max_sentence_length: int = 4192
    """Longer sentences, in bytes as they are read, are skipped; 0 for no limit."""
    keep_newlines: bool = False
    """In `Counter.add_block`, lines keep their newlines: a sentence ends behind a run of newlines."""
    skip_reserved: bool = True
    """Sentences that hold UNKNOWN are skipped; if not, it is one more character that is never accepted."""


@dataclass(frozen=True)
class LearnSpec:
    """All that decides which merges are learned from words."""

    vocab_size: int
    """How many pieces the model shall have."""
    meta_pieces: int
    """How many of these are spoken for: unknown, control, user-defined and byte pieces."""
    rules: PieceRules = PieceRules()
    """What a piece may hold."""
    character_coverage: float = 0.9995
    """How much of the text the accepted characters cover. Compared as a float32, like sentencepiece's."""
    required_chars: str = ""
    """Characters that come first when characters are accepted."""
    auto_character_coverage: bool = False
    """Accept every character for now; `model_build` chooses characters and merges together afterwards."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Skipped:
    """The sentences that one rule kept out of training."""

    sentences: int = 0
    """How many."""
    size: int = 0
    """Their length together."""
    examples: tuple[tuple[int, bytes], ...] = ()
    """The first few: which sentence it was, of all that were given, from 0; and its first EXAMPLE_BYTES."""


EXAMPLES, EXAMPLE_BYTES = 5, 200

SKIP_RULES = ("empty", "too_long", "reserved", "blank")
"""Why a sentence is skipped, in the order of the checks: nothing in it; longer than max_sentence_length; it
holds UNKNOWN; nothing is left of it once it is normalized."""


@dataclass(frozen=True)
class Tallies:
    """What a counter has seen. A sentence that was given with a count is one sentence here."""

    sentences: int
    """All sentences, skipped ones included."""
    size: int
    """The bytes in them, newlines between sentences not included."""
    skipped: Mapping[str, Skipped]
    """For each of SKIP_RULES."""


@dataclass(frozen=True)
class Learned:
    """What training found, in the order in which it was found."""

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
    """How often the pair stood in the text when it was merged (u64). See `reference_train` on those of 0."""
    symbols: array[int]
    """How many symbols the text had before the first merge, and after each (u64, one more than merges)."""


class Counter(Protocol):
    """Turns text into words with counts. Sentences are bytes that may be invalid UTF-8."""

    def add(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        """Count sentences, each once or `counts` times (1 to 2**63 - 1)."""

    def add_block(self, data: bytes, threads: int = 1) -> None:
        r"""Count the lines of a part of a file: split at \n only; whole lines, the last may lack its \n."""

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        """The sentences normalized, with BOUNDARY for every symbol; None for one that is skipped.

        For a pretokenizer that is a Python function: it cuts what this gives, and the parts, joined
        by BOUNDARY, go to `add_prepared`. Tallies count a sentence here, not there.
        """

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        """Count sentences that need no further work but to be cut into words."""

    def add_words(self, words: Words) -> None:
        """Count words that another counter with the same spec has counted. No tallies."""

    def tallies(self) -> Tallies:
        """What was seen and what was skipped."""

    def distinct(self) -> int:
        """How many different words there are."""

    def memory(self) -> int:
        """About how many bytes the words take."""

    def drain(self) -> Words:
        """Give out all words and forget them; the tallies stay."""


def skip_rule(sentence: bytes, max_sentence_length: int) -> str | None:
    """The first of SKIP_RULES that keeps a sentence out, as far as one can tell before it is normalized.

    For whoever samples sentences: sentencepiece applies these before it samples.

    >>> skip_rule(b"", 10), skip_rule(b"much too long", 10), skip_rule(b"fine", 10)
    ('empty', 'too_long', None)
    """
    if not sentence:
        return "empty"
    if max_sentence_length and len(sentence) > max_sentence_length:
        return "too_long"
    return "reserved" if UNKNOWN in sentence else None


def make_counter(spec: CountSpec) -> Counter:
    """A counter of the best engine there is, or of the one that CPBPE_ENGINE names."""
    from cpbpe.engine.choice import engine_name

    if engine_name() == "reference":
        from cpbpe.reference.training import ReferenceCounter

        return ReferenceCounter(spec)
    return _CoreCounter(spec)


def learn(words: Words, spec: LearnSpec, threads: int = 1, progress: Progress | None = None) -> Learned:
    """Learn merges from words. Counts that add up to 2**63 or more are an OverflowError."""
    from cpbpe.engine.choice import engine_name

    if engine_name() == "reference":
        from cpbpe.reference import training as reference_train

        return reference_train.learn(words, spec, progress)
    from cpbpe import _core

    answer: dict[str, Any] = _core.learn(  # type: ignore[attr-defined, unused-ignore]
        words.blob,
        words.ends,
        words.counts,
        threads=threads,
        progress=progress,
        **_flat(spec),
    )
    return Learned(**{name: _column(value) for name, value in answer.items()})


def merge_words(parts: Sequence[Words]) -> Words:
    """One list of words from several, counts added up. A sum of 2**63 or more is an OverflowError."""
    from cpbpe.engine.choice import engine_name

    if engine_name() == "reference":
        from cpbpe.reference.training import merge_words

        return merge_words(parts)
    from cpbpe import _core

    columns = [(part.blob, part.ends, part.counts) for part in parts]
    return Words(*_core.merge_words(columns))  # type: ignore[attr-defined, unused-ignore]


def _flat(spec: CountSpec | LearnSpec) -> dict[str, Any]:
    """The fields of a spec as keyword arguments, those of its rules among them."""
    fields = asdict(spec)
    fields.update(fields.pop("rules"))
    return fields


def _column(value: Any) -> Any:
    """What the core gives for a field of Learned: integers as bytes, lists, and numbers."""
    if isinstance(value, (bytes, bytearray)):
        column = array("Q")
        column.frombytes(value)
        return column
    return tuple(value) if isinstance(value, list) else value


class _CoreCounter:
    """The core's counter, which speaks in tuples."""

    def __init__(self, spec: CountSpec):
        from cpbpe import _core

        self._core: Any = _core.Counter(**_flat(spec))  # type: ignore[attr-defined, unused-ignore]

    def add(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        self._core.add(sentences, counts)

    def add_block(self, data: bytes, threads: int = 1) -> None:
        self._core.add_block(data, threads)

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        prepared: list[bytes | None] = self._core.prepare(sentences)
        return prepared

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        self._core.add_prepared(sentences, counts)

    def add_words(self, words: Words) -> None:
        self._core.add_words(words.blob, words.ends, words.counts)

    def tallies(self) -> Tallies:
        sentences, total, skipped = self._core.tallies()  # skipped: {rule: (sentences, bytes, examples)}
        found = {rule: Skipped(n, size, tuple(examples)) for rule, (n, size, examples) in skipped.items()}
        return Tallies(sentences, total, found)

    def distinct(self) -> int:
        count: int = self._core.distinct()
        return count

    def memory(self) -> int:
        size: int = self._core.memory()
        return size

    def drain(self) -> Words:
        return Words(*self._core.drain())
