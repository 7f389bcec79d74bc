"""`cpbpe learn`: solutions hold on every rung, and each usual mistake is caught by a small case."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.tools.climbing import Failure, climb
from cpbpe.tools.ladder import RUNGS
from tests.support import processes, zoo
from tests.support.budget import MUCH

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


def train(text, vocab_size, cut=lambda text: [text]):
    chunks, merges = [list(chunk.encode()) for chunk in cut(text)], []
    while len(merges) < vocab_size - 256 and any(len(ids) > 1 for ids in chunks):
        counts = {}
        for ids in chunks:
            for pair, count in get_stats(ids).items():
                counts[pair] = counts.get(pair, 0) + count
        merges.append(max(counts, key=counts.get))
        chunks = [merge(ids, merges[-1], 255 + len(merges)) for ids in chunks]
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


def train_cut(text, vocab_size):
    return train(text, vocab_size, cut)


def encode_cut(text, merges):
    return [id for chunk in cut(text) for id in encode(chunk, merges)]


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
    return in_bytes(symbols, scores)


def in_bytes(symbols, scores):
    return [
        piece
        for symbol in symbols
        for piece in ([symbol] if symbol in scores else [f"<0x{byte:02X}>" for byte in symbol.encode()])
    ]


def tokenize(text, vocab):
    scores = {piece: score for piece, score, kind in vocab if kind == "NORMAL"}
    ids = {piece: id for id, (piece, _, _) in enumerate(vocab)}
    unknown = next(id for id, (_, _, kind) in enumerate(vocab) if kind == "UNKNOWN")
    return [ids.get(piece, unknown) for piece in encode_pieces(normalize(text), scores)]


def detokenize(ids, vocab):
    parts = []
    for piece, _, kind in map(vocab.__getitem__, ids):
        if kind != "CONTROL":
            parts.append(bytes([int(piece[3:5], 16)]) if kind == "BYTE" else space(piece))
    return b"".join(parts).decode("utf-8", "replace").removeprefix(" ")


def space(piece):
    return piece.replace("▁", " ").encode()
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
    (8, 'kind == "NORMAL"', 'kind in ("NORMAL", "CONTROL")'),
    (8, 'kind == "NORMAL"', 'kind in ("NORMAL", "UNKNOWN")'),
    (8, 'kind == "NORMAL"', 'kind in ("NORMAL", "BYTE")'),
    (8, '.removeprefix(" ")', ".strip()"),
    (8, '.removeprefix(" ")', "[1:]"),
    (8, '"utf-8", "replace"', ""),
    (8, '"utf-8", "replace"', '"utf-8", "ignore"'),
    (8, 'return piece.replace("▁", " ").encode()', "return piece.encode()"),
    (8, '"replace").', '"replace").replace("▁", " ").'),  # also a ▁ out of bytes
    (8, "_, at = min(found)", "at = max(at for score, at in found if score == min(found)[0])"),
    (8, "ids.get(piece, unknown)", "ids[piece]"),
    (2, "return made", "return made if new in made else ids"),
    (5, r"\p{N}+", r"\p{N}{1,3}"),
    (5, "'(?:", "['’](?:"),
    (5, "|ve|re)", r"|ve|re)(?!\p{L})"),
    (5, r" ?\p{N}+", r" ?\d+| ?\p{N}"),
    (5, r" ?\p{N}", r"\s?\p{N}"),
    (5, r" ?[^\s", r"\s?[^\s"),
    (5, r" ?[^\s", r"[\t ]?[^\s"),
    (5, r"\p{L}+", r"\p{L}{1,16}"),
    (5, r"\p{N}]+", r"\p{N}]{1,4}"),
    (6, '.replace(" ", "▁") if', '.replace(" ", "▁").replace("\\u3000", "▁") if'),
    (6, '.replace(" ", "▁") if', '.replace(" ", "▁").replace("\\xa0", "▁") if'),
    (6, '.replace(" ", "▁") if', '.replace(" ", "▁").replace("\\r\\n", "\\n") if'),
    (7, "if pair in scores]", "if scores.get(pair, -100) > -100]"),
    (7, "symbols = list(text)", "symbols = in_bytes(text, scores)"),
    (7, "if pair in scores]", "if {pair, symbols[at], symbols[at + 1]} <= {*scores}]"),
]


WRONG = [
    (1, "get_stats", "counts = Counter(pairwise(ids)); ids.clear(); return counts"),
    (1, "get_stats", "return list(Counter(pairwise(ids)).items())"),
    (2, "merge", "ids[:] = right_merge(ids, pair, new); return ids"),
    (
        2,  # numbers as text: merge([1, 10], (1, 1), 99) merges a 1 with half of a 10
        "merge",
        "return [int(id) for id in ' '.join(map(str, ids)).replace('%d %d' % pair, str(new)).split()]",
    ),
    (3, "train", "return right_train(text, vocab_size) if ' ' in text else []"),
    (3, "train", "return list(text.encode())"),
    (4, "encode", "return longest(text.encode(), {piece: id for id, piece in pieces(merges).items()})"),
    (
        4,
        "encode",
        "return from_left(list(text.encode()), {pair: id for id, pair in enumerate(merges, 256)}.get)",
    ),
    (
        5,
        "cut",
        r"""pattern = r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:_|[^\s\w])+|\s+(?!\S)|\s+"
    return re.findall(pattern, text)""",
    ),
    (5, "train_cut", "return train(text, vocab_size)"),
    (5, "encode_cut", "return encode(text, merges)"),
    (6, "normalize", r"return '▁' + re.sub(r'\s', '▁', text) if text else ''"),
    (6, "normalize", "return '▁' + (text.rstrip(' ') or text).replace(' ', '▁') if text else ''"),
    (6, "normalize", "return right_normalize(unicodedata.normalize('NFC', text))"),
    (7, "encode_pieces", "return in_bytes(longest(text, {piece: piece for piece in scores}), scores)"),
    (
        7,
        "encode_pieces",
        "join = lambda pair: pair[0] + pair[1] if pair[0] + pair[1] in scores else None\n"
        "    return in_bytes(from_left(list(text), join), scores)",
    ),
    (7, "encode_pieces", "return in_bytes(all_at_once(list(text), scores), scores)"),
    (
        7,
        "encode_pieces",
        "return [piece for word in re.findall('▁?[^▁]+|▁', text) for piece in right_pieces(word, scores)]",
    ),
    (
        8,
        "tokenize",
        "global encode_pieces\n"
        "    encode_pieces = lambda text, scores: in_bytes(all_at_once(list(text), scores), scores)\n"
        "    return right_tokenize(text, vocab)",
    ),
    (8, "tokenize", "return right_tokenize(text, [(piece, score, 'NORMAL') for piece, score, _ in vocab])"),
    (8, "detokenize", "return ''.join(vocab[id][0] for id in ids).replace('▁', ' ')[1:]"),
]
"""Functions that are wrong, by the number of their rung."""

HELPERS = r"""
import re
import unicodedata
from collections import Counter
from itertools import pairwise

