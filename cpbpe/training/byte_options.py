"""The options of training byte-level models, and how options of either family are found by name.

`options.py` has those of the SentencePiece family, and `options_base.py` what both share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from cpbpe.errors import TrainingError
from cpbpe.model.spec import SplitSpec
from cpbpe.spelling import given, listed, named
from cpbpe.text.split_patterns import PATTERNS, name_of, named_pattern
from cpbpe.training.options import GROUPS, NAMES, PRESETS, TrainOptions
from cpbpe.training.options_base import (
    BYTE_REFUSED,
    FOREIGN,
    Meaning,
    Options,
    advice,
    check,
    check_types,
    checked_strings,
    document,
    meanings,
    names_checked,
)

TIES = ("tokenizers", "minbpe")
"""The rules for equally frequent pairs; `cpbpe/reference/byte_level/training.py` explains them."""
BYTE_ORDERS = ("gpt2", "values")
"""In which order bytes get their ids: as in GPT-2's vocabulary, or 0 to 255."""
BYTES = 256


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
    others = NAMES

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
    check_types(options)
    for item in fields(options):
        value = getattr(options, item.name)
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
    _ = options.splitter  # this raises an error if there is no such pattern
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


BYTE_GROUPS: dict[str, dict[str, Meaning]] = {
    "vocabulary": {
        "vocab_size": Meaning(
            "how many pieces the model has: special tokens, 256 bytes and merges",
            "Choose it for every model. With more pieces, texts take fewer tokens, but the embeddings take "
            "more memory.",
        ),
        "hard_vocab_limit": GROUPS["vocabulary"]["hard_vocab_limit"],
        "special_tokens": Meaning(
            "tokens that programs insert, such as <|endoftext|>; texts do not yield them by themselves",
            "List the markers of your documents and chats. An empty list is for none.",
        ),
        "special_tokens_first": Meaning(
            "give the special tokens the lowest ids, before the bytes, and not the highest",
            "Turn it on if programs expect them there, as those of Mistral and of tokenizers do.",
        ),
        "bos_piece": Meaning(
            "which of `special_tokens` begins a text, for add_bos; empty for none",
            "Name it if texts will be encoded with one.",
        ),
        "eos_piece": Meaning(
            "which of `special_tokens` ends a text, for add_eos; empty for none",
            "Name it if texts will be encoded with one.",
        ),
        "byte_order": Meaning(
            "which ids the bytes have: gpt2, those of GPT-2's vocabulary, or values, 0 to 255",
            "Choose values with the `ties` of minbpe, if its programs will read the model.",
        ),
    },
    "what a piece can be": {
        "pattern": Meaning(
            "how a text is cut into chunks, which no piece crosses: the name of a published pattern (gpt2, "
            "cl100k, o200k, llama3, qwen2, tekken), a regular expression, or empty: a text is not cut",
            "Choose the pattern of the models that yours will be compared with. Published patterns are "
            "counted many times as fast as others.",
        ),
        "ties": Meaning(
            "which of several most frequent pairs is merged: tokenizers, the one with the smaller ids, as in "
            "the library tokenizers; or minbpe, the one that the text contains first, as in minbpe",
            "Choose minbpe for the merges of minbpe. The order of the texts then matters, and counting takes "
            "more time and memory.",
        ),
        "min_frequency": Meaning(
            "the count below which no pair is merged; 0 is like 1; a higher one needs no `hard_vocab_limit`",
            "Raise it if rare pairs should not become pieces, and turn `hard_vocab_limit` off.",
        ),
        "max_piece_length": Meaning(
            "the most bytes that a piece can have, 2 or more; 0 for as many as a model can hold, 7,999",
            "Set it if long pieces, such as lines of dashes, are not worth their ids. What tokenizers calls "
            "max_token_length is larger by 1.",
        ),
    },
    "what is read": {
        "split_lines": Meaning(
            "make each line of a text file a text of its own, with the newline at its end; otherwise a file "
            "is one text",
            "Turn it on for the merges that tokenizers learns from files, which it reads in this way.",
        ),
    },
}
"""The options of byte-level models by group, in the order of `ByteTrainOptions`."""

BYTE_MEANINGS = meanings(BYTE_GROUPS)
"""The meanings of these options, by name."""

document(ByteTrainOptions, BYTE_GROUPS, {"gpt4": BYTE_PRESETS["gpt4"], **BYTE_PRESETS})


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
    # (Beside a file of rules a name counts for nothing, as in sentencepiece; and that of a preset gives way.)
    if (
        changes.get("normalization_rules")
        and changes.get("normalization_rule_name", "identity") != "identity"
    ):
        raise TrainingError(
            f"{named('normalization_rule_name')} and {named('normalization_rules')} exclude each other; "
            f"choose one"
        )
    return base.replace(**changes)
