"""cpbpe gives what sentencepiece gives, on every model of the zoo and on texts of every kind."""

from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from cpbpe import ModelSpec, NormalizerSpec, Pieces, PieceType, Tokenizer
from cpbpe.compat.sentencepiece import SentencePieceProcessor
from cpbpe.text.utf8 import repair
from tests.support import budget, corpus, tiers, zoo
from tests.support.budget import SEED
from tests.support.parity import Pair
from tests.support.texts import SPECIALS, TextMaker, broken, texts
from tests.support.tokenizers import pieces_of

EXAMPLES = budget.examples(150)
quick = budget.quick(10, least=20)


@cache
def pair(name: str, engine: str) -> Pair:
    return Pair(zoo.model(name), engine)


@tiers.engines
@tiers.models()
def test_vocabulary(name: str, engine: str) -> None:
    """Sizes, pieces, scores, types, ids of pieces and special ids."""
    ours, theirs = pair(name, engine).ours, pair(name, engine).theirs
    assert ours.vocab_size == len(ours) == theirs.vocab_size()
    specials = [ours.unk_id, ours.bos_id, ours.eos_id, ours.pad_id]
    assert [-1 if id is None else id for id in specials] == [
        theirs.unk_id(),
        theirs.bos_id(),
        theirs.eos_id(),
        theirs.pad_id(),
    ]
    for id in range(len(ours)):
        try:
            piece = theirs.id_to_piece(id)
        except UnicodeDecodeError:  # a piece that is not UTF-8
            assert "\ufffd" in ours.id_to_piece(id)
            continue
        assert ours.id_to_piece(id) == piece
        if piece != "\0":
            assert ours.piece_to_id(piece) == theirs.piece_to_id(piece) == id
        score = theirs.get_score(id)
        assert ours.vocab.score(id) == score or (
            ours.vocab.score(id) != ours.vocab.score(id) and score != score
        )
        kinds = {
            "CONTROL": theirs.is_control(id),
            "UNKNOWN": theirs.is_unknown(id),
            "UNUSED": theirs.is_unused(id),
            "BYTE": theirs.is_byte(id),
        }
        kind = ours.vocab.piece_type(id).name
        assert [name for name, true in kinds.items() if true] == ([kind] if kind in kinds else [])
    assert ours.piece_to_id("no such piece at all") is None


@tiers.engines
@tiers.models()
def test_model_file_is_kept(name: str, engine: str) -> None:
    data = zoo.model(name)
    assert pair(name, engine).ours.to_bytes() == data


@tiers.engines
@tiers.models()
def test_generated_texts(name: str, engine: str) -> None:
    """Many texts, made fast. The seed is in the message of a failure, through the text itself."""
    both = pair(name, engine)
    maker = TextMaker(SEED, pieces_of(name), corpus.SENTENCES)
    before = both.compared
    for number in range(EXAMPLES):
        both.check_text(maker.broken() if number % 5 == 4 else maker.text())
        if number % 3 == 0:
            count = maker.rng.choice([0, 1, 2, 3, 8, 20])
            both.check_ids([maker.rng.randrange(len(both.ours)) for _ in range(count)])
            both.check_ids([maker.rng.randrange(min(len(both.ours), 300)) for _ in range(count)])
            some = [
                maker.text(),
                *maker.rng.choices(maker.pieces, k=count),
                *maker.rng.choices(SPECIALS, k=2),
            ]
            maker.rng.shuffle(some)
            both.check_pieces(some)
    print(f"\n{name}, {engine}: {EXAMPLES} texts, {both.compared - before} comparisons, no difference")


@tiers.engines
@tiers.models()
@quick
@seed(SEED)
@given(data=st.data())
def test_hypothesis(name: str, engine: str, data: st.DataObject) -> None:
    both = pair(name, engine)
    text = data.draw(st.one_of(texts(pieces_of(name)), broken(pieces_of(name))))
    both.check_text(text)
    both.check_ids(data.draw(st.lists(st.integers(0, len(both.ours) - 1), max_size=12)))
    both.check_pieces(data.draw(st.lists(texts(pieces_of(name)), max_size=5)))


@tiers.engines
@tiers.models()
def test_options(name: str, engine: str) -> None:
    """bos, eos and reverse, for ids and pieces; asking for what a model lacks is an error in both."""
    both = pair(name, engine)
    text = corpus.SENTENCES[0] + " ☃☃ 1"
    for bos in (False, True):
        for eos in (False, True):
            for reverse in (False, True):
                options: Any = {"add_bos": bos, "add_eos": eos, "reverse": reverse}
                if (bos and both.ours.bos_id is None) or (eos and both.ours.eos_id is None):
                    with pytest.raises(ValueError, match="defines no"):
                        both.ours.encode(text, **options)
                    with pytest.raises(ValueError, match="not defined"):
                        both.theirs.encode(text, **options)
                    continue
                ids = both.theirs.encode(text, **options)
                assert both.ours.encode(text, **options) == ids
                pieces = both.theirs.encode(text, return_type=bytes, **options)
                decoded = [repair(piece).decode() for piece in pieces]
                assert both.ours.encode_pieces(text, **options) == decoded
                found = both.ours.align(text, **options)
                assert (found.ids, found.pieces) == (ids, decoded)
                assert both.ours.encode("", **options) == both.theirs.encode("", **options)


@pytest.mark.parametrize("surface", [b"", b" x"])
@pytest.mark.parametrize("squeeze", [False, True])
def test_an_unknown_piece_whose_name_begins_with_a_space(squeeze: bool, surface: bytes, engine: str) -> None:
    """It ends the beginning of a text like a dropped space, but not where sentencepiece lists surfaces."""
    kinds = dict.fromkeys(("▁u", "▁", "a", "▁a", "<c>"), PieceType.NORMAL)
    kinds |= {"▁u": PieceType.UNKNOWN, "<c>": PieceType.CONTROL}
    pieces = Pieces.of([(text.encode(), -id, kind) for id, (text, kind) in enumerate(kinds.items())])
    rules = NormalizerSpec("identity", remove_extra_whitespaces=squeeze)
    data = Tokenizer.from_spec(ModelSpec(pieces, rules, unk_surface=surface)).to_bytes()
    both = Pair(data, engine)
    drop_in = SentencePieceProcessor(model_proto=data)
    for size in range(1, 4):
        for ids in product(range(len(kinds)), repeat=size):
            both.check_ids(ids)
            theirs = both.theirs.decode([*ids], return_type="proto").SerializeToString()
            assert drop_in.decode([*ids], return_type="proto").SerializeToString() == theirs
        for some in product([*kinds, "▁zz", "▁▁"], repeat=size):
            both.check_pieces(some)


@pytest.mark.parametrize("name", ["llama", "defaults", "unused", "tokenizer.model.v1"])
@tiers.slow_reference
def test_long_texts(name: str, engine: str) -> None:
    """Texts that do not fit in one chunk, one cache or one breath."""
    both, times = pair(name, engine), 2 if budget.MUCH else 1
    for text in [
        "\n".join(corpus.lines(200 * times)),
        "a" * 3000 * times,
        " " * 3000 * times,
        "ab" * 2000 * times,
        "未" * 2000 * times,
        "".join(corpus.lines(100 * times)).replace(" ", ""),
        "z\0" * 2000,
    ]:
        both.check_text(text)