right_merge, right_train, right_normalize, right_tokenize = merge, train, normalize, tokenize
right_pieces = encode_pieces


def pieces(merges):
    pieces = {byte: bytes([byte]) for byte in range(256)}
    for id, (left, right) in enumerate(merges, 256):
        pieces[id] = pieces[left] + pieces[right]
    return pieces


def longest(text, ids):
    if not text:
        return []
    size = next(size for size in range(len(text), 0, -1) if text[:size] in ids or size == 1)
    return [ids.get(text[:size], text[:size]), *longest(text[size:], ids)]


def from_left(symbols, join):
    at = 0
    while at < len(symbols) - 1:
        joined = join(tuple(symbols[at : at + 2]))
        if joined is None:
            at += 1
        else:
            symbols[at : at + 2] = [joined]
            at = max(at - 1, 0)
    return symbols


def all_at_once(symbols, scores):
    while pairs := [pair for pair in pairwise(symbols) if "".join(pair) in scores]:
        best = max(pairs, key=lambda pair: scores["".join(pair)])
        symbols = merge(symbols, best, "".join(best))
    return symbols
"""


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
        assert count >= 100  # (the documentation says so)
    for example in "\n".join(rung.examples for rung in RUNGS).splitlines():
        assert eval(example, functions(SOLUTION)) is True, example


LAST = [row for row in MISTAKES if row[0] == 8]
USUAL = MISTAKES if MUCH else [row for row in MISTAKES if row not in LAST or row in LAST[::4]]
"""The last rung has the real model's vocabulary: there each takes seconds."""


@pytest.mark.parametrize(("number", "right", "wrong"), USUAL)
def test_mistakes_are_caught_by_small_cases(
    number: int, right: str, wrong: str, model: cpbpe.Tokenizer
) -> None:
    assert right in SOLUTION
    mistaken = functions(SOLUTION.replace(right, wrong))
    failure = climb(RUNGS[number - 1], mistaken, model)
    assert isinstance(failure, Failure)
    assert len(failure.call) < 400
    assert failure.given != failure.expected


