"""The walk through a charsmap's trie, against a dict of its rules; and on tries that no compiler makes."""

import os
import random
import struct
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from cpbpe.errors import ModelError
from cpbpe.model.formats import sentencepiece as model
from cpbpe.text.charsmap import MAX_MATCHES, Charsmap, rule_charsmap
from cpbpe.text.charsmap_build import named_rules
from tests.support import charsmaps, zoo
from tests.support.time_limit import time_limit

EXAMPLES = int(os.environ.get("CPBPE_EXAMPLES", "300"))
SEED = int(os.environ.get("CPBPE_SEED", "1"))
quick = settings(max_examples=EXAMPLES, deadline=None, database=None)

LETTERS = st.sampled_from([b"a", b"b", b"c", b"\x80", b"\xff"])
KEYS = st.lists(LETTERS, min_size=1, max_size=5).map(b"".join)
RULES = st.dictionaries(KEYS, st.sampled_from([b"", b"x", "é".encode(), b"ab"]), min_size=1, max_size=12)
TEXTS = st.lists(LETTERS, max_size=8).map(b"".join)


# --- What a compiler makes ------------------------------------------------------------------------


@pytest.mark.slow
@quick
@seed(SEED)
@given(RULES, TEXTS)
def test_longest(rules: dict[bytes, bytes], text: bytes) -> None:
    charsmap = Charsmap(charsmaps.make(rules))
    for at in range(len(text) + 1):
        rest = text[at:]
        found = max((key for key in rules if rest.startswith(key)), key=len, default=None)
        expected = None if found is None else (rules[found], len(found))
        could_grow = any(key.startswith(rest) and key != rest for key in rules)
        assert charsmap.longest(text, at) == expected
        assert charsmap.longest_so_far(text, at) == (expected, could_grow)


@quick
@seed(SEED)
@given(RULES)
def test_all_of_it(rules: dict[bytes, bytes]) -> None:
    charsmap = Charsmap(charsmaps.make(rules))
    assert list(charsmap.rules(max_nodes=1000)) == sorted(rules.items())
    longest = max(map(len, rules))
    assert charsmap.longest_key(100) == charsmap.longest_key(longest) == longest
    assert charsmap.longest_key(longest - 1) is None
    changed = {key[0] for key in rules if len(key) == 1 or key[1] < 0x80}
    assert set(charsmap.unchanged_ascii()) == set(range(0x21, 0x7F)) - changed


@pytest.mark.parametrize(
    "rules", [zoo.SPACES, zoo.BROKEN, zoo.LONG, {b"a": b"", b"ab": b"x", b"\xff\xfe": b"y"}]
)
def test_rules_are_read_whole(rules: dict[bytes, bytes]) -> None:
    assert list(Charsmap(charsmaps.make(rules)).rules(1 << 20)) == sorted(rules.items())


@pytest.mark.slow
def test_the_largest_named_rules() -> None:
    """225,000 keys that share their endings."""
    rules = named_rules("nmt_nfkc_cf")
    charsmap = Charsmap(rule_charsmap("nmt_nfkc_cf"))
    expected = sorted((key.encode(), made.encode()) for key, made in rules.items())
    assert list(charsmap.rules(1 << 25)) == expected
    assert charsmap.longest_key(100) == max(len(key) for key, _ in expected)
    assert charsmap.makes_text()


@pytest.mark.parametrize(
    ("name", "length"), [("charsmap-spaces", 2), ("charsmap-broken", 3), ("charsmap-long", 40), ("tsv", 8)]
)
def test_longest_key_of_strange_charsmaps(name: str, length: int) -> None:
    assert Charsmap(model.read(zoo.model(name)).normalizer.charsmap).longest_key(100) == length


