"""The reference trainer: against a trainer that is too simple to be wrong, and by hand."""

import itertools
from array import array
from collections import Counter as Multiset
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbpe.errors import TrainingError
from cpbpe.model.formats.sentencepiece import spec_of_settings
from cpbpe.model.spec import Settings
from cpbpe.reference.training import (
    BND,
    NUL,
    UNK,
    ReferenceCounter,
    accept_characters,
    can_join,
    is_valid,
    learn,
    merge_words,
    pack,
    unpack,
)
from cpbpe.reference.training_values import (
    CountSpec,
    Learned,
    LearnSpec,
    PieceLimits,
    Words,
)
from cpbpe.training.families import build, choose
from tests.support import budget
from tests.support.train_cases import piece_limits

EXAMPLES = budget.examples(300)
LETTERS = "ab▁1２яカ語ー\u0301.\x1f\0▅"

limits_of = piece_limits([1, 2, 3, 5, 16])
texts_of = st.lists(
    st.tuples(
        st.text(st.sampled_from(LETTERS) | st.sampled_from("ab▁"), min_size=1, max_size=25), st.integers(1, 3)
    ),
    min_size=1,
    max_size=6,
)


def naive(texts: list[tuple[str, int]], rules: PieceLimits, limit: int) -> Iterator[tuple[str, int]]:
    """Merge whole texts, nothing cut, everything counted anew for each merge. All characters are accepted."""
    symbols = [(list(text), count) for text, count in texts]
    pieces: set[str] = set()
    while len(pieces) < limit:
        counts: Multiset[tuple[str, str]] = Multiset()
        for text, count in symbols:
            for pair in itertools.pairwise(text):
                counts[pair] += count
        valid = [pair for pair in counts if is_valid("".join(pair), rules)]
        joined = ["".join(pair) for pair in valid]
        assert len(set(joined)) == len(joined), "two pairs have one text: there are ties"
        assert pieces.isdisjoint(joined), "a piece is there that was not merged"
        if not valid:
            return
        best = min(valid, key=lambda pair: (-counts[pair], len("".join(pair)), "".join(pair).encode()))
        yield "".join(best), counts[best]
        pieces.add("".join(best))
        for text, _ in symbols:
            at = 0
            while at + 1 < len(text):
                if (text[at], text[at + 1]) == best:
                    text[at : at + 2] = ["".join(best)]
                at += 1


def count(texts: list[tuple[str, int]], rules: PieceLimits) -> Words:
    counter = ReferenceCounter(CountSpec(limits=rules))
    counter.add_prepared([text.encode() for text, _ in texts], [count for _, count in texts])
    return counter.drain()


@settings(max_examples=EXAMPLES, deadline=None)
@given(texts_of, limits_of)
def test_equals_the_naive_trainer(texts: list[tuple[str, int]], rules: PieceLimits) -> None:
    """Cutting and incremental counts change nothing, and there are no ties: the naive one would notice."""
    words = count(texts, rules)
    found = learn(words, LearnSpec(vocab_size=60, meta_pieces=0, limits=rules, character_coverage=1.0))
    limit = 60 - len(found.characters)
    expected = list(naive(texts, rules, limit))
    merges = [
        (piece.decode(), frequency)
        for piece, frequency in zip(found.merges, found.frequencies, strict=True)
        if frequency
    ]
    assert merges == expected
    rest = [piece for piece, frequency in zip(found.merges, found.frequencies, strict=True) if not frequency]
    assert list(found.merges) == [piece.encode() for piece, _ in expected] + rest, "those of 0 come last"
    assert rest == sorted(rest, key=lambda piece: (len(piece.decode()), piece))
    assert len(set(found.merges)) == len(found.merges)


@given(st.text(st.sampled_from(LETTERS), min_size=2, max_size=6), limits_of)
def test_no_valid_piece_is_cut(piece: str, rules: PieceLimits) -> None:
    if is_valid(piece, rules):
        assert all(can_join(a, b, rules) for a, b in itertools.pairwise(piece))


@given(texts_of, limits_of)
def test_words_partition_the_text(texts: list[tuple[str, int]], rules: PieceLimits) -> None:
    characters: Multiset[str] = Multiset()
    for text, times in texts:
        for character in text:
            characters[character] += times
    again: Multiset[str] = Multiset()
    words = list(unpack(count(texts, rules)))
    for word, times in words:
        for character in word.decode():
            again[character] += times
    assert again == characters
    assert [word for word, _ in words] == sorted({word for word, _ in words})


