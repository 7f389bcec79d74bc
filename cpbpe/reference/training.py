r"""How SentencePiece BPE is trained, the whole algorithm in plain Python, to be read from top to bottom.

This file is the specification of training: the compiled core must return what it returns, and it must return
what google/sentencepiece 0.2.3 returns (whose quirks are pointed out where they matter).
`cpbpe/reference/encoding.py`, which uses what is learned here, explains pieces, scores and `▁`. Training
rests on four ideas:

1. **Count words, not text.** Merging looks only at neighbours, and most neighbours can never merge: no piece
   crosses a space, or mixes Latin and Cyrillic. So the text is cut between such neighbours, and equal parts
   are counted together. This is exact: a cut is made only where no piece could cross it. (`can_join`)
2. **Rare characters are left out.** The most frequent ones are accepted until they cover enough of the text;
   each of the others becomes a wall that nothing merges across. (`accept_characters`)
3. **Merge the most frequent pair, again and again.** The pair becomes a symbol, its text becomes the next
   piece, and the counts of its neighbours are corrected wherever it occurred. (`merges_of`)
4. **Pairs of equal frequency are ordered by their text**: fewer characters first, then the smaller bytes. So
   the result depends only on the words and their counts. (`learn`)

A corpus small enough to follow by hand:

>>> counter = ReferenceCounter(CountSpec())
>>> counter.add([b"low lower lowest", b"newer newest"])
>>> words = counter.drain()
>>> learned = learn(words, LearnSpec(vocab_size=17, meta_pieces=3, character_coverage=1.0))
>>> "".join(learned.characters)
'ew▁lonrst'
>>> [(piece.decode(), frequency) for piece, frequency in zip(learned.merges, learned.frequencies)]
[('we', 4), ('lo', 3), ('▁lo', 3), ('ne', 2), ('st', 2)]
"""

from __future__ import annotations

import re
import struct
from array import array
from collections import Counter as Multiset
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, islice
from time import monotonic
from typing import Any, NamedTuple

from cpbpe.model.spec import NormalizerSpec
from cpbpe.reference.encoding import Normalizer
from cpbpe.reference.training_values import (
    BOUNDARY,
    EXAMPLE_BYTES,
    EXAMPLES,
    SKIP_REASONS,
    UNKNOWN,
    CountSpec,
    Learned,
    LearnSpec,
    PieceLimits,
    Progress,
    Skipped,
    Tallies,
    Words,
    skip_reason,
)
from cpbpe.text.finder import Finder
from cpbpe.text.scripts import INHERITED, script
from cpbpe.text.utf8 import SPACE, is_valid_utf8, repair

WS, UNK, BND, NUL = SPACE.decode(), UNKNOWN.decode(), BOUNDARY.decode(), "\0"
NEVER_IN_A_PIECE = frozenset((UNK, BND, NUL, " "))
DIGITS = frozenset("0123456789０１２３４５６７８９")
ANY = ""  # the script of characters that go with every script
MAX_COUNT = (1 << 63) - 1
MAX_SYMBOL_MATCHES = 64


# --- Which pieces are valid -----------------------------------------------------------------------


def piece_script(character: str, before: str, limits: PieceLimits) -> str:
    """The script of a character other than `▁`; `before` is the script of the piece up to this character.

    Japanese mixes three scripts in one word, so they count as one. The long vowel mark has no script in
    Unicode and counts as Japanese. A combining mark takes the script of the character before it.
    """
    if character in DIGITS and not limits.split_by_number:
        return ANY
    name = script(character)
    if name in ("Hiragana", "Katakana") or character == "ー":
        return "Han"
    return before if name == INHERITED else name


