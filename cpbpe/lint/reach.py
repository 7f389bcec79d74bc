"""Which pieces of a model text can yield: decided for all of them at once."""

from __future__ import annotations

from collections.abc import Callable

from cpbpe.engine.protocol import Engine
from cpbpe.lint.byte_level import Bytes
from cpbpe.lint.characters import Characters
from cpbpe.lint.values import Reach
from cpbpe.model.spec import ModelSpec

Family = Characters | Bytes


def family_of(spec: ModelSpec, engine: Engine, make: Callable[[ModelSpec], Engine]) -> Family:
    """What decides for one model."""
    return (Bytes if spec.alphabet == "bytes" else Characters)(spec, engine, make)


def reach_of(spec: ModelSpec, engine: Engine, make: Callable[[ModelSpec], Engine]) -> Reach:
    """For each piece a text that yields it, or the reason why none does. `make` builds an engine.

    >>> from cpbpe.engine.choice import make_engine
    >>> from cpbpe.model.spec import NormalizerSpec, Piece, Pieces, PieceType
    >>> pieces = Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)] + [
    ...     Piece(text.encode(), -rank) for rank, text in enumerate(["bc", "ab", "abc", "a", "b", "c"])])
    >>> spec = ModelSpec(pieces, NormalizerSpec(add_dummy_prefix=False))
    >>> reach = reach_of(spec, make_engine(spec), make_engine)
    >>> reach.texts[3], reach.reasons
    ('abc', {})
    """
    return family_of(spec, engine, make).reach()
