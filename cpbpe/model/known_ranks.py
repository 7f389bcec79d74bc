"""Well-known files of ranks, by their hashes: the patterns and special tokens that the files do not have.

The libraries that use these files have both in their code: tiktoken, llama-models, and Qwen's tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

_END = "<|endoftext|>"
_FILL = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_PROMPT_END = "<|endofprompt|>"


class Known(NamedTuple):
    """What is known about a file of ranks besides."""

    pattern: str
    """The name of its pattern."""
    special_tokens: Mapping[str, int]
    """Its special tokens."""
    begin: str = ""
    """That of them which begins a text."""
    end: str = _END
    """That of them which ends a text."""


def _numbered(first: int, *tokens: str) -> dict[str, int]:
    return {token: first + place for place, token in enumerate(tokens)}


_LLAMA3 = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
    *(f"<|reserved_special_token_{number}|>" for number in range(2, 246)),
)
_LLAMA4_KINDS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    *_FILL,
    *("<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"),
    *(f"<|text_post_train_reserved_special_token_{number}|>" for number in range(6)),
    *("<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"),
    *(f"<|text_post_train_reserved_special_token_{number}|>" for number in range(8, 69)),
    *("<|image_start|>", "<|image_end|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(2)),
    *("<|tile_x_separator|>", "<|tile_y_separator|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(2, 6)),
    *("<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(7, 1048)),
    *(f"<|reasoning_reserved_special_token_{number}|>" for number in range(8)),
    *("<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"),
)
_LLAMA4 = (*_LLAMA4_KINDS, *(f"<|reserved_special_token_{n}|>" for n in range(2048 - len(_LLAMA4_KINDS))))
_QWEN = (_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205)))

_WELL_KNOWN: dict[str, Known] = {
    # r50k_base: GPT-3, with GPT-2's ranks.
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": Known("gpt2", {_END: 50256}),
    # p50k_base: Codex. <|endoftext|> is in the middle of the ranks. (p50k_edit has three more.)
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": Known("gpt2", {_END: 50256}),
    # cl100k_base: GPT-3.5 and GPT-4.
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Known(
        "cl100k", {**_numbered(100257, _END, *_FILL), _PROMPT_END: 100276}
    ),
    # o200k_base: GPT-4o. (o200k_harmony has more.)
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Known(
        "o200k", {_END: 199999, _PROMPT_END: 200018}
    ),
    # Llama 3: its tokenizer.model. The names are those of Llama 3.1 and 3.2.
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": Known(
        "llama3", _numbered(128000, *_LLAMA3), "<|begin_of_text|>", "<|end_of_text|>"
    ),
    # Llama 4: its tokenizer.model.
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": Known(
        "o200k", _numbered(200000, *_LLAMA4), "<|begin_of_text|>", "<|end_of_text|>"
    ),
    # qwen.tiktoken: Qwen, the first generation.
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": Known(
        "qwen2", _numbered(151643, *_QWEN)
    ),
}
"""By the SHA-256 of the file."""


def known_ranks(data: bytes) -> Known | None:
    """What is known about a file of ranks besides; None if it is not a well-known one."""
    return _WELL_KNOWN.get(sha256(data).hexdigest())
