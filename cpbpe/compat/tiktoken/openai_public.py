"""OpenAI's encodings: the arguments of `Encoding` for each. The ranks are read from tiktoken's files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cpbpe.compat.tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
from cpbpe.text.split_patterns import OTHER_NAMES, PATTERNS

ENDOFTEXT = "<|endoftext|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_SUFFIX = "<|fim_suffix|>"
ENDOFPROMPT = "<|endofprompt|>"

_PLACE = "https://openaipublic.blob.core.windows.net"
_R50K = ("r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930")
_P50K = ("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069")
_CL100K = ("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7")
_O200K = ("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d")
_FIRST_HARMONY, _AFTER_HARMONY = 199998, 201088
_HARMONY = {
    199998: "<|startoftext|>",
    199999: ENDOFTEXT,
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
}
"""The tokens of o200k_harmony that have names of their own. The names of the others have their ids."""


def gpt2() -> dict[str, Any]:
    """GPT-2, from its own two files."""
    ranks = data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=f"{_PLACE}/gpt-2/encodings/main/vocab.bpe",
        encoder_json_file=f"{_PLACE}/gpt-2/encodings/main/encoder.json",
        vocab_bpe_hash="1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        encoder_json_hash="196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    )
    return _arguments("gpt2", ranks, {ENDOFTEXT: 50256}, 50257)


def _arguments(
    name: str, ranks: dict[bytes, int], special: dict[str, int], size: int | None
) -> dict[str, Any]:
    return {
        "name": name,
        "pat_str": PATTERNS[OTHER_NAMES.get(name, name)],
        "mergeable_ranks": ranks,
        "special_tokens": special,
        **({} if size is None else {"explicit_n_vocab": size}),
    }


def _published(
    name: str, file: tuple[str, str], special: dict[str, int], size: int | None = None
) -> dict[str, Any]:
    ranks = load_tiktoken_bpe(f"{_PLACE}/encodings/{file[0]}.tiktoken", expected_hash=file[1])
    return _arguments(name, ranks, dict(special), size)


def _harmony() -> dict[str, int]:
    """The special tokens of o200k_harmony. Two of them have the same id: 200018."""
    tokens = {ENDOFTEXT: 199999, ENDOFPROMPT: 200018}
    for id in range(_FIRST_HARMONY, _AFTER_HARMONY):
        tokens[_HARMONY.get(id, f"<|reserved_{id}|>")] = id
    return tokens


r50k_base = partial(_published, "r50k_base", _R50K, {ENDOFTEXT: 50256}, 50257)
p50k_base = partial(_published, "p50k_base", _P50K, {ENDOFTEXT: 50256}, 50281)
p50k_edit = partial(
    _published,
    "p50k_edit",
    _P50K,
    {ENDOFTEXT: 50256, FIM_PREFIX: 50281, FIM_MIDDLE: 50282, FIM_SUFFIX: 50283},
)
cl100k_base = partial(
    _published,
    "cl100k_base",
    _CL100K,
    {
        ENDOFTEXT: 100257,
        FIM_PREFIX: 100258,
        FIM_MIDDLE: 100259,
        FIM_SUFFIX: 100260,
        ENDOFPROMPT: 100276,
    },
)
o200k_base = partial(_published, "o200k_base", _O200K, {ENDOFTEXT: 199999, ENDOFPROMPT: 200018})
o200k_harmony = partial(_published, "o200k_harmony", _O200K, _harmony())

ENCODING_CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] = {
    "gpt2": gpt2,
    "r50k_base": r50k_base,
    "p50k_base": p50k_base,
    "p50k_edit": p50k_edit,
    "cl100k_base": cl100k_base,
    "o200k_base": o200k_base,
    "o200k_harmony": o200k_harmony,
}
"""What makes the arguments of each encoding."""
