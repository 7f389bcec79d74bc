"""`cpbpe learn`: solutions hold on every rung, and each usual mistake is caught by a small case."""

from pathlib import Path

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.tools.ladder import RUNGS, Failure, climb
from tests.support import zoo

SOLUTION = r"""
import regex


def get_stats(ids):
    counts = {}
    for pair in zip(ids, ids[1:]):
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def merge(ids, pair, new):
    made, at = [], 0
    while at < len(ids):
        found = tuple(ids[at : at + 2]) == pair
        made.append(new if found else ids[at])
        at += 1 + found
    return made


def train(text, vocab_size):
    ids, merges = list(text.encode()), []
    while len(merges) < vocab_size - 256 and len(ids) > 1:
        counts = get_stats(ids)
        merges.append(max(counts, key=counts.get))
        ids = merge(ids, merges[-1], 255 + len(merges))
    return merges


def encode(text, merges):
    ids = list(text.encode())
    for number, pair in enumerate(merges):
        ids = merge(ids, tuple(pair), 256 + number)
    return ids


def decode(ids, merges):
    pieces = {byte: bytes([byte]) for byte in range(256)}
    for number, (left, right) in enumerate(merges):
        pieces[256 + number] = pieces[left] + pieces[right]
    return b"".join(pieces[id] for id in ids).decode(errors="replace")


def cut(text):
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    return regex.findall(pattern, text)


def normalize(text):
    return "▁" + text.replace(" ", "▁") if text else ""


def encode_pieces(text, scores):
    symbols = list(text)
    while True:
        pairs = [left + right for left, right in zip(symbols, symbols[1:])]
        found = [(-scores[pair], at) for at, pair in enumerate(pairs) if pair in scores]
        if not found:
            break
        _, at = min(found)
        symbols[at : at + 2] = [pairs[at]]
    return [
        piece
        for symbol in symbols
        for piece in ([symbol] if symbol in scores else [f"<0x{byte:02X}>" for byte in symbol.encode()])
    ]


def tokenize(text, vocab):
    scores = {piece: score for piece, score, kind in vocab if kind == "NORMAL"}
    ids = {piece: id for id, (piece, _, _) in enumerate(vocab)}
    return [ids[piece] for piece in encode_pieces(normalize(text), scores)]
"""

MISTAKES = [
    (1, "counts.get(pair, 0) + 1", "1"),
    (1, "zip(ids, ids[1:])", "zip(ids[::2], ids[1::2])"),  # pairs that overlap
    (2, "at += 1 + found", "at += 1"),
    (2, "tuple(ids[at : at + 2]) == pair", "set(ids[at : at + 2]) == set(pair)"),
    (3, "max(counts, key=counts.get)", "max(counts)"),
    (3, "vocab_size - 256", "vocab_size - 255"),
    (4, "for number, pair in enumerate(merges):", "for number, pair in list(enumerate(merges))[::-1]:"),
    (4, 'decode(errors="replace")', "decode()"),
    (5, r"|\s+(?!\S)", ""),
    (5, "[sdmt]", "[SDMTsdmt]"),
    (6, ' if text else ""', ""),
    (6, '"▁" + ', ""),
    (7, "min(found)", "max(found)"),
    (
        7,
        "_, at = min(found)",
        "at = max(at for score, at in found if score == min(found)[0])",
    ),  # the rightmost
    (7, "if symbol in scores else", "if True else"),
    (8, 'kind == "NORMAL"', 'kind != "NORMAL"'),
]


@pytest.fixture(scope="module")
def model() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model("tokenizer.model.v1"))


def functions(source: str) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(source, found)
    return found


def test_a_solution_holds(model: cpbpe.Tokenizer) -> None:
    for number, rung in enumerate(RUNGS, 1):
        count = climb(rung, functions(SOLUTION), model)
        assert isinstance(count, int), (number, count)
        assert count > 50


@pytest.mark.parametrize(("number", "right", "wrong"), MISTAKES)
def test_mistakes_are_caught_by_small_cases(
    number: int, right: str, wrong: str, model: cpbpe.Tokenizer
) -> None:
    assert right in SOLUTION
    mistaken = functions(SOLUTION.replace(right, wrong))
    failure = climb(RUNGS[number - 1], mistaken, model)
    assert isinstance(failure, Failure)
    assert len(failure.call) < 400
    assert failure.given != failure.expected


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SOLUTION, encoding="utf-8")
    Path("tokenizer.model").write_bytes(zoo.model("tokenizer.model.v1"))
    assert main(["learn"]) == 0
    listed = capsys.readouterr().out
    assert all(rung.functions.splitlines()[0] in listed for rung in RUNGS)
    assert main(["learn", "1", "mine.py"]) == 0
    assert "Rung 1 holds: 154 cases." in capsys.readouterr().out
    assert main(["learn", "8", "mine.py", "tokenizer.model"]) == 0
    assert "You have written a tokenizer." in capsys.readouterr().out
    Path("mine.py").write_text("def get_stats(ids):\n    return 1 / 0\n", encoding="utf-8")
    assert main(["learn", "1", "mine.py"]) == 1
    assert capsys.readouterr().out.startswith(
        "get_stats([])\n  gives     ZeroDivisionError: division by zero\n  expected  {}\n"
    )
    assert main(["learn", "2", "mine.py"]) == 1
    assert "there is no function merge" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["9"], 2, "there are rungs 1 to 8"),
        (["one"], 2, "there are rungs 1 to 8"),
        (["8", "mine.py"], 2, "this rung needs a model"),
        (["1", "none.py"], 1, "none.py: No such file"),
        (["1", "broken.py"], 1, "broken.py cannot be run: "),
    ],
)
def test_errors(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").touch()
    Path("broken.py").write_text("def get_stats(:\n")
    assert main(["learn", *arguments]) == code
    assert message in capsys.readouterr().err


def test_every_chapter_that_is_named_exists() -> None:
    folder = Path(__file__).parents[2] / "docs" / "learn"
    assert all((folder / f"{rung.chapter}.md").exists() for rung in RUNGS)
