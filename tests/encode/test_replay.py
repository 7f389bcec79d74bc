"""`cpbpe.reference.steps`: what is shown step by step is what happens."""

from itertools import pairwise

import pytest

import cpbpe
from cpbpe import reference
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType
from tests.support import budget, corpus, tiers, zoo
from tests.support.texts import TextMaker
from tests.support.tokenizers import pieces_of


@tiers.models()
def test_steps_lead_to_the_ids(name: str) -> None:
    """On every model; and each step begins with the symbols that the one before it left."""
    spec = model_file.read(zoo.model(name))
    engine = reference.ReferenceEngine(spec)
    maker = TextMaker(budget.SEED, pieces_of(name), corpus.SENTENCES)
    for number in range(budget.examples(12)):
        data = (maker.broken() if number % 4 == 3 else maker.text().encode())[:80]
        steps = [*reference.steps(spec, data)]
        assert steps[-1].ids == tuple(token.id for token in engine.encode(data))
        assert [steps[0].kind, steps[-1].kind] == ["begin", "end"]
        assert b"".join(steps[0].symbols) == engine.normalize(data)
        for step, following in pairwise(steps):
            assert step.after == following.symbols
            assert str(step).startswith(step.kind)
            if step.kind == "merge":
                assert step.made == (b"".join(step.symbols[step.begin : step.end]),)
                assert spec.pieces[spec.ids[step.made[0]]].score == step.score or step.score != step.score


def toy(**types: PieceType) -> ModelSpec:
    pieces = ["ab", "ra", "abra", "▁", "a", "b", "r"]
    return ModelSpec(
        Pieces.of(
            [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
            + [Piece(p.encode(), -rank, types.get(p, PieceType.NORMAL)) for rank, p in enumerate(pieces)]
        )
    )


def shown(spec: ModelSpec, text: str) -> list[str]:
    return [str(step) for step in reference.steps(spec, text)]


def test_what_is_printed() -> None:
    assert shown(toy(), "abab") == [
        "begin    ▁ a b a b",
        "merge    ▁ [a b] a b        ab has the score 0.0, the highest, and is the leftmost; then ab 0.0",
        "merge    ▁ ab [a b]         ab has the score 0.0, and there is no other pair",
        "end      ▁ ab ab            the ids are 4, 1, 1",
    ]
    assert shown(toy(abra=PieceType.UNUSED), "abra")[-2:] == [
        "split    ▁ [abra]           abra is UNUSED, and taken apart again: ab ra",
        "end      ▁ ab ra            the ids are 4, 1, 2",
    ]
    assert shown(toy(), "")[1:] == ["end                         the ids are "]


def test_who_may_ask() -> None:
    tok = cpbpe.Tokenizer.from_spec(toy())
    ids = tuple(tok.encode("abra"))
    for model in (tok, tok.spec, reference.ReferenceEngine(tok.spec)):
        assert [*reference.steps(model, "abra")][-1].ids == ids
        assert [*reference.steps(model, b"abra")][-1].ids == ids
    for wrong in ("tokenizer.model", None):
        with pytest.raises(TypeError, match=r"takes a ModelSpec or a tokenizer, not .*cpbpe\.load\(path\)"):
            reference.steps(wrong, "abra")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"ReferenceEngine takes a ModelSpec, .*\.load\(path\)\.spec"):
            reference.ReferenceEngine(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes str or bytes, not list"):
        reference.steps(tok, ["abra"])  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        reference.nothing  # noqa: B018
