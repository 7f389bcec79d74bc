"""The options of training in both families of models, the presets, and every check that needs no corpus.

`TrainOptions` are those of the SentencePiece family, with the names and meanings of sentencepiece 0.2.3.
`ByteTrainOptions` are those of byte-level models. The file `option_table.py` says what each option means, and
what messages say about names that are not options.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from cpbpe.errors import TrainingError
from cpbpe.model.spec import SplitSpec
from cpbpe.spelling import counted, given, listed, named, spelled
from cpbpe.text.split_patterns import PATTERNS, name_of, named_pattern
from cpbpe.training.option_table import BYTE_GROUPS, BYTE_REFUSED, FOREIGN, GROUPS, REFUSED, advice, page

Pretokenizer = Callable[[str], Sequence[str]]
Rules = Sequence[tuple[str, str]] | Mapping[str, str]
"""Texts with their replacements. `TrainOptions` holds them as a tuple of pairs, and all lists as tuples."""

RULE_NAMES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""The normalization rules that have a name."""

MAX_SENTENCE_LENGTH = 1 << 30
"""The largest `max_sentence_length` that sentencepiece takes. Models record it when there is no limit."""

ARGUMENTS = ("threads", "format", "field", "column", "memory_limit", "progress")
"""What `cpbpe.train` takes besides the options: how the corpus is read, and how the work is done."""

TIES = ("tokenizers", "minbpe")
"""The rules for equally frequent pairs; `cpbpe/reference/byte_level/training.py` explains them."""
BYTE_ORDERS = ("gpt2", "values")
"""In which order bytes get their ids: as in GPT-2's vocabulary, or 0 to 255."""
BYTES = 256

MAX_PIECE_BYTES = 7999
"""No model can hold a longer piece."""

T = TypeVar("T", bound="Options")


# --- What both families share ---------------------------------------------------------------------


class Options:
    """The base of the options of both families. They are checked when they are created, and never change."""

    refused: ClassVar[Mapping[str, str]]
    """Names that are refused, with the reason for each."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all options."""
        return tuple(item.name for item in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def refuse_unknown(cls, names: Iterable[str]) -> None:
        """Raise an error for the first unknown name; it says why, or which option or call was meant."""
        known = cls.names()
        for name in names:
            if name in known:
                continue
            if name in cls.refused:
                raise TrainingError(f"{named(name)}: {spelled(cls.refused[name])}")
            if cls is ByteTrainOptions and name in NAMES:
                raise TrainingError(
                    f"{named(name)}: it is an option of models of the SentencePiece family, and this one is "
                    f"byte-level; leave it out"
                )
            if name in ARGUMENTS:
                raise TypeError(
                    f"{name!r} is an argument of train() and of WordCounts.build(), not an option; give it "
                    f"there"
                )
            refused = REFUSED if cls is TrainOptions else {}
            way_out = advice(name, [*known, *ARGUMENTS], refused)
            raise TypeError(
                f"there is no option {name!r}; {way_out or f'help(cpbpe.{cls.__name__}) shows all of them'}"
            )

    def replace(self: T, **changes: Any) -> T:
        """The same options with some of them changed.

        >>> PRESETS["llama2"].replace(vocab_size=500).vocab_size, BYTE_PRESETS["gpt2"].replace().pattern
        (500, 'gpt2')
        >>> PRESETS["llama2"].replace(vocabsize=500)
        Traceback (most recent call last):
        ...
        TypeError: there is no option 'vocabsize'; did you mean vocab_size?
        """
        self.refuse_unknown(changes)
        return replace(self, **changes)  # type: ignore[type-var]

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), getattr(type(self), name)) for name in self.names())
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({changed})"


def names_checked(kind: type[T]) -> type[T]:
    """A decorator: the constructor of these options passes the names that it is given to `refuse_unknown`."""
    made = kind.__init__

    @wraps(made)
    def initialize(self: T, *values: Any, **options: Any) -> None:
        kind.refuse_unknown(options)
        made(self, *values, **options)

    kind.__init__ = initialize  # type: ignore[assignment]
    return kind


