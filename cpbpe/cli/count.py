"""``cpbpe count``: the first half of training, for corpora that are counted in parts."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cpbpe.cli.arguments import GROUPS, add_corpus, add_options, options_of, source_arguments
from cpbpe.cli.train import Commands, load_counts
from cpbpe.errors import TrainingError

_EXAMPLES = """\
examples:
  cpbpe count part1.txt --out part1.counts
  cpbpe count part2.txt --out part2.counts
  cpbpe train part1.counts part2.counts --vocab-size 32000 --out my
"""


def add_to(commands: Commands) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "count",
        help="count the words of a corpus, or merge such counts, to train on them later",
        description="Count the words of a corpus. Training on the counts of all parts of a corpus gives the "
        "model that training on the corpus gives, byte for byte. Give 'cpbpe train' the same options.",
        epilog=_EXAMPLES,
        usage="cpbpe count CORPUS [CORPUS ...] --out FILE [options]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_corpus(parser)
    parser.add_argument("--out", "-o", required=True, metavar="FILE", help="write the counts to this file")
    add_options(parser)
    parser.set_defaults(run=run)


def refuse_options(arguments: argparse.Namespace) -> None:
    """Refuse options where counts are merged: they were made under options of their own."""
    for name in ("format", "memory_limit", *(name for group in GROUPS.values() for name in group)):
        if getattr(arguments, name, None) is not None:
            flag = "--" + name.replace("_", "-")
            raise TrainingError(f"{flag} means nothing here: the files hold word counts, which are merged")


def run(arguments: argparse.Namespace) -> int:
    """Count as the arguments say."""
    from cpbpe.training.train import check_prefix
    from cpbpe.training.word_counts import WordCounts

    options = options_of(arguments)
    if os.path.dirname(arguments.out):
        os.makedirs(os.path.dirname(arguments.out), exist_ok=True)
    check_prefix(arguments.out)
    counts = load_counts(arguments.corpus)
    if counts is not None:
        refuse_options(arguments)
    else:
        counts = WordCounts.build(
            list(map(Path, arguments.corpus)),
            preset=options,
            **source_arguments(arguments),
        )
    counts.save(arguments.out)
    if not arguments.quiet:
        print("\n".join(counts.reading.lines()))
        print(f"words         {len(counts):,} different ones")
        print(f"written       {arguments.out}")
    return 0
