"""`SentencePieceNormalizer`: normalization alone, with the rules of a model, named rules, or your own.

A `SentencePieceProcessor` normalizes with the same code (`Normalizing`) and the rules of its model.
"""
# ruff: noqa: N802

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import compress
from typing import Any

from cpbpe.compat.sentencepiece.values import (
    as_bool,
    as_name,
    as_serialized,
    as_text,
    in_utf8,
    is_list_like,
    read_file,
    utf8,
)
from cpbpe.engine.choice import make_engine
from cpbpe.engine.columns import spec_of
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import importing, kept
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import MAX_USER_DEFINED_MATCHES, ModelSpec, Piece, Pieces, PieceType
from cpbpe.reference.encoding import Normalizer
from cpbpe.text.charsmap import RULE_NAMES, Charsmap, rule_charsmap
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import character_positions, text_of

MAX_KEY = 1000
"""Listing the rules fails if a key is longer, as in sentencepiece."""
MAX_NODES = 1 << 25
"""Listing the rules fails after this many nodes. (A crafted charsmap can have astronomically many rules.)"""

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
        self._set(spec)
        for name, value in zip(
            _FLAGS, (add_dummy_prefix, escape_whitespaces, remove_extra_whitespaces), strict=True
        ):
            if value is not None:
                setattr(spec, name, as_bool(value, name))

    def _set(self, spec: Any) -> None:
        """Use the rules of a NormalizerSpec message, after checking them."""
        self._spec = spec
        try:
            if spec.precompiled_charsmap:
                Charsmap(spec.precompiled_charsmap)
        except ModelError as error:
            raise RuntimeError(str(error)) from error

    @kept
    def _normalizer(self) -> Normalizing:
        """Normalization by the engine of a model that has the rules and a single piece."""
        unknown = Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)])
        return Normalizing(make_engine(ModelSpec(unknown, model_file.normalizer_of(self._spec))))

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """The normalized text or texts.

        With offsets: a tuple of the text and, for each of its characters (bytes, for bytes) and for its end,
        the position in the input that it came from.
        """
        return self._normalizer.normalized(input, with_offsets)

    def Decompile(self) -> list[tuple[str, str]]:
        """The rules as pairs of what is replaced and its replacement, in the order of code points."""
        charsmap = self._spec.precompiled_charsmap
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
        proto = model_file.messages().ModelProto(normalizer_spec=self._spec)
        data: bytes = proto.SerializeToString()
        return data

    def serialized_normalizer_spec(self) -> bytes:
        """The rules as a NormalizerSpec message."""
        data: bytes = self._spec.SerializeToString()
        return data

    def __getstate__(self) -> bytes:
        return self.serialized_model_proto()

    def __setstate__(self, serialized_model_proto: bytes) -> None:
        self._set(_of_model(serialized_model_proto))

    normalize = Normalize
    decompile = Decompile