def check_type(name: str, value: object, kind: str) -> None:
    """Raise an error if the value of an option does not have the type that its annotation, `kind`, names."""
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"{named(name)} must be True or False, not {value!r}")
    if kind == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{named(name)} must be an integer, not {value!r}")
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{named(name)} must be a number, not {value!r}")
    if kind == "str":
        if not isinstance(value, str):
            raise TypeError(f"{named(name)} must be text (str), not {value!r}")
        check_unicode(name, value)


def check(options: Options, name: str, good: bool, allowed: str) -> None:
    """Raise an error if the value of an option is not one of those that are allowed."""
    if not good:
        raise TrainingError(f"{named(name)} must be {allowed}, not {getattr(options, name)!r}")


def check_unicode(name: str, text: str) -> None:
    """Raise an error if a text has half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TrainingError(f"{named(name)}: {text[:40]!r} is not valid Unicode: {error.reason}") from None


def checked_strings(name: str, value: object) -> tuple[str, ...]:
    """Several texts as a tuple."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{named(name)} must be a list of str, not {value!r}")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{named(name)} must be a list of str, but it contains {item!r}")
        check_unicode(name, item)
    return items


# --- The SentencePiece family ---------------------------------------------------------------------


@names_checked
@dataclass(frozen=True, repr=False)
class TrainOptions(Options):
    """How to train. The defaults are those of Llama 2; see `PRESETS` for the others.

    Options are checked when they are created, before any work starts, and never change. Their repr shows
    what differs from the defaults.

    >>> TrainOptions(vocab_size=1000, control_symbols=["<sep>"]).control_symbols
    ('<sep>',)
    >>> TrainOptions(unk_id=-1, byte_fallback=False)
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: unk_id is -1, so there is no '<unk>' piece; that needs byte_fallback=True
    >>> TrainOptions(vocab_size=1000, split_digits=True)
    TrainOptions(vocab_size=1000)
    """

    refused = REFUSED

    # --- The vocabulary ---
    vocab_size: int = 32_000
    hard_vocab_limit: bool = True
    character_coverage: float = 0.99995
    auto_character_coverage: bool = False
    required_chars: str = ""
    byte_fallback: bool = True
    control_symbols: Sequence[str] = ()
    user_defined_symbols: Sequence[str] = ()
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    unk_piece: str = "<unk>"
    bos_piece: str = "<s>"
    eos_piece: str = "</s>"
    pad_piece: str = "<pad>"
    unk_surface: str = " \u2047 "

    # --- What a piece may be ---
    max_sentencepiece_length: int = 16
    split_by_whitespace: bool = True
    split_by_unicode_script: bool = True
    split_by_number: bool = True
    split_digits: bool = True
    treat_whitespace_as_suffix: bool = False
    allow_whitespace_only_pieces: bool = True
    pretokenization_delimiter: str = ""
    pretokenizer: Pretokenizer | None = None
    allow_inconsistent_pretokenization: bool = False

    # --- What happens to text first ---
    normalization_rule_name: str = "identity"
    normalization_rule_tsv: str = ""
    normalization_rules: Rules = ()
    denormalization_rule_tsv: str = ""
    denormalization_rules: Rules = ()
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = False

    # --- What is read ---
    max_sentence_length: int = 4192
    input_sentence_size: int = 0
    shuffle_input_sentence: bool = True
    seed: int = 0
    keep_newlines: bool = False
    keep_reserved: bool = False

    # --- What is written ---
    vocabulary_output_piece_score: bool = True
    record_paths: bool = False

    def __post_init__(self) -> None:
        for name in ("control_symbols", "user_defined_symbols"):
            object.__setattr__(self, name, checked_strings(name, getattr(self, name)))
        for name in ("normalization_rules", "denormalization_rules"):
            object.__setattr__(self, name, _rules(name, getattr(self, name)))
        for name in ("normalization_rule_tsv", "denormalization_rule_tsv"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if isinstance(value, str) else _path(name, value))
        _check_types(self)
        _check_values(self)
        self.special_pieces()

    def special_pieces(self) -> dict[int, tuple[str, int]]:
        """The pieces that are not learned, by id: the text and the type (see `PieceType`).

        They are placed as sentencepiece does it, or the error says why they cannot be placed.

        >>> TrainOptions(byte_fallback=False).special_pieces()
        {0: ('<unk>', 2), 1: ('<s>', 3), 2: ('</s>', 3)}
        """
        # 1. The four that have ids of their own.
        unknown, control, user_defined, byte = 2, 3, 4, 6
        placed: dict[int, tuple[str, int]] = {}
        names: dict[str, int] = {}
        for name in ("unk", "bos", "eos", "pad"):
            id, piece = getattr(self, f"{name}_id"), getattr(self, f"{name}_piece")
            if id < 0:
                continue
            if id >= self.vocab_size:
                raise TrainingError(
                    f"{named(f'{name}_id')} is {id}, and with {self.vocab_size} pieces ids end at "
                    f"{self.vocab_size - 1}; choose a smaller id or a larger {named('vocab_size')}"
                )
            if id in placed:
                raise TrainingError(
                    f"{named(f'{name}_id')} is {id}, which is already the id of {placed[id][0]!r}; choose "
                    f"another"
                )
            if piece in names:
                raise TrainingError(
                    f"{named(f'{name}_piece')} is {piece!r}, which is already the piece of id "
                    f"{names[piece]}; choose another text"
                )
            placed[id] = piece, unknown if piece == self.unk_piece else control
            names[piece] = id
        if self.unk_piece not in names and not self.byte_fallback:
            raise TrainingError(
                f"{named('unk_id')} is {self.unk_id}, so there is no {self.unk_piece!r} piece; "
                f"that needs {given('byte_fallback', True)}"
            )
        # 2. Symbols and bytes take the ids that are left, from the lowest.
        free = (id for id in range(1 << 31) if id not in placed)
        seen: dict[str, str] = {}
        several = [("control_symbols", piece, control) for piece in self.control_symbols]
        several += [("user_defined_symbols", piece, user_defined) for piece in self.user_defined_symbols]
        if self.byte_fallback:
            several += [("byte_fallback", f"<0x{value:02X}>", byte) for value in range(256)]
        for where, piece, type in several:
            if piece in seen:
                raise TrainingError(
                    f"{named(where)}: {piece!r} is already in {named(seen[piece])}; list a symbol once"
                )
            if piece == self.unk_piece:
                raise TrainingError(
                    f"{named(where)}: {piece!r} is the unknown piece; leave it out, or give another "
                    f"{named('unk_piece')}"
                )
            seen[piece] = where
            if piece in names:  # <s> as a control or user-defined symbol: the same piece, of that type
                placed[names[piece]] = piece, type
            else:
                placed[next(free)] = piece, type
        # 3. Whether there is room for more.
        required = set(self.required_chars) - {"\0", "\x1f"}
        texts = {piece for piece, _ in placed.values()}
        for character in sorted(required & texts):
            raise TrainingError(
                f"{named('required_chars')}: {character!r} is already a special piece; leave one of them out"
            )
        least = len(placed) + len(required) + (1 if self.auto_character_coverage else 0)
        if least > self.vocab_size:
            parts = special_counts(placed)
            if required:
                parts.append(counted(len(required), "required character"))
            raise TrainingError(
                f"{named('vocab_size')} is {self.vocab_size}, but {listed(parts)} alone need {least}; choose "
                f"a larger size, because the characters of the corpus need room too"
            )
        return dict(sorted(placed.items()))

    def sentencepiece_options(self) -> dict[str, Any]:
        """The keyword arguments with which ``sentencepiece.SentencePieceTrainer.train`` does the same.

        Given these, a ``sentence_iterator`` and a ``model_writer``, sentencepiece 0.2.3 writes the same
        file, byte for byte. A model file records the options that were given, so only those that differ
        from sentencepiece's own defaults are given. (Options that sentencepiece does
        not have are left out: `seed`, `keep_newlines`, `keep_reserved`, rules as pairs, and functions.)

        >>> TrainOptions(vocab_size=500, normalization_rule_name="nmt_nfkc").sentencepiece_options()
        ... # doctest: +NORMALIZE_WHITESPACE
        {'model_type': 'bpe', 'vocab_size': 500, 'character_coverage': 0.99995, 'byte_fallback': True,
         'split_digits': True, 'allow_whitespace_only_pieces': True, 'remove_extra_whitespaces': False}
        """
        theirs = PRESETS["sentencepiece"]
        arguments: dict[str, Any] = {"model_type": "bpe", "vocab_size": self.vocab_size}
        for name in NAMES:
            value = getattr(self, name)
            if name not in _NOT_COMPARED and value != getattr(theirs, name):
                arguments[name] = list(value) if isinstance(value, tuple) else value
        if self.max_sentence_length == 0:
            arguments["max_sentence_length"] = MAX_SENTENCE_LENGTH
        return arguments


