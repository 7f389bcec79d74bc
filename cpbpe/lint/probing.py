"""Asking an engine which of many texts yield a certain piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import numpy

BATCH = 1 << 16
"""This many texts are encoded at once."""


def yields(engine: Engine, ids: Sequence[int], texts: Sequence[str]) -> list[int]:
    """The places of those texts that yield the piece with the id at the same place."""
    np = numpy()
    places: list[int] = []
    for begin in range(0, len(texts), BATCH):
        part = list(texts[begin : begin + BATCH])
        found, ends = engine.encode_arrays(part, 1)  # type: ignore[arg-type]
        lengths = np.diff(ends)
        owner = np.repeat(np.arange(len(part)), lengths)
        wanted = np.asarray(ids[begin : begin + BATCH], np.int64)
        hits = np.unique(owner[found.astype(np.int64) == wanted[owner]])
        places += (hits + begin).tolist()
    return places


def becomes_itself(engine: Engine, ids: Sequence[int], texts: Sequence[bytes]) -> list[bool]:
    """For each text whether all of it becomes one piece, the one with the id at the same place."""
    np = numpy()
    answers: list[bool] = []
    for begin in range(0, len(texts), BATCH):
        part = list(texts[begin : begin + BATCH])
        found, ends = engine.encode_arrays(part, 1)  # type: ignore[arg-type]
        single = np.diff(ends) == 1
        first = np.zeros(len(part), np.int64) - 1
        first[single] = found[ends[:-1][single]]
        answers += (first == np.asarray(ids[begin : begin + BATCH], np.int64)).tolist()
    return answers


def first_that_yields(engine: Engine, id: int, texts: Iterable[str]) -> str | None:
    """The first of some texts that yields a piece."""
    tried = list(texts)
    hits = yields(engine, [id] * len(tried), tried)
    return tried[hits[0]] if hits else None


def remaining(wanted: Iterable[int], texts: Mapping[int, str]) -> list[int]:
    """The ids for which no text is known yet."""
    return [id for id in wanted if id not in texts]