def test_so_many_matches_are_looked_at() -> None:
    """Of more than 32 keys that match at one place the 32nd is taken, and more text does not matter then.

    sentencepiece once read past the end of a list there (#1267).
    """
    rules = {b"a" * length: b"%d" % length for length in range(1, 40)}
    charsmap = Charsmap(charsmaps.make(rules))
    assert charsmap.longest_so_far(b"a" * 31, 0) == ((b"31", 31), True)
    for length in (MAX_MATCHES, 35, 50):
        assert charsmap.longest_so_far(b"a" * length, 0) == ((b"32", 32), False)


@pytest.mark.parametrize(("made", "is_text"), [(b"\xc3\xa9", True), (b"\xc3", False), (b"", True)])
def test_makes_text(made: bytes, is_text: bool) -> None:
    assert Charsmap(charsmaps.make({b"a": made})).makes_text() == is_text


# --- What no compiler makes -----------------------------------------------------------------------


class Naive:
    """A trie as its format says it, without any limit or short cut. A node is known by its base."""

    def __init__(self, blob: bytes):
        (size,) = struct.unpack_from("<I", blob)
        self.units = struct.unpack_from(f"<{size // 4}I", blob, 4)
        self.made = blob[4 + size :]
        self.root = self.offset(self.units[0])

    @staticmethod
    def offset(unit: int) -> int:
        return (unit >> 10) << 8 if unit & 0x200 else unit >> 10

    def step(self, base: int, byte: int) -> tuple[int, bytes | None, bool] | None:
        """The base of a child, the replacement if a key ends there, and whether its unit is empty."""
        unit = self.units[base ^ byte]
        if unit & 0x800000FF != byte:
            return None
        target = base ^ byte ^ self.offset(unit)
        made = None
        if unit & 0x100:
            start = self.units[target] & 0x7FFFFFFF
            made = self.made[start : self.made.index(0, start)]
        return target, made, not unit

    def longest_so_far(self, text: bytes) -> tuple[tuple[bytes, int] | None, bool]:
        base, found, matches = self.root, None, 0
        for at, byte in enumerate(text):
            step = self.step(base, byte)
            if step is None:
                return found, False
            base, made, _ = step
            if made is not None:
                found, matches = (made, at + 1), matches + 1
                if matches == MAX_MATCHES:
                    return found, False
        return found, any(self.step(base, byte) for byte in range(256))

    def rules(self, base: int, key: bytes, depth: int) -> Iterator[tuple[bytes, bytes]]:
        for byte in range(256):
            step = self.step(base, byte)
            if step is not None and not step[2]:
                longer = key + bytes((byte,))
                if step[1] is not None:
                    yield longer, step[1]
                if depth > 1:
                    yield from self.rules(step[0], longer, depth - 1)

    def depth(self, limit: int) -> int | None:
        bases = {self.root}
        for depth in range(limit + 1):
            steps = [self.step(base, byte) for base in bases for byte in range(256)]
            bases = {step[0] for step in steps if step is not None and not step[2]}
            if not bases:
                return depth
        return None


def crafted(rng: random.Random) -> bytes:
    """A blob that passes the checks, with cycles, shared nodes, and units that are empty."""
    labels = rng.choice([b"a", b"ab", b"abcdefgh", b"\0\1a"])
    fill = rng.choice([0.02, 0.1, 0.9])
    units = [0] * 512
    leaves = {at for at in range(1, 512) if rng.random() < 0.3}
    for at in range(512):
        offset = rng.randrange(1, 512)
        if at in leaves:
            units[at] = 1 << 31 | rng.randrange(6)
        elif not at:
            units[at] = offset << 10
        elif rng.random() < fill:
            ends = at ^ offset in leaves and rng.random() < 0.7
            units[at] = offset << 10 | ends << 8 | rng.choice(labels)
    return struct.pack("<I512I", 2048, *units) + b"x\0yz\0\0"


