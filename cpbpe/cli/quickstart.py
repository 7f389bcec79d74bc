"""``cpbpe quickstart``: training, encoding and decoding in a few seconds, without a file of your own."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from cpbpe.cli.output import check_outputs, terminal
from cpbpe.cli.parsing import Parser
from cpbpe.cli.train import FLAGS, TrainParser
from cpbpe.lazy import importing
from cpbpe.model.writing import write_all
from cpbpe.spelling import counted, listed, sized
from cpbpe.text.drawn import Lines, shown
from cpbpe.training.report import pieces_in_words

if TYPE_CHECKING:
    from cpbpe.training.result import TrainingResult

SPELLING = FLAGS
"""How messages spell the options of this command (see `cpbpe/cli/__init__.py`)."""

TEXT = "The llama reads stories, читает слова и 喜欢面包 🙂!"
"""Three scripts and an emoji."""

FOLDER = "cpbpe-quickstart"
NAMES = ("tokenizer.model", "tokenizer.vocab", "corpus.txt")
"""What is written to the folder. `cpbpe.load` finds the model in it by its name."""

VOCAB_SIZE = 1000


def parser() -> Parser:
    """The command's arguments."""
    nameless = "the sentence is given without a name: cpbpe quickstart 'Any sentence'"
    parser = TrainParser(
        "cpbpe quickstart [TEXT] [--out FOLDER]",
        "Train a small model on a text that comes with cpbpe, encode a sentence with\n"
        "it, decode it again, and save everything in a folder, for you to continue with.",
        guessed=dict.fromkeys(("text", "sentence", "input"), nameless),
    )
    parser.add_argument("text", nargs="?", default=TEXT, metavar="TEXT", help="the sentence to encode")
    parser.add("--out -o FOLDER", f"where to save {listed(list(NAMES))} (default: {FOLDER})", default=FOLDER)
    return parser


def corpus() -> bytes:
    """The text that comes with cpbpe."""
    return files("cpbpe.cli").joinpath("quickstart.txt").read_bytes()


def sample() -> TrainingResult:
    """A small model, trained on this text in a tenth of a second."""
    with importing:
        from cpbpe.training.train import train
    return train(corpus().splitlines(), vocab_size=VOCAB_SIZE, progress=False)


def run(arguments: argparse.Namespace) -> int:
    """Show training, encoding and decoding."""
    with importing:
        from cpbpe.engine.choice import engine_name
        from cpbpe.training.families import vocab_file
    folder = os.path.normpath(arguments.out)
    check_outputs([os.path.join(folder, name) for name in NAMES], [])
    begun = time.perf_counter()
    result = sample()
    took = time.perf_counter() - begun
    tokenizer, report = result.tokenizer, result.report
    model, vocab, text = NAMES
    _write(folder, {model: result.model_bytes, vocab: vocab_file(result.spec), text: corpus()})

    made = Lines(terminal(None)[0])
    first = report.special_pieces
    merges = ", ".join(tokenizer.id_to_piece(id) for id in range(first, first + 8))
    made.paragraph(
        f"Trained {report.vocab_size:,} pieces on {sized(report.reading.bytes)} of text in several "
        f"languages, in {took:.2f} s (engine: {engine_name()})."
    )
    made.paragraph(f"The pieces: {pieces_in_words(report)}.")
    made.paragraph(f"The first merges were {merges}.")
    ids = tokenizer.encode(arguments.text)
    made.paragraph("", shown(arguments.text), f"is {counted(len(ids), 'token')}:", "")
    # The pieces, each over its id, in columns; in colour if the terminal shows colours.
    drawn = tokenizer.show(arguments.text, limit=None).text(columns=made.columns - 2)
    made.lines += indent(drawn, "  ").split("\n")
    decoded = tokenizer.decode(ids)
    same = "the same text" if decoded == arguments.text else "which is not the same text"
    made.paragraph("", f"Decoded again: {shown(decoded)} ({same}).")
    made.paragraph("", f"The model is {os.path.join(folder, model)}. Use it in Python:", "")
    made.lines += ["    import cpbpe", f"    tok = cpbpe.load({folder!r})", "    tok.encode('Hello')"]
    made.paragraph("", "Train one yourself, on the same text or on your own:", "")
    command = ["cpbpe", "train", os.path.join(folder, text), "--vocab-size", str(VOCAB_SIZE), "--out", "my"]
    made.lines.append(f"    {shlex.join(command)}")
    print("\n".join(made.lines))
    return 0


def _write(folder: str, contents: dict[str, bytes]) -> None:
    """Write the files; refuse to replace one that this command did not write."""
    paths = {os.path.join(folder, name): data for name, data in contents.items()}
    for path, data in paths.items():
        if os.path.exists(path) and Path(path).read_bytes() != data:
            raise FileExistsError(
                f"{path!r} exists already, with other contents; choose another folder with --out, or remove "
                f"it"
            )
    os.makedirs(folder, exist_ok=True)
    write_all(paths)
