"""From a model's bytes or spec to what a Tokenizer holds, and the hash that tells models apart."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cpbpe.engine.choice import calls_of_ours, load_engine, make_engine
from cpbpe.lazy import imported
from cpbpe.model.formats.registry import MODEL, format_of, may_carry
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.special_tokens import SpecialTokens, check_added, checked_tokens

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.model.spec import ModelSpec

BEHAVIOUR = 1
"""Part of every fingerprint. It goes up when the same model would give other ids or other text."""


def _model_file() -> Any:
    """The module that writes model files; it imports protobuf."""
    return imported("cpbpe.model.formats.sentencepiece")


def facts_of(file: bytes | bytearray | memoryview) -> ModelFacts:
    """The model in the bytes of a file of any format."""
    if not isinstance(file, (bytes, bytearray, memoryview)):
        hint = "; to load a file, use Tokenizer(path)" if isinstance(file, (str, os.PathLike)) else ""
        raise TypeError(f"from_bytes() takes the bytes of a model, not {type(file).__name__}{hint}")
    file = bytes(file)
    format = format_of(file)
    if format is not MODEL:
        read = format.read(file)
        for assumption in read.assumptions:
            warnings.warn(assumption, stacklevel=calls_of_ours())
        return facts_of_spec(read.spec)
    return _facts(load_engine(file), file)


def facts_of_spec(spec: ModelSpec) -> ModelFacts:
    """The model that a spec describes."""
    if not isinstance(spec, imported("cpbpe.model.spec").ModelSpec):
        raise TypeError(f"from_spec() takes a ModelSpec, not {type(spec).__name__}")
    return _facts(make_engine(spec), _model_file().write(spec))


def facts_with_added(facts: ModelFacts, tokens: Mapping[str, int] | Iterable[str]) -> ModelFacts:
    """The same model with more special tokens, written at the end of its file."""
    new = checked_tokens(facts.engine, facts.special, tokens)
    special = SpecialTokens(facts.engine, {**facts.special.added, **new}, facts.special.flags)
    return ModelFacts(facts.engine, special, facts.file + _model_file().added_fields(new))


def _facts(engine: Engine, file: bytes) -> ModelFacts:
    flags = _model_file().read_carried(file).tokens if may_carry(file) else {}
    return ModelFacts(engine, SpecialTokens(engine, check_added(engine, engine.added, flags), flags), file)


def fingerprint(file: bytes, bound_options: Mapping[str, Any]) -> str:
    """A hash of a model, of how cpbpe reads it, and of options that are bound to it."""
    digest = imported("hashlib").sha256(b"cpbpe %d\0" % BEHAVIOUR)
    for name, value in sorted(bound_options.items()):
        digest.update(f"{name}={value!r}\0".encode())
    digest.update(file)
    result: str = digest.hexdigest()
    return result


def restore(cls: Any, file: bytes, behaviour: int, bound_options: Mapping[str, Any] | None = None) -> Any:
    """What a pickle calls. The pickle contains only the name of this function.

    `behaviour` is in the pickle for whatever is derived from pickles, such as the caches of datasets: when it
    changes, they are built again.
    """
    tokenizer = cls.from_bytes(file)
    return tokenizer.using(**bound_options) if bound_options else tokenizer


def summary(facts: ModelFacts) -> str:
    """A model in a line, for people."""
    engine, added = facts.engine, len(facts.special.added)
    more = f", {added} added tokens" if added else ""
    if engine.byte_level is not None:
        pattern, name, _, then = engine.byte_level
        cut = f"pattern {name or 'of its own'}" if pattern else "no pattern"
        if then:
            cut = f"{1 + len(then)} patterns"
        form = f"{engine.unicode_form}, " if engine.unicode_form else ""
        return f"{engine.size} pieces{more}, byte-level, {form}{cut}"
    fallback = "byte fallback" if engine.byte_fallback else "no byte fallback"
    normalizer = text_of(engine.normalizer_name) or "unnamed"
    return f"{engine.size} pieces{more}, {fallback}, normalizer {normalizer!r}"
