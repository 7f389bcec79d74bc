"""A `ModelSpec` as columns (bytes, numbers and flags), which cross the border to the core, and back."""

from __future__ import annotations

from typing import Any, TypedDict

from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, SplitSpec

NormalizerColumns = tuple[bytes, bytes, bool, bool, bool, bool, bool, str]
"""Name, charsmap, and the other fields of `NormalizerSpec` in their order."""


ByteLevelColumns = tuple[str, str, bool, list[str]]
"""The pattern of the splitter, empty if there is none; its name; `whole`; the patterns after the first."""


class Columns(TypedDict):
    """A model without its settings; see `Pieces` and `ModelSpec` for the meanings."""

    blob: bytes
    ends: bytes
    scores: bytes
    types: bytes
    byte_fallback: bool
    unk_surface: bytes
    special_pieces: tuple[bytes, bytes, bytes, bytes]
    normalizer: NormalizerColumns
    denormalizer: NormalizerColumns | None
    added: list[tuple[bytes, int]]
    byte_level: ByteLevelColumns | None


def columns_of(spec: ModelSpec) -> Columns:
    """The columns of a model."""
    pieces = spec.pieces
    return {
        "blob": pieces.blob,
        "ends": pieces.ends,
        "scores": pieces.scores,
        "types": pieces.types,
        "byte_fallback": spec.byte_fallback,
        "unk_surface": spec.unk_surface,
        "special_pieces": spec.special_pieces,
        "normalizer": _normalizer_columns(spec.normalizer),
        "denormalizer": None if spec.denormalizer is None else _normalizer_columns(spec.denormalizer),
        "added": list(spec.added),
        "byte_level": _byte_level_columns(spec),
    }


def spec_of(columns: Columns, file: bytes | None = None) -> ModelSpec:
    """The model in columns, and the file it came from. Its `settings` are empty: only files have them."""
    denormalizer = columns["denormalizer"]
    return ModelSpec(
        pieces=Pieces(columns["blob"], columns["ends"], columns["scores"], columns["types"]),
        normalizer=_normalizer_spec(columns["normalizer"]),
        denormalizer=None if denormalizer is None else _normalizer_spec(denormalizer),
        byte_fallback=columns["byte_fallback"],
        unk_surface=columns["unk_surface"],
        special_pieces=columns["special_pieces"],
        added=tuple(columns["added"]),
        **_byte_level_fields(columns["byte_level"]),
        file=file,
    )


def _byte_level_columns(spec: ModelSpec) -> ByteLevelColumns | None:
    if spec.alphabet == "characters":
        return None
    splitter = spec.splitter or SplitSpec("")
    return splitter.pattern, splitter.name, spec.whole, list(splitter.then)


def _byte_level_fields(columns: ByteLevelColumns | None) -> dict[str, Any]:
    if columns is None:
        return {}
    pattern, name, whole, then = columns
    splitter = SplitSpec(pattern, name, tuple(then)) if pattern else None
    return {"alphabet": "bytes", "splitter": splitter, "whole": whole}


def _normalizer_columns(spec: NormalizerSpec) -> NormalizerColumns:
    return (
        spec.name.encode(),
        spec.charsmap,
        spec.add_dummy_prefix,
        spec.remove_extra_whitespaces,
        spec.escape_whitespaces,
        spec.suffix,
        spec.prefix_before_space,
        spec.unicode_form,
    )


def _normalizer_spec(columns: NormalizerColumns) -> NormalizerSpec:
    return NormalizerSpec(columns[0].decode(errors="replace"), *columns[1:])