class Normalizing:
    """Normalizes with an engine: that of a processor's model, or that of a normalizer."""

    def __init__(self, engine: Engine | None):
        self.engine_or_none = engine
        self.calls: Any = None
        """The core's functions for this drop-in; None if the engine is not the core's."""
        if type(engine).__module__ == "cpbpe._core":
            from cpbpe import _core

            self.calls = _core

    @property
    def engine(self) -> Engine:
        """The engine, or an error if there is none."""
        if self.engine_or_none is None:
            raise RuntimeError("no model is loaded; give model_file or model_proto, or call load() first")
        return self.engine_or_none

    @kept
    def spec(self) -> ModelSpec:
        """The model as a value."""
        return spec_of(self.engine.columns())

    def normalized(self, input: Any, with_offsets: bool | None) -> Any:
        """What `Normalize` returns for a text or a list of texts."""
        if type(input) is list and not with_offsets and self.calls is not None:
            texts = in_utf8(self.calls.normalize_all, self.engine, input)
            if texts is not None:  # it is None if one of them has another type
                return texts
        if isinstance(input, list):
            return [self.normalized(text, with_offsets) for text in map(as_text, input)]
        text = as_text(input)
        return self._with_origins(text) if with_offsets else self._normalize(text)

    def _normalize(self, text: str | bytes) -> str | bytes:
        """The normalized text, str for str and bytes for bytes; empty without a model."""
        if self.engine_or_none is None:
            nothing = utf8(text)[:0]
            return nothing if isinstance(text, bytes) else nothing.decode()
        normalized: str | bytes = in_utf8(self.engine.normalize, text)
        # U+FFFD may stand for bytes that are not UTF-8. These are an error in sentencepiece, and in `decode`.
        if isinstance(normalized, str) and "\ufffd" in normalized:
            return self.engine.normalize(utf8(text)).decode()
        return normalized

    def _with_origins(self, text: str | bytes) -> tuple[Any, list[int]]:
        """A normalized text, and the position in the input that each of its characters or bytes came from."""
        engine = self.engine
        if isinstance(text, str) and self.calls is not None:
            found: tuple[str, list[int]] | None = in_utf8(self.calls.character_origins, engine, text)
            if found is not None:
                return found
        data = utf8(text)
        normalized, origins = engine.origins(data)
        if not normalized and self._is_only_spaces(data):
            origins = []  # sentencepiece returns early in this case
        if isinstance(text, bytes):
            return normalized, origins
        decoded = normalized.decode()
        if not origins:
            return decoded, [0]
        # The position of a character is that of its last byte, after which another one begins.
        if not normalized.isascii():
            begins = [byte & 0xC0 != 0x80 for byte in normalized]
            origins = list(compress(origins, [*begins[1:], True, True]))
        if not data.isascii():
            before = character_positions(data, by_first_byte=True)
            origins = [before[origin] for origin in origins]
        return decoded, origins

    @kept
    def _reference(self) -> Normalizer:
        """The normalizer in plain Python, which rewrites one character at a time."""
        user_defined = [piece.text for piece in self.spec.pieces if piece.type == PieceType.USER_DEFINED]
        return Normalizer(self.spec.normalizer, Finder(user_defined, MAX_USER_DEFINED_MATCHES))

    def _is_only_spaces(self, data: bytes) -> bool:
        """Whether the text becomes nothing but spaces, which the normalizer removes."""
        normalizer = self._reference
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
    with importing:
        from cpbpe.text.charsmap_build import charsmap_from_tsv
    data = read_file(name)
    try:
        charsmap = charsmap_from_tsv(data.decode(errors="replace"))  # (a comment may be in any encoding)
    except ValueError as error:
        kind = ValueError if "changes nothing" in str(error) else RuntimeError
        raise kind(f"{name!r}: {error}") from error
    path = name if isinstance(name, bytes) else name.encode()
    return model_file.messages().NormalizerSpec(
        name=b"user_defined", precompiled_charsmap=charsmap, normalization_rule_tsv=path
    )


def _of_name(name: str | bytes) -> Any:
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    charsmap = charsmap_of_name(text)
    return model_file.messages().NormalizerSpec(name=text.encode(), precompiled_charsmap=charsmap)


def charsmap_of_name(name: str) -> bytes:
    """The charsmap of sentencepiece's rules of this name."""
    if name not in RULE_NAMES:
        kind = RuntimeError if re.fullmatch("[-_a-z]*", name) else ValueError  # no rules could have this name
        raise kind(f"there are no normalization rules {name!r}; there are {', '.join(RULE_NAMES)}")
    return rule_charsmap(name)


def _of_map(norm_map: Any) -> Any:
    with importing:
        from cpbpe.text.charsmap_build import charsmap_from_rules, check_rules
    if not is_list_like(norm_map):
        hint = "; give it its items()" if isinstance(norm_map, dict) else ""
        raise TypeError(f"norm_map must be a list of pairs, not {type(norm_map).__name__}{hint}")
    pairs = [_pair(pair) for pair in norm_map]
    if not pairs:
        raise RuntimeError("norm_map holds no rules")
    source, times = Counter(source for source, _ in pairs).most_common(1)[0]
    if times > 1:
        raise ValueError(f"norm_map has two rules for {source!r}")
    rules = dict(pairs)
    try:
        check_rules(rules)
    except ValueError as error:
        raise ValueError(f"norm_map has {error}") from None
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
