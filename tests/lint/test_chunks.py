"""What a chunk may have in it: against all chunks of all short texts, and published patterns."""

import random
from itertools import product

import pytest
import regex

from cpbpe.lint.chunks import chunks_of, make_cutters
from cpbpe.lint.halves import parted
from cpbpe.model.spec import SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from tests.split.test_splitter import disputed
from tests.support.budget import SEED, examples

LETTERS = "aB1 '\n"
TEXTS = ["".join(text) for size in range(1, 5) for text in product(LETTERS, repeat=size)]


def found_in(pattern: str, texts: list[str]) -> set[str]:
    """All that is inside of chunks, and of what is left out between them."""
    compiled = regex.compile(pattern)
    chunks = set()
    for text in texts:
        at = 0
        for match in compiled.finditer(text):
            chunks |= {match.group(), text[at : match.start()]}
            at = match.end()
        chunks.add(text[at:])
    return {chunk[i:j] for chunk in chunks for i in range(len(chunk)) for j in range(i + 1, len(chunk) + 1)}


@pytest.mark.parametrize("name", PATTERNS)
def test_published_patterns(name: str) -> None:
    """No chunk has what is ruled out; and next to all that is in no chunk of a short text is ruled out."""
    chunks = chunks_of(SplitSpec(PATTERNS[name]))
    assert chunks is not None
    there = found_in(PATTERNS[name], TEXTS)
    short = [text for text in TEXTS if len(text) <= 3]
    ruled_out = {text for text in short if not chunks.may_hold(text)}
    assert not ruled_out & there
    missed = set(short) - ruled_out - there
    assert len(missed) * 20 < len(short), sorted(missed)
    assert chunks.may_hold("a")
    assert not chunks.may_hold("a a")


@pytest.mark.parametrize("name", ["cl100k", "o200k"])
def test_characters_of_other_versions_of_unicode(name: str) -> None:
    """The core and the package regex may class a character differently. Nothing of either is ruled out."""
    spec = SplitSpec(PATTERNS[name])
    chunks = chunks_of(spec)
    assert chunks is not None
    some = ["a", "B", "!", " ", "'", *disputed()]
    rng = random.Random(SEED)
    for _ in range(examples(300)):
        text = "".join(rng.choices(some, k=rng.randint(2, 6)))
        there = {chunk.decode() for cutter in make_cutters(spec.pattern) for chunk in cutter.chunks(text)}
        assert all(chunks.may_hold(chunk) for chunk in there), (text, there)


def test_patterns_at_random() -> None:
    rng = random.Random(SEED)
    classes = ["a", "[^a]", r"\p{L}", r"\s", "'", r"[a\s]", r"\p{N}", "(?i:b)", r"(?:a|1\s)", r"(?:'a?)"]
    counts = ["", "", "?", "*", "+", "{1,2}", "{2}", "++", "?+", "*?", "*+"]
    for _ in range(examples(40)):
        parts = []
        for _ in range(rng.randint(1, 4)):
            sequence = "".join(rng.choice(classes) + rng.choice(counts) for _ in range(rng.randint(1, 3)))
            parts.append(sequence + rng.choice(["", "", "(?!a)", r"(?=\s)", "$"]))
        pattern = "|".join(parts)
        chunks = chunks_of(SplitSpec(pattern))
        assert chunks is not None, pattern
        wrong = [text for text in found_in(pattern, TEXTS) if not chunks.may_hold(text)]
        assert not wrong, (pattern, wrong[:5])


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", r"a(?#b)", r"[a&&b]", r"\x41", "(?<n>a)", "(a", "a)", "*", "a{0}"]
)
def test_what_is_not_understood_rules_out_nothing(pattern: str) -> None:
    assert chunks_of(SplitSpec(pattern)) is None


@pytest.mark.slow
def test_characters_of_parts() -> None:
    """All characters that begin or end with some bytes, against all characters."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    spelled = {c: c.encode() for c in every}
    for head in (b"\xc3", b"\xe0", b"\xf4", b"\xf0\x9f"):
        assert parted(b"a" + head) == ("", "a", "".join(c for c in every if spelled[c].startswith(head)))
    for tail in (b"\x81", b"\x9f\xa6\x99"):
        ends = "".join(c for c in every if spelled[c].endswith(tail))
        assert parted(tail + b"a") == (ends, "a", "")
    assert parted(b"a\xff") is None
    assert parted(b"\x81") is None
    assert parted(b"\xf5a") is None
    assert parted(b"a\xc3b") is None
