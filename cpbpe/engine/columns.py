"""From a `ModelSpec` to columns (bytes, numbers and flags), which cross the border to the core, and back."""

from __future__ import annotations

from typing import Any, TypedDict

from cpbpe.model.spec import Carried, ModelSpec, NormalizerSpec, Pieces, SplitSpec


class NormalizerColumns(TypedDict):
    """A `NormalizerSpec`, with its name in UTF-8."""

    name: bytes
    charsmap: bytes
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool
    suffix: bool
    prefix_before_space: bool
    unicode_form: str


class ByteLevelColumns(TypedDict):
    """What only a byte-level model has: its `SplitSpec`, and `ModelSpec.whole`."""

    pattern: str
    """Empty if there is no splitter."""
    name: str
    then: list[str]
    whole: bool


class ModelColumns(TypedDict):
    """A model without its pieces and settings; see `ModelSpec` for the meanings."""

    byte_fallback: bool
    unk_surface: bytes
    special_pieces: tuple[bytes, bytes, bytes, bytes]
    normalizer: NormalizerColumns
    denormalizer: NormalizerColumns | None
    added: list[tuple[bytes, int]]
    carries: bool
    """Whether the model carries anything, see `Carried`."""
    byte_level: ByteLevelColumns | None
    """None if the model is not byte-level."""


class Columns(ModelColumns):
    """The same with its pieces; see `Pieces`."""

    blob: bytes
    ends: bytes
    scores: bytes
    types: bytes


def head_of(spec: ModelSpec) -> ModelColumns:
    """The columns of a model that are not about its pieces."""
    byte_level: ByteLevelColumns | None = None
    if spec.alphabet == "bytes":
        splitter = spec.splitter or SplitSpec("")
        byte_level = {
            "pattern": splitter.pattern,
            "name": splitter.name,
            "then": list(splitter.then),
            "whole": spec.whole,
        }
    return {
        "byte_fallback": spec.byte_fallback,
        "unk_surface": spec.unk_surface,
        "special_pieces": spec.special_pieces,
        "normalizer": _normalizer_columns(spec.normalizer),
        "denormalizer": None if spec.denormalizer is None else _normalizer_columns(spec.denormalizer),
        "added": list(spec.added),
        "carries": spec.carried != Carried(),
        "byte_level": byte_level,
    }


def columns_of(spec: ModelSpec) -> Columns:
    """The columns of a model."""
    pieces = spec.pieces
    return {
        **head_of(spec),
        "blob": pieces.blob,
        "ends": pieces.ends,
        "scores": pieces.scores,
        "types": pieces.types,
    }


def spec_of(columns: Columns, file: bytes | None = None) -> ModelSpec:
    """Return the model in columns. `file` is the file that it came from.

    Columns have no settings, so the `settings` of the model are empty.
    """
    fields: dict[str, Any] = {}
    byte_level = columns["byte_level"]
    if byte_level is not None:
        splitter = SplitSpec(byte_level["pattern"], byte_level["name"], tuple(byte_level["then"]))
        fields = {
            "alphabet": "bytes",
            "splitter": splitter if splitter.pattern else None,
            "whole": byte_level["whole"],
        }
    denormalizer = columns["denormalizer"]
    return ModelSpec(
        pieces=Pieces(columns["blob"], columns["ends"], columns["scores"], columns["types"]),
        normalizer=_normalizer_spec(columns["normalizer"]),
        denormalizer=None if denormalizer is None else _normalizer_spec(denormalizer),
        byte_fallback=columns["byte_fallback"],
        unk_surface=columns["unk_surface"],
        special_pieces=columns["special_pieces"],
        added=tuple(columns["added"]),
        **fields,
        file=file,
    )


def _normalizer_columns(spec: NormalizerSpec) -> NormalizerColumns:
    columns: Any = {**vars(spec), "name": spec.name.encode()}
    return columns  # type: ignore[no-any-return]


def _normalizer_spec(columns: NormalizerColumns) -> NormalizerSpec:
    fields: dict[str, Any] = {**columns, "name": columns["name"].decode(errors="replace")}
    return NormalizerSpec(**fields)
