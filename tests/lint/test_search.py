"""A short search for texts that yield what is called unreachable; `tests/lint/search.py` searches longer."""

import os

import pytest

import cpbpe
from tests.bytes import models as byte_models
from tests.lint.search import Search
from tests.support import corpus, zoo

SECONDS = float(os.environ.get("CPBPE_LINT_SECONDS", "0.3"))
"""How long each model is searched, about."""


def model(name: str) -> cpbpe.Tokenizer:
    if name == "bytes":
        return cpbpe.Tokenizer.from_spec(byte_models.model("cl100k", True))
    if name == "no pattern":
        return cpbpe.Tokenizer.from_spec(byte_models.model(None, False))
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "suffix", "bytes", "no pattern"])
def test_nothing_called_unreachable_is_found(name: str) -> None:
    tok = model(name)
    report = tok.lint()
    search = Search(tok)
    search.run(SECONDS, corpus.lines(50))
    assert search.tried.keys() >= {"alone", "prose", "pairs", "trees", "random"}
    assert search.wrong(report) == []
    assert search.unwitnessed(report) == []


def test_a_wrong_claim_is_found() -> None:
    """The search finds nearly all that there is: so it would find what is called unreachable and is not."""
    tok = model("llama")
    report = tok.lint()
    search = Search(tok)
    search.run(SECONDS)
    found = sum(bool(search.seen[id]) for id in report.reach.texts)
    assert found > 0.5 * len(report.reach.texts)
