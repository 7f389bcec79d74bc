r"""A place in a long text up to which its ids are the same, whatever follows: see `endings.py`.

A text of one letter, or of Chinese, may have no place where nothing can merge, and then all of it would be
encoded again with each piece that may come next. But what follows changes little. The proof has three steps.

- Let T be one chunk, and M what follows. If the first id of TM that reaches the end of T goes beyond it, it
  is a piece that begins with T[i:] for some i, and the ids before it are those of T[:i], as `endings.py`
  says. Otherwise they are those of T; or of T[:e], if with M the chunk already ends at e.
- So all ids that can be are those of a few texts T[:i], and one more. A place where each of them has a
  boundary is one where TM has a boundary, whatever M is; and before it all have the ids of T up to there.
- No merge crosses a boundary that is there at the end. So what is after it is merged as if it were alone.

What cuts the text into chunks is tried with the probes (`cpbpe.text.split_probes`), which stand for all that
can follow. What is left of a chunk must be cut like the whole one: its first characters are of one class with
those before them, so that a pattern is in the same loop there; and each probe gives the same chunks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import pairwise
from unicodedata import category

from cpbpe.engine.choice import make_spans
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import numpy
from cpbpe.model.spec import PieceType
from cpbpe.text.split_probes import PROBES
from cpbpe.tokenizer.facts import ModelFacts

_Spans = list[list[int]]

_SHORT = 256
"""A text that is not longer by this than two pieces is left as it is."""
_AROUND = 3
"""This many characters before and after a cut within a chunk are of one class."""
_AFTER = 24
"""A chunk may end so many bytes before the end of a text, if that is followed by something else."""
_BATCH = 16
"""So many texts are encoded together."""


def stable_cut(facts: ModelFacts, engine: Engine, text: bytes) -> tuple[int, list[int]]:
    """The last such place that is found, 0 if none is; and the ids before it.

    `engine` is a raw variant. What comes after the place is to be encoded alone.
    """
    longest = facts.by_text[2]
    if len(text) < _SHORT + 2 * longest:
        return 0, []
    spec = facts.spec
    if spec.alphabet == "bytes":
        if spec.splitter is None:
            return _in_chunk(facts, engine, text, {len(text)}, lambda cut: True)
        return _with_pattern(facts, engine, text, make_spans(spec.splitter.pattern))
    types = spec.pieces.types
    if PieceType.UNUSED in types or PieceType.USER_DEFINED in types:
        return 0, []
    return _in_chunk(facts, engine, text, {len(text)}, lambda cut: True, types)


def _with_pattern(
    facts: ModelFacts, engine: Engine, text: bytes, spans: Callable[[str], _Spans]
) -> tuple[int, list[int]]:
    """The same if a pattern cuts the text."""
    # 1. The last place where it is cut, whatever follows.
    given, size = text.decode(), len(text)
    chunks = [spans(given + probe) for probe in PROBES]
    common = set.intersection(*({begin for begin, _ in rows if begin < size} for rows in chunks))
    first = max(common, default=0)
    ids, begins = _aligned(engine, [text])[0]
    before = [id for id, begin in zip(ids, begins, strict=True) if begin < first]
    rest = text[first:]
    if len(rest) < _SHORT + 2 * facts.by_text[2]:
        return first, before
    # 2. A place within a chunk that goes on to the end, or nearly.
    given, size = rest.decode(), len(rest)
    chunks = [spans(given + probe) for probe in PROBES]
    if any(rows[0][0] != 0 or rows[0][1] < size - _AFTER for rows in chunks):
        return first, before
    kinds = _kinds(given)

    def is_same(cut: int) -> bool:
        """Whether what is after a place is cut as it is in the whole text."""
        if len(set(kinds.get(cut, "?!"))) > 1:
            return False
        after = rest[cut:].decode()
        return all(
            spans(after + probe) == [[max(begin - cut, 0), end - cut] for begin, end in rows]
            for probe, rows in zip(PROBES, chunks, strict=True)
        )

    ends = {min(rows[0][1], size) for rows in chunks}
    place, inner = _in_chunk(facts, engine, rest, ends, is_same, spans=spans)
    return first + place, before + inner


def _in_chunk(
    facts: ModelFacts,
    engine: Engine,
    text: bytes,
    ends: set[int],
    is_good: Callable[[int], bool],
    types: bytes | None = None,
    spans: Callable[[str], _Spans] | None = None,
) -> tuple[int, list[int]]:
    """The same for one chunk, which ends at one of `ends`, or after the text.

    With `types` there are to be NORMAL pieces on both sides of the place.
    """
    # 1. The beginnings of the text after which the chunk ends, or has a piece that spans the end of the text.
    pieces, _, longest = facts.by_text
    for begin in range(len(text) - longest, len(text)):
        at = bisect_left(pieces, text[begin:])
        if at < len(pieces) and pieces[at].startswith(text[begin:]):
            ends.add(begin)
    if any(end < len(text) and _is_inside(text, end) for end in ends):
        return 0, []
    texts = [text[:end] for end in sorted(ends)]
    if spans is not None and any(spans(some.decode()) != [[0, len(some)]] for some in texts):
        return 0, []
    # 2. The boundaries that all of them have.
    common: set[int] | None = None
    for at in range(0, len(texts), _BATCH):
        for ids, begins in _aligned(engine, texts[at : at + _BATCH]):
            places = set(begins)
            if types is not None:
                inner = zip(begins[1:], ids, ids[1:], strict=False)
                normal = PieceType.NORMAL
                places = {at for at, left, right in inner if types[left] == types[right] == normal}
            common = places if common is None else common & places
    # 3. The last of them after which the rest is cut as in the whole text, and is longer than any piece.
    most = len(text) - longest - _AFTER
    for cut in sorted((place for place in common or () if 0 < place < most), reverse=True)[:_BATCH]:
        if not _is_inside(text, cut) and is_good(cut):
            ids, begins = _aligned(engine, [text])[0]
            return cut, [id for id, begin in zip(ids, begins, strict=True) if begin < cut]
    return 0, []


def _aligned(engine: Engine, texts: Iterable[bytes]) -> list[tuple[list[int], list[int]]]:
    """The ids of texts, and where each begins."""
    np = numpy()
    given: list[str | bytes] = [*texts]
    ids, offsets, spans, _ = engine.align_arrays(given, 1, False)
    bounds = np.asarray(offsets).tolist()
    return [(ids[begin:end].tolist(), spans[begin:end, 0].tolist()) for begin, end in pairwise(bounds)]


def _is_inside(text: bytes, place: int) -> bool:
    """Whether a place is within a character."""
    return text[place] & 0xC0 == 0x80


def _kinds(text: str) -> dict[int, list[str]]:
    """For each place between characters, by bytes: the classes of those around it."""
    kinds = [letter if letter in " \n\r'/" else category(letter) for letter in text]
    found, at = {}, 0
    for number, letter in enumerate(text):
        found[at] = kinds[max(number - _AROUND, 0) : number + _AROUND]
        at += len(letter.encode())
    return found
