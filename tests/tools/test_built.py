"""How a piece is built, compared with what the engine and the replay of encoding make of its text."""

from dataclasses import replace

import pytest

import cpbpe
from cpbpe.engine.choice import make_engine
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.reference.step_by_step import steps
from cpbpe.tools.built import MAX_CHARACTERS, built
from cpbpe.tools.reports import built_lines
from tests.support import zoo

RAW = NormalizerSpec(add_dummy_prefix=False, remove_extra_whitespaces=False)
MODELS = [
    *("tokenizer.model.v1", "llama", "across-spaces", "user-defined", "user-defined-llama", "unused"),
    *(
        "unused-user-defined",
        "equal-scores",
        "shuffled-scores",
        "odd-scores",
        "orphans",
        "nested-user-defined",
    ),
    *("deep-unused", "inner-spaces", "broken-pieces"),
]


def toy(*texts: str, **types: PieceType) -> ModelSpec:
    rows = [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    rows += [
        Piece(text.encode(), -rank, types.get(text, PieceType.NORMAL)) for rank, text in enumerate(texts)
    ]
    return ModelSpec(Pieces.of(rows))


@pytest.mark.parametrize("name", MODELS)
def test_made(name: str) -> None:
    """A piece is made if the engine makes it of its own text, not normalized (so rules may prevent it)."""
    spec = replace(cpbpe.Tokenizer.from_bytes(zoo.model(name)).facts.spec, normalizer=RAW, file=None)
    engine = make_engine(spec)
    ids = range(len(spec.pieces))
    for id in ids if len(ids) < 1200 else [*ids[:200], *ids[-200:]]:
        piece = spec.pieces[id]
        if piece.type in (PieceType.NORMAL, PieceType.USER_DEFINED) and _is_text(piece.text):
            found = built(spec, id)
            assert found.is_made == (engine.encode(piece.text) == [id]), piece


def _is_text(piece: bytes) -> bool:
    """Whether a text can hold the piece: it is UTF-8, and escaping spaces leaves it as it is."""
    try:
        return " " not in piece.decode() and piece != b"\0"
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("name", ["llama", "equal-scores", "odd-scores", "user-defined-llama", "unused"])
def test_merges(name: str) -> None:
    """The merges are those that the replay shows, in the same order."""
    spec = replace(cpbpe.Tokenizer.from_bytes(zoo.model(name)).facts.spec, normalizer=RAW, file=None)
    for id in range(300, len(spec.pieces), 23):
        piece = spec.pieces[id]
        if piece.type == PieceType.NORMAL and _is_text(piece.text):
            replayed = [step for step in steps(spec, piece.text) if step.kind == "merge"]
            merges = [(step.symbols[step.begin], step.symbols[step.begin + 1]) for step in replayed]
            assert [(m.left.encode(), m.right.encode()) for m in built(spec, id).merges] == merges


def test_ranks_and_notes() -> None:
    spec = toy(
        "ab", "cd", "abcd", "a", "b", "c", "d", "xyz", "<|u|>", "q<|u|>", "bc", **{"<|u|>": PieceType(4)}
    )
    found = built(spec, 3)
    assert [(m.left, m.right, m.rank, m.id) for m in found.merges] == [
        ("a", "b", 1, 1),
        ("c", "d", 2, 2),
        ("ab", "cd", 3, 3),
    ]
    assert found.is_made
    assert built(spec, 4).ends_as == ("a",)
    lost = built(spec, 8)
    assert (lost.is_made, lost.symbols, lost.ends_as) == (False, ("x", "y", "z"), ("x", "y", "z"))
    assert "No text yields it" in lost.note
    assert built(spec, 9).is_made
    assert built(spec, 10).symbols == ("q", "<|u|>")
    assert not built(spec, 10).is_made
    assert "whatever has no piece" in built(spec, 0).note
    text = "\n".join(built_lines(lost, 60))
    assert "ends as" in text
    assert built(spec, 3).to_dict()["merges"][0]["made"] == "ab"


def test_a_piece_of_any_length(engine: str) -> None:
    """The largest that is taken apart takes a moment, and a larger one is refused."""
    chain = ["a" * length for length in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)]
    spec = toy(*chain)
    found = built(spec, len(chain))
    assert (len(found.merges), found.is_made) == (8191, True)
    spec = toy("a" * (MAX_CHARACTERS + 1))
    assert "is not taken apart here" in built(spec, 1).note
    assert not built(spec, 1).is_made
