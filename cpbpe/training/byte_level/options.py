"""The options of training a byte-level model: `ByteTrainOptions`, the presets, and checks without a corpus.

`option_table` next to this says what each option means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.model.spec import SplitSpec
from cpbpe.spelling import named, spelled
from cpbpe.text.split_patterns import PATTERNS, name_of, named_pattern
from cpbpe.training.byte_level.option_table import GROUPS, REFUSED
from cpbpe.training.option_checks import check_type, checked_strings, names_checked
from cpbpe.training.option_table import page
from cpbpe.training.options import ARGUMENTS, NAMES
from cpbpe.training.options_refused import advice

TIES = ("tokenizers", "minbpe")
"""The rules for equally frequent pairs; `cpbpe/reference/byte_level/training.py` explains them."""
BYTE_ORDERS = ("gpt2", "values")
"""In which order bytes get their ids: as in GPT-2's vocabulary, or 0 to 255."""
BYTES = 256


@names_checked(lambda names: refuse_unknown(names))
@dataclass(frozen=True, repr=False)
class ByteTrainOptions:
    """How to train a byte-level model. The defaults are those of GPT-4; see `BYTE_PRESETS` for the others.

    Options are checked when they are created, before any work starts, and never change.

    >>> ByteTrainOptions(vocab_size=1000, special_tokens=["<|end|>"]).merges
    743
    >>> ByteTrainOptions(vocab_size=200)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cpbpe.errors.TrainingError: vocab_size is 200, but 5 special tokens and 256 bytes alone need 261; ...
    """

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

    def replace(self, **changes: Any) -> ByteTrainOptions:
        """The same options with some of them changed.

        >>> BYTE_PRESETS["gpt2"].replace(vocab_size=500).vocab_size
        500
        """
        refuse_unknown(changes)
        return replace(self, **changes)

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

    def __repr__(self) -> str:
        values = ((item.name, getattr(self, item.name), item.default) for item in fields(self))
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"ByteTrainOptions({changed})"


BYTE_NAMES = tuple(item.name for item in fields(ByteTrainOptions))
"""The names of all options of byte-level models."""


def refuse_unknown(options: Iterable[str]) -> None:
    """Raise an error for the first unknown name; it says why, or which option was probably meant."""
    for name in options:
        if name in BYTE_NAMES:
            continue
        if name in REFUSED:
            raise TrainingError(f"{named(name)}: {spelled(REFUSED[name])}")
        if name in NAMES:
            raise TrainingError(
                f"{named(name)}: it is an option of models of the SentencePiece family, and this one is "
                f"byte-level; leave it out"
            )
        if name in ARGUMENTS:
            raise TypeError(
                f"{name!r} is an argument of train() and of WordCounts.build(), not an option; give it there"
            )
        way_out = advice(name, [*BYTE_NAMES, *ARGUMENTS], {}) or "help(cpbpe.ByteTrainOptions) shows all"
        raise TypeError(f"there is no option {name!r}; {way_out}")


def _check(options: ByteTrainOptions) -> None:
    # 1. Types.
    for item in fields(options):
        value = getattr(options, item.name)
        check_type(item.name, value, str(item.type))
        if item.type == "int" and not 0 <= value < 1 << 31:
            raise TrainingError(f"{named(item.name)} must be 0 to {(1 << 31) - 1}, not {value}")
    # 2. Choices.
    for name, allowed in (("ties", TIES), ("byte_order", BYTE_ORDERS)):
        if getattr(options, name) not in allowed:
            raise TrainingError(
                f"{named(name)} must be one of {', '.join(allowed)}, not {getattr(options, name)!r}"
            )
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
"""What else presets are called."""


def default_of(name: str) -> str:
    """The default of an option, in each preset if the presets differ, for people.

    >>> default_of("ties")
    "'tokenizers'; minbpe: 'minbpe'"
    """
    values = {key: getattr(options, name) for key, options in BYTE_PRESETS.items()}
    first = values["gpt4"]
    others = [f"{key}: {_short(value)}" for key, value in values.items() if value != first]
    return "; ".join([_short(first), *others])


def _short(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


if ByteTrainOptions.__doc__ is not None:  # it is None under python -OO
    _defaults = {name: default_of(name) for name in BYTE_NAMES}
    ByteTrainOptions.__doc__ = cleandoc(ByteTrainOptions.__doc__) + "\n" + page(_defaults, GROUPS)
