"""`SentencePieceNormalizer`: normalization alone, with the rules of a model, named rules, or your own.

`SentencePieceProcessor` also uses the function `normalized`.
"""
# ruff: noqa: N802

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any, Protocol

from cpbpe.compat.sentencepiece.loaded import calls_of, normalized_text, normalized_texts
from cpbpe.compat.sentencepiece.values import (
    as_bool,
    as_name,
    as_serialized,
    as_text,
    is_list_like,
    not_utf8,
    read_file,
    utf8,
)
from cpbpe.engine.choice import make_engine
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.reference.encoding import Normalizer
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_positions, text_of

MAX_KEY = 1000
"""Listing the rules fails if a key is longer, as in sentencepiece."""
MAX_NODES = 1 << 25
"""Listing the rules fails after this many nodes: a crafted charsmap can have astronomically many rules."""

_FLAGS = ("add_dummy_prefix", "escape_whitespaces", "remove_extra_whitespaces")


class SentencePieceNormalizer:
    """Normalizes text. One of the first six arguments provides the rules; the last three set options.

    >>> normalizer = SentencePieceNormalizer(norm_map=[("foo", "bar")])
    >>> normalizer.normalize("a  foo"), normalizer.decompile()
    ('▁a▁bar', [('foo', 'bar')])
    >>> SentencePieceNormalizer(model_file="tokenizer.model", add_dummy_prefix=False).normalize("a  foo")
    'a▁▁foo'
    """

    def __init__(
        self,
        model_file: str | bytes | None = None,
        model_proto: Any = None,
        normalizer_spec: Any = None,
        rule_tsv: str | bytes | None = None,
        rule_name: str | bytes | None = None,
        norm_map: Iterable[tuple[str, str]] | None = None,
        add_dummy_prefix: bool | None = None,
        escape_whitespaces: bool | None = None,
        remove_extra_whitespaces: bool | None = None,
    ) -> None:
        if model_file:
            spec = _of_model(read_file(as_name(model_file, "model_file")))
        elif model_proto:
            spec = _of_model(as_serialized(model_proto, "model_proto"))
        elif normalizer_spec:
            spec = _parsed("NormalizerSpec", as_serialized(normalizer_spec, "normalizer_spec"))
        elif rule_tsv:
            spec = _of_file(as_name(rule_tsv, "rule_tsv"))
        elif rule_name:
            spec = _of_name(as_name(rule_name, "rule_name"))
        elif norm_map:
            spec = _of_map(norm_map)
        else:
            raise ValueError("give model_file, model_proto, normalizer_spec, rule_tsv, rule_name or norm_map")
        normalizer = LoadedNormalizer(spec)
        for name, value in zip(
            _FLAGS, (add_dummy_prefix, escape_whitespaces, remove_extra_whitespaces), strict=True
        ):
            if value is not None:
                setattr(spec, name, as_bool(value, name))
        self._normalizer = normalizer

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """The normalized text or texts.

        With offsets: a tuple of the text and, for each of its characters (bytes, for bytes) and for its end,
        the position in the input that it came from.
        """
        return normalized(self._normalizer, input, with_offsets)

    def Decompile(self) -> list[tuple[str, str]]:
        """The rules as pairs of what is replaced and its replacement, in the order of code points."""
        charsmap = self._normalizer.spec.precompiled_charsmap
        if not charsmap:
            raise RuntimeError("this normalizer has no rules to decompile")
        listed = Charsmap(charsmap, trusted=True).rules(MAX_NODES, MAX_KEY, follow_empty=True)
        try:
            rules = {text_of(source): text_of(target) for source, target in listed}
        except ModelError as error:
            raise RuntimeError(str(error)) from error
        return sorted(rules.items())

    def serialized_model_proto(self) -> bytes:
        """A model file that holds the rules and nothing else."""
        spec = self._normalizer.spec
        data: bytes = model_file.messages().ModelProto(normalizer_spec=spec).SerializeToString()
        return data

    def serialized_normalizer_spec(self) -> bytes:
        """The rules as a NormalizerSpec message."""
        data: bytes = self._normalizer.spec.SerializeToString()
        return data

    def __getstate__(self) -> bytes:
        return self.serialized_model_proto()

    def __setstate__(self, serialized_model_proto: bytes) -> None:
        self._normalizer = LoadedNormalizer(_of_model(serialized_model_proto))

    normalize = Normalize
    decompile = Decompile