_NOT_COMPARED = (
    # vocab_size is always given. The others do not exist in sentencepiece, or are functions, which no model
    # records.
    "vocab_size",
    "pretokenizer",
    "allow_inconsistent_pretokenization",
    "normalization_rules",
    "denormalization_rules",
    "seed",
    "keep_newlines",
    "keep_reserved",
    "record_paths",
)

NAMES = TrainOptions.names()
"""The names of all options."""


def special_counts(placed: Mapping[int, tuple[str, int]]) -> list[str]:
    """The numbers of special pieces and of bytes among the pieces that are not learned, in words.

    >>> special_counts(TrainOptions().special_pieces())
    ['3 special pieces', '256 bytes']
    """
    byte_pieces = sum(type == 6 for _, type in placed.values())
    parts = [counted(len(placed) - byte_pieces, "special piece"), counted(byte_pieces, "byte")]
    return [part for part in parts if not part.startswith("0 ")]


def _check_types(options: TrainOptions) -> None:
    for item in fields(options):
        value = getattr(options, item.name)
        check_type(item.name, value, str(item.type))
        bits = 64 if item.name in ("input_sentence_size", "seed") else 32
        if item.type == "int" and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise TrainingError(f"{named(item.name)} does not fit into {bits} bits: {value}")
    if options.pretokenizer is not None and not callable(options.pretokenizer):
        raise TypeError(
            f"pretokenizer must be a function from str to a list of str, not {options.pretokenizer!r}"
        )


