"""The finder of keys in Python, against trying all keys one by one; and the core's against it."""

import os
import random
import time
import tracemalloc

import pytest
from hypothesis import example, given, seed, settings
from hypothesis import strategies as st

from cpbpe.text.finder import Finder
from tests.conftest import CORE

EXAMPLES = int(os.environ.get("CPBPE_EXAMPLES", "300"))
SEED = int(os.environ.get("CPBPE_SEED", "1"))
quick = settings(max_examples=EXAMPLES, deadline=None, database=None)

LIMITS = st.sampled_from([None, 1, 2, 3, 64])


@st.composite
def keys_and_texts(draw: st.DrawFn) -> tuple[list[bytes], bytes]:
    """Few different letters, so that keys begin and overlap one another; and a text that holds them."""
    letters = draw(st.sampled_from([b"ab", b"abc", b"\0\xff", b"]^-\\a", "é✓".encode()]))
    some = st.lists(st.sampled_from([letters[i : i + 1] for i in range(len(letters))]), max_size=8)
    keys = draw(st.lists(some.map(b"".join).filter(bool), unique=True, max_size=20))
    parts = [*keys, letters[:1], letters[-1:], b"x"]
    return keys, b"".join(draw(st.lists(st.sampled_from(parts), min_size=1, max_size=20)))


class Naive:
    """What `Finder` does, said as shortly as possible."""

    def __init__(self, keys: list[bytes], max_matches: int | None):
        self.keys = sorted(keys, key=len)
        self.max_matches = max_matches

    def longest(self, text: bytes, at: int) -> int:
        matches = [key for key in self.keys if text.startswith(key, at)]
        return max(map(len, matches[: self.max_matches]), default=0)

    def starts(self, text: bytes) -> list[int]:
        """Where keys, and the bytes between them, begin, and the end."""
        starts = [0]
        while starts[-1] < len(text):
            starts.append(starts[-1] + (self.longest(text, starts[-1]) or 1))
        return starts


@pytest.mark.slow
@quick
@seed(SEED)
@given(keys_and_texts(), LIMITS)
@example(([b"a" * length for length in range(1, 100)], b"a" * 120), 64)
@example(([b"a" * length for length in range(1, 100)], b"a" * 120), None)
def test_finds_what_trying_all_keys_finds(
    keys_and_text: tuple[list[bytes], bytes], limit: int | None
) -> None:
    keys, text = keys_and_text
    finder, naive = Finder(keys, limit), Naive(keys, limit)
    reachable = [key for key in keys if naive.longest(key, 0) == len(key)]
    for at in range(len(text)):
        assert finder.longest(text, at) == naive.longest(text, at)
        rest = text[at:]
        assert finder.could_grow(text, at) == any(key.startswith(rest) and key != rest for key in reachable)


@pytest.mark.slow
@quick
@seed(SEED)
@given(keys_and_texts(), LIMITS)
def test_split(keys_and_text: tuple[list[bytes], bytes], limit: int | None) -> None:
    keys, text = keys_and_text
    naive = Naive(keys, limit)
    expected: list[bytes | int] = [b""]
    for begin, end in zip(starts := naive.starts(text), starts[1:], strict=False):
        if naive.longest(text, begin):
            expected += [keys.index(text[begin:end]), b""]
        else:
            expected[-1] += text[begin:end]  # type: ignore[operator]
    assert Finder(keys, limit).split(text) == (expected if len(expected) > 1 else None)


@pytest.mark.slow
@quick
@seed(SEED)
@given(keys_and_texts(), LIMITS)
def test_last_start(keys_and_text: tuple[list[bytes], bytes], limit: int | None) -> None:
    keys, text = keys_and_text
    text = bytes(byte & 0x7F for byte in text)  # so that each byte is a character
    keys = [bytes(byte & 0x7F for byte in key) for key in keys]
    starts = Naive(keys, limit).starts(text)
    for stop in range(1, len(text) + 1):
        assert Finder(keys, limit).last_start(text, 0, stop) == max(start for start in starts if start < stop)


def test_last_start_steps_over_whole_characters() -> None:
    assert Finder([]).last_start("é🦙".encode(), 0, 4) == 2


@pytest.mark.skipif(not CORE, reason="compares the core with the reference")
@quick
@given(
    keys=st.lists(st.text("<|ab>é✓", min_size=1, max_size=5), unique=True, max_size=12),
    text=st.text("<|ab>é✓x", max_size=60),
)
def test_the_core_agrees(keys: list[str], text: str) -> None:
    from cpbpe import _core

    encoded = [key.encode() for key in keys]
    reference, core = Finder(encoded), _core.Finder(encoded)
    assert core.split(text) == reference.split(text)
    assert core.split(text.encode()) == reference.split(text.encode())


def test_no_keys() -> None:
    finder = Finder([])
    assert (finder.longest(b"a", 0), finder.could_grow(b"a", 0), finder.split(b"a")) == (0, False, None)
    assert (finder.longest_key, finder.first_bytes) == (1, b"")


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of a finder is empty"):
        Finder([b"a", b""])


def test_long_keys_take_little_memory() -> None:
    """Not all beginnings of each, which are its length squared."""
    keys = [b"%d" % number + b"ab" * 5_000 for number in range(10)]
    tracemalloc.start()
    try:
        finder = Finder(keys, 64)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert finder.could_grow(b"0abab", 0)


@pytest.mark.slow
def test_many_keys_and_long_texts() -> None:
    """Ten thousand keys, of which many begin one another, in two megabytes that are full of beginnings."""
    rng = random.Random(SEED)
    keys = {bytes(rng.choices(b"abcdef", k=rng.randint(6, 12))) for _ in range(10_000)}
    keys |= {b"=" * length for length in range(20, 256, 3)}
    text = (b"=" * 19 + b"x" + bytes(rng.choices(b"abcdef", k=20))) * 50_000
    begin = time.perf_counter()
    Finder(sorted(keys)).split(text)
    assert time.perf_counter() - begin < 60
