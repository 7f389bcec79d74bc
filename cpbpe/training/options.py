"""The options of training: `TrainOptions`, the presets, and every check that needs no corpus.

Names and meanings are those of sentencepiece 0.2.3; defaults come from the presets. In this folder,
`option_table` says what each option means, and `options_refused` has those that mean nothing for BPE, each
with the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.spelling import counted, given, listed, named, spelled
from cpbpe.training.option_checks import check_type, check_unicode, checked_strings, names_checked
from cpbpe.training.option_table import page
from cpbpe.training.options_refused import REFUSED, advice

Pretokenizer = Callable[[str], Sequence[str]]
Rules = Sequence[tuple[str, str]] | Mapping[str, str]
"""What to rewrite, and how. `TrainOptions` holds them as a tuple of pairs, and lists as tuples."""

RULE_NAMES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""The normalization rules that have a name."""

MAX_SENTENCE_LENGTH = 1 << 30
"""The largest `max_sentence_length` that sentencepiece takes. Models record it when there is no limit."""

ARGUMENTS = ("threads", "format", "field", "column", "memory_limit", "progress")
"""What `cpbpe.train` takes besides the options: how to work, which the model does not depend on."""

_MAX_PIECE_BYTES = 7999
_BYTE_NAMES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


@names_checked(lambda names: refuse_unknown(names))
@dataclass(frozen=True, repr=False)
class TrainOptions:
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

    def replace(self, **changes: Any) -> TrainOptions:
        """The same options with some of them changed.

        >>> PRESETS["llama2"].replace(vocab_size=500).vocab_size
        500
        >>> PRESETS["llama2"].replace(vocabsize=500)
        Traceback (most recent call last):
        ...
        TypeError: there is no option 'vocabsize'; did you mean vocab_size?
        """
        refuse_unknown(changes)
        return replace(self, **changes)

    def __repr__(self) -> str:
        values = ((item.name, getattr(self, item.name), item.default) for item in fields(self))
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"TrainOptions({changed})"

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

NAMES = tuple(item.name for item in fields(TrainOptions))
"""The names of all options."""


def refuse_unknown(options: Iterable[str]) -> None:
    """Raise an error for the first unknown name; it says which option or call was probably meant."""
    for name in options:
        if name in REFUSED:
            raise TrainingError(f"{named(name)}: {spelled(REFUSED[name])}")
        if name in ARGUMENTS:
            raise TypeError(
                f"{name!r} is an argument of train() and of WordCounts.build(), not an option; give it there"
            )
        if name not in NAMES:
            way_out = advice(name, [*NAMES, *ARGUMENTS]) or "help(cpbpe.TrainOptions) shows all of them"
            raise TypeError(f"there is no option {name!r}; {way_out}")


def special_pieces(options: TrainOptions) -> dict[int, tuple[str, int]]:
    """Place the special pieces as sentencepiece does, or say why they cannot be placed."""
    # 1. The four that have ids of their own.
    unknown, control, user_defined, byte = 2, 3, 4, 6
    placed: dict[int, tuple[str, int]] = {}
    names: dict[str, int] = {}
    for name in ("unk", "bos", "eos", "pad"):
        id, piece = getattr(options, f"{name}_id"), getattr(options, f"{name}_piece")
        if id < 0:
            continue
        if id >= options.vocab_size:
            raise TrainingError(
                f"{named(f'{name}_id')} is {id}, and with {options.vocab_size} pieces ids end at "
                f"{options.vocab_size - 1}; choose a smaller id or a larger {named('vocab_size')}"
            )
        if id in placed:
            raise TrainingError(
                f"{named(f'{name}_id')} is {id}, which is already the id of {placed[id][0]!r}; choose another"
            )
        if piece in names:
            raise TrainingError(
                f"{named(f'{name}_piece')} is {piece!r}, which is already the piece of id {names[piece]}; "
                f"choose another text"
            )
        placed[id] = piece, unknown if piece == options.unk_piece else control
        names[piece] = id
    if options.unk_piece not in names and not options.byte_fallback:
        raise TrainingError(
            f"{named('unk_id')} is {options.unk_id}, so there is no {options.unk_piece!r} piece; "
            f"that needs {given('byte_fallback', True)}"
        )
    # 2. Symbols and bytes take the ids that are left, from the lowest.
    free = (id for id in range(1 << 31) if id not in placed)
    seen: dict[str, str] = {}
    several = [("control_symbols", piece, control) for piece in options.control_symbols]
    several += [("user_defined_symbols", piece, user_defined) for piece in options.user_defined_symbols]
    if options.byte_fallback:
        several += [("byte_fallback", f"<0x{value:02X}>", byte) for value in range(256)]
    for where, piece, type in several:
        if piece in seen:
            raise TrainingError(
                f"{named(where)}: {piece!r} is already in {named(seen[piece])}; list a symbol once"
            )
        if piece == options.unk_piece:
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
    required = set(options.required_chars) - {"\0", "\x1f"}
    texts = {piece for piece, _ in placed.values()}
    for character in sorted(required & texts):
        raise TrainingError(
            f"{named('required_chars')}: {character!r} is already a special piece; leave one of them out"
        )
    least = len(placed) + len(required) + (1 if options.auto_character_coverage else 0)
    if least > options.vocab_size:
        parts = special_counts(placed)
        if required:
            parts.append(counted(len(required), "required character"))
        raise TrainingError(
            f"{named('vocab_size')} is {options.vocab_size}, but {listed(parts)} alone need {least}; choose "
            f"a larger size, because the characters of the corpus need room too"
        )
    return dict(sorted(placed.items()))


def special_counts(placed: Mapping[int, tuple[str, int]]) -> list[str]:
    """How many of the pieces that are not learned are bytes, and how many are not, in words.

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
    def check(name: str, good: bool, allowed: str) -> None:
        if not good:
            raise TrainingError(f"{named(name)} must be {allowed}, not {getattr(options, name)!r}")

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
    if len(piece.encode()) > _MAX_PIECE_BYTES:
        raise TrainingError(f"{named(name)}: {piece[:20]!r}... is longer than {_MAX_PIECE_BYTES} bytes")


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
    if not isinstance(options, str):
        raise TypeError(f"{named('preset')} must be a name or TrainOptions, not {options!r}")
    if options not in PRESETS:
        raise TrainingError(f"there is no preset {options!r}; there are {', '.join(PRESETS)}")
    return PRESETS[options]


def default_of(name: str) -> str:
    """The default of an option, in each preset if the presets differ, for people.

    >>> default_of("byte_fallback"), default_of("add_dummy_prefix")
    ('True; sentencepiece: False', 'True; lossless: False')
    """
    values = {key: getattr(options, name) for key, options in PRESETS.items()}
    first = values["llama2"]
    others = [f"{key}: {value!r}" for key, value in values.items() if value != first]
    return "; ".join([repr(first), *others])


if TrainOptions.__doc__ is not None:  # it is None under python -OO
    TrainOptions.__doc__ = cleandoc(TrainOptions.__doc__) + "\n" + page({n: default_of(n) for n in NAMES})
