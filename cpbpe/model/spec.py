"""A BPE model as a value: every reader of a file returns one, every writer and every engine takes one.

There is no protobuf and no algorithm here, so that formats and engines can be replaced independently. These
classes check nothing: `cpbpe.model.validity` does, when an engine is built.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple, overload

from cpbpe.lazy import kept
from cpbpe.model.piece_type import KEEPS_SPACE as KEEPS_SPACE
from cpbpe.model.piece_type import PLAIN as PLAIN
from cpbpe.model.piece_type import TOKEN_FLAGS as TOKEN_FLAGS
from cpbpe.model.piece_type import PieceType as PieceType

MAX_USER_DEFINED_MATCHES = 64
"""Of the USER_DEFINED pieces that match at one place, sentencepiece looks at this many, shortest first."""
MAX_SPLIT_DEPTH = 100
"""sentencepiece splits an UNUSED piece, and the parts of it that are UNUSED, to this depth."""


class Piece(NamedTuple):
    """An entry of the vocabulary; its index is its id."""

    text: bytes
    """Its text in UTF-8 (not verified)."""
    score: float = 0.0
    """The piece with the highest score merges first."""
    type: PieceType = PieceType.NORMAL
    """What kind of piece it is."""


class Pieces(Sequence[Piece]):
    """All pieces of a model, as columns, because creating hundreds of thousands of small objects is slow.

    >>> pieces = Pieces.of([(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"a", -1.5)])
    >>> pieces
    <cpbpe.Pieces: 2 pieces>
    >>> pieces[1]
    Piece(text=b'a', score=-1.5, type=<PieceType.NORMAL: 1>)
    """

    def __init__(self, blob: bytes, ends: bytes, scores: bytes, types: bytes):
        self.blob = blob
        """The texts of all pieces, one after the other."""
        self.ends = ends
        """Where each text ends in `blob`, as u32."""
        self.scores = scores
        """The scores, as float32."""
        self.types = types
        """The types, one byte each."""

    @classmethod
    def of(cls, pieces: Iterable[Piece | tuple[bytes, float, PieceType]]) -> Pieces:
        """Return these pieces as columns."""
        rows = list(pieces)
        return cls.of_lists([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    @classmethod
    def of_lists(cls, texts: Sequence[bytes], scores: Iterable[float], types: Iterable[int]) -> Pieces:
        """Do the same as `of`, but from one list for each column, which is faster than a list of pieces."""
        ends = array("I", accumulate(map(len, texts)))
        made = cls(b"".join(texts), ends.tobytes(), array("f", scores).tobytes(), bytes(types))
        made.__dict__["texts"] = tuple(texts)  # so that `texts` need not be computed
        return made

    @kept
    def texts(self) -> tuple[bytes, ...]:
        """The texts, by id."""
        ends = array("I", self.ends)
        return tuple(self.blob[begin:end] for begin, end in pairwise([0, *ends]))

    def numbers(self) -> array[float]:
        """Return the scores as numbers."""
        return array("f", self.scores)

    def ranks(self) -> list[int]:
        """Return one integer per piece. The lower it is, the higher the score, so it orders as engines do.

        Engines compare the bits of the scores, as sentencepiece does: -0.0 comes after 0.0, and even NaN has
        a place.

        >>> Pieces.of_lists([b"a", b"b", b"c", b"d"], [-0.0, 0.0, -1.5, 3.0], [1, 1, 1, 1]).ranks()
        [1, 0, 1069547521, -1077936128]
        """
        return [-bits if bits >= 0 else (bits & 0x7FFFFFFF) + 1 for bits in array("i", self.scores)]

    def __len__(self) -> int:
        return len(self.types)

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> list[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | list[Piece]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return Piece(self.texts[index], self.numbers()[index], PieceType(self.types[index]))

    def __iter__(self) -> Iterator[Piece]:
        return map(Piece, self.texts, self.numbers(), map(PieceType, self.types))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pieces):
            return NotImplemented
        return self._columns() == other._columns()

    def __hash__(self) -> int:
        return hash(self._columns())

    def _columns(self) -> tuple[bytes, ...]:
        return self.blob, self.ends, self.scores, self.types

    def __repr__(self) -> str:
        return f"<cpbpe.Pieces: {len(self)} pieces>"


@dataclass(frozen=True)
class NormalizerSpec:
    """How text is rewritten before it is cut into pieces (or, for a denormalizer, after decoding)."""

    name: str = ""
    """The name that the model gives its rules. It is only shown: nothing depends on it."""
    charsmap: bytes = field(default=b"", repr=False)
    """The rules, compiled (see `cpbpe.text.charsmap`); empty when there are none."""
    add_dummy_prefix: bool = True
    """Put a space in front, so that a word at the start looks like one in the middle."""
    remove_extra_whitespaces: bool = True
    """Drop spaces at both ends and make every run of spaces one."""
    escape_whitespaces: bool = True
    """Write a space as U+2581."""
    suffix: bool = False
    """`add_dummy_prefix` puts its space at the end instead of in front."""
    prefix_before_space: bool = True
    """Whether `add_dummy_prefix` also puts a space in front of text that already begins with one (or with
    U+2581, if spaces are escaped). sentencepiece always does; the pre-tokenizer Metaspace of `tokenizers`
    does not."""
    unicode_form: str = ""
    """The Unicode normal form that a byte-level model brings text into: "NFC", "NFD", "NFKC" or "NFKD", or ""
    for none. It follows Unicode 9, as in `tokenizers` (see `cpbpe.text.unicode_forms`)."""


@dataclass(frozen=True)
class Settings:
    """The fields that a model file sets, by their names in the format.

    Most of them only record how the model was trained. Fields that the file does not set are missing here.
    """

    trainer: Mapping[str, Any] = field(default_factory=dict)
    """The fields of trainer_spec."""
    normalizer: Mapping[str, Any] = field(default_factory=dict)
    """The fields of normalizer_spec."""
    denormalizer: Mapping[str, Any] | None = None
    """The fields of denormalizer_spec, if there is one."""

    def __repr__(self) -> str:
        """Show the fields, but only the size of a charsmap, because it can be hundreds of kilobytes."""
        specs = []
        for name in ("trainer", "normalizer", "denormalizer"):
            fields: Mapping[str, Any] | None = getattr(self, name)
            if fields is None:
                specs.append(f"{name}=None")
                continue
            shown = (
                f"{key!r}: <{len(value):,} bytes>" if isinstance(value, bytes) else f"{key!r}: {value!r}"
                for key, value in fields.items()
            )
            specs.append(f"{name}={{{', '.join(shown)}}}")
        return f"Settings({', '.join(specs)})"


@dataclass(frozen=True)
class Carried:
    """What a file says in addition to the model, in formats that have room for it.

    Except for `tokens`, none of this changes ids unless a call asks for it. It is kept, shown by `inspect`,
    and written again to formats that can express it.
    """

    options: Mapping[str, bool] = field(default_factory=dict)
    """The encoding options that the file asks for: `add_bos`, `add_eos`, `prefix_after_special`. Also
    KEEPS_SPACE, which is about decoding, and follows from the format of the file."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The tokens of those roles ("bos", "eos", "pad", "mask", "eot", ...) for which the file names one; ""
    for a role that has a token in the model, if the file says that it has none in templates."""
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    """The chat templates by name; the usual one is "default"."""
    tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The flags (TOKEN_FLAGS) of tokens that texts are searched for, if they are not ordinary special
    tokens."""


