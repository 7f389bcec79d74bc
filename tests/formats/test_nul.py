"""The piece that is one NUL character, which some converted models hold beside <0x00>."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import cpbpe
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType
from cpbpe.model.validity import BYTE_PIECES
from tests.support import zoo

TEXTS = ["", "\0", "a\0b", "the \0\0 the"]
NAMES = ["m.gguf", "tokenizer.json", "tokenizer.bin", "m.vocab"]


def saved(path: Path) -> cpbpe.Tokenizer:
    """A model with the piece, written to a file of the format that the name tells."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("nul"))
    assert tok.facts.spec.pieces.texts[-1] == b"\0"
    tok.save(path)
    return tok


def check(path: Path, tok: cpbpe.Tokenizer) -> None:
    again = cpbpe.load(path)
    assert again.facts.spec.pieces.types[-1] == PieceType.UNUSED
    assert again.facts.spec.pieces.texts == tok.facts.spec.pieces.texts
    for text in TEXTS:
        assert again.encode(text) == tok.encode(text)


@pytest.mark.filterwarnings("ignore:a .vocab does not say how")
@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    check(path, saved(path))


def test_gguf_where_it_is_normal(tmp_path: Path) -> None:
    """Converters copy the types of the .model, which says NORMAL."""
    path = tmp_path / "m.gguf"
    tok = saved(path)
    data = path.read_bytes()
    last = struct.pack("<3i", 1, 1, 5)  # the types of the last three pieces
    assert data.count(last) == 1
    path.write_bytes(data.replace(last, struct.pack("<3i", 1, 1, 1)))
    check(path, tok)


def test_tokenizer_json_that_finds_it(tmp_path: Path) -> None:
    path, out = tmp_path / "tokenizer.json", tmp_path / "out.model"
    tok = saved(path)
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    name = next(name for name, id in vocabulary.items() if id == len(tok) - 1)
    vocabulary["\0"] = vocabulary.pop(name)
    path.write_text(json.dumps(content))
    with pytest.raises(cpbpe.ConversionError, match="SentencePiece never finds a piece that is one NUL"):
        cpbpe.load(path)
    cpbpe.convert(path, out, allow_differences=True)
    check(out, tok)


@pytest.mark.parametrize("type", [type for type in PieceType if type != PieceType.BYTE])
@pytest.mark.parametrize("fallback", [False, True])
def test_a_spec_is_read_alike_by_both_engines(
    fallback: bool, type: PieceType, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    rows = [Piece(b"<u>", 0, PieceType.UNKNOWN)] if type != PieceType.UNKNOWN else []
    rows += [Piece(b"\0", -1, type), Piece(b"a", -2)]
    if fallback:
        rows += [Piece(text, 0, PieceType.BYTE) for text in BYTE_PIECES]
    spec = ModelSpec(Pieces.of(rows), byte_fallback=fallback)
    if type == PieceType.UNUSED:
        assert cpbpe.Tokenizer.from_spec(spec).piece_to_id("\0") is None
        return
    with pytest.raises(cpbpe.ModelError, match=r"piece \d, '\\x00', contains a NUL character"):
        cpbpe.Tokenizer.from_spec(spec)
