r"""What llama.cpp calls the ways in which byte-level models cut texts (`tokenizer.ggml.pre`).

A name stands for the tokenizer of one or a few models, and llama.cpp cuts as these do, or nearly: it has no
engine for regular expressions that knows Unicode. Listed are the names of models whose own tokenizers are
known for certain, from their files or from the libraries that have them in code. There are more names.

- *GPT-2's pattern* and DeepSeek's are the same in llama.cpp.
- Of those with endings such as `(?i:'s)`, only the letter ſ (U+017F) is missing, which is an s without case.
- Those that tell capitals from small letters know the case of A to Z only there, and take marks such as
  accents for signs.

`python -m pytest tests/bytes/test_gguf.py` shows each of them; the programs were compared on every character.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from cpbpe.model.spec import ModelSpec, SplitSpec
from cpbpe.text.split_patterns import PATTERNS

_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_THEIR_ENDINGS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_NUMBERS = r"[\p{N}𑷠-𑷩𖿴-𖿶]"
"""One number, as the pre-tokenizer Digits of `tokenizers` has it (see `tokenizer_json.cutting`)."""


class PreName(NamedTuple):
    """A name, and what it stands for."""

    name: str
    splitter: SplitSpec
    """How the models cut texts."""
    theirs: tuple[str, ...] = ()
    """The patterns by which llama.cpp cuts them, if these are others."""
    whole: bool = False
    """Whether the models take a chunk whole that is a piece."""
    their_whole: bool = False
    """Whether llama.cpp does."""
    form: str = ""
    """The Unicode normal form that the models bring texts into. (llama.cpp never does.)"""
    adds_bos: bool = False
    """Whether llama.cpp puts bos in front of texts if the file does not say."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns by which the models cut texts, one after the other."""
        return self.splitter.pattern, *self.splitter.then


def _named(name: str) -> SplitSpec:
    return SplitSpec(PATTERNS[name], name)


def _without_long_s(pattern: str) -> tuple[str]:
    return (pattern.replace(_ENDINGS, _THEIR_ENDINGS),)


def _by_ascii_case(pattern: str) -> tuple[str]:
    """A pattern with capitals and small letters as llama.cpp spells it."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    pattern = pattern.replace(upper, r"(?:(?=\p{L})[^a-z])").replace(lower, r"(?:(?=\p{L})[^A-Z])")
    return _without_long_s(pattern)


_GPT2 = _named("gpt2")
_LLAMA3 = _named("llama3")
_QWEN2 = _named("qwen2")
_QWEN35 = SplitSpec(
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K = _named("o200k")
_TEKKEN = _named("tekken")
_DEEPSEEK_V3 = SplitSpec(
    r"\p{N}{1,3}",
    then=(
        "[一-龥\u3040-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
)
_DIGITS = SplitSpec(_NUMBERS, then=(_GPT2.pattern,))
_THEIR_DIGITS = (r"\p{N}", _GPT2.pattern)


def _of_llama3(name: str, whole: bool) -> PreName:
    theirs = _without_long_s(_LLAMA3.pattern)
    return PreName(name, _LLAMA3, theirs, whole=whole, their_whole=whole, adds_bos=whole)


def _of_o200k(name: str) -> PreName:
    return PreName(name, _O200K, _by_ascii_case(_O200K.pattern), whole=True)


_KNOWN = (
    # GPT-2; the same pattern in Phi-2 (CodeGen's tokenizer) and RoBERTa.
    PreName("gpt-2", _GPT2),
    PreName("phi-2", _GPT2),
    PreName("roberta-bpe", _GPT2),
    # GPT-NeoX's tokenizer.
    PreName("olmo", _GPT2, form="NFC"),
    PreName("mpt", _GPT2, form="NFC"),
    # Llama 3, and what has its pattern, but does not take chunks whole.
    *(_of_llama3(name, whole=True) for name in ("llama-bpe", "llama-v3", "llama3")),
    *(_of_llama3(name, whole=False) for name in ("dbrx", "smaug-bpe")),
    PreName("qwen2", _QWEN2, _without_long_s(_QWEN2.pattern), form="NFC"),
    PreName("qwen35", _QWEN35, _without_long_s(_QWEN35.pattern), form="NFC"),
    PreName("deepseek-v3", _DEEPSEEK_V3),
    *(_of_o200k(name) for name in ("gpt-4o", "llama4")),
    PreName(
        "tekken",
        _TEKKEN,
        _by_ascii_case(_TEKKEN.pattern),
        whole=True,
        their_whole=True,
        adds_bos=True,
    ),
    # Each digit by itself, and then GPT-2's pattern.
    PreName("starcoder", _DIGITS, _THEIR_DIGITS),
    PreName("smollm", _DIGITS, _THEIR_DIGITS),
    PreName("command-r", _DIGITS, _THEIR_DIGITS, form="NFC"),
)
KNOWN = MappingProxyType({row.name: row for row in _KNOWN})
"""The names that are read, with what they stand for."""

_NEAREST = {PATTERNS["cl100k"]: "llama-bpe"}
"""For patterns without a name: that of one which cuts alike, but for texts that few models tell apart."""


def name_for(spec: ModelSpec) -> PreName | None:
    """The name for how a model cuts texts; None if there is none.

    Of several, it is the first that takes chunks whole if the model does.
    """
    if spec.splitter is None:
        return None
    own = (spec.splitter.pattern, *spec.splitter.then)
    rows = [row for row in _KNOWN if row.patterns == own]
    same = [row for row in rows if row.their_whole == spec.whole]
    return next(iter([*same, *rows]), None)


def nearest(spec: ModelSpec) -> PreName | None:
    """The name of a pattern that is nearly that of a model; None if there is none."""
    own = spec.splitter
    name = None if own is None or own.then else _NEAREST.get(own.pattern)
    return None if name is None else KNOWN[name]