@dataclass(frozen=True)
class SplitSpec:
    """How a byte-level model cuts text into chunks, each of which is merged by itself."""

    pattern: str
    """The regular expression whose matches are the chunks, as the packages `regex` and tiktoken write it."""
    name: str = ""
    """What the pattern is called: "gpt2", "cl100k", ... It is only shown: nothing depends on it."""
    then: tuple[str, ...] = ()
    """Further patterns, each of which cuts the chunks of the one before. Text between two of their matches is
    a chunk, too. They see each chunk as a text by itself: lookarounds do not reach beyond its ends."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns, one after the other."""
        return (self.pattern, *self.then)


@dataclass(frozen=True)
class ModelSpec:
    """A BPE model.

    >>> spec = ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"a"), Piece(b"<s>", 0,
    ...     PieceType.CONTROL)]))
    >>> spec.unk_id, spec.bos_id, spec.eos_id
    (0, 2, None)
    """

    pieces: Pieces
    """The vocabulary."""
    normalizer: NormalizerSpec = NormalizerSpec()
    """Applied to text before it is cut into pieces."""
    denormalizer: NormalizerSpec | None = None
    """Applied to text after decoding, if the model has one."""
    byte_fallback: bool = False
    """Unknown characters become BYTE pieces instead of the UNKNOWN one."""
    unk_surface: bytes = " \u2047 ".encode()
    """What the UNKNOWN piece is decoded to."""
    special_pieces: tuple[bytes, bytes, bytes, bytes] = (b"<unk>", b"<s>", b"</s>", b"<pad>")
    """The names of the pieces that are unk, bos, eos and pad, if the vocabulary holds them."""
    alphabet: Literal["characters", "bytes"] = "characters"
    """What the symbols of a text are before anything is merged. With "bytes" a model is *byte-level*."""
    splitter: SplitSpec | None = None
    """How a byte-level model cuts text into chunks. Without a splitter, the whole text is one chunk."""
    whole: bool = False
    """Whether, in a byte-level model, a chunk that is a piece becomes that piece even if no merges make
    it."""
    added: tuple[tuple[bytes, int], ...] = ()
    """Special tokens that were added to the model, with their ids."""
    settings: Settings = field(default=Settings(), repr=False)
    """What else the file records."""
    carried: Carried = field(default=Carried(), repr=False)
    """What the file says in addition to the model."""
    file: bytes | None = field(default=None, repr=False, compare=False)
    """The file that the model was read from, so that it can be saved unchanged."""

    @kept
    def ids(self) -> dict[bytes, int]:
        """The id of each piece. (sentencepiece never finds the piece that is one NUL character.)"""
        hidden = None if self.alphabet == "bytes" else b"\0"
        return {text: id for id, text in enumerate(self.pieces.texts) if text != hidden}

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns by which a byte-level model cuts text, in order; empty if a text is one chunk."""
        return () if self.splitter is None else self.splitter.patterns

    @kept
    def unknown_id(self) -> int | None:
        """The id of the piece of type UNKNOWN, whatever it is called; None if there is none."""
        id = self.pieces.types.find(PieceType.UNKNOWN)
        return None if id < 0 else id

    @property
    def unk_id(self) -> int | None:
        """The id to report as unk. This and the three properties below are None if there is no such piece.

        Only unk has this quirk: if no piece has its name, it is the UNKNOWN piece.
        """
        return self._special(0, PieceType.UNKNOWN)

    @property
    def bos_id(self) -> int | None:
        """The id of the CONTROL piece that begins a text; in a byte-level model, it may be an added token."""
        return self._special(1, PieceType.CONTROL)

    @property
    def eos_id(self) -> int | None:
        """The id of the CONTROL piece that ends a text; in a byte-level model, it may be an added token."""
        return self._special(2, PieceType.CONTROL)

    @property
    def pad_id(self) -> int | None:
        """The id of the CONTROL piece that pads a batch; in a byte-level model, it may be an added token."""
        return self._special(3, PieceType.CONTROL)

    def _special(self, place: int, type: PieceType) -> int | None:
        name = self.special_pieces[place]
        if self.alphabet == "bytes" and name not in self.ids:
            return dict(self.added).get(name) if type == PieceType.CONTROL else None
        id = self.ids.get(name, self.unknown_id)
        return id if id is not None and self.pieces.types[id] == type else None