@pytest.mark.parametrize(
    ("piece", "changes", "valid"),
    [
        ("▁", {}, True),
        ("▁▁", {}, False),
        ("▁▁", {"allow_whitespace_only_pieces": True}, True),
        ("▁▁a", {"allow_whitespace_only_pieces": True}, False),
        ("a▁", {}, False),
        ("a▁", {"treat_whitespace_as_suffix": True}, True),
        ("▁a", {"treat_whitespace_as_suffix": True}, False),
        ("a▁b", {}, False),
        ("a▁b", {"split_by_whitespace": False}, True),
        ("a▁", {"split_by_whitespace": False}, False),
        ("▁▁", {"split_by_whitespace": False}, False),
        ("▁▁a", {"split_by_whitespace": False}, True),
        ("▁a", {"split_by_whitespace": False, "treat_whitespace_as_suffix": True}, False),
        ("a▁▁", {"split_by_whitespace": False, "treat_whitespace_as_suffix": True}, True),
        ("a▁я", {"split_by_whitespace": False}, False),
        ("a▁я", {"split_by_whitespace": False, "split_by_unicode_script": False}, True),
        ("カな語ー", {}, True),
        ("ーa", {}, False),
        ("a\u0301b", {}, True),
        ("a\u0301я", {}, False),
        ("\u0301я", {}, True),
        ("a1", {}, False),
        ("1.", {}, True),
        ("a1я", {"split_by_number": False}, True),
        ("a２", {"split_by_number": False}, True),
        ("12", {}, True),
        ("12", {"split_digits": True}, False),
        ("1", {"split_digits": True}, True),
        ("２.", {"split_digits": True}, False),
        ("٣٤", {"split_digits": True}, True),
        ("a" * 16, {}, True),
        ("a" * 17, {}, False),
        ("", {}, False),
        (f"a{UNK}", {}, False),
        (f"a{BND}", {}, False),
        (f"a{NUL}", {}, False),
        ("a b", {}, False),
    ],
)
def test_valid_pieces(piece: str, changes: dict[str, Any], valid: bool) -> None:
    assert is_valid(piece, PieceLimits(**changes)) is valid


def words_of(spec: CountSpec, *sentences: bytes) -> dict[str, int]:
    counter = ReferenceCounter(spec)
    counter.add(sentences)
    return {word.decode(): times for word, times in unpack(counter.drain())}


def test_words_by_hand() -> None:
    plain = CountSpec()
    assert words_of(plain, b"low low  lower", b"low") == {"▁low": 3, "▁lower": 1}
    assert words_of(plain, "año 2024, я".encode()) == {"▁año": 1, "▁2024,": 1, "▁я": 1}
    suffix = CountSpec(PieceLimits(treat_whitespace_as_suffix=True))
    assert words_of(suffix, b"low low") == {"low▁": 2}
    runs = CountSpec(PieceLimits(allow_whitespace_only_pieces=True), remove_extra_whitespaces=False)
    assert words_of(runs, b"  a  b") == {"▁▁▁a": 1, "▁▁b": 1}
    digits = CountSpec(PieceLimits(split_digits=True))
    assert words_of(digits, b"a12") == {"▁a": 1, "1": 1, "2": 1}
    several = CountSpec(PieceLimits(split_by_whitespace=False))
    assert words_of(several, b"low low") == {"▁low▁low": 1}


def test_symbols_and_delimiters() -> None:
    spec = CountSpec(symbols=(b"<s>", b"<s>>", b"xx"), delimiter=b"|", add_dummy_prefix=False)
    assert words_of(spec, b"a<s>b<s>>c|xxx") == {"a": 1, "b": 1, "c": 1, "x": 1, BND: 4}
    nested = tuple(b"a" * length for length in range(1, 80))
    # 64 at one place are looked at: the shortest
    assert words_of(CountSpec(symbols=nested, add_dummy_prefix=False), b"a" * 129) == {BND: 3}