def _check_values(options: TrainOptions) -> None:
    check(options, "vocab_size", options.vocab_size > 0, "at least 1")
    coverage = _float32(options.character_coverage)
    check(options, "character_coverage", 0.98 <= coverage <= 1.0, "0.98 to 1.0")
    check(options, "max_sentencepiece_length", 1 <= options.max_sentencepiece_length <= 512, "1 to 512")
    length = options.max_sentence_length
    check(
        options,
        "max_sentence_length",
        length == 0 or 10 <= length <= MAX_SENTENCE_LENGTH,
        f"10 to {MAX_SENTENCE_LENGTH} bytes, or 0 for no limit",
    )
    size = options.input_sentence_size
    check(options, "input_sentence_size", size == 0 or size > 100, "more than 100, or 0 for all")
    check(
        options,
        "normalization_rule_name",
        options.normalization_rule_name in RULE_NAMES,
        f"one of {', '.join(RULE_NAMES)}",
    )
    for name in ("unk_piece", "bos_piece", "eos_piece", "pad_piece"):
        _check_piece(name, getattr(options, name))
    for name in ("control_symbols", "user_defined_symbols"):
        for piece in getattr(options, name):
            _check_piece(name, piece)
    for character in (" ", "\u2585"):
        if character in options.required_chars:
            what = "a space, which is U+2581 in pieces" if character == " " else "U+2585, which is reserved"
            raise TrainingError(f"{named('required_chars')} holds {what}; leave it out")
    _exclude(options, "pretokenizer", "pretokenization_delimiter")
    _exclude(options, "auto_character_coverage", "required_chars")
    for kind in ("normalization", "denormalization"):
        _exclude(options, f"{kind}_rule_tsv", f"{kind}_rules")
    if options.allow_inconsistent_pretokenization and options.pretokenizer is None:
        name = named("allow_inconsistent_pretokenization")
        raise TrainingError(f"{name} means nothing without a {named('pretokenizer')}; leave it out")
    if options.auto_character_coverage and not options.byte_fallback:
        raise TrainingError(
            f"{named('auto_character_coverage')} needs {given('byte_fallback', True)}; give both, or neither"
        )


