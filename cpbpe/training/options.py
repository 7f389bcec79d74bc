"""The options of training in the SentencePiece family: what each means, and every check that needs no corpus.

`TrainOptions` have the names and meanings of sentencepiece 0.2.3. `help()`, the command and docs/training.md
read the meanings from the table at the end. A meaning is a phrase that begins in lower case and has no full
stop. `names in backquotes` are options, which each reader of the table spells in its own way.

`byte_options.py` has the options of byte-level models, and `options_base.py` what both families share.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.model.piece_type import PieceType
from cpbpe.spelling import counted, given, listed, named
from cpbpe.text.charsmap import RULE_NAMES
from cpbpe.training.options_base import (
    REFUSED,
    Meaning,
    Options,
    check,
    check_types,
    check_unicode,
    checked_strings,
    document,
    meanings,
    names_checked,
)

Pretokenizer = Callable[[str], Sequence[str]]
Rules = Sequence[tuple[str, str]] | Mapping[str, str]
"""Texts with their replacements. `TrainOptions` holds them as a tuple of pairs, and all lists as tuples."""

MAX_SENTENCE_LENGTH = 1 << 30
"""The largest `max_sentence_length` that sentencepiece takes. Models record it when there is no limit."""

LONGEST_PIECE = 7999
"""The longest piece that a model can hold, in bytes: see `MAX_PIECE_BYTES` in `model/validity.py`."""


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

        They are placed as in sentencepiece. Raise an error that says why if they cannot be placed.

        >>> TrainOptions(byte_fallback=False).special_pieces()
        {0: ('<unk>', 2), 1: ('<s>', 3), 2: ('</s>', 3)}
        """
        # 1. The four that have ids of their own.
        unknown, control, user_defined, byte = map(
            int, (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED, PieceType.BYTE)
        )
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
            # (As in sentencepiece, the text decides: without an unk_id, bos_piece="<unk>" is UNKNOWN.)
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
        symbols = [("control_symbols", piece, control) for piece in self.control_symbols]
        symbols += [("user_defined_symbols", piece, user_defined) for piece in self.user_defined_symbols]
        if self.byte_fallback:
            symbols += [("byte_fallback", f"<0x{value:02X}>", byte) for value in range(256)]
        for where, piece, type in symbols:
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
        # 3. Check that there is room for the characters that are required.
        required = set(self.required_chars) - {"\0", "\x1f"}  # NUL and BOUNDARY never become pieces
        texts = {piece for piece, _ in placed.values()}
        for character in sorted(required & texts):
            raise TrainingError(
                f"{named('required_chars')}: {character!r} is already a special piece; leave one of them out"
            )
        # (`auto_character_coverage` needs room for at least one piece to choose.)
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
        from sentencepiece's own defaults are given. (Options that sentencepiece does not have are left out:
        `seed`, `keep_newlines`, `keep_reserved`, rules as pairs, and functions.)

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
    byte_pieces = sum(type == PieceType.BYTE for _, type in placed.values())
    parts = [counted(len(placed) - byte_pieces, "special piece"), counted(byte_pieces, "byte")]
    return [part for part in parts if not part.startswith("0 ")]


def _check_types(options: TrainOptions) -> None:
    check_types(options)
    for item in fields(options):
        value = getattr(options, item.name)
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
    if len(piece.encode()) > LONGEST_PIECE:
        raise TrainingError(f"{named(name)}: {piece[:20]!r}... is longer than {LONGEST_PIECE} bytes")


def _float32(value: float) -> float:
    """A number rounded to 32 bits, as the model file holds it."""
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