def test_tallies() -> None:
    counter = ReferenceCounter(CountSpec(max_sentence_length=10))
    counter.add_block(b"one\n\n   \nmuch too long\r\ntwo\xe2\x96\x85\nlast")
    tallies = counter.tallies()
    assert (tallies.sentences, tallies.size) == (6, 3 + 0 + 3 + 14 + 6 + 4)
    assert {rule: (seen.sentences, seen.examples) for rule, seen in tallies.skipped.items()} == {
        "empty": (1, ((1, b""),)),
        "blank": (1, ((2, b"   "),)),
        "too_long": (1, ((3, b"much too long\r"),)),
        "reserved": (1, ((4, "two▅".encode()),)),
    }
    assert [word for word, _ in unpack(counter.drain())] == ["▁last".encode(), "▁one".encode()]
    assert counter.distinct() == 0
    assert counter.tallies() == tallies


def test_newlines_can_stay() -> None:
    spec = CountSpec(keep_newlines=True, add_dummy_prefix=False, skip_reserved=False, max_sentence_length=0)
    counter = ReferenceCounter(spec)
    counter.add_block("\n\na\n\n(▅\n".encode())
    assert dict(unpack(counter.drain())) == {b"\n\n": 2, b"a": 1, b"(": 1, "▅".encode(): 1, b"\n": 1}
    assert counter.tallies().sentences == 3


def test_prepare_and_add_prepared_are_add() -> None:
    sentences = [b"a b<s> c", b"", b"\xff"]
    spec = CountSpec(symbols=(b"<s>",))
    whole, parts = ReferenceCounter(spec), ReferenceCounter(spec)
    whole.add(sentences, [2, 3, 4])
    prepared = parts.prepare(sentences)
    assert prepared == ["▁a▁b\x1f▁c".encode(), None, "▁\ufffd".encode()]
    kept = [(text, times) for text, times in zip(prepared, [2, 3, 4], strict=True) if text is not None]
    parts.add_prepared([text for text, _ in kept], [times for _, times in kept])
    assert whole.drain() == parts.drain()
    assert whole.tallies() == parts.tallies()


def test_words_can_be_merged() -> None:
    sentences = [b"a b", b"b c", b"c d e", b"a"]
    parts = []
    for share in (sentences[:1], sentences[1:3], sentences[3:], []):
        counter = ReferenceCounter(CountSpec())
        counter.add(share)
        parts.append(counter.drain())
    whole = ReferenceCounter(CountSpec())
    whole.add(sentences)
    expected = whole.drain()
    assert merge_words(parts) == expected


def test_counts_that_are_too_large() -> None:
    large = pack(Multiset({b"ab": (1 << 62) - 1}))
    assert learn(large, LearnSpec(10, 0)).frequencies[0] == (1 << 62) - 1
    with pytest.raises(OverflowError, match="2\\*\\*63"):
        merge_words([large, large, large])
    with pytest.raises(OverflowError, match="2\\*\\*63"):
        learn(pack(Multiset({b"ab": 1 << 62})), LearnSpec(10, 0))


def test_nothing_to_learn_from() -> None:
    found = learn(pack(Multiset()), LearnSpec(10, 3))
    assert (found.characters, found.merges, list(found.symbols)) == ((), (), [0])


def test_too_small_a_vocabulary() -> None:
    found = learn(pack(Multiset({b"abc": 1})), LearnSpec(4, 2, character_coverage=1.0))
    assert found.characters == ("a", "b", "c")
    assert found.merges == ()


def test_zero_frequencies_follow() -> None:
    """`abab`: `aba` stood in the text while `ab` was merged, from the left to the right."""
    found = learn(pack(Multiset({b"abab": 1})), LearnSpec(20, 0, character_coverage=1.0))
    assert list(zip(found.merges, found.frequencies, strict=True)) == [
        (b"ab", 2),
        (b"abab", 1),
        (b"ba", 0),
        (b"aba", 0),
    ]
    assert list(found.symbols) == [4, 2, 1, 1, 1]


def test_overlaps_count() -> None:
    """`aaaa` holds `aa` three times, and is two of it when merged."""
    found = learn(pack(Multiset({b"aaaa": 1})), LearnSpec(20, 0, character_coverage=1.0))
    assert list(zip(found.merges, found.frequencies, strict=True)) == [(b"aa", 3), (b"aaaa", 1), (b"aaa", 0)]


def accepted(counts: dict[str, int], coverage: float, required: str = "") -> str:
    spec = LearnSpec(99, 0, character_coverage=coverage, required_chars=required)
    return "".join(sorted(accept_characters(Multiset(counts), spec)))