@pytest.mark.parametrize("number", range(40))
def test_crafted(number: int) -> None:
    rng = random.Random(SEED * 1000 + number)
    blob = crafted(rng)
    charsmap, naive = Charsmap(blob), Naive(blob)
    for _ in range(200):
        text = bytes(rng.choices(b"\0\1abcdefgh", k=rng.randrange(100)))
        assert charsmap.longest_so_far(text, 0) == naive.longest_so_far(text)
    assert charsmap.longest_key(6) == naive.depth(6)
    if charsmap.longest_key(6) is not None:
        assert list(charsmap.rules(1 << 20, 6)) == [*naive.rules(naive.root, b"", 7)]
        listed = [*islice(charsmap.rules(1 << 20), 50)]
        assert listed == [*islice(naive.rules(naive.root, b"", 7), 50)]
    else:
        with pytest.raises(ModelError, match="no end"):
            list(charsmap.rules(1 << 20, 6))


@time_limit(20)
def test_a_cycle() -> None:
    charsmap = Charsmap(charsmaps.cycle(b"a", b"b", b"c", leads_to=1))
    assert charsmap.longest_so_far(b"abcb", 0) == ((b"x", 4), True)
    assert charsmap.longest_key(100) is None
    with pytest.raises(ModelError, match="no end"):
        list(charsmap.rules(1000))
    with pytest.raises(ModelError, match="no end"):
        list(charsmap.rules(1 << 30, 1000))
    assert [key for key, _ in islice(charsmap.rules(1000), 3)] == [b"a", b"ab", b"abcb"]


@time_limit(20)
def test_a_walk_through_a_cycle_has_an_end() -> None:
    """Its keys grow without end, and copying them would take the square of the number of nodes."""
    charsmap = Charsmap(charsmaps.cycle(b"a", keys=False))
    with pytest.raises(ModelError, match="no end"):
        list(charsmap.rules(1 << 20))
    assert charsmap.longest_key(100) is None


def test_rules_by_their_length() -> None:
    rules = {b"b": b"1", b"aa": b"2", b"a": b"3", b"ab": b"4"}
    charsmap = Charsmap(charsmaps.make(rules))
    assert [key for key, _ in charsmap.rules(100, shortest_first=True)] == [b"a", b"b", b"aa", b"ab"]


@time_limit(20)
def test_many_ways_to_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """199 ways lead from each node to the next, and the last leads to the first: few of them are gone."""
    charsmap = Charsmap(charsmaps.cycle(*(bytes(range(1, 200)) for _ in range(100))))
    assert charsmap.longest_key(1 << 40) is None
    charsmap = Charsmap(charsmaps.make({b"abcd": b"x"}))
    assert charsmap.longest_key(100) == 4
    monkeypatch.setattr("cpbpe.text.charsmap.MAX_VISITS", 3)
    assert charsmap.longest_key(100) is None


@time_limit(20)
def test_empty_units() -> None:
    """They pass for a child for a NUL, which leads to itself; nothing is lost by passing over them."""
    blob = charsmaps.make({b"a": b"x"})
    (size,) = struct.unpack_from("<I", blob)
    units = [*struct.unpack_from(f"<{size // 4}I", blob, 4)]
    base = Naive(blob).root
    assert not units[base] >> 31  # no leaf, so it is free
    units[base] = 0
    charsmap = Charsmap(struct.pack(f"<I{len(units)}I", size, *units) + blob[4 + size :])
    assert charsmap.longest(b"\0\0a", 0) == (b"x", 3)  # as in sentencepiece
    assert list(charsmap.rules(100)) == [(b"a", b"x")]
    assert charsmap.longest_key(100) == 1
    assert charsmap.longest_key(100, follow_empty=True) is None
    with pytest.raises(ModelError, match="no end"):
        list(charsmap.rules(1 << 20, 1000, follow_empty=True))


def test_a_trie_that_was_good_is_checked_again_with_other_replacements() -> None:
    """Answers are kept: one of them must not be given for less text."""
    blob = charsmaps.make({b"a": b"b", b"c": b"dd"})
    (size,) = struct.unpack_from("<I", blob)
    for _ in range(2):
        Charsmap(blob)
        with pytest.raises(ModelError, match="of the trie is not valid"):
            Charsmap(blob[: 4 + size] + b"\0")
