"""The values in a GGUF file that are about the tokenizer: their keys, and access that checks their types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from cpbpe.model.formats.gguf.container import Value, wrong
from cpbpe.model.spec import Carried

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
"""A key of cpbpe: the Unicode normal form that a byte-level model brings texts into, or an empty text.
Without this key, it is the form of the models that the name under PRE stands for, see `llamacpp`."""
PREFIX = "cpbpe.add_prefix_space"
"""A key of cpbpe: whether a byte-level model puts a space in front of texts that do not begin with one."""
SPLIT_NUMBER = "split.no"
SPLIT_COUNT = "split.count"

BYTE_LEVEL = "gpt2"
"""The value under MODEL for byte-level BPE."""

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
"""The keys for the ids of tokens that have a role, by the name of the role."""

OLD_ROLES = {
    "fim_pre": "tokenizer.ggml.prefix_token_id",
    "fim_suf": "tokenizer.ggml.suffix_token_id",
    "fim_mid": "tokenizer.ggml.middle_token_id",
}
"""Older keys for some roles."""

DEFAULT_ROLES = {"unk": 0, "bos": 1, "eos": 2}
"""The ids that llama.cpp assumes for these roles in a "llama" tokenizer if the file does not say."""

NO_TOKEN = 0xFFFFFFFF
"""The id that means "no token": -1 in 32 bits."""


T = TypeVar("T", bool, int, bytes)
_NAMES: dict[type, str] = {bool: "a bool", int: "an integer", bytes: "a string"}


@dataclass
class TypedValues:
    """The values of a file, with notes about them for the user."""

    values: dict[str, Value]
    notes: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def texts(self) -> list[bytes]:
        """Return the texts of the pieces, as the file has them."""
        texts = self.array(TOKENS, "array of string")
        if texts is None:
            wrong(f"it has a tokenizer without pieces: there is no {TOKENS}")
        if not texts:
            wrong(f"{TOKENS} is empty")
        return list(texts)

    def types(self, size: int) -> list[int] | None:
        """Return the types of this many pieces, each from 0 to 6; None if the file has none."""
        given = self.array(
            TYPES, *(f"array of {sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
        )
        if given is None:
            return None
        self.check_size(TYPES, len(given), size)
        undefined = given.count(0)
        if undefined:
            self.notes.append(f"{undefined} pieces have no type (0, UNDEFINED), which is read as NORMAL")
        for id, type in enumerate(given):
            if not 0 <= type <= 6:
                wrong(f"{TYPES}[{id}] is {type}, and types are 1 to 6")
        return list(given)

    def role(self, role: str, size: int) -> int | None:
        """Return the id that has a role, out of this many ids; None if the file does not say it."""
        key = ROLES[role]
        if key not in self.values and role in OLD_ROLES:
            key = OLD_ROLES[role]
        id = self.one(key, -1)
        if 0 <= id < size:
            return id
        if key in self.values and id not in (-1, NO_TOKEN):
            self.notes.append(f"{key} is {id}, which is the id of no piece; it is passed over")
        return None

    def templates(self) -> dict[str, str]:
        """Return the chat templates, by name."""
        found = {}
        for key in sorted(self.values):
            if key == TEMPLATE or key.startswith(TEMPLATE + "."):
                name = key[len(TEMPLATE) + 1 :] or "default"
                found[name] = self.one(key, b"").decode(errors="replace")
        return found

    def carried(self, roles: dict[str, str], adds_bos: bool) -> Carried:
        """Return what the file says in addition to the model.

        `adds_bos` says whether bos goes in front of texts if the file does not say it.
        """
        asked = {"add_bos": self.one(ADD_BOS, adds_bos), "add_eos": self.one(ADD_EOS, False)}
        return Carried({name: True for name, on in asked.items() if on}, roles, self.templates())

    # --- Values of the expected types --------------------------------------------------------------

    def array(self, key: str, *types: str) -> Any:
        """Return an array, which must have one of these types; None if there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if value.type not in types:
            wrong(f"{key} must be an {types[0]}, and is {value.type}")
        return value.content

    def check_size(self, key: str, given: int, size: int) -> None:
        """Refuse an array that does not have one value for each piece."""
        if given != size:
            wrong(f"{key} has {given:,} values, and there are {size:,} pieces")

    def one(self, key: str, default: T) -> T:
        """Return a single value, which must have the type of the default; the default if there is none."""
        value = self.values.get(key)
        if value is None:
            return default
        if type(value.content) is not type(default):
            wrong(f"{key} must be {_NAMES[type(default)]}, and is {value.type}")
        content: T = value.content
        return content
