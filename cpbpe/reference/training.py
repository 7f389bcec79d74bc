r"""How SentencePiece BPE is trained, the whole algorithm in plain Python, to be read from top to bottom.

This file is the specification of training: the compiled core must return what it returns, and it must return
what google/sentencepiece 0.2.3 returns (whose quirks are pointed out where they matter).
`cpbpe/reference/encoding.py`, which uses what is learned here, explains pieces, scores and `▁`. There are
four ideas:

1. **Count words, not text.** Merging looks only at neighbours, and most neighbours can never merge: no piece
   crosses a space, or mixes Latin and Cyrillic. So the text is cut between such neighbours, and equal parts
   are counted together. This is exact: a cut is made only where no piece could cross it. (`can_join`)
2. **Rare characters are left out.** The most frequent ones are accepted until they cover enough of the text;
   each of the others becomes a wall that nothing merges across. (`accept_characters`)
3. **Merge the most frequent pair, again and again.** That is all of training: the pair becomes a symbol, its
   text the next piece, and the counts around every place where it occurred change. (`learn`)
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
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from time import monotonic

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
    """The script of a character that is not `▁`, after a piece whose script so far is `before`.

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
    whether a pair is merged, and how often it is seen, depends only on its neighbours. So cutting there
    changes no count. The answer is no if `is_valid` refuses every piece that holds `ab`:

    * Such a piece has at least two characters, and none of NEVER_IN_A_PIECE; with split_digits, no digit.
    * With split_by_whitespace, `b` cannot be `▁`, because it is not at the start of the piece, unless the
      piece is nothing but `▁`, in which case `a` is `▁`, too. (If `▁` is a suffix, `a` cannot be `▁`, because
      it is not at the end.) Without split_by_whitespace, a `▁` can have anything on both sides.
    * With split_by_unicode_script, the scripts of `a` and `b` must be the same. That of `a` is known, unless
      it is `▁` or a combining mark, which has the script of what is before it. If `b` is one of these, it
      goes with everything. So does a digit, without split_by_number.

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


