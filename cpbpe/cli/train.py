"""``cpbpe train``: from text files to a model, with a report."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import add_corpus, add_options, corpus_of, options_of, show_corpus, source_arguments
from cpbpe.cli.output import check_outputs, existing, make_folder, say
from cpbpe.cli.parsing import Parser
from cpbpe.cli.train_flags import FLAGS, TrainParser

if TYPE_CHECKING:
    from cpbpe.training.word_counts import WordCounts

SPELLING = FLAGS
"""How messages spell options."""
LESS_MEMORY = "--memory-limit makes counting use less"
"""What to do if there is not enough memory."""

_DESCRIPTION = """\
Train a SentencePiece BPE model on text files. It is the model that
sentencepiece trains on the same lines with the same options: the .vocab files
are equal, and so are the .model files, except that sentencepiece also records
the paths of the corpus and of the model. --record-paths does that, too.
With a preset such as gpt4 it is a byte-level model instead.
"""

_EXAMPLES = """\
examples:
  cpbpe train corpus.txt --vocab-size 32000 --out my
  cpbpe train 'data/*.jsonl.gz' --field content --vocab-size 50000 --out code
  cpbpe train a.counts b.counts --vocab-size 32000 --out my
  cpbpe train corpus.txt --preset gpt4 --vocab-size 32000 --out my.tiktoken

Flags of spm_train are understood as well:
  cpbpe train --input=corpus.txt --model_prefix=my --vocab_size=8000 \\
    --preset=sentencepiece
"""


def parser() -> Parser:
    """The command's arguments."""
    parser = TrainParser(
        prog="cpbpe train",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        usage="cpbpe train CORPUS [CORPUS ...] --out NAME [options]",
    )
    add_corpus(parser)
    parser.add_argument(
        "--out",
        "-o",
        metavar="NAME",
        help="write NAME.model and NAME.vocab; folders are made as needed; a byte-level model can also be "
        "written as NAME.tiktoken and other formats",
    )
    parser.add_argument("--report", metavar="FILE", help="write the report to this file, as JSON")
    add_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say."""
    from cpbpe.model.formats.registry import MODEL, format_for
    from cpbpe.model.writing import write_all
    from cpbpe.training.options import ByteTrainOptions
    from cpbpe.training.train import train

    # 1. Checks that come before the work.
    corpus = corpus_of(arguments, "cpbpe train corpus.txt --out my", "the model has no name")
    options = options_of(arguments)
    name = arguments.out.removesuffix(".model")
    outputs = [f"{name}.model", f"{name}.vocab"] if os.path.basename(name) else [name]
    if isinstance(options, ByteTrainOptions) and format_for(name) is not MODEL:
        outputs = [name]  # such as my.tiktoken
    check_outputs([*outputs, *filter(None, [arguments.report])], corpus)
    if arguments.input and arguments.preset is None and not arguments.quiet:
        say(
            "options that are not given have Llama 2's values; --preset sentencepiece gives them those of "
            "spm_train"
        )
    # 2. The work.
    show_corpus(arguments, corpus)
    counts = load_counts(corpus)
    with warnings.catch_warnings():
        if not arguments.quiet:
            warnings.simplefilter("ignore", UserWarning)  # about the corpus, which the report repeats
        result = train(
            list(map(Path, corpus)) if counts is None else counts,
            preset=options,
            **source_arguments(arguments),
        )
    # 3. The files.
    replaced = existing(outputs)
    make_folder(name)
    written = ", ".join(result.save(name))
    if arguments.report:
        make_folder(arguments.report)
        write_all({arguments.report: (result.report.to_json(indent=1) + "\n").encode()})
    if arguments.json:
        print(result.report.to_json(indent=1))
    elif not arguments.quiet:
        print(result.report)
        print(f"written       {written}{replaced}")
    return 0


def load_counts(paths: list[str]) -> WordCounts | None:
    """The counts in files that `cpbpe count` wrote, merged; None if no path is such a file."""
    from cpbpe.training.word_counts import MAGIC, WordCounts

    count_files = [path for path in paths if os.path.isfile(path) and _begins(path, MAGIC)]
    if not count_files:
        return None
    if len(count_files) < len(paths):
        other = next(path for path in paths if path not in count_files)
        raise ValueError(
            f"{count_files[0]} contains word counts, and {other} does not; count that first, with 'cpbpe "
            f"count'"
        )
    first, *others = map(WordCounts.load, count_files)
    return first.merge(*others)


def _begins(path: str, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic
