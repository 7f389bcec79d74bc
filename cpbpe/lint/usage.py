"""What texts and an embedding matrix show of a model: pieces not used, and rows that did not learn.

The indicator for rows is the one of Land and Bartolo, "Fishing for Magikarp" (2024). Without the direction
that all rows share, the rows of pieces that training never saw point the same way, because only weight decay
and the softmax have moved them. So the nearer a row is to the mean of those that are known to be unused, the
less it has learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from cpbpe.lazy import numpy
from cpbpe.lint.checks import Subject, these
from cpbpe.lint.values import Finding
from cpbpe.model.spec import PieceType
from cpbpe.spelling import named

FEW = 2
"""A piece that occurs so often at most is hardly used."""
_BATCH = 4096
_ROWS = 8192
_STEPS = 12
_QUANTILE = 0.95


def usage_findings(subject: Subject, texts: Iterable[str | bytes]) -> Iterator[Finding]:
    """Yield what a corpus shows: pieces that are never or hardly used, and how much falls to bytes."""
    np = numpy()
    # 1. Count.
    counts = np.zeros(len(subject.spec.pieces), np.int64)
    every, size, number = iter(texts), 0, 0
    while batch := list(islice(every, _BATCH)):
        found, _ = subject.engine.encode_arrays(batch, 1)
        counts += np.bincount(found, minlength=len(counts))[: len(counts)]
        size += sum(len(text if isinstance(text, bytes) else text.encode()) for text in batch)
        number += len(batch)
    total = int(counts.sum())
    of_all = f"of {total:,} tokens ({size:,} bytes, {number:,} texts)"
    if not total:
        yield subject.finding(
            "empty-corpus", "warning", "the corpus has no text, so it shows nothing", "give another one"
        )
        return
    # 2. Pieces.
    reachable = [id for id in subject.text_ids if id in subject.reach.texts]
    never = [id for id in reachable if not counts[id]]
    hardly = sorted((id for id in reachable if 0 < counts[id] <= FEW), key=lambda id: counts[id])
    remedy = (
        "if the corpus is like what the model was trained on, such tokens never learned anything: do not "
    )
    remedy += "let users type them, or train a vocabulary on this corpus"
    if never:
        longest = sorted(never, key=lambda id: -len(subject.texts[id]))
        yield subject.finding(
            "never-used",
            "note",
            these(len(never), f"of {len(reachable):,} that text can yield do|does not occur, {of_all}"),
            remedy,
            never,
            subject.named(longest),
        )
    if hardly:
        yield subject.finding(
            "hardly-used",
            "note",
            these(len(hardly), f"occur|occurs once or twice, {of_all}"),
            remedy,
            hardly,
            tuple(f"{id} {subject.texts[id]!r}: {counts[id]} times" for id in hardly[:5]),
        )
    # 3. Bytes and unknown characters.
    for code, kind, what, cure in (
        ("byte-share", PieceType.BYTE, "are bytes of characters without a piece", "character_coverage"),
        ("unknown-share", PieceType.UNKNOWN, "are unknown", "byte_fallback"),
    ):
        ids = subject.of_type(kind)
        share = int(counts[ids].sum()) if ids else 0
        if share:
            used = sorted((id for id in ids if counts[id]), key=lambda id: -counts[id])
            yield subject.finding(
                code,
                "warning" if share * 100 > total else "note",
                f"{100 * share / total:.3g} % {what}, {share:,} {of_all}",
                f"train with {'a higher ' if kind == PieceType.BYTE else ''}{named(cure)}",
                used,
                tuple(f"{subject.texts[id]}: {counts[id]:,} times" for id in used[:5]),
            )


def embedding_findings(subject: Subject, matrix: Any) -> Iterator[Finding]:
    """Yield what the rows of an embedding show."""
    np = numpy()
    # 1. Its shape.
    if getattr(matrix, "ndim", None) != 2:
        shape = getattr(matrix, "shape", type(matrix).__name__)
        raise ValueError(f"an embedding is a matrix with a row for each id, not {shape}")
    rows = len(matrix)
    if rows < subject.size:
        yield subject.finding(
            "too-few-rows",
            "error",
            f"the embedding has {rows:,} rows, and ids go up to {subject.size - 1:,}",
            "it belongs to another model, or tokens were added without making it larger",
        )
        return
    # 2. Rows that are known to be unused: of ids that no text yields, and beyond the last id.
    unused = [id for id, reason in subject.reach.reasons.items() if reason.decided]
    unused += range(subject.size, rows)
    if not unused:
        yield subject.finding(
            "no-reference",
            "note",
            "undertrained rows cannot be told: all pieces are used, so that there is nothing to compare with",
            "count the pieces of a corpus instead",
        )
        return
    # 3. Without the direction that all rows share.
    common = _common_direction(matrix, np)
    reference = _without(np.asarray(matrix[np.asarray(sorted(unused))], np.float32), common, np)
    mean = reference.mean(0)
    norm = np.linalg.norm(mean) or 1.0
    distances = np.concatenate(
        [
            _distance(_without(np.asarray(part, np.float32), common, np), mean / norm, np)
            for part in _parts(matrix)
        ]
    )
    # 4. Those that are as near as most of the unused ones.
    limit = float(np.quantile(distances[np.asarray(unused)], _QUANTILE))
    near = [id for id in subject.text_ids if id in subject.reach.texts and distances[id] <= limit]
    near.sort(key=lambda id: distances[id])
    if near:
        yield subject.finding(
            "undertrained",
            "warning",
            these(
                len(near),
                f"that text can yield have|has a row as near to the {len(unused):,} unused ones "
                f"as most of these",
            ),
            "look at what the model makes of them: they may be glitch tokens; train on, or refuse them",
            near,
            tuple(f"{id} {subject.texts[id]!r}: distance {distances[id]:.3f}" for id in near[:10]),
        )


def _parts(matrix: Any) -> Iterator[Any]:
    for begin in range(0, len(matrix), _ROWS):
        yield matrix[begin : begin + _ROWS]


def _common_direction(matrix: Any, np: Any) -> Any:
    """The first principal direction of all rows, not centred, by power iteration."""
    direction = np.ones(matrix.shape[1], np.float32)
    for _ in range(_STEPS):
        longer = np.zeros_like(direction)
        for part in _parts(matrix):
            part = np.asarray(part, np.float32)
            longer += part.T @ (part @ direction)
        norm = np.linalg.norm(longer)
        if not norm:
            break
        direction = longer / norm
    return direction


def _without(rows: Any, direction: Any, np: Any) -> Any:
    return rows - np.outer(rows @ direction, direction)


def _distance(rows: Any, mean: Any, np: Any) -> Any:
    """The cosine distance of each row; 1 for one that is zero."""
    norms = np.linalg.norm(rows, axis=1)
    return 1 - (rows @ mean) / np.where(norms > 0, norms, 1)
