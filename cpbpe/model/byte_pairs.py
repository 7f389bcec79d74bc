"""Byte-level models and lists of pairs: from one to the other, for the files that have such a list.

`cpbpe.model.pair_ranks` proves when merging by scores and by pairs are the same. It is about characters;
here each byte is one, its letter (see `cpbpe/text/byte_letters.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cpbpe.errors import ModelError
from cpbpe.lazy import imported
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import (
    Pair,
    by_pair,
    by_text,
    candidates,
    differences,
    merged,
    ordered,
    pairs_that_make,
    ranks_of,
)
from cpbpe.model.spec import ModelSpec, PieceType, SplitSpec
from cpbpe.text.byte_letters import BYTE_ORDER, LETTERS, all_from_letters, from_letters, to_letters

BytePair = tuple[bytes, bytes]


def shown(piece: bytes) -> str:
    """A piece as messages show it."""
    return piece.decode(errors="backslashreplace")


# --- From pairs to scores -------------------------------------------------------------------------


def scores_of(pieces: Iterable[str], pairs: Sequence[Pair]) -> tuple[dict[str, float], list[Difference]]:
    """The score of each piece, so that merging by scores is merging by pairs; and where that cannot be.

    Pieces are spelled in letters.

    The first pair has the score -256. Single bytes, which nothing makes, have the scores above, in GPT-2's
    order. So a vocabulary whose ids are in the order of training has the scores of a file of ranks.

    A piece that its pairs never make gets the lowest score of all. Neighbours that are its text together are
    what the piece by itself becomes (`pair_ranks` shows why). If that is two symbols, they would be merged.

    >>> scores, differences = scores_of(["ab", "abc", "bc"], [("b", "c"), ("ab", "c"), ("a", "b")])
    >>> scores
    {'ab': -258.0, 'abc': -259.0, 'bc': -256.0}
    >>> differences[0].text
    'abc'
    """
    pieces = list(pieces)
    listed = {pair: place for place, pair in enumerate(pairs)}
    made = ranks_of([piece for piece in pieces if len(piece) > 1], listed)
    places = {LETTERS[byte]: place for place, byte in enumerate(BYTE_ORDER)}
    scores, wrong = {}, []
    for piece in pieces:
        if piece in made:
            scores[piece] = float(-256 - made[piece])
        elif len(piece) == 1:
            scores[piece] = float(-places[piece])
        else:
            scores[piece] = float(-256 - len(pairs))
            if len(merged(piece, by_pair(listed))[0]) == 2:
                wrong.append(
                    Difference(
                        "there is a piece that no pair makes of what its text becomes, and here two "
                        "neighbours merge if together they are a piece",
                        shown(from_letters(piece)),
                    )
                )
    return scores, wrong


# --- From scores to pairs -------------------------------------------------------------------------


class Listed(NamedTuple):
    """The pairs of a model."""

    pairs: dict[bytes, BytePair]
    """The pair that makes each piece, in the order of merging."""
    unmade: list[bytes]
    """The pieces of several bytes that no merges make."""
    differs: str | None
    """The shortest text found on which the pairs and the scores differ; None if they never do."""


def pairs_of(spec: ModelSpec) -> Listed:
    """The pairs of a byte-level model.

    >>> from cpbpe.model.byte_level import AS_IT_IS
    >>> from cpbpe.model.spec import Pieces
    >>> rows = [(text, -place, PieceType.NORMAL) for place, text in enumerate([b"ab", b"abc", b"xyz"])]
    >>> pairs_of(ModelSpec(Pieces.of(rows), AS_IT_IS, alphabet="bytes"))
    Listed(pairs={b'ab': (b'a', b'b'), b'abc': (b'ab', b'c')}, unmade=[b'xyz'], differs=None)
    """
    ranks = _ranks(spec)
    made = pairs_that_make(ranks, by_text(ranks))
    equal = candidates(made, ranks)
    order = ordered(made, ranks, equal)
    differs = next(iter(differences(made, ranks, order, equal)), None)
    pieces = all_from_letters([part for piece in order for part in (piece, *made[piece])])
    return Listed(
        dict(zip(pieces[::3], zip(pieces[1::3], pieces[2::3], strict=True), strict=True)),
        [from_letters(piece) for piece in ranks if piece not in made],
        None if differs is None else shown(from_letters(differs)),
    )


def _ranks(spec: ModelSpec) -> dict[str, float]:
    """The rank of each piece of several bytes. Scores are ordered as engines do it: by their bits."""
    bits = array("i", spec.pieces.scores)
    pieces = ((id, piece) for id, piece in normal(spec) if len(piece) > 1)
    return {
        to_letters(piece): -bits[id] if bits[id] >= 0 else (bits[id] & _NUMBER) + 1 for id, piece in pieces
    }


_NUMBER = 0x7FFFFFFF
"""The bits of a float32 that are not its sign."""


def normal(spec: ModelSpec) -> Iterator[tuple[int, bytes]]:
    """The pieces of text with their ids."""
    types = spec.pieces.types
    return ((id, piece) for id, piece in enumerate(spec.pieces.texts) if types[id] == PieceType.NORMAL)


# --- What a pattern does --------------------------------------------------------------------------

_SAMPLES = ("I'M 12345", "(self)", "a\n\n  b", "it's", "HTMLParser", "  x", "1a", "\t\tif", "://", "a_b")
"""Where the published patterns differ."""


def cut_pieces(pieces: Collection[bytes], pattern: str) -> Iterator[str]:
    """The pieces that a pattern cuts: a model that was trained with it has none."""
    match = _compiled(pattern).match
    for piece in pieces:
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            continue  # it is a part of a character, or has one
        found = match(text)
        if found is None or found.end() < len(text):
            yield text


def text_that_differs(spec: ModelSpec, pattern: str) -> str | None:
    """A text with other ids if it is cut by another pattern; None if none is found."""
    own = spec.splitter
    if own is not None and own.pattern == pattern:
        return None
    ranks = _ranks(spec)
    cut = cut_pieces([piece for _, piece in normal(spec)], pattern)
    tried = [*_SAMPLES, *(text for text, _ in zip(cut, range(100), strict=False))]
    return min(
        (text for text in tried if _merged(text, own, ranks) != _merged(text, SplitSpec(pattern), ranks)),
        key=lambda text: (len(text), text),
        default=None,
    )


def _merged(text: str, splitter: SplitSpec | None, ranks: Mapping[str, float]) -> list[str]:
    """The symbols of a text. (What a pattern leaves out is a chunk, too.)"""
    chunks, at = [], 0
    for match in _compiled(splitter.pattern).finditer(text) if splitter is not None else ():
        chunks += [text[at : match.start()], match.group()]
        at = match.end()
    chunks.append(text[at:])
    rank = by_text(ranks)
    return [symbol for chunk in chunks for symbol in merged(to_letters(chunk.encode()), rank)[0]]


def _compiled(pattern: str) -> Any:
    regex = imported("regex")
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ModelError(f"the pattern {pattern!r} is not a regular expression: {error}") from None
