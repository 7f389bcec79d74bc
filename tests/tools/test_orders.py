"""Models with the same pieces and other scores, against all short texts, and in real vocabularies."""

import math
import random
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.model.pair_ranks import by_text, merged
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.tools import differing_text as search
from cpbpe.tools.orders import compare_orders
from tests.bytes.models import spec_of
from tests.support.budget import examples, quick
from tests.support.corpus import lines
from tests.support.tokenizers import tokenizer
from tests.tools.test_diff import small, tokens

WORDS = ["".join(word) for size in (2, 3, 4) for word in product("ab", repeat=size)] + ["bc", "abc", "cab"]
TEXTS = ["".join(text) for size in range(2, 9) for text in product("ab", repeat=size)]
TEXTS += ["".join(text) for size in range(2, 6) for text in product("abc", repeat=size)]
SCORES = st.sampled_from([-3.0, -2.0, -1.0, -0.0, 0.0, 1.5])
twice = st.dictionaries(st.sampled_from(WORDS), st.tuples(SCORES, SCORES), max_size=9)


def split(scores: dict[str, tuple[float, float]]) -> tuple[dict[str, float], dict[str, float]]:
    return {text: old for text, (old, _) in scores.items()}, {text: new for text, (_, new) in scores.items()}


def ranks(scores: dict[str, float]) -> dict[str, float]:
    """As numbers to be compared: -0.0 is below 0.0."""
    return {text: -score - math.copysign(1e-9, score) for text, score in scores.items()}


@quick(3, 100)
@given(twice)
def test_all_short_texts(scores: dict[str, tuple[float, float]]) -> None:
    """The verdict is never wrong, and what is named first is merged in other ways."""
    one, other = split(scores)
    found = compare_orders(small(one).spec, small(other).spec)
    ways = [by_text(ranks(side)) for side in (one, other)]
    differ = [text for text in TEXTS if merged(text, ways[0]) != merged(text, ways[1])]
    if found.same:
        assert (differ, found.texts) == ([], [])
    else:
        first = found.texts[0]
        if first not in scores:  # (a piece may be made in two ways, and look the same)
            assert merged(first, ways[0]) != merged(first, ways[1])
        assert all(len(text) >= len(first) for text in differ)


@quick(6, 40)
@given(twice)
def test_the_whole_search(scores: dict[str, tuple[float, float]]) -> None:
    """The same with texts as users give them: with a prefix, spaces, and characters that no piece has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "GLUED", 1_000)
        one, other = map(small, split(scores))
        found = cpbpe.diff(one, other)
    texts = [*TEXTS[:: len(TEXTS) // 200], " ab", "b a", "abxba", "ca b", "▁ab"]
    differ = [text for text in texts if tokens(one, text) != tokens(other, text)]
    assert (found.same_tokens is False) == (found.text is not None)
    if differ:
        assert found.same_tokens is False
    if found.text is not None:
        assert tokens(one, found.text.text) != tokens(other, found.text.text)


def with_scores(tok: Tokenizer, changes: dict[int, float]) -> Tokenizer:
    rows = [piece._replace(score=changes.get(id, piece.score)) for id, piece in enumerate(tok.spec.pieces)]
    return Tokenizer.from_spec(replace(tok.spec, pieces=Pieces.of(rows), file=None))


@pytest.mark.parametrize("name", ["llama", "defaults", "user-defined", "suffix", "few-scores"])
def test_two_pieces_change_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether that matters is always known, without any chance."""
    monkeypatch.setattr(search, "GLUED", 0)
    monkeypatch.setattr(search, "MOST_TEXTS", 0)
    monkeypatch.setattr(search, "_CHANGED", 0)
    tok = tokenizer(name, "core")
    texts = [*lines(), "".join(lines())]
    chance = random.Random(3)
    normal = [id for id, piece in enumerate(tok.spec.pieces) if piece.type == PieceType.NORMAL]
    verdicts = set()
    for _ in range(examples(6)):
        at = chance.randrange(len(normal) - 1)
        pair = normal[at], normal[at + chance.choice([1, 1, 2])] if at + 2 < len(normal) else normal[0]
        scores = [tok.spec.pieces[id].score for id in pair]
        other = with_scores(tok, {pair[0]: scores[1], pair[1]: scores[0]})
        found = cpbpe.diff(tok, other)
        verdicts.add(found.same_tokens)
        if found.same_tokens:
            assert [tok.encode(text) for text in texts] == [other.encode(text) for text in texts]
        assert found.same_tokens is not None, [tok.spec.pieces[id] for id in pair]
    assert verdicts


