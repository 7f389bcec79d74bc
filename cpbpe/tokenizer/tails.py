r"""The end of a normalized text, and the pieces that may span it (`Tail`); and how much of it matters.

A long text is cut before its end: `stable_cut` finds a place up to which its ids are the same, whatever
follows. A text of one letter, or of Chinese, may have no place where nothing can merge, and then all of it
would be encoded again with each piece that may come next. But what follows changes little. The proof has
three steps.

- Let T be one chunk, and M what follows. If the first id of TM that reaches the end of T goes beyond it, it
  is a piece that begins with T[i:] for some i, and the ids before it are those of T[:i], as `completions.py`
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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np

from cpbpe.engine.cutting import make_chunk_finder, make_cutter
from cpbpe.engine.protocol import Engine
from cpbpe.model.spec import PieceType
from cpbpe.text.split_probes import PAIRS, PROBES, characters, class_of, loops_of, signature
from cpbpe.text.utf8 import certain, is_inside, is_valid_utf8, to_letters
from cpbpe.tokenizer.facts import ModelFacts

Ids = tuple[int, ...]
Rows = tuple[list[Ids], list[bytes]]
"""Some endings, and what follows the text with each."""
_Loops = tuple[set[str], ...]
_Aligned = list[tuple[list[int], list[int]]]

_PROBES = tuple(probe.encode() for probe in PROBES)
_FEW = 16
"""This many characters are tried first to complete a piece."""
_BATCH = 8192
"""This many texts are encoded together, if each is short."""
_SHORT = 64
"""A text that is not longer by this than a piece is left as it is."""
_AROUND = 3
"""This many characters before and after a cut within a chunk are of one class."""
_AFTER = 24
"""A chunk may end this many bytes before the end of a text, if that is followed by something else."""
_KEPT, _LAST = 64, 1024
"""How many bytes of a long chunk are looked at, at its beginning and at its end."""
_CHUNKS = 8
"""How many chunks at the end of a text are looked at."""
_WINDOW = 2048
"""How many bytes at the end of a chunk are encoded with each end first."""
_LONG_BATCH = 16
"""This many texts are encoded together, if they may be long."""


class Candidate(NamedTuple):
    """A piece that may span the end of the text."""

    begin: int
    """Where it would begin."""
    id: int
    """Its id."""
    rest: bytes
    """What it has after the end."""


class Front(NamedTuple):
    """The beginning of a text, up to a place where it is cut."""

    ids: Ids
    """What it becomes."""
    size: int
    """How many bytes it has."""


_NOTHING = Front((), 0)


class Tail:
    """The end of a normalized text, in which all endings differ."""

    def __init__(self, facts: ModelFacts, engine: Engine, text: bytes, end: int):
        """`engine` is a raw variant. Ids that begin before `end` belong to an ending."""
        spec = facts.spec
        self._facts = facts
        self._engine = engine
        self._text = text
        self._end = end
        self._spec = spec
        self._chunk = make_chunk_finder(spec.splitter.pattern if spec.splitter else None)
        self._fronts: dict[str, Front] = {}
        self._made: dict[bytes, list[int]] = {}

    def endings(self) -> Iterator[Rows]:
        """Yield endings, each with what follows the text then."""
        if self._spec.alphabet == "bytes":
            yield from self._endings_of_chunks()
            return
        found = (rest for _, _, rests in self._candidates(0) for rest in rests)
        yield self.rows([b"", *filter(is_valid_utf8, found)])

    def rows(self, rests: list[bytes]) -> Rows:
        """The ids that begin before the end of this text, with each of these after it."""
        return self._ids_and_ends(rests)[0], rests

    def _ids_and_ends(self, rests: list[bytes]) -> tuple[list[Ids], list[int]]:
        """The same, and where the last of them ends, which is 0 if there are none."""
        text, rows, all_ends = self._text, [], []
        for first in range(0, len(rests), _BATCH):
            some = rests[first : first + _BATCH]
            fronts = [self._front(rest) for rest in some]
            texts: list[str | bytes] = [
                text[front.size :] + rest for front, rest in zip(fronts, some, strict=True)
            ]
            sizes = np.array([front.size for front in fronts])
            ids, offsets, spans, _ = self._engine.align_arrays(texts, 1, False)
            is_before = spans[:, 0] < np.repeat(self._end - sizes, np.diff(offsets))
            count = np.concatenate(([0], np.cumsum(is_before)))[offsets]  # before each text
            stops = offsets[:-1] + np.diff(count)
            ends = sizes + np.concatenate(([0], spans[:, 1]))[np.where(stops > offsets[:-1], stops, 0)]
            listed = ids.tolist()
            places = zip(fronts, offsets.tolist(), stops.tolist(), strict=False)
            rows += [front.ids + tuple(listed[begin:stop]) for front, begin, stop in places]
            all_ends += ends.tolist()
        return rows, all_ends

    def _candidates(self, first: int) -> Iterator[tuple[int, list[int], list[bytes]]]:
        """Yield the pieces that begin from `first` on with what the text has there, and have more.

        For each place where some begin: that, their ids, and what they have after the text.
        """
        texts, ids, longest = self._facts.by_text
        text = self._text
        for begin in range(max(first, len(text) - longest + 1), len(text)):
            start = text[begin:]
            size = len(start)
            low = bisect_left(texts, start)
            high = bisect_left(texts, start + b"\xff" * longest, low)
            if low < high and len(texts[low]) == size:
                low += 1
            if low < high:
                yield begin, ids[low:high], [piece[size:] for piece in texts[low:high]]

    # --- Byte-level models: what follows decides where the text is cut, too ------------------------

    def _endings_of_chunks(self) -> Iterator[Rows]:
        # 1. The text with each of the probes: all ways to cut it.
        text, size, spec = self._text, len(self._text), self._spec
        probes = _PROBES if spec.splitter is not None or spec.whole else _PROBES[:1]
        yield self.rows(list(probes))
        begins = sorted({self._chunk(text + probe, size)[0] for probe in probes})
        # 2. Each piece that may span the end, alone. Most of them do, or cannot.
        found: list[tuple[Candidate, bool]] = []
        parts: list[Candidate] = []
        for begin, all_ids, rests in self._candidates(begins[0]):
            is_text = [rest.isascii() or is_valid_utf8(rest) for rest in rests]
            if not all(is_text):
                broken = zip(all_ids, rests, is_text, strict=True)
                parts += (Candidate(begin, id, rest) for id, rest, whole in broken if not whole)
                all_ids = list(compress(all_ids, is_text))
                rests = list(compress(rests, is_text))
            rows, ends = self._ids_and_ends(rests)
            yield rows, rests
            several = len(begins) > 1 and begins[1] <= begin
            for id, rest, row, end in zip(all_ids, rests, rows, ends, strict=True):
                done = end == size + len(rest) and row[-1] == id
                if not done or several:
                    found.append((Candidate(begin, id, rest), done))
        # 3. What stays open, with each of the probes that leave the piece in a chunk that begins somewhere.
        kinds: dict[str, dict[int, list[bytes]]] = {}
        for one, done in found:
            kind = signature(text[-2:], one.rest)
            if kind not in kinds:
                kinds[kind] = self._fitting(one, probes)
            for begin, fitting in kinds[kind].items():
                # What the text with this piece alone has become says all about a chunk that begins there if
                # it was that chunk, and was merged: whatever follows, the ids before would be the same.
                was_merged = done or not (spec.whole and (text + one.rest)[begin:] in spec.ids)
                is_decided = b"" in fitting and was_merged
                if begin <= one.begin and not is_decided and self._could_be([begin], one):
                    yield self.rows([one.rest + after for after in fitting])
        # 4. Pieces that end within a character.
        for one in parts:
            if self._could_be(begins, one):
                yield from self._completed(one)
        # 5. A chunk that would be taken whole, unless it goes on.
        last = [text[begin:] for begin in begins]
        if spec.whole and any(chunk in spec.ids and len(self._merged(chunk)) > 1 for chunk in last):
            yield self.rows([piece for piece in self._facts.by_text[0] if is_valid_utf8(piece)])

    def _front(self, rest: bytes) -> Front:
        """The text up to its last chunk, when it goes on like this.

        Patterns do not look back, so what is after that is cut as if it were alone. What is before it is the
        same with all rests of one signature. (In other models there is nothing before it.)
        """
        if self._spec.alphabet != "bytes":
            return _NOTHING
        kind = signature(self._text[-2:], rest)
        if kind not in self._fronts:
            size = self._chunk(self._text + rest, len(self._text))[0]
            ids, _, spans = self._engine.align(self._text + rest, False, True)
            self._fronts[kind] = Front(tuple(ids[: bisect_left(spans, (size, -1))]), size)
        return self._fronts[kind]

    def _fitting(self, one: Candidate, probes: tuple[bytes, ...]) -> dict[int, list[bytes]]:
        """The probes with which the rest of a piece is in one chunk with the end of the text.

        By the place where that chunk begins. They are those of all rests that consist of the same classes.
        """
        whole, size = self._text + one.rest, len(self._text)
        found: dict[int, list[bytes]] = {}
        for probe in probes:
            begin, end = self._chunk(whole + probe, size)
            if end >= len(whole):
                found.setdefault(begin, []).append(probe)
        return found

    def _could_be(self, begins: list[int], one: Candidate) -> bool:
        """Whether merging a chunk makes this piece at its place, or it is the chunk, and taken whole."""
        whole = self._text + one.rest
        for begin in begins:
            if begin == one.begin and self._spec.whole:
                return True
            if begin <= one.begin:
                before, after = self._merged(whole[begin : one.begin]), self._merged(whole[begin:])
                if after == [*before, one.begin - begin]:
                    return True
        return False

    def _merged(self, chunk: bytes) -> list[int]:
        """Where the pieces begin that merging a chunk makes."""
        if chunk not in self._made:
            [(_, self._made[chunk])] = merged(self._facts.letters_engine, [chunk])
        return self._made[chunk]

    def _completed(self, one: Candidate) -> Iterator[Rows]:
        """Yield the endings of a piece that ends within a character."""
        done = certain(one.rest)[1]
        if not is_valid_utf8(one.rest[:done]) or done == len(one.rest):
            return  # bytes that no text has
        rests = [one.rest + missing for missing in characters(one.rest[done:])]
        rows, ends = self._ids_and_ends(rests[:_FEW])
        yield rows, rests[:_FEW]
        if len(self._text) + len(one.rest) in ends:
            return
        texts, _, _ = self._facts.by_text
        for place in range(bisect_left(texts, b"\x80"), bisect_left(texts, b"\xc0")):
            rest = one.rest + texts[place]
            if len(texts[place]) > 1 and is_valid_utf8(rest):
                rests.append(rest)
        yield self.rows(rests[_FEW:])


def _aligned(engine: Engine, texts: Sequence[bytes | str], chars: bool = False) -> _Aligned:
    """The ids of texts, and where each begins."""
    ids, places, spans, _ = engine.align_arrays([*texts], 1, chars)
    return [
        (ids[begin:end].tolist(), spans[begin:end, 0].tolist()) for begin, end in pairwise(places.tolist())
    ]


def merged(engine: Engine, texts: Sequence[bytes]) -> _Aligned:
    """The same of chunks of bytes, by an engine that merges letters (`ModelFacts.letters_engine`)."""
    return _aligned(engine, [to_letters(text) for text in texts], chars=True)


# --- How much of a long text matters --------------------------------------------------------------


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
    shape = facts.stream_shape
    if PieceType.UNUSED in types or shape is None or shape.user_defined.split(text) is not None:
        return 0, []
    # A user-defined piece ends a chunk. One may begin in the text, and have its end in what follows.
    begins = range(max(len(text) - shape.user_defined.longest_key, 0), len(text))
    ends = {begin for begin in begins if shape.user_defined.beginning_with(text[begin:])}
    return _in_chunk(facts, partial(_aligned, engine), text, {len(text), *ends}, lambda cut: True, types)


def _with_pattern(facts: ModelFacts, engine: Engine, text: bytes, pattern: str) -> tuple[int, list[int]]:
    """The same if a pattern cuts the text."""
    spans = make_cutter(pattern).spans
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
    while is_inside(text, begin):
        begin -= 1
    while is_inside(text, end):
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
        for at in range(0, len(shorter), _LONG_BATCH):
            for row in aligned([text[start:end] for end in shorter[at : at + _LONG_BATCH]]):
                common &= {start + place for place in _places(*row, types)}
        # 3. The last of them after which the rest is cut as in the whole text, and is longer than any piece.
        for cut in sorted(common, reverse=True)[:_LONG_BATCH]:
            if not is_inside(text, cut) and is_good(cut):
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
