"""Truncation and padding in a tokenizer.json: they change how many ids a text has, and belong to no model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cpbpe.model.formats.tokenizer_json.checked import shown
from cpbpe.model.formats.tokenizer_json.merging import UNKNOWN, Merging
from cpbpe.model.formats.tokenizer_json.names import Names, absent_character
from cpbpe.model.formats.tokenizer_json.spaces import Json, normalized
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import ModelSpec
from cpbpe.text.utf8 import text_of

_LONGEST = 1000
"""For more tokens no text is made that shows it."""


@dataclass
class Lengths:
    """What a file says about the number of ids."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_lengths(content: Json, spec: ModelSpec) -> Lengths:
    """What a file does to texts that are too long or too short."""
    found = Lengths()
    truncation, padding = content.get("truncation"), content.get("padding")
    if truncation is not None:
        most = truncation.get("max_length") if isinstance(truncation, dict) else truncation
        reason = f"it cuts every text to {shown(most)} tokens (truncation)"
        found.differences.append(Difference(reason, _long_text(most, spec)))
    if padding is not None:
        settings: Json = padding if isinstance(padding, dict) else {}
        strategy = settings.get("strategy")
        length = strategy.get("Fixed") if isinstance(strategy, dict) else None
        multiple = settings.get("pad_to_multiple_of")
        if length:
            reason = f"it fills every text up to {shown(length)} tokens (padding)"
            found.differences.append(Difference(reason, ""))
        elif multiple not in (None, 0, 1):
            reason = f"it fills every text up to a multiple of {shown(multiple)} tokens (padding)"
            found.differences.append(Difference(reason, _odd_text(multiple, spec)))
        else:
            found.notes.append(
                "tokenizers fills up the shorter texts of a batch (padding); here, "
                "encode_arrays(texts).padded() does"
            )
    return found


def _odd_text(multiple: Any, spec: ModelSpec) -> str | None:
    """A text whose tokens are no multiple of a number."""
    if type(multiple) is not int or spec.alphabet == "bytes":
        return None
    merging = Merging(Names(spec))
    for text in ("a", "a b", "b", "1", "a b c"):
        symbols = merging.pieces_of(normalized(spec.normalizer, text))
        known = all(symbol[0] != UNKNOWN for symbol in symbols)
        if known and len(symbols) % multiple:
            return text
    return None


def _long_text(most: Any, spec: ModelSpec) -> str | None:
    """A text of more tokens: by turns a character that is a piece, and one that is none and never merges."""
    if spec.alphabet == "bytes":
        return None
    texts = list(map(text_of, spec.pieces.texts))
    single = next((text for text in texts if len(text) == 1 and text not in "\0\u2581 "), None)
    if type(most) is not int or not 0 <= most <= _LONGEST or single is None:
        return None
    return (single + absent_character(texts)) * (most // 2 + 1)
