"""The compiled core counts and learns what the reference counts and learns, value for value."""

import os
import random
import signal
import threading
import time
from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpbpe.engine import training as train_engine
from cpbpe.engine.training import Counter
from cpbpe.reference import training as reference
from cpbpe.reference.training import ReferenceCounter, pack
from cpbpe.reference.training_values import (
    CountSpec,
    Learned,
    LearnSpec,
    PieceLimits,
    Words,
)
from cpbpe.text import scripts
from cpbpe.text.charsmap_build import charsmap_from_rules
from tests.conftest import CORE
from tests.support import budget, tiers
from tests.support.train_cases import piece_limits

if not CORE and not os.environ.get("CI"):
    pytest.skip("the compiled core is not there", allow_module_level=True)

EXAMPLES = budget.examples(400)
LETTERS = [*"aabbcd  ▁яЯ1２ .“\n", "\u0301", "漢", "あ", "ー", "<s>", "<0x41>", "\x1f", "\0", "▅", "𐍈"]
SYMBOLS = [b"<s>", b"<0x41>", b"ab", b"a", "▁b".encode(), b"a b", "я".encode(), b"<0x41"]
RULES = charsmap_from_rules([("a", "b"), ("я", ""), (".", " "), ("漢", "a\u0301")])

limits_of = piece_limits([1, 2, 3, 5, 16, 512])
specs = st.builds(
    CountSpec,
    limits=limits_of,
    charsmap=st.sampled_from([b"", b"", RULES]),
    add_dummy_prefix=st.booleans(),
    remove_extra_whitespaces=st.booleans(),
    symbols=st.lists(st.sampled_from(SYMBOLS), max_size=4).map(tuple),
    delimiter=st.sampled_from([b"", b"", b"b", "▁".encode(), b" ", "漢あ".encode()]),
    max_sentence_length=st.sampled_from([0, 0, 10, 40]),
    keep_newlines=st.booleans(),
    skip_reserved=st.booleans(),
)
texts = st.lists(st.sampled_from(LETTERS), max_size=40).map(lambda parts: "".join(parts).encode())
sentences_of = st.lists(texts | st.binary(max_size=12), max_size=6)
learn_specs = st.builds(
    LearnSpec,
    vocab_size=st.sampled_from([4, 12, 40, 1000]),
    meta_pieces=st.just(3),
    limits=limits_of,
    character_coverage=st.sampled_from([0.98, 0.995, 1.0]),
    required_chars=st.sampled_from(["", "ac", "\0ж ▅"]),
    auto_character_coverage=st.booleans(),
)
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", "core")


def counters(spec: CountSpec) -> tuple[Counter, Counter]:
    counter = train_engine.make_counter(spec)
    assert type(counter) is not ReferenceCounter
    return counter, ReferenceCounter(spec)


def learn_in_ways(words: Words, spec: LearnSpec, **ways: Any) -> Learned:
    """`learn` in the core, with its inner parameters: how much text is small, how to guess the threshold, how
    many words are laid out in parts."""
    from cpbpe import _core

    given = {"threads": 1, "progress": None, **ways}
    answer: dict[str, Any] = _core.learn((words.blob, words.ends, words.counts, b""), spec, **given)
    return Learned(**{name: train_engine._value(value) for name, value in answer.items()})


# --- Counting -------------------------------------------------------------------------------------


@thorough
@given(specs, sentences_of, st.data())
def test_counts_as_the_reference(spec: CountSpec, sentences: list[bytes], data: st.DataObject) -> None:
    core, oracle = counters(spec)
    counts = data.draw(
        st.none() | st.lists(st.integers(1, 9), min_size=len(sentences), max_size=len(sentences))
    )
    block = b"\n".join(sentences) + data.draw(st.sampled_from([b"", b"\n", b"\n\n"]))
    threads = data.draw(st.integers(1, 3))
    for counter in (core, oracle):
        counter.add(sentences, counts)
        counter.add_block(block, threads)
    assert core.tallies() == oracle.tallies()
    words = oracle.drain()
    assert core.distinct() == len(words)
    assert core.memory() > 0
    assert core.drain() == words
    assert core.distinct() == 0
    prepared = oracle.prepare(sentences)
    assert core.prepare(sentences) == prepared
    for counter in (core, oracle):
        counter.add_prepared([*filter(None, prepared), *sentences], None)
    assert core.drain() == (more := oracle.drain())
    assert core.tallies() == oracle.tallies()
    assert train_engine.merge_words([words, more, words]) == reference.merge_words([words, more, words])


