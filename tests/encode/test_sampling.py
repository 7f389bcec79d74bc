"""BPE-dropout: the same seed gives the same ids, and over many seeds the distribution is sentencepiece's."""

from collections import Counter
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from cpbpe import Tokenizer
from tests.conftest import CORE, ENGINES
from tests.support import budget, tiers, zoo
from tests.support.texts import SPECIALS, texts
from tests.support.tokenizers import tokenizer

quick = budget.quick(10, least=20)


@pytest.mark.skipif(not CORE, reason="compares the core with the reference")
@tiers.models()
@quick
@given(data=st.data())
def test_engines_agree(name: str, data: st.DataObject) -> None:
    tok = tokenizer(name, "reference")
    pieces = [tok.id_to_piece(id) for id in range(0, len(tok), 7)]
    text = data.draw(texts(pieces))
    options: dict[str, Any] = {
        "alpha": data.draw(st.sampled_from([0.01, 0.1, 0.5, 0.9, 1.0])),
        "seed": data.draw(st.integers(0, 2**64 - 1)),
    }
    expected = tok.align(text, **options)
    core = tokenizer(name, "core")
    assert core.align(text, **options) == expected
    assert core.encode(text, **options) == expected.ids
    assert core.encode_pieces(text, **options) == expected.pieces


@pytest.mark.parametrize("name", [zoo.REAL[0], "user-defined", "unused"])
@quick
@given(text=texts(SPECIALS), seed=st.integers(0, 2**64 - 1))
def test_the_ends_of_the_scale(name: str, text: str, seed: int) -> None:
    """With 0 nothing is left out; with 1 no two characters merge."""
    tok = tokenizer(name, ENGINES[0])
    assert tok.encode(text, alpha=0.0, seed=seed) == tok.encode(text)
    assert tok.encode(text, alpha=1e-300, seed=seed) == tok.encode(text)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=zoo.model(name))
    characters = theirs.encode(text, enable_sampling=True, alpha=1.0, nbest_size=-1)
    assert tok.encode(text, alpha=1, seed=seed) == characters


def distribution(tok: Any, text: str, alpha: float, count: int) -> Counter[tuple[int, ...]]:
    if isinstance(tok, Tokenizer):
        return Counter(tuple(tok.encode(text, alpha=alpha, seed=seed)) for seed in range(count))
    found = tok.encode([text] * count, enable_sampling=True, alpha=alpha, nbest_size=-1, num_threads=1)
    return Counter(map(tuple, found))


CASES = [
    ("llama", "the old house", 0.1),
    ("llama", "the old house", 0.5),
    ("llama", "the old house", 0.9),
    ("llama", "aaaaaa the the", 0.3),
    ("user-defined", "the <s> house", 0.4),
    ("unused", "the old house", 0.3),
    ("equal-scores", "the house", 0.5),
    ("identity-no-fallback", "the 🦙🦙 house", 0.2),
]


@tiers.slow_reference
@pytest.mark.parametrize(("name", "text", "alpha"), CASES)
def test_the_distribution_is_sentencepieces(engine: str, name: str, text: str, alpha: float) -> None:
    """Both libraries have fixed seeds, so the test always has the same result."""
    count = 4000 if engine == "core" else 1500
    ours = distribution(tokenizer(name, engine), text, alpha, count)
    sentencepiece.set_random_generator_seed(5)
    theirs = distribution(
        sentencepiece.SentencePieceProcessor(model_proto=zoo.model(name)), text, alpha, count
    )
    statistic, limit = departure(ours, theirs)
    assert statistic < limit


def test_a_departure_is_noticed() -> None:
    """A chance that is a tenth off gives a distribution that the test above refuses."""
    tok = tokenizer("llama", ENGINES[0])
    count = 4000
    ours, theirs = (distribution(tok, "the old house", alpha, count) for alpha in (0.5, 0.55))
    statistic, limit = departure(ours, theirs)
    assert statistic > limit


def departure(one: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> tuple[float, float]:
    """Pearson's statistic for two samples of equal size, and a limit that chance passes once in 30,000 times.

    What is rare counts together.
    """
    rows = [(one[ids], other[ids]) for ids in one | other if one[ids] + other[ids] >= 20]
    rest = (
        sum(one.values()) - sum(row[0] for row in rows),
        sum(other.values()) - sum(row[1] for row in rows),
    )
    if sum(rest) >= 20:
        rows.append(rest)
    freedom = len(rows) - 1
    assert freedom > 1
    # Wilson and Hilferty's approximation, four standard deviations out.
    limit = freedom * (1 - 2 / (9 * freedom) + 4 * (2 / (9 * freedom)) ** 0.5) ** 3
    return sum((a - b) ** 2 / (a + b) for a, b in rows), limit


def test_options(engine: str) -> None:
    tok = tokenizer(zoo.REAL[0], engine)
    text = "Seeds make samples come again."
    assert tok.encode(text, alpha=0.5, seed=3) == tok.encode(text.encode(), alpha=0.5, seed=3)
    assert len({tuple(tok.encode(text, alpha=0.5, seed=seed)) for seed in range(20)}) == 20
    assert len({tuple(tok.encode(text, alpha=0.5)) for _ in range(20)}) > 10
    assert tok.decode(tok.encode(text, alpha=0.9, add_bos=True, add_eos=True)) == text
    assert tok.encode(text, alpha=0.5, seed=-1) == tok.encode(text, alpha=0.5, seed=2**64 - 1)
    assert tok.encode(text, alpha=0.5, seed=3, reverse=True) == tok.encode(text, alpha=0.5, seed=3)[::-1]
    same = tok.encode("same same" + "<s>same same" * 3, alpha=0.5, seed=1, allowed_special="all")
    segments = "".join(f"{id} " for id in same).split(" 1 ")
    assert len(set(segments)) > 1  # each is sampled with a seed of its own
    assert tok.encode("", alpha=0.5) == []
    # Looking for special tokens where there are none changes nothing; another seed changes every segment.
    for number in range(20):
        plain = tok.encode(text, alpha=0.5, seed=number)
        assert tok.encode(text, alpha=0.5, seed=number, allowed_special="all") == plain
    three = "<s>".join([text] * 3)
    rows = [tok.encode(three, alpha=0.5, seed=number, allowed_special="all") for number in range(8)]
    assert len({part for row in rows for part in " ".join(map(str, row)).split(" 1 ")}) == 24
    batch = tok.encode_batch([text, "a", text], alpha=0.5, seed=7)
    assert batch == [tok.encode(given, alpha=0.5, seed=7 + i) for i, given in enumerate([text, "a", text])]
    for alpha, seed, error, message in (
        (1.5, 1, ValueError, "from 0 to 1, not 1.5"),
        (-0.1, 1, ValueError, "from 0 to 1, not -0.1"),
        (float("nan"), 1, ValueError, "from 0 to 1, not nan"),
        ("x", 1, TypeError, "alpha must be a number from 0 to 1, not 'x'"),
        ("0.5", 1, TypeError, "alpha must be a number from 0 to 1, not '0.5'"),
        (0.5, 1.5, TypeError, "seed must be an integer or None, not float"),
    ):
        with pytest.raises(error, match=message):
            tok.encode(text, alpha=alpha, seed=seed)  # type: ignore[arg-type]
