"""The counters of byte-level training: the core's counts what the reference's does, however text is given."""

import random
from array import array
from typing import Any

from cpbpe.engine.training import make_counter
from cpbpe.reference.byte_level.training import ReferenceByteCounter
from cpbpe.reference.training import unpack
from cpbpe.reference.training_values import ByteCountSpec, Words
from cpbpe.text.split_patterns import PATTERNS
from tests.support import corpus
from tests.support.budget import SEED, examples

BITS = [b"a", b"the", b" cat", b"'s", b"1", b" ", b"\n", b"\n\n", b"\r\n", b"\t", "é".encode(), "你".encode()]
BROKEN = [b"\xff", b"\xc3", b"\xe4\xbd", b"\x80", b"\xed\xa0\x80"]
CHOSEN = ["", PATTERNS["gpt2"], PATTERNS["cl100k"], r"\w+", r"[a-z]|\s"]


def calls(rng: random.Random) -> list[tuple[str, Any]]:
    """What a counter is told, in order."""
    bits = BITS + (BROKEN if rng.random() < 0.4 else [])

    def text() -> bytes:
        return b"".join(rng.choices(bits, k=rng.choice([0, 1, 5, 40])))

    told: list[tuple[str, Any]] = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["add", "add_block", "add_part"])
        if kind == "add_part":
            told += [(kind, text()) for _ in range(rng.randint(1, 3))] + [("end_text", None)]
        else:
            told.append((kind, text() if kind == "add_block" else [text() for _ in range(rng.randint(0, 3))]))
    return told


def counted(counter: Any, told: list[tuple[str, Any]], threads: int) -> tuple[Any, list[Any]]:
    """What was seen; and the words with their counts, in the order of the text if that was recorded."""
    for call, data in told:
        if call == "end_text":
            counter.end_text(threads)
        else:
            getattr(counter, call)(data, threads=threads)
    distinct = counter.distinct()
    words = counter.drain()
    assert distinct == len(words)
    return counter.tallies(), in_order(words)


def in_order(words: Words) -> list[Any]:
    rows = list(unpack(words))
    assert rows == sorted(rows)
    if not words.firsts:
        return rows
    return [row for _, row in sorted(zip(array("Q", words.firsts), rows, strict=True))]


def test_the_core_counts_as_the_reference() -> None:
    rng = random.Random(SEED)
    for _ in range(examples(400)):
        spec, told = ByteCountSpec(rng.choice(CHOSEN), rng.random() < 0.5), calls(rng)
        expected = counted(ReferenceByteCounter(spec), told, 1)
        assert counted(make_counter(spec), told, rng.choice([1, 3])) == expected, (spec, told)


def test_an_empty_text_in_parts_is_one_that_is_left_out() -> None:
    for make in (make_counter, ReferenceByteCounter):
        counter = make(ByteCountSpec())
        counter.add([b""])
        counter.add_part(b"")
        counter.end_text()
        assert (counter.tallies().sentences, counter.tallies().skipped["empty"].sentences) == (2, 2)


def test_many_lines_on_several_threads() -> None:
    """More than a thread takes at once, with lines that are not UTF-8, and without a newline at the end."""
    lines = [line.encode() + b"\n" for line in corpus.lines(400)]
    lines[7], lines[300] = b"caf\xe9\n", b"\xff\xff \xc3\n"
    data = b"".join(lines * (1_000_000 // sum(map(len, lines)))) + b"the end"
    for ordered in (False, True):
        spec = ByteCountSpec(PATTERNS["gpt2"], ordered)
        several = counted(make_counter(spec), [("add_block", data)], 3)
        assert several == counted(make_counter(spec), [("add", data.splitlines(keepends=True))], 1)
        assert several[0].sentences == data.count(b"\n") + 1
        assert several[0].broken == 2 * (1_000_000 // sum(map(len, lines)))