def is_valid(piece: str, limits: PieceLimits) -> bool:
    """Whether training may make this piece.

    >>> limits = PieceLimits()
    >>> [is_valid(piece, limits) for piece in ("▁the", "the▁", "日本の", "abв", "x1", "▁▁")]
    [True, False, True, False, False, False]
    >>> is_valid("▁▁", PieceLimits(allow_whitespace_only_pieces=True))
    True
    """
    if not 0 < len(piece) <= limits.max_sentencepiece_length or not NEVER_IN_A_PIECE.isdisjoint(piece):
        return False
    if limits.split_digits and len(piece) > 1 and not DIGITS.isdisjoint(piece):
        return False
    if limits.split_by_unicode_script:
        so_far = ANY
        for character in piece.replace(WS, ""):
            name = piece_script(character, so_far, limits)
            if ANY not in (name, so_far) and name != so_far:
                return False
            so_far = name
    if limits.allow_whitespace_only_pieces and piece.strip(WS) == "":
        return True
    if limits.treat_whitespace_as_suffix:
        piece = piece[::-1]
    if limits.split_by_whitespace:
        return WS not in piece[1:]  # only in front
    return len(piece) == 1 or not piece.endswith(WS)  # anywhere but at the end


# --- Idea 1: count words, not text ----------------------------------------------------------------


def can_join(a: str, b: str, limits: PieceLimits) -> bool:
    """Whether some valid piece could hold the character `b` right after `a`; if not, the text is cut here.

    Merging makes only valid pieces, so it never joins two symbols across a place where the answer is no. And
    a merge changes only the counts of neighbouring pairs that can merge themselves. So cutting there changes
    no count. The answer is no if `is_valid` refuses every piece that holds `ab`:

    * Such a piece has at least two characters, and none of NEVER_IN_A_PIECE; with split_digits, no digit.
    * With split_by_whitespace, `b` cannot be `▁`, because it is not at the start of the piece, unless the
      piece is nothing but `▁`, in which case `a` is `▁`, too. (If `▁` is a suffix, `a` cannot be `▁`, because
      it is not at the end.) Without split_by_whitespace, a `▁` can have anything on both sides.
    * With split_by_unicode_script, the scripts of `a` and `b` must be the same. `▁` and combining marks go
      with every script: `▁` has none, and a mark takes the script of the character before it, which is not
      known here. Without split_by_number, digits go with every script, too.

    >>> [can_join(a, b, PieceLimits()) for a, b in ("ab", "a▁", "▁a", "aя", "a1", "1.")]
    [True, False, True, False, False, True]
    """
    if limits.max_sentencepiece_length < 2 or not NEVER_IN_A_PIECE.isdisjoint((a, b)):
        return False
    if limits.split_digits and not DIGITS.isdisjoint((a, b)):
        return False
    if limits.split_by_whitespace:
        inner, outer = (a, b) if limits.treat_whitespace_as_suffix else (b, a)
        if inner == WS and not (limits.allow_whitespace_only_pieces and outer == WS):
            return False
    if limits.split_by_unicode_script and WS not in (a, b):
        left, right = piece_script(a, ANY, limits), piece_script(b, ANY, limits)  # ANY for a combining mark
        return ANY in (left, right) or left == right
    return True