class Normalizing(Protocol):
    """What `normalized` needs: a `LoadedNormalizer`, or the loaded model of a processor."""

    @property
    def engine(self) -> Engine:
        """The engine, or an error if there is none."""

    @property
    def calls(self) -> Any:
        """The core's functions for this drop-in, or None."""

    @property
    def reference(self) -> Normalizer:
        """The normalizer in plain Python, which rewrites one character at a time."""

    def normalize(self, text: str | bytes) -> str | bytes:
        """The normalized text, str for str and bytes for bytes."""

    def normalize_all(self, texts: list[Any]) -> list[Any] | None:
        """`normalize` for many; None if one has another type, or one by one is better."""


class LoadedNormalizer:
    """A NormalizerSpec message, with an engine and a reference normalizer that apply it."""

    def __init__(self, spec: Any):
        self.spec = spec
        try:
            if spec.precompiled_charsmap:
                Charsmap(spec.precompiled_charsmap)
        except ModelError as error:
            raise RuntimeError(str(error)) from error

    @kept
    def engine(self) -> Engine:
        """An engine for a model with this normalizer and a single piece."""
        unknown = Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)])
        return make_engine(ModelSpec(unknown, model_file.normalizer_of(self.spec)))

    @kept
    def calls(self) -> Any:
        """The core's functions for this drop-in, or None."""
        return calls_of(self.engine)

    @kept
    def reference(self) -> Normalizer:
        """The normalizer in plain Python, which rewrites one character at a time."""
        spec = self.spec
        return Normalizer(
            NormalizerSpec(
                charsmap=spec.precompiled_charsmap,
                add_dummy_prefix=spec.add_dummy_prefix,
                remove_extra_whitespaces=spec.remove_extra_whitespaces,
                escape_whitespaces=spec.escape_whitespaces,
            ),
            Finder([]),
        )

    def normalize(self, text: str | bytes) -> str | bytes:
        """The normalized text."""
        return normalized_text(self.engine, text)

    def normalize_all(self, texts: list[Any]) -> list[Any] | None:
        """`normalize` for many texts."""
        return normalized_texts(self.calls, self.engine, texts)


def normalized(model: Normalizing, input: Any, with_offsets: bool | None) -> Any:
    """What `Normalize` returns for a text or a list of texts."""
    if type(input) is list and not with_offsets:
        texts = model.normalize_all(input)
        if texts is not None:
            return texts
    if isinstance(input, list):
        return [normalized(model, text, with_offsets) for text in map(as_text, input)]
    text = as_text(input)
    return _with_origins(model, text) if with_offsets else model.normalize(text)


def _with_origins(model: Normalizing, text: str | bytes) -> tuple[Any, list[int]]:
    """A normalized text, and the position in the input that each of its characters or bytes came from."""
    engine = model.engine
    if isinstance(text, str) and model.calls is not None:
        try:
            found: tuple[str, list[int]] | None = model.calls.character_origins(engine, text)
        except UnicodeEncodeError as error:
            raise not_utf8(error) from error
        if found is not None:
            return found
    data = utf8(text)
    normalized, origins = model.engine.origins(data)
    if not normalized and _only_spaces(model.reference, data):
        origins = []  # sentencepiece returns early in this case
    if isinstance(text, bytes):
        return normalized, origins
    decoded = normalized.decode()
    if not origins:
        return decoded, [0]
    if not normalized.isascii():  # a character came from the position of its last byte
        begins = [byte & 0xC0 != 0x80 for byte in normalized]
        origins = list(compress(origins, [*begins[1:], True, True]))
    if not data.isascii():
        before = character_positions(data, by_first_byte=True)
        origins = [before[origin] for origin in origins]
    return decoded, origins


