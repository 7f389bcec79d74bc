"""User-defined pieces that begin alike, or fill the text: sentencepiece's ids, in a time like its length."""

import random
from collections.abc import Callable
from functools import cache
from time import process_time

import pytest
import sentencepiece

from cpbpe.text.finder import Finder
from tests.conftest import CORE
from tests.support import budget, tiers, zoo
from tests.support.parity import Pair
from tests.support.tokenizers import make

KEYS: dict[str, list[str]] = {
    "a…ab": ["a" * length + "b" for length in [1, 2, 3, 30, 31, 62, 63, 64, 65, 200, 1000, 3000]],
    "a…ab and a": ["a", "aaab", *["a" * length + "b" for length in range(50, 900, 50)]],
    "nested": ["a" * length for length in range(1, 90)] + ["b" + "ab" * length for length in range(90)],
    "words": ["ab", "abab", "ba", "▁ab", "ab▁", "▁▁", "é", "éa", "漢字", "漢", "a漢", "b b", "🦙", "1"],
    "across words": ["t▁t", "e▁cat", "the▁cat▁", "cat▁the▁cat", "▁▁t", "é漢", "漢🦙1", "🦙▁", "1\n", "a▁a▁"],
    "one letter": list("abé漢▁"),
}
OPTIONS = {
    "plain": {},
    "prefix": {"add_dummy_prefix": True},
    "squeezed": {"remove_extra_whitespaces": True, "add_dummy_prefix": True},
    "unescaped": {"escape_whitespaces": False},
}


@cache
def with_keys(keys: str, options: str) -> bytes:
    """A small model with user-defined pieces."""
    proto = zoo.parse(zoo.model("llama"))
    proto.normalizer_spec.add_dummy_prefix = False
    for name, value in OPTIONS[options].items():
        setattr(proto.normalizer_spec, name, value)
    return define(proto, KEYS[keys])


def define(proto: zoo.Proto, keys: list[str]) -> bytes:
    """The model with these as user-defined pieces."""
    wanted = {key.encode() for key in keys}
    for piece in proto.pieces:
        if piece.piece in wanted:
            piece.type = zoo.Piece.USER_DEFINED
    zoo.add(proto, keys, zoo.Piece.USER_DEFINED)
    return proto.SerializeToString()


def some_text(keys: list[str], chance: random.Random) -> str:
    """Keys, their beginnings and ends, words, and characters; less and more than is worked on at a time."""
    text = ""
    size = chance.choice([3, 60, 300, 3000])
    while len(text) < size:
        key = chance.choice(keys)
        at = chance.randrange(len(key))
        parts = [
            key,
            key,
            key[:at],
            key[at:],
            "a" * chance.randrange(90),
            " the cat",
            " ",
            "é漢🦙1\n",
            "▁",
            "\U000f0000",
        ]
        text += chance.choice(parts)
    return text


@tiers.engines
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("keys", KEYS)
def test_ids_and_spans_are_sentencepieces(keys: str, options: str, engine: str) -> None:
    pair = Pair(with_keys(keys, options), engine)
    chance = random.Random(budget.SEED)
    for _ in range(budget.examples(6) if engine == "core" else 2):
        pair.check_text(some_text(KEYS[keys], chance))


@pytest.mark.skipif(not CORE, reason="it is the core that cuts texts for threads")
def test_long_texts_by_several_threads() -> None:
    """Parts for threads are cut in texts with user-defined pieces, too."""
    data = with_keys("words", "prefix")
    tok = make(data, "core")
    chance = random.Random(budget.SEED)
    text = "".join(some_text(KEYS["words"], chance) for _ in range(400)).replace("▁", " ")
    assert len(text.encode()) > 1 << 18
    assert tok.encode_array(text, threads=3).tolist() == tok.encode(text)


def grows(call: Callable[[str], object], make_text: Callable[[int], str], size: int) -> float:
    """The processor's time for four times as much text divided by that for as much text, best of three."""

    def best(size: int) -> float:
        times = []
        for _ in range(3):
            text = make_text(size)
            begin = process_time()
            call(text)
            times.append(process_time() - begin)
        return min(times)

    best(size // 4)
    small = max(best(size), 1e-3)
    return best(4 * size) / small


@pytest.mark.skipif(not CORE, reason="the reference takes its time")
def test_pieces_that_begin_alike_do_not_slow_texts_down() -> None:
    """Each place of the text was compared with 8,000 bytes of keys; 100,000 of them took 108 seconds."""
    keys = ["a" * length + "b" for length in range(4, 7992, 4)]
    for more in [], ["a"]:  # no key anywhere; a key at every place, so that the search begins anew after it
        tok = make(define(zoo.parse(zoo.model("llama")), keys + more), "core")
        begin = process_time()
        ids = tok.encode("a" * 100_000)
        assert process_time() - begin < 3  # it takes a thirtieth of a second
        assert more == [] or len(ids) == 100_001
        assert grows(tok.encode, lambda size: "a" * size, 100_000) < 9
        assert grows(tok.normalize, lambda size: "a" * size, 100_000) < 9


def test_the_references_finder_takes_few_steps() -> None:
    """It went back through all beginnings of a key, one by one: 4,000 at each place."""
    finder = Finder([b"a" * length for length in range(1, 4000)])
    text = (b"a" + b"z" * 9) * 20_000
    begin = process_time()
    assert sum(finder.longest(text, at) for at in range(len(text))) == 20_000
    assert process_time() - begin < 2


@pytest.mark.skipif(not CORE, reason="the reference takes its time")
def test_text_full_of_user_defined_pieces() -> None:
    """What is between two of them was encoded like a text by itself, 90 ns each, even if it was empty."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijk", k=chance.randint(3, 7))) for _ in range(8000)]
    proto = zoo.parse(zoo.model("llama"))
    data = define(proto, words)
    tok, theirs = make(data, "core"), sentencepiece.SentencePieceProcessor(model_proto=data)
    text = "".join(chance.choices(words, k=40_000))
    assert tok.encode(text) == theirs.encode(text)
    times = {}
    calls: dict[str, Callable[[str], object]] = {"ours": tok.encode, "theirs": theirs.encode}
    for name, call in calls.items():
        best = float("inf")
        for _ in range(3):
            begin = process_time()
            call(text)
            best = min(best, process_time() - begin)
        times[name] = best
    assert times["ours"] < times["theirs"], times