class WordCounter:
    """Turns text into words with counts, for both families. Texts are bytes that may be invalid UTF-8.

    There is one thread, whatever `threads` says.
    """

    def __init__(self, ordered: bool = False) -> None:
        self._words: Multiset[bytes] = Multiset()
        # The place of the first occurrence of each word among all words, if `ordered`.
        self._firsts: dict[bytes, int] | None = {} if ordered else None
        self._seen = 0  # how many words have been counted, which is the place of the next one
        self._parts: list[bytes] | None = None  # those of a text that has not ended
        self._sentences = self._bytes = self._broken = 0
        self._skipped = {reason: Skipped() for reason in SKIP_REASONS}

    def add(self, texts: Sequence[bytes], counts: Sequence[int] | None = None, threads: int = 1) -> None:
        """Count texts, each once or `counts` times (1 to 2**63 - 1)."""
        for text, count in zip(texts, counts or [1] * len(texts), strict=True):
            prepared = self._prepare(text)
            if prepared is not None:
                self._count(prepared, count)

    def add_block(self, data: bytes, threads: int = 1) -> None:
        r"""Count the lines of a part of a file, split at \n only. Lines are whole; the last may lack its \n.

        In byte-level training each line keeps its newline; elsewhere only with `CountSpec.keep_newlines`.
        """
        raise NotImplementedError

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        """The sentences normalized, with BOUNDARY for every special symbol; None for one that is skipped.

        This is for a pretokenizer that is a Python function (not for byte-level models). The function cuts
        these sentences, and the parts, joined by BOUNDARY, go to `add_prepared`. Tallies count a sentence in
        `prepare`, not in `add_prepared`.
        """
        return [self._prepare(sentence) for sentence in sentences]

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        """Count sentences that `prepare` has prepared. They only need to be cut into words."""
        for sentence, count in zip(sentences, counts or [1] * len(sentences), strict=True):
            self._count(sentence, count)

    def add_part(self, data: bytes, threads: int = 1) -> None:
        """Count the next part of one text. Parts end anywhere, even inside a character."""
        self._parts = [*(self._parts or []), data]

    def end_text(self, threads: int = 1) -> None:
        """End the text whose parts were given to `add_part`."""
        if self._parts is not None:
            text, self._parts = b"".join(self._parts), None
            self.add([text])

    def tallies(self) -> Tallies:
        """What was seen and what was skipped. A text that comes in parts is counted when it has ended."""
        return Tallies(self._sentences, self._bytes, dict(self._skipped), self._broken)

    def distinct(self) -> int:
        """How many different words there are."""
        return len(self._words)

    def memory(self) -> int:
        """About how many bytes the words take."""
        return 200 * len(self._words)

    def drain(self) -> Words:
        """Return all words and forget them; the tallies stay."""
        words = pack(self._words, self._firsts)
        self._words.clear()
        if self._firsts is not None:
            self._firsts.clear()
        return words

    def _prepare(self, text: bytes) -> bytes | None:
        """A text, ready to be cut into words; None if it is skipped."""
        raise NotImplementedError

    def _cut(self, text: str) -> Iterator[str]:
        """The words of a text."""
        raise NotImplementedError

    def _count(self, text: bytes, count: int) -> None:
        """Cut a text into words and count them."""
        for word in map(str.encode, self._cut(repair(text).decode())):
            self._words[word] += count
            if self._firsts is not None:
                self._firsts.setdefault(word, self._seen)
                self._seen += 1


class ReferenceCounter(WordCounter):
    """Counts the words of the SentencePiece family."""

    def __init__(self, spec: CountSpec):
        super().__init__()
        self.spec = spec
        # Training does not protect special symbols from normalization: it looks for them in normalized text.
        self._normalizer = Normalizer(
            NormalizerSpec(
                charsmap=spec.charsmap,
                add_dummy_prefix=spec.add_dummy_prefix,
                remove_extra_whitespaces=spec.remove_extra_whitespaces,
                suffix=spec.limits.treat_whitespace_as_suffix,
            ),
            Finder([]),
        )
        # As with user-defined pieces, sentencepiece looks at no more than 64 symbols at one position.
        self._symbols = Finder(spec.symbols, MAX_SYMBOL_MATCHES)
        self._joins: dict[tuple[str, str], bool] = {}

    def add_block(self, data: bytes, threads: int = 1) -> None:
        if self.spec.keep_newlines:
            # (All newlines in a row end one line, so that a piece can hold several.)
            self.add(re.findall(rb"[^\n]*\n+|[^\n]+", data))
        elif data:
            self.add(data.removesuffix(b"\n").split(b"\n"))

    def _prepare(self, sentence: bytes) -> bytes | None:
        """Normalize, and replace special symbols by BOUNDARY; or record why the sentence is skipped."""
        number = self._sentences
        self._sentences += 1
        self._bytes += len(sentence)
        reason = skip_reason(sentence, self.spec.max_sentence_length)
        if reason is None or (reason == "reserved" and not self.spec.skip_reserved):
            self._broken += not is_valid_utf8(sentence)
            text = self._normalizer.normalize(sentence)[0]
            if text:
                parts = self._symbols.split(text)
                text = BOUNDARY.join(parts[::2]) if parts else text
                return text.replace(self.spec.delimiter, BOUNDARY) if self.spec.delimiter else text
            reason = "blank"
        seen = self._skipped[reason]
        example = [(number, sentence[:EXAMPLE_BYTES])] if seen.sentences < EXAMPLES else []
        self._skipped[reason] = Skipped(
            seen.sentences + 1, seen.size + len(sentence), (*seen.examples, *example)
        )
        return None

    def _cut(self, text: str) -> Iterator[str]:
        joins, limits = self._joins, self.spec.limits
        begin = 0
        for at in range(1, len(text)):
            pair = text[at - 1], text[at]
            if pair not in joins:
                joins[pair] = can_join(*pair, limits)
            if not joins[pair]:
                yield text[begin:at]
                begin = at
        if text:
            yield text[begin:]


