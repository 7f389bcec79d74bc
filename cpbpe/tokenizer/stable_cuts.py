r"""A place in a long text up to which its ids are the same, whatever follows: see `endings.py`.

A text of one letter, or of Chinese, may have no place where nothing can merge, and then all of it would be
encoded again with each piece that may come next. But what follows changes little. The proof has three steps.

- Let T be one chunk, and M what follows. If the first id of TM that reaches the end of T goes beyond it, it
  is a piece that begins with T[i:] for some i, and the ids before it are those of T[:i], as `endings.py`
  says. Otherwise they are those of T; or of T[:e], if with M the chunk already ends at e.
- So all ids that can be are those of a few texts T[:i], and one more. A place where each of them has a
  boundary is one where TM has a boundary, whatever M is; and before it all have the ids of T up to there.
- No merge crosses a boundary that is there at the end. So what is after it is merged as if it were alone.

Most of each T[:i] need not be encoded. Let s and c be boundaries of the longest of these texts, and c one of
T[s:i], too. Then T[:i] has both: if a merge crossed s before any crossed c, T[:c] would have it, which has a
boundary at s; and if one crossed c before any crossed s, T[s:i] would have it.

What cuts the text into chunks is tried with the probes (`cpbpe.text.split_probes`), which stand for all that
can follow. What is left of a chunk must be cut like the whole one: its first characters are of one class with
those before them, so that a pattern is in the same loop there; and whatever two classes follow, the chunks
are the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from cpbpe.engine.choice import make_spans
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import numpy
from cpbpe.model.spec import PieceType
from cpbpe.text.byte_letters import to_letters
from cpbpe.text.split_probes import PAIRS, PROBES, class_of, loops_of
from cpbpe.tokenizer.facts import ModelFacts

_Spans = list[list[int]]
_Loops = tuple[set[str], ...]
_Aligned = list[tuple[list[int], list[int]]]

_SHORT = 64
"""A text that is not longer by this than a piece is left as it is."""
_AROUND = 3
"""This many characters before and after a cut within a chunk are of one class."""
_AFTER = 24
"""A chunk may end so many bytes before the end of a text, if that is followed by something else."""
_KEPT, _LAST = 64, 1024
"""How many bytes of a long chunk are looked at, at its beginning and at its end."""
_CHUNKS = 8
"""How many chunks at the end of a text are looked at."""
_WINDOW = 2048
"""How many bytes at the end of a chunk are encoded with each end first."""
_BATCH = 16
"""So many texts are encoded together."""


def stable_cut(facts: ModelFacts, engine: Engine, text: bytes) -> tuple[int, list[int]]:
    """The last such place that is found, 0 if none is; and the ids before it.

    `engine` is a raw variant. What comes after the place is to be encoded alone.
    """
    longest = facts.by_text[2]
    if len(text) < _SHORT + longest:
        return 0, []
    spec = facts.spec
    if spec.alphabet == "bytes":
        if spec.splitter is None:
            return _in_chunk(
                facts, partial(merged, facts.letters_engine), text, {len(text)}, lambda cut: True
            )
        return _with_pattern(facts, engine, text, spec.splitter.pattern)
    types = spec.pieces.types
    shape = facts.stream_plan.shape
    if PieceType.UNUSED in types or shape is None or shape.user_defined.split(text) is not None:
        return 0, []
    # A user-defined piece ends a chunk. One may begin in the text, and have its end in what follows.
    begins = range(max(len(text) - shape.user_defined.longest_key, 0), len(text))
    ends = {begin for begin in begins if shape.user_defined.beginning_with(text[begin:])}
    return _in_chunk(facts, partial(_aligned, engine), text, {len(text), *ends}, lambda cut: True, types)


def _with_pattern(facts: ModelFacts, engine: Engine, text: bytes, pattern: str) -> tuple[int, list[int]]:
    """The same if a pattern cuts the text."""
    spans = make_spans(pattern)
    loops = loops_of(pattern)
    # 1. The last place where it is cut, whatever follows. Only the last chunks can then be others.
    starts = [begin for begin, _ in spans(text.decode())][-_CHUNKS:]
    tail = text[starts[0] :]
    short, left_out = _shortened(tail, loops)
    given, size = short.decode(), len(short)
    chunks = [spans(given + probe) for probe in PROBES]
    common = set.intersection(*({begin for begin, _ in rows if begin < size} for rows in chunks))
    last = max(common, default=0)
    first = starts[0] + last + (left_out if last > _KEPT else 0)
    ids, begins = _aligned(engine, [text])[0]
    before = [id for id, begin in zip(ids, begins, strict=True) if begin < first]
    rest = text[first:]
    if len(rest) < _SHORT + facts.by_text[2]:
        return first, before
    # 2. A place within a chunk that goes on to the end, or nearly.
    short, left_out = _shortened(rest, loops)
    given, size = short.decode(), len(short)
    chunks = [spans(given + probe) for probe in PAIRS]
    if any(rows[0][0] != 0 or rows[0][1] < size - _AFTER for rows in chunks):
        return first, before
    kinds = _kinds(given, loops)

    def is_same(cut: int) -> bool:
        """Whether what is after a place is cut as it is in the whole text."""
        at = cut - left_out
        if at <= _KEPT or len(set(kinds.get(at, "?!"))) > 1:
            return False
        after = short[at:].decode()
        return all(
            spans(after + probe) == [[max(begin - at, 0), end - at] for begin, end in rows]
            for probe, rows in zip(PAIRS, chunks, strict=True)
        )

    ends = {min(rows[0][1], size) + left_out for rows in chunks}
    place, inner = _in_chunk(facts, partial(merged, facts.letters_engine), rest, ends, is_same)
    return first + place, before + inner


def _shortened(text: bytes, loops: _Loops) -> tuple[bytes, int]:
    """A long text without its middle, and how much that is; only if it makes no difference to a pattern.

    It makes none if all of the middle, and what is next to it, is of classes that one loop of the pattern
    takes. These loops have no end, but for the one over digits, whose chunks are never long.
    """
    if len(text) <= _KEPT + _LAST:
        return text, 0
    begin, end = _KEPT, len(text) - _LAST
    while _is_inside(text, begin):
        begin -= 1
    while _is_inside(text, end):
        end += 1
    around = text[:end].decode()[len(text[:begin].decode()) // 2 :] + text[end:].decode()[:_AROUND]
    classes = {class_of(letter) for letter in {*around}}
    if not any(classes <= loop for loop in loops):
        return text, 0
    return text[:begin] + text[end:], end - begin


def _in_chunk(
    facts: ModelFacts,
    aligned: Callable[[Sequence[bytes]], _Aligned],
    text: bytes,
    ends: set[int],
    is_good: Callable[[int], bool],
    types: bytes | None = None,
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
    *shorter, last = sorted(ends)
    [(ids, begins)] = aligned([text[:last]])
    own = _places(ids, begins, types)
    most, window = len(text) - longest - _AFTER, _WINDOW
    while True:
        # 2. The boundaries that all of them have after one of the longest, up to which they are not encoded.
        start = max((place for place in own if place <= last - window), default=0)
        common = {place for place in own if start < place < most}
        for at in range(0, len(shorter), _BATCH):
            for row in aligned([text[start:end] for end in shorter[at : at + _BATCH]]):
                common &= {start + place for place in _places(*row, types)}
        # 3. The last of them after which the rest is cut as in the whole text, and is longer than any piece.
        for cut in sorted(common, reverse=True)[:_BATCH]:
            if not _is_inside(text, cut) and is_good(cut):
                return cut, [id for id, begin in zip(ids, begins, strict=True) if begin < cut]
        if not start:
            return 0, []
        window *= 16


def _places(ids: list[int], begins: list[int], types: bytes | None) -> set[int]:
    """The boundaries within a text; with `types` those between NORMAL pieces."""
    if types is None:
        return set(begins[1:])
    normal = PieceType.NORMAL
    inner = zip(begins[1:], ids, ids[1:], strict=False)
    return {at for at, left, right in inner if types[left] == types[right] == normal}


def _aligned(engine: Engine, texts: Sequence[bytes | str], chars: bool = False) -> _Aligned:
    """The ids of texts, and where each begins."""
    np = numpy()
    ids, offsets, spans, _ = engine.align_arrays([*texts], 1, chars)
    bounds = np.asarray(offsets).tolist()
    return [(ids[begin:end].tolist(), spans[begin:end, 0].tolist()) for begin, end in pairwise(bounds)]


def merged(engine: Engine, texts: Sequence[bytes]) -> _Aligned:
    """The same of chunks of bytes, by an engine that merges letters (`ModelFacts.letters_engine`)."""
    return _aligned(engine, [to_letters(text) for text in texts], chars=True)


def _is_inside(text: bytes, place: int) -> bool:
    """Whether a place is within a character."""
    return text[place] & 0xC0 == 0x80


def _kinds(text: str, loops: _Loops) -> dict[int, list[str]]:
    """For each place between characters, by bytes: the classes of those around it."""
    has_cases = not any({"Ll", "Lu"} <= loop for loop in loops)
    one = {"newline": "space", **({} if has_cases else dict.fromkeys(("Ll", "Lu", "Lo"), "L"))}
    kinds = [letter if letter in "'/" else one.get(kind := class_of(letter), kind) for letter in text]
    found, at = {}, 0
    for number, letter in enumerate(text):
        found[at] = kinds[max(number - _AROUND, 0) : number + _AROUND]
        at += len(letter.encode())
    return found
