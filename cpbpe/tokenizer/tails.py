r"""The ends of a normalized text: the pieces that may span its end (`Tail`), and how much of it matters.

How much of it matters is what `stable_cut` says. It finds a place in a long text up to which the ids are the
same, whatever follows the text. This is needed because a text of one repeated letter, or of Chinese, may have
no place where nothing can merge; without it, all of the text would be encoded again with each piece that may
come next. But what follows changes little. The proof has three steps.

- Let T be one chunk, and M what follows. If the first id of TM that reaches the end of T goes beyond it, it
  is that of a piece that begins with T[i:] for some i, and the ids before it are those of T[:i], as
  `completions.py` explains. Otherwise the ids up to it are those of T; or those of T[:e], if M makes the
  chunk end earlier, at e.
- So in every case the ids are those of one of a few texts T[:i], and at most one more. A *boundary* is a
  place between two symbols that are left after merging. If all of these texts have a boundary at some place,
  TM has one there, whatever M is, and before it all have the same ids: those of T up to that place.
- No merge has crossed such a boundary. So the text after it is merged as if it were alone.

Most of each T[:i] need not be encoded. Let s and c be boundaries of the longest of these texts, s before c,
and let c be a boundary of T[s:i], too. Then T[:i] has both boundaries. Suppose that it lacked one, because a
merge crosses it. If s is crossed first, the same merge happens in T[:c], which has a boundary at s; if c is
crossed first, the same merge happens in T[s:i], which has a boundary at c. Both are contradictions.

How a pattern cuts the text into chunks is tried with the probes (`cpbpe.text.split_probes`), which stand for
everything that can follow. If a chunk is cut inside, the pattern must treat the rest as it treats the whole
chunk. This holds if the characters on both sides of the place are of one class, so that the pattern is in the
same loop there, and if the chunks are the same whichever two classes follow.
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
"""A text is only cut if it is this many bytes longer than the longest piece."""
_AROUND = 3
"""This many characters before and after a cut within a chunk must be of one class."""
_AFTER = 24
"""What follows a text may make its last chunk end up to this many bytes before the end of the text."""
_KEPT, _LAST = 64, 1024
"""How many bytes at the beginning and at the end of a long chunk a pattern is matched against."""
_CHUNKS = 8
"""How many chunks at the end of a text are cut again with each probe."""
_WINDOW = 2048
"""For each place where a chunk may end, only this many bytes before the end are encoded at first."""
_LONG_BATCH = 16
"""This many texts, which may be long, are encoded together; also how many cuts are tried."""


class Candidate(NamedTuple):
    """A piece that may span the end of the text."""

    begin: int
    """Where it would begin."""
    id: int
    """Its id."""
    rest: bytes
    """The rest of it, after the end of the text."""


class Front(NamedTuple):
    """The beginning of a text, up to a place where it is cut."""

    ids: Ids
    """Its ids."""
    size: int
    """How many bytes it has."""


_NOTHING = Front((), 0)


class Tail:
    """The end of a normalized text: the part in which endings can differ."""

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
        """Yield endings, each with a text that leads to it when it follows."""
        if self._spec.alphabet == "bytes":
            yield from self._endings_of_chunks()
            return
        found = (rest for _, _, rests in self._candidates(0) for rest in rests)
        yield self.rows([b"", *filter(is_valid_utf8, found)])

    def rows(self, rests: list[bytes]) -> Rows:
        """The ids that begin before the end of the text, when each of `rests` follows it."""
        return self._ids_and_ends(rests)[0], rests

    def _ids_and_ends(self, rests: list[bytes]) -> tuple[list[Ids], list[int]]:
        """The same ids, and where the last of them ends; 0 if there are none."""
        text, rows, all_ends = self._text, [], []
        for first in range(0, len(rests), _BATCH):
            some = rests[first : first + _BATCH]
            is_cut = self._spec.alphabet == "bytes"
            fronts = list(map(self._front, some)) if is_cut else [_NOTHING] * len(some)
            texts: list[str | bytes] = [
                text[front.size :] + rest for front, rest in zip(fronts, some, strict=True)
            ]
            sizes = np.array([front.size for front in fronts])
            ids, offsets, spans = self._engine.align_arrays(texts, 1, False)
            is_before = spans[:, 0] < np.repeat(self._end - sizes, np.diff(offsets))
            count = np.concatenate(([0], np.cumsum(is_before)))[offsets]  # those before each text
            stops = offsets[:-1] + np.diff(count)
            ends = sizes + np.concatenate(([0], spans[:, 1]))[np.where(stops > offsets[:-1], stops, 0)]
            listed = ids.tolist()
            places = zip(fronts, offsets.tolist(), stops.tolist(), strict=False)
            rows += [front.ids + tuple(listed[begin:stop]) for front, begin, stop in places]
            all_ends += ends.tolist()
        return rows, all_ends

    def _candidates(self, first: int) -> Iterator[tuple[int, list[int], list[bytes]]]:
        """Yield the pieces that can begin in the text, at `first` or later, and go beyond its end.

        For each place where some begin: the place, their ids, and their rests after the end of the text.
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

    # --- Byte-level models: where the text is cut depends on what follows -------------------------

    def _endings_of_chunks(self) -> Iterator[Rows]:
        # 1. The text with each of the probes after it. This covers all ways in which it can be cut.
        text, size, spec = self._text, len(self._text), self._spec
        probes = _PROBES if spec.splitter is not None or spec.whole else _PROBES[:1]
        yield self.rows(list(probes))
        begins = sorted({self._chunk(text + probe, size)[0] for probe in probes})
        # 2. Each piece that may span the end, with nothing after it. This decides most of the pieces.
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
        # 3. The undecided pieces, with each probe that leaves them in one chunk with the end of the text.
        kinds: dict[str, dict[int, list[bytes]]] = {}
        for one, done in found:
            kind = signature(text[-2:], one.rest)
            if kind not in kinds:
                kinds[kind] = self._fitting(one, probes)
            for begin, fitting in kinds[kind].items():
                # Step 2 has decided about a chunk that begins here if it encoded that very chunk by merging:
                # whatever follows, the ids before the piece would be the same.
                was_merged = done or not (spec.whole and (text + one.rest)[begin:] in spec.ids)
                is_decided = b"" in fitting and was_merged
                if begin <= one.begin and not is_decided and self._could_be([begin], one):
                    yield self.rows([one.rest + after for after in fitting])
        # 4. Pieces that end within a character.
        for one in parts:
            if self._could_be(begins, one):
                yield from self._completed(one)
        # 5. A last chunk that is taken whole, but would not be if it went on.
        last = [text[begin:] for begin in begins]
        if spec.whole and any(chunk in spec.ids and len(self._merged(chunk)) > 1 for chunk in last):
            yield self.rows([piece for piece in self._facts.by_text[0] if is_valid_utf8(piece)])

    def _front(self, rest: bytes) -> Front:
        """The text before its last chunk, when `rest` follows.

        Patterns do not look back, so the last chunk is cut as if it were alone. The text before it is the
        same for all rests with one signature. (Only byte-level models have such a text.)
        """
        kind = signature(self._text[-2:], rest)
        if kind not in self._fronts:
            size = self._chunk(self._text + rest, len(self._text))[0]
            ids, _, spans = self._engine.align(self._text + rest, False, True)
            self._fronts[kind] = Front(tuple(ids[: bisect_left(spans, (size, -1))]), size)
        return self._fronts[kind]

    def _fitting(self, one: Candidate, probes: tuple[bytes, ...]) -> dict[int, list[bytes]]:
        """The probes with which the rest of a piece is in one chunk with the end of the text.

        They are listed by the place where that chunk begins, and are the same for all rests that consist of
        the same classes.
        """
        whole, size = self._text + one.rest, len(self._text)
        found: dict[int, list[bytes]] = {}
        for probe in probes:
            begin, end = self._chunk(whole + probe, size)
            if end >= len(whole):
                found.setdefault(begin, []).append(probe)
        return found

    def _could_be(self, begins: list[int], one: Candidate) -> bool:
        """Whether merging a chunk makes this piece at its place, or the piece is a chunk taken whole."""
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
        """Where the pieces begin into which a chunk is merged."""
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
    ids, places, spans = engine.align_arrays([*texts], 1, chars)
    return [
        (ids[begin:end].tolist(), spans[begin:end, 0].tolist()) for begin, end in pairwise(places.tolist())
    ]


