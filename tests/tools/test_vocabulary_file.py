"""The vocabulary as a file: whatever a piece holds comes back."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe.tools.vocabulary_file import (
    ADDED,
    HEADER,
    escaped,
    read_json,
    read_tsv,
    rows,
    to_json,
    to_tsv,
    unescaped,
    visible,
)
from tests.support import zoo


@pytest.mark.parametrize("name", ["llama", "tsv", "odd-scores", "nul", "broken-pieces", "control-characters"])
def test_round_trip(name: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name)).with_special_tokens(["<|a\tb\n|>"])
    every = list(rows(tok))
    assert [row.piece for row in every[:-1]] == list(tok.facts.spec.pieces.texts)
    assert every[-1] == (len(every) - 1, ADDED, 0.0, b"<|a\tb\n|>")
    tsv = list(to_tsv(tok))
    assert tsv[0] == HEADER
    assert all(line.replace("\t", "").isprintable() for line in tsv)
    text = "\n".join(to_json(tok))
    assert text.replace("\n", "").isprintable()
    assert len(json.loads(text)) == len(every)
    for read in (list(read_tsv("\n".join(tsv).split("\n"))), list(read_json(text))):
        assert [row[:2] + row[3:] for row in read] == [row[:2] + row[3:] for row in every]
        for one, other in zip(read, every, strict=True):
            same = one.score == pytest.approx(other.score, rel=1e-6) or math.isnan(one.score)
            assert same
            assert math.isnan(one.score) == math.isnan(other.score)


def test_scores_come_back_exactly() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("fractional-scores"))
    scores = tok.vocab.scores
    read = [row.score for row in read_tsv(to_tsv(tok))]
    assert np.array(read, np.float32).tobytes() == scores.tobytes()


@given(st.binary())
def test_escapes_of_bytes(piece: bytes) -> None:
    assert unescaped(escaped(piece)) == piece
    assert escaped(piece).isprintable()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escapes_of_text(text: str) -> None:
    assert unescaped(escaped(text.encode())) == text.encode()
    shown = visible(json.dumps([text], ensure_ascii=False))
    assert json.loads(shown) == [text]
    assert shown.isprintable()


def test_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="cpbpe has not written this file"):
        list(read_tsv(["piece\tscore"]))
    with pytest.raises(ValueError, match="line 2 has 1 fields, not 4"):
        list(read_tsv([HEADER, "x"]))
