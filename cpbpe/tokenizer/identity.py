"""From a model's bytes or spec to the `ModelFacts` of a Tokenizer, and the hash that tells models apart."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING, Any

from cpbpe.engine.choice import calls_of_ours, load_engine, make_engine
from cpbpe.lazy import importing
from cpbpe.model.formats.registry import MODEL, NO_HINTS, Hints, format_of
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.special_tokens import SpecialTokens, check_added, checked_tokens

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.model.formats.values import ReadModel
    from cpbpe.model.spec import Carried, ModelSpec

BEHAVIOUR = 2
"""Part of every fingerprint. It goes up when a model would give other ids, text or samples (for a seed)."""


def facts_of(file: bytes | bytearray | memoryview, hints: Hints = NO_HINTS) -> ModelFacts:
    """The model in the bytes of a file of any format. `hints` are what a user says about it."""
    if not isinstance(file, (bytes, bytearray, memoryview)):
        hint = "; to load a file, use Tokenizer(path)" if isinstance(file, (str, os.PathLike)) else ""
        raise TypeError(f"from_bytes() takes the bytes of a model, not {type(file).__name__}{hint}")
    file = bytes(file)
    format = format_of(file)
    if format is not MODEL or hints.name:
        read = format.read(file, hints=hints)
        warn_of(read)
        return facts_of_read(read.spec)
    return _facts(load_engine(file), file)


def warn_of(read: ReadModel, where: str = "") -> None:
    """Warn about what a file does not say, and what was assumed instead."""
    for assumption in read.assumptions:
        warnings.warn(f"{where}{assumption}", stacklevel=calls_of_ours())


def facts_of_spec(spec: ModelSpec) -> ModelFacts:
    """The model that a user's spec describes. Its file is written now, to refuse what no file can hold."""
    with importing:
        from cpbpe.model.formats.sentencepiece import write
        from cpbpe.model.spec import ModelSpec
    if not isinstance(spec, ModelSpec):
        raise TypeError(f"from_spec() takes a ModelSpec, not {type(spec).__name__}")
    return _facts(make_engine(spec), write(spec))


def facts_of_read(spec: ModelSpec) -> ModelFacts:
    """The model that a reader of a format returned. Its `.model` file is written only when it is needed."""
    with importing:
        from dataclasses import replace

        from cpbpe.model.spec import Pieces
    return _facts(make_engine(spec), replace(spec, pieces=Pieces.of([])))


def facts_with_added(facts: ModelFacts, tokens: Mapping[str, int] | Iterable[str]) -> ModelFacts:
    """The same model with more special tokens."""
    return facts_with(facts, checked_tokens(facts.engine, facts.special, tokens))


def facts_with(facts: ModelFacts, new: Mapping[str, int], carried: Carried | None = None) -> ModelFacts:
    """The same model with added tokens that have been checked, and with `carried` beside it.

    The model is not read again. If it has a file, they are appended to that.
    """
    added = {**facts.special.added, **new}
    special = SpecialTokens(facts.engine, added, facts.special.flags if carried is None else carried.tokens)
    if isinstance(facts.source, bytes):
        with importing:
            from cpbpe.model.formats.sentencepiece import added_fields, carried_field
        more = added_fields(new) + (b"" if carried is None else carried_field(carried))
        return ModelFacts(facts.engine, special, facts.source + more)
    with importing:
        from dataclasses import replace
    tokens = tuple((text.encode(), id) for text, id in added.items())
    spec = replace(facts.source, added=tokens, carried=carried or facts.source.carried)
    return ModelFacts(facts.engine, special, spec)


def _facts(engine: Engine, source: bytes | ModelSpec) -> ModelFacts:
    flags: Mapping[str, tuple[str, ...]] = {}
    if not isinstance(source, bytes):
        flags = source.carried.tokens
    elif engine.head["carries"]:
        with importing:
            from cpbpe.model.formats.sentencepiece import read_carried
        flags = read_carried(source).tokens
    added = check_added(engine, engine.head["added"], flags)
    return ModelFacts(engine, SpecialTokens(engine, added, flags), source)


def fingerprint(file: bytes, bound_options: Mapping[str, Any]) -> str:
    """A hash of a model, of how cpbpe reads it, and of options that are bound to it."""
    with importing:
        from hashlib import sha256
    digest = sha256(b"cpbpe %d\0" % BEHAVIOUR)
    for name, value in sorted(bound_options.items()):
        digest.update(f"{name}={value!r}\0".encode())
    digest.update(file)
    return digest.hexdigest()


def restore(cls: Any, file: bytes, behaviour: int, bound_options: Mapping[str, Any] | None = None) -> Any:
    """Unpickle a tokenizer. Pickles contain the name of this function, so it must not be renamed.

    `behaviour` is not used here. It makes pickles differ when BEHAVIOUR changes, so that caches whose keys
    are made from pickles, such as those of datasets, are built again.
    """
    tokenizer = cls.from_bytes(file)
    return tokenizer.using(**bound_options) if bound_options else tokenizer


def summary(facts: ModelFacts) -> str:
    """One line about a model, to be shown."""
    engine, added = facts.engine, len(facts.special.added)
    more = f", {added} added tokens" if added else ""
    head = engine.head
    normalizer, byte_level = head["normalizer"], head["byte_level"]
    if byte_level is not None:
        name = byte_level["name"] or "of its own"
        cut = f"pattern {name}" if byte_level["pattern"] else "no pattern"
        if byte_level["then"]:
            cut = f"{1 + len(byte_level['then'])} patterns"
        form = f"{normalizer['unicode_form']}, " if normalizer["unicode_form"] else ""
        return f"{engine.size} pieces{more}, byte-level, {form}{cut}"
    fallback = "byte fallback" if head["byte_fallback"] else "no byte fallback"
    rules = text_of(normalizer["name"]) or "unnamed"
    return f"{engine.size} pieces{more}, {fallback}, normalizer {rules!r}"


def as_bound(name: str, value: Any) -> Any:
    """A copy of a checked value to bind: it cannot change, and is the same whatever type it was given as.

    So equal options are equal values, with the same fingerprint and the same pickle in every process.
    """
    if value is None or isinstance(value, str):
        return value
    if name in ("allowed_special", "disallowed_special"):
        return tuple(sorted(set(value)))
    return float(value) if name == "alpha" else index(value) if name == "seed" else bool(value)
