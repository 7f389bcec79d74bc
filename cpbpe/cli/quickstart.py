"""``cpbpe quickstart``: training, encoding and decoding in a few seconds, without any file of your own."""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.resources import files
from typing import TYPE_CHECKING

from cpbpe.cli.train import Commands

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer

TEXT = "The llama reads stories, читает слова и 喜欢面包 🙂!"
"""Three scripts and an emoji."""

_COLOURS = (
    "\x1b[30;48;5;152m",
    "\x1b[30;48;5;223m",
    "\x1b[30;48;5;151m",
    "\x1b[30;48;5;182m",
    "\x1b[30;48;5;187m",
)
_NO_COLOUR = "\x1b[0m"


def add_to(commands: Commands) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "quickstart",
        help="train a small model on a text that comes with cpbpe, and use it",
        description="Train a model of 1,000 pieces on a text that comes with cpbpe, encode a sentence with "
        "it, decode it again, and save the model.",
    )
    parser.add_argument("text", nargs="?", default=TEXT, help="the sentence to encode")
    parser.add_argument(
        "--out", "-o", default="quickstart", metavar="NAME", help="write NAME.model and NAME.vocab"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show training, encoding and decoding."""
    from cpbpe.engine.choice import engine_name
    from cpbpe.training.train import check_prefix, train

    check_prefix(arguments.out)
    begun = time.perf_counter()
    corpus = files("cpbpe.cli").joinpath("quickstart.txt").read_bytes().split(b"\n")
    result = train(corpus, vocab_size=1000, progress=False)
    took = time.perf_counter() - begun
    tokenizer = result.tokenizer
    report = result.report
    print(
        f"Trained {report.vocab_size:,} pieces on {report.reading.bytes:,} bytes of text in several "
        f"languages, in {took:.2f} s (engine: {engine_name()})."
    )
    print(
        f"{report.special_pieces} are special (256 of these are bytes), {report.characters} are characters, "
        f"and {report.merges} were merged from pairs,\n"
        f"first {_first_merges(tokenizer, report.special_pieces)}."
    )
    ids = tokenizer.encode(arguments.text)
    print(f"\n{arguments.text}\nis {len(ids)} tokens:\n")
    print(_pieces(tokenizer, ids))
    decoded = tokenizer.decode(ids)
    same = "the same text" if decoded == arguments.text else "which is not the same text"
    print(f"\nDecoded again: {decoded} ({same}).")
    model, _ = result.save(arguments.out)
    print(f"\nThe model is in {model}. Use it in Python:\n")
    print(f"    import cpbpe\n    tok = cpbpe.load({model!r})\n    tok.encode({'Hello'!r})\n")
    print(f"Train your own: cpbpe train corpus.txt --vocab-size 32000 --out {os.path.join('.', 'my')}")
    return 0


def _first_merges(tokenizer: Tokenizer, begin: int) -> str:
    return ", ".join(tokenizer.id_to_piece(id) for id in range(begin, begin + 8))


def _pieces(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The pieces, each over its id, in columns; in colour if the terminal shows colours."""
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    cells = [(tokenizer.id_to_piece(id), str(id)) for id in ids]
    rows: list[list[tuple[str, str, int]]] = [[]]
    used = 0
    for piece, id in cells:
        width = max(_width(piece), len(id)) + 1
        if used + width > 100 and rows[-1]:
            rows.append([])
            used = 0
        rows[-1].append((piece, id, width))
        used += width
    lines: list[str] = []
    number = 0
    for row in rows:
        top, bottom = "", ""
        for piece, id, width in row:
            begin, end = (_COLOURS[number % len(_COLOURS)], _NO_COLOUR) if colours else ("", "")
            top += f"{begin}{piece}{end}" + " " * (width - _width(piece))
            bottom += id.ljust(width)
            number += 1
        lines += [f"  {top.rstrip()}", f"  {bottom.rstrip()}"]
    return "\n".join(lines)


def _width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
