"""What each id adds to a text, as bytes: for every model of the zoo, with both engines."""

import random
from typing import Any

import pytest

import cpbpe
from cpbpe import PieceType
from cpbpe.model.formats import sentencepiece
from tests.support import tiers, zoo
from tests.support.budget import SEED
from tests.support.tokenizers import with_gaps
from tests.support.zoo import DENORMALIZERS


def load(name: str, engine: str) -> cpbpe.Tokenizer:
    return with_gaps(zoo.model(name), engine)


@tiers.engines
@tiers.models()
def test_all_models(name: str, engine: str) -> None:
    """One id, all ids and arrays agree; and the law: joined, they are what decode_bytes gives."""
    tok = load(name, engine)
    table = tok.vocab.token_bytes()
    size = len(tok) - 5  # without the ids of `with_gaps`: a token, two gaps and two tokens
    gaps = [size + 1, size + 2]
    assert len(table) == len(tok)
    assert [table[id] for id in gaps] == [b"", b""]
    used = [id for id in range(len(tok)) if id not in gaps]
    rng = random.Random(SEED)
    for id in [*range(min(size, 400)), *rng.sample(used, 100), *used[-3:]]:
        assert tok.vocab.id_to_bytes(id) == table[id]
    assert [table[size], table[size + 3]] == [b"<|a|>", "▁<é>".encode()]

    no_text = {*gaps, *tok.vocab.special_tokens.values()}
    for id, kind in enumerate(tok.vocab.types.tolist()):
        if kind in (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.UNUSED):
            no_text.add(id)
    texts = tok.vocab.token_bytes(text_only=True)
    assert texts == [b"" if id in no_text else data for id, data in enumerate(table)]
    assert tok.vocab.token_bytes_arrays(text_only=True)[0].tobytes() == b"".join(texts)

    data, offsets = tok.vocab.token_bytes_arrays()
    assert (data.dtype.name, offsets.dtype.name, len(offsets)) == ("uint8", "int64", len(tok) + 1)
    assert data.tobytes() == b"".join(table)
    assert all(data[offsets[i] : offsets[i + 1]].tobytes() == table[i] for i in rng.sample(used, 100))

    if name not in DENORMALIZERS:
        low = [id for id in used if id < 300 or id > size]
        for _ in range(100):
            ids = rng.choices(rng.choice([used, low]), k=rng.choice([0, 1, 2, 5, 20]))
            assert tok.decode_bytes(ids, keep_prefix_space=True) == b"".join(table[id] for id in ids)


@pytest.mark.parametrize("name", ["llama", "special", "broken-pieces", "nul", "unescaped"])
def test_by_hand(name: str, engine: str) -> None:
    """How the bytes of an id follow from the type and the text of its piece."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    spec = sentencepiece.read(zoo.model(name))
    for id, (piece, _, kind) in enumerate(spec.pieces):
        expected = {
            PieceType.CONTROL: b"",
            PieceType.UNKNOWN: spec.unk_surface,
            PieceType.BYTE: bytes([int(piece[3:5], 16)]) if kind == PieceType.BYTE else b"",
        }.get(kind, piece.replace("▁".encode(), b" "))
        assert tok.vocab.id_to_bytes(id) == expected


@pytest.mark.parametrize("name", DENORMALIZERS)
def test_denormalizers_come_later(name: str, engine: str) -> None:
    """Tables hold what is there before a denormalizer rewrites the text."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    assert tok.unk_id is not None
    assert tok.vocab.id_to_bytes(tok.unk_id) == " ⁇ ".encode()
    letter = tok.piece_to_id("a")
    assert letter is not None
    assert tok.vocab.token_bytes()[letter] == b"a"
    assert tok.decode([letter]) != "a"


def test_a_table_belongs_to_its_caller() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    tok.vocab.token_bytes()[5] = b"changed"
    data, _ = tok.vocab.token_bytes_arrays()
    data[:] = 0
    assert tok.vocab.token_bytes()[5] == tok.vocab.id_to_bytes(5) != b"changed"
    assert any(tok.vocab.token_bytes_arrays()[0])


@pytest.mark.parametrize(
    ("id", "error", "message"),
    [
        (-1, IndexError, "id -1 is outside the vocabulary"),
        (1 << 70, IndexError, "is outside the vocabulary"),
        (701, IndexError, "id 701 is not in use"),
        (1.5, TypeError, r"id_to_bytes\(\) takes one id \(an integer\), not float"),
        ("a", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_wrong_ids(id: Any, error: type[Exception], message: str, engine: str) -> None:
    with pytest.raises(error, match=message):
        load("llama", engine).vocab.id_to_bytes(id)
