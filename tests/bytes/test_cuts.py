"""Long chunks of byte-level models, which the core cuts into parts where nothing merges, and caches.

The reference knows nothing of this. The models here have what makes it hard: pieces that begin or end
inside of characters, and pieces that are only taken whole.
"""

import random

import pytest

import cpbpe
from cpbpe.engine.choice import make_engine
from cpbpe.engine.reference_engine import PythonEngine
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes.models import spec_of
from tests.support.budget import SEED, examples

LETTERS = [
    *("a", "b", " ", "é", "ê", "ũ", "の", "ね", "日", "旦", "本", "木", "旻", "한", "🦙", "🦊", "\U0001f599"),
    "\U00020999",
]
"""Characters that share their first bytes or their last one, and one from beyond the tables."""


def learned(rng: random.Random, letters: list[str], count: int) -> dict[bytes, int]:
    """Ranks of pieces that consist of two others, and of a few that merges do not make."""
    pieces = {bytes([byte]): byte for byte in range(256)}
    for _ in range(40 * count):
        text = "".join(rng.choices(letters, k=4)).encode()
        begin, middle, end = sorted(rng.choices(range(len(text) + 1), k=3))
        parts = text[begin:middle], text[middle:end]
        made = all(part in pieces for part in parts) or rng.random() < 0.02
        if made and end - begin > 1 and len(pieces) < 256 + count:
            pieces.setdefault(text[begin:end], len(pieces))
    return pieces


@pytest.mark.parametrize("pattern", [None, "cl100k", "o200k", r"\w+"])
def test_parts_are_merged_as_in_their_chunk(pattern: str | None) -> None:
    rng = random.Random(SEED)
    for _ in range(examples(25)):
        letters = rng.sample(LETTERS, rng.randint(2, 9))
        ranks = learned(rng, letters, rng.randint(3, 70))
        spec = spec_of(ranks, PATTERNS.get(pattern or "", pattern), rng.random() < 0.7)
        core, reference = make_engine(spec), PythonEngine(spec)
        texts = ["".join(rng.choices(letters, k=rng.randint(1, 40))) for _ in range(12)]
        for text in texts * 2:
            ids = core.encode(text)
            assert ids == reference.encode(text), (text, sorted(ranks)[256:])
            assert core.count(text) == len(ids)
            assert core.align(text, False, True) == reference.align(text, False, True)


@pytest.mark.parametrize("whole", [True, False])
def test_a_part_is_no_chunk(whole: bool) -> None:
    """A chunk that is a piece is taken whole. A part of a chunk with the same text is merged."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    for piece in ("日", "本", "日本日"):
        ranks |= {piece.encode()[:2]: len(ranks)} if piece.encode()[:2] not in ranks else {}
        ranks[piece.encode()] = len(ranks)
    spec = spec_of(ranks, r"[^ ]+| ", whole)
    core, reference = make_engine(spec), PythonEngine(spec)
    part = "日本日"
    long = f"{part}abcdefghijk"
    for text in (f"{part} {long} {part}", f"{long} {part}", f"xyz{part}a{part}{part} {part}"):
        assert core.encode(text) == reference.encode(text)
    assert (ranks[part.encode()] in core.encode(f"{long} {part}")) == whole
    assert ranks[part.encode()] not in core.encode(long)


@pytest.mark.parametrize("unit", ["日", "aa", "é", "日a", "ab", "🦙", "日aaé"])
@pytest.mark.parametrize("pattern", [None, "cl100k"])
def test_chunks_of_many_parts(pattern: str | None, unit: str) -> None:
    """More parts than fit in a batch, and more bytes; with and without cuts."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {"日".encode()[:2]: 256, "日".encode(): 257, b"aa": 258}
    spec = spec_of(ranks, PATTERNS[pattern] if pattern else None)
    tok = cpbpe.Tokenizer.from_spec(spec)
    one = PythonEngine(spec).encode(unit)
    for count in (255, 256, 257, 8_191, 70_000):
        assert tok.encode(unit * count) == one * count
        assert tok.count(unit * count) == len(one) * count
        assert tok.encode_array(unit * count, threads=2).tolist() == one * count


@pytest.mark.parametrize("pattern", [None, "cl100k"])
def test_a_long_part(pattern: str | None) -> None:
    """One that is longer than a batch, and cannot be cut."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"ba": 257}
    tok = cpbpe.Tokenizer.from_spec(spec_of(ranks, PATTERNS[pattern] if pattern else None))
    for count in (8, 64, 65, 9_000, 40_000):
        text = f"日{'ab' * count}日本"
        assert tok.encode(text) == [*"日".encode(), *[256] * count, *"日本".encode()]
