"""What streams are made of: bytes that are certain to be characters, and keys that may reach further."""

import random
import re
import tracemalloc
from itertools import product

from cpbpe.model.spec import MAX_USER_DEFINED_MATCHES, NormalizerSpec
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import certain, repair
from cpbpe.tokenizer.stream_normalizer import Shape
from tests.encode.test_finder import Naive
from tests.support import budget
from tests.support.budget import SEED

EXAMPLES = budget.examples(300)


def test_certain_is_repair() -> None:
    """One U+FFFD for every byte that belongs to no character, and nothing held that cannot become one."""
    some_bytes = [0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC1, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0xFE]
    for length in range(5):
        for some in product(some_bytes, repeat=length):
            data = bytes(some)
            assert certain(data, final=True) == (repair(data).decode(), length)
            text, used = certain(data)
            assert repair(data[:used]).decode() == text
            rest = data[used:]
            assert len(rest) < 4
            if rest:  # then some end makes it one character
                ends = product([0x80, 0x90, 0xA0], repeat=3)
                assert any(re.fullmatch(r"[^\ufffd].*", repair(rest + bytes(end)).decode()) for end in ends)


def test_user_defined_pieces() -> None:
    """The same as when all keys are tried one by one."""
    rng = random.Random(SEED)
    for number in range(EXAMPLES):
        letters = rng.choice([b"ab", b"abc", b"\0\xff"])
        count, length = rng.choice([(0, 1), (1, 3), (5, 4), (40, 8)])
        some = [bytes(rng.choices(letters, k=rng.randint(1, length))) for _ in range(count)]
        if number % 10 == 0:  # more of them inside each other than are looked at
            some += [b"a" * n for n in range(1, rng.randint(1, 2 * MAX_USER_DEFINED_MATCHES))]
        finder = Finder(some, MAX_USER_DEFINED_MATCHES)
        naive = Naive([*set(some)], MAX_USER_DEFINED_MATCHES)  # which counts keys, each of them once
        reachable = [key for key in some if naive.longest(key, 0) == len(key)]
        text = bytes(rng.choices(letters, k=20)) + b"a" * rng.choice([0, 100])
        starts = naive.starts(text)
        for at in range(len(text)):
            assert finder.longest(text, at) == naive.longest(text, at)
            rest = text[at:]
            expected = any(key.startswith(rest) and key != rest for key in reachable)
            assert finder.could_grow(text, at) == expected
            assert finder.last_start(text, 0, at + 1) == max(start for start in starts if start <= at)
    assert Finder([]).last_start("é🦙".encode(), 0, 4) == 2


def test_long_pieces_take_little_memory() -> None:
    """Not all beginnings of each, which are its length squared."""
    some = [b"%d" % number + b"ab" * 5_000 for number in range(10)]
    tracemalloc.start()
    try:
        shape = Shape(NormalizerSpec(), some)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert shape.user_defined.could_grow(b"0abab", 0)
