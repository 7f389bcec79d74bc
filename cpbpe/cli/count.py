"""``cpbpe count``: the first half of training, for corpora that are counted in parts."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from dataclasses import asdict
from pathlib import Path

from cpbpe.cli.arguments import check_columns, files_of, refuse_reading
from cpbpe.cli.compare import is_model
from cpbpe.cli.output import check_outputs, existing, make_folder, print_report
from cpbpe.cli.parsing import NotUnderstoodError, Parser, refuse
from cpbpe.cli.train import (
    FLAGS,
    OPTIONS,
    TrainParser,
    add_corpus,
    add_options,
    corpus_of,
    load_counts,
    options_of,
    show_corpus,
    source_arguments,
)
from cpbpe.lazy import importing
from cpbpe.training.byte_options import BYTE_NAMES

SPELLING = FLAGS
"""How messages spell the options of this command (see `cpbpe/cli/__init__.py`)."""
LESS_MEMORY = "--memory-limit makes counting use less"
"""What to do if there is not enough memory."""

_DESCRIPTION = """\
Count the words of a corpus, which is the first half of training. Train on the
counts of all parts of a corpus, and you get the model that training on the
whole corpus gives, byte for byte. Give 'cpbpe count' and 'cpbpe train' the
same options. Given files of counts, 'cpbpe count' adds them up.
"""

_EXAMPLES = """\
examples:
  cpbpe count part1.txt --out part1.counts
  cpbpe count part2.txt --out part2.counts
  cpbpe train part1.counts part2.counts --vocab-size 32000 --out my
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = TrainParser(
        "cpbpe count CORPUS [CORPUS ...] --out FILE [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {"model": "this counts words, for training; 'cpbpe tokens MODEL FILE' counts tokens"},
    )
    add_corpus(parser)
    parser.add("--out -o FILE", "write the counts to this file")
    add_options(parser)
    return parser


def refuse_options(arguments: argparse.Namespace) -> None:
    """Refuse options when counts are merged: the counts were made with options of their own."""
    why = "the files contain word counts, which are only added up"
    refuse_reading(arguments, why)
    refuse(arguments, dict.fromkeys(("memory_limit", "preset", *OPTIONS, *BYTE_NAMES)), why)


def _refuse_model(arguments: argparse.Namespace) -> None:
    """If the first argument is a model, its tokens were meant, and not words: say what counts those."""
    first, *texts = arguments.corpus or [""]
    # A folder with a model in it may hold texts as well, and --input-format says that it is text.
    is_corpus = arguments.out is not None and (os.path.isdir(first) or arguments.input_format is not None)
    if is_model(first) and not is_corpus:
        command = shlex.join(["cpbpe", "tokens", first, *(texts or ["corpus.txt"])])
        raise NotUnderstoodError(
            f"{first} is a model, and this counts the words of a corpus, for training; to count tokens, "
            f"type: {command}"
        )


def run(arguments: argparse.Namespace) -> int:
    """Count as the arguments say."""
    with importing:
        from cpbpe.training.word_counts import WordCounts
    _refuse_model(arguments)
    no_name = "the counts of words, which are for training, have no name"
    corpus = corpus_of(arguments, "cpbpe count part1.txt --out part1.counts", no_name)
    options = options_of(arguments)
    check_outputs([arguments.out], files_of(arguments, corpus))
    show_corpus(arguments, corpus)
    counts = load_counts(corpus)
    if counts is not None:
        refuse_options(arguments)
    else:
        check_columns(arguments, corpus)
        counts = WordCounts.build(list(map(Path, corpus)), preset=options, **source_arguments(arguments))
    replaced = existing([arguments.out])
    make_folder(arguments.out)
    counts.save(arguments.out)
    if arguments.json:
        print(json.dumps({"words": len(counts), "out": arguments.out, "reading": asdict(counts.reading)}))
    elif not arguments.quiet:
        words, written = f"{len(counts):,} distinct", f"{arguments.out}{replaced}"
        print_report([*counts.reading.lines(), f"words         {words}", f"written       {written}"])
    return 0
