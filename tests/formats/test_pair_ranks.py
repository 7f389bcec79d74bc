"""The theorem of `cpbpe.model.pair_ranks`, on small vocabularies and every text over their letters."""

import random
import time
from collections.abc import Iterator
from itertools import product

import pytest

from cpbpe.model.pair_ranks import (
    Pair,
    by_pair,
    by_text,
    candidates,
    differences,
    merged,
    ordered,
    pairs_by_text,
    pairs_that_make,
    ranks_of,
)
from cpbpe.model.spec import PieceType
from tests.support import budget, zoo


def texts(letters: str, longest: int) -> Iterator[str]:
    for length in range(1, longest + 1):
        yield from map("".join, product(letters, repeat=length))


def vocabulary(chance: random.Random) -> dict[str, float]:
    """A few words of few letters, with many equal ranks; half of them as training would give them."""
    letters = chance.choice(["a", "ab", "ab", "ab", "abc"])
    words = sorted(
        {"".join(chance.choices(letters, k=chance.randint(2, 5))) for _ in range(chance.randint(1, 9))}
    )
    ranks = {word: float(chance.randrange(chance.choice([1, 1, 1, 2, 30]))) for word in words}
    if chance.random() < 0.5:
        for word in sorted(words, key=len):
            ranks[word] = max(ranks[part] for part in words if part in word)
    return ranks


def listed(made: dict[str, Pair], order: list[str]) -> dict[Pair, float]:
    return {made[piece]: place for place, piece in enumerate(order)}


@pytest.mark.parametrize("seed", range(4))
def test_they_differ_if_and_only_if_one_of_the_candidates_differs(seed: int) -> None:
    chance = random.Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(budget.examples(80)):
        ranks = vocabulary(chance)
        letters = "".join(sorted(set("".join(ranks))))
        made = pairs_that_make(ranks, by_text(ranks))
        order = ordered(made, ranks)
        ours, theirs = by_text(ranks), by_pair(listed(made, order))
        assert sorted(order) == sorted(made)
        assert [ranks[piece] for piece in order] == sorted(map(ranks.__getitem__, made))
        found = list(differences(made, ranks, order))
        for text in found:
            assert merged(text, ours) != merged(text, theirs), (ranks, text)
        if not found:
            for text in texts(letters, 8 if len(letters) < 3 else 6):
                assert merged(text, ours) == merged(text, theirs), (ranks, text)
        outcomes[bool(found)] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_pairs_become_scores_without_exception(seed: int) -> None:
    """Any list of pairs, with several for one piece, and pairs that can never be merged."""
    chance = random.Random(seed)
    for _ in range(budget.examples(80)):
        words = {*vocabulary(chance), *"abc"}
        splits = [(word[:at], word[at:]) for word in sorted(words) for at in range(1, len(word))]
        pairs = [pair for pair in splits if words.issuperset(pair) and chance.random() < 0.8]
        chance.shuffle(pairs)
        ranks = {pair: float(rank) for rank, pair in enumerate(pairs)}
        scores = ranks_of(words, ranks)
        for text in texts("abc", 6):
            assert merged(text, by_text(scores)) == merged(text, by_pair(ranks)), (pairs, text)


def test_an_order_of_equals_is_found() -> None:
    """Runs of spaces have equal scores in Mistral's models. They grow from the left: longer ones first."""
    ranks = {"a" * length: 0.0 for length in range(2, 9)}
    made = pairs_that_make(ranks, by_text(ranks))
    order = ordered(made, ranks)
    assert not list(differences(made, ranks, order))
    assert next(differences(made, ranks, sorted(made, key=len))) == "aaaa"


def test_no_order_of_equals_is_right() -> None:
    ranks = {"ab": 0.0, "ba": 0.0}
    made = pairs_that_make(ranks, by_text(ranks))
    assert list(differences(made, ranks, ordered(made, ranks))) in (["aba"], ["bab"])


@pytest.mark.parametrize("name", zoo.REAL)
def test_real_models_agree(name: str) -> None:
    import cpbpe

    spec = cpbpe.Tokenizer.from_bytes(zoo.model(name)).spec
    scores = spec.pieces.numbers()
    ranks = {
        text.decode(errors="replace"): -scores[id]
        for id, text in enumerate(spec.pieces.texts)
        if spec.pieces.types[id] == 1
    }
    made = pairs_that_make(ranks, by_text(ranks))
    assert not list(differences(made, ranks, ordered(made, ranks)))


@pytest.mark.slow
def test_many_equal_scores_are_refused_soon() -> None:
    """Among 27,000 pieces of one score, the text that shows it is found without sorting all each time."""
    import cpbpe

    spec = cpbpe.Tokenizer.from_bytes(zoo.model(zoo.REAL[0])).spec
    ranks = {
        text.decode(): 0.0
        for text, type in zip(spec.pieces.texts, spec.pieces.types, strict=True)
        if type == PieceType.NORMAL
    }
    begin = time.process_time()
    made = pairs_that_make(ranks, by_text(ranks))
    texts = candidates(made, ranks)
    order = ordered(made, ranks, texts)
    found = next(differences(made, ranks, order, texts))
    seconds = time.process_time() - begin
    theirs = by_pair(listed(made, order))
    assert merged(found, by_text(ranks)) != merged(found, theirs)
    assert seconds < 15, seconds  # 33 s where all were sorted each time, 2 s now


@pytest.mark.parametrize("kind", ["as trained", "equal ranks", "any order", "several pairs"])
def test_many_pieces_are_merged_at_once(kind: str) -> None:
    """With the result of one after the other."""
    chance = random.Random(kind)
    letters = "abcdefgé\U0001f999"
    words = {"".join(chance.choices(letters, k=chance.choice((2, 3, 4)))) for _ in range(30000)}
    words |= {"".join(chance.choices(letters, k=9)) for _ in range(900)} | {"ab" * 30, "é"}
    order = sorted(words, key=lambda word: (len(word), word))
    if kind == "any order":
        chance.shuffle(order)
    ranks: dict[str, float] = {
        word: place // (9 if kind == "equal ranks" else 1) for place, word in enumerate(order)
    }
    made = pairs_that_make(ranks, by_text(ranks))
    assert len(made) > 4500
    assert [*pairs_by_text(ranks).items()] == [*made.items()]
    # As a list of pairs: of each word the right one, all that there are, or now and then a wrong one.
    listed: list[Pair] = []
    for word in order:
        ways = [(word[:at], word[at:]) for at in range(1, len(word))]
        ways = ways if kind == "several pairs" else [made[word]] if word in made else []
        if kind == "any order" and word in made and chance.random() < 0.01:
            ways = [(word[:1], word[1:])]
        listed += ways
    pairs = {pair: float(rank) for rank, pair in enumerate(listed)}
    expected = {piece: pairs[pair] for piece, pair in pairs_that_make(words, by_pair(pairs)).items()}
    assert ranks_of(words, pairs) == expected
    assert len(expected) > 4000
