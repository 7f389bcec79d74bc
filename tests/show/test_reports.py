"""Reports as pages and in notebooks: one renderer, and nothing that a model holds can act."""

from collections.abc import Callable
from typing import Any

import pytest

import cpbpe
from tests.support.drawings import WholePage

EVIL = '<script>alert(1)</script>\u202e\x1b[2J"&'
SHOWN = '<script>alert(1)</script>‹U+202E›‹U+001B›[2J"&'


def hostile() -> cpbpe.Tokenizer:
    """A model whose pieces are markup and controls, one of which no text yields."""
    pieces = [cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN)]
    pieces += [
        cpbpe.Piece(EVIL.encode(), 0, cpbpe.PieceType.USER_DEFINED),
        cpbpe.Piece(b"x" + EVIL.encode(), -1),
    ]
    return cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(cpbpe.Pieces.of(pieces)))


def trained() -> cpbpe.Report:
    texts, symbols = ["the cat sat on the mat"], [EVIL]
    return cpbpe.train(texts, vocab_size=290, user_defined_symbols=symbols, hard_vocab_limit=False).report


REPORTS: dict[str, tuple[Callable[[], Any], str]] = {
    "inspect": (lambda: hostile().inspect(), "a model"),
    "lint": (lambda: hostile().lint(), "what is wrong with the model"),
    "diff": (lambda: cpbpe.diff(hostile(), hostile().with_special_tokens([f"{EVIL}!"])), "what is different"),
    "compare": (
        lambda: cpbpe.compare({"m": hostile()}, {EVIL: EVIL}, rounds=0, probe=False),
        "What texts cost with m",
    ),
    "training": (trained, "What training did"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_and_a_notebook(name: str) -> None:
    make, title = REPORTS[name]
    report = make()
    whole, part = WholePage(report.html()), WholePage(report._repr_html_())
    assert whole.title == title
    assert whole.text.count(part.text) == 1
    assert SHOWN in part.text
    assert not {"\u202e", "\x1b"} & set(whole.text)
    assert report.html().startswith("<!doctype html>")
    assert "color-scheme" in report.html()


@pytest.mark.parametrize("name", REPORTS)
def test_lines(name: str) -> None:
    """In a terminal it is the same report, as wide as the terminal."""
    report = REPORTS[name][0]()
    for columns in (40, 100):
        lines = report.lines(columns)
        assert all(line.isprintable() and len(line) <= columns for line in lines)
    assert "".join("".join(report.lines()).split()) == "".join(str(report).split())
    assert SHOWN[:20] in str(report)