@pytest.mark.parametrize("by_number", [False, True])
def test_every_script_cuts_alike(by_number: bool) -> None:
    starts, ends, _ = scripts.ranges()
    codes = {code + step for code in (*starts, *ends) for step in (-1, 0, 1)} | set(range(0x3000, 0x3100))
    characters = [chr(code) for code in sorted(codes) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000]
    core, oracle = counters(CountSpec(PieceLimits(split_by_number=by_number), max_sentence_length=0))
    for counter in (core, oracle):
        counter.add(["".join(a + c + a for a in "aяあ漢1\u0301").encode() for c in characters])
    assert core.drain() == oracle.drain()


@tiers.slow
def test_long_blocks_are_shared_among_threads() -> None:
    chance = random.Random(7)
    vocabulary = ["".join(chance.choices("abcdeя漢", k=chance.randint(1, 30))) for _ in range(3000)]
    lines = [" ".join(chance.choices(vocabulary, k=chance.randint(0, 30))) for _ in range(8000)]
    lines[100], lines[7000] = "x" * 5000, "a▅b"
    data = "\n".join(lines).encode()
    assert len(data) > 2 << 20  # several portions for each of the threads
    one, oracle = counters(CountSpec())
    several, _ = counters(CountSpec())
    one.add_block(data, 1)
    several.add_block(data, 4)
    oracle.add_block(data)
    assert one.tallies() == several.tallies() == oracle.tallies()
    assert several.memory() > one.memory()
    assert several.distinct() == one.distinct()
    assert one.drain() == several.drain() == oracle.drain()


def test_words_of_every_length() -> None:
    words = ["a" * n for n in range(1, 300)] + ["b" * 70_000, "▁" + "é" * 200]
    core, oracle = counters(CountSpec(max_sentence_length=0))
    for counter in (core, oracle):
        for _ in range(2):
            counter.add([word.encode() for word in words])
    assert core.drain() == oracle.drain()


def test_symbols_that_begin_alike() -> None:
    """At each place as much was read as the longest symbol has: with 1,900 of them it took 9 seconds."""
    symbols = tuple(b"a" * length + b"b" for length in range(4, 7604, 4))
    limits = PieceLimits()
    few = CountSpec(limits=limits, symbols=symbols[::100])
    sentences = [b"a" * 900, b"a" * 405 + b"b" * 3, b"xa" * 50 + b"a" * 804 + b"b"]
    counters = [train_engine.make_counter(few), ReferenceCounter(few)]
    for counter in counters:
        counter.add(sentences)
    assert counters[0].drain() == counters[1].drain()

    counter = train_engine.make_counter(CountSpec(limits=limits, symbols=symbols))
    begin = time.process_time()
    counter.add([b"a" * 4000] * 25)
    assert counter.drain().blob.decode() == "▁" + "a" * 4000
    assert time.process_time() - begin < 2  # it takes a tenth of a second


def test_counter_refuses_what_it_cannot_count() -> None:
    core, _ = counters(CountSpec())
    with pytest.raises(ValueError, match="one count for each"):
        core.add([b"a", b"b"], [1])
    with pytest.raises(ValueError, match="not words"):
        train_engine.merge_words([Words(b"ab", (1).to_bytes(8, "little"), (1).to_bytes(8, "little"))])
    with pytest.raises(ValueError, match="malformed"):
        train_engine.make_counter(CountSpec(charsmap=b"nonsense"))
    with pytest.raises(OverflowError):
        core.add([b"a"], [1 << 64])
    core.add([b"ab"], [(1 << 63) - 1])
    core.add([b"ab"], [1])
    with pytest.raises(OverflowError):
        core.drain()


# --- Learning -------------------------------------------------------------------------------------


@tiers.slow
@thorough
@given(specs, sentences_of, learn_specs, st.data())
def test_learns_as_the_reference(
    count_spec: CountSpec, sentences: list[bytes], spec: LearnSpec, data: st.DataObject
) -> None:
    counter = ReferenceCounter(count_spec)
    counter.add(sentences, data.draw(st.none() | st.just([3] * len(sentences))))
    words = counter.drain()
    expected = reference.learn(words, spec)
    assert train_engine.learn(words, spec) == expected
    # The same when only frequent pairs are watched, however bad the first threshold.
    guess = data.draw(st.sampled_from([1, 3, 50]))
    assert learn_in_ways(words, spec, small=0, guess=guess, threads=2, parts_from=0) == expected


def zipf_words(count: int, alphabet: str, seed: int) -> Words:
    """Many words, some of them frequent."""
    chance = random.Random(seed)
    found: Multiset[bytes] = Multiset()
    while len(found) < count:
        word = "▁" * chance.randint(0, 1) + "".join(chance.choices(alphabet, k=chance.randint(1, 12)))
        found[word.encode()] += int(1 / (chance.random() + 1e-3))
    return pack(found)


def test_many_words_in_parts() -> None:
    words = zipf_words(20_000, "aaaabcdefgh", 1)
    spec = LearnSpec(2000, 3, character_coverage=1.0)
    expected = reference.learn(words, spec)
    assert len(expected.merges) == 2000 - 3 - len(expected.characters)
    for ways in ({}, {"threads": 2}, {"threads": 3, "small": 0}, {"small": 0, "guess": 1}, {"guess": 10**6}):
        assert learn_in_ways(words, spec, parts_from=0, **ways) == expected


