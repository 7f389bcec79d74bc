"""``cpbpe train``: from text files to a model, with a report."""

from __future__ import annotations

import argparse
import os
import re
import warnings
from dataclasses import fields
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cpbpe.cli.arguments import add_messages, add_reading, check_columns, files_of, found_of, progress_of
from cpbpe.cli.output import check_outputs, existing, make_folder, print_report, say, show_files
from cpbpe.cli.parsing import Flags, NotUnderstoodError, OneOf, Parser, flag, listed_values, refuse
from cpbpe.corpus.find import find
from cpbpe.lazy import importing
from cpbpe.model.writing import write_all
from cpbpe.spelling import spelled, spelled_as
from cpbpe.training.arguments import checked_memory_limit
from cpbpe.training.byte_options import (
    BYTE_MEANINGS,
    BYTE_NAMES,
    BYTE_PRESETS,
    ONLY_BYTES,
    OTHER_NAMES,
    AnyOptions,
    ByteTrainOptions,
    complete_options,
)
from cpbpe.training.options import GROUPS, NAMES, PRESETS, TrainOptions
from cpbpe.training.options_base import ARGUMENTS, REFUSED, advice

if TYPE_CHECKING:
    from cpbpe.training.word_counts import WordCounts

FUNCTIONS_AND_PAIRS = (
    "pretokenizer",
    "allow_inconsistent_pretokenization",
    "normalization_rules",
    "denormalization_rules",
)
"""Options that only Python can give: functions, and pairs of texts."""

OPTIONS = tuple(name for name in NAMES if name not in FUNCTIONS_AND_PAIRS)
"""The options of training that are flags."""

_ARGUMENTS = tuple(name for name in ARGUMENTS if name != "progress")

FLAGS = Flags((*OPTIONS, *ONLY_BYTES, *_ARGUMENTS, "preset", "out"))
"""How messages spell the options of training."""

THEIRS = {"model-prefix": "out", "num-threads": "threads"}
"""Flags of spm_train that have another name but the same meaning here."""

_OUT = "the model is named with --out"
_REPLACED = "files are replaced without asking; leave it out"

GUESSED = {
    **dict.fromkeys(("model", "model-writer", "out-prefix", "output", "output-dir", "output-path"), _OUT),
    **dict.fromkeys(("prefix", "save", "save-path"), _OUT),
    **dict.fromkeys(("progress-bar", "show-progress"), "it is --progress"),
    **dict.fromkeys(("force", "overwrite"), _REPLACED),
    "encoding": "a corpus is UTF-8; convert it first, for example with iconv",
    **dict.fromkeys(("options", "config"), "each option is given by itself, such as --vocab-size 1000"),
    "i": "the corpus comes first, without a name",
    "silent": "--quiet hides everything but warnings and errors",
    "sentence-iterator": "the corpus comes first; - is the standard input",
    "sentence-reader": "the corpus comes first; - is the standard input",
    "pretokenizer": "only Python can give a function; --pretokenization-delimiter can do the same for text "
    "that another program has marked",
    "normalization-rules": "give a file with rules, as --normalization-rule-tsv",
    "denormalization-rules": "give a file with rules, as --denormalization-rule-tsv",
    "required-chars-file": 'give its text: --required-chars "$(cat FILE)"',
    "control-symbols-file": 'give its lines: --control-symbols "$(paste -sd, FILE)"',
    "user-defined-symbols-file": 'give its lines: --user-defined-symbols "$(paste -sd, FILE)"',
}
"""Flags that people guess, and what to tell them; `cpbpe.training.options_base` has the rest."""

SPELLING = FLAGS
"""How messages spell the options of this command (see `cpbpe/cli/__init__.py`)."""
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


class TrainParser(Parser):
    """The arguments of a command that takes the options of training."""

    theirs = THEIRS
    guesses = GUESSED

    def way_out(self, name: str) -> str:
        """The end of a message about an option that does not exist; `name` is its name in Python."""
        with spelled_as(FLAGS):
            if name in REFUSED:
                return f": {spelled(REFUSED[name])}"
            way_out = advice(name, [option for option in self.flags() if not option.startswith("no_")])
        return f"; {way_out}" if way_out else ""