def _exclude(options: TrainOptions, one: str, other: str) -> None:
    if getattr(options, one) and getattr(options, other):
        raise TrainingError(f"{named(one)} and {named(other)} exclude each other; choose one")


def _check_piece(name: str, piece: str) -> None:
    if not piece:
        raise TrainingError(f"{named(name)} holds an empty piece; a piece has at least one character")
    if "\0" in piece:
        raise TrainingError(
            f"{named(name)}: {piece!r} contains a NUL character (U+0000), which no piece can hold"
        )
    if len(piece.encode()) > MAX_PIECE_BYTES:
        raise TrainingError(f"{named(name)}: {piece[:20]!r}... is longer than {MAX_PIECE_BYTES} bytes")


def _float32(value: float) -> float:
    """The number as the model file holds it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf")


def _rules(name: str, value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping):
        value = value.items()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{named(name)} must be a list of pairs of str, not {value!r}")
    rules: dict[str, str] = {}
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise TypeError(f"{named(name)} must be a list of pairs of str, but it contains {pair!r}")
        source, target = pair
        if not isinstance(source, str) or not isinstance(target, str):
            raise TypeError(f"{named(name)} must be a list of pairs of str, but it contains {pair!r}")
        if not source:
            raise TrainingError(
                f"{named(name)}: the left side of the rule {pair!r} is empty; it needs a character"
            )
        if "\0" in source or "\0" in target:
            raise TrainingError(
                f"{named(name)}: {pair!r} contains a NUL character (U+0000), which no rule can hold"
            )
        check_unicode(name, source + target)
        if rules.setdefault(source, target) != target:
            raise TrainingError(f"{named(name)}: two rules for {source!r}, {rules[source]!r} and {target!r}")
    return tuple(rules.items())


def _path(name: str, value: object) -> str:
    if hasattr(value, "__fspath__"):
        path = value.__fspath__()
        if isinstance(path, str):
            return path
    raise TypeError(f"{named(name)} must be a path, not {value!r}")


PRESETS: dict[str, TrainOptions] = {
    "llama2": TrainOptions(),
    "sentencepiece": TrainOptions(
        vocab_size=8000,
        character_coverage=0.9995,
        byte_fallback=False,
        split_digits=False,
        allow_whitespace_only_pieces=False,
        normalization_rule_name="nmt_nfkc",
        remove_extra_whitespaces=True,
    ),
    "lossless": TrainOptions(
        add_dummy_prefix=False, max_sentence_length=0, keep_newlines=True, keep_reserved=True
    ),
}
"""Options with a name. "llama2": those of Llama 2, the default. "sentencepiece": sentencepiece's defaults.
"lossless": as Llama 2, but nothing of the corpus is left out or changed, newlines become part of pieces,
and decoding gives back every text (except U+2581, which becomes a space)."""


# --- Byte-level models ----------------------------------------------------------------------------


@names_checked
@dataclass(frozen=True, repr=False)
class ByteTrainOptions(Options):
    """How to train a byte-level model. The defaults are those of GPT-4; see `BYTE_PRESETS` for the others.

    Options are checked when they are created, before any work starts, and never change.

    >>> ByteTrainOptions(vocab_size=1000, special_tokens=["<|end|>"]).merges
    743
    >>> ByteTrainOptions(vocab_size=200)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: vocab_size is 200, but 5 special tokens and 256 bytes alone need 261; ...
    """

    refused = BYTE_REFUSED

    # --- The vocabulary ---
    vocab_size: int = 100_261
    hard_vocab_limit: bool = True
    special_tokens: Sequence[str] = (
        "<|endoftext|>",
        "<|fim_prefix|>",
        "<|fim_middle|>",
        "<|fim_suffix|>",
        "<|endofprompt|>",
    )
    special_tokens_first: bool = False
    bos_piece: str = ""
    eos_piece: str = ""
    byte_order: str = "gpt2"

    # --- What a piece may be ---
    pattern: str = "cl100k"
    ties: str = "tokenizers"
    min_frequency: int = 0
    max_piece_length: int = 0

    # --- What is read ---
    split_lines: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "special_tokens", checked_strings("special_tokens", self.special_tokens))
        _check(self)

    @property
    def merges(self) -> int:
        """How many merges there are room for."""
        return self.vocab_size - len(self.special_tokens) - BYTES

    @property
    def splitter(self) -> SplitSpec | None:
        """How texts are cut into chunks; None if they are not cut."""
        if not self.pattern:
            return None
        name = named_pattern(self.pattern)
        if name is not None:
            return SplitSpec(PATTERNS[name], name)
        if self.pattern.replace("_", "").replace("-", "").isalnum():
            raise TrainingError(
                f"{named('pattern')}: there is no published pattern {self.pattern!r}; give a regular "
                f"expression or the name of one of these: {', '.join(PATTERNS)}"
            )
        return SplitSpec(self.pattern, name_of(self.pattern))


BYTE_NAMES = ByteTrainOptions.names()
"""The names of all options of byte-level models."""


def _check(options: ByteTrainOptions) -> None:
    # 1. Types.
    for item in fields(options):
        value = getattr(options, item.name)
        check_type(item.name, value, str(item.type))
        check(options, item.name, item.type != "int" or 0 <= value < 1 << 31, f"0 to {(1 << 31) - 1}")
    # 2. Choices.
    for name, allowed in (("ties", TIES), ("byte_order", BYTE_ORDERS)):
        check(options, name, getattr(options, name) in allowed, f"one of {', '.join(allowed)}")
    if options.ties == "tokenizers" and options.byte_order != "gpt2":
        raise TrainingError(
            f"{named('ties')} is 'tokenizers', which goes by the ids of bytes in GPT-2's order, and "
            f"{named('byte_order')} is {options.byte_order!r}; choose gpt2, or the ties of minbpe"
        )
    if options.max_piece_length == 1:
        raise TrainingError(
            f"{named('max_piece_length')} must be 2 or more, or 0 for no limit, not 1: nothing would merge"
        )
    _ = options.splitter
    # 3. Special tokens.
    tokens = options.special_tokens
    for at, token in enumerate(tokens):
        if not token:
            raise TrainingError(f"{named('special_tokens')} holds an empty text; leave it out")
        if token in tokens[:at]:
            raise TrainingError(f"{named('special_tokens')}: {token!r} is there twice; list it once")
        if len(token.encode()) == 1:
            raise TrainingError(
                f"{named('special_tokens')}: {token!r} is a single byte, which is a piece already; choose a "
                f"longer text"
            )
    for name in ("bos_piece", "eos_piece"):
        piece = getattr(options, name)
        if piece and piece not in tokens:
            raise TrainingError(
                f"{named(name)} is {piece!r}, which is none of {named('special_tokens')}; add it"
            )
    # 4. Room.
    if options.merges < 0:
        special = f"{len(tokens)} special token{'' if len(tokens) == 1 else 's'} and " if tokens else ""
        raise TrainingError(
            f"{named('vocab_size')} is {options.vocab_size}, but {special}{BYTES} bytes alone need "
            f"{len(tokens) + BYTES}; choose a larger size"
        )


_END = "<|endoftext|>"
_GPT4 = ByteTrainOptions(eos_piece=_END)

BYTE_PRESETS: Mapping[str, ByteTrainOptions] = MappingProxyType(
    {
        "gpt2": _GPT4.replace(vocab_size=50_257, special_tokens=(_END,), bos_piece=_END, pattern="gpt2"),
        "gpt4": _GPT4,
        "gpt4o": _GPT4.replace(vocab_size=200_000, special_tokens=(_END, "<|endofprompt|>"), pattern="o200k"),
        "llama3": _GPT4.replace(
            vocab_size=128_005,
            special_tokens=(
                "<|begin_of_text|>",
                "<|end_of_text|>",
                "<|start_header_id|>",
                "<|end_header_id|>",
                "<|eot_id|>",
            ),
            bos_piece="<|begin_of_text|>",
            eos_piece="<|end_of_text|>",
            pattern="llama3",
        ),
        "qwen2": _GPT4.replace(
            vocab_size=151_646, special_tokens=(_END, "<|im_start|>", "<|im_end|>"), pattern="qwen2"
        ),
        "tekken": _GPT4.replace(
            vocab_size=130_075,
            special_tokens=("<unk>", "<s>", "</s>"),
            special_tokens_first=True,
            bos_piece="<s>",
            eos_piece="</s>",
            pattern="tekken",
        ),
        "minbpe": ByteTrainOptions(
            vocab_size=512, special_tokens=(), byte_order="values", pattern="cl100k", ties="minbpe"
        ),
        "tokenizers": ByteTrainOptions(
            vocab_size=30_000, special_tokens=(), pattern="gpt2", special_tokens_first=True, split_lines=True
        ),
    }
)
"""Options of byte-level models with a name: families of models, then two libraries. The families differ in
their patterns and special tokens, and the sizes give as many merges as theirs. "minbpe" and "tokenizers"
train as these libraries do (the latter with its ByteLevel pre-tokenizer, on files)."""

OTHER_NAMES = MappingProxyType({"cl100k": "gpt4", "o200k": "gpt4o"})
"""Other names of presets."""


# --- Options of either family ---------------------------------------------------------------------

AnyOptions = TrainOptions | ByteTrainOptions
"""The options of either family; `isinstance` tells which one."""

ONLY_BYTES = frozenset(BYTE_NAMES) - frozenset(NAMES)
"""Options that only byte-level models have."""


def complete_options(preset: str | AnyOptions, changes: Mapping[str, Any]) -> AnyOptions:
    """A preset, by its name or as options, with some options changed.

    >>> complete_options("gpt2", {"vocab_size": 300}).pattern, complete_options("llama2", {}).vocab_size
    ('gpt2', 32000)
    >>> complete_options("llama9", {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: there is no preset 'llama9'; there are llama2, sentencepiece and lossless, ...
    """
    base = preset
    if isinstance(base, str):
        name = OTHER_NAMES.get(base, base)
        known: Mapping[str, AnyOptions] = {**PRESETS, **BYTE_PRESETS}
        if name not in known:
            raise TrainingError(
                f"there is no preset {base!r}; there are {listed(list(PRESETS))}, and for byte-level models "
                f"{listed(list(BYTE_PRESETS))}"
            )
        base = known[name]
    if isinstance(base, ByteTrainOptions):
        return base.replace(**changes)
    if not isinstance(base, TrainOptions):
        raise TypeError(f"{named('preset')} must be a name, TrainOptions or ByteTrainOptions, not {base!r}")
    for name in sorted(ONLY_BYTES & changes.keys()):
        way_out = advice(name, NAMES) if name in FOREIGN else "leave it out"
        raise TrainingError(
            f"{named(name)}: only byte-level models have it, such as those of {given('preset', 'gpt4')}; for "
            f"this one, {way_out}"
        )
    return base.replace(**changes)


def default_of(name: str, presets: Mapping[str, Options] = PRESETS) -> str:
    """The default of an option, which is that of the first preset, and what other presets have instead.

    >>> default_of("byte_fallback"), default_of("add_dummy_prefix")
    ('True; sentencepiece: False', 'True; lossless: False')
    """
    (_, first), *others = ((key, getattr(options, name)) for key, options in presets.items())
    different = [f"{key}: {value!r}" for key, value in others if value != first]
    return "; ".join([repr(first), *different])


if TrainOptions.__doc__ is not None:  # it is None under python -OO
    for _kind, _groups, _presets in (
        (TrainOptions, GROUPS, PRESETS),
        (ByteTrainOptions, BYTE_GROUPS, {"gpt4": BYTE_PRESETS["gpt4"], **BYTE_PRESETS}),
    ):
        _defaults = {name: default_of(name, _presets) for name in _kind.names()}
        _kind.__doc__ = cleandoc(_kind.__doc__ or "") + "\n" + page(_defaults, _groups)
