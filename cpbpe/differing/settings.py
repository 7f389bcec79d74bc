"""What else is different: normalization, special tokens, cutting, and what training left in the file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from cpbpe.differing.values import SettingChange
from cpbpe.tokenizer.tokenizer import Tokenizer

_NO_ENCODING = ("denormalizer", "unk_surface", "settings", "carried", "bos_id", "eos_id", "pad_id")
"""What these begin with says nothing about the ids of a text."""
_LONGEST = 120


def setting_changes(old: Tokenizer, new: Tokenizer) -> list[SettingChange]:
    """Every setting that is not the same."""
    first, second = dict(_settings(old)), dict(_settings(new))
    return [
        SettingChange(
            name, _shown(first.get(name)), _shown(second.get(name)), not name.startswith(_NO_ENCODING)
        )
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def _settings(tok: Tokenizer) -> Iterator[tuple[str, Any]]:
    spec = tok.spec
    yield "alphabet", spec.alphabet
    yield "byte_fallback", spec.byte_fallback
    yield "whole", spec.whole
    for name in (
        "name",
        "charsmap",
        "add_dummy_prefix",
        "remove_extra_whitespaces",
        "escape_whitespaces",
        "suffix",
    ):
        yield f"normalizer.{name}", getattr(spec.normalizer, name)
    yield "normalizer.prefix_before_space", spec.normalizer.prefix_before_space
    yield "normalizer.unicode_form", spec.normalizer.unicode_form
    if spec.denormalizer is not None:
        yield "denormalizer.charsmap", spec.denormalizer.charsmap
    if spec.splitter is not None:
        yield "splitter.pattern", spec.splitter.pattern
        yield "splitter.then", spec.splitter.then
    yield "unk_surface", spec.unk_surface
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        yield name, getattr(tok, name)
    yield "special_tokens", dict(tok.vocab.special_tokens)
    for name, value in spec.settings.trainer.items():
        yield f"settings.trainer.{name}", value
    for part in ("options", "roles", "chat_templates"):
        for name, value in getattr(spec.carried, part).items():
            yield f"carried.{part}.{name}", value


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bytes) and len(value) > 40:
        return f"{len(value):,} bytes, checksum {zlib.crc32(value):08x}"
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
