"""``cpbpe train``: from text files to a model, with a report."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpbpe.cli.arguments import add_corpus, add_options, options_of, source_arguments

if TYPE_CHECKING:
    from cpbpe.training.word_counts import WordCounts

Commands = Any
"""What argparse's add_subparsers gives; it has no public name."""

_EXAMPLES = """\
examples:
  cpbpe train corpus.txt --vocab-size 32000 --out my
  cpbpe train "data/**/*.jsonl.gz" --field content --vocab-size 50000 --out models/code
  cpbpe train a.counts b.counts --vocab-size 32000 --out my     (see cpbpe count)
"""


def add_to(commands: Commands) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "train",
        help="train a model",
        description="Train a SentencePiece BPE model: the same that sentencepiece trains, byte for byte.",
        epilog=_EXAMPLES,
        usage="cpbpe train CORPUS [CORPUS ...] --out NAME [options]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_corpus(parser)
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", help="how many pieces (llama2: 32000, sentencepiece: 8000)"
    )
    parser.add_argument(
        "--out",
        "-o",
        required=True,
        metavar="NAME",
        help="write NAME.model and NAME.vocab; folders are created",
    )
    parser.add_argument("--report", metavar="FILE", help="write the report to a file, as JSON")
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say."""
    from cpbpe.model.writing import write_all
    from cpbpe.training.train import check_prefix, train

    options = options_of(arguments)
    name = arguments.out.removesuffix(".model")
    for path in (name, arguments.report):
        if path and os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if path:
            check_prefix(path)
    counts = load_counts(arguments.corpus)
    result = train(
        list(map(Path, arguments.corpus)) if counts is None else counts,
        preset=options,
        **source_arguments(arguments),
    )
    model, vocab = result.save(name)
    if arguments.report:
        data = (result.report.to_json(indent=1) + "\n").encode()
        write_all({arguments.report: data})
    if not arguments.quiet:
        print(result.report)
        print(f"written       {model}, {vocab}")
    return 0


def load_counts(paths: list[str]) -> WordCounts | None:
    """The counts in files that `cpbpe count` wrote, merged; None if no path is such a file."""
    from cpbpe.training.word_counts import MAGIC, WordCounts

    count_files = [path for path in paths if os.path.isfile(path) and _begins(path, MAGIC)]
    if not count_files:
        return None
    if len(count_files) < len(paths):
        other = next(path for path in paths if path not in count_files)
        raise ValueError(f"{count_files[0]} holds word counts, and {other} does not; count that first")
    first, *others = map(WordCounts.load, count_files)
    return first.merge(*others)


def _begins(path: str, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic
