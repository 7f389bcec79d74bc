"""The options of training: `TrainOptions`, the presets, and every check that needs no corpus.

Names and meanings are those of sentencepiece 0.2.3; the presets have the defaults. Options that mean nothing
for BPE are in `cpbpe.training.options_refused`, each with the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.training.options_refused import REFUSED

Pretokenizer = Callable[[str], Sequence[str]]
Rules = Sequence[tuple[str, str]] | Mapping[str, str]
"""What to rewrite, and how. `TrainOptions` holds them as a tuple of pairs, and lists as tuples."""

RULE_NAMES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""The normalization rules that have a name."""

MAX_SENTENCE_LENGTH = 1 << 30
"""The largest `max_sentence_length` that sentencepiece takes. Models record it when there is no limit."""

_MAX_PIECE_BYTES = 7999
_BYTE_NAMES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


@dataclass(frozen=True)
class TrainOptions:
    """How to train. The defaults are those of Llama 2; see `PRESETS` for the others.

    Options are checked when they are made, before any work starts, and never change.

    >>> TrainOptions(vocab_size=1000, control_symbols=["<sep>"]).control_symbols
    ('<sep>',)
    >>> TrainOptions(unk_id=-1, byte_fallback=False)
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: unk_id is -1, so there is no '<unk>' piece; that needs byte_fallback=True
    """

    # --- The vocabulary ---
    vocab_size: int = 32_000
    """How many pieces the model has, all special ones included."""
    hard_vocab_limit: bool = True
    """What happens if the corpus has too little text for `vocab_size` pieces: an error (true), or a smaller
    model."""
    character_coverage: float = 0.99995
    """The share of the corpus that the vocabulary's characters cover, 0.98 to 1; the rarest are left out."""
    auto_character_coverage: bool = False
    """Choose characters and merges together, for the fewest tokens. Needs `byte_fallback`."""
    required_chars: str = ""
    """Characters that are in the vocabulary however rare they are."""
    byte_fallback: bool = True
    """Hold the 256 bytes as pieces; characters without a piece become those."""
    control_symbols: Sequence[str] = ()
    """Pieces that a program adds, such as ``<sep>``; never found in text."""
    user_defined_symbols: Sequence[str] = ()
    """Pieces that are always kept whole where text contains them."""
    unk_id: int = 0
    """The id of the unknown piece; -1 for none, here and below."""
    bos_id: int = 1
    """The id of the piece that begins a text."""
    eos_id: int = 2
    """The id of the piece that ends a text."""
    pad_id: int = -1
    """The id of the piece that fills a batch."""
    unk_piece: str = "<unk>"
    """The text of the unknown piece."""
    bos_piece: str = "<s>"
    """The text of the piece that begins a text."""
    eos_piece: str = "</s>"
    """The text of the piece that ends a text."""
    pad_piece: str = "<pad>"
    """The text of the piece that fills a batch."""
    unk_surface: str = " \u2047 "
    """What the unknown piece is decoded to."""

    # --- What a piece may be ---
    max_sentencepiece_length: int = 16
    """The most characters a piece can have, 1 to 512."""
    split_by_whitespace: bool = True
    """No piece goes on after a space; false allows pieces of several words."""
    split_by_unicode_script: bool = True
    """No piece mixes scripts (Latin with Cyrillic); Han, Hiragana and Katakana are one."""
    split_by_number: bool = True
    """Digits are a script of their own for `split_by_unicode_script`; false allows ``F1``."""
    split_digits: bool = True
    """Every digit is a piece alone."""
    treat_whitespace_as_suffix: bool = False
    """A space belongs to the word before it, not to the one after it."""
    allow_whitespace_only_pieces: bool = True
    """Runs of spaces can be pieces, as indented code needs."""
    pretokenization_delimiter: str = ""
    """A text that no piece crosses; it disappears in training."""
    pretokenizer: Pretokenizer | None = None
    """A function from normalized text to the chunks that no piece crosses; joined they give the text."""
    allow_inconsistent_pretokenization: bool = False
    """Accept a `pretokenizer` whose chunks do not join to the text."""

    # --- What happens to text first ---
    normalization_rule_name: str = "identity"
    """The rules by which text is rewritten: one of `RULE_NAMES`."""
    normalization_rule_tsv: str = ""
    """A file with rules instead: hexadecimal code points, tab, what they become."""
    normalization_rules: Rules = ()
    """The same as pairs of text, or as a mapping: ``[("①", "1")]``."""
    denormalization_rule_tsv: str = ""
    """A file with rules for decoded text."""
    denormalization_rules: Rules = ()
    """The same as pairs of text, or as a mapping."""
    add_dummy_prefix: bool = True
    """Put a space in front of every text, so that a word there is like one in the middle."""
    remove_extra_whitespaces: bool = False
    """Drop spaces at both ends, and make every run of spaces one."""

    # --- What is read ---
    max_sentence_length: int = 4192
    """Sentences of more bytes are skipped, and the report says so; 0 for no limit."""
    input_sentence_size: int = 0
    """Train on this many sentences, more than 100; 0 for all."""
    shuffle_input_sentence: bool = True
    """With `input_sentence_size`: sample from the whole corpus (true), or take the first."""
    seed: int = 0
    """Another number gives another sample. (sentencepiece's sample is another one in every run.)"""
    keep_newlines: bool = False
    """The newlines after a line are part of its sentence, so pieces can hold them. (In the ``.vocab`` file
    such pieces break lines; the ``.model`` file has no such problem.)"""
    keep_reserved: bool = False
    """Keep sentences that hold U+2585 (which training uses as its mark for rare characters)."""

    # --- What is written ---
    vocabulary_output_piece_score: bool = True
    """Write the scores into the ``.vocab`` file."""

    def __post_init__(self) -> None:
        for name in ("control_symbols", "user_defined_symbols"):
            object.__setattr__(self, name, _strings(name, getattr(self, name)))
        for name in ("normalization_rules", "denormalization_rules"):
            object.__setattr__(self, name, _rules(name, getattr(self, name)))
        for name in ("normalization_rule_tsv", "denormalization_rule_tsv"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if isinstance(value, str) else _path(name, value))
        _check_types(self)
        _check_values(self)
        self.special_pieces()

    def replace(self, **changes: Any) -> TrainOptions:
        """The same options with some of them changed.

        >>> PRESETS["llama2"].replace(vocab_size=500).vocab_size
        500
        >>> PRESETS["llama2"].replace(vocabsize=500)
        Traceback (most recent call last):
        ...
        TypeError: there is no option 'vocabsize'; did you mean 'vocab_size'?
        """
        for name in changes:
            if name in REFUSED:
                raise TrainingError(f"{name}: {REFUSED[name]}")
            if name not in NAMES:
                close = get_close_matches(name, NAMES, 1, 0.5)
                hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(NAMES)}"
                raise TypeError(f"there is no option {name!r}{hint}")
        return replace(self, **changes)

    def special_pieces(self) -> dict[int, tuple[str, int]]:
        """The pieces that are not learned, by id: the text and the type (see `PieceType`).

        >>> TrainOptions(byte_fallback=False).special_pieces()
        {0: ('<unk>', 2), 1: ('<s>', 3), 2: ('</s>', 3)}
        """
        return special_pieces(self)

    def sentencepiece_options(self) -> dict[str, Any]:
        """The keyword arguments with which ``sentencepiece.SentencePieceTrainer.train`` does the same.

        Given these, a ``sentence_iterator`` and a ``model_writer``, sentencepiece 0.2.3 writes the same
        file, byte for byte. A model file records the options that were given, so only those that differ
        from sentencepiece's own defaults are given. (What sentencepiece has no name for is left out: `seed`,
        `keep_newlines`, `keep_reserved`, rules as pairs, and functions.)

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
    # vocab_size is always given. sentencepiece has no names for the others, or they are functions, which no
    # model records.
    "vocab_size",
    "pretokenizer",
    "allow_inconsistent_pretokenization",
    "normalization_rules",
    "denormalization_rules",
    "seed",
    "keep_newlines",
    "keep_reserved",
)

NAMES = tuple(item.name for item in fields(TrainOptions))
"""The names of all options."""


def special_pieces(options: TrainOptions) -> dict[int, tuple[str, int]]:
    """Place the special pieces as sentencepiece does, or say why they cannot be placed."""
    unknown, control, user_defined, byte = 2, 3, 4, 6
    placed: dict[int, tuple[str, int]] = {}
    names: dict[str, int] = {}
    for name in ("unk", "bos", "eos", "pad"):
        id, piece = getattr(options, f"{name}_id"), getattr(options, f"{name}_piece")
        if id < 0:
            continue
        if id >= options.vocab_size:
            raise TrainingError(
                f"{name}_id is {id}, and ids end at vocab_size - 1 = {options.vocab_size - 1}; "
                f"choose a smaller id or a larger vocab_size"
            )
        if id in placed:
            raise TrainingError(f"{name}_id is {id}, which is the id of {placed[id][0]!r} already")
        if piece in names:
            raise TrainingError(f"{name}_piece is {piece!r}, which is the piece of id {names[piece]} already")
        placed[id] = piece, unknown if piece == options.unk_piece else control
        names[piece] = id
    if options.unk_piece not in names and not options.byte_fallback:
        raise TrainingError(
            f"unk_id is {options.unk_id}, so there is no {options.unk_piece!r} piece; "
            f"that needs byte_fallback=True"
        )
    free = (id for id in range(1 << 31) if id not in placed)
    seen: dict[str, str] = {}
    listed = [("control_symbols", piece, control) for piece in options.control_symbols]
    listed += [("user_defined_symbols", piece, user_defined) for piece in options.user_defined_symbols]
    if options.byte_fallback:
        listed += [("byte_fallback", f"<0x{value:02X}>", byte) for value in range(256)]
    for where, piece, type in listed:
        if piece in seen:
            raise TrainingError(f"{where}: {piece!r} is in {seen[piece]} already; list a symbol once")
        if piece == options.unk_piece:
            raise TrainingError(f"{where}: {piece!r} is the unknown piece; leave it out, or rename unk_piece")
        seen[piece] = where
        if piece in names:  # <s> as a control or user-defined symbol: the same piece, of that type
            placed[names[piece]] = piece, type
        else:
            placed[next(free)] = piece, type
    required = set(options.required_chars) - {"\0", "\x1f"}
    texts = {piece for piece, _ in placed.values()}
    for character in sorted(required & texts):
        raise TrainingError(
            f"required_chars: {character!r} is a special piece already; leave one of them out"
        )
    least = len(placed) + len(required) + (1 if options.auto_character_coverage else 0)
    if least > options.vocab_size:
        raise TrainingError(
            f"vocab_size is {options.vocab_size}, but the special pieces ({len(placed)}) and required "
            f"characters ({len(required)}) alone need {least}; it has to be larger than that, for the "
            f"characters of the corpus come on top"
        )
    return dict(sorted(placed.items()))


def _check_types(options: TrainOptions) -> None:
    for item in fields(options):
        value = getattr(options, item.name)
        kind = str(item.type)
        if kind == "bool" and not isinstance(value, bool):
            raise TypeError(f"{item.name} is True or False, not {value!r}")
        if kind == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{item.name} is an integer, not {value!r}")
        bits = 64 if item.name in ("input_sentence_size", "seed") else 32
        if kind == "int" and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise TrainingError(f"{item.name} does not fit into {bits} bits: {value}")
        if kind == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise TypeError(f"{item.name} is a number, not {value!r}")
        if kind == "str":
            if not isinstance(value, str):
                raise TypeError(f"{item.name} is text (str), not {value!r}")
            _check_unicode(item.name, value)
    if options.pretokenizer is not None and not callable(options.pretokenizer):
        raise TypeError(f"pretokenizer is a function from str to a list of str, not {options.pretokenizer!r}")


def _check_values(options: TrainOptions) -> None:
    def check(name: str, good: bool, allowed: str) -> None:
        if not good:
            raise TrainingError(f"{name} is {allowed}, not {getattr(options, name)!r}")

    check("vocab_size", options.vocab_size > 0, "at least 1")
    coverage = _float32(options.character_coverage)
    check("character_coverage", 0.98 <= coverage <= 1.0, "0.98 to 1.0")
    check("max_sentencepiece_length", 1 <= options.max_sentencepiece_length <= 512, "1 to 512")
    length = options.max_sentence_length
    check(
        "max_sentence_length",
        length == 0 or 10 <= length <= MAX_SENTENCE_LENGTH,
        f"10 to {MAX_SENTENCE_LENGTH} bytes, or 0 for no limit",
    )
    size = options.input_sentence_size
    check("input_sentence_size", size == 0 or size > 100, "more than 100, or 0 for all")
    check(
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
            name = "a space, which is U+2581 in pieces" if character == " " else "U+2585, which is reserved"
            raise TrainingError(f"required_chars holds {name}; leave it out")
    if options.pretokenizer is not None and options.pretokenization_delimiter:
        raise TrainingError("pretokenizer and pretokenization_delimiter exclude each other; choose one")
    if options.allow_inconsistent_pretokenization and options.pretokenizer is None:
        raise TrainingError("allow_inconsistent_pretokenization means nothing without a pretokenizer")
    if options.auto_character_coverage and not options.byte_fallback:
        raise TrainingError("auto_character_coverage needs byte_fallback=True")
    if options.auto_character_coverage and options.required_chars:
        raise TrainingError("auto_character_coverage and required_chars exclude each other; choose one")
    for kind in ("normalization", "denormalization"):
        if getattr(options, f"{kind}_rule_tsv") and getattr(options, f"{kind}_rules"):
            raise TrainingError(f"{kind}_rule_tsv and {kind}_rules exclude each other; choose one")


def _check_piece(name: str, piece: str) -> None:
    if not piece:
        raise TrainingError(f"{name} holds an empty piece; a piece has at least one character")
    if "\0" in piece:
        raise TrainingError(f"{name}: {piece!r} contains a NUL character (U+0000), which no piece can hold")
    if len(piece.encode()) > _MAX_PIECE_BYTES:
        raise TrainingError(f"{name}: {piece[:20]!r}... is longer than {_MAX_PIECE_BYTES} bytes")


def _check_unicode(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TrainingError(f"{name}: {text[:40]!r} is not valid Unicode: {error.reason}") from None


def _float32(value: float) -> float:
    """The number as the model file holds it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf")