class ReferenceCounter:
    """Counts words. `cpbpe.engine.training.Counter` describes the methods."""

    def __init__(self, spec: CountSpec):
        self.spec = spec
        # Training does not protect symbols from normalization: they are looked for in the normalized text.
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
        self._words: Multiset[bytes] = Multiset()
        self._sentences = self._bytes = self._broken = 0
        self._skipped = {reason: Skipped() for reason in SKIP_REASONS}

    def add(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        for sentence, count in zip(sentences, counts or [1] * len(sentences), strict=True):
            prepared = self._prepare(sentence)
            if prepared is not None:
                self._count(prepared, count)

    def add_block(self, data: bytes, threads: int = 1) -> None:
        if self.spec.keep_newlines:
            self.add(re.findall(rb"[^\n]*\n+|[^\n]+", data))
        elif data:
            self.add(data.removesuffix(b"\n").split(b"\n"))

    def prepare(self, sentences: Sequence[bytes]) -> list[bytes | None]:
        return [self._prepare(sentence) for sentence in sentences]

    def add_prepared(self, sentences: Sequence[bytes], counts: Sequence[int] | None = None) -> None:
        for sentence, count in zip(sentences, counts or [1] * len(sentences), strict=True):
            self._count(sentence, count)

    def add_words(self, words: Words) -> None:
        for word, count in unpack(words):
            self._words[word] += count

    def tallies(self) -> Tallies:
        return Tallies(self._sentences, self._bytes, dict(self._skipped), self._broken)

    def distinct(self) -> int:
        return len(self._words)

    def memory(self) -> int:
        return 150 * len(self._words) + 10 * len(self._joins)

    def drain(self) -> Words:
        words = pack(self._words)
        self._words.clear()
        return words

    def _prepare(self, sentence: bytes) -> bytes | None:
        """Normalize, and replace symbols by BOUNDARY; or record why the sentence is skipped."""
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

    def _count(self, text: bytes, count: int) -> None:
        """Cut a normalized sentence into words and count them."""
        for word in self._cut(repair(text).decode()):
            self._words[word.encode()] += count

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


def pack(counts: Mapping[bytes, int]) -> Words:
    """Counted words in their portable form."""
    words = sorted(counts)
    if any(counts[word] > MAX_COUNT for word in words):
        raise OverflowError("a word was counted 2**63 times or more")
    ends = array("Q")
    end = 0
    for word in words:
        end += len(word)
        ends.append(end)
    return Words(b"".join(words), _little(ends), _little(array("Q", map(counts.__getitem__, words))))


def unpack(words: Words) -> Iterator[tuple[bytes, int]]:
    """The words with their counts.

    >>> list(unpack(pack(Multiset({b"on": 2, b"and": 1}))))
    [(b'and', 1), (b'on', 2)]
    """
    begin = 0
    for (end,), (count,) in zip(
        struct.iter_unpack("<Q", words.ends), struct.iter_unpack("<Q", words.counts), strict=True
    ):
        yield words.blob[begin:end], count
        begin = end


def merge_words(parts: Sequence[Words]) -> Words:
    """Merge several lists of words, adding up the counts."""
    counts: Multiset[bytes] = Multiset()
    for part in parts:
        for word, count in unpack(part):
            counts[word] += count
    return pack(counts)


def _little(column: array[int]) -> bytes:
    return struct.pack(f"<{len(column)}Q", *column)


# --- Idea 2: rare characters are left out ---------------------------------------------------------


def accept_characters(counts: Multiset[str], spec: LearnSpec) -> set[str]:
    """Which characters become pieces: required ones, then the most frequent, until enough text is covered.

    BOUNDARY counts as text, although it is not a character. NUL does not count at all. All comparisons are in
    float32, as in sentencepiece. Once enough text is covered, even required characters are left out if they
    are rarer (such as those that do not occur).

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


def learn(words: Words, spec: LearnSpec, progress: Progress | None = None) -> Learned:
    """Accept characters, then merge until the vocabulary is full or no pair is left.

    **Frequencies.** The frequency of a pair is how often it occurs in the text, including overlaps: `a`+`a`
    occurs twice in `aaa`. Merging goes from left to right, so `aaa` merges once.

    **Nothing is forgotten.** When every pair in the text has been merged and the vocabulary is not full,
    pairs that occurred earlier follow, with a frequency of 0, in the order of idea 4. It is enough that a
    pair occurred for a moment: while `ab` is merged in `abab`, the text is `ab`+`a`+`b`, so `aba` is
    remembered. This is useless, but sentencepiece does it, and its models have such pieces.

    **There are no ties.** `ab`+`c` and `a`+`bc` are two pairs with the same text, but only one of them can
    occur in the text at any time. Consider a part of the text that consists of whole symbols now. It always
    has, because symbols only grow. So all merges that touched it were inside it, and since merging goes from
    left to right, only its own text decided which they were. So equal texts consist of equal symbols. For the
    same reason, no pair ever has the text of a piece that already exists.
    """
    # 1. Unpack the words.
    report = _Reporter(progress)
    counted = list(unpack(words))
    total = sum(count * len(word) for word, count in counted)
    if total > MAX_COUNT:
        raise OverflowError(f"{total} bytes of text, repetitions included, are too many; the limit is 2**63")

    # 2. Count the characters and accept some. A symbol is an index into `texts`. 0 is the wall between words,
    # and also stands for every character that no piece will hold.
    characters: Multiset[str] = Multiset()
    for done, (word, count) in enumerate(counted):
        report("characters", done, len(counted))
        for character in word.decode():
            characters[character] += count
    accepted = accept_characters(characters, spec)
    ranked = sorted(set(characters) | accepted, key=lambda c: (-characters[c], c))
    texts = ["", *(c for c in ranked if c in accepted)]
    ids = {text: id for id, text in enumerate(texts) if id}
    limit = spec.vocab_size - spec.meta_pieces - (0 if spec.auto_character_coverage else len(accepted))

    # 3. Write the text as one long list of symbols.
    text = [0]
    weight = [0]  # for each position in the text: how often its word was seen
    for done, (word, count) in enumerate(counted if limit > 0 else ()):
        report("pairs", done, len(counted))
        symbols = [ids.get(c, 0) for c in word.decode()]
        text += [*symbols, 0]
        weight += [count] * (len(symbols) + 1)
    before = list(range(-1, len(text) - 1))
    after = list(range(1, len(text) + 1))

    # 4. Find all pairs, and put them in a queue, the most frequent first.
    frequency: dict[tuple[int, int], int] = {}  # of the pairs that can still be merged
    places: dict[tuple[int, int], list[int]] = {}  # where they occur, or occurred, from left to right
    invalid: set[tuple[int, int]] = set()
    new_pairs: list[tuple[int, int]] = []  # pairs that are not in the queue yet
    queue: list[tuple[int, int, bytes, tuple[int, int]]] = []

    def add(left: int, right: int) -> None:
        """Count the pair at these two positions of the text."""
        pair = text[left], text[right]
        if pair not in frequency:
            if 0 in pair or pair in invalid:
                return
            if not is_valid(texts[pair[0]] + texts[pair[1]], spec.limits):
                invalid.add(pair)
                return
            new_pairs.append(pair)
            frequency[pair] = 0
            places[pair] = []
        frequency[pair] += weight[left]
        places[pair].append(left)

    def remove(left: int, right: int) -> None:
        """Uncount the pair at these two positions: one of them is about to change."""
        pair = text[left], text[right]
        if pair in frequency:
            frequency[pair] -= weight[left]

    def entry(pair: tuple[int, int]) -> tuple[int, int, bytes, tuple[int, int]]:
        """The entry of a pair in the queue: the smallest entry is that of the pair to merge next."""
        left, right = texts[pair[0]], texts[pair[1]]
        return -frequency[pair], len(left + right), (left + right).encode(), pair

    for at in range(len(text) - 1):
        add(at, at + 1)
    queue += map(entry, new_pairs)
    new_pairs.clear()
    heapify(queue)

    # 5. Merge the first pair of the queue, until the vocabulary is full or no pair is left.
    symbols_left = sum(characters.values())
    merges: list[bytes] = []
    frequencies = array("Q")
    remaining = array("Q", [symbols_left])

    while len(merges) < limit and queue:
        report("merges", len(merges), limit)
        negative, _, piece, pair = heappop(queue)
        if frequency[pair] != -negative:
            heappush(queue, entry(pair))  # it has become rarer in the meantime
            continue
        del frequency[pair]
        spots = places.pop(pair)
        merges.append(piece)
        frequencies.append(-negative)

        new = len(texts)
        texts.append(piece.decode())
        for left in spots:
            right = after[left]
            if (text[left], text[right]) != pair:
                continue  # another pair was merged here, or this pair overlapped itself
            previous, following = before[left], after[right]
            remove(previous, left)
            remove(right, following)
            text[left], text[right] = new, 0
            after[left], before[following] = following, left
            add(previous, left)
            add(left, following)
            symbols_left -= weight[left]
        remaining.append(symbols_left)
        for pair in new_pairs:
            heappush(queue, entry(pair))
        new_pairs.clear()

    left_out = [c for c in ranked if c not in accepted and c not in (BND, NUL)]
    return Learned(
        characters=tuple(texts[1 : len(accepted) + 1]),
        character_counts=array("Q", (characters[c] for c in ranked if c in accepted)),
        dropped_characters=tuple(left_out),
        dropped_counts=array("Q", (characters[c] for c in left_out)),
        boundaries=characters[BND],
        nuls=characters[NUL],
        merges=tuple(merges),
        frequencies=frequencies,
        symbols=remaining,
    )


class _Reporter:
    """Calls a progress function at most five times a second."""

    def __init__(self, progress: Progress | None):
        self._progress = progress
        self._next = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._progress and (now := monotonic()) >= self._next:
            self._next = now + 0.2
            self._progress(phase, done, total)