def test_coverage() -> None:
    counts = {"a": 989, "b": 10, "c": 1}
    assert accepted(counts, 0.98) == "a"
    assert accepted(counts, 0.989) == "a", "989 / 1000 is 0.989 as a float32 too"
    assert accepted(counts, 0.9891) == "ab"
    assert accepted(counts, 1.0) == "abc"
    assert accepted(counts, 0.98, "c") == "ac"
    assert accepted(counts, 0.98, "cz") == "acz", "z comes before a, though it is not there"
    assert accepted({"a": 5}, 0.98, "az") == "a", "a covers all, so z is left out"
    # the boundary covers text but is no character; NUL is nothing at all
    assert accepted({"a": 10, BND: 990, "b": 1}, 0.98) == ""
    assert accepted({"a": 10, NUL: 990}, 0.98) == "a"
    assert accepted({}, 0.98, "z") == ""


def test_progress_and_interrupt() -> None:
    words = pack(Multiset({b"%d" % number: 1 for number in range(2000)}))
    seen = []
    learn(words, LearnSpec(500, 0), lambda phase, done, total: seen.append((phase, done, total)))
    assert seen
    assert all(
        phase in ("characters", "pairs", "merges") and 0 <= done <= total for phase, done, total in seen
    )

    def interrupt(phase: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(words, LearnSpec(500, 0), interrupt)


# --- Choosing characters and merges together --------------------------------------------------------


def learned(merges: list[tuple[str, int]], characters: dict[str, int]) -> Learned:
    return Learned(
        characters=tuple(characters),
        character_counts=array("Q", characters.values()),
        dropped_characters=(),
        dropped_counts=array("Q"),
        boundaries=0,
        nuls=0,
        merges=tuple(piece.encode() for piece, _ in merges),
        frequencies=array("Q", (frequency for _, frequency in merges)),
        symbols=array("Q", [0] * (len(merges) + 1)),
    )


@given(
    st.dictionaries(st.sampled_from("abéüя語カ🦙"), st.integers(1, 30), min_size=1),
    st.data(),
    st.integers(1, 15),
)
def test_auto_coverage_saves_most(counts: dict[str, int], data: st.DataObject, room: int) -> None:
    letters = sorted(counts)
    pieces = data.draw(
        st.lists(st.text(st.sampled_from(letters), min_size=2, max_size=3), unique=True, max_size=8)
    )
    merges = [(piece, data.draw(st.integers(0, 40))) for piece in pieces]

    def saved(number: int, characters: set[str]) -> int:
        return sum(f for _, f in merges[:number]) + sum(counts[c] * (len(c.encode()) - 1) for c in characters)

    best = -1
    for number in range(len(merges) + 1):
        needed = set("".join(piece for piece, _ in merges[:number]))
        others = [c for c in letters if c not in needed and len(c.encode()) > 1]
        left = room - number - len(needed)
        if left >= 0:
            choices = itertools.combinations(others, min(left, len(others)))
            best = max(best, *(saved(number, needed | set(choice)) for choice in choices))
    found, characters = choose(learned(merges, counts), room, True)
    assert list(found) == [piece.encode() for piece, _ in merges[: len(found)]]
    assert len(found) + len(characters) <= room
    assert set("".join(piece for piece, _ in merges[: len(found)])) <= set(characters)
    assert saved(len(found), set(characters)) == best


def test_special_ids_need_pieces_before_them() -> None:
    found = learned([("ab", 3)], {"a": 3, "b": 3})
    options: dict[str, Any] = {"base": spec_of_settings(Settings({"model_type": "bpe"}))}
    built = build(found, vocab_size=9, special_pieces={0: ("<unk>", 2), 4: ("<s>", 3)}, **options)
    assert built.spec.pieces.texts == (b"<unk>", b"ab", b"a", b"b", b"<s>")
    assert [str(score) for score in built.spec.pieces.numbers()] == ["0.0", "-0.0", "-1.0", "-2.0", "0.0"]
    with pytest.raises(TrainingError, match="'<s>' has the id 5, but the corpus gives only 4 pieces"):
        build(found, vocab_size=9, special_pieces={0: ("<unk>", 2), 5: ("<s>", 3)}, **options)