def test_all_there_is_to_learn() -> None:
    words = zipf_words(300, "abc▁", 2)
    spec = LearnSpec(10**6, 3, PieceLimits(split_by_whitespace=False))
    expected = reference.learn(words, spec)
    assert expected.frequencies[-1] == 0  # down to pairs that stand nowhere any more
    assert learn_in_ways(words, spec) == learn_in_ways(words, spec, small=0) == expected


def test_learn_refuses_what_are_no_words() -> None:
    spec = LearnSpec(100, 3)
    end, count = (2).to_bytes(8, "little"), (1).to_bytes(8, "little")
    bad = [
        Words(b"ab", end, b""),
        Words(b"abc", end, count),
        Words(b"a", end, count),
        Words(b"ab", end[:7], count[:7]),
        Words(b"\xff\xff", end, count),
        Words("é".encode() * 2, (1).to_bytes(8, "little") + (4).to_bytes(8, "little"), count * 2),
        Words(b"ab", end + (1).to_bytes(8, "little"), count * 2),
    ]
    for words in bad:
        with pytest.raises(ValueError, match="not words"):
            train_engine.learn(words, spec)
    with pytest.raises(OverflowError):
        train_engine.learn(Words(b"ab", end, (1 << 62).to_bytes(8, "little")), spec)


def test_nothing_to_learn_from() -> None:
    empty = Words(b"", b"", b"")
    for spec in (LearnSpec(100, 3), LearnSpec(1, 3), LearnSpec(100, 3, auto_character_coverage=True)):
        assert train_engine.learn(empty, spec) == reference.learn(empty, spec)


# --- Stopping -------------------------------------------------------------------------------------


def heavy_words() -> Words:
    return zipf_words(60_000, "abcdefghijklmnopqrstuvwxyz", 3)


def test_progress_is_reported_and_may_raise() -> None:
    words = heavy_words()
    spec = LearnSpec(200_000, 3, character_coverage=1.0)  # a second of work; reports come every 0.1 s
    seen: list[tuple[str, int, int]] = []

    def stop(phase: str, done: int, total: int) -> None:
        seen.append((phase, done, total))
        if len(seen) == 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        train_engine.learn(words, spec, progress=stop)
    assert {phase for phase, _, _ in seen} <= {"characters", "pairs", "merges"}
    assert all(0 <= done <= total for _, done, total in seen)


def test_signals_are_heard_soon() -> None:
    words = heavy_words()
    spec = LearnSpec(200_000, 3, character_coverage=1.0)
    # The signal comes when progress is first reported, so surely while the core is at work.
    raised: list[float] = []

    def interrupt(*_: object) -> None:
        if not raised:
            raised.append(time.monotonic())
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_engine.learn(words, spec, threads=2, progress=interrupt)
    assert time.monotonic() - raised[0] < 1


def test_counting_hears_signals() -> None:
    core, _ = counters(CountSpec(max_sentence_length=0))
    line = b"the same words again and again " * 1_500_000
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            core.add([line] * 1000)
    finally:
        timer.join()


# --- Inputs that invite slowness ------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["a", "ab", "aab", "漢字かな", "a.b,"])
def test_one_long_line_of_repetitions(unit: str) -> None:
    rules = PieceLimits(split_by_whitespace=False)
    spec = LearnSpec(60, 3, rules, character_coverage=1.0)

    def learned(repetitions: int, engine: Any) -> Learned:
        core, oracle = counters(CountSpec(rules, max_sentence_length=0))
        counter = core if engine is learn_in_ways else oracle
        counter.add([(unit * repetitions).encode()])
        found: Learned = engine(counter.drain(), spec)
        return found

    assert learned(1000, learn_in_ways) == learned(1000, reference.learn)
    begin = time.monotonic()
    long = learned(1 << 20, learn_in_ways)
    assert time.monotonic() - begin < 20  # takes a fraction of a second where nothing is superlinear
    assert long.merges


@tiers.slow
def test_a_million_different_words() -> None:
    core, _ = counters(CountSpec(max_sentence_length=0))
    begin = time.monotonic()
    for block in range(10):
        lines = (f"w{number:x}".translate(str.maketrans("0123456789", "ghijklmnop")) for number in
                 range(block * 100_000, (block + 1) * 100_000))  # fmt: skip
        core.add_block("\n".join(lines).encode(), 2)
    words = core.drain()
    assert len(words) == 1_000_000
    found = train_engine.learn(words, LearnSpec(5000, 3, character_coverage=1.0), threads=2)
    assert len(found.merges) + len(found.characters) == 4997
    assert time.monotonic() - begin < 60