def _only_spaces(normalizer: Normalizer, data: bytes) -> bool:
    """Whether every character of the text becomes one space, and spaces are removed."""
    at = 0
    while normalizer.spec.remove_extra_whitespaces and at < len(data):
        rewritten, used = normalizer.rewrite(data, at, False)
        if rewritten != b" ":
            return False
        at += used
    return at == len(data)


def _parsed(message: str, data: bytes) -> Any:
    try:
        return getattr(model_file.messages(), message).FromString(data)
    except model_file.decode_error() as error:
        raise RuntimeError(f"the data is not a {message} message: {error}") from error


def _of_model(data: bytes) -> Any:
    return _parsed("ModelProto", data).normalizer_spec


def _of_file(name: str | bytes) -> Any:
    from cpbpe.text.charsmap_build import charsmap_from_tsv

    data = read_file(name)
    try:
        charsmap = charsmap_from_tsv(data.decode())
    except ValueError as error:
        raise RuntimeError(f"{name!r}: {error}") from error
    path = name if isinstance(name, bytes) else name.encode()
    return model_file.messages().NormalizerSpec(
        name=b"user_defined", precompiled_charsmap=charsmap, normalization_rule_tsv=path
    )


def _of_name(name: str | bytes) -> Any:
    from cpbpe.text.charsmap import rule_charsmap
    from cpbpe.training.options import RULE_NAMES

    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    if text not in RULE_NAMES:
        raise RuntimeError(f"there are no normalization rules {text!r}; there are {', '.join(RULE_NAMES)}")
    return model_file.messages().NormalizerSpec(name=text.encode(), precompiled_charsmap=rule_charsmap(text))


def _of_map(norm_map: Any) -> Any:
    from cpbpe.text.charsmap_build import charsmap_from_rules

    if not is_list_like(norm_map):
        hint = "; give it its items()" if isinstance(norm_map, dict) else ""
        raise TypeError(f"norm_map must be a list of pairs, not {type(norm_map).__name__}{hint}")
    rules: dict[str, str] = {}
    pairs = [_pair(pair) for pair in norm_map]
    if not pairs:
        raise RuntimeError("norm_map holds no rules")
    for source, target in pairs:
        if source in rules:
            raise ValueError(f"norm_map has two rules for {source!r}")
        if not source:
            raise ValueError(f"norm_map has a rule for nothing, which becomes {target!r}")
        if source == target:
            raise ValueError(f"norm_map has a rule that changes nothing, {source!r}; leave it out")
        if "\0" in source + target:
            raise ValueError(
                f"norm_map has U+0000 in the rule {source!r} -> {target!r}, which no rule can hold"
            )
        rules[source] = target
    try:
        charsmap = charsmap_from_rules(rules.items())
    except ValueError as error:
        raise RuntimeError(f"norm_map: {error}") from error
    return model_file.messages().NormalizerSpec(precompiled_charsmap=charsmap)


def _pair(pair: Any) -> tuple[str, str]:
    """One rule. Bytes are accepted, too; invalid UTF-8 raises UnicodeDecodeError."""
    fields = list(pair) if hasattr(pair, "__getitem__") and not isinstance(pair, (bytes, dict)) else []
    if len(fields) != 2 or not all(isinstance(field, (str, bytes, bytearray)) for field in fields):
        raise TypeError(f"norm_map must hold pairs of str, not {pair!r}")
    source, target = (as_name(field, "norm_map") for field in fields)
    return _decoded(source), _decoded(target)


def _decoded(field: str | bytes) -> str:
    return field.decode() if isinstance(field, bytes) else field