@pytest.mark.parametrize(("number", "name", "body"), WRONG)
def test_wrong_functions_are_refused(number: int, name: str, body: str, model: cpbpe.Tokenizer) -> None:
    """Each is an idea that somebody had. The case that refuses it can be read at a glance."""
    parameters = {line.split("(")[0]: line for line in RUNGS[number - 1].functions.splitlines()}[name]
    parameters = parameters.partition(" ->")[0].replace("normalized", "text")
    mistaken = functions(f"{SOLUTION}{HELPERS}\n\ndef {parameters}:\n    {body}\n")
    failure = climb(RUNGS[number - 1], mistaken, model)
    assert isinstance(failure, Failure)
    assert failure.call.startswith(f"{name}(")
    assert len(failure.call) < 100, failure
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
    assert "Rung 1 holds: 155 cases." in capsys.readouterr().out
    assert main(["learn", "8", "mine.py", "tokenizer.model"]) == 0
    assert "You have written a tokenizer." in capsys.readouterr().out
    Path("mine.py").write_text("def get_stats(ids):\n    return 1 / 0\n", encoding="utf-8")
    assert main(["learn", "1", "mine.py"]) == 1
    assert capsys.readouterr().out.startswith(
        "get_stats([])\n  gives     ZeroDivisionError: division by zero (mine.py line 2)\n  expected  {}\n"
    )