def merged(engine: Engine, texts: Sequence[bytes]) -> _Aligned:
    """The same for chunks of bytes, with an engine that merges letters (`ModelFacts.letters_engine`)."""
    return _aligned(engine, [to_letters(text) for text in texts], chars=True)


# --- How much of a long text matters --------------------------------------------------------------


def stable_cut(facts: ModelFacts, engine: Engine, text: bytes) -> tuple[int, list[int]]:
    """The last place found up to which ids are the same, whatever follows, and these ids; 0 if none is.

    `engine` is a raw variant. The text after the place can be encoded by itself.
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
    # A user-defined piece ends a chunk. One may begin in the text and end in what follows.
    begins = range(max(len(text) - shape.user_defined.longest_key, 0), len(text))
    ends = {begin for begin in begins if shape.user_defined.beginning_with(text[begin:])}
    return _in_chunk(facts, partial(_aligned, engine), text, {len(text), *ends}, lambda cut: True, types)


def _with_pattern(facts: ModelFacts, engine: Engine, text: bytes, pattern: str) -> tuple[int, list[int]]:
    """`stable_cut` for a text that a pattern cuts into chunks."""
    spans = make_cutter(pattern).spans
    loops = loops_of(pattern)
    # 1. The last place where the text is cut whatever follows. What follows can change only the last chunks.
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
    # 2. If the rest is one chunk, to the end or nearly, a place within it.
    short, left_out = _shortened(rest, loops)
    given, size = short.decode(), len(short)
    chunks = [spans(given + probe) for probe in PAIRS]
    if any(rows[0][0] != 0 or rows[0][1] < size - _AFTER for rows in chunks):
        return first, before
    kinds = _kinds(given, loops)

    def is_same(cut: int) -> bool:
        """Whether the text after a place is cut into the same chunks by itself as in the whole text."""
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
    """A long text without its middle, and how many bytes that is, if it makes no difference to a pattern.

    It makes none if the middle and what is next to it consist of classes that one loop of the pattern takes.
    (These loops have no limit, except for that over digits, whose chunks are never long.)
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
    """`stable_cut` for a text of one chunk, which ends at one of `ends` or after the text.

    With `types`, the pieces on both sides of the place must be NORMAL.
    """
    # 1. The texts T[:i]: at i, the chunk ends, or a piece begins that may span the end of the text.
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
        # 2. The boundaries that all of them have. `start` is a boundary of the longest; what is before it
        #    need not be encoded.
        start = max((place for place in own if place <= last - window), default=0)
        common = {place for place in own if start < place < most}
        for at in range(0, len(shorter), _LONG_BATCH):
            for row in aligned([text[start:end] for end in shorter[at : at + _LONG_BATCH]]):
                common &= {start + place for place in _places(*row, types)}
        # 3. The last of these boundaries after which the rest is cut as in the whole text. (It is before
        #    `most`, so the rest is longer than any piece.)
        for cut in sorted(common, reverse=True)[:_LONG_BATCH]:
            if not is_inside(text, cut) and is_good(cut):
                return cut, [id for id, begin in zip(ids, begins, strict=True) if begin < cut]
        if not start:
            return 0, []
        window *= 16


def _places(ids: list[int], begins: list[int], types: bytes | None) -> set[int]:
    """The boundaries within a text; with `types`, only those between NORMAL pieces."""
    if types is None:
        return set(begins[1:])
    normal = PieceType.NORMAL
    inner = zip(begins[1:], ids, ids[1:], strict=False)
    return {at for at, left, right in inner if types[left] == types[right] == normal}


def _kinds(text: str, loops: _Loops) -> dict[int, list[str]]:
    """The classes of the characters around each place between two characters; places count bytes."""
    has_cases = not any({"Ll", "Lu"} <= loop for loop in loops)
    one = {"newline": "space", **({} if has_cases else dict.fromkeys(("Ll", "Lu", "Lo"), "L"))}
    kinds = [letter if letter in "'/" else one.get(kind := class_of(letter), kind) for letter in text]
    found, at = {}, 0
    for number, letter in enumerate(text):
        found[at] = kinds[max(number - _AROUND, 0) : number + _AROUND]
        at += len(letter.encode())
    return found
