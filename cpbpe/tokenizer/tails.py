"""The end of a normalized text, and the pieces that may span it: see `endings.py`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress
from typing import NamedTuple

from cpbpe.engine.choice import make_chunk_finder
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import numpy
from cpbpe.text.split_probes import PROBES, characters, signature
from cpbpe.text.utf8 import certain, is_valid_utf8
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.stable_cuts import merged

Ids = tuple[int, ...]
Rows = tuple[list[Ids], list[bytes]]
"""Some endings, and what follows the text with each."""

_PROBES = tuple(probe.encode() for probe in PROBES)
_BATCH = 8192
"""So many texts are encoded together."""
_FEW = 16
"""So many characters are tried first to complete a piece."""


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
        self._facts = facts
        self.engine = engine
        self.by_text = facts.by_text
        self.text = text
        self._end = end

    def endings(self) -> Iterator[Rows]:
        """Yield endings, each with what follows the text then."""
        if self._facts.spec.alphabet == "bytes":
            yield from _ChunkTail(self, self._facts).endings()
            return
        found = (rest for _, _, rests in self.candidates(0) for rest in rests)
        all_rests = [b"", *filter(is_valid_utf8, found)]
        yield self.ids(all_rests), all_rests

    def ids(self, rests: list[bytes]) -> list[Ids]:
        """The ids that begin before the end of this text, with each of these after it."""
        return self.ids_after([_NOTHING] * len(rests), rests)[0]

    def ids_after(self, fronts: list[Front], rests: list[bytes]) -> tuple[list[Ids], list[int]]:
        """The same, and where the last of them ends, which is 0 if there are none.

        It is known what the beginning of this text becomes with each of the rests.
        """
        np = numpy()
        text, rows, all_ends = self.text, [], []
        for first in range(0, len(rests), _BATCH):
            batch = slice(first, first + _BATCH)
            texts: list[str | bytes] = [
                text[front.size :] + rest for front, rest in zip(fronts[batch], rests[batch], strict=True)
            ]
            sizes = np.array([front.size for front in fronts[batch]])
            ids, offsets, spans, _ = self.engine.align_arrays(texts, 1, False)
            is_before = spans[:, 0] < np.repeat(self._end - sizes, np.diff(offsets))
            count = np.concatenate(([0], np.cumsum(is_before)))[offsets]  # before each text
            stops = offsets[:-1] + np.diff(count)
            ends = sizes + np.concatenate(([0], spans[:, 1]))[np.where(stops > offsets[:-1], stops, 0)]
            listed = ids.tolist()
            places = zip(fronts[batch], offsets.tolist(), stops.tolist(), strict=False)
            rows += [front.ids + tuple(listed[begin:stop]) for front, begin, stop in places]
            all_ends += ends.tolist()
        return rows, all_ends

    def candidates(self, first: int) -> Iterator[tuple[int, list[int], list[bytes]]]:
        """Yield the pieces that begin from `first` on with what the text has there, and have more.

        For each place where some begin: that, their ids, and what they have after the text.
        """
        texts, ids, longest = self.by_text
        text = self.text
        for begin in range(max(first, len(text) - longest + 1), len(text)):
            start = text[begin:]
            size = len(start)
            low = bisect_left(texts, start)
            high = bisect_left(texts, start + b"\xff" * longest, low)
            if low < high and len(texts[low]) == size:
                low += 1
            if low < high:
                yield begin, ids[low:high], [piece[size:] for piece in texts[low:high]]


class _ChunkTail:
    """The same for a byte-level model, in which what follows decides where the text is cut, too."""

    def __init__(self, tail: Tail, facts: ModelFacts):
        spec = facts.spec
        self._tail = tail
        self._text = tail.text
        self._spec = spec
        self._pieces = spec.ids
        self._facts = facts
        self._made: dict[bytes, list[int]] = {}
        self._chunk = make_chunk_finder(spec.splitter.pattern if spec.splitter else None)
        self._fronts: dict[str, Front] = {}

    def endings(self) -> Iterator[Rows]:
        """Yield endings, each with what follows the text then."""
        # 1. The text with each of the probes: all ways to cut it.
        text, size = self._text, len(self._text)
        probes = _PROBES if self._spec.splitter is not None or self._spec.whole else _PROBES[:1]
        yield self._ids(list(probes))
        begins = sorted({self._chunk(text + probe, size)[0] for probe in probes})
        # 2. Each piece that may span the end, alone. Most of them do, or cannot.
        found: list[tuple[Candidate, bool]] = []
        parts: list[Candidate] = []
        for begin, all_ids, rests in self._tail.candidates(begins[0]):
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
                if (
                    begin <= one.begin
                    and not self._is_decided(one, done, begin, fitting)
                    and self._could_be([begin], one)
                ):
                    yield self._followed(one, fitting)
        # 4. Pieces that end within a character.
        for one in parts:
            if self._could_be(begins, one):
                yield from self._completed(one)
        # 5. A chunk that would be taken whole, unless it goes on.
        if self._spec.whole and self._is_whole(begins):
            yield self._followed(Candidate(size, -1, b""), self._all_pieces())

    def _ids(self, rests: list[bytes]) -> Rows:
        return self._ids_and_ends(rests)[0], rests

    def _ids_and_ends(self, rests: list[bytes]) -> tuple[list[Ids], list[int]]:
        return self._tail.ids_after([self._front(rest) for rest in rests], rests)

    def _front(self, rest: bytes) -> Front:
        """The text up to its last chunk, when it goes on like this.

        Patterns do not look back, so what is after that is cut as if it were alone. What is before it is the
        same with all rests of one signature.
        """
        kind = signature(self._text[-2:], rest)
        if kind not in self._fronts:
            size = self._chunk(self._text + rest, len(self._text))[0]
            ids, _, begins, _ = self._tail.engine.align(self._text + rest)
            self._fronts[kind] = Front(tuple(ids[: bisect_left(begins, size)]), size)
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

    def _is_decided(self, one: Candidate, done: bool, begin: int, fitting: list[bytes]) -> bool:
        """Whether what the text with this piece alone has become says all about a chunk that begins there.

        It does if it was that chunk, and was merged: whatever follows, the ids before would be the same.
        """
        if b"" not in fitting:
            return False
        return done or not (self._spec.whole and (self._text + one.rest)[begin:] in self._pieces)

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
        texts, _, _ = self._tail.by_text
        for place in range(bisect_left(texts, b"\x80"), bisect_left(texts, b"\xc0")):
            rest = one.rest + texts[place]
            if len(texts[place]) > 1 and is_valid_utf8(rest):
                rests.append(rest)
        yield self._ids(rests[_FEW:])

    def _followed(self, one: Candidate, more: list[bytes]) -> Rows:
        """The endings of a piece with something after it."""
        return self._ids([one.rest + after for after in more])

    def _is_whole(self, begins: list[int]) -> bool:
        """Whether the last chunk may be a piece that is not what merging makes of it."""
        return any(
            self._text[begin:] in self._pieces and len(self._merged(self._text[begin:])) > 1
            for begin in begins
        )

    def _all_pieces(self) -> list[bytes]:
        return [text for text in self._tail.by_text[0] if is_valid_utf8(text)]