def pack(counts: Mapping[bytes, int], firsts: Mapping[bytes, int] | None = None) -> Words:
    """Counted words as `Words`; `firsts` says at which place each was first seen."""
    words = sorted(counts)
    if any(counts[word] > MAX_COUNT for word in words):
        raise OverflowError("a word was counted 2**63 times or more")
    return Words(
        b"".join(words),
        _column(list(accumulate(map(len, words)))),
        _column([counts[word] for word in words]),
        _column([firsts[word] for word in words]) if firsts else b"",
    )


def unpack(words: Words) -> Iterator[tuple[bytes, int]]:
    """The words with their counts.

    >>> list(unpack(pack({b"on": 2, b"and": 1})))
    [(b'and', 1), (b'on', 2)]
    """
    begin = 0
    for (end,), (count,) in zip(
        struct.iter_unpack("<Q", words.ends), struct.iter_unpack("<Q", words.counts), strict=True
    ):
        yield words.blob[begin:end], count
        begin = end


def firsts_of(words: Words) -> Iterator[int]:
    """The place at which each word was first seen; 0 if that was not recorded."""
    return (first for (first,) in struct.iter_unpack("<Q", words.firsts or bytes(8 * len(words))))


def merge_words(parts: Sequence[Words]) -> Words:
    """Merge several lists of words: add up their counts, and keep the earliest place of each word."""
    counts: Multiset[bytes] = Multiset()
    firsts: dict[bytes, int] = {}
    for part in parts:
        for (word, count), first in zip(unpack(part), firsts_of(part), strict=True):
            counts[word] += count
            firsts[word] = min(first, firsts.get(word, first))
    return pack(counts, firsts if any(part.firsts for part in parts) else None)