@pytest.mark.parametrize(
    ("number", "body", "printed"),
    [
        (1, "return right(ids)", "Rung 1 holds"),
        (1, "kept.update(right(ids)); return kept", "Called alone it gives the right answer"),
        (2, "return right(ids, pair, new) if pair in zip(ids, ids[1:]) else ids", "which is ids itself"),
        (3, "return [tuple(map(numpy.int64, pair)) for pair in right(text, vocab_size)]", "Rung 3 holds"),
        (3, "return {}", "in the order in which they are merged, not dict"),
        (
            3,
            "return [([1], 2)] if len(text) > 1 else []",
            "expected  a list of pairs, in the order in which they are merged",
        ),
        (3, "return right(text, vocab_size)[:-1]", "258 pieces are 256 bytes and 2 merges"),
        (4, "return right(text, merges) if text.isascii() else [*map(ord, text)]", "the ids are the bytes"),
        (6, "return unicodedata.normalize('NFC', right(text))", r"expected  '\u2581e\u0301'"),
        (8, "return [7] if len(vocab) > 9 else right(text, vocab)", "vocab is VOCAB of cpbpe.tools.ladder."),
        (8, "while text: pass\n    return []", "look pieces up in a dict"),
    ],
)
def test_what_is_said(
    number: int,
    body: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cpbpe.tools.climbing.SECONDS", 1)
    Path("base.py").write_text(SOLUTION, encoding="utf-8")
    call = RUNGS[number - 1].functions.partition(" ->")[0]
    begin = f"from base import *\nimport unicodedata, numpy\nkept = {{}}\nright = {call.partition('(')[0]}\n"
    source = f"{begin}\ndef {call}:\n    {body}\n"
    Path("mine.py").write_text(source, encoding="utf-8")
    Path("tokenizer.model").write_bytes(zoo.model("tokenizer.model.v1"))
    main(["learn", str(number), "mine.py", *(["tokenizer.model"] if number == len(RUNGS) else [])])
    assert printed in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("open('log', 'x').close()\ndef get_stats(ids):\n    return {1: 2}\n", "gives     {1: 2}\n"),
        (
            "def get_stats(ids):\n    raise KeyboardInterrupt('mine')\n",
            "gives     KeyboardInterrupt: mine (mine.py line 2)\n",
        ),
    ],
)
def test_files_that_run_once_and_other_exceptions(
    source: str,
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(source, encoding="utf-8")
    assert main(["learn", "1", "mine.py"]) == 1
    printed = capfd.readouterr()
    assert given in printed.out
    assert printed.err == ""


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is only limited here")
ENDLESS = """\
def get_stats(ids):
    while ids:
        ids += ids
    return {}


def merge(ids, pair, new):
    print("I have", ids)
    made, at = [], 0
    while at < len(ids):
        made.append(ids[at])
    return made


def cut(text):
    import re
    return re.findall("(x+x+)+y", "x" * 60)


def normalize(text):
    exit()


def encode(text, merges):
    import os
    os._exit(3)
"""


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (
            2,
            """\
merge([7, 7, 7, 8], (7, 7), 99)
  gives     nothing: it has not returned after 1 seconds (mine.py line 11)
  expected  [99, 7, 8]

It prints
I have [7, 7, 7, 8]
""",
        ),
        (5, "gives     nothing: it has not returned after 1 seconds (mine.py line 17)"),
        (6, "gives     SystemExit: None (mine.py line 21)"),
        (4, "gives     nothing: it ends Python, with the exit code 3"),
        pytest.param(1, "gives     MemoryError (mine.py line 3)", marks=LINUX),
    ],
)
def test_functions_that_do_not_return(
    number: int,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cpbpe.tools.climbing.SECONDS", 1)
    if number == 1:
        monkeypatch.setattr("cpbpe.tools.climbing.MEMORY", 50 << 20)
    Path("mine.py").write_text(ENDLESS)
    assert main(["learn", str(number), "mine.py"]) == 1
    assert printed in capsys.readouterr().out.replace("line 10)", "line 11)")  # (either of the loop)
    assert not multiprocessing.active_children()


@pytest.mark.skipif(sys.platform == "win32", reason="a group of processes gets Ctrl-C here as in a terminal")
def test_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{ENDLESS}\nimport os\nopen('begun', 'w').write(str(os.getpid()))\n")
    learn = processes.start(
        *("-m", "cpbpe", "learn", "2", "mine.py"),
        cwd=tmp_path,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    begun = tmp_path / "begun"
    while not (begun.exists() and begun.read_text()):
        time.sleep(0.1)
    time.sleep(1)
    os.killpg(learn.pid, signal.SIGINT)
    assert (
        learn.communicate()[1]
        == b"cpbpe: interrupted; merge([7, 7, 7, 8], (7, 7), 99) had not returned yet\n"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)  # the process of the endless function is no more


MODELS: dict[str, dict[str, Any]] = {
    "byte.json": {"preset": "gpt4"},
    "nfkc.model": {"normalization_rule_name": "nfkc"},
    "prefix.model": {"add_dummy_prefix": False},
    "unknown.model": {"byte_fallback": False},
    "user.model": {"user_defined_symbols": ["<x>"]},
}
"""Options of models for which the last rung cannot be solved."""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["9"], 2, "there are rungs 1 to 8"),
        (["one"], 2, "there are rungs 1 to 8"),
        (["8", "mine.py"], 2, "this rung needs a model"),
        (["1", "none.py"], 1, "none.py: No such file"),
        (["1", "mine.py", "byte.json"], 2, "rung 1 needs no model"),
        (["1", "broken.py"], 1, "broken.py cannot be run: "),
        (
            ["1", "missing.py"],
            1,
            "missing.py cannot be run: ModuleNotFoundError: No module named 'nowhere' (missing.py line 2)",
        ),
        (["1", "exits.py"], 1, "exits.py cannot be run: SystemExit"),
        (["5", "escape.py"], 1, "pip install regex"),
        (["2", "other.py"], 1, "other.py has no function merge; it has: count"),
        (
            ["8", "mine.py", "byte.json"],
            1,
            "needs a model like Llama 2's or Mistral 7B's; byte.json is byte-level",
        ),
        (["8", "mine.py", "nfkc.model"], 1, "nfkc.model changes texts"),
        (["8", "mine.py", "prefix.model"], 1, "prefix.model puts no ▁ in front of texts"),
        (["8", "mine.py", "unknown.model"], 1, "unknown.model has no byte fallback"),
        (["8", "mine.py", "user.model"], 1, "user.model has user-defined pieces"),
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
    Path("missing.py").write_text("import math\nimport nowhere\n")
    Path("exits.py").write_text("exit()\n")
    Path("escape.py").write_text("import re\nre.compile(r'\\p{L}')\n")
    Path("other.py").write_text("from math import gcd\ndef count(ids):\n    return {}\n")
    if arguments[-1] in MODELS:
        options = {"vocab_size": 300, "hard_vocab_limit": False, **MODELS[arguments[-1]]}
        cpbpe.train(["a b"], **options).tokenizer.save(arguments[-1])
    assert main(["learn", *arguments]) == code
    assert message in capsys.readouterr().err


def test_every_chapter_that_is_named_exists() -> None:
    folder = Path(__file__).parents[2] / "docs" / "learn"
    assert all((folder / f"{rung.chapter}.md").exists() for rung in RUNGS)
