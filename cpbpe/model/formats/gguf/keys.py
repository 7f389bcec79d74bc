"""The keys of a GGUF file that are about its tokenizer, as readers and writers call them."""

from __future__ import annotations

MODEL = "tokenizer.ggml.model"
PRE = "tokenizer.ggml.pre"
TOKENS = "tokenizer.ggml.tokens"
SCORES = "tokenizer.ggml.scores"
TYPES = "tokenizer.ggml.token_type"
MERGES = "tokenizer.ggml.merges"
ADD_BOS = "tokenizer.ggml.add_bos_token"
ADD_EOS = "tokenizer.ggml.add_eos_token"
ADD_PREFIX = "tokenizer.ggml.add_space_prefix"
REMOVE_SPACES = "tokenizer.ggml.remove_extra_whitespaces"
CHARSMAP = "tokenizer.ggml.precompiled_charsmap"
TEMPLATE = "tokenizer.chat_template"
TEMPLATES = "tokenizer.chat_templates"
ARCHITECTURE = "general.architecture"
FORM = "cpbpe.unicode_form"
"""Our own: the Unicode normal form that a byte-level model brings texts into, or nothing. Without this key it
is that of the models whose name the file has under PRE, see `pre_names`."""
PREFIX = "cpbpe.add_prefix_space"
"""Our own: whether a byte-level model puts a space in front of texts that do not begin with one."""
SPLIT_NUMBER = "split.no"
SPLIT_COUNT = "split.count"

BYTE_LEVEL = "gpt2"
"""What MODEL is for byte-level BPE."""

ROLES = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "pad": "tokenizer.ggml.padding_token_id",
    "eot": "tokenizer.ggml.eot_token_id",
    "eom": "tokenizer.ggml.eom_token_id",
    "sep": "tokenizer.ggml.seperator_token_id",  # spelled so in the format
    "cls": "tokenizer.ggml.cls_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
    "fim_pre": "tokenizer.ggml.fim_pre_token_id",
    "fim_suf": "tokenizer.ggml.fim_suf_token_id",
    "fim_mid": "tokenizer.ggml.fim_mid_token_id",
    "fim_pad": "tokenizer.ggml.fim_pad_token_id",
    "fim_rep": "tokenizer.ggml.fim_rep_token_id",
    "fim_sep": "tokenizer.ggml.fim_sep_token_id",
}
"""The keys of the ids that have a part, by the name of the part."""

OLD_ROLES = {
    "fim_pre": "tokenizer.ggml.prefix_token_id",
    "fim_suf": "tokenizer.ggml.suffix_token_id",
    "fim_mid": "tokenizer.ggml.middle_token_id",
}
"""Older names of some."""

DEFAULT_ROLES = {"unk": 0, "bos": 1, "eos": 2}
"""What llama.cpp takes these for in a "llama" tokenizer if the file does not say."""

NO_TOKEN = 0xFFFFFFFF
"""The id of no token: -1 as 32 bits."""
