"""``cpbpe spm export_vocab``: what spm_export_vocab does."""

from __future__ import annotations

from math import copysign, isnan

from cpbpe.cli.output import say
from cpbpe.cli.spm.encode import load_model
from cpbpe.cli.spm.flags import Flag, Given, Program
from cpbpe.cli.spm.lines import check_output, write
from cpbpe.spelling import counted

PROGRAM = Program(
    "export_vocab",
    "Writes the pieces of a model, one on each line.",
    "export_vocab --model=FILE [--output=FILE]",
    (
        Flag("output", "string", "", "the file to write, instead of the standard output"),
        Flag("model", "string", "", "the model"),
        Flag("output_format", "string", "vocab", "vocab (pieces and scores) or syms (pieces and ids)"),
    ),
    "Pieces that contain tabs or newlines break their lines. What 'cpbpe inspect MODEL\n"
    "--export tsv' writes can be read again.\n",
)


def run(given: Given) -> None:
    """Write the pieces as the flags say."""
    flags = given.flags
    if given.files:
        raise ValueError(f"{given.files[0]!r} is one argument too many; the model is given with --model")
    check_output(flags["output"], [flags["model"]])
    pieces = load_model(flags["model"], "export_vocab").facts.spec.pieces
    if flags["output_format"] == "vocab":
        values = list(map(_score, pieces.numbers()))
    elif flags["output_format"] == "syms":
        values = list(map(str, range(len(pieces))))
    else:
        raise ValueError(f"--output_format: there is no {flags['output_format']!r}; give vocab or syms")
    rows = zip(pieces.texts, values, strict=True)
    lines = [b"%s\t%s\n" % (text, value.encode()) for text, value in rows]
    write(flags["output"], [b"".join(lines)])
    broken = sum(b"\n" in text or b"\t" in text for text in pieces.texts)
    if broken and not flags["quiet"]:
        say(
            f"{counted(broken, 'piece')} with tabs or newlines broke the lines, as in sentencepiece; cpbpe "
            f"inspect --export tsv writes a file that can be read again"
        )


def _score(score: float) -> str:
    """A score as a stream of C++ writes it: with six digits, and the sign even of NaN."""
    return "-nan" if isnan(score) and copysign(1, score) < 0 else f"{score:g}"