def test_a_difference_that_chance_does_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only texts that differ have two certain pieces of six letters side by side."""
    monkeypatch.setattr(search, "_CHANGED", 0)
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 2_000)]
    pairs = ["".join(letters[at : at + 2]) for at in range(0, 2_000, 2)]
    bridge = letters[3] + letters[4]
    characters = [Piece(text.encode(), -9999.0) for text in letters]

    def model(first: float, second: float) -> Tokenizer:
        scores = {text: -float(at) for at, text in enumerate(pairs, 10)}
        scores[pairs[2]], scores[bridge] = first, second
        rows = [Piece(text.encode(), score) for text, score in scores.items()]
        pieces = Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN), *characters, *rows])
        return Tokenizer.from_spec(ModelSpec(pieces, NormalizerSpec("identity")))

    found = cpbpe.diff(model(-50.5, -50.6), model(-50.6, -50.5))
    assert found.text is not None
    assert found.text.text == "".join(letters[3:6])
    assert found.tried < 10_000
    # (that of the bridge and the pair before it is the same in both)
    assert cpbpe.diff(model(-1.0, -20_000.0), model(-50.0, -30_000.0)).same_tokens is True


def test_zeros_and_no_numbers() -> None:
    """-0.0 is below 0.0, and what is no number has a place as well."""
    zeros = cpbpe.diff(small({"ab": -0.0, "bc": 0.0}), small({"ab": -1, "bc": -1}))
    assert zeros.text is not None
    assert zeros.text.text == "abc"
    assert cpbpe.diff(small({"ab": 0.0, "bc": -0.0}), small({"ab": -1, "bc": -1})).same_tokens is True
    nan = cpbpe.diff(small({"ab": 5, "bc": math.nan}), small({"ab": 6, "bc": 5}))
    assert nan.same_tokens is False


def with_piece(tok: Tokenizer, piece: Piece) -> Tokenizer:
    rows = [*tok.spec.pieces, piece]
    return Tokenizer.from_spec(replace(tok.spec, pieces=Pieces.of(rows), file=None))


@pytest.mark.parametrize(
    ("piece", "same"),
    [
        (Piece(b"<c>", 0, PieceType.CONTROL), True),
        (Piece(b"cba", -0.5), True),  # (nothing makes cb or ba)
        (Piece(b"abc", -9), False),
        (Piece(b"x", 0, PieceType.CONTROL), None),  # (of one character: nothing is claimed)
        (Piece(b"cba", 0, PieceType.USER_DEFINED), False),
    ],
    ids=lambda value: value.text.decode() if isinstance(value, Piece) else "",
)
def test_one_piece_more(piece: Piece, same: bool | None) -> None:
    one = small({"ab": -1})
    found = cpbpe.diff(one, with_piece(one, piece))
    assert (found.same_tokens, bool(found)) == (same, True)


def test_unused_pieces_decide_nothing() -> None:
    one = small({"ab": -1, "bc": -2})
    unused = Piece(b"ca", -3, PieceType.UNUSED)
    assert not compare_orders(one.spec, with_piece(one, unused).spec).same
    other = small({"ab": -2, "bc": -1.5})
    pair = with_piece(one, unused).spec, with_piece(other, unused).spec
    assert compare_orders(*pair) == (False, [])
    assert compare_orders(pair[0], pair[0]).same


@pytest.mark.parametrize("whole", [False, True])
def test_byte_level_models(whole: bool) -> None:
    """Ids are ranks there: what is moved merges at another time."""
    single = [bytes([byte]) for byte in range(256)]

    def model(*more: bytes) -> Tokenizer:
        numbers = {piece: rank for rank, piece in enumerate([*single, *more])}
        return Tokenizer.from_spec(spec_of(numbers, PATTERNS["gpt2"], whole, "gpt2"))

    found = cpbpe.diff(model(b"ab", b"bc", b"xy"), model(b"ab", b"xy", b"bc"))
    assert (found.same_tokens, found.same_ids, found.tried) == (True, False, 0)
    order = compare_orders(model(b"ab", b"bc", b"xy").spec, model(b"bc", b"ab", b"xy").spec)
    assert order == (False, ["abc"])
    # (What no merge makes may still be a whole chunk.)
    assert not compare_orders(model(b"ab").spec, model(b"ab", b"cab").spec).same