def parser() -> Parser:
    """The command's arguments."""
    parser = TrainParser("cpbpe train CORPUS [CORPUS ...] --out NAME [options]", _DESCRIPTION, _EXAMPLES)
    add_corpus(parser)
    parser.add(
        "--out -o NAME",
        "write NAME.model and NAME.vocab; folders are made as needed; a byte-level model can also be "
        "written as NAME.tiktoken and other formats",
    )
    parser.add(
        "--report FILE",
        "write the report to this file: a page with the curve of vocabulary sizes if its name "
        "ends in .html, otherwise JSON",
    )
    add_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say."""
    with importing:
        from cpbpe.model.formats.registry import MODEL, format_for
        from cpbpe.tokenizer.converting import save
        from cpbpe.training.byte_options import ByteTrainOptions
        from cpbpe.training.train import train
    # 1. Checks that come before the work.
    corpus = corpus_of(arguments, "cpbpe train corpus.txt --out my", "the model has no name")
    options = options_of(arguments)
    name = arguments.out.removesuffix(".model")
    if not os.path.basename(name) and name != arguments.out:
        raise ValueError(f"{arguments.out!r} has no name before .model; give one, such as '{name}my.model'")
    # (A name that ends in / is refused by `check_outputs`.)
    outputs = [f"{name}.model", f"{name}.vocab"] if os.path.basename(name) else [name]
    if isinstance(options, ByteTrainOptions) and format_for(name) is not MODEL:
        outputs = [name]  # such as my.tiktoken
    check_outputs([*outputs, arguments.report], files_of(arguments, corpus))
    if arguments.input and arguments.preset is None and not arguments.quiet:
        say(
            "options that are not given have Llama 2's values; --preset sentencepiece gives them those of "
            "spm_train"
        )
    # 2. The work.
    show_corpus(arguments, corpus)
    counts = load_counts(corpus)
    if counts is None:
        check_columns(arguments, corpus)
    with warnings.catch_warnings():
        if not arguments.quiet:  # the report is printed, and repeats the warnings about the corpus
            warnings.simplefilter("ignore", UserWarning)
        result = train(
            list(map(Path, corpus)) if counts is None else counts,
            preset=options,
            **source_arguments(arguments),
        )
    # 3. The files.
    replaced = existing(outputs)
    make_folder(name)
    if outputs == [name]:  # such as my.tiktoken
        notes = save(result.tokenizer.facts, result.tokenizer.bound_options, name)
    else:
        notes = ()
        result.save(name)
    if arguments.report is not None:
        make_folder(arguments.report)
        is_page = arguments.report.lower().endswith((".html", ".htm"))
        text = result.report.html() if is_page else result.report.to_json(indent=1) + "\n"
        write_all({arguments.report: text.encode()})
    if arguments.json:
        print(result.report.to_json(indent=1))
    elif not arguments.quiet:
        print_report([*str(result.report).split("\n"), f"written       {', '.join(outputs)}{replaced}"])
    for note in notes if not arguments.quiet else ():
        say(f"{name}: {note}")
    return 0


def load_counts(paths: list[str]) -> WordCounts | None:
    """The counts in files that `cpbpe count` wrote, merged; None if no path names such a file."""
    with importing:
        from cpbpe.training.word_counts import MAGIC, WordCounts
    count_files: list[str] = []
    others = [path for path in paths if os.path.isdir(path)]
    for path in find([path for path in paths if path not in others], any_text=True).files:
        is_counts = False
        if os.path.isfile(path):
            with open(path, "rb") as file:
                is_counts = file.read(len(MAGIC)) == MAGIC
        (count_files if is_counts else others).append(path)
    if not count_files:
        return None
    if others:
        why = "the standard input (-) is taken for text" if others[0] == "-" else f"{others[0]} does not"
        raise ValueError(
            f"{count_files[0]} contains word counts, and {why}; count that first, with 'cpbpe count'"
        )
    first, *more = map(WordCounts.load, count_files)
    return first.merge(*more)


# --- What training and counting share ----------------------------------------------------------------


def add_corpus(parser: Parser) -> None:
    """Add the corpus, and --input and --model-type of spm_train, which are not listed."""
    parser.add_argument(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="a file, a folder, or a pattern in quotes such as 'data/**/*.txt'; - is the standard input. "
        "Each line is a text of its own. Files named .tsv (a text, a tab, a count), .jsonl, .parquet and "
        ".arrow are read as such, and .csv with --column; those that also end in .gz, .xz, .bz2 or .zst are "
        "decompressed",
    )
    parser.add_argument("--input", action="append", type=listed_values, help=argparse.SUPPRESS)
    parser.add_argument("--model-type", help=argparse.SUPPRESS)


def add_options(parser: Parser) -> None:
    """Add the preset, how the corpus is read, and every option of training that a shell can give."""
    parser.add(
        "--preset NAME",
        "where the options that are not given come from: llama2 (the default), sentencepiece (the "
        "defaults of spm_train) or lossless (decoding gives back every text); for a byte-level model: "
        f"{', '.join(BYTE_PRESETS)}",
        type=OneOf([*PRESETS, *BYTE_PRESETS, *OTHER_NAMES]),
    )
    # 1. Reading, and messages.
    parser.section("reading")
    add_reading(parser, ".parquet, .arrow or .csv")
    parser.add("--threads N", "how many threads to use (default: one per processor)")
    parser.add(
        "--memory-limit SIZE",
        "how much memory the counts may take, such as 500MB or 4GB; the rest goes to temporary files",
        type=_memory,
    )
    add_messages(parser, "which files are read, and which are not")
    parser.add("--json", "print the report as JSON")
    # 2. The options of all models.
    both = (*fields(TrainOptions), *fields(ByteTrainOptions))
    kinds = {item.name: str(item.type) for item in both}
    for title, group in GROUPS.items():
        parser.section(title)
        for name, (meaning, _) in group.items():
            if name in OPTIONS:
                parser.add_option(name, kinds[name], f"{spelled(meaning)} (default: {_default(name)})")
    # 3. The options that only byte-level models have.
    about = (
        f"Options of the presets {', '.join(BYTE_PRESETS)}. They have these of those above, too: "
        f"{', '.join(flag(name) for name in BYTE_NAMES if name not in ONLY_BYTES)}. A text file is one text "
        f"there."
    )
    parser.section("byte-level models", "\n  ".join(wrap(about, 75)))
    for name in (name for name in BYTE_NAMES if name in ONLY_BYTES):
        values = [getattr(options, name) for options in BYTE_PRESETS.values()]
        same = all(value == values[0] for value in values)
        usual = f"default: {_shown(values[0])}" if same else "the default depends on the preset"
        parser.add_option(name, kinds[name], f"{spelled(BYTE_MEANINGS[name].meaning)} ({usual})")


def corpus_of(arguments: argparse.Namespace, example: str, no_name: str) -> list[str]:
    """The corpus, named as for this command or for spm_train. `no_name`: the error if there is no --out."""
    paths: list[str] = [*arguments.corpus, *(path for paths in arguments.input or [] for path in paths)]
    if not paths:
        raise NotUnderstoodError(f"there is no corpus; name a file or a folder: {example}")
    for path in paths:
        if (way_out := _advice_on_stray_value(path)) and not os.path.lexists(path):
            raise NotUnderstoodError(f"there is no file {path!r}; {way_out}")
    if arguments.out is None:
        # If the corpus is missing, too, that error comes first.
        find([path for path in paths if not os.path.isdir(path)], any_text=True)
        raise NotUnderstoodError(f"{no_name}; give one with --out: {example}")
    return paths


def show_corpus(arguments: argparse.Namespace, corpus: list[str]) -> None:
    """With --verbose, name the files of the corpus. (The report names those that are left out.)"""
    if arguments.verbose:
        show_files(found_of(arguments, corpus), verbose=True)


def _advice_on_stray_value(given: str) -> str | None:
    """Advice about an argument that was probably meant as the value of the option before it."""
    if given.lower() in ("true", "false"):
        return f"the value of a switch comes after a '=', as in --byte-fallback={given}"
    if re.fullmatch("<.+>", given):
        return "several symbols have commas between them, as in --control-symbols '<a>,<b>'"
    return None


def options_of(arguments: argparse.Namespace) -> AnyOptions:
    """The options that the arguments ask for."""
    kind = arguments.model_type
    if kind is not None and kind.lower() != "bpe":
        raise NotUnderstoodError(f"--model-type: cpbpe trains bpe only, not {kind!r}; leave it out")
    names = (*OPTIONS, *(name for name in BYTE_NAMES if name in ONLY_BYTES))
    changes = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    options = complete_options(arguments.preset or "llama2", changes)
    if not getattr(options, "input_sentence_size", 0):
        refuse(arguments, {"seed": 0}, "only --input-sentence-size N samples")
    return options


def source_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `cpbpe.train` and `WordCounts.build` that say how to read a corpus."""
    return {
        "threads": arguments.threads,
        "progress": progress_of(arguments),
        "memory_limit": arguments.memory_limit,
        "format": arguments.input_format,
        "field": arguments.field,
        "column": arguments.column,
    }


def _memory(text: str) -> int | None:
    try:
        return checked_memory_limit(int(text) if text.isdecimal() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _default(name: str) -> str:
    """The default of an option, and its values in the presets that differ."""
    values = {key: _shown(getattr(options, name)) for key, options in PRESETS.items()}
    first = values["llama2"]
    return "; ".join([first, *(f"{key}: {value}" for key, value in values.items() if value != first)])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(value) if value else "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)