def _strings(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list of str, not {value!r}")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{name} is a list of str, and holds {item!r}")
        _check_unicode(name, item)
    return items


def _rules(name: str, value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping):
        value = value.items()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list of pairs of str, not {value!r}")
    rules: dict[str, str] = {}
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise TypeError(f"{name} is a list of pairs of str, and holds {pair!r}")
        source, target = pair
        if not isinstance(source, str) or not isinstance(target, str):
            raise TypeError(f"{name} is a list of pairs of str, and holds {pair!r}")
        if not source:
            raise TrainingError(f"{name}: a rule for nothing, {pair!r}; the left side needs a character")
        if "\0" in source or "\0" in target:
            raise TrainingError(f"{name}: {pair!r} contains a NUL character (U+0000), which no rule can hold")
        _check_unicode(name, source + target)
        if rules.setdefault(source, target) != target:
            raise TrainingError(f"{name}: two rules for {source!r}, {rules[source]!r} and {target!r}")
    return tuple(rules.items())


def _path(name: str, value: object) -> str:
    if hasattr(value, "__fspath__"):
        path = value.__fspath__()
        if isinstance(path, str):
            return path
    raise TypeError(f"{name} is a path, not {value!r}")


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


def preset(options: str | TrainOptions) -> TrainOptions:
    """A preset by its name; `TrainOptions` are returned as they are.

    >>> preset("llama2") == TrainOptions()
    True
    >>> preset("llama3")
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: there is no preset 'llama3'; there are llama2, sentencepiece, lossless
    """
    if isinstance(options, TrainOptions):
        return options
    if options not in PRESETS:
        raise TrainingError(f"there is no preset {options!r}; there are {', '.join(PRESETS)}")
    return PRESETS[options]