GROUPS: dict[str, dict[str, Meaning]] = {
    "vocabulary": {
        "vocab_size": Meaning(
            "how many pieces the model has, special pieces included",
            "Choose it for every model. With more pieces, texts take fewer tokens, but the embeddings take "
            "more memory.",
        ),
        "hard_vocab_limit": Meaning(
            "fail if the corpus is too small for `vocab_size` pieces, instead of making a smaller model",
            "Turn it off if you want as many pieces as a small corpus gives.",
        ),
        "character_coverage": Meaning(
            "how much of the corpus, as a share from 0.98 to 1, consists of characters that get a piece; the "
            "rarest characters are left without one",
            "Choose 1 if every character matters, as in a small, clean corpus. Choose less if rare "
            "characters would fill the vocabulary, as in noisy text or text in many scripts.",
        ),
        "auto_character_coverage": Meaning(
            "let characters and merges compete for the places in the vocabulary, by how many tokens each "
            "saves; `character_coverage` then has no effect; needs `byte_fallback` and excludes "
            "`required_chars`",
            "Turn it on if you would rather not guess `character_coverage`.",
        ),
        "required_chars": Meaning(
            "characters that get a piece before all others, however rare they are, until "
            "`character_coverage` is reached; in one text: éèê",
            "Name the letters and signs that people will use but the corpus hardly contains.",
        ),
        "byte_fallback": Meaning(
            "add 256 pieces, one for each byte, and encode characters without a piece as bytes instead of as "
            "unknown",
            "Turn it off if the model will never meet new characters, or to save the 256 pieces.",
        ),
        "control_symbols": Meaning(
            "pieces that programs insert, such as <sep>; texts do not yield them by themselves",
            "List the markers of a chat format or of a task.",
        ),
        "user_defined_symbols": Meaning(
            "pieces that are kept whole wherever a text contains them",
            "List markup and placeholders that must not be split. If users must not be able to write them, "
            "list them in `control_symbols` instead.",
        ),
    },
    "special pieces": {
        "unk_id": Meaning(
            "the id of the unknown piece, which stands for whatever has no piece; -1 for none",
            "Change it if a program expects another id. -1 needs `byte_fallback`.",
        ),
        "bos_id": Meaning(
            "the id of the piece that begins a text; -1 for none",
            "Change it if a program expects another id.",
        ),
        "eos_id": Meaning(
            "the id of the piece that ends a text; -1 for none", "Change it if a program expects another id."
        ),
        "pad_id": Meaning(
            "the id of the piece that fills up the shorter texts of a batch; -1 for none",
            "Give it an id, such as 3, if texts will be padded.",
        ),
        "unk_piece": Meaning("the text of the unknown piece", "Change it if a program expects another text."),
        "bos_piece": Meaning(
            "the text of the piece that begins a text", "Change it if a program expects another text."
        ),
        "eos_piece": Meaning(
            "the text of the piece that ends a text", "Change it if a program expects another text."
        ),
        "pad_piece": Meaning(
            "the text of the piece that fills up a batch", "Change it if a program expects another text."
        ),
        "unk_surface": Meaning(
            "the text that the unknown piece is decoded to",
            "Change it if decoded text should show it in another way.",
        ),
    },
    "what a piece can be": {
        "max_sentencepiece_length": Meaning(
            "the most characters that a piece can have, 1 to 512",
            "Raise it for deeply indented code, or for languages with long words.",
        ),
        "split_by_whitespace": Meaning(
            "end every piece where a word ends, so that no piece has parts of two words",
            "Turn it off to allow pieces of several words.",
        ),
        "split_by_unicode_script": Meaning(
            "never join characters of two scripts, such as Latin and Cyrillic, in one piece (Han, Hiragana "
            "and Katakana count as one script)",
            "Turn it off if words mix scripts.",
        ),
        "split_by_number": Meaning(
            "never join digits and letters in one piece; has an effect only with `split_by_unicode_script`",
            "Turn it and `split_digits` off to allow pieces such as F16.",
        ),
        "split_digits": Meaning(
            "make every digit a piece by itself",
            "Turn it off if numbers should take fewer tokens; similar numbers are then often split "
            "differently.",
        ),
        "treat_whitespace_as_suffix": Meaning(
            "attach each space to the word before it, not to the word after it",
            "Leave it off if in doubt: most programs expect the space in front.",
        ),
        "allow_whitespace_only_pieces": Meaning(
            "allow pieces that consist of spaces only",
            "Leave it on for source code: a line's indentation then takes one or two tokens.",
        ),
        "pretokenization_delimiter": Meaning(
            "a text that marks the places in the corpus that no piece may cross; the marks are removed",
            "Use it if another tool has marked the words or morphemes of the corpus.",
        ),
        "pretokenizer": Meaning(
            "a function that takes a normalized text and returns it in chunks, as a list of str; no piece "
            "crosses from one chunk into the next",
            "Use it to cut with rules of your own. Models do not record it: when they encode, there are no "
            "such cuts.",
        ),
        "allow_inconsistent_pretokenization": Meaning(
            "accept chunks from the `pretokenizer` that, joined, are not the text that it was given",
            "Turn it on if the function drops or changes text on purpose.",
        ),
    },
    "normalization": {
        "normalization_rule_name": Meaning(
            "the rules by which text is rewritten, in training and when it is encoded; identity has none: "
            f"{', '.join(RULE_NAMES)}",
            "Choose nmt_nfkc if variants of a character should become the same (① and 1), and a name with "
            "_cf if case should not matter. Decoding then gives the rewritten text.",
        ),
        "normalization_rule_tsv": Meaning(
            "a file with rules of your own: on each line code points in hexadecimal, a tab, and the code "
            "points that replace them; they take the place of `normalization_rule_name`, as in sentencepiece",
            "Use it if no named set of rules fits.",
        ),
        "normalization_rules": Meaning(
            'rules of your own, as pairs of texts or as a mapping: [("①", "1")]; they take the place of '
            "those of a preset",
            "Use it if no named set of rules fits.",
        ),
        "denormalization_rule_tsv": Meaning(
            "a file with rules by which decoded text is rewritten",
            "Use it if decoded text needs a last correction.",
        ),
        "denormalization_rules": Meaning(
            "rules by which decoded text is rewritten, as pairs of texts or as a mapping",
            "Use it if decoded text needs a last correction.",
        ),
        "add_dummy_prefix": Meaning(
            "put a space in front of every text, so that a word has the same piece there as elsewhere",
            "Turn it off for code, or if texts will be encoded in parts whose ids are joined.",
        ),
        "remove_extra_whitespaces": Meaning(
            "drop spaces at both ends of a text, and replace every run of spaces by a single one",
            "Turn it on for prose with untidy spacing; leave it off for code.",
        ),
    },
    "what is read": {
        "max_sentence_length": Meaning(
            "skip lines (or texts of an iterable) that have more bytes than this; 0 for no limit",
            "Raise it if the report says that too much was left out, as happens with a document on each "
            "line.",
        ),
        "input_sentence_size": Meaning(
            "train on this many lines, 101 or more; 0 for all",
            "Give a number to try out options on a part of a large corpus.",
        ),
        "shuffle_input_sentence": Meaning(
            "with `input_sentence_size`: sample from the whole corpus, instead of taking the first lines",
            "Turn it off if the corpus is in random order already, because reading then ends earlier.",
        ),
        "seed": Meaning(
            "the number that decides which lines are sampled (sentencepiece samples others in every run)",
            "Change it to see how much the result depends on the sample.",
        ),
        "keep_newlines": Meaning(
            "keep the newlines at the end of each line, so that pieces can contain them",
            "Turn it on for code and for whole documents (the lossless preset does). Such pieces break lines "
            "in the .vocab file; the .model file is not affected.",
        ),
        "keep_reserved": Meaning(
            "keep lines that contain U+2585 (▅), which sentencepiece skips because it uses this character "
            "for its own purposes",
            "Turn it on if no line may be left out.",
        ),
    },
    "what is written": {
        "vocabulary_output_piece_score": Meaning(
            "write the score of each piece into the .vocab file",
            "Turn it off for a plain list of pieces.",
        ),
        "record_paths": Meaning(
            "record the paths of the corpus and of the model in the model file, as sentencepiece does",
            "Turn it on if the model file must be the same, byte for byte, as the one that sentencepiece "
            "writes from these files. Anybody who has the model can read the paths.",
        ),
    },
}
"""The options of the SentencePiece family by group, in the order of `TrainOptions`."""

MEANINGS = meanings(GROUPS)
"""The meanings of these options, by name."""

document(TrainOptions, GROUPS, PRESETS)