def _column(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


# --- Idea 2: rare characters are left out ---------------------------------------------------------


def accept_characters(counts: Multiset[str], spec: LearnSpec) -> set[str]:
    """The characters that become pieces: required ones, then the most frequent, until enough text is covered.

    BOUNDARY counts as text, although it is not a character. NUL does not count at all. All comparisons are in
    float32, as in sentencepiece. Once enough text is covered, no more characters are accepted, not even
    required ones. (These come in the order of their frequency, so those that do not occur come last.)

    >>> counts = Multiset("aaaaaabbbc")
    >>> sorted(accept_characters(counts, LearnSpec(9, 1, character_coverage=0.89)))
    ['a', 'b']
    """
    if spec.auto_character_coverage:
        return set(counts) - NEVER_IN_A_PIECE
    required = set(spec.required_chars) - {NUL}
    candidates = (required | set(counts)) - {NUL}
    total = sum(counts[c] for c in candidates)
    accepted: set[str] = set()
    covered = 0
    for c in sorted(candidates, key=lambda c: (c not in required, -counts[c], c)):
        if not total or _float32(float(covered) / float(total)) >= _float32(spec.character_coverage):
            break
        covered += counts[c]
        if c not in NEVER_IN_A_PIECE:
            accepted.add(c)
    return accepted


def _float32(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


# --- Ideas 3 and 4: merging -------------------------------------------------------------------------

WALL = -1
"""What no merge crosses. It stands between two words, in place of every character that was not accepted, and
where a symbol was that has been merged into the one before it."""

Pair = tuple[int, int]


class Merge(NamedTuple):
    """A pair that was merged."""

    pair: Pair
    """The two symbols."""
    piece: Any
    """Their joined text."""
    frequency: int
    """How often the pair occurred."""
    shorter: int
    """How many symbols the text lost. This is `frequency`, except that overlapping places count once."""


def merges_of(
    words: Iterable[tuple[Sequence[int], int]],
    pieces: list[Any],
    allowed: Callable[[Any], bool],
    order: Callable[[Pair, Callable[[Pair], int]], tuple[Any, ...]],
) -> Iterator[Merge]:
    """Yield the merges of the most frequent pair, again and again, until no pair is left, for both families.

    Each word is a list of symbols and the count of the word. A symbol is an index into `pieces`, to which
    each merge adds one. `allowed` says which pieces may be made. `order` decides between equally frequent
    pairs: the one with the smaller value comes first. It is given a function that returns the first place of
    a pair in the text.

    **Frequencies.** The frequency of a pair is how often it occurs in the text, including overlaps: `a`+`a`
    occurs twice in `aaa`. Merging goes from left to right, so `aaa` merges once.

    **After a merge, only neighbouring pairs change.** Their frequencies are corrected, instead of counting
    all pairs anew.

    **The queue.** A merge creates only pairs that contain its new symbol; it never creates another place for
    a pair of two older symbols. So once the merge that made the newer symbol of a pair is done, the frequency
    of the pair can only fall, and its first place can only move to the right. An entry of the queue that is
    out of date therefore stands too near the front, never too far back. When its turn comes, it is put back
    with its new values, and the queue never has to be searched.
    """
    # 1. Write the words as one long list of symbols, with walls between them.
    text = [WALL]
    weight = [0]  # for each place in the text: how often its word was counted
    for word, count in words:
        text += [*word, WALL]
        weight += [count] * (len(word) + 1)
    before = list(range(-1, len(text) - 1))
    after = list(range(1, len(text) + 1))

    # 2. Find all pairs, and put them in a queue, the one to merge next in front.
    frequency: dict[Pair, int] = {}  # of the pairs that can still be merged
    places: dict[Pair, list[int]] = {}  # where they occur, or occurred, from left to right
    passed: dict[Pair, int] = {}  # how many of these places, from the first on, no longer hold the pair
    invalid: set[Pair] = set()
    new_pairs: list[Pair] = []  # pairs that are not in the queue yet

    def add(left: int, right: int) -> None:
        """Count the pair at these two places of the text."""
        pair = text[left], text[right]
        if pair not in frequency:
            if WALL in pair or pair in invalid:
                return
            if not allowed(pieces[pair[0]] + pieces[pair[1]]):
                invalid.add(pair)
                return
            new_pairs.append(pair)
            frequency[pair] = 0
            places[pair] = []
        frequency[pair] += weight[left]
        places[pair].append(left)

    def remove(left: int, right: int) -> None:
        """Uncount the pair at these two places: one of them is about to change."""
        pair = text[left], text[right]
        if pair in frequency:
            frequency[pair] -= weight[left]

    def first(pair: Pair) -> int:
        """The first place that still holds the pair."""
        spots, at = places[pair], passed.get(pair, 0)
        while at < len(spots) and (text[spots[at]], text[after[spots[at]]]) != pair:
            at += 1
        passed[pair] = at
        return spots[at] if at < len(spots) else len(text)

    def entry(pair: Pair) -> tuple[Any, ...]:
        """The entry of a pair in the queue: the smallest entry is that of the pair to merge next."""
        return -frequency[pair], *order(pair, first), pair

    for at in range(len(text) - 1):
        add(at, at + 1)
    queue = list(map(entry, new_pairs))
    heapify(queue)

    # 3. Merge the first pair of the queue, until no pair is left.
    while queue:
        top = heappop(queue)
        pair = top[-1]
        if top != (now := entry(pair)):
            heappush(queue, now)  # it has become rarer in the meantime, or its first place was merged
            continue
        del frequency[pair]
        new, shorter = len(pieces), 0
        pieces.append(pieces[pair[0]] + pieces[pair[1]])
        new_pairs.clear()
        for left in places.pop(pair):
            right = after[left]
            if (text[left], text[right]) != pair:
                continue  # another pair was merged here, or this pair overlapped itself
            previous, following = before[left], after[right]
            remove(previous, left)
            remove(right, following)
            text[left], text[right] = new, WALL
            after[left], before[following] = following, left
            add(previous, left)
            add(left, following)
            shorter += weight[left]
        for fresh in new_pairs:
            heappush(queue, entry(fresh))
        yield Merge(pair, pieces[new], -top[0], shorter)


def learn(words: Words, spec: LearnSpec, progress: Progress | None = None) -> Learned:
    """Accept characters, then merge until the vocabulary is full or no pair is left.

    **Pairs stay candidates when they no longer occur.** When every pair in the text has been merged and the
    vocabulary is not full, pairs that occurred earlier follow, with a frequency of 0, in the order of idea 4.
    It is enough that a pair occurred for a moment: while `ab` is merged in `abab`, the text is `ab`+`a`+`b`,
    so `ab`+`a` becomes a candidate. Such pieces are useless, but sentencepiece makes them.

    **The order leaves no ties.** `ab`+`c` and `a`+`bc` are two pairs with the same text, but only one of them
    can occur in the text at any time. To see why, consider a part of the text that consists of whole symbols
    now. No merge has crossed its ends, since symbols only grow. So all merges that touched it were inside it,
    and since merging goes from left to right, its own text alone decided which they were. Equal texts
    therefore consist of equal symbols. For the same reason, no pair ever has the text of a piece that already
    exists.
    """
    # 1. Unpack the words.
    report = at_intervals(progress)
    counted = [(word.decode(), count) for word, count in unpack(words)]
    check_size(words)

    # 2. Count the characters and accept some. (If learning goes on from an older model, which is what
    #    `spec.begun` is for, that has been done: the words already consist of its symbols.)
    characters: Multiset[str] = Multiset()
    for done, (word, count) in enumerate(counted if spec.begun is None else ()):
        report("characters", done, len(counted))
        for character in word:
            characters[character] += count
    accepted = accept_characters(characters, spec) if spec.begun is None else set()
    ranked = sorted(set(characters) | accepted, key=lambda c: (-characters[c], c))
    left_out = [c for c in ranked if c not in accepted and c not in (BND, NUL)]
    pieces = [c for c in ranked if c in accepted]
    ids = {piece: id for id, piece in enumerate(pieces)}
    # (With auto_character_coverage, characters compete with all these merges later: see `families.choose`.)
    limit = spec.vocab_size - spec.meta_pieces - (0 if spec.auto_character_coverage else len(accepted))
    symbols: list[tuple[Sequence[int], int]]
    if spec.begun is None:
        symbols = [([ids.get(c, WALL) for c in word], count) for word, count in counted]
    else:
        pieces = [text.decode() for text in spec.begun.texts]
        symbols = [(word, count) for word, (_, count) in zip(spec.begun.words(), counted, strict=True)]
    total = sum(count * len(word) for word, count in symbols)

    # 3. Merge.
    def order(pair: Pair, first: object) -> tuple[int, bytes]:
        piece = pieces[pair[0]] + pieces[pair[1]]
        return len(piece), piece.encode()

    report("pairs", 0, len(counted))
    merging = merges_of(symbols, pieces, lambda piece: is_valid(piece, spec.limits), order)
    merges: list[Merge] = []
    for merge in islice(merging, max(limit, 0)):
        merges.append(merge)
        report("merges", len(merges), limit)
    return Learned(
        merges=tuple(merge.piece.encode() for merge in merges),
        frequencies=array("Q", (merge.frequency for merge in merges)),
        symbols=array("Q", accumulate((-merge.shorter for merge in merges), initial=total)),
        characters=tuple(pieces[: len(accepted)]),
        character_counts=array("Q", (characters[c] for c in ranked if c in accepted)),
        dropped_characters=tuple(left_out),
        dropped_counts=array("Q", (characters[c] for c in left_out)),
        boundaries=characters[BND],
        nuls=characters[NUL],
    )


def check_size(words: Words) -> int:
    """How many bytes the text has, repetitions included; an OverflowError if there are too many."""
    total = sum(count * len(word) for word, count in unpack(words))
    if total > MAX_COUNT:
        raise OverflowError(
            f"{total} bytes of text, repetitions included, are too many; the limit is 2**63 - 1"
        )
    return total


def at_intervals(progress: Progress | None) -> Progress:
    """A function that passes its calls on to `progress`, at most five times a second."""
    next_time = 0.0

    def report(phase: str, done: int, total: int) -> None:
        nonlocal next_time
        if progress and (now := monotonic()) >= next_time:
            next_time = now + 0.2
            progress(phase, done, total)

    return report
